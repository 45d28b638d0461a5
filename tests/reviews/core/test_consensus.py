"""What the people who labelled an item say of it together."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.core.consensus import Consensus, consensus_of, needs_third
from traces.core.records import VerdictValue as V

SAID = (V.PASS, V.FAIL, V.UNKNOWN)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), None),
        ((V.PASS,), None),
        ((V.PASS, V.PASS), Consensus.PASS),
        ((V.FAIL, V.FAIL), Consensus.FAIL),
        ((V.UNKNOWN, V.UNKNOWN), Consensus.UNKNOWN),
        ((V.PASS, V.FAIL), None),
        ((V.PASS, V.FAIL, V.PASS), Consensus.PASS),
        ((V.PASS, V.FAIL, V.FAIL), Consensus.FAIL),
        ((V.UNKNOWN, V.PASS, V.UNKNOWN), Consensus.UNKNOWN),
        ((V.PASS, V.FAIL, V.UNKNOWN), Consensus.SPLIT),
    ],
)
def test_two_alike_or_two_of_three_decide(
    values: tuple[V, ...], expected: Consensus | None
) -> None:
    assert consensus_of(values) is expected


@pytest.mark.parametrize("value", SAID)
def test_one_label_decides_only_where_no_second_one_is_asked_for(value: V) -> None:
    assert consensus_of([value], n_needed=1) is Consensus(value.value)
    assert consensus_of([value]) is None
    assert consensus_of([], n_needed=1) is None


def test_a_third_person_is_asked_where_the_first_two_differ() -> None:
    for first, second in product(SAID, SAID):
        assert needs_third(first, second) is (first is not second)
        assert (consensus_of([first, second]) is None) is needs_third(first, second)


@given(st.lists(st.sampled_from(SAID), min_size=3, max_size=3), st.randoms())
def test_the_order_of_three_labels_says_nothing(values: list[V], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert consensus_of(values) is consensus_of(shuffled)


def test_values_that_people_do_not_give_and_a_fourth_label_are_refused() -> None:
    with pytest.raises(ValueError, match="people do not label an item 'error'"):
        consensus_of([V.PASS, V.ERROR])
    with pytest.raises(ValueError, match="at most three labels, not 4"):
        consensus_of([V.PASS] * 4)
