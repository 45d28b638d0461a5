"""What other thresholds of a tier would have meant for a release that is there already.

Nothing is stored and nothing counts of it: thresholds are set before the results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reviews.core.gate.deciding import decide_gate
from reviews.core.gate.model import Gate, Section, Thresholds, ThresholdSetInForce
from reviews.core.gate.thresholds import thresholds_digest
from reviews.models import RiskTier
from reviews.selectors.gate_baseline import SignedRelease, approved_releases, baseline_of
from reviews.selectors.gate_basis import (
    GateBasis,
    GateSubject,
    TierInForce,
    assigned_tiers,
    basis_at,
    basis_at_start,
    gate_subject,
    iso,
)
from reviews.selectors.gate_evidence import SlotDecider, collected
from reviews.selectors.gate_sections import BaselineEvidence, tier_evidence
from reviews.selectors.manifest_rows import calibrations_read


@dataclass(frozen=True, slots=True)
class SupposedGate:
    """The gate of a release as it is, and as it would be under other thresholds of one tier."""

    gate: Gate
    supposed: Gate
    tier_uuid: str

    @property
    def section(self) -> Section | None:
        """The tier's part of the gate as it is; None where it asked nothing of the release."""
        return next((s for s in self.gate.sections if s.tier_uuid == self.tier_uuid), None)

    @property
    def supposed_section(self) -> Section:
        """The tier's part of the other one."""
        return next(s for s in self.supposed.sections if s.tier_uuid == self.tier_uuid)


def supposed_gate(
    release_pk: int, tier_pk: int, thresholds: Thresholds, *, now: datetime
) -> SupposedGate | None:
    """The gate of a release with other thresholds in one tier. None where no run of it counts.

    The tasks of the tier are those that are in it now; all else is as the release's own gate
    applies it.
    """
    subject = gate_subject(release_pk)
    if subject.begun_at is None:
        return None
    tier = RiskTier.objects.only("pk", "uuid", "name").get(pk=tier_pk)
    brought = collected(subject)
    signed = baseline_of(subject, approved_releases(subject.system_pk))
    baseline = _baseline(signed) if signed else None
    tasks = set(brought.tasks)
    if baseline is not None:
        tasks |= {each.task_pk for each in baseline.slots}
    basis = _basis(subject, tasks)
    slots = SlotDecider(brought, basis.contract_of).slots()
    keys = frozenset().union(*(each.judges for each in slots))
    read = calibrations_read(subject.system_pk, keys)
    other = _supposed_basis(basis, subject, tier, thresholds, now=now)
    gates = [
        decide_gate(subject.name, tier_evidence(brought, each, slots, read, baseline))
        for each in (basis, other)
    ]
    return SupposedGate(gates[0], gates[1], str(tier.uuid))


def _basis(subject: GateSubject, tasks: Iterable[int]) -> GateBasis:
    if subject.reevaluation is None:
        return basis_at_start(subject, tasks)
    return basis_at(subject, tasks, subject.reevaluation.made_at)


def _baseline(signed: SignedRelease) -> BaselineEvidence:
    subject = gate_subject(signed.release_pk)
    brought = collected(subject)
    basis = _basis(subject, brought.tasks)
    return BaselineEvidence(signed, SlotDecider(brought, basis.contract_of).slots())


def _supposed_basis(
    basis: GateBasis,
    subject: GateSubject,
    tier: RiskTier,
    thresholds: Thresholds,
    *,
    now: datetime,
) -> GateBasis:
    supposed = TierInForce(tier.pk, tier.uuid, tier.name, _not_in_force(thresholds, now))
    others = [each for each in basis.tiers if each.pk != tier.pk]
    return replace(
        basis,
        tiers=tuple(sorted([*others, supposed], key=lambda each: each.pk)),
        tier_of=_tiers_now(basis.tier_of, assigned_tiers(subject.system_pk, now), tier.pk),
    )


def _tiers_now(
    tier_of: Mapping[int, int | None], assigned: Mapping[int | None, int | None], tier: int
) -> dict[int, int | None]:
    """The tier's tasks as they are now; the others where they were."""
    found: dict[int, int | None] = {}
    for task, was in tier_of.items():
        is_in = (assigned.get(task) or assigned.get(None)) == tier
        found[task] = tier if is_in else (None if was == tier else was)
    return found


def _not_in_force(thresholds: Thresholds, now: datetime) -> ThresholdSetInForce:
    return ThresholdSetInForce(
        number=0,
        digest=thresholds_digest(thresholds),
        by="",
        made_at=iso(now),
        in_force_from=iso(now),
        thresholds=thresholds,
    )
