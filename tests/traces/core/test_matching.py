from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from tests.traces.core.strategies import rule_sets, trajectories
from traces.core.matching import (
    ArgumentsMatch,
    ComparedCalls,
    Match,
    compared_calls,
    largest_assignment,
    match_of,
)
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.transcript import trajectory_of, transcript_of
from traces.core.values import Json

CASES = Path(__file__).parents[2] / "data" / "cases"
RULES = RuleSet((ArgumentRule("calculate", "expression", Arithmetic(), "spellings", "ada"),))
FARES = ("get_reservation", "check_fare_rules", "cancel_reservation", "book_flight")


def call(name: str, arguments: Json = None, *, step: int = 1) -> TrajectoryCall:
    return TrajectoryCall(
        name,
        {} if arguments is None else arguments,
        ArgumentsForm.JSON,
        CallOutcome.COMMITTED,
        step,
    )


def absent(name: str, *, step: int = 1) -> TrajectoryCall:
    return TrajectoryCall(name, None, ArgumentsForm.ABSENT, CallOutcome.UNKNOWN, step)


def invalid(name: str, text: str) -> TrajectoryCall:
    return TrajectoryCall(name, text, ArgumentsForm.INVALID, CallOutcome.UNKNOWN, 1)


def fares(*names: str, reservation: str = "R1") -> Trajectory:
    """Each call in a message of its own."""
    return tuple(call(name, {"id": reservation}, step=at) for at, name in enumerate(names))


def match(
    ours: Trajectory,
    reference: Trajectory,
    arguments: ArgumentsMatch = ArgumentsMatch.NAMES,
    rules: RuleSet | None = None,
) -> Match:
    return match_of(
        compared_calls(ours, arguments, rules), compared_calls(reference, arguments, rules)
    )


def modes(found: Match) -> tuple[bool, bool, bool, bool]:
    return (found.strict, found.unordered, found.subset, found.superset)


def written(*messages: str) -> ComparedCalls:
    """A letter a call, "?" one that is not comparable."""
    return ComparedCalls(
        tuple(tuple(None if c == "?" else c for c in message) for message in messages),
        frozenset("".join(messages)),
    )


# The known answers


@pytest.mark.parametrize(
    ("taken", "expected", "precision", "recall"),
    [
        pytest.param(fares(*FARES), (True, True, True, True), 1, 1, id="A"),
        pytest.param(
            fares(FARES[1], FARES[0], *FARES[2:]), (False, True, True, True), 1, 1, id="B"
        ),
        pytest.param(
            fares(FARES[0], "search_flights", *FARES[1:]),
            (False, False, False, True),
            Fraction(4, 5),
            1,
            id="C",
        ),
        pytest.param(
            fares(FARES[0], *FARES[2:]),
            (False, False, True, False),
            1,
            Fraction(3, 4),
            id="D",
        ),
        pytest.param(fares(*FARES, reservation="R2"), (True, True, True, True), 1, 1, id="E"),
    ],
)
def test_match_of_known_trajectories(
    taken: Trajectory,
    expected: tuple[bool, bool, bool, bool],
    precision: Fraction,
    recall: Fraction,
) -> None:
    found = match(taken, fares(*FARES))
    assert (modes(found), found.precision, found.recall) == (expected, precision, recall)


@pytest.mark.parametrize("arguments", [ArgumentsMatch.EXACT, ArgumentsMatch.RULES])
def test_match_of_a_wrong_reservation_fails_every_mode(arguments: ArgumentsMatch) -> None:
    found = match(fares(*FARES, reservation="R2"), fares(*FARES), arguments)
    assert modes(found) == (False, False, False, False)
    assert (found.precision, found.recall) == (Fraction(0), Fraction(0))
    assert (found.exact, found.in_order, found.any_order) == (False, False, False)


def stored_cases(name: str) -> list[Trajectory]:
    return [
        trajectory_of(transcript_of(json.loads(line)["messages"]))
        for line in (CASES / name).read_text().splitlines()
    ]


def test_match_of_calls_in_one_message_leaves_their_order_open() -> None:
    first, second = stored_cases("parallel-tool-calls--order-irrelevant.jsonl")
    assert [step.arguments for step in first if isinstance(step, TrajectoryCall)] != [
        step.arguments for step in second if isinstance(step, TrajectoryCall)
    ]
    found = match(second, first, ArgumentsMatch.EXACT)
    assert found == Match(2, 2, 2, strict=True, exact=True, in_order=True)


def test_match_of_a_call_made_twice_counts_it_once_against_one() -> None:
    east, west = call("weather", {"city": "East"}), call("weather", {"city": "West"})
    found = match((east, east), (east, west), ArgumentsMatch.EXACT)
    assert (found.n_matched, found.n_calls, found.n_reference) == (1, 2, 2)
    assert modes(found) == (False, False, False, False)


