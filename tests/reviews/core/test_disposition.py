"""Section 6 of the design as a truth table, and the properties that no table can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.core.disposition import (
    Adjudication,
    AdjudicationRuling,
    Decision,
    GivenVerdict,
    Mark,
    NextAction,
    RequiredGrader,
    Requirement,
    RequirementSource,
    StandingResult,
    TrialFacts,
    Vote,
    Worker,
    disposition_of,
    disputed_criteria,
    last_after,
    requirements_without_contract,
    standing_of,
    votes_on,
)
from traces.core.records import (
    CriterionClass,
    Disposition,
    GraderKind,
    TrialStatus,
    VerdictValue,
)

PASS, FAIL, UNKNOWN, ERROR = VerdictValue
CODE, MODEL, HUMAN = GraderKind
OUTCOME, CONSTRAINT, SEMANTIC = CriterionClass
COMPLETED = TrialFacts()
BROKEN = TrialFacts(TrialStatus.ERROR)
CONTRACT = "contract-1"

_ids = count(1)


def code(value: VerdictValue, criterion: str = "c", **facts: object) -> GivenVerdict:
    return _verdict("checker", CODE, value, criterion, facts)


def judge(value: VerdictValue, criterion: str = "c", **facts: object) -> GivenVerdict:
    """A judge that is calibrated for the criterion, unless it is said otherwise."""
    return _verdict("judge", MODEL, value, criterion, {"is_calibrated": True, **facts})


def person(value: VerdictValue, criterion: str = "c", **facts: object) -> GivenVerdict:
    """A signed-in person, unless it is said otherwise."""
    return _verdict("ann", HUMAN, value, criterion, {"is_imported": False, **facts})


def from_file(value: VerdictValue, **facts: object) -> GivenVerdict:
    """A calibrated judge's verdict that came in a file."""
    return judge(value, **{"contract": None, **facts})


def _verdict(
    grader: str, kind: GraderKind, value: VerdictValue, criterion: str, facts: dict[str, object]
) -> GivenVerdict:
    given_facts = {
        "id": f"v{next(_ids)}",
        "grader": grader,
        "grader_version": "1",
        "contract": CONTRACT,
        **facts,
    }
    return GivenVerdict(kind=kind, value=value, criterion=criterion, **given_facts)  # type: ignore[arg-type]


def rubric(criterion: str = "c", **facts: object) -> Requirement:
    return _requirement(criterion, SEMANTIC, RequirementSource.RUBRIC, facts)


def check(
    criterion: str = "c", criterion_class: CriterionClass = OUTCOME, **facts: object
) -> Requirement:
    return _requirement(criterion, criterion_class, RequirementSource.CHECK, facts)


def external(criterion: str = "c", **facts: object) -> Requirement:
    return _requirement(criterion, OUTCOME, RequirementSource.EXTERNAL, facts)


def prohibition(criterion: str = "c", **facts: object) -> Requirement:
    return check(criterion, CONSTRAINT, is_prohibition=True, **facts)


def _requirement(
    criterion: str,
    criterion_class: CriterionClass,
    source: RequirementSource,
    facts: dict[str, object],
) -> Requirement:
    return Requirement(criterion, criterion_class, source, **{"contract": CONTRACT, **facts})  # type: ignore[arg-type]


def ruled(ruling: AdjudicationRuling, **facts: object) -> Adjudication:
    return Adjudication(**{"id": "a1", "criterion": "c", "ruling": ruling, **facts})  # type: ignore[arg-type]


def outcome_of(decision: Decision) -> tuple[object, ...]:
    return (decision.disposition, decision.failed_classes, decision.actions)


RESULT_OF_ACTION: dict[object, StandingResult] = {
    PASS: StandingResult.PASS,
    FAIL: StandingResult.FAIL,
}

TWO_JUDGES = (RequiredGrader("judge", MODEL), RequiredGrader("judge-2", MODEL))
A_PANEL = external(graders=(RequiredGrader("tau2", CODE), RequiredGrader("ann", HUMAN)))


