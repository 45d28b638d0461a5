from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from scipy import stats

from reviews.core.estimators import Counts, Range, pass_hat_k_range
from reviews.core.overview import (
    MOST_K,
    Efficiency,
    HarmCounts,
    Recovery,
    Spread,
    Unit,
    UnitCounts,
    change_between,
    interval_of_mean,
    largest_k,
    slice_of,
    spend_per_success,
    step_efficiency,
    unit_key,
    usual_k,
)


def unit(
    task: str, passed: int, graded: int, *, version: int = 1, contract: int = 1, **more: int
) -> UnitCounts:
    """A unit whose trials pass or fail in every figure alike."""
    same = {
        "n_pass": passed,
        "n_fail": graded - passed,
        "outcome_passed": passed,
        "outcome_graded": graded,
        "clean_passed": passed,
        "clean_graded": graded,
    }
    return UnitCounts(Unit(task, version, contract, family="f"), **{**same, **more})


def test_five_refunds_reach_the_outcome_and_two_by_the_rules() -> None:
    found = slice_of([unit("refund", 2, 5, outcome_passed=5, n_only_outcome=3)], 5)
    assert (found.outcome.rate, found.clean.rate, found.gap) == (
        Fraction(1),
        Fraction(2, 5),
        Fraction(3, 5),
    )
    assert (found.outcome_hat.value, found.clean_hat.value) == (Fraction(1), Fraction(0))
    assert found.n_only_outcome == 3


def test_pass_hat_k_is_a_mean_over_tasks_and_never_pooled() -> None:
    hat = slice_of([unit("a", 10, 10), unit("b", 4, 10)], 3).clean_hat
    assert hat.value == Fraction(31, 60)
    assert float(Fraction(31, 60)) == pytest.approx(0.516667, abs=1e-6)
    assert hat.range == Range(Fraction(31, 60), Fraction(31, 60))


def test_versions_of_a_task_are_units_of_their_own() -> None:
    hat = slice_of([unit("a", 5, 5), unit("a", 0, 5, version=2)], 5).clean_hat
    assert (hat.value, hat.mean.n_tasks) == (Fraction(1, 2), 2)


def test_unknown_and_missing_trials_widen_the_range() -> None:
    found = slice_of([unit("a", 2, 3, n_error=1, n_unresolved=1, n_missing=2)], 1)
    assert found.clean == Counts(2, 3, 7, 2)
    assert found.clean.range == Range(Fraction(2, 7), Fraction(6, 7))
    assert (found.n_error, found.n_unresolved, found.n_missing) == (1, 1, 2)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7])
def test_the_range_of_pass_hat_k_is_the_one_of_a_gate(k: int) -> None:
    units = [
        unit("a", 2, 3, n_error=1, n_missing=2),
        unit("b", 4, 4),
        unit("c", 0, 2, n_unresolved=2),
    ]
    hat = slice_of(units, k).clean_hat
    assert hat.range == pass_hat_k_range(hat.tasks, k)


def test_no_unit_gives_no_rate() -> None:
    found = slice_of([], 3)
    assert (found.outcome.rate, found.clean.range, found.gap) == (None, None, None)
    assert (found.clean_hat.value, found.clean_hat.range, found.clean_hat.interval) == (
        None,
        None,
        None,
    )


def test_a_task_with_fewer_trials_is_named() -> None:
    mean = slice_of([unit("few", 2, 2), unit("enough", 3, 3)], 3).clean_hat.mean
    assert (mean.value, mean.left_out) == (Fraction(1), ("few",))


@pytest.mark.parametrize(
    ("graded", "usual", "largest"),
    [
        pytest.param([], 1, 1, id="none"),
        pytest.param([0], 1, 1, id="nothing-graded"),
        pytest.param([5, 5, 5, 1], 5, 5, id="one-straggler"),
        pytest.param([4, 2], 4, 4, id="half-of-them"),
        pytest.param([4, 2, 1], 2, 4, id="uneven"),
        pytest.param([100], MOST_K, MOST_K, id="many"),
    ],
)
def test_the_k_to_begin_with(graded: list[int], usual: int, largest: int) -> None:
    counts = [Counts(0, n, n) for n in graded]
    assert (usual_k(counts), largest_k(counts)) == (usual, largest)


