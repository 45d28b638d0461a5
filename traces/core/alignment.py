"""Paths laid side by side: a column a step, equal steps in one column.

A multiple alignment by progressive merging: the sequences are taken one after the other, each time
the one most like those already laid out, and matched to the columns by a longest common
subsequence (Needleman & Wunsch 1970, without mismatches) in which columns that more sequences use
weigh more. No column ever holds two different steps. Columns that can slide into one another are
joined at the end. Where that would take too long, a sequence is matched in one pass instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ALIGNMENT_VERSION = 1

Labels = tuple[str, ...]

_MOST_CELLS = 20_000_000
"""Cells of all matrices of one alignment: about a second of work."""

_MOST_GUIDED = 100
"""Sequences that are ordered by likeness; more keep the order given."""

_MOST_JOINED = 600
"""Columns that are joined afterwards."""

_REACH = 200
"""How many columns ahead a match is looked for in one pass."""

_MATCH = 1024  # outweighs any difference in how many sequences use a column


@dataclass(frozen=True, slots=True)
class Alignment:
    """Columns with one label each; a row holds, for each column, the index of its step or None."""

    columns: Labels
    rows: tuple[tuple[int | None, ...], ...]


@dataclass(slots=True)
class _Column:
    label: str
    cells: dict[int, int]  # sequence: index of its step


def align(sequences: tuple[Labels, ...]) -> Alignment:
    """Lay sequences of step labels side by side. Rows come in the order given.

    The same sequences give the same alignment.
    """
    distinct = tuple(dict.fromkeys(sequences))
    columns: list[_Column] = []
    cells_left = _MOST_CELLS
    for number in _guide_order(distinct):
        labels = distinct[number]
        n_cells = len(columns) * len(labels)
        if n_cells <= cells_left:
            cells_left -= n_cells
            matches = _best_matches(columns, labels)
        else:
            matches = quick_matches([column.label for column in columns], labels)
        columns = _merged(columns, labels, matches, number)
    if len(columns) <= _MOST_JOINED:
        columns = _joined(columns)
    rows = [
        tuple(column.cells.get(number) for column in columns) for number in range(len(distinct))
    ]
    row_of = dict(zip(distinct, rows, strict=True))
    return Alignment(
        tuple(column.label for column in columns),
        tuple(row_of[labels] for labels in sequences),
    )


def _guide_order(sequences: tuple[Labels, ...]) -> list[int]:
    """The order of merging: from the first on, always the one most like one already taken."""
    if len(sequences) > _MOST_GUIDED:
        return list(range(len(sequences)))
    pairs = [Counter(zip(("", *labels), (*labels, ""), strict=True)) for labels in sequences]
    nearest = dict.fromkeys(range(len(sequences)), 0.0)
    order: list[int] = []
    while nearest:
        chosen = max(nearest, key=lambda number: (nearest[number], -number))
        del nearest[chosen]
        order.append(chosen)
        for number, best in nearest.items():
            nearest[number] = max(best, _likeness(pairs[chosen], pairs[number]))
    return order


def _likeness(left: Counter[tuple[str, str]], right: Counter[tuple[str, str]]) -> float:
    """Dice's coefficient of the pairs of neighbours; 1.0 for the same pairs."""
    fewer, more = (left, right) if len(left) <= len(right) else (right, left)
    shared = sum(min(n, more[pair]) for pair, n in fewer.items())
    return 2 * shared / (left.total() + right.total())


def _best_matches(columns: list[_Column], labels: Labels) -> list[tuple[int, int]]:
    """Pairs (column, step) of the heaviest common subsequence, both ascending."""
    if not columns or not labels:
        return []
    numbers: dict[str, int] = {}
    for label in (*(column.label for column in columns), *labels):
        numbers.setdefault(label, len(numbers))
    across = np.array([numbers[column.label] for column in columns], dtype=np.int32)
    weights = np.array(
        [_MATCH + min(len(column.cells), _MATCH - 1) for column in columns], dtype=np.int64
    )
    down = [numbers[label] for label in labels]
    return heaviest_matches(
        np.array([np.where(across == number, weights, 0) for number in range(len(numbers))]), down
    )


def heaviest_matches(weights: NDArray[np.int64], down: list[int]) -> list[tuple[int, int]]:
    """The heaviest pairs (across, down) that ascend in both; a pair of weight 0 is no pair.

    `weights[kind]` holds what a step of that kind weighs against each place across; `down` is the
    kind of each step. Among equally heavy answers the one whose pairs come earliest is taken.
    """
    n_across = weights.shape[1]
    # best[i][j]: the heaviest answer for steps from i on and places from j on.
    best = np.zeros((len(down) + 1, n_across + 1), dtype=np.int64)
    for step in range(len(down) - 1, -1, -1):
        below = best[step + 1]
        gained = np.maximum(below[:-1], below[1:] + weights[down[step]])
        best[step, :-1] = np.maximum.accumulate(gained[::-1])[::-1]
    matches: list[tuple[int, int]] = []
    place = step = 0
    while step < len(down) and place < n_across:
        weight = weights[down[step], place]
        here = best[step, place]
        if weight and here == weight + best[step + 1, place + 1]:
            matches.append((place, step))
            place, step = place + 1, step + 1
        elif here == best[step, place + 1]:
            place += 1
        else:
            step += 1
    return matches


def quick_matches(across: Sequence[str], down: Sequence[str]) -> list[tuple[int, int]]:
    """Each step to the next place with its label, if one is within reach: one pass."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, label in enumerate(across):
        places[label].append(place)
    matches: list[tuple[int, int]] = []
    at = 0
    for step, label in enumerate(down):
        ahead = places[label]
        found = bisect_left(ahead, at)
        if found < len(ahead) and ahead[found] - at <= _REACH:
            matches.append((ahead[found], step))
            at = ahead[found] + 1
    return matches


def _merged(
    columns: list[_Column], labels: Labels, matches: list[tuple[int, int]], number: int
) -> list[_Column]:
    """The columns with one more sequence; its unmatched steps get columns of their own."""
    merged: list[_Column] = []
    place = step = 0
    for next_place, next_step in [*matches, (len(columns), len(labels))]:
        merged += columns[place:next_place]
        merged += (_Column(labels[at], {number: at}) for at in range(step, next_step))
        if next_place < len(columns):
            columns[next_place].cells[number] = next_step
            merged.append(columns[next_place])
        place, step = next_place + 1, next_step + 1
    return merged


def _joined(columns: list[_Column]) -> list[_Column]:
    """Join columns of one label where no step has to pass another."""
    kept: list[_Column] = []
    for column in columns:
        target = _place_to_slide_to(kept, column)
        if target is None:
            kept.append(column)
        else:
            kept[target].cells.update(column.cells)
    return kept


def _place_to_slide_to(kept: list[_Column], column: _Column) -> int | None:
    """The nearest column to the left that all steps of a column can move into."""
    for place in range(len(kept) - 1, -1, -1):
        if not column.cells.keys().isdisjoint(kept[place].cells):
            return None
        if kept[place].label == column.label:
            return place
    return None