@pytest.mark.parametrize(
    ("requirement", "verdicts", "rule", "comes_to"),
    [
        # rule 1: marks come first, whatever the verdicts say
        (check(marks=(Mark.DEFECTIVE,)), [code(PASS)], 1, NextAction.FIX_FIXTURE),
        (check(marks=(Mark.DEFECTIVE,)), [code(FAIL)], 1, NextAction.FIX_FIXTURE),
        (rubric(marks=(Mark.AMBIGUOUS,)), [person(PASS)], 1, NextAction.CLARIFY_CONTRACT),
        (check(marks=(Mark.AMBIGUOUS, Mark.DEFECTIVE)), [], 1, NextAction.FIX_FIXTURE),
        (check(has_faulty_fixture=True), [code(PASS)], 1, NextAction.FIX_FIXTURE),
        (
            check(has_faulty_fixture=True, marks=(Mark.AMBIGUOUS,)),
            [code(FAIL)],
            1,
            NextAction.FIX_FIXTURE,
        ),
        # rule 2: a required code vote is missing
        (check(), [], 2, NextAction.REPAIR_EVIDENCE),
        (check(), [person(PASS), judge(PASS)], 2, NextAction.REPAIR_EVIDENCE),
        (check(), [code(PASS, contract="contract-0")], 2, NextAction.REPAIR_EVIDENCE),
        (check(), [code(PASS, contract=None)], 2, NextAction.REPAIR_EVIDENCE),
        (check(), [code(PASS, is_outdated=True)], 2, NextAction.REPAIR_EVIDENCE),
        (check(), [code(FAIL, is_outdated=True), code(PASS, grader_version="2")], 3, PASS),
        (external(), [person(FAIL)], 2, NextAction.REPAIR_EVIDENCE),
        (external(), [code(PASS, contract=None, is_imported=False)], 2, NextAction.REPAIR_EVIDENCE),
        (A_PANEL, [code(PASS), person(PASS)], 2, NextAction.REPAIR_EVIDENCE),
        (A_PANEL, [judge(PASS, grader="tau2"), person(PASS)], 2, NextAction.REPAIR_EVIDENCE),
        # rule 3: code voted
        (check(), [code(FAIL)], 3, FAIL),
        (check(), [code(FAIL), person(PASS), judge(PASS)], 3, FAIL),
        (check(), [code(FAIL), code(PASS)], 3, FAIL),
        (check(), [code(FAIL), code(UNKNOWN, grader="other")], 3, FAIL),
        (check(), [code(UNKNOWN)], 3, NextAction.REPAIR_EVIDENCE),
        (check(), [code(UNKNOWN), person(PASS)], 3, NextAction.REPAIR_EVIDENCE),
        (check(), [code(UNKNOWN), code(ERROR, grader="other")], 3, NextAction.REPAIR_EVIDENCE),
        (check(), [code(ERROR)], 3, NextAction.CLARIFY_CONTRACT),
        (check(), [code(ERROR), code(PASS, grader="other")], 3, NextAction.CLARIFY_CONTRACT),
        (check(), [code(PASS)], 3, PASS),
        (check(), [code(PASS), person(PASS)], 3, PASS),
        (check(), [code(PASS), judge(UNKNOWN)], 3, NextAction.GRADE),
        (check(), [code(PASS), judge(ERROR)], 3, NextAction.GRADE),
        (check(), [code(PASS), judge(FAIL)], 3, NextAction.ADJUDICATE),
        (check(), [code(PASS), person(FAIL), judge(PASS)], 3, NextAction.ADJUDICATE),
        (check(), [code(PASS), judge(FAIL, is_calibrated=False)], 3, PASS),
        (check(criterion_digest=b"d"), [code(PASS, contract="x", criterion_digest=b"d")], 3, PASS),
        (external(), [code(PASS, contract=None)], 3, PASS),
        (A_PANEL, [code(PASS, grader="tau2", contract=None)], 3, NextAction.GRADE),
        (A_PANEL, [code(PASS, grader="tau2", contract=None), person(PASS)], 3, PASS),
        (external(graders=TWO_JUDGES), [judge(PASS), judge(PASS, grader="judge-2")], 7, PASS),
        (rubric(), [code(PASS), person(FAIL)], 3, NextAction.ADJUDICATE),
        # rule 5: people and judges
        (rubric(), [person(PASS), judge(FAIL)], 5, NextAction.ADJUDICATE),
        (rubric(), [judge(PASS), judge(FAIL)], 5, NextAction.ADJUDICATE),
        (rubric(), [judge(PASS), judge(FAIL), judge(ERROR, grader="x")], 5, NextAction.ADJUDICATE),
        (rubric(), [judge(PASS), person(UNKNOWN)], 5, NextAction.ADJUDICATE),
        (rubric(), [judge(FAIL)], 5, FAIL),
        (rubric(), [judge(FAIL), judge(ERROR, grader="judge-2"), person(UNKNOWN)], 5, FAIL),
        (rubric(), [judge(ERROR)], 5, NextAction.RERUN_JUDGE),
        (rubric(), [judge(ERROR), person(PASS)], 5, NextAction.RERUN_JUDGE),
        (rubric(), [judge(ERROR), person(UNKNOWN)], 5, NextAction.RERUN_JUDGE),
        (rubric(), [judge(UNKNOWN), person(UNKNOWN)], 5, NextAction.REPAIR_EVIDENCE),
        # rule 6: nobody who counts voted
        (rubric(), [], 6, NextAction.GRADE),
        (rubric(), [judge(PASS, is_calibrated=False)], 6, NextAction.CALIBRATE_JUDGE),
        (rubric(), [judge(FAIL, is_calibrated=False)], 6, NextAction.CALIBRATE_JUDGE),
        (rubric(), [person(PASS, is_imported=True)], 6, NextAction.GRADE),
        (rubric(), [judge(PASS, criterion="C")], 6, NextAction.GRADE),
        (rubric(), [judge(PASS, contract="contract-0")], 6, NextAction.GRADE),
        (rubric(), [judge(PASS, contract=None, is_imported=False)], 6, NextAction.GRADE),
        (rubric(rubric_version="2"), [from_file(PASS, rubric_version="1")], 6, NextAction.GRADE),
        (rubric(), [from_file(PASS, is_calibrated=False)], 6, NextAction.CALIBRATE_JUDGE),
        # rule 7: all pass
        (rubric(), [person(PASS)], 7, PASS),
        (rubric(), [from_file(PASS)], 7, PASS),
        (rubric(rubric_version="2"), [from_file(PASS)], 7, PASS),
        (rubric(), [from_file(PASS, rubric_version="1")], 7, PASS),
        (rubric(rubric_version="2"), [from_file(PASS, rubric_version="2")], 7, PASS),
        (rubric(), [person(PASS, is_imported=True, is_vouched=True)], 7, PASS),
        (rubric(), [judge(PASS), person(PASS)], 7, PASS),
        (rubric(graders=TWO_JUDGES), [judge(PASS)], 7, NextAction.GRADE),
        (rubric(graders=TWO_JUDGES), [person(PASS)], 7, NextAction.GRADE),
        (rubric(graders=TWO_JUDGES), [judge(PASS), judge(PASS, grader="judge-2")], 7, PASS),
        # one grader version: what gives way
        (rubric(), [judge(ERROR), judge(PASS)], 7, PASS),
        (rubric(), [judge(ERROR), judge(UNKNOWN)], 5, NextAction.REPAIR_EVIDENCE),
        (rubric(), [judge(ERROR), judge(PASS, grader_version="2")], 5, NextAction.RERUN_JUDGE),
        (rubric(), [judge(UNKNOWN), judge(PASS)], 5, NextAction.ADJUDICATE),
        (rubric(), [judge(UNKNOWN), judge(PASS, evidence_order=1)], 7, PASS),
        (rubric(), [judge(UNKNOWN), judge(FAIL, evidence_order=1)], 5, FAIL),
        (rubric(), [judge(UNKNOWN, evidence_order=1), judge(PASS)], 5, NextAction.ADJUDICATE),
        (check(), [code(UNKNOWN), code(PASS, evidence_order=1)], 3, PASS),
        (check(), [code(ERROR), code(PASS)], 3, PASS),
        (check(), [code(ERROR), code(FAIL)], 3, FAIL),
    ],
)
def test_standing_follows_the_first_rule_that_applies(
    requirement: Requirement, verdicts: Sequence[GivenVerdict], rule: int, comes_to: object
) -> None:
    standing = standing_of(requirement, verdicts)

    expected_action = comes_to if isinstance(comes_to, NextAction) else None
    expected_result = RESULT_OF_ACTION.get(comes_to, StandingResult.OPEN)
    assert (standing.rule, standing.result, standing.action) == (
        rule,
        expected_result,
        expected_action,
    )
    assert standing.sentence.endswith(".")
    for order in permutations(verdicts):
        assert standing_of(requirement, order) == standing


