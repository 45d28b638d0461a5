from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given

from tests.traces.core.strategies import json_values
from traces.core.canonical import equal
from traces.core.differences import (
    CollectionCount,
    Difference,
    DifferenceKind,
    StateDifferences,
    state_differences,
)
from traces.core.values import Json

ADDED, REMOVED, CHANGED = DifferenceKind


@pytest.mark.parametrize(
    ("before", "after", "differences"),
    [
        ({"a": {"x": 1, "y": [1, 2]}}, {"a": {"y": [1.0, 2], "x": Decimal("1.0")}}, []),
        ({"fee": -0.0}, {"fee": 0}, []),
        ({"fee": 100.0}, {"fee": 100}, []),
        ({"fee": 0.30000000000000004}, {"fee": 0.3}, [("/fee", CHANGED, 0.30000000000000004, 0.3)]),
        ({"fee": "0.30"}, {"fee": "0.3"}, [("/fee", CHANGED, "0.30", "0.3")]),
        ({"n": "10"}, {"n": 10}, [("/n", CHANGED, "10", 10)]),
        ({"n": 1}, {"n": True}, [("/n", CHANGED, 1, True)]),
        ({"a": 1}, {"a": 1, "b": None}, [("/b", ADDED, None, None)]),
        ({"a": 1, "b": None}, {"a": 1}, [("/b", REMOVED, None, None)]),
        ({"l": [1, 2]}, {"l": [2, 1]}, [("/l/0", CHANGED, 1, 2), ("/l/1", CHANGED, 2, 1)]),
        ({"l": [1, 3]}, {"l": [1, 2, 3]}, [("/l/1", ADDED, None, 2)]),
        ({"l": [1, 2, 3]}, {"l": [1, 3]}, [("/l/1", REMOVED, 2, None)]),
        (
            {"l": [{"id": 1, "s": "a"}, {"id": 2}]},
            {"l": [{"id": 1, "s": "b"}, {"id": 2}, {"id": 3}]},
            [
                ("/l/0/s", CHANGED, "a", "b"),
                ("/l/2", ADDED, None, {"id": 3}),
            ],
        ),
        ({"a": []}, {"a": {}}, [("/a", CHANGED, [], {})]),
        (9007199254740993, 9007199254740992, [("", CHANGED, 9007199254740993, 9007199254740992)]),
        ({"a/b~": {"10": 1, "9": 1}}, {"a/b~": {"10": 2, "9": 2}},
         [("/a~1b~0/9", CHANGED, 1, 2), ("/a~1b~0/10", CHANGED, 1, 2)]),
    ],
)  # fmt: skip
def test_state_differences_of_known_states(
    before: Json, after: Json, differences: list[tuple[str, DifferenceKind, Json, Json]]
) -> None:
    found = state_differences(before, after)
    assert list(found.differences) == [Difference(*each) for each in differences]
    assert found.n_differences == len(differences)
    assert found.is_equal is (not differences)
    assert found.is_complete


def test_state_differences_beyond_the_limit_are_counted() -> None:
    found = state_differences({}, {str(n): n for n in range(10)}, limit=2)
    assert found == StateDifferences(
        (Difference("/0", ADDED, None, 0), Difference("/1", ADDED, None, 1)), 10, ()
    )
    assert not found.is_complete


def test_collections_count_their_records() -> None:
    before: Json = {"users": {"a": 1, "b": 2}, "log": [1, 2, 3], "n": 1, "gone": {}}
    after: Json = {"users": {"b": 3, "c": 4}, "log": [1, 9, 2, 3], "n": {}, "new": {}}
    assert state_differences(before, after).collections == (
        CollectionCount("/log", 4, 1),
        CollectionCount("/users", 3, 3),
    )
    assert state_differences([], []).collections == ()


@given(json_values, json_values)
def test_no_difference_exactly_when_equal(left: Json, right: Json) -> None:
    assert state_differences(left, right).is_equal is equal(left, right)
    assert state_differences(left, left).is_equal


@given(json_values, json_values)
def test_differences_mirror(left: Json, right: Json) -> None:
    there, back = state_differences(left, right), state_differences(right, left)
    assert there.n_differences == back.n_differences
    mirrored = {ADDED: REMOVED, REMOVED: ADDED, CHANGED: CHANGED}
    assert sorted((each.path, each.kind) for each in there.differences) == sorted(
        (each.path, mirrored[each.kind]) for each in back.differences
    )
