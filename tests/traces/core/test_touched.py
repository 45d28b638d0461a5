from __future__ import annotations

import pytest

from traces.core.touched import TouchedCollection, TouchedRecords, touched_collections
from traces.core.values import Json


def fates(before: Json, after: Json) -> list[tuple[str, list[str], list[str], list[str]]]:
    return [
        (each.name, list(each.created.names), list(each.changed.names), list(each.removed.names))
        for each in touched_collections(before, after)
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {}, [], id="nothing"),
        pytest.param({"a": {"x": 1}}, {"a": {"x": 1.0}}, [], id="equal"),
        pytest.param(
            {"a": {"x": 1, "y": 2, "z": 3}},
            {"a": {"x": 1, "y": 5, "new10": 0, "new9": 0}},
            [("a", ["new9", "new10"], ["y"], ["z"])],
            id="records-by-name",
        ),
        pytest.param({"a": [1, 2, 3]}, {"a": [1, 9, 3, 4]}, [("a", ["3"], ["1"], [])], id="places"),
        pytest.param({"a": [1, 2]}, {"a": [1, 2, 3]}, [("a", ["2"], [], [])], id="appended"),
        pytest.param({"a": [1, 1]}, {"a": [1]}, [("a", [], [], ["1"])], id="dropped"),
        pytest.param({"a": [1, 2, 3]}, {"a": [1, 3]}, [("a", [], [], ["1"])], id="from-between"),
        pytest.param(
            {},
            {"b": {"x": 1}, "a": [7], "c": 3},
            [
                ("a", ["0"], [], []),
                ("b", ["x"], [], []),
                ("c", [""], [], []),
            ],
            id="new-collections",
        ),
        pytest.param({"a": {"x": 1}}, {}, [("a", [], [], ["x"])], id="gone-collection"),
        pytest.param({"n": 1}, {"n": 2}, [("n", [], [""], [])], id="plain-member"),
        pytest.param({"n": True}, {"n": True}, [], id="same-plain-member"),
        pytest.param({"n": None}, {"n": None}, [], id="null-is-there"),
        pytest.param({"a": {}}, {"a": []}, [("a", [], [""], [])], id="another-kind"),
        pytest.param([1], [2], [], id="no-collections"),
        pytest.param({"a": 1}, None, [], id="no-state"),
    ],
)
def test_records_are_created_changed_or_removed(
    before: Json, after: Json, expected: list[tuple[str, list[str], list[str], list[str]]]
) -> None:
    assert fates(before, after) == expected


def test_all_are_counted_and_the_first_ones_named() -> None:
    after: dict[str, Json] = {"a": {f"r{n}": n for n in range(9)}}

    assert touched_collections({"a": {}}, after, limit=2) == (
        TouchedCollection(
            "a", TouchedRecords(("r0", "r1"), 9), TouchedRecords((), 0), TouchedRecords((), 0)
        ),
    )