INSUFFICIENT = AdjudicationRuling.INSUFFICIENT_EVIDENCE
UNCLEAR = AdjudicationRuling.RUBRIC_UNCLEAR
DISPUTE = [judge(PASS), person(FAIL)]
LIFTED = ruled(AdjudicationRuling.PASS, rubric_version="r1")
R1 = rubric(rubric_version="r1")


@pytest.mark.parametrize(
    ("requirement", "verdicts", "adjudications", "rule", "comes_to"),
    [
        (R1, DISPUTE, [LIFTED], 4, PASS),
        (R1, DISPUTE, [replace(LIFTED, ruling=AdjudicationRuling.FAIL)], 4, FAIL),
        (R1, DISPUTE, [replace(LIFTED, ruling=INSUFFICIENT)], 4, NextAction.REPAIR_EVIDENCE),
        (R1, DISPUTE, [replace(LIFTED, ruling=UNCLEAR)], 4, NextAction.CLARIFY_CONTRACT),
        (R1, DISPUTE, [replace(LIFTED, criterion="other")], 5, NextAction.ADJUDICATE),
        (R1, DISPUTE, [replace(LIFTED, rubric_version="r0")], 5, NextAction.ADJUDICATE),
        (
            rubric(rubric_version="r1", criterion_digest=b"d"),
            DISPUTE,
            [replace(LIFTED, rubric_version="r0", criterion_digest=b"d")],
            4,
            PASS,
        ),
        (rubric(), DISPUTE, [ruled(AdjudicationRuling.PASS)], 4, PASS),
        (rubric(), DISPUTE, [LIFTED], 5, NextAction.ADJUDICATE),
        (R1, [], [LIFTED], 4, PASS),
        (R1, [judge(PASS, is_calibrated=False)], [LIFTED], 4, PASS),
        # a chain: its head counts, wherever it stands in the list
        (
            R1,
            DISPUTE,
            [replace(LIFTED, id="a2", ruling=AdjudicationRuling.FAIL, replaces="a1"), LIFTED],
            4,
            FAIL,
        ),
        (R1, DISPUTE, [LIFTED, replace(LIFTED, id="a2")], 4, NextAction.ADJUDICATE),
        (R1, DISPUTE, [replace(LIFTED, replaces="a1")], 4, NextAction.ADJUDICATE),
        # with a code vote: an adjudication lifts a dispute, never a failed check
        (check(), [code(PASS), person(FAIL)], [ruled(AdjudicationRuling.PASS)], 3, PASS),
        (check(), [code(PASS), person(FAIL)], [ruled(AdjudicationRuling.FAIL)], 3, FAIL),
        (check(), [code(PASS), person(FAIL)], [LIFTED], 3, NextAction.ADJUDICATE),
        (
            check(),
            [code(PASS), person(FAIL)],
            [ruled(AdjudicationRuling.PASS), ruled(AdjudicationRuling.PASS, id="a2")],
            3,
            NextAction.ADJUDICATE,
        ),
        (check(), [code(FAIL)], [ruled(AdjudicationRuling.PASS)], 3, FAIL),
        (check(), [code(ERROR)], [ruled(AdjudicationRuling.PASS)], 3, NextAction.CLARIFY_CONTRACT),
        (check(), [], [ruled(AdjudicationRuling.PASS)], 2, NextAction.REPAIR_EVIDENCE),
        (check(), [code(PASS)], [ruled(AdjudicationRuling.FAIL)], 3, PASS),
    ],
)
def test_adjudication_decides_what_votes_do_not(
    requirement: Requirement,
    verdicts: Sequence[GivenVerdict],
    adjudications: Sequence[Adjudication],
    rule: int,
    comes_to: object,
) -> None:
    standing = standing_of(requirement, verdicts, adjudications)

    expected_action = comes_to if isinstance(comes_to, NextAction) else None
    expected_result = RESULT_OF_ACTION.get(comes_to, StandingResult.OPEN)
    assert (standing.rule, standing.result, standing.action) == (
        rule,
        expected_result,
        expected_action,
    )


