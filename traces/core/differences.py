"""What differs between two JSON values, such as two states, under the one equality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from traces.core.canonical import canonical_text, equal, natural_key
from traces.core.pointers import pointer_of
from traces.core.values import Json

DEFAULT_LIMIT = 500
"""Differences listed; all of them are counted."""

Place = tuple[str, ...]


class DifferenceKind(StrEnum):
    """What happened to the value at a path."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two values differ.

    An index in `path` counts in the value after, save for what was removed.
    """

    path: str  # JSON Pointer, RFC 6901
    kind: DifferenceKind
    before: Json  # None when added
    after: Json  # None when removed


@dataclass(frozen=True, slots=True)
class CollectionCount:
    """How many records of one top-level member were compared, and how many differ."""

    path: str
    n_compared: int
    n_different: int


@dataclass(frozen=True, slots=True)
class StateDifferences:
    """The differences of two states, in the order of their paths."""

    differences: tuple[Difference, ...]  # the first ones, up to the limit
    n_differences: int
    collections: tuple[CollectionCount, ...]  # top-level members that hold records

    @property
    def is_equal(self) -> bool:
        return self.n_differences == 0

    @property
    def is_complete(self) -> bool:
        """Whether every difference is listed."""
        return len(self.differences) == self.n_differences


def state_differences(before: Json, after: Json, *, limit: int = DEFAULT_LIMIT) -> StateDifferences:
    """Compare two states. Objects are unordered; lists are ordered.

    Elements that a list keeps at its start and end are set apart first, so that one insertion is
    one difference; what remains between is compared by position.
    """
    listed: list[Difference] = []
    n_differences = 0

    def report(place: Place, kind: DifferenceKind, old: Json, new: Json) -> None:
        nonlocal n_differences
        n_differences += 1
        if len(listed) < limit:
            listed.append(Difference(pointer_of(place), kind, old, new))

    _compare(before, after, (), report)
    return StateDifferences(tuple(listed), n_differences, _collections(before, after))


_Report = Callable[[Place, DifferenceKind, Json, Json], None]


def _compare(before: Json, after: Json, place: Place, report: _Report) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_objects(before, after, place, report)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, place, report)
    elif not equal(before, after):
        report(place, DifferenceKind.CHANGED, before, after)


def _compare_objects(
    before: dict[str, Json], after: dict[str, Json], place: Place, report: _Report
) -> None:
    for name in sorted(before.keys() | after.keys(), key=natural_key):
        below = (*place, name)
        if name not in after:
            report(below, DifferenceKind.REMOVED, before[name], None)
        elif name not in before:
            report(below, DifferenceKind.ADDED, None, after[name])
        else:
            _compare(before[name], after[name], below, report)


def _compare_lists(before: list[Json], after: list[Json], place: Place, report: _Report) -> None:
    start, end = kept_ends(before, after)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    n_pairs = min(len(old), len(new))
    for index in range(n_pairs):
        _compare(old[index], new[index], (*place, str(start + index)), report)
    for index in range(n_pairs, len(old)):
        report((*place, str(start + index)), DifferenceKind.REMOVED, old[index], None)
    for index in range(n_pairs, len(new)):
        report((*place, str(start + index)), DifferenceKind.ADDED, None, new[index])


def kept_ends(before: list[Json], after: list[Json]) -> tuple[int, int]:
    """How many elements two lists share at the start, and after those at the end."""
    old = [canonical_text(item) for item in before]
    new = [canonical_text(item) for item in after]
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end


def _collections(before: Json, after: Json) -> tuple[CollectionCount, ...]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return ()
    counts: list[CollectionCount] = []
    for name in sorted(before.keys() & after.keys(), key=natural_key):
        old, new = before[name], after[name]
        path = pointer_of((name,))
        if isinstance(old, dict) and isinstance(new, dict):
            names = old.keys() | new.keys()
            same = sum(key in old and key in new and equal(old[key], new[key]) for key in names)
            counts.append(CollectionCount(path, len(names), len(names) - same))
        elif isinstance(old, list) and isinstance(new, list):
            longer = max(len(old), len(new))
            counts.append(CollectionCount(path, longer, longer - sum(kept_ends(old, new))))
    return tuple(counts)
