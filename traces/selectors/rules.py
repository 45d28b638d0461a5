"""Rules that are stored as data, as the core reads them."""

from __future__ import annotations

from traces.core.rules import RuleSet
from traces.core.rules_data import rule_set_of
from traces.models import RulesVersion, System


def rules_of(system: System) -> RuleSet:
    """The rules that the system's pages show."""
    return rules_in(system.shown_rules)


def rules_in(version: RulesVersion) -> RuleSet:
    """The rules of one stored version."""
    return rule_set_of(version.document)
