from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from tests.traces.core.strategies import rule_sets, trajectories
from traces.core import comparison
from traces.core.comparison import (
    ArgumentDifference,
    ComparedPair,
    Comparison,
    Divergence,
    PairKind,
    Stretch,
    argument_place,
    compare,
)
from traces.core.paths import PathLevel, path_keys
from traces.core.rules import ArgumentRule, Arithmetic, Default, Ignore, RuleSet, Unordered
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.values import Json

SUMS = ArgumentRule("calculate", "expression", Arithmetic(), "spellings", "ada")
NOTE = ArgumentRule("put", "note", Ignore(), "wording", "ada")
UNIT = ArgumentRule("put", "unit", Default('"usd"'), "default", "ada")
BAGS = ArgumentRule("put", "bags", Unordered(), "no order", "ada")
WHOLE = ArgumentRule("think", "", Ignore(), "thoughts", "ada")
RULES = RuleSet((SUMS, NOTE, UNIT, BAGS, WHOLE))

SAME, BY_RULE, DIFFER, NOT_COMPARABLE, LEFT, RIGHT = PairKind


def call(name: str, arguments: Json = None, step: int = 1, **fields: Any) -> TrajectoryCall:
    made = TrajectoryCall(
        name,
        {} if arguments is None else arguments,
        ArgumentsForm.JSON,
        CallOutcome.COMMITTED,
        step,
    )
    return replace(made, **fields)


def numbered(*steps: TrajectoryCall | TrajectoryMessage) -> Trajectory:
    return tuple(replace(step, step=number) for number, step in enumerate(steps, start=1))


def kinds_of(left: Trajectory, right: Trajectory, **options: Any) -> list[PairKind]:
    return [pair.kind for pair in compare(left, right, RULES, **options).pairs]


def test_compare_of_two_paths_names_all_that_differs() -> None:
    left = numbered(
        call("user"), call("resv"), call("search"),
        call("calculate", {"expression": "600 * 2"}), call("put", {"bags": 2}),
    )  # fmt: skip
    right = numbered(call("user"), call("resv"), call("search"), call("put", {"bags": 3}))

    assert compare(left, right, RULES) == Comparison(
        pairs=(
            ComparedPair(SAME, 0, 0),
            ComparedPair(SAME, 1, 1),
            ComparedPair(SAME, 2, 2),
            ComparedPair(LEFT, 3, None),
            ComparedPair(DIFFER, 4, 3, (ArgumentDifference("/bags", "put.bags", "2", "3"),)),
        ),
        stretches=(Stretch(0, 3, is_equal=True), Stretch(3, 5, is_equal=False)),
        divergence=Divergence(3, 4, 4, "Paths part at step 4: A calls calculate, B calls put."),
        differ_only_within_messages=False,
    )


def test_equal_stretches_of_three_and_more_are_folded() -> None:
    assert Stretch(0, 3, is_equal=True).is_folded
    assert not Stretch(0, 2, is_equal=True).is_folded
    assert not Stretch(0, 9, is_equal=False).is_folded


def test_n_pairs_counts_a_kind() -> None:
    found = compare((call("a"), call("b")), (call("a"),), RULES)
    assert [found.n_pairs(kind) for kind in PairKind] == [1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    ("left", "right", "kinds"),
    [
        ((), (), []),
        ((call("a"),), (), [LEFT]),
        ((call("a", {"n": 1}),), (call("a", {"n": 1.0}),), [SAME]),
        ((call("a", {"n": 1}), call("a", {"n": 2})), (call("a", {"n": 2}),), [LEFT, SAME]),
        ((call("calculate", {"expression": "1+1"}),), (call("calculate", {"expression": "2"}),), [BY_RULE]),
        ((call("calculate", {"expression": "1+1"}),), (call("calculate", {"expression": "3"}),), [DIFFER]),
        (
            (call("calculate", {"expression": "9"}), call("calculate", {"expression": "1+1"})),
            (call("calculate", {"expression": "2"}),),
            [LEFT, BY_RULE],
        ),
        ((call("a"), call("b")), (call("b"), call("a")), [LEFT, SAME, RIGHT]),
        ((call("a"), TrajectoryMessage(2)), (call("a"), TrajectoryMessage(3)), [SAME, SAME]),
        ((call("a"), TrajectoryMessage(2)), (call("a"),), [SAME, LEFT]),
        ((call("a", form=ArgumentsForm.ABSENT),), (call("a", form=ArgumentsForm.ABSENT),), [NOT_COMPARABLE]),
        ((call("a", form=ArgumentsForm.ABSENT),), (call("a"),), [NOT_COMPARABLE]),
        ((call("a", "{", form=ArgumentsForm.INVALID),), (call("a", "{", form=ArgumentsForm.INVALID),), [SAME]),
        ((call("a", "{", form=ArgumentsForm.INVALID),), (call("a", "{"),), [DIFFER]),
    ],
)  # fmt: skip
def test_kinds_of_pairs(left: Trajectory, right: Trajectory, kinds: list[PairKind]) -> None:
    assert kinds_of(left, right) == kinds


