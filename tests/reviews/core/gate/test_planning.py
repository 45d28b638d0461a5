"""The sample planner: known answers, the edges, and what cannot be."""

from __future__ import annotations

from fractions import Fraction

import pytest

from reviews.core.estimators import lower_bound, upper_bound
from reviews.core.gate.planning import (
    DayRow,
    HatRow,
    LowerBoundPlan,
    ShowRow,
    at_volume,
    plan_bound,
    plan_k,
    plan_lower_bound,
    plan_resolution,
)

HALF_A_PERCENT = Fraction("0.005")


@pytest.mark.parametrize(
    ("n_run", "n_violations", "n_more", "sentence"),
    [
        (0, 0, 598, "0 are there, so 598 more clean trials would bring it there."),
        (500, 0, 98, "500 are there, so 98 more clean trials would bring it there."),
        (597, 0, 1, "597 are there, so 1 more clean trial would bring it there."),
        (598, 0, 0, "598 are there, which is enough."),
        (1, 1, 946, "1 is there, 1 of them with a violation, so 946 more clean trials would bring it there."),
    ],
)  # fmt: skip
def test_plan_bound_counts_what_is_lacking(
    n_run: int, n_violations: int, n_more: int, sentence: str
) -> None:
    plan = plan_bound(HALF_A_PERCENT, n_run, n_violations)
    assert (plan.needed, plan.n_more, plan.n_run, plan.n_violations, plan.limit) == (
        598, n_more, n_run, n_violations, HALF_A_PERCENT,
    )  # fmt: skip
    assert plan.bound == upper_bound(n_violations, n_run)
    assert plan.sentence == f"A bound of 0.5 % takes 598 clean trials; {sentence}"


def test_plan_bound_beyond_what_can_be_run_says_so() -> None:
    plan = plan_bound(Fraction(1, 10**12))
    assert (plan.needed, plan.n_more, plan.bound) == (None, None, None)
    assert plan.sentence == (
        "A bound of 0.0000000001 % takes more than 1,000,000,000 clean trials."
    )


@pytest.mark.parametrize(
    ("limit", "n_run", "n_violations"),
    [(Fraction(0), 1, 0), (Fraction(1), 1, 0), (HALF_A_PERCENT, 1, 2), (HALF_A_PERCENT, 1, -1)],
)
def test_plan_bound_refuses_what_cannot_be(limit: Fraction, n_run: int, n_violations: int) -> None:
    with pytest.raises(ValueError, match="cannot be|lies between"):
        plan_bound(limit, n_run, n_violations)


@pytest.mark.parametrize(
    ("rate", "requests", "a_day", "one_in", "sentence"),
    [
        ("0.015", 10_000, 150, None, "At 10,000 requests a day, 1.5 % means up to 150 a day."),
        ("0.0001", 1_000, 1, 10, "At 1,000 requests a day, 0.01 % means up to one in 10 days."),
        ("0.9", 1, 1, 1, "At 1 request a day, 90 % means up to 1 a day."),
        ("0", 10_000, 0, None, "At 10,000 requests a day, 0 % means none."),
        ("1", 10_000, 10_000, None, "At 10,000 requests a day, 100 % means up to 10,000 a day."),
    ],
)
def test_at_volume_says_what_a_rate_means(
    rate: str, requests: int, a_day: int, one_in: int | None, sentence: str
) -> None:
    found = at_volume(Fraction(rate), requests)
    assert (found.a_day, found.one_in_days, found.sentence) == (a_day, one_in, sentence)


def test_at_volume_of_a_bound_is_rounded_up_and_printed_to_a_tenth() -> None:
    bound = upper_bound(0, 200)
    assert bound is not None
    assert at_volume(Fraction(bound), 10_000).sentence == (
        "At 10,000 requests a day, 1.5 % means up to 149 a day."
    )


@pytest.mark.parametrize(("rate", "requests"), [("-0.1", 1), ("1.1", 1), ("0.5", 0)])
def test_at_volume_refuses_what_cannot_be(rate: str, requests: int) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        at_volume(Fraction(rate), requests)


def test_plan_k_gives_known_answers() -> None:
    plan = plan_k(5, Fraction("0.95"), [Fraction("0.9"), Fraction("0.75")])
    assert plan.rows == (
        DayRow(Fraction("0.9"), Fraction("0.59049")),
        DayRow(Fraction("0.75"), Fraction(243, 1024)),
    )
    assert plan.trial_rate**5 == pytest.approx(0.95)
    assert plan.sentence == (
        "If the situation comes 5 times a day, pass^5 is the chance of a day without a failure. For "
        "95 % of days, a single trial has to pass 99 % of the time."
    )
    rates = {row.trial_rate: row.day_rate for row in plan_k(3, Fraction("0.95")).rows}
    assert rates[Fraction("0.75")] == Fraction("0.421875")
    assert plan_k(10, Fraction("0.9"), [Fraction("0.9")]).rows[0].day_rate == Fraction(
        "0.3486784401"
    )


