"""The evidence of a gate, tier by tier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reviews.core.gate.model import Baseline, RunOfRelease, TierEvidence
from reviews.selectors.gate_baseline import SignedRelease
from reviews.selectors.gate_basis import GateBasis, TierInForce
from reviews.selectors.gate_evidence import Collected, DecidedSlot
from reviews.selectors.manifest_rows import ReadCalibration, judges_that_decide


@dataclass(frozen=True, slots=True)
class BaselineEvidence:
    """The last signed release, with its slots as its own gate decides them."""

    signed: SignedRelease
    slots: tuple[DecidedSlot, ...]

    def of(self, task_ids: Mapping[int, int | None], tier: int | None) -> Baseline:
        """As a section of that tier compares with it."""
        return Baseline(
            release=self.signed.release,
            release_uuid=str(self.signed.release_uuid),
            sign_off=str(self.signed.sign_off),
            digest=self.signed.digest,
            slots=tuple(each.slot for each in self.slots if task_ids.get(each.task_pk) == tier),
        )


def tier_evidence(
    brought: Collected,
    basis: GateBasis,
    slots: Sequence[DecidedSlot],
    read: Iterable[ReadCalibration],
    baseline: BaselineEvidence | None,
) -> tuple[TierEvidence, ...]:
    """One section a tier with thresholds in force, and one for counted slots that are in none.

    Without any thresholds in force there is one section, with all slots and no tier.
    """
    by_tier: dict[int | None, list[DecidedSlot]] = {tier.pk: [] for tier in basis.tiers}
    for each in slots:
        by_tier.setdefault(basis.tier_of.get(each.task_pk), []).append(each)
    known: dict[int | None, TierInForce] = {tier.pk: tier for tier in basis.tiers}
    runs = tuple(run.shown for run in brought.subject.runs if run.is_of_tests)
    readings = tuple(read)
    found: list[TierEvidence] = []
    for pk, members in by_tier.items():
        if pk is None and basis.tiers and not any(each.slot.is_counted for each in members):
            continue
        found.append(_section(known.get(pk), pk, members, runs, readings, basis, baseline))
    if not found:
        found.append(_section(None, None, (), runs, readings, basis, baseline))
    return tuple(found)


def _section(
    tier: TierInForce | None,
    pk: int | None,
    members: Sequence[DecidedSlot],
    runs: tuple[RunOfRelease, ...],
    readings: Sequence[ReadCalibration],
    basis: GateBasis,
    baseline: BaselineEvidence | None,
) -> TierEvidence:
    return TierEvidence(
        tier=tier.name if tier else "",
        tier_uuid=str(tier.uuid) if tier else "",
        threshold_set=tier.thresholds if tier else None,
        slots=tuple(each.slot for each in members),
        runs=runs,
        judges=judges_that_decide(readings, members),
        baseline=baseline.of(basis.tier_of, pk) if baseline else None,
        n_by_party=sum(each.is_by_party for each in members if each.slot.is_counted),
    )
