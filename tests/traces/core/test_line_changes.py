"""Texts compared line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core.line_changes import MOST_COMPARED, ChangedLine, LineKind, line_changes

SAME, REMOVED, ADDED, SKIPPED = LineKind


def kinds(before: str, after: str) -> list[tuple[str, str, int | None, int | None]]:
    return [
        (line.kind.value, line.text, line.before, line.after)
        for line in line_changes(before, after)
    ]


def test_equal_texts_have_no_changes() -> None:
    assert line_changes("a\nb\n", "a\nb\n") == ()


def test_a_changed_line_stands_between_its_neighbours() -> None:
    assert kinds("a\nb\nc\n", "a\nB\nc\nd\n") == [
        ("same", "a", 1, 1),
        ("removed", "b", 2, None),
        ("added", "B", None, 2),
        ("same", "c", 3, 3),
        ("added", "d", None, 4),
    ]


def test_a_change_in_the_middle_keeps_its_numbers() -> None:
    assert kinds("a\nx\nm\ny\nz", "a\nm\nyy\nz") == [
        ("same", "a", 1, 1),
        ("removed", "x", 2, None),
        ("same", "m", 3, 2),
        ("removed", "y", 4, None),
        ("added", "yy", None, 3),
        ("same", "z", 5, 4),
    ]


@pytest.mark.parametrize(
    ("n", "words"),
    [(4, "1 line is the same"), (1203, "1,200 lines are the same")],
    ids=["1", "many"],
)
def test_far_lines_are_left_out_on_both_sides(n: int, words: str) -> None:
    far = "\n".join(f"line {at}" for at in range(n))
    lines = line_changes(f"{far}\nold\n{far}", f"{far}\nnew\n{far}")
    assert lines[0] == lines[-1] == ChangedLine(SKIPPED, words, None, None)
    assert [line.kind for line in lines[1:-1]] == [SAME] * 3 + [REMOVED, ADDED] + [SAME] * 3


def test_many_lines_are_replaced_as_a_whole() -> None:
    old = [f"old {at}" for at in range(MOST_COMPARED)]
    old.insert(500, "kept")
    new = ["first", "kept", "last"]
    found = line_changes("\n".join(old), "\n".join(new))
    assert [line.kind for line in found] == [REMOVED] * (MOST_COMPARED + 1) + [ADDED] * 3


@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_removed_and_kept_lines_are_the_first_text(old: list[str], new: list[str]) -> None:
    lines = [f"{at} {letter}" for at, letter in enumerate(old)][:3] + old
    found = line_changes("\n".join(lines), "\n".join([*lines[:3], *new]))
    shown = {line.before: line.text for line in found if line.before}
    assert all(lines[number - 1] == text for number, text in shown.items())
    assert all(line.text in new or line.after in (1, 2, 3) for line in found if line.after)
