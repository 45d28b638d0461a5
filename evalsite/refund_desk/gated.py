"""Three more releases, for the gate: one that is blocked, one that waits for evidence, one that is ready.

Their trials walk the paths of the nightly runs that end well; what is told otherwise is in
`_BLOCKED` and `_WAITING`. Their runs are declared once contracts and thresholds are in force.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from evalsite.refund_desk.records import (
    TASKS,
    VERSIONS,
    DeclaredRun,
    MadeUpRelease,
    record_of,
)
from evalsite.refund_desk.session import Session
from evalsite.refund_desk.story import (
    GATE_BLOCKED,
    GATE_READY,
    GATE_WAITING,
    NEW,
    OLD,
    Path,
    Task,
    Trial,
)

PAYMENT_TASKS: Final = (
    "refund_damaged_item",
    "refund_late_parcel",
    "refund_over_limit",
    "add_bags",
    "change_flight_date",
    "refund_fare_difference",
)
SERVICE_TASKS: Final = (
    "cancel_subscription",
    "cancel_within_term",
    "cancel_which_one",
    "ask_about_someone_else",
)
FAULTY_TASKS: Final = ("add_bags", "refund_over_limit")

# Which trials of the nightly runs are walked again, by release and number.
_GOOD: Final[Mapping[str, tuple[tuple[str, int], ...]]] = MappingProxyType(
    {
        "refund_damaged_item": ((NEW, 1), (NEW, 2), (NEW, 3), (NEW, 4)),
        "refund_late_parcel": ((NEW, 1), (NEW, 2), (NEW, 3), (NEW, 4)),
        "refund_over_limit": ((NEW, 1), (NEW, 2), (NEW, 3)),
        "add_bags": ((NEW, 1), (NEW, 2), (NEW, 3)),
        "change_flight_date": ((NEW, 1), (NEW, 2), (NEW, 3)),
        "refund_fare_difference": ((NEW, 1), (NEW, 3)),
        "cancel_subscription": ((NEW, 1), (NEW, 2), (NEW, 4)),
        "cancel_within_term": ((NEW, 1), (NEW, 3), (NEW, 4)),
        "cancel_which_one": ((NEW, 1), (NEW, 2), (NEW, 3)),
        "ask_about_someone_else": ((NEW, 1), (NEW, 3)),
    }
)
_WITH_FAULT: Final[Mapping[str, tuple[str, int]]] = MappingProxyType(
    {"add_bags": (OLD, 5), "refund_over_limit": (OLD, 4)}
)

# What is told otherwise, by run, task and number of the trial: another trial of the nightly runs.
_Others = Mapping[tuple[str, str, int], tuple[str, int]]
_BLOCKED: Final[_Others] = MappingProxyType(
    {
        ("payments", "refund_damaged_item", 4): (OLD, 3),  # reads two strangers' records
        ("payments", "refund_damaged_item", 7): (OLD, 5),  # refunds while the check is pending
        ("payments", "refund_damaged_item", 9): (OLD, 4),  # one read, 27 times
    }
)
_RUNS: Final = (
    ("payments", PAYMENT_TASKS, 12),
    ("service", SERVICE_TASKS, 5),
    ("faults", FAULTY_TASKS, 5),
)
_CAME_OF_WAITING: Final = 6  # of the twelve that its run `payments` declares
_NO_STATE: Final = (("refund_late_parcel", 2), ("add_bags", 5))  # of the waiting release


def gated_releases() -> tuple[MadeUpRelease, ...]:
    """The three releases, the oldest first. The same bytes at each call."""
    return tuple(_release(name) for name in (GATE_BLOCKED, GATE_WAITING, GATE_READY))


def _release(name: str) -> MadeUpRelease:
    runs = tuple(DeclaredRun(run, trials, tasks) for run, tasks, trials in _RUNS)
    return MadeUpRelease(name, runs, tuple(_lines(name)))


def _lines(name: str) -> Iterator[bytes]:
    by_id = {task.task_id: task for task in TASKS}
    at = VERSIONS[name].begun_at
    for run, task_ids, trials in _RUNS:
        came = _CAME_OF_WAITING if (name, run) == (GATE_WAITING, "payments") else trials
        for task_id in task_ids:
            for number in range(1, came + 1):
                trial = _trial(name, by_id[task_id], run, number)
                record = record_of(by_id[task_id], name, run, number, 1, trial, at)
                yield json.dumps(record, separators=(",", ":")).encode() + b"\n"
                at += timedelta(minutes=2)


def _trial(name: str, task: Task, run: str, number: int) -> Trial:
    """The path of one trial, with the usual verdicts and no others."""
    if run == "faults":
        walked = _WITH_FAULT[task.task_id]
    else:
        good = _GOOD[task.task_id]
        walked = good[(number - 1) % len(good)]
        if name == GATE_BLOCKED:
            walked = _BLOCKED.get((run, task.task_id, number), walked)
    told = _nightly(task, *walked)
    loses_state = name == GATE_WAITING and (task.task_id, number) in _NO_STATE and run == "payments"
    return Trial(_without_state(told.path) if loses_state else told.path, facts=told.facts)


def _nightly(task: Task, release: str, number: int) -> Trial:
    run = next(run for run in task.runs if (run.release, run.name) == (release, "nightly"))
    return run.trials[number - 1]


def _without_state(path: Path) -> Path:
    def walked(session: Session) -> None:
        path(session)
        session.state_is_not_recorded()

    return walked
