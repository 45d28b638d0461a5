from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core.prefix_tree import (
    BranchCounts,
    CutRow,
    Parting,
    PartingStep,
    PrefixTree,
    TakenPath,
    TreeRow,
    prefix_tree,
)

counts = st.builds(BranchCounts, *[st.integers(0, 3)] * 4).filter(lambda c: c.n_trials > 0)
labels = st.lists(st.integers(0, 2), max_size=7).map(tuple)
paths = st.lists(
    st.builds(TakenPath, labels, counts), max_size=12, unique_by=lambda path: path.labels
).map(tuple)


def taken(text: str, n_pass: int = 0, n_fail: int = 0, n_unresolved: int = 0) -> TakenPath:
    return TakenPath(tuple(map(ord, text)), BranchCounts(n_pass, n_fail, n_unresolved))


def drawn(tree: PrefixTree) -> list[str]:
    """The tree as lines: indentation, steps, passed/failed/unresolved through and ending."""
    lines = []
    for row in tree.rows:
        through = f"{row.through.n_pass}/{row.through.n_fail}/{row.through.n_unresolved}"
        if isinstance(row, CutRow):
            lines.append(f"{'  ' * row.depth}+{row.n_branches} {through}")
            continue
        steps = "".join(map(chr, row.labels)) or "-"
        ending = f" ends {row.ending.n_pass}/{row.ending.n_fail}" if row.ends else ""
        parting = f" {row.parting}" if row.parting is not Parting.NONE else ""
        lines.append(f"{'  ' * row.depth}{steps} {through}{ending}{parting}")
    return lines


def test_shared_steps_stand_once_and_rows_come_most_trials_first() -> None:
    tree = prefix_tree(
        [
            taken("abx", n_fail=1),
            taken("abcd", n_pass=2),
            taken("abce", n_pass=1, n_unresolved=1),
            taken("abcef", n_fail=1),
            taken("ab", n_fail=1),
            taken("abcd", n_fail=1),
        ],
        most_rows=100,
    )
    assert drawn(tree) == [
        "ab 3/4/1 ends 0/1 stops_short",
        "  c 3/2/1",
        "    d 2/1/0 ends 2/1",
        "    e 1/1/1 ends 1/0",
        "      f 0/1/0 ends 0/1 leaves",
        "  x 0/1/0 ends 0/1 leaves",
    ]
    assert tree.counts == BranchCounts(3, 4, 1)
    assert (tree.n_branches, tree.n_left, tree.n_stopped_short, tree.n_alike) == (6, 2, 1, 1)
    assert tree.partings == (PartingStep(2, 1, 1), PartingStep(4, 1, 0))
    first, second, *_, last = (row for row in tree.rows if isinstance(row, TreeRow))
    assert (first.first, first.path, first.ends, first.is_last, first.is_leaf) == (
        (0, 0, (4,), True, False)
    )
    assert (second.first, second.is_last, last.first, last.path) == (2, False, 2, 0)
    assert (last.is_last, last.is_leaf) == (True, True)


def test_paths_that_differ_from_the_first_step_on_part_at_a_row_without_steps() -> None:
    tree = prefix_tree([taken("a", 1), taken("b", 2), taken("", n_fail=1)], most_rows=9)
    assert drawn(tree) == [
        "- 3/1/0 ends 0/1 stops_short",
        "  b 2/0/0 ends 2/0",
        "  a 1/0/0 ends 1/0",
    ]


def test_a_failing_trial_that_goes_on_where_passing_ones_end_leaves() -> None:
    assert drawn(prefix_tree([taken("a", 1), taken("ab", n_fail=2)], most_rows=9)) == [
        "a 1/2/0 ends 1/0",
        "  b 0/2/0 ends 0/2 leaves",
    ]


def test_only_the_first_branch_off_the_passing_paths_is_marked() -> None:
    tree = prefix_tree([taken("a", 1), taken("bc", n_fail=1), taken("bd", n_fail=1)], most_rows=9)
    assert drawn(tree) == [
        "- 1/2/0",
        "  b 0/2/0 leaves",
        "    c 0/1/0 ends 0/1",
        "    d 0/1/0 ends 0/1",
        "  a 1/0/0 ends 1/0",
    ]
    assert tree.n_left == 2


def test_a_branch_of_unresolved_trials_alone_is_not_left_by_failing_ones() -> None:
    tree = prefix_tree([taken("a", 1), taken("b", n_unresolved=1)], most_rows=9)
    assert [row.parting for row in tree.rows if isinstance(row, TreeRow)] == [Parting.NONE] * 3


def test_without_a_passing_trial_nothing_is_left() -> None:
    tree = prefix_tree([taken("a", n_fail=1), taken("ab", n_fail=1)], most_rows=9)
    assert drawn(tree) == ["a 0/2/0 ends 0/1", "  b 0/1/0 ends 0/1"]
    assert (tree.n_left, tree.n_stopped_short, tree.n_alike) == (0, 0, 0)


