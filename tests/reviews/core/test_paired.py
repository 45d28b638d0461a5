from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reviews.core.estimators import Counts
from reviews.core.paired import (
    MONTE_CARLO_DRAWS,
    Pair,
    exact_mcnemar,
    paired_by_group,
    paired_figures,
    sign_flip_test,
)

fifths = st.integers(-5, 5).map(lambda n: Fraction(n, 5))


def by_enumeration(differences: list[Fraction]) -> Fraction:
    """All sign patterns, one by one."""
    observed = abs(sum(differences, Fraction(0)))
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    far = sum(
        abs(sum((s * d for s, d in zip(signs, differences, strict=True)), Fraction(0))) >= observed
        for signs in patterns
    )
    return Fraction(far, len(patterns))


@given(st.lists(st.fractions(-1, 1, max_denominator=12), min_size=1, max_size=9))
@settings(max_examples=60, deadline=None)
def test_the_exact_test_is_the_share_of_sign_patterns(differences: list[Fraction]) -> None:
    found = sign_flip_test(differences)
    assert found is not None
    assert (found.p, found.n_tasks, found.is_exact) == (
        by_enumeration(differences),
        len(differences),
        True,
    )


def test_the_exact_test_agrees_with_scipy() -> None:
    differences = [Fraction(n, 5) for n in (3, 1, -1, 2, 0, 4, -2, 5)]
    found = sign_flip_test(differences)
    other = stats.permutation_test(
        (np.array([float(d) for d in differences]),),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="two-sided",
        vectorized=True,
    )
    assert found is not None
    assert float(found.p) == pytest.approx(other.pvalue, abs=1e-12)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        pytest.param([Fraction(0)] * 4, 1, id="no-difference"),
        pytest.param([Fraction(1)], 1, id="one-task"),
        pytest.param([Fraction(1, 5)] * 5, Fraction(1, 16), id="all-one-way"),
        pytest.param([Fraction(1, 5), Fraction(-1, 5)], 1, id="cancelled-out"),
    ],
)
def test_known_p_values(differences: list[Fraction], p: Fraction) -> None:
    found = sign_flip_test(differences)
    assert found is not None
    assert found.p == p


def test_no_task_has_no_test() -> None:
    assert sign_flip_test([]) is None


def test_sixteen_different_sizes_are_still_exact() -> None:
    found = sign_flip_test([Fraction(1, 2**n) for n in range(16)])
    assert found is not None
    assert (found.p, found.is_exact) == (Fraction(2, 2**16), True)


def test_many_different_sizes_are_drawn_and_the_same_each_time() -> None:
    differences = [Fraction(1, n) for n in range(3, 33)] + [Fraction(-1, n) for n in range(2, 12)]
    first, second = sign_flip_test(differences), sign_flip_test(differences)
    assert first == second
    assert first is not None
    assert not first.is_exact
    assert 0 < first.p <= 1
    assert first.p.denominator in {
        d for d in range(1, MONTE_CARLO_DRAWS + 2) if (MONTE_CARLO_DRAWS + 1) % d == 0
    }
    other = stats.permutation_test(
        (np.array([float(d) for d in differences]),),
        lambda x, axis: np.mean(x, axis=axis),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=True,
        rng=np.random.default_rng(1),
    )
    assert float(first.p) == pytest.approx(other.pvalue, abs=0.02)


def test_a_difference_that_no_signs_reach_is_never_said_to_be_impossible() -> None:
    found = sign_flip_test([Fraction(1, n) for n in range(2, 62)])
    assert found is not None
    assert found.p == Fraction(1, MONTE_CARLO_DRAWS + 1)


@given(st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_mcnemar_is_the_binomial_test(to_fail: int, to_pass: int) -> None:
    wanted = stats.binomtest(to_fail, to_fail + to_pass, 0.5).pvalue if to_fail + to_pass else 1.0
    assert float(exact_mcnemar(to_fail, to_pass)) == pytest.approx(wanted, abs=1e-12)


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=14))
@settings(deadline=None)
def test_with_one_trial_a_task_both_tests_say_the_same(signs: list[int]) -> None:
    found = sign_flip_test([Fraction(sign) for sign in signs])
    assert found is not None
    assert found.p == exact_mcnemar(signs.count(-1), signs.count(1))


def pair(task: str, then: tuple[int, int], now: tuple[int, int], group: str = "f") -> Pair:
    return Pair(task, group, Counts(*then, then[1]), Counts(*now, now[1]))


def test_tasks_are_averaged_and_never_pooled() -> None:
    found = paired_figures([pair("a", (10, 10), (9, 10)), pair("b", (0, 1), (1, 1))])
    assert (found.then, found.now) == (Fraction(1, 2), Fraction(19, 20))
    assert found.difference == Fraction(9, 20)
    assert (found.to_fail, found.to_pass) == (("a",), ("b",))
    assert found.mcnemar is None


def test_a_task_without_graded_trials_is_no_pair() -> None:
    apart = pair("a", (0, 0), (1, 1))
    assert apart.difference is None
    assert pair("b", (1, 2), (2, 2)).difference == Fraction(1, 2)
    found = paired_figures([apart])
    assert (found.n_tasks, found.then, found.difference) == (0, None, None)
    assert (found.test, found.mcnemar) == (None, None)


def test_mcnemar_stands_where_each_task_has_one_trial() -> None:
    found = paired_figures([pair(f"t{n}", (1, 1), (0, 1)) for n in range(4)])
    assert found.mcnemar == Fraction(1, 8)
    assert found.test is not None
    assert found.test.p == Fraction(1, 8)


def test_families_stand_on_their_own() -> None:
    pairs = [pair("a", (1, 1), (0, 1), "x"), pair("b", (0, 1), (1, 1), "w")]
    assert [(name, found.difference) for name, found in paired_by_group(pairs)] == [
        ("w", Fraction(1)),
        ("x", Fraction(-1)),
    ]
