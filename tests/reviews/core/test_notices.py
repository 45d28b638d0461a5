from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from reviews.core.disposition import GivenVerdict
from reviews.core.notices import (
    Notice,
    NoticeCode,
    NoticedTrial,
    notice_summaries,
    notices_on,
)
from traces.core.records import CriterionClass, GraderKind, TrialStatus, VerdictValue

PASS, FAIL, UNKNOWN, ERROR = VerdictValue
CODE, MODEL, HUMAN = GraderKind
TRIAL = NoticedTrial(TrialStatus.COMPLETED, n_steps=4, n_agent_steps=2)


def verdict(
    value: VerdictValue, criterion: str = "c", kind: GraderKind = MODEL, **facts: object
) -> GivenVerdict:
    return GivenVerdict(
        **{
            "id": criterion,
            "grader": "g",
            "grader_version": "1",
            "kind": kind,
            "criterion": criterion,
            "value": value,
            "raw_word": str(value),
            **facts,
        }  # type: ignore[arg-type]
    )


def outcome(value: VerdictValue) -> GivenVerdict:
    return verdict(value, "outcome", CODE, criterion_class=CriterionClass.OUTCOME)


def codes(trial: NoticedTrial, *verdicts: GivenVerdict) -> list[NoticeCode]:
    return [notice.code for notice in notices_on(trial, verdicts)]


def test_nothing_odd_gives_no_notice() -> None:
    assert notices_on(TRIAL, [outcome(PASS), verdict(FAIL, cited_steps=(1, 4))]) == ()
    assert notices_on(TRIAL, []) == ()


def test_failed_checks_outside_the_basis() -> None:
    off_basis = [
        verdict(FAIL, f"action-{n}", CODE, mandatory=False, cited_steps=(n,)) for n in (2, 1)
    ]

    notices = notices_on(TRIAL, [outcome(PASS), *off_basis])

    assert notices == tuple(
        Notice(
            NoticeCode.FAILED_CHECK_OUTSIDE_BASIS,
            f"The outcome passes, but check action-{n} failed; it is not mandatory.",
            f"action-{n}",
            (n,),
        )
        for n in (1, 2)
    )
    assert notice_summaries(notices) == ("2 checks failed that are not mandatory",)


@pytest.mark.parametrize(
    "verdicts",
    [
        [outcome(FAIL), verdict(FAIL, kind=CODE, mandatory=False)],
        [verdict(FAIL, kind=CODE, mandatory=False)],
        [outcome(PASS), verdict(FAIL, kind=CODE, mandatory=True)],
        [outcome(PASS), verdict(FAIL, kind=MODEL, mandatory=False)],
        [outcome(PASS), verdict(UNKNOWN, kind=CODE, mandatory=False)],
        [outcome(PASS), outcome(UNKNOWN), verdict(FAIL, kind=CODE, mandatory=False)],
    ],
)
def test_other_failures_are_inside_the_basis_or_no_checks(
    verdicts: Sequence[GivenVerdict],
) -> None:
    assert codes(TRIAL, *verdicts) == []


def test_cited_steps_that_do_not_exist() -> None:
    notices = notices_on(TRIAL, [verdict(PASS, cited_steps=(99, 2, 0, 99))])

    sentence = "g cites step 0, 99; the transcript has 4 steps."
    assert notices == (Notice(NoticeCode.CITED_STEP_MISSING, sentence, "c", (0, 99)),)


@pytest.mark.parametrize(
    ("value", "score", "is_against"),
    [
        (PASS, "0", True),
        (PASS, "-1", True),
        (PASS, "0.5", False),
        (PASS, "1", False),
        (FAIL, "1.0", True),
        (FAIL, "0.9999999", True),
        (FAIL, "0.5", False),
        (FAIL, "0", False),
        (FAIL, "4", False),
        (UNKNOWN, "1", False),
        (ERROR, "0", False),
        (PASS, None, False),
    ],
)
def test_verdict_against_its_own_score(
    value: VerdictValue, score: str | None, is_against: bool
) -> None:
    scored = verdict(value, score=None if score is None else Decimal(score))

    assert (NoticeCode.VERDICT_AGAINST_SCORE in codes(TRIAL, scored)) is is_against


def test_pass_on_an_empty_trajectory() -> None:
    empty = NoticedTrial(TrialStatus.COMPLETED, n_steps=1, n_agent_steps=0)

    assert codes(empty, outcome(PASS)) == [NoticeCode.PASS_ON_EMPTY_TRAJECTORY]
    assert codes(empty, outcome(FAIL)) == []


def test_error_status_with_a_pass() -> None:
    broken = NoticedTrial(TrialStatus.ERROR, n_steps=4, n_agent_steps=2)

    assert codes(broken, outcome(PASS), outcome(FAIL)) == [NoticeCode.ERROR_STATUS_WITH_PASS]
    assert codes(broken, outcome(FAIL)) == []


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"is_imported": True}, [NoticeCode.IMPORTED_HUMAN_VERDICT]),
        ({"is_imported": True, "is_vouched": True}, []),
        ({"is_imported": False}, []),
    ],
)
def test_imported_human_verdict(facts: dict[str, bool], expected: list[NoticeCode]) -> None:
    assert codes(TRIAL, verdict(PASS, kind=HUMAN, **facts)) == expected


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        (
            "GRADE: CI",
            "g said 'GRADE: CI', which is no verdict that can be read; it counts as an error.",
        ),
        (
            "pass\u200b",
            "g said 'pass\\u200b', which is no verdict that can be read; it counts as an error.",
        ),
        ("", "g gave no verdict that can be read; it counts as an error."),
        ("Error ", None),
    ],
)
def test_unreadable_verdict(word: str, sentence: str | None) -> None:
    notices = notices_on(TRIAL, [verdict(ERROR, raw_word=word)])

    expected = () if sentence is None else (Notice(NoticeCode.UNREADABLE_VERDICT, sentence, "c"),)
    assert notices == expected