# What each figure means


@pytest.mark.parametrize(
    ("ours", "reference", "held"),
    [
        pytest.param(("ab",), ("ba",), "strict exact in_order", id="one-message"),
        pytest.param(("ab",), ("a", "b"), "exact in_order", id="one-message-for-two"),
        pytest.param(("b", "a"), ("ab",), "exact in_order", id="two-messages-for-one"),
        pytest.param(("ab", "c"), ("b", "ca"), "exact in_order", id="the-rest-joins-the-next"),
        pytest.param(("ab", "cd"), ("ac", "bd"), "", id="no-order-in-common"),
        pytest.param(("ab", "cd"), ("b", "a", "dc"), "exact in_order", id="split"),
        pytest.param(("x", "a", "xb", "c"), ("a", "bc"), "in_order", id="others-between"),
        pytest.param(("xab",), ("b", "a"), "in_order", id="two-steps-from-one-message"),
        pytest.param(("b", "a", "x"), ("a", "b"), "", id="swapped-and-more"),
        pytest.param(("x", "ab", "ab"), ("abb", "a"), "in_order", id="takes-what-it-can"),
        pytest.param((), (), "strict exact in_order", id="nothing"),
        pytest.param(("a",), (), "in_order", id="no-reference"),
        pytest.param((), ("a",), "", id="nothing-called"),
    ],
)
def test_match_of_messages(ours: tuple[str, ...], reference: tuple[str, ...], held: str) -> None:
    found = match_of(written(*ours), written(*reference))
    assert [
        name for name in ("strict", "exact", "in_order") if getattr(found, name)
    ] == held.split()


def test_match_of_no_calls_has_no_precision_and_no_reference_no_recall() -> None:
    nothing, something = written(), written("a")
    assert match_of(nothing, something).precision is None
    assert match_of(nothing, something).recall == 0
    assert match_of(something, nothing).precision == 0
    assert match_of(something, nothing).recall is None
    assert modes(match_of(nothing, nothing)) == (True, True, True, True)
    assert modes(match_of(nothing, something)) == (False, False, True, False)
    assert modes(match_of(something, nothing)) == (False, False, False, True)


def test_match_of_calls_without_arguments_never_holds_where_they_are_compared() -> None:
    taken = (absent("a"), call("b", step=2))
    by_names = compared_calls(taken, ArgumentsMatch.NAMES)
    assert (by_names.n_calls, by_names.n_not_comparable) == (2, 0)
    assert modes(match_of(by_names, by_names)) == (True, True, True, True)
    for arguments in (ArgumentsMatch.EXACT, ArgumentsMatch.RULES):
        compared = compared_calls(taken, arguments)
        assert (compared.n_calls, compared.n_not_comparable) == (2, 1)
        found = match_of(compared, compared)
        assert found == Match(1, 2, 2, strict=False, exact=False, in_order=False)
        assert modes(found) == (False, False, False, False)


def test_match_of_a_reference_is_not_hurt_by_further_calls_without_arguments() -> None:
    found = match((absent("a"), call("b")), (call("b"),), ArgumentsMatch.EXACT)
    assert found == Match(1, 2, 1, strict=False, exact=False, in_order=True)
    assert (found.superset, found.precision) == (True, Fraction(1, 2))


def test_match_of_arguments_that_are_not_json_holds_for_the_same_text_alone() -> None:
    text, other, value = invalid("a", "{x"), invalid("a", "{y"), call("a", "{x")
    assert match((text,), (text,), ArgumentsMatch.EXACT).strict
    assert not match((text,), (other,), ArgumentsMatch.EXACT).strict
    assert not match((text,), (value,), ArgumentsMatch.EXACT).strict


def test_match_of_arguments_by_the_rules() -> None:
    taken, reference = ((call("calculate", {"expression": text}),) for text in ("2 * 600", "1200"))
    assert not match(taken, reference, ArgumentsMatch.EXACT, RULES).strict
    assert match(taken, reference, ArgumentsMatch.RULES, RULES).strict
    assert not match(taken, reference, ArgumentsMatch.RULES).strict


def test_match_of_arguments_takes_a_rule_of_the_task_alone() -> None:
    rules = RuleSet(
        (ArgumentRule("calculate", "expression", Arithmetic(), "sums", "ada", task_id="t1"),)
    )
    taken, reference = ((call("calculate", {"expression": text}),) for text in ("2 * 600", "1200"))

    def holds(task_id: str) -> bool:
        sides = (
            compared_calls(each, ArgumentsMatch.RULES, rules, task_id)
            for each in (taken, reference)
        )
        return match_of(*sides).strict

    assert (holds("t1"), holds("t2")) == (True, False)


