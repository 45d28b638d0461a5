"""Slots: the unit that figures count. One slot is one declared trial of a task in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import assert_never

from reviews.core.estimators import Counts, TaskCounts
from traces.core.records import Disposition


@dataclass(frozen=True, slots=True)
class Attempt:
    """One stored trial, as slots see it."""

    id: str
    run: str
    task: str  # the task version: versions are never pooled
    trial: str
    attempt: int
    disposition: Disposition


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declared run: so many trials of each of these tasks, named as attempts name them."""

    run: str
    tasks: tuple[str, ...]
    n_trials: int


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one trial of a task in a run. Its last attempt stands for it."""

    run: str
    task: str
    trial: str | None  # None: a declared trial that never came has no label
    standing: Attempt | None  # None: missing
    earlier: tuple[Attempt, ...] = ()  # the attempts before it, which harness errors ended


def slots_of(
    attempts: Iterable[Attempt], declarations: Iterable[Declaration] = ()
) -> tuple[Slot, ...]:
    """The slots of some runs, ordered by run and task, missing ones after those that came.

    Trials beyond what was declared keep their slots: nothing is dropped.
    """
    by_slot: dict[tuple[str, str, str], list[Attempt]] = {}
    for attempt in attempts:
        by_slot.setdefault((attempt.run, attempt.task, attempt.trial), []).append(attempt)
    filled = [_filled(key, tries) for key, tries in by_slot.items()]
    slots = filled + _missing(by_slot, declarations)
    return tuple(sorted(slots, key=_slot_order))


def _filled(key: tuple[str, str, str], tries: list[Attempt]) -> Slot:
    *earlier, last = sorted(tries, key=lambda a: (a.attempt, a.id))
    return Slot(*key, last, tuple(earlier))


def _missing(
    filled: Iterable[tuple[str, str, str]], declarations: Iterable[Declaration]
) -> list[Slot]:
    present: dict[tuple[str, str], int] = {}
    for run, task, _ in filled:
        present[run, task] = present.get((run, task), 0) + 1
    declared: dict[tuple[str, str], int] = {}
    for declaration in declarations:
        for task in declaration.tasks:
            key = (declaration.run, task)
            declared[key] = max(declared.get(key, 0), declaration.n_trials)
    return [
        Slot(run, task, None, None)
        for (run, task), n_trials in declared.items()
        for _ in range(n_trials - present.get((run, task), 0))
    ]


def _slot_order(slot: Slot) -> tuple[str, str, bool, int, str]:
    label = slot.trial or ""
    return (slot.run, slot.task, slot.trial is None, *label_order(label))


def label_order(label: str) -> tuple[int, str]:
    """A sort key for trial labels: whole numbers by value, all others after them by text."""
    # isdecimal alone lets other scripts' digits through, and a label may be thousands of digits
    if label.isascii() and label.isdecimal() and len(label) < 10:
        return (int(label), label)
    return (10**9, label)


def has_passed(attempt: Attempt) -> bool | None:
    """Whether a trial passed, as dispositions say it; None when it is not decided."""
    match attempt.disposition:
        case Disposition.PASS:
            return True
        case Disposition.FAIL:
            return False
        case Disposition.UNRESOLVED | Disposition.HARNESS_ERROR:
            return None
        case _:
            assert_never(attempt.disposition)


def counts_of(
    slots: Iterable[Slot], decide: Callable[[Attempt], bool | None] = has_passed
) -> Counts:
    """The passed, graded and run slots of one figure. `decide` says what the figure counts of a trial.

    A slot whose trial is missing, or for which `decide` answers None, is unknown for the figure.
    No slot at all gives 0 / 0 / 0, of which no rate comes.
    """
    passed = graded = run = missing = 0
    for slot in slots:
        run += 1
        if slot.standing is None:
            missing += 1
            continue
        decided = decide(slot.standing)
        if decided is not None:
            graded += 1
            passed += decided
    return Counts(passed, graded, run, missing)


def task_counts_of(
    slots: Iterable[Slot], decide: Callable[[Attempt], bool | None] = has_passed
) -> tuple[TaskCounts, ...]:
    """The counts of each task, over all runs given, ordered by task."""
    by_task: dict[str, list[Slot]] = {}
    for slot in slots:
        by_task.setdefault(slot.task, []).append(slot)
    return tuple(TaskCounts(task, counts_of(by_task[task], decide)) for task in sorted(by_task))
