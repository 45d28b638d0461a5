"""What the verdicts on a trial add up to: votes, standings and the disposition.

This is docs/design.md section 6 as pure functions. Nothing here depends on the order in which verdicts
arrive, nothing but a pass of every requirement is a pass, and what is missing, unreadable or in
error never helps a trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

from traces.core.records import (
    CriterionClass,
    Disposition,
    GraderKind,
    TrialStatus,
    VerdictValue,
)

DISPOSITION_VERSION = 4
"""Stored beside every disposition. It goes up whenever the same verdicts may come out otherwise."""


class StandingResult(StrEnum):
    """What a requirement comes to."""

    PASS = "pass"
    FAIL = "fail"
    OPEN = "open"


class Worker(StrEnum):
    """The role that works a next action."""

    ENGINEER = "engineer"
    REVIEWER = "reviewer"


class NextAction(StrEnum):
    """What would settle an open requirement. The order is the one in which they are shown."""

    REPAIR_EVIDENCE = "repair_evidence"
    FIX_FIXTURE = "fix_fixture"
    CLARIFY_CONTRACT = "clarify_contract"
    RERUN_JUDGE = "rerun_judge"
    RERUN_TRIAL = "rerun_trial"
    GRADE = "grade"
    ADJUDICATE = "adjudicate"
    CALIBRATE_JUDGE = "calibrate_judge"

    @property
    def worked_by(self) -> Worker:
        """The role whose queue this action stands in."""
        match self:
            case NextAction.GRADE | NextAction.ADJUDICATE | NextAction.CALIBRATE_JUDGE:
                return Worker.REVIEWER
            case _:
                return Worker.ENGINEER


class RequirementSource(StrEnum):
    """Where a requirement comes from."""

    CHECK = "check"  # outcome, required, prohibited or budget of the contract
    RUBRIC = "rubric"
    EXTERNAL = "external"
    IMPORTED = "imported"  # a criterion of uploaded verdicts, where there is no contract


class Mark(StrEnum):
    """What a reviewer who wrote neither says of a check, a fixture or a rubric."""

    DEFECTIVE = "defective"
    AMBIGUOUS = "ambiguous"


class AdjudicationRuling(StrEnum):
    """What a reviewer decided about a dispute."""

    PASS = "pass"
    FAIL = "fail"
    INSUFFICIENT_EVIDENCE = "insufficient_evidence"
    RUBRIC_UNCLEAR = "rubric_unclear"


@dataclass(frozen=True, slots=True)
class GivenVerdict:
    """One stored verdict with the facts that say whether, and under what, it counts."""

    id: str  # unique inside the trial
    grader: str
    grader_version: str
    kind: GraderKind
    criterion: str
    value: VerdictValue
    criterion_class: CriterionClass = CriterionClass.SEMANTIC
    mandatory: bool = True
    is_imported: bool = True  # came in a file; False: given in the product, people signed in
    is_calibrated: bool = False  # judges only: calibrated for the criterion at the stated instant
    is_vouched: bool = False  # imported human verdicts only: a reviewer vouched for it
    is_blind_label: bool = False  # given without sight of other verdicts: never corrected
    contract: str | None = None  # contract version that it was given under
    criterion_digest: bytes | None = None
    evidence_order: int = 0  # how much evidence it saw; evidence of a trial only grows
    rubric_version: str | None = None  # that it names itself; None: it names none
    is_outdated: bool = False  # of an earlier version of the contract checks: votes no more
    corrects: str | None = None  # id of the same person's earlier verdict
    raw_word: str = ""
    score: Decimal | None = None
    cited_steps: tuple[int, ...] = ()
    given_at: datetime | None = None  # None: nobody asks when

    @property
    def counts(self) -> bool:
        """Whether its grader counts: code, signed-in people, calibrated judges."""
        kind = self.kind
        if kind is GraderKind.CODE:
            return True
        if kind is GraderKind.MODEL:
            return self.is_calibrated
        return not self.is_imported or self.is_vouched


@dataclass(frozen=True, slots=True)
class RequiredGrader:
    """A grader that the contract names: without its vote the requirement stays open."""

    name: str
    kind: GraderKind


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that must hold for a trial to pass, or, not mandatory, that is only reported."""

    criterion: str
    criterion_class: CriterionClass
    source: RequirementSource
    mandatory: bool = True
    is_prohibition: bool = False  # its fail is a violation, which even a broken trial keeps
    graders: tuple[RequiredGrader, ...] = ()
    marks: tuple[Mark, ...] = ()
    has_faulty_fixture: bool = False  # the trial did not start as it should
    contract: str | None = None  # contract version
    criterion_digest: bytes | None = None
    rubric_version: str | None = None

    @property
    def takes_files(self) -> bool:
        """Whether verdicts that came in a file apply to it by its name, whatever its version."""
        return self.source in (RequirementSource.RUBRIC, RequirementSource.EXTERNAL)