def test_messages_may_be_left_out() -> None:
    left = (TrajectoryMessage(1), call("a", step=2), TrajectoryMessage(3), call("b", step=4))
    found = compare(left, (call("a", step=1), call("c", step=2)), RULES, messages=False)
    assert found.pairs == (
        ComparedPair(SAME, 1, 0),
        ComparedPair(LEFT, 3, None),
        ComparedPair(RIGHT, None, 1),
    )
    assert found.divergence == Divergence(
        1, 4, 2, "Paths part at step 4 of A and step 2 of B: A calls b, B calls c."
    )


def differences_of(left: Json, right: Json, tool: str = "put", **fields: Any) -> Any:
    (pair,) = compare((call(tool, left),), (call(tool, right, **fields),), RULES).pairs
    return [(each.path, each.left, each.right, each.rule) for each in pair.differences]


def test_each_difference_names_the_rule_that_merges_it() -> None:
    left: Json = {"note": "a", "unit": "usd", "bags": [1, 2], "n": 1}
    assert differences_of(left, {"note": "b", "bags": [2, 1], "n": 2}) == [
        ("/bags/0", "1", "2", BAGS),
        ("/bags/1", "2", "1", BAGS),
        ("/n", "1", "2", None),
        ("/note", '"a"', '"b"', NOTE),
        ("/unit", '"usd"', None, UNIT),
    ]
    assert differences_of({}, {"note": "b", "unit": "eur"}) == [
        ("/note", None, '"b"', NOTE),
        ("/unit", None, '"eur"', None),
    ]
    assert differences_of({"bags": [1, 2]}, {"bags": [1, 3]}) == [("/bags/1", "2", "3", None)]
    assert differences_of({"notes": 1}, {"notes": 2}) == [("/notes", "1", "2", None)]
    assert differences_of({"t": 1}, {"t": 2}, "think") == [("/t", "1", "2", WHOLE)]


def test_argument_text_that_is_not_json_is_one_difference() -> None:
    assert differences_of({"n": 1}, "{", form=ArgumentsForm.INVALID) == [("", '{"n":1}', "{", None)]


def test_differences_of_one_pair_are_bounded() -> None:
    (pair,) = compare(
        (call("put", {}),), (call("put", {str(n): n for n in range(500)}),), RULES
    ).pairs
    assert len(pair.differences) == comparison.MOST_ARGUMENT_DIFFERENCES
    assert not pair.are_all_listed


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("", "book"),
        ("/cabin", "book.cabin"),
        ("/flights/0/date", "book.flights[0].date"),
        ("/a.b/x~1y", 'book["a.b"]["x/y"]'),
    ],
)
def test_argument_place_is_written_for_people(path: str, name: str) -> None:
    assert argument_place("book", path) == name


