"""What a made-up task is, and what a trial of it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from evalsite.refund_desk.desk import State
from evalsite.refund_desk.grading import Check, Twist
from evalsite.refund_desk.session import Session

OLD: Final = "desk-1.0"
NEW: Final = "desk-1.1"
GATE_BLOCKED: Final = "desk-2.0"
GATE_WAITING: Final = "desk-2.1"
GATE_READY: Final = "desk-2.2"

Facts: TypeAlias = Mapping[str, Any]
Path: TypeAlias = Callable[[Session], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """One attempt: the path that the agent takes, and what is special about its verdicts."""

    path: Path
    twists: tuple[Twist, ...] = ()
    facts: Facts = field(default_factory=dict)  # beside those of the task
    again: Trial | None = None  # the next attempt, after the harness broke


@dataclass(frozen=True, slots=True)
class Run:
    """Trials of a task in a run of a release, numbered from 1."""

    release: str
    name: str
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One test case of the refund desk."""

    task_id: str
    title: str
    family: str
    split: str  # tuning | held_out | regression
    ask: str  # what the customer says first
    customer: str  # who is signed in
    facts: Facts
    opening: Callable[[Facts], State]
    checks: tuple[Check, ...]
    runs: tuple[Run, ...]
    is_truthful_mandatory: bool = False


def nightly(release: str, *trials: Trial) -> Run:
    """The nightly run of a release."""
    return Run(release, "nightly", trials)
