"""Which verdicts and adjudications decide a trial: what an evidence manifest names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reviews.core.disposition import (
    Adjudication,
    Decision,
    GivenVerdict,
    Requirement,
    adjudication_in_force,
    applies_to,
    corrected_ids,
    kept_values,
    standing_of,
)


@dataclass(frozen=True, slots=True)
class Deciding:
    """What decides one mandatory requirement of a trial."""

    requirement: Requirement
    votes: tuple[GivenVerdict, ...]
    adjudication: Adjudication | None


def deciding_of(
    decision: Decision,
    verdicts: Sequence[GivenVerdict],
    adjudications: Sequence[Adjudication] = (),
    *,
    evidence_order: int = 0,
) -> tuple[Deciding, ...]:
    """What decides each mandatory requirement of a decided trial, in the order of the requirements.

    `verdicts` are those that the decision was made of, calibrated judges marked as such.
    """
    by_criterion: dict[str, list[GivenVerdict]] = {}
    for verdict in verdicts:
        by_criterion.setdefault(verdict.criterion, []).append(verdict)
    found: list[Deciding] = []
    for standing in decision.standings:
        requirement = standing.requirement
        if not requirement.mandatory:
            continue
        given = by_criterion.get(requirement.criterion, [])
        head = None
        if adjudications:
            plain = standing_of(requirement, given, (), evidence_order=evidence_order)
            if plain.ruling != standing.ruling:
                head = adjudication_in_force(
                    requirement, adjudications, evidence_order=evidence_order
                )
        found.append(Deciding(requirement, voting_on(requirement, given), head))
    return tuple(found)


def voting_on(
    requirement: Requirement, verdicts: Sequence[GivenVerdict]
) -> tuple[GivenVerdict, ...]:
    """The verdicts that vote on a requirement, in the order given.

    Of several alike of one grader version the first: the same verdict again is one vote.
    """
    counting = [v for v in verdicts if v.counts and applies_to(v, requirement)]
    if len(counting) < 2:
        return tuple(counting)
    silenced = corrected_ids(counting)
    by_grader: dict[tuple[str, str, str], list[GivenVerdict]] = {}
    for verdict in counting:
        if verdict.id not in silenced:
            key = (verdict.grader, verdict.grader_version, verdict.kind)
            by_grader.setdefault(key, []).append(verdict)
    kept: set[str] = set()
    for cast in by_grader.values():
        first = {v.value: v.id for v in reversed(cast)}
        kept.update(first[value] for value in kept_values(cast))
    return tuple(v for v in counting if v.id in kept)
