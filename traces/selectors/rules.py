"""Rules that are stored as data, as the core reads them."""

from __future__ import annotations

from traces.core.rule_documents import parse_rule_set
from traces.core.rules import RuleSet
from traces.models import RulesVersion, System
from traces.permissions.rules import newest_approved_number


def shown_rules(system: System) -> RulesVersion:
    """The rules version that the system's pages show. Every system has one from its creation."""
    if system.shown_rules is None:
        raise LookupError(f"system {system.slug} was made without rules")
    return system.shown_rules


def shown_rules_id(system: System) -> int:
    """The id of the rules version that pages show by now, whatever the object at hand says."""
    rows = System.objects.filter(pk=system.pk).values_list("shown_rules_id", flat=True)
    found = rows.get()
    if found is None:
        raise LookupError(f"system {system.slug} was made without rules")
    return found


def rules_of(system: System) -> RuleSet:
    """The rules that the system's pages show."""
    return rules_in(shown_rules(system))


def rules_in(version: RulesVersion) -> RuleSet:
    """The rules of one stored version."""
    rules, findings = parse_rule_set(version.document)
    if findings:
        raise ValueError(f"rules version {version.pk} is not whole: {findings[0].sentence}")
    return rules


def newest_approved(system: System) -> RulesVersion:
    """The version that a change of rules starts from: shown, or being worked out to be shown."""
    return RulesVersion.objects.get(system=system, number=newest_approved_number(system))