@dataclass(frozen=True, slots=True)
class Adjudication:
    """A reviewer's decision on a dispute. Those of one requirement form a chain."""

    id: str
    criterion: str
    ruling: AdjudicationRuling
    rubric_version: str | None = None
    criterion_digest: bytes | None = None
    evidence_order: int = 0  # how much evidence there was when it was decided
    replaces: str | None = None  # id of the adjudication before it
    is_by_party: bool = False  # decided by somebody with a verdict of their own on it


@dataclass(frozen=True, slots=True)
class Vote:
    """What one grader version says on a requirement. Two values or more: it changed its mind."""

    grader: str
    grader_version: str
    kind: GraderKind
    values: frozenset[VerdictValue]

    @property
    def is_flip(self) -> bool:
        """Whether one grader version gave both pass and fail. It counts as both."""
        return VerdictValue.PASS in self.values and VerdictValue.FAIL in self.values


@dataclass(frozen=True, slots=True)
class Ruling:
    """A rule of section 6 and its explanation, as one object."""

    rule: int  # 1 to 7
    result: StandingResult
    action: NextAction | None  # None unless open
    sentence: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What one requirement comes to, and by which rule."""

    requirement: Requirement
    ruling: Ruling

    @property
    def result(self) -> StandingResult:
        """Pass, fail or open."""
        return self.ruling.result

    @property
    def action(self) -> NextAction | None:
        """What would settle it; None when it is settled."""
        return self.ruling.action

    @property
    def rule(self) -> int:
        """The number of the first rule that applied, 1 to 7."""
        return self.ruling.rule

    @property
    def sentence(self) -> str:
        """Why, for people."""
        return self.ruling.sentence


@dataclass(frozen=True, slots=True)
class TrialFacts:
    """What a disposition must know of the trial itself."""

    status: TrialStatus = TrialStatus.COMPLETED
    missing_evidence: tuple[str, ...] = ()  # declared by the contract, not recorded
    evidence_order: int = 0  # how much evidence there is now


@dataclass(frozen=True, slots=True)
class Decision:
    """The disposition of a trial, why, and what would settle it when it is not decided."""

    disposition: Disposition
    failed_classes: tuple[CriterionClass, ...]  # in the order of `CriterionClass`
    actions: tuple[NextAction, ...]  # in the order of `NextAction`; the first one is shown
    standings: tuple[Standing, ...]  # one a requirement, in the order given
    sentence: str

    @property
    def next_action(self) -> NextAction | None:
        """The action that is shown; None when there is nothing left to do."""
        return self.actions[0] if self.actions else None


def _passed(rule: int, sentence: str) -> Ruling:
    return Ruling(rule, StandingResult.PASS, None, sentence)


def _failed(rule: int, sentence: str) -> Ruling:
    return Ruling(rule, StandingResult.FAIL, None, sentence)


def _open(rule: int, action: NextAction, sentence: str) -> Ruling:
    return Ruling(rule, StandingResult.OPEN, action, sentence)


_DEFECTIVE = _open(
    1, NextAction.FIX_FIXTURE, "A reviewer marked its check, fixture or rubric as defective."
)
_AMBIGUOUS = _open(
    1, NextAction.CLARIFY_CONTRACT, "A reviewer marked its check, fixture or rubric as ambiguous."
)
_FAULTY_FIXTURE = _open(
    1,
    NextAction.FIX_FIXTURE,
    "The trial did not start as its task says, or not as the task's other trials did.",
)
_NO_CODE_VOTE = _open(
    2, NextAction.REPAIR_EVIDENCE, "A code verdict that it requires has not been given."
)
_CODE_FAIL = _failed(3, "A code grader says fail.")
_CODE_UNKNOWN = _open(
    3, NextAction.REPAIR_EVIDENCE, "A code grader cannot tell on the evidence it has."
)
_CODE_ERROR = _open(3, NextAction.CLARIFY_CONTRACT, "A code grader ended in an error.")
_CODE_PASS = _passed(3, "Code says pass, and no grader that counts says otherwise.")
_CODE_PASS_NOT_ALL = _open(
    3, NextAction.GRADE, "Code says pass, but not every grader that counts or is named does."
)
_CODE_PASS_DISPUTED = _open(
    3, NextAction.ADJUDICATE, "Code says pass and another grader that counts says fail."
)
_UNSETTLED_CHAIN = "Its adjudications do not form one chain, so none of them decides."
_ADJUDICATED_PASS = "A reviewer adjudicated it as a pass."
_ADJUDICATED_FAIL = "A reviewer adjudicated it as a fail."
_ADJUDICATED_EVIDENCE = "A reviewer found the evidence insufficient, and none was added since."
_ADJUDICATED_UNCLEAR = "A reviewer found the rubric or criterion unclear."
_DISAGREE = _open(5, NextAction.ADJUDICATE, "Graders that count say pass and fail.")
_UNSURE = _open(5, NextAction.ADJUDICATE, "Graders that count say pass and unknown.")
_VOTED_FAIL = _failed(5, "A grader that counts says fail, and none says pass.")
_JUDGE_ERROR = _open(5, NextAction.RERUN_JUDGE, "A grader that counts ended in an error.")
_ONLY_UNKNOWN = _open(
    5, NextAction.REPAIR_EVIDENCE, "The graders that count cannot tell on the evidence they have."
)
_UNCALIBRATED = _open(
    6, NextAction.CALIBRATE_JUDGE, "Only judges that are not calibrated for it gave a verdict."
)
_UNGRADED = _open(6, NextAction.GRADE, "No grader that counts has given a verdict.")
_ALL_PASS = _passed(7, "Every grader that counts says pass.")
_NAMED_MISSING = _open(7, NextAction.GRADE, "A grader that the contract names has not voted.")

_CHAIN_BROKEN_RULINGS = {
    rule: _open(rule, NextAction.ADJUDICATE, _UNSETTLED_CHAIN) for rule in (3, 4)
}
_ADJUDICATED = {
    (rule, says): ruling
    for rule in (3, 4)
    for says, ruling in (
        (AdjudicationRuling.PASS, _passed(rule, _ADJUDICATED_PASS)),
        (AdjudicationRuling.FAIL, _failed(rule, _ADJUDICATED_FAIL)),
        (
            AdjudicationRuling.INSUFFICIENT_EVIDENCE,
            _open(rule, NextAction.REPAIR_EVIDENCE, _ADJUDICATED_EVIDENCE),
        ),
        (
            AdjudicationRuling.RUBRIC_UNCLEAR,
            _open(rule, NextAction.CLARIFY_CONTRACT, _ADJUDICATED_UNCLEAR),
        ),
    )
}

_ACTION_ORDER = tuple(NextAction)
_CLASS_ORDER = tuple(CriterionClass)
_CLASS_RANK = {c: rank for rank, c in enumerate(_CLASS_ORDER)}
_DECIDED = frozenset({VerdictValue.PASS, VerdictValue.FAIL})
_NOBODY: frozenset[str] = frozenset()


def requirements_without_contract(verdicts: Iterable[GivenVerdict]) -> tuple[Requirement, ...]:
    """The requirements of a trial whose task has no contract, ordered by criterion.

    Every imported criterion is one unless all its verdicts say that it is not mandatory: a verdict
    that says so cannot take a requirement away from another that does not. Its class is the one
    that code gives it, else the first that any verdict gives it in the order of `CriterionClass`.
    """
    imported = [v for v in verdicts if v.is_imported]
    ranks: dict[str, int] = {}
    for verdict in imported:
        rank = _CLASS_RANK[verdict.criterion_class]
        if verdict.kind is not GraderKind.CODE:
            rank += len(_CLASS_ORDER)
        if rank < ranks.get(verdict.criterion, 2 * len(_CLASS_ORDER)):
            ranks[verdict.criterion] = rank
    return tuple(
        [
            _imported_requirement(criterion, _CLASS_ORDER[ranks[criterion] % len(_CLASS_ORDER)])
            for criterion in sorted({v.criterion for v in imported if v.mandatory})
        ]
    )


@lru_cache(maxsize=4096)
def _imported_requirement(criterion: str, criterion_class: CriterionClass) -> Requirement:
    return Requirement(criterion, criterion_class, RequirementSource.IMPORTED)


def votes_on(requirement: Requirement, verdicts: Iterable[GivenVerdict]) -> tuple[Vote, ...]:
    """The votes of counting graders on a requirement, one a grader version, ordered by grader."""
    relevant = [v for v in verdicts if applies_to(v, requirement)]
    return tuple(
        Vote(*key, frozenset(kept_values(cast)))
        for key, cast in sorted(_cast_by_grader(relevant).items())
    )


def standing_of(
    requirement: Requirement,
    verdicts: Iterable[GivenVerdict],
    adjudications: Sequence[Adjudication] = (),
    *,
    evidence_order: int = 0,
) -> Standing:
    """What a requirement comes to: the first of the seven rules that applies.

    `verdicts` and `adjudications` may be those of the whole trial; what is about another criterion
    or another version is left aside. `evidence_order` is how much evidence the trial has now.
    """
    return Standing(
        requirement, _ruling_on(requirement, list(verdicts), adjudications, evidence_order)
    )


def disposition_of(
    facts: TrialFacts,
    requirements: Sequence[Requirement],
    verdicts: Iterable[GivenVerdict],
    adjudications: Sequence[Adjudication] = (),
) -> Decision:
    """What a trial comes to. Requirements that are not mandatory get a standing and decide nothing.

    A trial that fails lists every class that failed; of a trial whose harness broke only the
    violations stand, all else is void.
    """
    by_criterion: dict[str, list[GivenVerdict]] = {}
    for verdict in verdicts:
        by_criterion.setdefault(verdict.criterion, []).append(verdict)
    standings = tuple(
        [
            Standing(
                requirement,
                _ruling_on(
                    requirement,
                    by_criterion.get(requirement.criterion, []),
                    adjudications,
                    facts.evidence_order,
                ),
            )
            for requirement in requirements
        ]
    )
    return _decide(facts, standings)


def disputed_criteria(verdicts: Iterable[GivenVerdict]) -> tuple[str, ...]:
    """The criteria on which verdicts disagree, whether or not they count, in order of name.

    They disagree when one says pass and another says fail or unknown. An error is no opinion, and a
    verdict that its own grader corrected has lost its voice.
    """
    given = list(verdicts)
    silenced = corrected_ids(given)
    values: dict[str, set[VerdictValue]] = {}
    for verdict in given:
        if verdict.id not in silenced:
            values.setdefault(verdict.criterion, set()).add(verdict.value)
    return tuple(
        sorted(
            criterion
            for criterion, said in values.items()
            if VerdictValue.PASS in said
            and (VerdictValue.FAIL in said or VerdictValue.UNKNOWN in said)
        )
    )


def _decide(facts: TrialFacts, standings: tuple[Standing, ...]) -> Decision:
    deciding = [s for s in standings if s.requirement.mandatory]
    failed = [s for s in deciding if s.ruling.result is StandingResult.FAIL]
    violations = [s for s in failed if s.requirement.is_prohibition]
    is_broken = facts.status is TrialStatus.ERROR
    if violations and is_broken:
        sentence = "A violation was observed before the harness broke."
        return Decision(Disposition.FAIL, _classes(violations), (), standings, sentence)
    if is_broken:
        return Decision(
            Disposition.HARNESS_ERROR,
            (),
            (NextAction.RERUN_TRIAL,),
            standings,
            "The harness broke: the trial is no evidence about the agent.",
        )
    if failed:
        return Decision(
            Disposition.FAIL, _classes(failed), (), standings, "A requirement of it failed."
        )
    actions = _open_actions(facts, deciding)
    if actions:
        sentence = "A requirement of it is open." if deciding else "Nothing is required of it."
        return Decision(Disposition.UNRESOLVED, (), actions, standings, sentence)
    return Decision(Disposition.PASS, (), (), standings, "Every requirement passes.")


def _open_actions(facts: TrialFacts, deciding: list[Standing]) -> tuple[NextAction, ...]:
    actions = {s.ruling.action for s in deciding if s.ruling.action is not None}
    if facts.missing_evidence:
        actions.add(NextAction.REPAIR_EVIDENCE)
    if not deciding:
        actions.add(NextAction.CLARIFY_CONTRACT)
    if len(actions) < 2:
        return tuple(actions)
    return tuple([action for action in _ACTION_ORDER if action in actions])


def _classes(standings: list[Standing]) -> tuple[CriterionClass, ...]:
    failed = {s.requirement.criterion_class for s in standings}
    return tuple([c for c in _CLASS_ORDER if c in failed])


def _ruling_on(
    requirement: Requirement,
    verdicts: list[GivenVerdict],
    adjudications: Sequence[Adjudication],
    evidence_order: int,
) -> Ruling:
    if Mark.DEFECTIVE in requirement.marks:
        return _DEFECTIVE
    if requirement.has_faulty_fixture:
        return _FAULTY_FIXTURE
    if requirement.marks:
        return _AMBIGUOUS
    relevant = [v for v in verdicts if applies_to(v, requirement)]
    by_grader = _cast_by_grader(relevant)
    code: set[VerdictValue] = set()
    other: set[VerdictValue] = set()
    for key, cast in by_grader.items():
        (code if key[2] is GraderKind.CODE else other).update(kept_values(cast))
    if _lacks_code_vote(requirement, by_grader):
        return _NO_CODE_VOTE
    has_named = _named_have_voted(requirement, by_grader)
    if code:
        return (
            _by_code(code, other, has_named=has_named)
            or _by_adjudication(requirement, adjudications, evidence_order, rule=3)
            or _CODE_PASS_DISPUTED
        )
    if adjudications:
        adjudicated = _by_adjudication(requirement, adjudications, evidence_order, rule=4)
        if adjudicated is not None:
            return adjudicated
    if not other:
        is_model = any(v.kind is GraderKind.MODEL for v in relevant)
        return _UNCALIBRATED if is_model else _UNGRADED
    return _by_votes(other, has_named=has_named)


def applies_to(verdict: GivenVerdict, requirement: Requirement) -> bool:
    """Whether a verdict was given under the version of the criterion that the requirement has."""
    if verdict.criterion != requirement.criterion or verdict.is_outdated:
        return False
    if verdict.contract == requirement.contract:
        return True
    if verdict.is_imported and verdict.contract is None and requirement.takes_files:
        # docs/decisions/0010: by its name, and in the version of the rubric that both name.
        asked, answered = requirement.rubric_version, verdict.rubric_version
        return asked is None or answered is None or asked == answered
    digest = requirement.criterion_digest
    return digest is not None and digest == verdict.criterion_digest


_GraderKey = tuple[str, str, GraderKind]


def _cast_by_grader(relevant: list[GivenVerdict]) -> dict[_GraderKey, list[GivenVerdict]]:
    """The verdicts that vote, by grader version."""
    counting = [v for v in relevant if v.counts]
    if len(counting) == 1:
        only = counting[0]
        return {(only.grader, only.grader_version, only.kind): counting}
    silenced = corrected_ids(counting)
    by_grader: dict[_GraderKey, list[GivenVerdict]] = {}
    for verdict in counting:
        if verdict.id not in silenced:
            key = (verdict.grader, verdict.grader_version, verdict.kind)
            by_grader.setdefault(key, []).append(verdict)
    return by_grader


def corrected_ids(verdicts: list[GivenVerdict]) -> frozenset[str]:
    """Ids of verdicts that the same person corrected by one of `verdicts`."""
    if not any(v.corrects for v in verdicts):
        return _NOBODY
    by_id = {v.id: v for v in verdicts}
    return frozenset(
        earlier.id
        for later in verdicts
        if later.corrects is not None
        and later.kind is GraderKind.HUMAN
        and (earlier := by_id.get(later.corrects)) is not None
        and earlier.id != later.id
        and earlier.kind is GraderKind.HUMAN
        and earlier.grader == later.grader
        and earlier.criterion == later.criterion
        and not earlier.is_blind_label
    )


def kept_values(cast: list[GivenVerdict]) -> set[VerdictValue]:
    """The values of one grader version, less those that gave way to another of its own.

    An error gives way to any other verdict, an unknown to a pass or fail given on more evidence.
    Pass and fail never give way.
    """
    if len(cast) == 1:
        return {cast[0].value}
    values = {v.value for v in cast}
    if len(values) == 1:
        return values
    values.discard(VerdictValue.ERROR)
    if VerdictValue.UNKNOWN in values and len(values) > 1:
        seen = max(v.evidence_order for v in cast if v.value is VerdictValue.UNKNOWN)
        decided = [v.evidence_order for v in cast if v.value in _DECIDED]
        if max(decided) > seen:
            values.discard(VerdictValue.UNKNOWN)
    return values


def _lacks_code_vote(
    requirement: Requirement, by_grader: dict[_GraderKey, list[GivenVerdict]]
) -> bool:
    """Whether a check or an external criterion lacks a code vote that it requires.

    A check requires one. An external criterion requires one, or those that the contract names.
    """
    source = requirement.source
    if source is RequirementSource.IMPORTED or source is RequirementSource.RUBRIC:
        return False
    voted = {grader for grader, _, kind in by_grader if kind is GraderKind.CODE}
    if source is RequirementSource.CHECK or not requirement.graders:
        return not voted
    return any(g.kind is GraderKind.CODE and g.name not in voted for g in requirement.graders)


def _named_have_voted(
    requirement: Requirement, by_grader: dict[_GraderKey, list[GivenVerdict]]
) -> bool:
    if not requirement.graders:
        return True
    voted = {(grader, kind) for grader, _, kind in by_grader}
    return all((g.name, g.kind) in voted for g in requirement.graders)


def _by_code(
    code: set[VerdictValue], other: set[VerdictValue], *, has_named: bool
) -> Ruling | None:
    """Rule 3. None when code passes and a counting grader says fail: adjudications decide then."""
    if VerdictValue.FAIL in code:
        return _CODE_FAIL
    if VerdictValue.UNKNOWN in code:
        return _CODE_UNKNOWN
    if VerdictValue.ERROR in code:
        return _CODE_ERROR
    if VerdictValue.FAIL in other:
        return None
    is_all_pass = not other or other == {VerdictValue.PASS}
    return _CODE_PASS if is_all_pass and has_named else _CODE_PASS_NOT_ALL


def _by_votes(values: set[VerdictValue], *, has_named: bool) -> Ruling:
    """Rules 5 and 7, for at least one counting vote of people or judges."""
    if VerdictValue.PASS in values and VerdictValue.FAIL in values:
        return _DISAGREE
    if VerdictValue.PASS in values and VerdictValue.UNKNOWN in values:
        return _UNSURE
    if VerdictValue.FAIL in values:
        return _VOTED_FAIL
    if VerdictValue.ERROR in values:
        return _JUDGE_ERROR
    if VerdictValue.UNKNOWN in values:
        return _ONLY_UNKNOWN
    return _ALL_PASS if has_named else _NAMED_MISSING


def _by_adjudication(
    requirement: Requirement,
    adjudications: Sequence[Adjudication],
    evidence_order: int,
    *,
    rule: int,
) -> Ruling | None:
    """What the head of the requirement's chain says; None when no adjudication is in force."""
    if not chain_on(requirement, adjudications):
        return None
    heads = heads_on(requirement, adjudications)
    if len(heads) != 1:
        return _CHAIN_BROKEN_RULINGS[rule]
    return None if _is_outrun(heads[0], evidence_order) else _ADJUDICATED[rule, heads[0].ruling]