def test_plan_k_of_once_a_day_asks_for_the_same_rate() -> None:
    assert plan_k(1, Fraction("0.9")).sentence == (
        "If the situation comes once a day, pass^1 is the chance of a day without a failure. For "
        "90 % of days, a single trial has to pass 90 % of the time."
    )


@pytest.mark.parametrize(
    ("times", "rate"), [(0, Fraction(1)), (1001, Fraction(1)), (1, Fraction(2))]
)
def test_plan_k_refuses_what_cannot_be(times: int, rate: Fraction) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        plan_k(times, rate)


def test_plan_resolution_lists_what_trials_can_tell() -> None:
    found = plan_resolution(5, 3, [Fraction("0.1")])
    assert (found.n, found.k, found.step) == (5, 3, Fraction(1, 5))
    assert found.values == (
        HatRow(0, Fraction(0)),
        HatRow(1, Fraction(0)),
        HatRow(2, Fraction(0)),
        HatRow(3, Fraction(1, 10)),
        HatRow(4, Fraction(2, 5)),
        HatRow(5, Fraction(1)),
    )
    assert found.shows == (ShowRow(Fraction("0.1"), Fraction("0.40951")),)
    assert found.sentence == (
        "5 trials a task tell its rate in steps of 20.0 %. pass^3 of one task can then be one of 4 "
        "values. A task that fails 10 % of the time shows it in 40.9 % of such sets of trials."
    )


@pytest.mark.parametrize(
    ("n", "k", "sentence"),
    [
        (5, 5, "5 trials a task tell its rate in steps of 20.0 %. pass^5 of one task is then 0 or 1: one failure makes it 0."),
        (1, 1, "1 trial a task tells that it passed or failed, and no rate between. pass^1 of one task is then 0 or 1: one failure makes it 0."),
        (1, 3, "1 trial a task tells that it passed or failed, and no rate between. It gives no pass^3, which takes 3 trials a task."),
    ],
)  # fmt: skip
def test_plan_resolution_without_rates(n: int, k: int, sentence: str) -> None:
    assert plan_resolution(n, k, []).sentence == sentence


@pytest.mark.parametrize(
    ("n", "k", "rate"), [(0, 1, "0"), (1001, 1, "0"), (1, 0, "0"), (1, 1001, "0"), (1, 1, "2")]
)
def test_plan_resolution_refuses_what_cannot_be(n: int, k: int, rate: str) -> None:
    with pytest.raises(ValueError, match="cannot be|lies between"):
        plan_resolution(n, k, [Fraction(rate)])


@pytest.mark.parametrize(
    ("expected", "n", "n_may_fail", "sentence"),
    [
        ("1", 59, 0, "If 100 % of trials pass, 59 trials show at least 95 % with 95 % confidence, all of which pass."),
        ("0.98", 181, 4, "If 98 % of trials pass, 181 trials show at least 95 % with 95 % confidence, of which 4 may fail."),
        ("0.95", None, None, "If 95 % of trials pass, no number of trials that could be run shows 95 % with 95 % confidence."),
        ("0.9500000001", None, None, "If 95.00000001 % of trials pass, no number of trials that could be run shows 95 % with 95 % confidence."),
    ],
)  # fmt: skip
def test_plan_lower_bound_counts_trials(
    expected: str, n: int | None, n_may_fail: int | None, sentence: str
) -> None:
    limit = Fraction("0.95")
    assert plan_lower_bound(limit, Fraction(expected)) == LowerBoundPlan(
        limit, Fraction(expected), n, n_may_fail, sentence
    )


def test_plan_lower_bound_is_the_fewest() -> None:
    plan = plan_lower_bound(Fraction("0.9"), Fraction("0.96"))
    assert plan.n is not None
    assert plan.n_may_fail is not None
    there, before = (
        lower_bound(plan.n - plan.n_may_fail, plan.n),
        lower_bound(plan.n - 1 - plan.n_may_fail, plan.n - 1),
    )
    assert there is not None
    assert before is not None
    assert before < 0.9 <= there
    assert Fraction(plan.n_may_fail, plan.n) >= Fraction("0.04")


@pytest.mark.parametrize(("limit", "expected"), [("0", "1"), ("1", "1"), ("0.5", "1.5")])
def test_plan_lower_bound_refuses_what_cannot_be(limit: str, expected: str) -> None:
    with pytest.raises(ValueError, match="lies between"):
        plan_lower_bound(Fraction(limit), Fraction(expected))