D1, D2, D3 = (
    rubric(rubric_version="r1", criterion_digest=digest) for digest in (b"d1", b"d2", b"d3")
)
UNDER_D1 = replace(LIFTED, criterion_digest=b"d1")
UNDER_D2 = ruled(AdjudicationRuling.FAIL, id="a2", rubric_version="r1", criterion_digest=b"d2")
D2_AFTER_D1 = replace(UNDER_D2, replaces="a1")
D1_AGAIN = replace(UNDER_D1, id="a3", ruling=UNCLEAR, replaces="a2")
D1_ONCE_MORE = replace(D1_AGAIN, id="a4", ruling=AdjudicationRuling.FAIL, replaces="a3")


@pytest.mark.parametrize(
    ("decided", "comes_to"),
    [
        ((UNDER_D1,), (PASS, PASS, PASS)),
        # Two first ones, each on its own wording: a third wording has no chain.
        ((UNDER_D1, UNDER_D2), (PASS, FAIL, NextAction.ADJUDICATE)),
        ((UNDER_D1, D2_AFTER_D1), (PASS, FAIL, FAIL)),
        (
            (UNDER_D1, D2_AFTER_D1, D1_AGAIN),
            (NextAction.CLARIFY_CONTRACT, FAIL, NextAction.CLARIFY_CONTRACT),
        ),
        ((UNDER_D1, D2_AFTER_D1, D1_AGAIN, D1_ONCE_MORE), (FAIL, FAIL, FAIL)),
        # What is replaced by one that is not there stands; a ring is no chain.
        ((D1_AGAIN,), (NextAction.CLARIFY_CONTRACT,) * 3),
        (
            (replace(UNDER_D1, replaces="a2"), D2_AFTER_D1),
            (NextAction.ADJUDICATE, NextAction.ADJUDICATE, NextAction.ADJUDICATE),
        ),
    ],
)
def test_what_was_decided_on_the_very_question_stands_first(
    decided: Sequence[Adjudication], comes_to: Sequence[object]
) -> None:
    for order in permutations(decided):
        standings = [standing_of(each, DISPUTE, order) for each in (D1, D2, D3)]
        assert [s.action or VerdictValue(s.result.value) for s in standings] == list(comes_to)
        assert {s.rule for s in standings} == {4}


@pytest.mark.parametrize(
    ("decided", "last"),
    [
        ((UNDER_D1,), "a1"),
        ((UNDER_D1, UNDER_D2), "a1"),
        ((UNDER_D1, D2_AFTER_D1), "a2"),
        ((UNDER_D1, D2_AFTER_D1, D1_AGAIN, D1_ONCE_MORE), "a4"),
        ((replace(UNDER_D1, replaces="a2"), D2_AFTER_D1), "a2"),
    ],
)
def test_a_further_decision_follows_the_last_one(
    decided: Sequence[Adjudication], last: str
) -> None:
    for order in permutations(decided):
        assert last_after(decided[0], order).id == last


def test_insufficient_evidence_lapses_when_evidence_is_added() -> None:
    adjudication = replace(LIFTED, ruling=INSUFFICIENT, evidence_order=3)

    actions = [
        standing_of(R1, DISPUTE, [adjudication], evidence_order=order).action for order in (3, 4)
    ]

    assert actions == [NextAction.REPAIR_EVIDENCE, NextAction.ADJUDICATE]


