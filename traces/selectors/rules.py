"""Rules that are stored as data, as the core reads them."""

from __future__ import annotations

from traces.core.rule_documents import parse_rule_set
from traces.core.rules import RuleSet
from traces.models import RulesVersion, System


def rules_of(system: System) -> RuleSet:
    """The rules that the system's pages show."""
    return rules_in(system.shown_rules)


def rules_in(version: RulesVersion) -> RuleSet:
    """The rules of one stored version."""
    rules, findings = parse_rule_set(version.document)
    if findings:
        raise ValueError(f"rules version {version.pk} is not whole: {findings[0].sentence}")
    return rules
