"""Tables of two raters, agreement and kappa, against scikit-learn and published examples."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix

from reviews.core.agreement import (
    Kappa,
    Table,
    cohen_kappa,
    observed_agreement,
    prevalence,
    table_of,
)

LABELS = ("pass", "fail", "unknown")
pairs_of_labels = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=80
)
small_tables = st.lists(
    st.lists(st.integers(0, 40), min_size=2, max_size=2), min_size=2, max_size=2
)


def table(*counts: tuple[int, ...]) -> Table:
    return Table(LABELS[: len(counts)], counts)


def kappa_by_hand(shares: list[list[float]]) -> float:
    size = range(len(shares))
    rows = [sum(shares[i]) for i in size]
    columns = [sum(shares[i][j] for i in size) for j in size]
    expected = sum(rows[i] * columns[i] for i in size)
    return (sum(shares[i][i] for i in size) - expected) / (1 - expected)


def delta_method_error(counts: tuple[tuple[int, ...], ...]) -> float:
    """The standard error of kappa by numeric derivatives over the cells of a multinomial."""
    n = sum(map(sum, counts))
    shares = [[count / n for count in row] for row in counts]
    step = 1e-6
    squares = mean = 0.0
    for i, row in enumerate(shares):
        for j, share in enumerate(row):
            up = [list(each) for each in shares]
            down = [list(each) for each in shares]
            up[i][j] += step
            down[i][j] -= step
            slope = (kappa_by_hand(up) - kappa_by_hand(down)) / (2 * step)
            squares += share * slope**2
            mean += share * slope
    return math.sqrt((squares - mean**2) / n)


class TestTable:
    def test_it_counts_pairs_first_rater_in_rows(self) -> None:
        found = table_of([("pass", "fail"), ("pass", "fail"), ("fail", "fail")], ("pass", "fail"))

        assert found == Table(("pass", "fail"), ((0, 2), (0, 1)))
        assert (found.n, found.n_alike, found.rows, found.columns) == (3, 1, (2, 1), (0, 3))
        assert (found.count("pass", "fail"), found.count("fail", "pass")) == (2, 0)

    def test_no_pairs_make_an_empty_table(self) -> None:
        assert table_of([], ("pass", "fail")) == Table(("pass", "fail"), ((0, 0), (0, 0)))

    def test_labels_that_it_does_not_have_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"does not have: \['odd'\]"):
            table_of([("pass", "odd")], ("pass", "fail"))

    @pytest.mark.parametrize(
        ("labels", "counts"),
        [
            (("a", "b"), ((1, 2),)),
            (("a", "b"), ((1, 2), (3,))),
            (("a", "a"), ((1, 2), (3, 4))),
            (("a", "b"), ((1, 2), (3, -4))),
        ],
    )
    def test_a_table_that_cannot_be_is_refused(
        self, labels: tuple[str, ...], counts: tuple[tuple[int, ...], ...]
    ) -> None:
        with pytest.raises(ValueError, match=r"table|counts"):
            Table(labels, counts)

    @given(pairs_of_labels)
    def test_it_is_the_confusion_matrix_of_scikit_learn(self, pairs: list[tuple[str, str]]) -> None:
        first, second = zip(*pairs, strict=True)
        expected = confusion_matrix(first, second, labels=list(LABELS))
        assert table_of(pairs, LABELS).counts == tuple(map(tuple, expected.tolist()))


class TestObservedAgreement:
    @given(pairs_of_labels)
    def test_it_is_the_accuracy_of_scikit_learn(self, pairs: list[tuple[str, str]]) -> None:
        first, second = zip(*pairs, strict=True)
        found = observed_agreement(table_of(pairs, LABELS))
        assert found is not None
        assert float(found) == pytest.approx(accuracy_score(first, second))

    def test_nothing_no_agreement(self) -> None:
        assert observed_agreement(table((0, 0), (0, 0))) is None
        assert observed_agreement(table((0, 1), (0, 0))) == 0
        assert observed_agreement(table((0, 0), (0, 5))) == 1


def test_prevalence_is_the_share_that_the_first_rater_gave_a_label() -> None:
    assert prevalence(table((3, 1), (2, 2)), "pass") == Fraction(1, 2)
    assert prevalence(table((3, 1), (0, 0)), "fail") == 0
    assert prevalence(table((0, 0), (0, 0)), "pass") is None


class TestCohenKappa:
    @given(pairs_of_labels)
    def test_it_is_that_of_scikit_learn(self, pairs: list[tuple[str, str]]) -> None:
        first, second = zip(*pairs, strict=True)
        found = cohen_kappa(table_of(pairs, LABELS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = cohen_kappa_score(first, second, labels=list(LABELS))
        if found is None:
            assert math.isnan(expected)
        else:
            assert float(found.value) == pytest.approx(expected)

    def test_the_interval_is_that_which_sas_gives(self) -> None:
        found = cohen_kappa(table((0, 4, 1), (0, 8, 0), (0, 1, 5)))

        assert found is not None
        shown = [round(float(each), 4) for each in (found.value, found.low or 0, found.high or 0)]
        assert shown == [0.4842, 0.2137, 0.7547]

    @given(small_tables)
    def test_the_interval_is_that_of_the_delta_method(self, counts: list[list[int]]) -> None:
        rows = tuple(map(tuple, counts))
        found = cohen_kappa(table(*rows))
        if found is None or found.low is None or found.high is None:
            return
        reach = delta_method_error(rows) * norm.ppf(0.975)
        value = float(found.value)
        assert found.low == pytest.approx(max(value - reach, -1), abs=1e-4)
        assert found.high == pytest.approx(min(value + reach, 1), abs=1e-4)

    def test_a_higher_confidence_reaches_further(self) -> None:
        at_95 = cohen_kappa(table((20, 5), (4, 21)))
        at_99 = cohen_kappa(table((20, 5), (4, 21)), confidence=0.99)

        assert at_95 is not None
        assert at_99 is not None
        assert at_95.low is not None
        assert at_99.low is not None
        assert (at_95.value, at_95.low > at_99.low) == (at_99.value, True)

    def test_it_cannot_tell_of_nothing_and_of_one_class_only(self) -> None:
        assert cohen_kappa(table((0, 0), (0, 0))) is None
        assert cohen_kappa(table((9, 0), (0, 0))) is None
        assert cohen_kappa(table((0, 0), (0, 1))) is None

    def test_without_spread_there_is_a_value_and_no_interval(self) -> None:
        assert cohen_kappa(table((6, 0), (0, 4))) == Kappa(Fraction(1), None, None)
        assert cohen_kappa(table((6, 0), (4, 0))) == Kappa(Fraction(0), None, None)

    @given(small_tables)
    def test_swapping_the_raters_changes_nothing(self, counts: list[list[int]]) -> None:
        rows = tuple(map(tuple, counts))
        swapped = tuple(zip(*rows, strict=True))
        assert cohen_kappa(table(*rows)) == cohen_kappa(table(*swapped))

    @given(small_tables)
    def test_the_interval_holds_the_value_and_stays_within_bounds(
        self, counts: list[list[int]]
    ) -> None:
        found = cohen_kappa(table(*map(tuple, counts)))
        if found is not None and found.low is not None and found.high is not None:
            assert -1 <= found.low <= float(found.value) <= found.high <= 1
