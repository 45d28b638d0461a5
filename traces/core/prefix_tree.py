"""Trajectories of one task as a prefix tree: what they share stands once, and parts where they part.

A stretch of steps that all trials of a branch take, with nobody ending in it, is one branch (a
radix tree). Failing trials *leave* the passing paths at the first branch that no passing trial
takes, *stop short* where they end and every passing trial goes on, and else took a passing path
whole. Each (sequence, step) is looked at once; nothing recurses, so a path may be of any length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import nsmallest

Labels = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BranchCounts:
    """Trials by disposition."""

    n_pass: int = 0
    n_fail: int = 0
    n_unresolved: int = 0
    n_error: int = 0

    @property
    def n_trials(self) -> int:
        """All of them."""
        return self.n_pass + self.n_fail + self.n_unresolved + self.n_error


@dataclass(frozen=True, slots=True)
class TakenPath:
    """A sequence of steps, equal steps with equal labels, and the trials that took it."""

    labels: Labels
    counts: BranchCounts


class Parting(StrEnum):
    """How failing trials part from the passing ones at a branch."""

    NONE = "none"
    LEAVES = "leaves"  # no passing trial takes this branch, and some take the one before it
    STOPS_SHORT = "stops_short"  # failing trials end here, and every passing one goes on


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One branch."""

    depth: int  # branches before it; 0 for the first row
    first: int  # index of its first step in the sequences
    labels: Labels  # its steps; none where sequences differ from their first step on
    through: BranchCounts  # trials that take all of it
    ending: BranchCounts  # of these, the ones that end with it
    parting: Parting
    path: int  # index of the first sequence given that takes it
    ends: tuple[int, ...]  # indexes of the sequences that end with it
    is_last: bool  # no row of the same branch before it comes after it

    @property
    def is_leaf(self) -> bool:
        """Whether all its trials end here."""
        return self.ending == self.through


@dataclass(frozen=True, slots=True)
class CutRow:
    """Stands for the branches that are not among the rows, the last ones after a branch."""

    depth: int
    n_branches: int  # that begin here; what parts behind them is not counted
    through: BranchCounts