def test_compared_calls_leaves_messages_without_a_call_out() -> None:
    taken = (call("a", step=1), TrajectoryMessage(2), call("b", step=3), call("c", step=3))
    compared = compared_calls(taken, ArgumentsMatch.NAMES)
    assert compared.messages == (('"a"',), ('"b"', '"c"'))


def test_single_tool_use_looks_at_the_name_alone() -> None:
    compared = compared_calls((absent("a"), call("b")), ArgumentsMatch.EXACT)
    assert [compared.uses(tool) for tool in ("a", "b", "A", "")] == [True, True, False, False]


# Against brute force


def orders(messages: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    for inside in product(*(tuple(permutations(message)) for message in messages)):
        yield tuple(label for message in inside for label in message)


def is_subsequence(part: Sequence[str], whole: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(label in rest for label in part)


few_messages = st.lists(st.text("abc", min_size=1, max_size=3), max_size=3).map(tuple)


@given(few_messages, few_messages)
def test_exact_and_in_order_are_what_some_order_inside_the_messages_gives(
    ours: tuple[str, ...], theirs: tuple[str, ...]
) -> None:
    found = match_of(written(*ours), written(*theirs))
    ours_in_order, theirs_in_order = set(orders(ours)), set(orders(theirs))
    assert found.exact == bool(ours_in_order & theirs_in_order)
    assert found.in_order == any(
        is_subsequence(part, whole) for part in theirs_in_order for whole in ours_in_order
    )


@given(
    trajectories(absent=True),
    trajectories(absent=True),
    rule_sets,
    st.sampled_from(ArgumentsMatch),
)
def test_figures_imply_each_other(
    ours: Trajectory, reference: Trajectory, rules: RuleSet, arguments: ArgumentsMatch
) -> None:
    found = match(ours, reference, arguments, rules)
    back = match(reference, ours, arguments, rules)
    assert not found.strict or found.exact
    assert not found.exact or (found.in_order and found.unordered)
    assert not found.in_order or found.any_order
    assert found.unordered == (found.subset and found.superset)
    assert (found.strict, found.exact, found.unordered) == (
        back.strict,
        back.exact,
        back.unordered,
    )
    assert (found.subset, found.precision) == (back.superset, back.recall)


@given(trajectories(absent=True), st.sampled_from(ArgumentsMatch))
def test_a_comparable_trajectory_matches_itself(
    taken: Trajectory, arguments: ArgumentsMatch
) -> None:
    compared = compared_calls(taken, arguments)
    assert match_of(compared, compared).strict == (compared.n_not_comparable == 0)


@given(trajectories(), trajectories(), rule_sets)
def test_looser_arguments_never_match_fewer_calls(
    ours: Trajectory, reference: Trajectory, rules: RuleSet
) -> None:
    names, by_rules, exact = (
        match(ours, reference, arguments, rules).n_matched
        for arguments in (ArgumentsMatch.NAMES, ArgumentsMatch.RULES, ArgumentsMatch.EXACT)
    )
    assert names >= by_rules >= exact


# The best assignment


@pytest.mark.parametrize(
    ("fits", "chosen"),
    [
        pytest.param([], (), id="nobody"),
        pytest.param([0], (None,), id="nowhere"),
        pytest.param([0b11, 0b01], (1, 0), id="the-first-moves"),
        pytest.param([0b011, 0b011, 0b011], (0, 1, None), id="one-too-many"),
        pytest.param([0b011, 0b110, 0b001], (1, 2, 0), id="two-move"),
    ],
)
def test_largest_assignment_of_few(fits: list[int], chosen: tuple[int | None, ...]) -> None:
    assert largest_assignment(fits) == chosen


@given(st.lists(st.integers(0, 2**9 - 1), max_size=9))
def test_largest_assignment_is_as_large_as_scipys(fits: list[int]) -> None:
    chosen = largest_assignment(fits)
    taken = [place for place in chosen if place is not None]
    assert len(taken) == len(set(taken))
    assert all(fits[item] >> place & 1 for item, place in enumerate(chosen) if place is not None)
    table = np.array([[each >> place & 1 for place in range(9)] for each in fits]).reshape(-1, 9)
    largest = maximum_bipartite_matching(csr_matrix(table), perm_type="column")
    assert len(taken) == int((largest >= 0).sum())


def test_largest_assignment_moves_a_long_row_of_items() -> None:
    n = 1_500
    fits = [0b11 << at for at in range(n)] + [1]
    assert largest_assignment(fits) == (*range(1, n + 1), 0)
