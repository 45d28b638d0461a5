"""A judge held against people: rates, bounds, agreement, and what status they come to."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from reviews.core.agreement import Table, table_of
from reviews.core.calibration import (
    DATE_PASSED,
    DECIDED,
    DEFAULT_LIMITS,
    NEWER_VERSION,
    NOT_ASKED,
    PEOPLE_SAY,
    Assessment,
    CalibrationFigures,
    CalibrationStatus,
    ErrorRate,
    FamilyFigures,
    GivenLabel,
    HeldAgainst,
    JudgeFacts,
    JudgeWord,
    LabelledItem,
    Limits,
    Needs,
    calibration_document,
    figures_document,
    figures_of,
    held_against,
    more_needed,
    parse_figures,
    parse_needs,
    people_table,
    shown_status,
    status_of,
    valid_until_of,
    word_of,
)
from reviews.core.consensus import Consensus
from traces.core.records import VerdictValue as V

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
STATUS = CalibrationStatus


def labels(*values: V, days: int = 0, people: Sequence[str] = "abc") -> tuple[GivenLabel, ...]:
    at = NOW + timedelta(days=days)
    return tuple(GivenLabel(people[n], n + 1, value, at) for n, value in enumerate(values))


def item(key: str, people: Consensus, judge: JudgeWord, **more: object) -> LabelledItem:
    """An item that two people settled, drawn at random."""
    value = {Consensus.PASS: V.PASS, Consensus.FAIL: V.FAIL}.get(people, V.UNKNOWN)
    found = LabelledItem(key, people, labels(value, value), is_random=True, word=judge)
    return replace(found, **more)  # type: ignore[arg-type]


def items(n: int, people: Consensus, judge: JudgeWord, **more: object) -> list[LabelledItem]:
    return [item(f"{people}-{judge}-{k:04}", people, judge, **more) for k in range(n)]


def judged(
    *, passed: int = 30, failed: int = 30, false_pass: int = 0, false_fail: int = 0
) -> list[LabelledItem]:
    """So many items that people passed and failed, on some of which the judge is wrong."""
    return [
        *items(passed - false_fail, Consensus.PASS, JudgeWord.PASS),
        *items(false_fail, Consensus.PASS, JudgeWord.FAIL),
        *items(failed - false_pass, Consensus.FAIL, JudgeWord.FAIL),
        *items(false_pass, Consensus.FAIL, JudgeWord.PASS),
    ]


def status(found: Sequence[LabelledItem], **facts: object) -> Assessment:
    return status_of(figures_of(found), facts=JudgeFacts(**facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), JudgeWord.NONE),
        ((V.PASS,), JudgeWord.PASS),
        ((V.FAIL,), JudgeWord.FAIL),
        ((V.UNKNOWN,), JudgeWord.UNKNOWN),
        ((V.ERROR,), JudgeWord.ERROR),
        ((V.PASS, V.FAIL), JudgeWord.FLIP),
        ((V.PASS, V.FAIL, V.UNKNOWN), JudgeWord.FLIP),
        ((V.PASS, V.UNKNOWN), JudgeWord.UNKNOWN),
        ((V.FAIL, V.UNKNOWN), JudgeWord.FAIL),
    ],
)
def test_the_word_of_a_judge_is_what_its_vote_would_come_to(
    values: tuple[V, ...], expected: JudgeWord
) -> None:
    assert word_of(frozenset(values)) is expected


class TestFiguresOf:
    def test_everything_is_counted_once_and_apart(self) -> None:
        split = LabelledItem(
            "s", Consensus.SPLIT, labels(V.PASS, V.FAIL, V.UNKNOWN, days=3), is_random=True
        )
        third = LabelledItem(
            "t",
            Consensus.FAIL,
            labels(V.PASS, V.FAIL, V.FAIL, days=-2, people="bde"),
            is_random=False,
            family="refunds",
            word=JudgeWord.PASS,
        )
        alone = LabelledItem(
            "u", Consensus.PASS, labels(V.PASS), is_random=True, word=JudgeWord.PASS
        )
        found = figures_of(
            [
                *items(2, Consensus.PASS, JudgeWord.PASS),
                *items(1, Consensus.FAIL, JudgeWord.FAIL, family="refunds"),
                *items(1, Consensus.PASS, JudgeWord.FLIP),
                *items(1, Consensus.FAIL, JudgeWord.FLIP),
                *items(1, Consensus.PASS, JudgeWord.UNKNOWN),
                *items(1, Consensus.PASS, JudgeWord.ERROR),
                *items(1, Consensus.FAIL, JudgeWord.NONE),
                *items(1, Consensus.UNKNOWN, JudgeWord.PASS),
                split,
                third,
                alone,
            ]
        )

        table = Table(DECIDED, ((3, 1), (2, 1)))
        in_refunds = HeldAgainst(
            ErrorRate(1, 2, ("t",)),
            ErrorRate(0, 0),
            Table(DECIDED, ((0, 0), (1, 1))),
            Table(DECIDED, ((0, 0), (0, 1))),
        )
        elsewhere = HeldAgainst(
            ErrorRate(1, 1, ("fail-flip-0000",)),
            ErrorRate(1, 4, ("pass-flip-0000",)),
            Table(DECIDED, ((3, 1), (1, 0))),
            Table(DECIDED, ((3, 1), (1, 0))),
        )
        assert found == CalibrationFigures(
            n_items=12,
            n_checked=6,
            n_labels=25,
            n_people=5,
            n_unknown=1,
            n_split=1,
            n_flips=2,
            n_judge_unknown=1,
            n_judge_error=1,
            n_judge_none=1,
            held=HeldAgainst(
                ErrorRate(2, 3, ("fail-flip-0000", "t")),
                ErrorRate(1, 4, ("pass-flip-0000",)),
                table,
                Table(DECIDED, ((3, 1), (1, 1))),
            ),
            people=Table(PEOPLE_SAY, ((5, 2, 0), (0, 3, 0), (0, 0, 1))),
            oldest_label=NOW - timedelta(days=2),
            newest_label=NOW + timedelta(days=3),
            families=(FamilyFigures("", elsewhere), FamilyFigures("refunds", in_refunds)),
        )

    def test_nothing_is_nothing(self) -> None:
        found = figures_of([])

        assert (found.n_items, found.n_people, found.oldest_label, found.families) == (
            0,
            0,
            None,
            (),
        )
        assert (found.held.false_pass.rate, found.held.false_pass.bound) == (None, None)
        assert (found.held.agreement, found.held.kappa, found.held.prevalence) == (None, None, None)
        assert (found.people_agreement, found.people_kappa) == (None, None)

    def test_agreement_is_read_on_random_items_only(self) -> None:
        chosen = items(9, Consensus.FAIL, JudgeWord.PASS, is_random=False)
        drawn = [
            *items(3, Consensus.PASS, JudgeWord.PASS),
            *items(1, Consensus.FAIL, JudgeWord.FAIL),
        ]
        held = held_against([*chosen, *drawn])

        assert (held.n, held.agreement, held.prevalence) == (13, 1, Fraction(3, 4))
        assert held.kappa is not None
        assert held.kappa.value == 1

    def test_kappa_cannot_tell_where_people_gave_one_answer_only(self) -> None:
        held = held_against(
            [*items(5, Consensus.PASS, JudgeWord.PASS), *items(2, Consensus.PASS, JudgeWord.FAIL)]
        )
        assert (held.agreement, held.kappa) == (Fraction(5, 7), None)

    def test_people_are_held_against_each_other_where_both_labelled(self) -> None:
        one = LabelledItem("a", Consensus.PASS, labels(V.PASS), is_random=True)
        two = LabelledItem("b", Consensus.FAIL, labels(V.PASS, V.FAIL, V.FAIL), is_random=False)
        assert people_table([one, two]) == table_of([("pass", "fail")], PEOPLE_SAY)

    @given(
        st.lists(
            st.tuples(
                st.sampled_from([Consensus.PASS, Consensus.FAIL]),
                st.sampled_from([JudgeWord.PASS, JudgeWord.FAIL]),
            ),
            min_size=1,
            max_size=80,
        )
    )
    def test_they_are_those_of_scikit_learn_and_scipy(
        self, said: list[tuple[Consensus, JudgeWord]]
    ) -> None:
        held = held_against(item(f"{n:03}", *pair) for n, pair in enumerate(said))
        people, judge = [p.value for p, _ in said], [j.value for _, j in said]
        (true_pass, false_fail), (false_pass, true_fail) = confusion_matrix(
            people, judge, labels=list(DECIDED)
        ).tolist()

        assert held.table.counts == ((true_pass, false_fail), (false_pass, true_fail))
        for found, wrong, n in (
            (held.false_pass, false_pass, false_pass + true_fail),
            (held.false_fail, false_fail, false_fail + true_pass),
        ):
            assert (found.n_errors, found.n, len(found.errors)) == (wrong, n, wrong)
            if n:
                exact = binomtest(wrong, n, alternative="less").proportion_ci(0.95, method="exact")
                assert found.bound == pytest.approx(exact.high)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kappa = cohen_kappa_score(people, judge)
        if held.kappa is None:
            assert len(set(people)) == 1
        else:
            assert not math.isnan(kappa)
            assert float(held.kappa.value) == pytest.approx(kappa)


class TestStatusOf:
    def test_within_both_limits_its_verdicts_count(self) -> None:
        assert status(judged()) == Assessment(
            STATUS.CALIBRATED,
            "False passes are bounded at 9.5 % (limit 10.0 %), false failures at 9.5 % "
            "(limit 20.0 %), over 60 items labelled by 2 people.",
        )

    def test_without_labels_it_is_too_few_to_tell(self) -> None:
        assert status([]) == Assessment(
            STATUS.EXPLORATORY,
            "Too few to tell: no set of labels that counts is complete.",
            Needs(items=50, people=2),
        )

    def test_labels_of_one_person_are_too_few_to_tell(self) -> None:
        alone = [replace(one, labels=one.labels[:1]) for one in judged()]
        assert status(alone) == Assessment(
            STATUS.EXPLORATORY,
            "Too few to tell: 1 person labelled the items, and 2 are needed.",
            Needs(items=50, people=1),
        )

    def test_items_that_one_person_labelled_do_not_make_up_the_number(self) -> None:
        mixed = [*judged(passed=20, failed=20), *items(30, Consensus.PASS, JudgeWord.PASS)]
        kept = [
            replace(one, key=f"{n:03}", labels=one.labels[: 2 if n < 40 else 1])
            for n, one in enumerate(mixed)
        ]
        assert status(kept) == Assessment(
            STATUS.EXPLORATORY,
            "Too few to tell: people and judge decided 40 items (and 30 with the label of one "
            "person only), and 50 are needed.",
            Needs(items=10),
        )

    def test_too_few_items_say_how_many_are_missing(self) -> None:
        assert status(judged(passed=20, failed=29)) == Assessment(
            STATUS.EXPLORATORY,
            "Too few to tell: people and judge decided 49 items, and 50 are needed.",
            Needs(items=1),
        )

    def test_items_that_the_judge_left_open_do_not_make_up_the_number(self) -> None:
        left = items(40, Consensus.PASS, JudgeWord.NONE)
        assert status([*judged(passed=10, failed=29), *left]).needs == Needs(items=11)

    def test_a_side_without_errors_and_with_too_few_items_is_no_failure(self) -> None:
        assert status(judged(passed=50, failed=12)) == Assessment(
            STATUS.EXPLORATORY,
            "Too few to tell: it passed none of the 12 items that people failed, which bounds "
            "false passes at 22.1 % with a limit of 10.0 %; 17 more items that people fail could "
            "settle it.",
            Needs(failed=17),
        )

    def test_a_side_without_any_item_is_no_failure(self) -> None:
        assert status(judged(passed=0, failed=60)) == Assessment(
            STATUS.EXPLORATORY,
            "Too few to tell: people passed no item that it decided; 14 more items that people pass "
            "could settle it.",
            Needs(passed=14),
        )

    def test_a_bound_above_its_limit_is_a_failure(self) -> None:
        assert status(judged(passed=60, failed=40, false_pass=8)) == Assessment(
            STATUS.FAILED,
            "It passed 8 of 40 items that people failed: false passes are bounded at 33.2 %, "
            "above the limit of 10.0 %.",
        )

    def test_a_failure_that_more_labels_may_settle_says_so(self) -> None:
        assert status(judged(passed=50, failed=30, false_pass=1)) == Assessment(
            STATUS.FAILED,
            "It passed 1 of 30 items that people failed: false passes are bounded at 14.9 %, above "
            "the limit of 10.0 %. 16 more items that people fail, all told right, would bring it "
            "within.",
            Needs(failed=16),
        )

    def test_both_sides_may_fail(self) -> None:
        found = status(judged(passed=30, failed=30, false_pass=1, false_fail=20))
        assert (found.status, found.needs) == (STATUS.FAILED, Needs(failed=16))
        assert "It passed 1 of 30" in found.why
        assert "It failed 20 of 30 items that people passed: false failures are" in found.why

    def test_errors_among_too_few_items_cannot_tell_yet(self) -> None:
        assert status(judged(passed=20, failed=20, false_pass=9)).status is STATUS.EXPLORATORY

    def test_a_newer_version_makes_it_stale(self) -> None:
        assert status(judged(), has_newer=True) == Assessment(STATUS.STALE, NEWER_VERSION)
        assert status([], has_newer=True) == Assessment(STATUS.STALE, NEWER_VERSION)

    def test_a_criterion_that_nobody_asks_any_more_makes_it_stale(self) -> None:
        assert status(judged(), is_asked=False) == Assessment(STATUS.STALE, NOT_ASKED)

    def test_a_failed_probe_comes_before_all_else(self) -> None:
        assert status(judged(), n_failed_probes=1, has_newer=True) == Assessment(
            STATUS.FAILED, "1 probe came out as it must not."
        )
        assert status([], n_failed_probes=3) == Assessment(
            STATUS.FAILED, "3 probes came out as they must not."
        )

    def test_a_failure_stays_one_when_a_newer_version_comes(self) -> None:
        failed = judged(passed=60, failed=40, false_pass=8)
        assert status(failed, has_newer=True).status is STATUS.FAILED

    def test_limits_may_be_tighter(self) -> None:
        figures = figures_of(judged(passed=200, failed=200))
        tight = Limits(false_pass=Fraction(1, 100), min_items=300, min_people=3)

        assert status_of(figures).status is STATUS.CALIBRATED
        assert status_of(figures, tight).needs == Needs(people=1)
        assert status_of(figures, replace(tight, min_people=2)).needs == Needs(failed=99)

    @given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 70), st.integers(0, 70))
    def test_one_more_error_never_calibrates_a_judge(
        self, passed: int, failed: int, false_pass: int, false_fail: int
    ) -> None:
        wrong = {"false_pass": min(false_pass, failed), "false_fail": min(false_fail, passed)}
        was = status(judged(passed=passed, failed=failed, **wrong))
        worse = {
            "false_pass": min(wrong["false_pass"] + 1, failed),
            "false_fail": wrong["false_fail"],
        }
        found = status(judged(passed=passed, failed=failed, **worse))
        if found.status is STATUS.CALIBRATED:
            assert was.status is STATUS.CALIBRATED

    @given(st.integers(0, 40), st.integers(0, 40))
    def test_what_is_needed_is_enough(self, passed: int, failed: int) -> None:
        counts = {"passed": passed, "failed": failed}
        for _ in range(4):
            found = status(judged(**counts))
            if found.status is STATUS.CALIBRATED:
                return
            needs = found.needs
            if not figures_of(judged(**counts)).n_people:
                counts["failed"] += 1  # whoever labels the first item brings the people
            counts["passed"] += needs.passed
            counts["failed"] += needs.failed + needs.items
        assert status(judged(**counts)).status is STATUS.CALIBRATED


class TestMoreNeeded:
    @pytest.mark.parametrize(
        ("errors", "n", "limit", "expected"),
        [
            (0, 0, Fraction(1, 10), 29),
            (0, 28, Fraction(1, 10), 1),
            (0, 29, Fraction(1, 10), 0),
            (0, 0, Fraction(1, 5), 14),
            (1, 30, Fraction(1, 10), 16),
            (5, 5, Fraction(1, 10), 98),
        ],
    )
    def test_it_is_the_fewest(self, errors: int, n: int, limit: Fraction, expected: int) -> None:
        assert more_needed(errors, n, limit) == expected

    @given(
        st.integers(0, 12), st.integers(0, 60), st.sampled_from([Fraction(1, 10), Fraction(1, 3)])
    )
    def test_one_fewer_is_not_enough(self, errors: int, right: int, limit: Fraction) -> None:
        n = errors + right
        needed = more_needed(errors, n, limit)
        bounds = [ErrorRate(errors, n + needed - k).bound for k in range(min(needed, 1) + 1)]

        assert bounds[0] is not None
        assert bounds[0] <= limit
        assert all(bound is None or bound > limit for bound in bounds[1:])

    @pytest.mark.parametrize("limit", [Fraction(0), Fraction(1)])
    def test_a_limit_that_cannot_be_is_refused(self, limit: Fraction) -> None:
        with pytest.raises(ValueError, match="between 0 and 1"):
            more_needed(0, 10, limit)


class TestDates:
    def test_a_calibration_holds_for_ninety_days_from_its_labels(self) -> None:
        assert valid_until_of(NOW) == NOW + timedelta(days=90)
        assert valid_until_of(NOW, Limits(days=7)) == NOW + timedelta(days=7)

    @pytest.mark.parametrize(
        ("stored", "until", "expected"),
        [
            (STATUS.CALIBRATED, NOW, STATUS.CALIBRATED),
            (STATUS.CALIBRATED, NOW - timedelta(seconds=1), STATUS.STALE),
            (STATUS.CALIBRATED, None, STATUS.CALIBRATED),
            (STATUS.FAILED, NOW - timedelta(days=1), STATUS.FAILED),
        ],
    )
    def test_a_date_that_passed_is_shown_as_stale(
        self, stored: CalibrationStatus, until: datetime | None, expected: CalibrationStatus
    ) -> None:
        assert shown_status(stored, until, now=NOW) is expected
        assert DATE_PASSED.endswith(".")


class TestDocuments:
    def test_what_is_stored_reads_as_it_was(self) -> None:
        found = figures_of(
            [
                *judged(passed=4, failed=3, false_pass=1),
                *items(2, Consensus.UNKNOWN, JudgeWord.ERROR, family="refunds"),
                *items(1, Consensus.PASS, JudgeWord.FLIP, family="refunds", is_random=False),
            ]
        )
        stored = json.loads(json.dumps(figures_document(found)))

        assert parse_figures(stored) == found
        assert stored["held"]["false_pass"] == {
            "errors": 1,
            "n": 3,
            "rate": 0.333333333,
            "bound": 0.864649638,
            "items": ["fail-pass-0000"],
        }
        assert stored["held"]["random"]["agreement"] == 0.857142857
        assert stored["held"]["random"]["kappa"] == 0.695652174
        assert stored["held"]["random"]["prevalence"] == 0.571428571
        assert stored["between_people"]["kappa"] == 1.0
        assert stored["between_people"]["kappa_low"] is None

    def test_nothing_is_stored_as_nothing(self) -> None:
        stored = figures_document(figures_of([]))

        assert parse_figures(stored) == figures_of([])
        assert stored["oldest_label"] is None

    def test_a_row_holds_its_limits_and_what_it_lacked(self) -> None:
        found = figures_of(judged(passed=50, failed=12))
        document = calibration_document(found, status_of(found))

        assert document["limits"] == {
            "false_pass": "1/10",
            "false_fail": "1/5",
            "min_items": 50,
            "min_people": 2,
            "days": 90,
        }
        assert parse_needs(document) == Needs(failed=17)
        assert DEFAULT_LIMITS.days == 90

    @pytest.mark.parametrize("document", [None, [], "", {}, {"held": {"table": {"labels": ["x"]}}}])
    def test_what_is_missing_reads_as_nothing(self, document: object) -> None:
        assert parse_figures(document) == replace(  # type: ignore[arg-type]
            figures_of([]), families=()
        )
        assert parse_needs(document) == Needs()  # type: ignore[arg-type]

    def test_odd_parts_read_as_nothing(self) -> None:
        odd = {"families": [{"family": 3}], "held": {"false_pass": {"errors": "x", "items": [1]}}}
        found = parse_figures(odd)  # type: ignore[arg-type]

        assert [one.family for one in found.families] == [""]
        assert found.held.false_pass == ErrorRate(0, 0, ("",))