def test_no_path_makes_no_row() -> None:
    assert prefix_tree([], most_rows=9) == PrefixTree((), BranchCounts(), 0, (), 0)


def test_an_empty_path_alone_is_a_row_without_steps() -> None:
    (row,) = prefix_tree([taken("", 1)], most_rows=9).rows
    assert isinstance(row, TreeRow)
    assert (row.labels, row.is_leaf, row.is_last) == ((), True, True)


def test_the_rows_with_the_most_trials_are_kept_and_the_others_counted() -> None:
    several = [
        taken("ab", 5),
        taken("acx", 1),
        taken("acy", 1, 1),
        taken("ad", n_fail=2),
        taken("ae", n_unresolved=1),
    ]
    assert drawn(prefix_tree(several, most_rows=3)) == [
        "a 7/3/1",
        "  b 5/0/0 ends 5/0",
        "  c 2/1/0",
        "    +2 2/1/0",
        "  +2 0/2/1",
    ]
    assert drawn(prefix_tree(several, most_rows=1)) == ["a 7/3/1", "  +4 7/3/1"]
    assert drawn(prefix_tree(several, most_rows=0)) == []
    cut, whole = prefix_tree(several, most_rows=1), prefix_tree(several, most_rows=99)
    assert (cut.n_left, cut.n_alike, cut.n_branches) == (2, 1, 7)
    assert (cut.n_left, cut.n_alike) == (whole.n_left, whole.n_alike)


def test_a_row_before_cut_ones_is_not_the_last() -> None:
    tree = prefix_tree([taken("ab", 2), taken("ac", 1)], most_rows=2)
    assert [row.is_last for row in tree.rows if isinstance(row, TreeRow)] == [True, False]


@pytest.mark.parametrize("n_steps", [100_000])
def test_very_long_paths_and_deep_trees_need_no_recursion(n_steps: int) -> None:
    long = tuple(range(n_steps))
    one = BranchCounts(1)
    shared = prefix_tree([TakenPath(long, one), TakenPath((*long[:-1], -1), one)], most_rows=9)
    assert [len(row.labels) for row in shared.rows if isinstance(row, TreeRow)] == [
        n_steps - 1, 1, 1,
    ]  # fmt: skip
    stairs = [TakenPath(long[:end], one) for end in range(1, 2_001)]
    rows = prefix_tree(stairs, most_rows=5_000).rows
    assert [row.depth for row in rows] == list(range(2_000))


@given(paths)
def test_every_sequence_ends_in_one_row_and_no_trial_is_lost(given: tuple[TakenPath, ...]) -> None:
    tree = prefix_tree(given, most_rows=10_000)
    rows = [row for row in tree.rows if isinstance(row, TreeRow)]
    assert len(rows) == len(tree.rows) == tree.n_branches
    ends = Counter(end for row in rows for end in row.ends)
    assert ends == Counter(range(len(given)))
    way: list[TreeRow] = []
    for row in rows:
        del way[row.depth :]
        way.append(row)
        steps = tuple(label for each in way for label in each.labels)
        assert all(given[end].labels == steps for end in row.ends)
        assert row.first == len(steps) - len(row.labels)
        under = [path for path in given if path.labels[: len(steps)] == steps]
        assert row.through.n_trials == sum(path.counts.n_trials for path in under)
        passing = any(path.counts.n_pass for path in under)
        before = way[-2].through.n_pass if len(way) > 1 else 0
        assert (row.parting is Parting.LEAVES) == (
            not passing and row.through.n_fail > 0 and before > 0
        )


@given(paths)
def test_each_failing_trial_has_one_place_where_it_parts(given: tuple[TakenPath, ...]) -> None:
    tree = prefix_tree(given, most_rows=0)
    n_fail = tree.counts.n_fail if tree.counts.n_pass else 0
    assert tree.n_left + tree.n_stopped_short + tree.n_alike == n_fail


@given(paths, st.integers(1, 20))
def test_a_cut_tree_is_the_whole_tree_without_some_branches(
    given: tuple[TakenPath, ...], most_rows: int
) -> None:
    whole = prefix_tree(given, most_rows=10_000)
    cut = prefix_tree(given, most_rows=most_rows)
    rows = [row for row in cut.rows if isinstance(row, TreeRow)]
    known = {
        (row.first, row.path, row.labels): row.through
        for row in whole.rows
        if isinstance(row, TreeRow)
    }
    assert len(rows) == min(most_rows, whole.n_branches)
    assert all(known[row.first, row.path, row.labels] == row.through for row in rows)
    least = min((row.through.n_trials for row in rows), default=0)
    for row in cut.rows:
        assert isinstance(row, TreeRow) or row.through.n_trials <= least * row.n_branches
