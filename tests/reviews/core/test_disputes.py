"""What is disputed of a trial, between whom, and whether deciding it changes anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.core.disposition import (
    Adjudication,
    AdjudicationRuling,
    GivenVerdict,
    Mark,
    Requirement,
    RequirementSource,
    Standing,
    adjudication_in_force,
    disputed_criteria,
    requirements_without_contract,
    standing_of,
    votes_on,
)
from reviews.core.disputes import (
    DisputeKind,
    FoundDispute,
    JudgedTrial,
    NoEffect,
    Side,
    disputes_of,
    sides_on,
    speaks_on,
)
from tests.reviews.core.test_disposition import (
    CODE,
    CONTRACT,
    ERROR,
    FAIL,
    HUMAN,
    MODEL,
    OUTCOME,
    PASS,
    SEMANTIC,
    UNKNOWN,
    any_verdict,
    code,
    judge,
    person,
    requirement_lists,
    verdict_lists,
)

RUBRIC = Requirement(
    "c",
    SEMANTIC,
    RequirementSource.RUBRIC,
    contract=CONTRACT,
    criterion_digest=b"d",
    rubric_version="2",
)
CHECK = Requirement("c", OUTCOME, RequirementSource.CHECK, contract=CONTRACT)


def trial_of(
    verdicts: Sequence[GivenVerdict],
    *requirements: Requirement,
    adjudications: Sequence[Adjudication] = (),
    evidence_order: int = 0,
    **facts: bool,
) -> JudgedTrial:
    """A trial decided by those requirements; by what came in files where there are none."""
    asked = requirements or requirements_without_contract(verdicts)
    standings = [
        standing_of(each, verdicts, adjudications, evidence_order=evidence_order) for each in asked
    ]
    return JudgedTrial(standings, verdicts, adjudications, evidence_order, **facts)


def only(trial: JudgedTrial) -> FoundDispute:
    (found,) = disputes_of(trial)
    return found


def imported(verdict: GivenVerdict) -> GivenVerdict:
    return replace(verdict, is_imported=True, contract=None)


def uncalibrated(verdict: GivenVerdict) -> GivenVerdict:
    return replace(verdict, is_calibrated=False)


def ruled(ruling: AdjudicationRuling, **facts: object) -> Adjudication:
    given_facts: dict[str, object] = {"id": "a1", "criterion_digest": b"d", **facts}
    return Adjudication(criterion="c", ruling=ruling, **given_facts)  # type: ignore[arg-type]


def test_code_against_an_uncalibrated_judge_decides_nothing_and_is_listed() -> None:
    verdicts = [
        imported(code(FAIL, criterion_class=OUTCOME)),
        imported(uncalibrated(judge(PASS))),
    ]

    assert only(trial_of(verdicts)) == FoundDispute(
        criterion="c",
        criterion_class=OUTCOME,
        criterion_digest=None,
        rubric_version=None,
        kinds=(DisputeKind.CODE_JUDGE,),
        sides=(
            Side("checker", "1", CODE, (FAIL,), counts=True, is_imported=True, n=1),
            Side("judge", "1", MODEL, (PASS,), counts=False, is_imported=True, n=1),
        ),
        is_counting=False,
        no_effect=NoEffect.CODE_DECIDES,
        ruling=None,
    )


@pytest.mark.parametrize(
    ("verdicts", "kinds"),
    [
        ([code(PASS), judge(FAIL)], (DisputeKind.CODE_JUDGE,)),
        ([code(FAIL), person(PASS)], (DisputeKind.CODE_PERSON,)),
        ([code(FAIL), code(PASS, grader="other")], (DisputeKind.CODE_CODE,)),
        ([judge(FAIL), person(PASS)], (DisputeKind.JUDGE_PERSON,)),
        ([judge(UNKNOWN), judge(PASS, grader="other")], (DisputeKind.JUDGE_JUDGE,)),
        ([judge(FAIL), judge(PASS, grader_version="2")], (DisputeKind.JUDGE_JUDGE,)),
        ([person(FAIL), person(PASS, grader="ben")], (DisputeKind.PERSON_PERSON,)),
        ([judge(FAIL), judge(PASS)], (DisputeKind.FLIP,)),
        ([judge(UNKNOWN), judge(PASS)], (DisputeKind.FLIP,)),
        (
            [judge(FAIL), judge(PASS), judge(PASS, grader="other")],
            (DisputeKind.JUDGE_JUDGE, DisputeKind.FLIP),
        ),
        (
            [code(FAIL), judge(PASS), judge(FAIL, grader="other"), person(PASS)],
            (
                DisputeKind.CODE_JUDGE,
                DisputeKind.CODE_PERSON,
                DisputeKind.JUDGE_PERSON,
                DisputeKind.JUDGE_JUDGE,
            ),
        ),
    ],
)
def test_between_whom_it_is_disputed(
    verdicts: Sequence[GivenVerdict], kinds: tuple[DisputeKind, ...]
) -> None:
    assert only(trial_of(verdicts, RUBRIC)).kinds == kinds


@pytest.mark.parametrize(
    "verdicts",
    [
        [],
        [judge(PASS), person(PASS)],
        [judge(FAIL), person(UNKNOWN)],
        [judge(PASS), person(ERROR)],
        [judge(PASS), judge(FAIL, "d")],
        # Corrected, given way, of earlier checks, of another question.
        [person(FAIL, id="1"), person(PASS, corrects="1"), judge(PASS)],
        [judge(UNKNOWN), judge(PASS, evidence_order=1)],
        [code(FAIL, is_outdated=True), code(PASS)],
        [judge(FAIL, contract="contract-0", criterion_digest=b"e"), judge(PASS)],
        [person(FAIL, contract=None), judge(PASS)],
        [imported(judge(FAIL, rubric_version="1")), judge(PASS)],
    ],
)
def test_what_is_silent_or_alike_is_no_dispute(verdicts: Sequence[GivenVerdict]) -> None:
    assert disputes_of(trial_of(verdicts, RUBRIC)) == ()


def test_a_blind_label_is_never_silent() -> None:
    verdicts = [person(FAIL, id="1", is_blind_label=True), person(PASS, corrects="1")]

    assert only(trial_of(verdicts, RUBRIC)).kinds == (DisputeKind.FLIP,)


def test_a_file_names_a_check_without_voting_on_it() -> None:
    found = only(trial_of([code(FAIL), imported(judge(PASS)), imported(code(PASS))], CHECK))

    assert found.kinds == (DisputeKind.CODE_JUDGE, DisputeKind.FLIP)
    assert [(s.grader, s.values, s.counts) for s in found.sides] == [
        ("checker", (FAIL,), True),
        ("checker", (PASS,), False),
        ("judge", (PASS,), False),
    ]
    assert (found.is_counting, found.no_effect) == (False, NoEffect.CODE_DECIDES)


def test_what_speaks_on_a_criterion() -> None:
    named = imported(judge(PASS, rubric_version="2"))
    assert speaks_on(named, RUBRIC)
    assert speaks_on(named, CHECK)
    assert not speaks_on(replace(named, rubric_version="1"), RUBRIC)
    assert not speaks_on(replace(named, criterion="d"), RUBRIC)
    assert speaks_on(judge(PASS), RUBRIC)
    assert not speaks_on(judge(PASS, contract="contract-0"), RUBRIC)
    assert not speaks_on(person(PASS, contract=None), RUBRIC)


def test_a_person_and_an_import_of_the_same_name_are_told_apart() -> None:
    verdicts = [person(PASS), person(FAIL, contract=None, is_imported=True)]

    found = only(trial_of(verdicts, RUBRIC))

    assert [(s.values, s.counts, s.is_imported) for s in found.sides] == [
        ((PASS,), True, False),
        ((FAIL,), False, True),
    ]


def test_a_grader_says_the_same_several_times_and_ends_in_errors() -> None:
    verdicts = [judge(PASS), judge(PASS), judge(ERROR), person(FAIL), judge(ERROR, grader="late")]

    found = only(trial_of(verdicts, RUBRIC))

    assert [(s.grader, s.values, s.n, s.has_opinion) for s in found.sides] == [
        ("judge", (PASS,), 2, True),
        ("late", (ERROR,), 1, False),
        ("ann", (FAIL,), 1, True),
    ]


@pytest.mark.parametrize(
    ("verdicts", "requirement", "facts", "no_effect", "is_counting"),
    [
        ([judge(PASS), person(FAIL)], RUBRIC, {}, None, True),
        ([uncalibrated(judge(PASS)), person(FAIL)], RUBRIC, {}, NoEffect.AGREED, False),
        # Rule 4 comes before rule 6: it would be settled, though nobody that disagrees counts.
        ([uncalibrated(judge(PASS)), uncalibrated(judge(FAIL))], RUBRIC, {}, None, False),
        # Code passes and a grader that counts fails: rule 3 asks for an adjudication.
        ([code(PASS), judge(FAIL)], CHECK, {}, None, True),
        ([code(PASS), uncalibrated(judge(FAIL))], CHECK, {}, NoEffect.CODE_DECIDES, False),
        ([code(FAIL), person(PASS)], CHECK, {}, NoEffect.CODE_DECIDES, True),
        ([code(UNKNOWN), person(PASS)], CHECK, {}, NoEffect.CODE_DECIDES, True),
        ([judge(PASS), person(FAIL)], CHECK, {}, NoEffect.NO_CODE_VOTE, True),
        (
            [judge(PASS), person(FAIL)],
            replace(RUBRIC, mandatory=False),
            {},
            NoEffect.NOT_REQUIRED,
            True,
        ),
        (
            [judge(PASS), person(FAIL)],
            replace(RUBRIC, marks=(Mark.DEFECTIVE,)),
            {},
            NoEffect.MARKED,
            True,
        ),
        ([judge(PASS), person(FAIL)], RUBRIC, {"is_completed": False}, NoEffect.BROKEN, True),
        (
            [judge(PASS), person(FAIL)],
            RUBRIC,
            {"is_completed": False, "stands": False},
            NoEffect.REPLACED,
            True,
        ),
    ],
)
def test_whether_deciding_it_changes_anything(
    verdicts: Sequence[GivenVerdict],
    requirement: Requirement,
    facts: dict[str, bool],
    no_effect: NoEffect | None,
    is_counting: bool,  # noqa: FBT001 - a column of the table
) -> None:
    found = only(trial_of(verdicts, requirement, **facts))

    assert (found.no_effect, found.is_counting) == (no_effect, is_counting)
    assert found.decides is (no_effect is None)


def test_what_nothing_requires_is_listed_under_the_class_that_code_gives_it() -> None:
    verdicts = [
        replace(imported(judge(FAIL, criterion_class=SEMANTIC)), mandatory=False),
        replace(imported(code(PASS, criterion_class=OUTCOME)), mandatory=False),
    ]

    found = only(trial_of(verdicts))

    assert (found.criterion_class, found.no_effect) == (OUTCOME, NoEffect.NOT_REQUIRED)


def test_what_a_contract_asks_no_more_is_no_dispute() -> None:
    verdicts = [judge(PASS), person(FAIL)]

    assert disputes_of(trial_of(verdicts, replace(RUBRIC, criterion="other"))) == ()


@pytest.mark.parametrize(
    ("adjudications", "evidence_order", "ruling"),
    [
        ((), 0, None),
        ((ruled(AdjudicationRuling.PASS),), 0, AdjudicationRuling.PASS),
        ((ruled(AdjudicationRuling.RUBRIC_UNCLEAR),), 3, AdjudicationRuling.RUBRIC_UNCLEAR),
        (
            (ruled(AdjudicationRuling.INSUFFICIENT_EVIDENCE),),
            0,
            AdjudicationRuling.INSUFFICIENT_EVIDENCE,
        ),
        ((ruled(AdjudicationRuling.INSUFFICIENT_EVIDENCE),), 1, None),
        # Of another version of the criterion, and no chain.
        ((ruled(AdjudicationRuling.PASS, criterion_digest=b"e"),), 0, None),
        ((ruled(AdjudicationRuling.PASS), ruled(AdjudicationRuling.FAIL, id="a2")), 0, None),
        (
            (
                ruled(AdjudicationRuling.PASS),
                ruled(AdjudicationRuling.FAIL, id="a2", replaces="a1"),
            ),
            0,
            AdjudicationRuling.FAIL,
        ),
    ],
)
def test_an_adjudication_in_force_settles_it(
    adjudications: tuple[Adjudication, ...],
    evidence_order: int,
    ruling: AdjudicationRuling | None,
) -> None:
    trial = trial_of(
        [judge(PASS), person(FAIL)],
        RUBRIC,
        adjudications=adjudications,
        evidence_order=evidence_order,
    )

    found = only(trial)

    assert (found.ruling, found.decides) == (ruling, True)
    held = adjudication_in_force(RUBRIC, adjudications, evidence_order=evidence_order)
    assert (held and held.ruling) == ruling


def test_disputes_stand_by_name() -> None:
    verdicts = [imported(each) for name in "zam" for each in (code(PASS, name), judge(FAIL, name))]

    assert [each.criterion for each in disputes_of(trial_of(verdicts))] == ["a", "m", "z"]


@st.composite
def judged_trials(draw: st.DrawFn) -> JudgedTrial:
    verdicts = draw(verdict_lists())
    requirements = draw(requirement_lists)
    facts = {"is_completed": draw(st.booleans()), "stands": draw(st.booleans())}
    return trial_of(verdicts, *requirements, **facts)


@given(judged_trials(), st.randoms(use_true_random=False))
def test_disputes_do_not_depend_on_the_order_of_verdicts(
    trial: JudgedTrial, random: object
) -> None:
    shuffled = list(trial.verdicts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert disputes_of(replace(trial, verdicts=shuffled)) == disputes_of(trial)


@given(verdict_lists(), requirement_lists)
def test_sides_that_count_are_the_votes(
    verdicts: list[GivenVerdict], requirements: list[Requirement]
) -> None:
    for requirement in requirements:
        counting = [
            (side.grader, side.grader_version, side.kind, frozenset(side.values))
            for side in sides_on(requirement, verdicts)
            if side.counts
        ]
        votes = [
            (vote.grader, vote.grader_version, vote.kind, vote.values)
            for vote in votes_on(requirement, verdicts)
        ]
        assert sorted(counting, key=repr) == sorted(votes, key=repr)


@given(judged_trials(), any_verdict)
def test_one_more_verdict_leaves_the_disputes_of_other_criteria_alone(
    trial: JudgedTrial, further: GivenVerdict
) -> None:
    one = replace(further, id="further", criterion="elsewhere")

    assert disputes_of(replace(trial, verdicts=[*trial.verdicts, one])) == disputes_of(trial)


@given(verdict_lists())
def test_a_dispute_is_among_the_criteria_whose_verdicts_disagree(
    verdicts: list[GivenVerdict],
) -> None:
    plain = [replace(v, contract=None, is_imported=True, evidence_order=0) for v in verdicts]
    trial = JudgedTrial(_standings(plain), plain)

    assert tuple(each.criterion for each in disputes_of(trial)) == disputed_criteria(plain)


def _standings(verdicts: list[GivenVerdict]) -> list[Standing]:
    return [standing_of(each, verdicts) for each in requirements_without_contract(verdicts)]


def test_people_who_signed_in_are_no_import() -> None:
    assert sides_on(RUBRIC, [person(PASS)])[0].kind is HUMAN
    assert not sides_on(RUBRIC, [person(PASS)])[0].is_imported