def test_the_interval_of_a_mean_is_near_that_of_an_independent_bootstrap() -> None:
    values = tuple((n % 5) / 4 for n in range(40))
    found = interval_of_mean(tuple(sorted(values)))
    other = stats.bootstrap(
        (list(values),),
        lambda x, axis: x.mean(axis=axis),
        method="percentile",
        n_resamples=5_000,
        rng=1,
    ).confidence_interval
    assert found is not None
    assert found.low == pytest.approx(other.low, abs=0.02)
    assert found.high == pytest.approx(other.high, abs=0.02)


def test_one_task_has_no_interval_and_equal_tasks_one_without_width() -> None:
    assert interval_of_mean((1.0,)) is None
    found = interval_of_mean((1.0, 1.0))
    assert found is not None
    assert (found.low, found.high) == (1, 1)


def test_step_efficiency_is_against_the_shortest_passing_path_of_each_task() -> None:
    units = [
        unit("a", 2, 2, n_calls=12),
        unit("b", 1, 2, n_calls=4),
        unit("none", 0, 2, n_calls=4),
        unit("ungraded", 0, 0),
        unit("silent", 1, 1),
    ]
    shortest = {unit_key(units[0].unit): 4, unit_key(units[1].unit): 2, unit_key(units[4].unit): 0}
    assert step_efficiency(units, shortest) == Efficiency(Fraction(5, 4), 2, 2)
    assert step_efficiency([], {}) == Efficiency(None, 0, 0)


def test_zero_violations_have_a_bound_over_trials_and_over_tasks() -> None:
    clean = HarmCounts("money", 0, 0, 200, 210, 0, 40)
    assert clean.n_known == 200
    assert clean.trial_bound == pytest.approx(0.014867, abs=1e-6)
    assert clean.task_bound == pytest.approx(0.072158, abs=1e-6)
    violated = HarmCounts("", 3, 1, 97, 100, 2, 18)
    assert violated.trial_bound == pytest.approx(float(stats.beta.ppf(0.95, 4, 97)))
    assert violated.task_bound == pytest.approx(float(stats.beta.ppf(0.95, 3, 18)))
    nothing = HarmCounts("", 0, 0, 0, 5, 0, 0)
    assert (nothing.trial_bound, nothing.task_bound) == (None, None)


def test_recovery_has_an_interval() -> None:
    found = Recovery(Counts(21, 25, 26), 15, 6).interval
    wanted = stats.binomtest(21, 25).proportion_ci(0.95, "exact")
    assert found is not None
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_spend_per_success_needs_every_cost_and_a_success() -> None:
    known = Spread(None, None, Decimal("1.00"), 10, 10)
    assert spend_per_success(known, 4) == Decimal("0.25")
    assert spend_per_success(known, 0) is None
    assert spend_per_success(Spread(None, None, Decimal(1), 9, 10), 4) is None
    assert spend_per_success(Spread(None, None, None, 0, 0), 4) is None
    assert known.mean == Decimal("0.1")
    assert Spread(None, None, None, 0, 3).mean is None


def test_only_the_same_versions_are_compared_and_the_rest_is_named() -> None:
    then = [
        unit("same", 5, 5),
        unit("gone", 1, 1),
        unit("version", 1, 1),
        unit("contract", 1, 1),
        unit("ungraded", 0, 0, n_unresolved=1),
        unit("absent", 0, 0, version=0, contract=0, n_missing=1),
    ]
    now = [
        unit("same", 4, 5),
        unit("new", 1, 1),
        unit("version", 1, 1, version=2),
        unit("contract", 1, 1, contract=2),
        unit("ungraded", 1, 1),
    ]
    found = change_between(then, now, 5)
    assert found.n_pairs == 2
    assert found.passing.to_fail == found.outcome.to_fail == found.clean.to_fail == ("same",)
    assert [name for name, _ in found.families] == ["f"]
    assert (found.then.passing.passed, found.now.passing.passed) == (5, 5)
    assert [(each.unit.task, each.reason) for each in found.unpaired] == [
        ("new", "only_now"),
        ("version", "other_task_version"),
        ("contract", "other_contract"),
        ("gone", "only_then"),
        ("version", "other_task_version"),
        ("contract", "other_contract"),
        ("ungraded", "not_graded"),
    ]