@dataclass(frozen=True, slots=True)
class PartingStep:
    """How many failing trials part at one step: the one that no passing trial took there, or the
    one that passing trials took next.
    """

    step: int  # its index
    n_left: int
    n_stopped_short: int


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Rows depth first, among siblings most trials first, then as given; and what failing trials
    came to, cut branches included. Without a passing trial there is no path to leave.
    """

    rows: tuple[TreeRow | CutRow, ...]
    counts: BranchCounts
    n_branches: int  # of the whole tree
    partings: tuple[PartingStep, ...]  # by step
    n_alike: int  # failing trials that took a passing path whole

    @property
    def n_left(self) -> int:
        """Failing trials that left the passing paths."""
        return sum(each.n_left for each in self.partings)

    @property
    def n_stopped_short(self) -> int:
        """Failing trials that ended where every passing trial goes on."""
        return sum(each.n_stopped_short for each in self.partings)


@dataclass(slots=True)
class _Branch:
    paths: list[int]
    depth: int
    first: int
    through: BranchCounts
    end: int = 0
    ends: tuple[int, ...] = ()
    ending: BranchCounts = field(default_factory=BranchCounts)
    parting: Parting = Parting.NONE
    after: list[_Branch] = field(default_factory=list)
    is_shown: bool = False


def prefix_tree(paths: Sequence[TakenPath], *, most_rows: int) -> PrefixTree:
    """The tree of some sequences, with at most so many of its branches as rows.

    The branches with the most trials are shown, among equals those of fewer branches before them;
    a branch never without the ones before it. No sequence makes no row.
    """
    branches = _branches(paths)
    # No branch has more trials than the one before it, which also stands before it in the list.
    for at in nsmallest(
        most_rows, range(len(branches)), key=lambda at: (-branches[at].through.n_trials, at)
    ):
        branches[at].is_shown = True
    return PrefixTree(
        rows=tuple(_rows(branches[:1], paths)),
        counts=_sum(path.counts for path in paths),
        n_branches=len(branches),
        partings=_partings(branches),
        n_alike=sum(each.ending.n_fail for each in branches if each.ending.n_pass),
    )


def _branches(paths: Sequence[TakenPath]) -> list[_Branch]:
    """All branches, level by level."""
    if not paths:
        return []
    everyone = list(range(len(paths)))
    found = [_Branch(everyone, depth=0, first=0, through=_sum(path.counts for path in paths))]
    for branch in found:  # grows while it is walked
        _follow(branch, paths)
        parts: dict[int, list[int]] = {}
        for path in branch.paths:
            labels = paths[path].labels
            if len(labels) > branch.end:
                parts.setdefault(labels[branch.end], []).append(path)
        branch.after = [
            _Branch(part, branch.depth + 1, branch.end, _sum(paths[at].counts for at in part))
            for part in parts.values()
        ]
        branch.after.sort(key=lambda each: -each.through.n_trials)
        for each in branch.after:
            if each.through.n_fail and not each.through.n_pass and branch.through.n_pass:
                each.parting = Parting.LEAVES
        found += branch.after
    return found


def _follow(branch: _Branch, paths: Sequence[TakenPath]) -> None:
    """How far all sequences of a branch go together, and which of them end there."""
    first, *others = [paths[path].labels for path in branch.paths]
    end = branch.first
    if others:
        shortest = min(len(first), *map(len, others))
        while end < shortest and all(other[end] == first[end] for other in others):
            end += 1
    else:
        end = len(first)
    branch.end = end
    branch.ends = tuple(path for path in branch.paths if len(paths[path].labels) == end)
    branch.ending = _sum(paths[path].counts for path in branch.ends)
    if branch.ending.n_fail and branch.through.n_pass and not branch.ending.n_pass:
        branch.parting = Parting.STOPS_SHORT


def _partings(branches: Iterable[_Branch]) -> tuple[PartingStep, ...]:
    left, stopped = Counter[int](), Counter[int]()
    for branch in branches:
        if branch.parting is Parting.LEAVES:
            left[branch.first] += branch.through.n_fail
        elif branch.parting is Parting.STOPS_SHORT:
            stopped[branch.end] += branch.ending.n_fail
    return tuple(PartingStep(at, left[at], stopped[at]) for at in sorted({*left, *stopped}))


def _rows(roots: list[_Branch], paths: Sequence[TakenPath]) -> Iterable[TreeRow | CutRow]:
    waiting: list[tuple[_Branch | CutRow, bool]] = [(each, True) for each in roots if each.is_shown]
    while waiting:
        branch, is_last = waiting.pop()
        if isinstance(branch, CutRow):
            yield branch
            continue
        yield TreeRow(
            depth=branch.depth,
            first=branch.first,
            labels=paths[branch.paths[0]].labels[branch.first : branch.end],
            through=branch.through,
            ending=branch.ending,
            parting=branch.parting,
            path=branch.paths[0],
            ends=branch.ends,
            is_last=is_last,
        )
        after: list[_Branch | CutRow] = [each for each in branch.after if each.is_shown]
        cut = branch.after[len(after) :]
        if cut:
            through = _sum(each.through for each in cut)
            after.append(CutRow(branch.depth + 1, len(cut), through))
        waiting += ((each, at == 0) for at, each in enumerate(reversed(after)))


def _sum(counts: Iterable[BranchCounts]) -> BranchCounts:
    every = list(counts)
    if len(every) == 1:
        return every[0]
    return BranchCounts(
        sum(each.n_pass for each in every),
        sum(each.n_fail for each in every),
        sum(each.n_unresolved for each in every),
        sum(each.n_error for each in every),
    )