@pytest.mark.parametrize(
    ("criteria", "given", "found"),
    [
        (None, verdict(PASS, "speed"), []),
        (frozenset({"speed"}), verdict(PASS, "speed"), []),
        (frozenset({"speed"}), verdict(PASS, "Speed"), [NoticeCode.UNKNOWN_CRITERION]),
        (frozenset({"speed"}), verdict(PASS, "Speed", is_imported=False), []),
    ],
    ids=["no-contract", "in-it", "not-in-it", "given-in-the-product"],
)
def test_a_verdict_from_a_file_on_a_criterion_that_the_contract_lacks(
    criteria: frozenset[str] | None, given: GivenVerdict, found: list[NoticeCode]
) -> None:
    assert codes(replace(TRIAL, criteria=criteria), given) == found


def test_the_product_s_own_checks_are_no_reason_to_look() -> None:
    broken = NoticedTrial(TrialStatus.ERROR, n_steps=0, n_agent_steps=0, criteria=frozenset())
    own = [
        verdict(PASS, "outcome", CODE, is_imported=False, criterion_class=CriterionClass.OUTCOME),
        verdict(FAIL, "c", CODE, is_imported=False, mandatory=False, cited_steps=(9,)),
    ]
    assert notices_on(broken, own) == ()


def test_notices_are_given_once_and_in_order() -> None:
    broken = NoticedTrial(TrialStatus.ERROR, n_steps=1, n_agent_steps=0)
    twice = [verdict(PASS, "b", HUMAN), verdict(PASS, "b", HUMAN), verdict(PASS, "a", HUMAN)]

    notices = notices_on(broken, twice)

    assert [(n.code, n.criterion) for n in notices] == [
        (NoticeCode.ERROR_STATUS_WITH_PASS, ""),
        (NoticeCode.IMPORTED_HUMAN_VERDICT, "a"),
        (NoticeCode.IMPORTED_HUMAN_VERDICT, "b"),
        (NoticeCode.PASS_ON_EMPTY_TRAJECTORY, ""),
    ]
    assert notices == notices_on(broken, twice[::-1])


def test_notice_summaries_in_words() -> None:
    one = [Notice(code, "") for code in NoticeCode]

    assert notice_summaries(one) == (
        "1 check failed that is not mandatory",
        "1 verdict cites a step that does not exist",
        "1 verdict against its own score",
        "pass on an empty trajectory",
        "error status with a pass",
        "1 imported human verdict",
        "1 verdict on a criterion that the contract does not have",
        "1 unreadable verdict",
    )
    assert notice_summaries([*one, *one]) == (
        "2 checks failed that are not mandatory",
        "2 verdicts cite a step that does not exist",
        "2 verdicts against their own score",
        "pass on an empty trajectory",
        "error status with a pass",
        "2 imported human verdicts",
        "2 verdicts on a criterion that the contract does not have",
        "2 unreadable verdicts",
    )
    assert notice_summaries([]) == ()


def test_all_but_unreadable_verdicts_flag_the_trial() -> None:
    assert [code for code in NoticeCode if not code.flags] == [NoticeCode.UNREADABLE_VERDICT]


def test_the_key_of_a_notice_holds_all_that_it_says() -> None:
    notice = Notice(NoticeCode.CITED_STEP_MISSING, "g cites step 9.", "c", (9,))
    others = (
        Notice(NoticeCode.VERDICT_AGAINST_SCORE, "g cites step 9.", "c", (9,)),
        Notice(NoticeCode.CITED_STEP_MISSING, "h cites step 9.", "c", (9,)),
        Notice(NoticeCode.CITED_STEP_MISSING, "g cites step 9.", "d", (9,)),
        Notice(NoticeCode.CITED_STEP_MISSING, "g cites step 9.", "c", (9, 10)),
    )

    assert notice.key == Notice(NoticeCode.CITED_STEP_MISSING, "g cites step 9.", "c", (9,)).key
    assert len({notice.key, *(other.key for other in others)}) == 5
    assert len(notice.key) == 16


@pytest.mark.parametrize(
    ("value", "score", "shown"),
    [
        (PASS, "0E-30", "0"),
        (PASS, "0.000", "0"),
        (PASS, "-10", "-10"),
        (FAIL, "1.000000", "1"),
        (FAIL, "0.99999950", "0.9999995"),
    ],
)
def test_a_score_is_shown_in_plain_digits(value: VerdictValue, score: str, shown: str) -> None:
    (notice,) = notices_on(TRIAL, [verdict(value, score=Decimal(score))])

    assert notice.sentence == f"g says {value} with a score of {shown}."
