"""Transcripts as typed steps, and the trajectory that the agent took through them.

A *transcript* is every message, tool call and tool result of a trial, in order. A *step* is one
entry of it, numbered from 1: the n-th element of the native `messages` list is step n. A
*trajectory* is the agent's own actions only: its tool calls, and its messages without a call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from traces.core.canonical import canonical_text
from traces.core.values import Json


class Actor(StrEnum):
    """Who speaks or acts in a step."""

    AGENT = "agent"
    USER = "user"
    SYSTEM = "system"
    ENVIRONMENT = "environment"  # a tool result
    OTHER = "other"


class CallOutcome(StrEnum):
    """What became of an attempted tool call."""

    COMMITTED = "committed"
    REJECTED = "rejected"  # the tool refused
    UNKNOWN = "unknown"  # no result recorded


class ArgumentsForm(StrEnum):
    """In which form the arguments of a call were recorded."""

    JSON = "json"
    INVALID = "invalid"  # text that is not JSON: kept raw, equal only to the same text
    ABSENT = "absent"  # not recorded: the call is not comparable


class ToolKind(StrEnum):
    """Whether a tool changes state. A tool without a declared kind counts as a write."""

    READ = "read"
    WRITE = "write"
    HANDOFF = "handoff"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One attempt of the agent (or, in a user step, of the simulated user) to use a tool."""

    id: str | None
    name: str  # NFC
    arguments: Json  # parsed; the raw text when the form is INVALID; None when ABSENT
    form: ArgumentsForm
    outcome: CallOutcome
    step: int  # of the message that made the call
    index: int  # position within that message, from 0
    result_step: int | None = None
    by_user: bool = False  # the simulated user's call: not part of the trajectory


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message's content."""

    kind: str  # text | reasoning | image | data | other
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of a transcript."""

    number: int
    actor: Actor
    role: str  # as given
    parts: tuple[Part, ...]
    calls: tuple[ToolCall, ...] = ()
    result_of: str | None = None  # id of the call that this step answers
    is_error: bool | None = None  # as the format flags it
    at: str | None = None  # the time as given


@dataclass(frozen=True, slots=True)
class TrajectoryCall:
    """A tool call as grouping sees it."""

    name: str  # NFC
    arguments: Json
    form: ArgumentsForm
    outcome: CallOutcome
    step: int
    _text: str | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def arguments_text(self) -> str:
        """The canonical text of the arguments, worked out once."""
        if self._text is None:
            object.__setattr__(self, "_text", canonical_text(self.arguments))
        return self._text or ""


@dataclass(frozen=True, slots=True)
class TrajectoryMessage:
    """An agent message without a call. Its wording does not count."""

    step: int


TrajectoryStep = TrajectoryCall | TrajectoryMessage
Trajectory = tuple[TrajectoryStep, ...]
