"""Native records of the made-up trials, and the releases that hold them."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final

from evalsite.refund_desk import accounts, bookings, refunds, subscriptions
from evalsite.refund_desk.desk import Row
from evalsite.refund_desk.grading import Verdicts
from evalsite.refund_desk.session import Chance, HarnessBrokeError, Session
from evalsite.refund_desk.story import (
    GATE_BLOCKED,
    GATE_READY,
    GATE_WAITING,
    NEW,
    OLD,
    Task,
    Trial,
)

SEED: Final = "refund desk 1"
TASKS: Final = (*refunds.TASKS, *subscriptions.TASKS, *bookings.TASKS, *accounts.TASKS)


@dataclass(frozen=True, slots=True)
class DeclaredRun:
    """A run that is declared before its trials: so many of each of the tasks."""

    name: str
    trials: int
    task_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MadeUpRelease:
    """A release of the refund desk with its trials, a line of JSON each."""

    name: str
    runs: tuple[DeclaredRun, ...]
    lines: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Version:
    """What is under test, and when it was tested."""

    model: str
    begun_at: datetime
    usd_per_input_token: float
    usd_per_output_token: float


VERSIONS: Final = MappingProxyType(
    {
        OLD: _Version("made-up-large-1", datetime(2026, 11, 16, 2, tzinfo=UTC), 8e-6, 24e-6),
        NEW: _Version("made-up-small-2", datetime(2026, 11, 23, 2, tzinfo=UTC), 7e-6, 21e-6),
        GATE_BLOCKED: _Version(
            "made-up-small-2", datetime(2026, 11, 26, 2, tzinfo=UTC), 7e-6, 21e-6
        ),
        GATE_WAITING: _Version(
            "made-up-small-3", datetime(2026, 11, 27, 2, tzinfo=UTC), 7e-6, 21e-6
        ),
        GATE_READY: _Version("made-up-small-3", datetime(2026, 11, 28, 2, tzinfo=UTC), 7e-6, 21e-6),
    }
)


def releases() -> tuple[MadeUpRelease, ...]:
    """The two releases of the story, the older one first. The same bytes at each call."""
    return tuple(_release(name) for name in (OLD, NEW))


def _release(name: str) -> MadeUpRelease:
    lines: list[bytes] = []
    counts: dict[str, dict[str, int]] = {}
    at = VERSIONS[name].begun_at
    for task in TASKS:
        for run in task.runs:
            if run.release != name:
                continue
            counts.setdefault(run.name, {})[task.task_id] = len(run.trials)
            for number, first in enumerate(run.trials, 1):
                attempt, trial = 1, first
                while True:
                    record = record_of(task, name, run.name, number, attempt, trial, at)
                    lines.append(json.dumps(record, separators=(",", ":")).encode() + b"\n")
                    at += timedelta(minutes=3)
                    if trial.again is None:
                        break
                    attempt, trial = attempt + 1, trial.again
    return MadeUpRelease(name, _declared(counts), tuple(lines))


def _declared(counts: dict[str, dict[str, int]]) -> tuple[DeclaredRun, ...]:
    """The runs with as many trials of each task; any other is not declared."""
    return tuple(
        DeclaredRun(run, max(by_task.values()), tuple(by_task))
        for run, by_task in counts.items()
        if len(set(by_task.values())) == 1
    )


def record_of(
    task: Task, release: str, run: str, number: int, attempt: int, trial: Trial, at: datetime
) -> Row:
    """The native record of one attempt at a task."""
    version = VERSIONS[release]
    facts = {**task.facts, **trial.facts}
    session = Session(
        task.opening(facts),
        customer=task.customer,
        facts=facts,
        chance=Chance(f"{SEED}/{release}/{run}/{task.task_id}/{number}/{attempt}"),
        begun_at=at,
    )
    session.user(task.ask)
    with contextlib.suppress(HarnessBrokeError):
        trial.path(session)
    cost = (
        session.input_tokens * version.usd_per_input_token
        + session.output_tokens * version.usd_per_output_token
    )
    record: Row = {
        "task_id": task.task_id,
        "run": run,
        "trial": number,
        "attempt": attempt,
        "agent": {"name": "refund desk", "version": release, "model": version.model},
        "status": "error" if session.error else "completed",
        "environment": "test",
        "made_up": True,
        "messages": session.messages,
        "facts": facts,
        "initial_state": session.initial,
        "state_source": "made-up desk",
        "verdicts": _verdicts(task, trial, session),
        "usage": {
            "cost_usd": round(cost, 4),
            "input_tokens": session.input_tokens,
            "output_tokens": session.output_tokens,
        },
        "started_at": _time(session.begun_at),
        "ended_at": _time(session.now),
    }
    if session.error:
        record["error"] = session.error
    if session.has_final_state:
        record["final_state"] = session.desk.state
    if session.fault:
        record["fault"] = session.fault
    return record


def _verdicts(task: Task, trial: Trial, session: Session) -> list[Row]:
    """The usual verdicts and what is special. Nothing is graded by itself where the harness broke."""
    verdicts = Verdicts(session, is_truthful_mandatory=task.is_truthful_mandatory)
    if not session.error:
        for check in task.checks:
            verdicts.add_code(check)
        verdicts.add_usual_judges()
    for twist in trial.twists:
        twist(verdicts)
    for number, row in enumerate(verdicts.rows, 1):
        row["id"] = f"v{number}"
    return verdicts.rows


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