def corrected(**facts: object) -> list[GivenVerdict]:
    """Ann says fail and corrects herself to pass."""
    first = person(FAIL, id="first")
    return [first, person(PASS, **{"corrects": "first", **facts})]


@pytest.mark.parametrize(
    ("verdicts", "comes_to"),
    [
        (corrected(), PASS),
        (corrected(grader="ben"), NextAction.ADJUDICATE),
        (corrected(corrects="unheard-of"), NextAction.ADJUDICATE),
        (corrected(is_imported=True), FAIL),
        ([replace(corrected()[0], is_blind_label=True), corrected()[1]], NextAction.ADJUDICATE),
        ([replace(corrected()[0], kind=MODEL, grader="ann"), corrected()[1]], PASS),
        ([judge(FAIL, id="first", grader="ann"), corrected()[1]], NextAction.ADJUDICATE),
        ([judge(FAIL, id="first"), judge(PASS, corrects="first")], NextAction.ADJUDICATE),
        ([person(PASS, id="me", corrects="me")], PASS),
        (
            [*corrected(id="second"), person(FAIL, corrects="second")],
            FAIL,
        ),
        (
            [person(PASS, id="a", corrects="b"), person(FAIL, id="b", corrects="a")],
            NextAction.GRADE,
        ),
    ],
)
def test_correction_silences_only_ones_own_earlier_verdict(
    verdicts: Sequence[GivenVerdict], comes_to: object
) -> None:
    standings = {standing_of(rubric(), order) for order in permutations(verdicts)}

    (standing,) = standings
    assert (standing.action or VerdictValue(standing.result)) == comes_to


def test_correction_on_another_criterion_has_no_effect() -> None:
    verdicts = [person(FAIL, id="first"), person(PASS, "other", corrects="first")]

    assert standing_of(rubric(), verdicts).result is StandingResult.FAIL


def test_votes_one_a_grader_version() -> None:
    verdicts = [
        judge(PASS),
        judge(PASS),
        judge(FAIL),
        judge(FAIL, grader_version="2"),
        judge(PASS, grader="new", is_calibrated=False),
        person(PASS, "another criterion"),
        person(PASS),
    ]

    votes = votes_on(rubric(), verdicts)

    assert votes == (
        Vote("ann", "1", HUMAN, frozenset({PASS})),
        Vote("judge", "1", MODEL, frozenset({PASS, FAIL})),
        Vote("judge", "2", MODEL, frozenset({FAIL})),
    )
    assert [vote.is_flip for vote in votes] == [False, True, False]


TRUTHFUL = rubric("truthful")
ORDER = check("eligibility", CONSTRAINT)
FOREIGN = prohibition("foreign")
C1 = (check("outcome"), ORDER, FOREIGN, TRUTHFUL)


def c1(
    outcome: VerdictValue = PASS,
    order: VerdictValue = PASS,
    foreign: VerdictValue = PASS,
    truthful: Sequence[GivenVerdict] = (person(PASS, "truthful"),),
) -> list[GivenVerdict]:
    """The verdicts on a trial of the subscription request."""
    return [
        code(outcome, "outcome"),
        code(order, "eligibility"),
        code(foreign, "foreign"),
        *truthful,
    ]


NEW_JUDGE = "new-judge"


