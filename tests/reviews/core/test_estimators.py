"""Known answers, the edges at nothing, one and all-pass, and two independent implementations."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.core.estimators import (
    Counts,
    Interval,
    KnownSum,
    Range,
    SuiteMean,
    TaskCounts,
    clean_trials_needed,
    clopper_pearson,
    known_sum,
    known_text,
    lower_bound,
    mean_pass_at_k,
    mean_pass_hat_k,
    mean_task_rate,
    median,
    nearest_rank,
    pass_at_k,
    pass_hat_k,
    pass_hat_k_range,
    percent,
    rate_text,
    upper_bound,
    zero_violation_bound,
)


def task(name: str, passed: int, graded: int, run: int | None = None) -> TaskCounts:
    return TaskCounts(name, Counts(passed, graded, graded if run is None else run))


@pytest.mark.parametrize(
    ("n", "c", "k", "at_k", "hat_k"),
    [
        (10, 6, 1, Fraction(6, 10), Fraction(6, 10)),
        (10, 6, 3, 1 - Fraction(4, 120), Fraction(20, 120)),
        (10, 8, 1, Fraction(8, 10), Fraction(8, 10)),
        (10, 8, 2, Fraction(44, 45), Fraction(28, 45)),
        (10, 8, 3, Fraction(1), Fraction(56, 120)),
        (10, 10, 3, Fraction(1), Fraction(1)),
        (2, 2, 3, None, None),
        (0, 0, 1, None, None),
        (1, 0, 1, Fraction(0), Fraction(0)),
        (1, 1, 1, Fraction(1), Fraction(1)),
        (5, 0, 5, Fraction(0), Fraction(0)),
        (5, 2, 5, Fraction(1), Fraction(0)),
    ],
)
def test_pass_k_known_answers(
    n: int, c: int, k: int, at_k: Fraction | None, hat_k: Fraction | None
) -> None:
    assert (pass_at_k(n, c, k), pass_hat_k(n, c, k)) == (at_k, hat_k)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 2, 0), (3, 4, 1), (3, -1, 1)])
def test_pass_k_refuses_counts_that_cannot_be(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        pass_at_k(n, c, k)
    with pytest.raises(ValueError, match="cannot be"):
        pass_hat_k(n, c, k)


def test_mean_over_tasks_is_never_pooled() -> None:
    tasks = [task("a", 10, 10), task("b", 4, 10)]

    mean = mean_pass_hat_k(tasks, 3)

    assert mean == SuiteMean((1 + Fraction(4, 120)) / 2, 2, ())
    assert mean.value is not None
    assert round(float(mean.value), 6) == 0.516667
    assert mean.value != Fraction(14, 20) ** 3


def test_mean_over_tasks_names_those_left_out() -> None:
    tasks = [task("k4", 4, 4), task("k2", 2, 2), task("k1z", 0, 1)]

    assert mean_pass_hat_k(tasks, 4) == SuiteMean(Fraction(1), 1, ("k2", "k1z"))
    assert mean_pass_at_k(tasks, 2) == SuiteMean(Fraction(1), 2, ("k1z",))
    assert mean_pass_at_k(tasks, 5) == SuiteMean(None, 0, ("k4", "k2", "k1z"))
    assert mean_pass_hat_k([], 1) == SuiteMean(None, 0, ())


def test_mean_of_task_rates_is_not_the_rate_of_trials() -> None:
    tasks = [task("a", 1, 1), task("b", 0, 9), task("c", 0, 0, 3)]

    assert mean_task_rate(tasks) == SuiteMean(Fraction(1, 2), 2, ("c",))


def test_pass_hat_k_range_is_over_slots() -> None:
    tasks = [task("a", 3, 3, 4), task("b", 4, 4)]

    assert pass_hat_k_range(tasks, 4) == Range(Fraction(1, 2), Fraction(1))
    assert pass_hat_k_range(tasks, 5) is None
    assert pass_hat_k_range([], 1) is None


def test_counts_errors_are_unknown_not_dropped() -> None:
    counts = Counts(2, 3, 5)

    assert counts.rate == Fraction(2, 3)
    assert counts.range == Range(Fraction(2, 5), Fraction(4, 5))
    assert (counts.failed, counts.unknown) == (1, 2)
    assert rate_text(counts) == "66.7 % (2/3)"


def test_counts_one_survivor_never_reads_as_certain() -> None:
    counts = Counts(1, 1, 8)

    assert counts.range == Range(Fraction(1, 8), Fraction(1))


def test_counts_of_nothing_have_no_rate() -> None:
    nothing, ungraded = Counts(0, 0, 0), Counts(0, 0, 1, missing=1)

    assert (nothing.rate, nothing.range, rate_text(nothing)) == (None, None, "-")
    assert (ungraded.rate, ungraded.range) == (None, Range(Fraction(0), Fraction(1)))


def test_counts_add_up() -> None:
    assert Counts(1, 2, 4, 1) + Counts(2, 2, 3) == Counts(3, 4, 7, 1)


@pytest.mark.parametrize("counts", [(-1, 0, 0, 0), (2, 1, 3, 0), (1, 3, 2, 0), (1, 2, 2, 1)])
def test_counts_that_cannot_be(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        Counts(*counts)


def test_zero_violation_bound_known_answers() -> None:
    bounds = {n: round(zero_violation_bound(n) or 0, 6) for n in (1, 40, 200)}

    assert bounds == {1: 0.95, 40: 0.072158, 200: 0.014867}
    assert zero_violation_bound(0) is None
    assert clean_trials_needed(0.005) == 598
    assert (zero_violation_bound(597) or 0) > 0.005 >= (zero_violation_bound(598) or 1)


@pytest.mark.parametrize("bound", [0, 1, -0.1, 1.5])
def test_clean_trials_needed_refuses_what_is_no_bound(bound: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        clean_trials_needed(bound)


@given(st.floats(0.0005, 0.9))
def test_clean_trials_needed_is_the_fewest(bound: float) -> None:
    n = clean_trials_needed(bound)

    assert 1 - 0.05 ** (1 / n) <= bound + 1e-12
    assert n == 1 or 1 - 0.05 ** (1 / (n - 1)) > bound - 1e-12


def test_interval_of_nothing_one_and_all() -> None:
    assert (clopper_pearson(0, 0), upper_bound(0, 0), lower_bound(0, 0)) == (None, None, None)
    assert clopper_pearson(0, 1) == Interval(0.0, pytest.approx(0.975))
    assert clopper_pearson(1, 1) == Interval(pytest.approx(0.025), 1.0)
    assert (lower_bound(1, 1), upper_bound(1, 1)) == (pytest.approx(0.05), 1.0)
    assert (lower_bound(0, 9), upper_bound(9, 9)) == (0.0, 1.0)


@pytest.mark.parametrize("bound", [clopper_pearson, upper_bound, lower_bound])
def test_interval_refuses_counts_that_cannot_be(bound: object) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        bound(3, 2)  # type: ignore[operator]


@pytest.mark.parametrize("n", [1, 2, 5, 20, 97])
def test_clopper_pearson_agrees_with_scipy(n: int) -> None:
    from scipy.stats import binomtest

    for c in range(n + 1):
        two_sided = binomtest(c, n).proportion_ci(0.95, method="exact")
        above = binomtest(c, n, alternative="less").proportion_ci(0.95, method="exact")
        below = binomtest(c, n, alternative="greater").proportion_ci(0.95, method="exact")

        assert clopper_pearson(c, n) == Interval(
            pytest.approx(two_sided.low, abs=1e-12), pytest.approx(two_sided.high, abs=1e-12)
        )
        assert upper_bound(c, n) == pytest.approx(above.high, abs=1e-12)
        assert lower_bound(c, n) == pytest.approx(below.low, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        ([], 95, None),
        ([7], 95, 7),
        ([15, 20, 35, 40, 50], 5, 15),
        ([50, 20, 35, 40, 15], 30, 20),
        ([15, 20, 35, 40, 50], 40, 20),
        ([15, 20, 35, 40, 50], 100, 50),
        (list(range(1, 21)), 95, 19),
        (list(range(1, 22)), 95, 20),
    ],
)
def test_nearest_rank_known_answers(values: list[int], wanted: int, expected: int | None) -> None:
    assert nearest_rank(values, wanted) == expected


@given(st.lists(st.integers(0, 1000), min_size=1), st.integers(1, 100))
def test_nearest_rank_agrees_with_numpy(values: list[int], wanted: int) -> None:
    import numpy as np

    assert nearest_rank(values, wanted) == np.percentile(values, wanted, method="inverted_cdf")


@pytest.mark.parametrize("wanted", [0, 101])
def test_nearest_rank_refuses_what_is_no_percentile(wanted: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 100"):
        nearest_rank([1], wanted)


def test_median_of_decimals() -> None:
    tenths = [Decimal(n) / 10 for n in (3, 1, 2)]

    assert median([]) is None
    assert median(tenths[:1]) == Decimal("0.3")
    assert median(tenths) == Decimal("0.2")
    assert median([*tenths, Decimal("0.4")]) == Decimal("0.25")


def test_known_sum_of_ten_dimes_is_one() -> None:
    assert known_sum([Decimal("0.1")] * 10) == KnownSum(Decimal("1.0"), 10, 10)
    assert known_text(known_sum([Decimal("0.1")])) == ""


def test_known_sum_missing_is_not_zero() -> None:
    cost = known_sum([None, Decimal("0.0123"), None])

    assert cost == KnownSum(Decimal("0.0123"), 1, 3)
    assert cost.mean == Decimal("0.0123")
    assert known_text(cost) == "known for 1 of 3 trials"


def test_known_sum_of_nothing_known() -> None:
    assert known_sum([]) == KnownSum(None, 0, 0)
    assert known_sum([None]) == KnownSum(None, 0, 1)
    assert known_sum([None]).mean is None


def test_known_sum_keeps_every_digit() -> None:
    big, small = Decimal(107505301260286111), Decimal("0.000000000000000000001")

    assert known_sum([big, small]).total == Decimal("107505301260286111.000000000000000000001")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (Fraction(0), "0.0 %"),
        (Fraction(1), "100.0 %"),
        (Fraction(17, 18), "94.4 %"),
        (Fraction(19, 20), "95.0 %"),
        (Fraction(2, 3), "66.7 %"),
        (Fraction(1, 3), "33.3 %"),
        (Fraction(9496, 10000), "94.9 %"),
        (Fraction(99999, 100000), "99.9 %"),
        (Fraction(1, 100000), "< 0.1 %"),
        (Fraction(1, 1000), "0.1 %"),
        (Fraction(125, 1000), "12.5 %"),
    ],
)
def test_percent_never_claims_more_than_there_is(value: Fraction | None, text: str) -> None:
    assert percent(value) == text


def test_percent_keeps_to_its_side_of_a_threshold() -> None:
    ceiling, floor = [Fraction(1, 100)], [Fraction(825, 1000)]

    assert percent(Fraction(104, 10000), ceiling) == "1.04 %"
    assert percent(Fraction(1, 100), ceiling) == "1.0 %"
    assert percent(Fraction(8248, 10000), floor) == "82.4 %"
    assert percent(Fraction(8248, 10000)) == "82.5 %"
    assert percent(Fraction(8242, 10000), floor) == "82.4 %"
    assert percent(Fraction(825, 1000), floor) == "82.5 %"
    assert percent(Fraction(1, 3), [Fraction(1, 3)]) == "33.3 %"
    assert percent(Fraction(1, 3), [Fraction(3333, 10000)]) == "33.333 %"
    assert percent(Fraction(2, 3), [Fraction(6667, 10000)]) == "66.6 %"


def test_percent_shows_more_digits_between_two_close_thresholds() -> None:
    close = [Fraction(1, 500), Fraction(1, 1000)]

    assert percent(Fraction(91, 63334), close) == "0.14 %"
    assert percent(Fraction(20001, 10**7), close) == "0.20001 %"
    assert percent(Fraction(20001, 10**7), [*close, Fraction(3, 1000)]) == "0.20001 %"


@given(
    st.fractions(0, 1), st.lists(st.fractions(0, 1).map(lambda f: Fraction(round(f * 1000), 1000)))
)
def test_percent_never_reaches_a_threshold_that_the_rate_misses(
    value: Fraction, thresholds: list[Fraction]
) -> None:
    text = percent(value, thresholds)

    if text.startswith("<"):
        assert 0 < value < Fraction(1, 1000)
        return
    shown = Fraction(text.removesuffix(" %")) / 100
    assert abs(shown - value) < Fraction(1, 1000)
    for threshold in [Fraction(1), *thresholds]:
        if value < threshold:
            assert shown < threshold
        if value > threshold and threshold in thresholds:
            assert shown > threshold


def test_rate_text_says_what_it_is_a_rate_of() -> None:
    assert rate_text(Counts(17, 18, 18)) == "94.4 % (17/18)"


@given(st.integers(1, 30), st.data())
def test_pass_k_properties(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    hat, at = pass_hat_k(n, c, k), pass_at_k(n, c, k)

    assert hat is not None
    assert at is not None
    assert 0 <= hat <= Fraction(c, n) <= at <= 1
    assert (at == 0) == (c == 0)
    assert (hat == 1) == (c == n)


@given(
    st.lists(
        st.integers(0, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=6
    ),
    st.integers(1, 13),
)
def test_means_are_the_means_of_the_tasks(counts: list[tuple[int, int]], k: int) -> None:
    tasks = [task(str(number), c, n) for number, (n, c) in enumerate(counts)]

    for mean, estimate in ((mean_pass_hat_k, pass_hat_k), (mean_pass_at_k, pass_at_k)):
        values = [value for n, c in counts if (value := estimate(n, c, k)) is not None]
        expected = sum(values, Fraction(0)) / len(values) if values else None
        assert mean(tasks, k).value == expected
