"""Bounds against scipy and statsmodels, and exact decisions where a float cannot be trusted."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from scipy.stats import beta, binomtest
from statsmodels.stats.proportion import proportion_confint

from reviews.core.estimators import clopper_pearson, lower_bound, upper_bound
from reviews.core.gate.bounds import (
    MOST_MORE,
    fewest_more,
    lower_above,
    lower_at_least,
    upper_at_most,
    upper_below,
)

CASES = [
    (c, n)
    for n in (1, 2, 3, 5, 10, 20, 40, 59, 200, 500, 598, 1_000, 20_000)
    for c in sorted({0, 1, 2, n // 20, n // 2, n - 1, n})
    if 0 <= c <= n
]


@pytest.mark.parametrize(("c", "n"), CASES)
def test_intervals_equal_scipy_and_statsmodels(c: int, n: int) -> None:
    found = clopper_pearson(c, n)
    scipy = binomtest(c, n).proportion_ci(confidence_level=0.95, method="exact")
    others = proportion_confint(c, n, alpha=0.05, method="beta")
    assert found is not None
    assert (found.low, found.high) == pytest.approx((scipy.low, scipy.high), abs=1e-9)
    assert (found.low, found.high) == pytest.approx(others, abs=1e-9)


@pytest.mark.parametrize(("c", "n"), CASES)
def test_one_sided_bounds_equal_scipy_and_statsmodels(c: int, n: int) -> None:
    low, high = lower_bound(c, n), upper_bound(c, n)
    below = binomtest(c, n, alternative="greater").proportion_ci(0.95, method="exact").low
    above = binomtest(c, n, alternative="less").proportion_ci(0.95, method="exact").high
    assert (low, high) == pytest.approx((below, above), abs=1e-9)
    assert (low, high) == pytest.approx(
        proportion_confint(c, n, alpha=0.1, method="beta"), abs=1e-9
    )
    if 0 < c < n:
        assert low == pytest.approx(beta.ppf(0.05, c, n - c + 1), abs=1e-12)
        assert high == pytest.approx(beta.ppf(0.95, c + 1, n - c), abs=1e-12)


@pytest.mark.parametrize(
    ("n", "bound"), [(200, 0.014867), (40, 0.072158), (598, 0.004997), (1, 0.95)]
)
def test_bound_of_no_violation_is_the_known_answer(n: int, bound: float) -> None:
    assert upper_bound(0, n) == pytest.approx(bound, abs=5e-7)


def tail(c: int, n: int, p: Fraction) -> Fraction:
    """P(X <= c), term by term."""
    return sum((comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(c + 1)), Fraction(0))


@pytest.mark.parametrize(("c", "n"), [(c, n) for n in range(1, 13) for c in range(n)])
@pytest.mark.parametrize("nudge", [-1, 0, 1])
def test_near_a_bound_the_exact_tail_decides(c: int, n: int, nudge: int) -> None:
    """Limits a few billionths of a billionth beside the bound, which no float tells apart."""
    found = upper_bound(c, n)
    assert found is not None
    limit = Fraction(found) + nudge * Fraction(1, 10**18)
    chance = tail(c, n, limit)
    assert upper_at_most(c, n, limit) is (chance <= Fraction(1, 20))
    assert upper_below(c, n, limit) is (chance < Fraction(1, 20))
    assert lower_at_least(n - c, n, 1 - limit) is (chance <= Fraction(1, 20))
    assert lower_above(n - c, n, 1 - limit) is (chance < Fraction(1, 20))


def test_exact_tail_decides_a_limit_that_is_the_bound_itself() -> None:
    """One failed trial of one: P(X <= 0) = 1 - p is 5 % for p = 0.95, exactly."""
    limit = Fraction(95, 100)
    assert upper_at_most(0, 1, limit)
    assert not upper_below(0, 1, limit)
    assert not lower_above(1, 1, 1 - limit)
    assert lower_at_least(1, 1, Fraction(5, 100))
    assert not lower_at_least(1, 1, Fraction(5, 100) + Fraction(1, 10**30))


def test_float_trap_is_told_apart() -> None:
    """0.1 + 0.2 is above 0.3 as floats add; the fractions are equal."""
    assert upper_at_most(0, 1, Fraction("0.95")) is True
    assert upper_at_most(0, 1, Fraction("0.94999999999999999999")) is False


def test_bounds_at_nothing_and_at_all() -> None:
    half = Fraction(1, 2)
    assert [upper_at_most(0, 0, half), upper_below(0, 0, half)] == [False, False]
    assert [lower_at_least(0, 0, half), lower_above(0, 0, half)] == [False, False]
    assert [upper_at_most(3, 3, Fraction(1)), upper_at_most(3, 3, half)] == [True, False]
    assert [upper_below(3, 3, Fraction(1)), upper_below(0, 3, Fraction(1))] == [False, True]
    assert [lower_at_least(0, 3, Fraction(0)), lower_at_least(0, 3, half)] == [True, False]
    assert [lower_above(0, 3, Fraction(0)), lower_above(1, 3, Fraction(0))] == [False, True]


def test_many_trials_are_decided_by_the_float() -> None:
    n = 1_000_000
    bound = upper_bound(n // 2, n)
    assert bound is not None
    assert upper_at_most(n // 2, n, Fraction(bound))
    assert not upper_below(n // 2, n, Fraction(bound))


def test_fewest_more_is_the_first_that_holds() -> None:
    assert fewest_more(lambda n: n >= 0) == 0
    assert [fewest_more(lambda n, least=least: n >= least) for least in range(1, 40)] == list(
        range(1, 40)
    )
    assert fewest_more(lambda n: False) is None
    assert fewest_more(lambda n: n > MOST_MORE) is None


def test_fewest_clean_trials_are_the_known_answer() -> None:
    half_a_percent = Fraction(5, 1000)
    assert fewest_more(lambda n: upper_at_most(0, n, half_a_percent)) == 598
    assert fewest_more(lambda n: upper_at_most(0, 500 + n, half_a_percent)) == 98