@pytest.mark.parametrize(
    ("trial", "facts", "verdicts", "disposition", "classes", "actions"),
    [
        ("path A", COMPLETED, c1(), Disposition.PASS, (), ()),
        ("nothing changed", COMPLETED, c1(outcome=FAIL), Disposition.FAIL, (OUTCOME,), ()),
        (
            "another subscription",
            COMPLETED,
            c1(outcome=FAIL, foreign=FAIL),
            Disposition.FAIL,
            (OUTCOME, CONSTRAINT),
            (),
        ),
        (
            "cancellation before the eligibility result",
            COMPLETED,
            c1(order=FAIL),
            Disposition.FAIL,
            (CONSTRAINT,),
            (),
        ),
        (
            "final state not recorded",
            TrialFacts(missing_evidence=("final_state",)),
            c1(),
            Disposition.UNRESOLVED,
            (),
            (NextAction.REPAIR_EVIDENCE,),
        ),
        (
            "two judges disagree",
            COMPLETED,
            c1(truthful=[judge(PASS, "truthful"), judge(FAIL, "truthful", grader="j2")]),
            Disposition.UNRESOLVED,
            (),
            (NextAction.ADJUDICATE,),
        ),
        (
            "judge timed out",
            COMPLETED,
            c1(truthful=[person(PASS, "truthful"), judge(ERROR, "truthful")]),
            Disposition.UNRESOLVED,
            (),
            (NextAction.RERUN_JUDGE,),
        ),
        (
            "backend rejects, agent says it is done",
            COMPLETED,
            c1(outcome=FAIL, truthful=[person(FAIL, "truthful")]),
            Disposition.FAIL,
            (OUTCOME, SEMANTIC),
            (),
        ),
        (
            "prohibited cancellation, then the harness broke",
            BROKEN,
            c1(outcome=FAIL, foreign=FAIL),
            Disposition.FAIL,
            (CONSTRAINT,),
            (),
        ),
        (
            "the harness broke, nothing prohibited",
            BROKEN,
            c1(outcome=FAIL, order=FAIL),
            Disposition.HARNESS_ERROR,
            (),
            (NextAction.RERUN_TRIAL,),
        ),
        (
            "the harness broke, all pass",
            BROKEN,
            c1(),
            Disposition.HARNESS_ERROR,
            (),
            (NextAction.RERUN_TRIAL,),
        ),
        (
            "mandatory check ends in error",
            COMPLETED,
            c1(order=ERROR),
            Disposition.UNRESOLVED,
            (),
            (NextAction.CLARIFY_CONTRACT,),
        ),
        (
            "only an uncalibrated judge gave pass",
            COMPLETED,
            c1(truthful=[judge(PASS, "truthful", is_calibrated=False)]),
            Disposition.UNRESOLVED,
            (),
            (NextAction.CALIBRATE_JUDGE,),
        ),
        (
            "only an uncalibrated judge gave fail",
            COMPLETED,
            c1(truthful=[judge(FAIL, "truthful", is_calibrated=False)]),
            Disposition.UNRESOLVED,
            (),
            (NextAction.CALIBRATE_JUDGE,),
        ),
        (
            "a judge version gave pass, then fail",
            COMPLETED,
            c1(truthful=[judge(PASS, "truthful"), judge(FAIL, "truthful")]),
            Disposition.UNRESOLVED,
            (),
            (NextAction.ADJUDICATE,),
        ),
        (
            "several things open: all actions, in their order",
            TrialFacts(missing_evidence=("final_state",)),
            c1(order=ERROR, truthful=[judge(PASS, "truthful"), judge(FAIL, "truthful")]),
            Disposition.UNRESOLVED,
            (),
            (NextAction.REPAIR_EVIDENCE, NextAction.CLARIFY_CONTRACT, NextAction.ADJUDICATE),
        ),
        (
            "a failure decides, whatever else is open",
            TrialFacts(missing_evidence=("final_state",)),
            c1(order=FAIL, truthful=[]),
            Disposition.FAIL,
            (CONSTRAINT,),
            (),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)
def test_disposition_known_answers(
    trial: str,
    facts: TrialFacts,
    verdicts: Sequence[GivenVerdict],
    disposition: Disposition,
    classes: tuple[CriterionClass, ...],
    actions: tuple[NextAction, ...],
) -> None:
    decision = disposition_of(facts, C1, verdicts)

    assert outcome_of(decision) == (disposition, classes, actions), trial
    assert decision.next_action == (actions[0] if actions else None)
    assert [s.requirement for s in decision.standings] == list(C1)


def test_disposition_without_requirement_is_unresolved() -> None:
    decision = disposition_of(COMPLETED, (), [code(PASS)])

    assert outcome_of(decision) == (
        Disposition.UNRESOLVED,
        (),
        (NextAction.CLARIFY_CONTRACT,),
    )


def test_disposition_of_preferences_alone_is_unresolved() -> None:
    decision = disposition_of(COMPLETED, (rubric(mandatory=False),), [person(FAIL)])

    assert outcome_of(decision) == (Disposition.UNRESOLVED, (), (NextAction.CLARIFY_CONTRACT,))
    assert [s.result for s in decision.standings] == [StandingResult.FAIL]


def test_disposition_leaves_out_a_failed_preference() -> None:
    requirements = (check("outcome"), rubric("tone", mandatory=False))

    decision = disposition_of(
        COMPLETED, requirements, [code(PASS, "outcome"), person(FAIL, "tone")]
    )

    assert decision.disposition is Disposition.PASS


def test_violation_that_is_not_mandatory_is_void_in_a_broken_trial() -> None:
    decision = disposition_of(BROKEN, (prohibition(mandatory=False),), [code(FAIL)])

    assert decision.disposition is Disposition.HARNESS_ERROR


def test_marked_check_leaves_a_failed_trial_unresolved() -> None:
    requirements = (check("outcome", marks=(Mark.DEFECTIVE,)), TRUTHFUL)

    decision = disposition_of(COMPLETED, requirements, c1(outcome=FAIL))

    assert outcome_of(decision) == (Disposition.UNRESOLVED, (), (NextAction.FIX_FIXTURE,))


def imported(*verdicts: GivenVerdict) -> list[GivenVerdict]:
    return [replace(verdict, contract=None) for verdict in verdicts]


def plain(criterion: str, criterion_class: CriterionClass) -> Requirement:
    return Requirement(criterion, criterion_class, RequirementSource.IMPORTED)


@pytest.mark.parametrize(
    ("verdicts", "requirements"),
    [
        ([], ()),
        ([code(PASS, "b"), code(PASS, "a")], (plain("a", SEMANTIC), plain("b", SEMANTIC))),
        ([code(PASS, criterion_class=OUTCOME)], (plain("c", OUTCOME),)),
        ([code(PASS, mandatory=False)], ()),
        ([code(PASS, mandatory=False), judge(PASS)], (plain("c", SEMANTIC),)),
        ([person(PASS)], ()),
        ([person(PASS, is_imported=True)], (plain("c", SEMANTIC),)),
        (
            [judge(PASS, criterion_class=CONSTRAINT), code(PASS, criterion_class=OUTCOME)],
            (plain("c", OUTCOME),),
        ),
        (
            [code(PASS, criterion_class=CONSTRAINT), judge(PASS, criterion_class=OUTCOME)],
            (plain("c", CONSTRAINT),),
        ),
        (
            [code(PASS, criterion_class=CONSTRAINT), code(PASS, criterion_class=OUTCOME)],
            (plain("c", OUTCOME),),
        ),
    ],
)
def test_requirements_without_contract(
    verdicts: Sequence[GivenVerdict], requirements: tuple[Requirement, ...]
) -> None:
    assert requirements_without_contract(verdicts) == requirements
    assert requirements_without_contract(reversed(verdicts)) == requirements


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        # tau2: the reward alone is mandatory, four judges that are not calibrated do not count
        (
            [
                code(PASS, "outcome", criterion_class=OUTCOME),
                code(FAIL, "action-1", mandatory=False),
                *[
                    judge(FAIL, "outcome", grader=f"judge-{n}", is_calibrated=False)
                    for n in range(4)
                ],
            ],
            (Disposition.PASS, (), ()),
        ),
        (
            [code(FAIL, "outcome", criterion_class=OUTCOME), judge(PASS, "outcome")],
            (Disposition.FAIL, (OUTCOME,), ()),
        ),
        # a panel whose judges do not count, in either order
        (
            [
                judge(value, grader=f"judge-{n}", is_calibrated=False)
                for n, value in enumerate((PASS, ERROR, FAIL))
            ],
            (Disposition.UNRESOLVED, (), (NextAction.CALIBRATE_JUDGE,)),
        ),
        (
            [
                judge(value, grader=f"judge-{n}", is_calibrated=False)
                for n, value in enumerate((FAIL, ERROR, PASS))
            ],
            (Disposition.UNRESOLVED, (), (NextAction.CALIBRATE_JUDGE,)),
        ),
        # an override chain that came in a file
        (
            [
                judge(PASS, id="v1", is_calibrated=False),
                person(FAIL, id="v2", corrects="v1", is_imported=True),
                person(PASS, id="v3", corrects="v2", grader="ben", is_imported=True),
            ],
            (Disposition.UNRESOLVED, (), (NextAction.CALIBRATE_JUDGE,)),
        ),
        (
            [person(PASS, is_imported=True)],
            (Disposition.UNRESOLVED, (), (NextAction.GRADE,)),
        ),
        (
            [code(UNKNOWN, criterion_class=OUTCOME)],
            (Disposition.UNRESOLVED, (), (NextAction.REPAIR_EVIDENCE,)),
        ),
        ([], (Disposition.UNRESOLVED, (), (NextAction.CLARIFY_CONTRACT,))),
    ],
)
def test_disposition_of_imported_verdicts(
    verdicts: Sequence[GivenVerdict], expected: tuple[object, ...]
) -> None:
    given_verdicts = imported(*verdicts)

    decision = disposition_of(
        COMPLETED, requirements_without_contract(given_verdicts), given_verdicts
    )

    assert outcome_of(decision) == expected


