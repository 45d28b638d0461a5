from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.core.estimators import Counts, TaskCounts
from reviews.core.slots import (
    Attempt,
    Declaration,
    Slot,
    counts_of,
    has_passed,
    label_order,
    slots_of,
    task_counts_of,
)
from traces.core.records import Disposition

PASS, FAIL, UNRESOLVED, HARNESS_ERROR = Disposition


def attempt(
    disposition: Disposition, trial: str = "0", n: int = 1, task: str = "t", run: str = "r"
) -> Attempt:
    return Attempt(f"{run}/{task}/{trial}/{n}", run, task, trial, n, disposition)


def test_last_attempt_stands_for_the_slot() -> None:
    first, second, third = (
        attempt(HARNESS_ERROR),
        attempt(HARNESS_ERROR, n=2),
        attempt(PASS, n=10),
    )

    assert slots_of([third, first, second]) == (Slot("r", "t", "0", third, (first, second)),)


def test_missing_declared_trials_are_slots() -> None:
    came = attempt(PASS, "7")
    declared = Declaration("r", ("t", "u"), 2)

    assert slots_of([came], [declared, declared]) == (
        Slot("r", "t", "7", came),
        Slot("r", "t", None, None),
        Slot("r", "u", None, None),
        Slot("r", "u", None, None),
    )


def test_trials_beyond_the_declaration_are_kept() -> None:
    came = [attempt(PASS, str(n)) for n in range(3)]

    slots = slots_of(came, [Declaration("r", ("t",), 2)])

    assert [slot.standing for slot in slots] == came


def test_same_label_in_two_runs_is_two_slots() -> None:
    came = [attempt(PASS), attempt(FAIL, run="s")]

    assert counts_of(slots_of(came)) == Counts(1, 2, 2)


def test_slots_are_ordered_by_label_as_a_number() -> None:
    labels = ["10", "b", "9", "a", "²", "99999999999"]

    slots = slots_of([attempt(PASS, label) for label in labels])

    assert [slot.trial for slot in slots] == ["9", "10", "99999999999", "a", "b", "²"]


def test_label_order_takes_numbers_of_any_length() -> None:
    assert label_order("9" * 5000) == (10**9, "9" * 5000)


def test_counts_two_passes_one_fail_two_errors() -> None:
    dispositions = [PASS, PASS, FAIL, HARNESS_ERROR, UNRESOLVED]
    came = [attempt(d, str(n)) for n, d in enumerate(dispositions)]

    assert counts_of(slots_of(came)) == Counts(2, 3, 5)
    assert counts_of(slots_of(came, [Declaration("r", ("t",), 8)])) == Counts(2, 3, 8, 3)


def test_counts_of_no_slot() -> None:
    assert counts_of([]) == Counts(0, 0, 0)
    assert task_counts_of([]) == ()


def test_counts_of_another_figure_ask_what_it_counts() -> None:
    came = [attempt(d, str(n)) for n, d in enumerate(Disposition)]

    unresolved = counts_of(slots_of(came), lambda a: a.disposition is UNRESOLVED)

    assert unresolved == Counts(1, 4, 4)


def test_task_counts_take_all_runs_of_a_task() -> None:
    came = [attempt(PASS, task="b"), attempt(FAIL, task="b", run="s"), attempt(PASS, task="a")]

    assert task_counts_of(slots_of(came)) == (
        TaskCounts("a", Counts(1, 1, 1)),
        TaskCounts("b", Counts(1, 2, 2)),
    )


@pytest.mark.parametrize(
    ("disposition", "expected"),
    [(PASS, True), (FAIL, False), (UNRESOLVED, None), (HARNESS_ERROR, None)],
)
def test_has_passed(disposition: Disposition, expected: bool | None) -> None:
    assert has_passed(attempt(disposition)) is expected


attempts = st.builds(
    attempt,
    st.sampled_from(Disposition),
    st.sampled_from("0123"),
    st.integers(1, 3),
    st.sampled_from("tu"),
    st.sampled_from("rs"),
)


@given(st.lists(attempts, unique_by=lambda a: a.id), st.randoms(use_true_random=False))
def test_slots_do_not_depend_on_order_and_drop_nothing(came: list[Attempt], random: object) -> None:
    shuffled = list(came)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    slots = slots_of(shuffled, [Declaration("r", ("t", "u"), 3)])

    assert slots == slots_of(came, [Declaration("r", ("t", "u"), 3)])
    kept = {a.id for s in slots for a in (*s.earlier, s.standing) if a is not None}
    assert kept == {a.id for a in came}