def adjudication_in_force(
    requirement: Requirement, adjudications: Sequence[Adjudication], *, evidence_order: int = 0
) -> Adjudication | None:
    """The head of the requirement's chain of adjudications.

    None without one, where they form no chain, and where it found the evidence insufficient and
    there is more by now.
    """
    heads = heads_on(requirement, adjudications)
    return None if len(heads) != 1 or _is_outrun(heads[0], evidence_order) else heads[0]


def chain_on(
    requirement: Requirement, adjudications: Iterable[Adjudication]
) -> tuple[Adjudication, ...]:
    """The adjudications that decide a requirement, in the order given.

    Those under its own criterion digest; where there is none, those under its rubric version: what
    was decided on the very question stands before what was decided on another wording of it.
    """
    about = [a for a in adjudications if is_about(a, requirement)]
    digest = requirement.criterion_digest
    own = [a for a in about if digest is not None and a.criterion_digest == digest]
    return tuple(own or about)


def heads_on(
    requirement: Requirement, adjudications: Iterable[Adjudication]
) -> tuple[Adjudication, ...]:
    """Those of a requirement's chain that no other one of it replaces, in the order given.

    One replaces another also by way of decisions on other wordings of the criterion. Several heads,
    or none of a ring, are no chain.
    """
    known = {a.id: a for a in adjudications}
    chain = chain_on(requirement, known.values())
    replaced: set[str] = set()
    for one in chain:
        earlier = one.replaces
        while earlier is not None and earlier not in replaced:
            replaced.add(earlier)
            earlier = known[earlier].replaces if earlier in known else None
    return tuple(a for a in chain if a.id not in replaced)


def last_after(adjudication: Adjudication, adjudications: Iterable[Adjudication]) -> Adjudication:
    """The last of the decisions that follow one another after it; a further one replaces that."""
    followers = {a.replaces: a for a in adjudications if a.id != adjudication.id}
    last = adjudication
    while (follower := followers.pop(last.id, None)) is not None:
        last = follower
    return last


def _is_outrun(head: Adjudication, evidence_order: int) -> bool:
    """Whether it found the evidence insufficient, and there is more by now."""
    return (
        head.ruling is AdjudicationRuling.INSUFFICIENT_EVIDENCE
        and evidence_order > head.evidence_order
    )


def is_about(adjudication: Adjudication, requirement: Requirement) -> bool:
    """Whether it was decided under the requirement's rubric version or criterion digest."""
    if adjudication.criterion != requirement.criterion:
        return False
    rubric, digest = requirement.rubric_version, requirement.criterion_digest
    if rubric is None and digest is None:
        return adjudication.rubric_version is None and adjudication.criterion_digest is None
    return (rubric is not None and rubric == adjudication.rubric_version) or (
        digest is not None and digest == adjudication.criterion_digest
    )