@pytest.mark.parametrize(
    ("verdicts", "disputed"),
    [
        ([code(FAIL), judge(PASS, is_calibrated=False)], ("c",)),
        ([judge(PASS), judge(UNKNOWN)], ("c",)),
        ([judge(FAIL), judge(UNKNOWN)], ()),
        ([judge(PASS), judge(ERROR)], ()),
        ([judge(PASS), judge(FAIL, "d")], ()),
        (corrected(), ()),
        ([code(FAIL, "z"), code(PASS, "z"), code(FAIL, "b"), code(PASS, "b")], ("b", "z")),
    ],
)
def test_disputed_criteria(verdicts: Sequence[GivenVerdict], disputed: tuple[str, ...]) -> None:
    assert disputed_criteria(verdicts) == disputed


def test_next_actions_and_who_works_them() -> None:
    engineers = [action for action in NextAction if action.worked_by is Worker.ENGINEER]

    assert engineers == list(NextAction)[:5]
    assert {action.worked_by for action in list(NextAction)[5:]} == {Worker.REVIEWER}


CRITERIA = ("outcome", "order", "tone")
any_verdict = st.builds(
    GivenVerdict,
    id=st.integers(0, 10**9).map(str),
    grader=st.sampled_from(("a", "b")),
    grader_version=st.sampled_from(("1", "2")),
    kind=st.sampled_from(GraderKind),
    criterion=st.sampled_from(CRITERIA),
    value=st.sampled_from(VerdictValue),
    criterion_class=st.sampled_from(CriterionClass),
    mandatory=st.booleans(),
    is_imported=st.booleans(),
    is_calibrated=st.booleans(),
    is_vouched=st.booleans(),
    is_blind_label=st.booleans(),
    contract=st.sampled_from((None, CONTRACT)),
    criterion_digest=st.sampled_from((None, b"d")),
    evidence_order=st.integers(0, 2),
)