@pytest.mark.parametrize(
    ("left", "right", "sentence"),
    [
        ((call("a"),), (call("a"),), None),
        (
            (call("calculate", {"expression": "1+1"}),),
            (call("calculate", {"expression": "2"}),),
            None,
        ),
        ((call("a"),), (call("b"),), "Paths part at step 1: A calls a, B calls b."),
        ((call("a"), call("b")), (call("a"),), "Paths part at step 2 of A: A calls b, B ends."),
        ((), (call("a"),), "Paths part at step 1 of B: A ends, B calls a."),
        (
            (TrajectoryMessage(1),),
            (call("a"),),
            "Paths part at step 1: A sends a message, B calls a.",
        ),
        (
            (call("put", {"note": "x", "n": [1]}),),
            (call("put", {"note": "y", "n": [2]}),),
            "Paths part at step 1: A and B call put with another n[0].",
        ),
        (
            (call("put", "{", form=ArgumentsForm.INVALID),),
            (call("put"),),
            "Paths part at step 1: A and B call put with other arguments.",
        ),
        (
            (call("put", form=ArgumentsForm.ABSENT),),
            (call("put"),),
            "Paths part at step 1: A and B call put, with arguments that were not recorded.",
        ),
        (
            (call("a", {"n": 1}), call("a", {"n": 2})),
            (call("a", {"n": 2}),),
            "Paths part at step 1: A and B call a with other arguments.",
        ),
    ],
)
def test_divergence_is_named_in_a_sentence(
    left: Trajectory, right: Trajectory, sentence: str | None
) -> None:
    found = compare(numbered(*left), numbered(*right), RULES).divergence
    assert (found.sentence if found else None) == sentence


def test_divergence_uses_the_names_given() -> None:
    found = compare((call("a"),), (call("b"),), RULES, names=("Path C", "trial 4")).divergence
    assert found is not None
    assert found.sentence == "Paths part at step 1: Path C calls a, trial 4 calls b."


def test_compare_says_when_only_the_order_inside_a_message_differs() -> None:
    left = (call("put", {"l": 1}), call("put", {"l": 2}))
    assert compare(left, left[::-1], RULES).differ_only_within_messages


def test_a_rule_of_the_task_counts_for_that_task() -> None:
    rules = RuleSet((replace(NOTE, task_id="7"),))
    left, right = (call("put", {"note": "a"}),), (call("put", {"note": "b"}),)
    assert compare(left, right, rules, "7").pairs[0].kind is BY_RULE
    assert compare(left, right, rules, "8").pairs[0].kind is DIFFER


MIRRORED = {LEFT: RIGHT, RIGHT: LEFT}


def paired(found: Comparison) -> set[tuple[PairKind, int | None, int | None]]:
    return {(pair.kind, pair.left, pair.right) for pair in found.pairs}


@settings(max_examples=200)
@given(trajectories(absent=True), trajectories(absent=True), rule_sets)
def test_compare_mirrors_when_swapped(left: Trajectory, right: Trajectory, rules: RuleSet) -> None:
    there, back = compare(left, right, rules), compare(right, left, rules)
    assert paired(there) == {
        (MIRRORED.get(kind, kind), ours, theirs) for kind, theirs, ours in paired(back)
    }


@settings(max_examples=200)
@given(trajectories(), trajectories(), rule_sets)
def test_compare_agrees_with_the_path_keys(
    left: Trajectory, right: Trajectory, rules: RuleSet
) -> None:
    found = compare(left, right, rules)
    assert [pair.left for pair in found.pairs if pair.left is not None] == list(range(len(left)))
    assert [pair.right for pair in found.pairs if pair.right is not None] == list(range(len(right)))
    kinds = {pair.kind for pair in found.pairs}
    ours, theirs = path_keys(left, rules), path_keys(right, rules)
    for level, allowed in ((PathLevel.EXACT, {SAME}), (PathLevel.EQUIVALENT, {SAME, BY_RULE})):
        same = ours.key(level, messages=True) == theirs.key(level, messages=True)
        assert (kinds <= allowed) is same
    assert (found.divergence is None) is (kinds <= {SAME, BY_RULE})
    assert sum(stretch.end - stretch.first for stretch in found.stretches) == len(found.pairs)


@given(trajectories(), trajectories(), rule_sets)
def test_differences_of_calls_that_are_the_same_by_rule_all_name_one(
    left: Trajectory, right: Trajectory, rules: RuleSet
) -> None:
    for pair in compare(left, right, rules).pairs:
        if pair.kind is BY_RULE:
            assert all(each.rule is not None for each in pair.differences)
            assert pair.differences


def test_very_long_trajectories_are_compared_in_one_pass() -> None:
    rng = random.Random(3)
    left, right = (
        tuple(call(rng.choice("abcd"), {"n": rng.randrange(9)}, n) for n in range(5000))
        for _ in range(2)
    )
    start = time.perf_counter()
    found = compare(left, right, RULES)
    assert time.perf_counter() - start < 5
    assert [pair.left for pair in found.pairs if pair.left is not None] == list(range(5000))
