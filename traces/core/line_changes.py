"""Two texts compared line by line, in bounded time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final

MOST_COMPARED: Final = 1_000
"""Lines between the first and the last difference; more are shown as replaced as a whole."""

CONTEXT: Final = 3


class LineKind(StrEnum):
    """What became of a line."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"
    SKIPPED = "skipped"  # stands for equal lines that are left out


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of a difference, with its number in each text; None where it is not in it."""

    kind: LineKind
    text: str  # of SKIPPED: how many lines are left out, in words
    before: int | None
    after: int | None


def line_changes(before: str, after: str) -> tuple[ChangedLine, ...]:
    """What changed between two texts, with a few equal lines around; () where nothing did."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return ()
    return tuple(_folded(list(_all_lines(old, new))))


def _all_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[ChangedLine]:
    start = _n_equal(old, new)
    end = _n_equal(old[start:][::-1], new[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    yield from _same(old, 0, start, 0)
    for tag, a, b, c, d in _opcodes(old[start:old_end], new[start:new_end]):
        if tag == "equal":
            yield from _same(old, start + a, start + b, c - a)
            continue
        for at in range(start + a, start + b):
            yield ChangedLine(LineKind.REMOVED, old[at], at + 1, None)
        for at in range(start + c, start + d):
            yield ChangedLine(LineKind.ADDED, new[at], None, at + 1)
    yield from _same(old, old_end, len(old), new_end - old_end)


def _n_equal(old: Sequence[str], new: Sequence[str]) -> int:
    n = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        n += 1
    return n


def _same(old: Sequence[str], start: int, end: int, shift: int) -> Iterator[ChangedLine]:
    for at in range(start, end):
        yield ChangedLine(LineKind.SAME, old[at], at + 1, at + 1 + shift)


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if max(len(old), len(new)) > MOST_COMPARED:
        return [("replace", 0, len(old), 0, len(new))]
    return SequenceMatcher(None, old, new).get_opcodes()


def _folded(lines: Sequence[ChangedLine]) -> Iterator[ChangedLine]:
    """The changed lines with their neighbours; longer stretches of equal ones as one line."""
    changed = [at for at, line in enumerate(lines) if line.kind is not LineKind.SAME]
    near = {at for each in changed for at in range(each - CONTEXT, each + CONTEXT + 1)}
    skipped = 0
    for at, line in enumerate(lines):
        if at not in near:
            skipped += 1
            continue
        if skipped:
            yield _gap(skipped)
            skipped = 0
        yield line
    if skipped:
        yield _gap(skipped)


def _gap(n: int) -> ChangedLine:
    words = "1 line is the same" if n == 1 else f"{n:,} lines are the same"
    return ChangedLine(LineKind.SKIPPED, words, None, None)
