from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.known_files import airline_pool_trials
from traces.core import alignment
from traces.core.alignment import Alignment, Labels, align, quick_matches
from traces.core.paths import step_labels

labels = st.lists(st.sampled_from("abcd"), max_size=8).map(tuple)
many = st.lists(labels, max_size=7).map(tuple)


def laid_out(found: Alignment) -> list[str]:
    return [
        "".join(
            "-" if cell is None else label for label, cell in zip(found.columns, row, strict=True)
        )
        for row in found.rows
    ]


def check(found: Alignment, sequences: tuple[Labels, ...]) -> None:
    """Each row holds its sequence whole, in order, and every column is used."""
    assert len(found.rows) == len(sequences)
    for row, sequence in zip(found.rows, sequences, strict=True):
        assert len(row) == len(found.columns)
        assert [cell for cell in row if cell is not None] == list(range(len(sequence)))
        for label, cell in zip(found.columns, row, strict=True):
            assert cell is None or sequence[cell] == label
    for place in range(len(found.columns)):
        assert any(row[place] is not None for row in found.rows)


@given(many)
def test_alignment_keeps_each_sequence(sequences: tuple[Labels, ...]) -> None:
    check(align(sequences), sequences)


@given(many)
def test_alignment_in_one_pass_keeps_each_sequence(sequences: tuple[Labels, ...]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "_MOST_CELLS", -1)
        patch.setattr(alignment, "_MOST_GUIDED", 2)
        patch.setattr(alignment, "_MOST_JOINED", 3)
        check(align(sequences), sequences)


@given(labels, labels)
def test_two_sequences_share_a_longest_common_subsequence(left: Labels, right: Labels) -> None:
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, ours in enumerate(left):
        for j, theirs in enumerate(right):
            lengths[i + 1][j + 1] = (
                lengths[i][j] + 1 if ours == theirs else max(lengths[i][j + 1], lengths[i + 1][j])
            )
    assert len(align((left, right)).columns) == len(left) + len(right) - lengths[-1][-1]


@pytest.mark.parametrize(
    ("sequences", "rows"),
    [
        ((), []),
        (((),), [""]),
        (("abc", "abc"), ["abc", "abc"]),
        (("abc", "ac"), ["abc", "a-c"]),
        (("ac", "abc"), ["a-c", "abc"]),
        (("ab", "cd"), ["ab--", "--cd"]),
        (("urscb", "ursb", "urrsscb", "urrsscbb"), ["ur-s-cb-", "ur-s--b-", "urrsscb-", "urrsscbb"]),
        (("ax", "bx", "a", ""), ["a-x", "-bx", "a--", "---"]),
    ],
)  # fmt: skip
def test_alignment_of_known_sequences(sequences: tuple[str, ...], rows: list[str]) -> None:
    assert laid_out(align(tuple(map(tuple, sequences)))) == rows


def test_columns_that_can_slide_into_one_another_are_joined() -> None:
    # The third sequence is nearest to the second, and only then can its b meet the first one's.
    sequences = tuple(map(tuple, ("xb", "xyz", "bxyz", "xbyz")))
    found = align(sequences)
    check(found, sequences)
    assert len(found.columns) == 5


def test_the_real_passing_paths_are_laid_out_whole() -> None:
    by_task: dict[str, list[Labels]] = {}
    for trial in airline_pool_trials():
        if trial.passed:
            by_task.setdefault(trial.task, []).append(step_labels(trial.trajectory, messages=True))
    for sequences in by_task.values():
        check(align(tuple(sequences)), tuple(sequences))


def test_sixty_paths_of_sixty_steps_are_aligned_quickly() -> None:
    rng = random.Random(1)
    base = [rng.choice("abcdefghij") for _ in range(60)]
    sequences = tuple(
        tuple(label if rng.random() > 0.1 else rng.choice("abcdefghij") for label in base)
        for _ in range(60)
    )
    start = time.perf_counter()
    check(align(sequences), sequences)
    assert time.perf_counter() - start < 10  # a bound on growth: it takes 0.1 s


def test_huge_paths_are_aligned_in_one_pass() -> None:
    rng = random.Random(2)
    sequences = tuple(tuple(rng.choices("abcdefghij", k=200_000)) for _ in range(2))
    start = time.perf_counter()
    found = align(sequences)
    assert time.perf_counter() - start < 10
    check(found, sequences)
    assert len(found.columns) < 400_000


def test_quick_matches_look_only_so_far_ahead() -> None:
    across = ["a", *["x"] * 300, "b", "c"]
    assert quick_matches(across, ["a", "b", "x", "q"]) == [(0, 0), (1, 2)]