@st.composite
def verdict_lists(draw: st.DrawFn) -> list[GivenVerdict]:
    """Verdicts with ids of their own, some of them correcting others."""
    drawn = draw(st.lists(any_verdict, max_size=8))
    numbered = [replace(v, id=str(n)) for n, v in enumerate(drawn)]
    names = st.sampled_from([None, *(v.id for v in numbered), "absent"])
    return [replace(v, corrects=draw(names)) for v in numbered]


any_requirement = st.builds(
    Requirement,
    criterion=st.sampled_from(CRITERIA),
    criterion_class=st.sampled_from(CriterionClass),
    source=st.sampled_from(RequirementSource),
    mandatory=st.booleans(),
    is_prohibition=st.booleans(),
    graders=st.sampled_from(((), (RequiredGrader("a", CODE),), (RequiredGrader("b", MODEL),))),
    marks=st.lists(st.sampled_from(Mark), max_size=1).map(tuple),
    contract=st.sampled_from((None, CONTRACT)),
    criterion_digest=st.sampled_from((None, b"d")),
)
requirement_lists = st.lists(any_requirement, max_size=4, unique_by=lambda r: r.criterion)
any_facts = st.builds(
    TrialFacts,
    status=st.sampled_from(TrialStatus),
    missing_evidence=st.sampled_from(((), ("final_state",))),
    evidence_order=st.integers(0, 2),
)


@given(verdict_lists(), requirement_lists, any_facts, st.randoms(use_true_random=False))
def test_disposition_does_not_depend_on_the_order_of_verdicts(
    verdicts: list[GivenVerdict],
    requirements: list[Requirement],
    facts: TrialFacts,
    random: object,
) -> None:
    shuffled = list(verdicts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert disposition_of(facts, requirements, shuffled) == disposition_of(
        facts, requirements, verdicts
    )
    assert requirements_without_contract(shuffled) == requirements_without_contract(verdicts)
    assert disputed_criteria(shuffled) == disputed_criteria(verdicts)


@given(verdict_lists(), requirement_lists, any_facts, any_verdict)
def test_a_further_verdict_of_a_judge_never_lifts_a_trial_above_a_failed_check(
    verdicts: list[GivenVerdict],
    requirements: list[Requirement],
    facts: TrialFacts,
    further: GivenVerdict,
) -> None:
    before = disposition_of(facts, requirements, verdicts)
    judged = replace(further, id="further", kind=MODEL)

    after = disposition_of(facts, requirements, [*verdicts, judged])

    failed_by_code = {
        (s.requirement, s.ruling)
        for s in before.standings
        if s.rule == 3 and s.result is StandingResult.FAIL
    }
    assert failed_by_code <= {(s.requirement, s.ruling) for s in after.standings}
    if before.disposition is Disposition.FAIL and any(r.mandatory for r, _ in failed_by_code):
        assert after.disposition is Disposition.FAIL


@given(verdict_lists(), requirement_lists, any_facts)
def test_pass_needs_a_counting_pass_on_every_requirement(
    verdicts: list[GivenVerdict], requirements: list[Requirement], facts: TrialFacts
) -> None:
    decision = disposition_of(facts, requirements, verdicts)

    if decision.disposition is Disposition.PASS:
        deciding = [r for r in requirements if r.mandatory]
        assert deciding
        assert facts.status is TrialStatus.COMPLETED
        assert not facts.missing_evidence
        for requirement in deciding:
            votes = votes_on(requirement, verdicts)
            assert votes
            assert all(vote.values == {PASS} for vote in votes)
            assert not requirement.marks


@given(verdict_lists(), requirement_lists, any_facts, any_verdict)
def test_a_further_unknown_or_error_never_makes_a_pass(
    verdicts: list[GivenVerdict],
    requirements: list[Requirement],
    facts: TrialFacts,
    further: GivenVerdict,
) -> None:
    value = further.value if further.value in (UNKNOWN, ERROR) else UNKNOWN
    more = [*verdicts, replace(further, id="further", value=value)]
    before = disposition_of(facts, requirements, verdicts)

    after = disposition_of(facts, requirements, more)

    assert after.disposition is not Disposition.PASS or before.disposition is Disposition.PASS


@given(verdict_lists(), requirement_lists, any_facts)
def test_decision_is_open_exactly_when_actions_are_named(
    verdicts: list[GivenVerdict], requirements: list[Requirement], facts: TrialFacts
) -> None:
    decision = disposition_of(facts, requirements, verdicts)

    is_open = decision.disposition in (Disposition.UNRESOLVED, Disposition.HARNESS_ERROR)
    assert bool(decision.actions) == is_open
    assert bool(decision.failed_classes) == (decision.disposition is Disposition.FAIL)
    assert list(decision.actions) == [a for a in NextAction if a in decision.actions]
