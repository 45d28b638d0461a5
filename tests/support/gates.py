"""Tiers with thresholds, and gates computed of what was stored."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from evalsite.gates import ComputedGate, compute_gate
from reviews.core.gate.model import CheckKind, Thresholds
from reviews.core.gate.thresholds import parse_thresholds, thresholds_digest
from reviews.models import RiskTier, ThresholdSet, TierAssignment
from tests.support.evidence import record, verdict
from tests.support.in_effect import contract_in_effect
from traces.core.values import JsonObject
from traces.models import (
    ContractDecision,
    ContractOutcome,
    ContractVersion,
    Release,
    System,
    Task,
    User,
)

CHECKS: dict[str, dict[str, Any]] = {
    "prohibited": {"limit": 0},
    "unresolved": {"limit": 0},
    "fewest_trials": {"limit": 1},
    "declared": {},
}
"""The checks that no tier goes without, as loose as can be."""


def thresholds_in_force(
    system: System,
    *,
    by: User,
    since: datetime | None = None,
    tier: str = "payments",
    task: Task | None = None,
    owners: int = 1,
    **checks: Any,
) -> ThresholdSet:
    """Another version of a tier's thresholds, in force since a while ago.

    The first one makes the tier, with all tasks of the system in it, or the one at hand.
    """
    at = since or timezone.now() - timedelta(days=1)
    row, is_new = RiskTier.objects.get_or_create(
        system=system, name=tier, defaults={"made_by": by, "made_at": at}
    )
    asked = {**CHECKS, **checks}
    document: JsonObject = {
        "version": 1,
        "n_owners": owners,
        "checks": [
            {"kind": kind.value, **asked[kind.value]} for kind in CheckKind if kind.value in asked
        ],
    }
    parsed = parse_thresholds(document)
    assert isinstance(parsed, Thresholds), parsed
    if is_new:
        TierAssignment.objects.create(
            system=system, task=task, tier=row, reason="A test.", by=by, assigned_at=at
        )
    return ThresholdSet.objects.create(
        tier=row,
        number=ThresholdSet.objects.filter(tier=row).count() + 1,
        document=document,
        digest=thresholds_digest(parsed),
        reason="A test.",
        by=by,
        made_at=at,
        in_force_from=at,
    )


def gate_of(system: System, release: str = "1.0", *, now: datetime | None = None) -> ComputedGate:
    """The gate of a release as it is now."""
    row = Release.objects.get(system=system, name=release)
    return compute_gate(row.pk, now=now or timezone.now())


def results(computed: ComputedGate) -> dict[str, str]:
    """What each check comes to, of a gate with one section."""
    (section,) = computed.gate.sections
    return {check.threshold.kind.value: check.result.value for check in section.checks}


def refund_contract(task_id: str, *, limit: str = "100.0") -> str:
    """A contract that asks an outside grader for the outcome and prohibits large refunds."""
    return f"""
task: {task_id}
prohibited:
  - {{id: big-refund, harm: money, call: issue_refund, where: 'args.amount > {limit}'}}
external:
  - {{id: db, class: outcome, mandatory: true}}
"""


def approved_contract(
    system: System, text: str, *, by: User, at: datetime, in_effect: bool = True
) -> ContractVersion:
    """A contract that was approved at an instant; in effect: pages decide by it from now on."""
    before = dict(Task.objects.filter(system=system).values_list("pk", "contract"))
    version = contract_in_effect(system, text, by=by)
    ContractDecision.objects.create(
        proposal=version.proposal,
        outcome=ContractOutcome.APPROVED.value,
        reason="A test.",
        by=by,
        decided_at=at,
    )
    if not in_effect:
        Task.objects.filter(pk=version.task_id).update(contract=before[version.task_id])
    return version


def refund(task_id: str, trial: int | str = 0, *, amount: str = "20.0", **more: Any) -> Any:
    """A trial that pays a refund, with the verdict of the outside grader."""
    verdicts = more.pop("verdicts", [verdict(criterion="db", **{"class": "outcome"})])
    calls = [("issue_refund", {"amount": float(amount)})]
    return record(task_id, trial, calls=calls, verdicts=verdicts, **more)
