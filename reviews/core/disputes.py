"""Which criteria of a decided trial are disputed, between whom, and whether that decides anything.

Verdicts disagree when one says pass and another one says fail or unknown. An error is no opinion. A
verdict is silent once its own grader corrected it or said more on more evidence, once it is of an
earlier version of the contract checks, and where the criterion asks something else by now. Nothing
here depends on the order in which verdicts arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from reviews.core.disposition import (
    Adjudication,
    AdjudicationRuling,
    GivenVerdict,
    Requirement,
    RequirementSource,
    Standing,
    StandingResult,
    adjudication_in_force,
    applies_to,
    corrected_ids,
    kept_values,
    standing_of,
)
from traces.core.records import CriterionClass, GraderKind, VerdictValue


class DisputeKind(StrEnum):
    """Between whom a criterion is disputed. The order is the one in which they are shown."""

    CODE_JUDGE = "code_judge"
    CODE_PERSON = "code_person"
    CODE_CODE = "code_code"
    JUDGE_PERSON = "judge_person"
    JUDGE_JUDGE = "judge_judge"
    PERSON_PERSON = "person_person"
    FLIP = "flip"  # one grader version says both


class NoEffect(StrEnum):
    """Why nothing that decides waits for an adjudication of a dispute."""

    CODE_DECIDES = "code_decides"  # rule 3 of docs/design.md section 6
    MARKED = "marked"  # rule 1: a mark, or a fixture at fault
    NO_CODE_VOTE = "no_code_vote"  # rule 2
    NOT_REQUIRED = "not_required"  # no mandatory requirement
    BROKEN = "broken"  # the harness broke: the trial is no evidence about the agent
    REPLACED = "replaced"  # a later attempt stands for the slot
    AGREED = "agreed"  # all that count say the same: it stands, unless an adjudication overrules it


@dataclass(frozen=True, slots=True)
class Side:
    """What one grader version says."""

    grader: str
    grader_version: str
    kind: GraderKind
    values: tuple[VerdictValue, ...]  # in the order of `VerdictValue`; two or more: a flip
    counts: bool  # it votes on the requirement
    is_imported: bool  # all that it says came in files
    n: int  # verdicts that speak

    @property
    def has_opinion(self) -> bool:
        """Whether it says anything but that it ended in an error."""
        return any(value is not VerdictValue.ERROR for value in self.values)


@dataclass(frozen=True, slots=True)
class FoundDispute:
    """One criterion of a trial whose verdicts disagree."""

    criterion: str
    criterion_class: CriterionClass
    criterion_digest: bytes | None
    rubric_version: str | None
    kinds: tuple[DisputeKind, ...]
    sides: tuple[Side, ...]  # code, judges, people; those that count first; by name
    is_counting: bool  # graders that count disagree among themselves
    no_effect: NoEffect | None  # None: an adjudication would settle a mandatory requirement
    ruling: AdjudicationRuling | None  # of the adjudication in force; None: it is open

    @property
    def decides(self) -> bool:
        """Whether a mandatory requirement waits for an adjudication, or was settled by one."""
        return self.no_effect is None


@dataclass(frozen=True, slots=True)
class JudgedTrial:
    """A decided trial, as far as disputes on it depend on it."""

    standings: Sequence[Standing]
    verdicts: Sequence[GivenVerdict]  # calibrated judges are marked as such
    adjudications: Sequence[Adjudication] = ()
    evidence_order: int = 0
    is_completed: bool = True
    stands: bool = True


_PASS, _FAIL, _UNKNOWN = VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN
_CONTRARY = frozenset({_FAIL, _UNKNOWN})
_KIND_ORDER = {kind: rank for rank, kind in enumerate(GraderKind)}
_CLASS_ORDER = tuple(CriterionClass)
_BETWEEN = {
    frozenset({GraderKind.CODE, GraderKind.MODEL}): DisputeKind.CODE_JUDGE,
    frozenset({GraderKind.CODE, GraderKind.HUMAN}): DisputeKind.CODE_PERSON,
    frozenset({GraderKind.CODE}): DisputeKind.CODE_CODE,
    frozenset({GraderKind.MODEL, GraderKind.HUMAN}): DisputeKind.JUDGE_PERSON,
    frozenset({GraderKind.MODEL}): DisputeKind.JUDGE_JUDGE,
    frozenset({GraderKind.HUMAN}): DisputeKind.PERSON_PERSON,
}
_BY_RULE = {1: NoEffect.MARKED, 2: NoEffect.NO_CODE_VOTE, 3: NoEffect.CODE_DECIDES}


def disputes_of(trial: JudgedTrial) -> tuple[FoundDispute, ...]:
    """The disputed criteria of a decided trial, by name."""
    contested = _contested(trial.verdicts)
    if not contested:
        return ()
    standings = {s.requirement.criterion: s for s in trial.standings}
    found = []
    for criterion in sorted(contested):
        given = [v for v in trial.verdicts if v.criterion == criterion]
        one = _dispute(criterion, given, standings.get(criterion), trial)
        if one is not None:
            found.append(one)
    return tuple(found)


def _contested(verdicts: Iterable[GivenVerdict]) -> set[str]:
    """The criteria on which somebody once said pass, and somebody fail or unknown."""
    passed: set[str] = set()
    contrary: set[str] = set()
    for verdict in verdicts:
        value = verdict.value
        if value is _PASS:
            passed.add(verdict.criterion)
        elif value in _CONTRARY:
            contrary.add(verdict.criterion)
    return passed & contrary


def speaks_on(verdict: GivenVerdict, requirement: Requirement) -> bool:
    """Whether a verdict says something on a criterion as it stands, counting or not.

    Beside those that vote these are the verdicts of files that name it. One that names another
    version of the rubric answers another question.
    """
    if applies_to(verdict, requirement):
        return True
    if verdict.criterion != requirement.criterion or verdict.contract is not None:
        return False
    asked, answered = requirement.rubric_version, verdict.rubric_version
    return verdict.is_imported and (asked is None or answered is None or asked == answered)


def sides_on(requirement: Requirement, verdicts: Iterable[GivenVerdict]) -> tuple[Side, ...]:
    """Who says what on a requirement: code, judges and people, those that count first."""
    speaking = [v for v in verdicts if speaks_on(v, requirement)]
    counting = [v for v in speaking if v.counts and applies_to(v, requirement)]
    ids = {v.id for v in counting}
    others = [v for v in speaking if v.id not in ids]
    sides = [*_sides(counting, counts=True), *_sides(others, counts=False)]
    return tuple(
        sorted(
            sides,
            key=lambda s: (_KIND_ORDER[s.kind], not s.counts, s.grader, s.grader_version),
        )
    )


def _sides(verdicts: list[GivenVerdict], *, counts: bool) -> list[Side]:
    silenced = corrected_ids(verdicts)
    by_grader: dict[tuple[str, str, GraderKind], list[GivenVerdict]] = {}
    for verdict in verdicts:
        if verdict.id not in silenced:
            key = (verdict.grader, verdict.grader_version, verdict.kind)
            by_grader.setdefault(key, []).append(verdict)
    return [
        Side(*key, values, counts, all(v.is_imported for v in cast), n)
        for key, cast in by_grader.items()
        for values, n in [_said(cast)]
    ]


def _said(cast: list[GivenVerdict]) -> tuple[tuple[VerdictValue, ...], int]:
    """The values that a grader version stands by, and how many of its verdicts have them."""
    kept = kept_values(cast)
    return tuple(v for v in VerdictValue if v in kept), sum(v.value in kept for v in cast)


def are_disputed(sides: Iterable[Side]) -> bool:
    """Whether one of them says pass and one of them fail or unknown."""
    said = {value for side in sides for value in side.values}
    return _PASS in said and not said.isdisjoint(_CONTRARY)


def _dispute(
    criterion: str, given: list[GivenVerdict], standing: Standing | None, trial: JudgedTrial
) -> FoundDispute | None:
    requirement = standing.requirement if standing else _unrequired(criterion, given)
    sides = sides_on(requirement, given)
    if not are_disputed(sides):
        return None
    held = adjudication_in_force(
        requirement, trial.adjudications, evidence_order=trial.evidence_order
    )
    return FoundDispute(
        criterion=criterion,
        criterion_class=requirement.criterion_class,
        criterion_digest=requirement.criterion_digest,
        rubric_version=requirement.rubric_version,
        kinds=_kinds(sides),
        sides=sides,
        is_counting=are_disputed(s for s in sides if s.counts),
        no_effect=_no_effect(requirement, given, trial)
        or _agreed(standing, is_held=held is not None),
        ruling=held.ruling if held else None,
    )


def _unrequired(criterion: str, given: Iterable[GivenVerdict]) -> Requirement:
    """What nothing requires, by its name. Code says its class, else the first that is given."""
    ranks = {(v.kind is not GraderKind.CODE, _CLASS_ORDER.index(v.criterion_class)) for v in given}
    return Requirement(
        criterion,
        _CLASS_ORDER[min(ranks)[1]],
        RequirementSource.IMPORTED,
        mandatory=False,
    )


def _kinds(sides: Sequence[Side]) -> tuple[DisputeKind, ...]:
    passed: dict[GraderKind, set[tuple[str, str]]] = {kind: set() for kind in GraderKind}
    contrary: dict[GraderKind, set[tuple[str, str]]] = {kind: set() for kind in GraderKind}
    for side in sides:
        who = (side.grader, side.grader_version)
        if _PASS in side.values:
            passed[side.kind].add(who)
        if not _CONTRARY.isdisjoint(side.values):
            contrary[side.kind].add(who)
    found = set()
    for one in GraderKind:
        for other in GraderKind:
            if not (passed[one] and contrary[other]):
                continue
            # Of one kind, it takes two graders.
            if one is not other or len(passed[one] | contrary[one]) > 1:
                found.add(_BETWEEN[frozenset({one, other})])
        if passed[one] & contrary[one]:
            found.add(DisputeKind.FLIP)
    return tuple(kind for kind in DisputeKind if kind in found)


def _no_effect(
    requirement: Requirement, given: Sequence[GivenVerdict], trial: JudgedTrial
) -> NoEffect | None:
    """Why an adjudication would change nothing that decides; None when it would."""
    if not requirement.mandatory:
        return NoEffect.NOT_REQUIRED
    if not trial.stands:
        return NoEffect.REPLACED
    if not trial.is_completed:
        return NoEffect.BROKEN
    as_pass = _if_adjudicated(AdjudicationRuling.PASS, requirement, given, trial)
    as_fail = _if_adjudicated(AdjudicationRuling.FAIL, requirement, given, trial)
    return None if as_pass.result is not as_fail.result else _BY_RULE[as_pass.rule]


def _agreed(standing: Standing | None, *, is_held: bool) -> NoEffect | None:
    """That nobody waits for a decision: the requirement is settled by those that count."""
    is_open = standing is None or standing.result is StandingResult.OPEN
    return None if is_open or is_held else NoEffect.AGREED


def _if_adjudicated(
    ruling: AdjudicationRuling,
    requirement: Requirement,
    given: Sequence[GivenVerdict],
    trial: JudgedTrial,
) -> Standing:
    alone = Adjudication(
        id="if",
        criterion=requirement.criterion,
        ruling=ruling,
        rubric_version=requirement.rubric_version,
        criterion_digest=requirement.criterion_digest,
        evidence_order=trial.evidence_order,
    )
    return standing_of(requirement, given, (alone,), evidence_order=trial.evidence_order)
