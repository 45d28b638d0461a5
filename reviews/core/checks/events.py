"""What targets of a contract see of a trial: the agent's calls, and what both sides said.

The simulated user's own calls are left out. Arguments and results are parsed where they are JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, assert_never

from reviews.core.checks.expressions import Bindings, Ready
from traces.core.additions import ADDED
from traces.core.contracts.model import CallTarget, MessageBy, MessageTarget, Target
from traces.core.strict_json import StrictJsonError, loads_text
from traces.core.trajectory import Actor, ArgumentsForm, CallOutcome, Step, ToolCall
from traces.core.transcript import text_of
from traces.core.values import Json, JsonObject

_CONTENT_KINDS = ("text", "image", "data", "other")
_REMEMBERED_CHARS: Final = 4_000  # of a result


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A call of the agent, or a message."""

    at: int  # the step of the call or message
    result_at: int | None  # the step of the result; a message is its own; None: not recorded
    outcome: CallOutcome  # a message counts as committed
    bindings: Bindings  # what a condition sees

    @property
    def is_rejected(self) -> bool:
        return self.outcome is CallOutcome.REJECTED

    @property
    def is_open(self) -> bool:
        """Whether no result is recorded."""
        return self.outcome is CallOutcome.UNKNOWN

    @property
    def steps(self) -> tuple[int, ...]:
        """Its step, and that of its result."""
        if self.result_at is None or self.result_at == self.at:
            return (self.at,)
        return (self.at, self.result_at)


class Events:
    """The events of a trial, by what they are; each is made once, when a target first means it."""

    def __init__(
        self, messages: Sequence[JsonObject], steps: Sequence[Step], facts: Mapping[str, Json]
    ) -> None:
        self.messages = messages
        self.facts = Ready(dict(facts))
        self._added = {step.number for step in steps if step.role == ADDED}
        self.waiting: dict[str, list[tuple[ToolCall, Step]]] = {}
        self.calls: dict[str, list[Event]] = {}
        self.said: dict[MessageBy, list[Event]] = {MessageBy.USER: [], MessageBy.AGENT: []}
        for step in steps:
            if step.actor is Actor.AGENT or step.actor is Actor.USER:
                self._add(step)

    def of(self, target: Target) -> Sequence[Event]:
        """The events that a target means, its condition left aside, in order."""
        match target:
            case CallTarget():
                if target.call in self.waiting:
                    waiting = self.waiting.pop(target.call)
                    self.calls[target.call] = [self._call(call, step) for call, step in waiting]
                return self.calls.get(target.call, ())
            case MessageTarget():
                return self.said[target.by]
            case _:
                assert_never(target)

    def _add(self, step: Step) -> None:
        if step.actor is Actor.AGENT:
            for call in step.calls:
                if not call.by_user:
                    self.waiting.setdefault(call.name, []).append((call, step))
        # A message that only carries calls says nothing.
        if step.calls and not any(part.kind in _CONTENT_KINDS for part in step.parts):
            return
        values: dict[str, Json | Ready] = {
            "text": _said(step),
            "facts": self.facts,
            "step": step.number,
        }
        event = Event(step.number, step.number, CallOutcome.COMMITTED, Bindings(values))
        by = MessageBy.AGENT if step.actor is Actor.AGENT else MessageBy.USER
        self.said[by].append(event)

    def _call(self, call: ToolCall, step: Step) -> Event:
        values: dict[str, Json | Ready] = {
            "text": _said(step),
            "facts": self.facts,
            "step": call.step,
        }
        if call.form is not ArgumentsForm.ABSENT:
            values["args"] = call.arguments
        if call.result_step is not None:
            content = self.messages[call.result_step - 1].get("content")
            is_rejected = call.outcome is CallOutcome.REJECTED
            values["result"] = _result(content)
            values["error"] = _text(content) if is_rejected else None
        # A result that was added later stands nowhere in the transcript: right after its call.
        at = call.step if call.result_step in self._added else call.result_step
        return Event(call.step, at, call.outcome, Bindings(values))


def _said(step: Step) -> str:
    return "\n".join(part.text for part in step.parts if part.kind == "text")


def _result(content: Json) -> Json | Ready:
    if isinstance(content, str) and len(content) <= _REMEMBERED_CHARS:
        return _remembered_result(content)
    return result_of(content)


@lru_cache(maxsize=1024)
def _remembered_result(content: str) -> Ready:
    # Trials of a task read the same records.
    return Ready(result_of(content))


def result_of(content: Json) -> Json:
    """A tool's result: parsed where its text is JSON, else the text."""
    if content is None or not _is_text(content):
        return content
    text = text_of(content)
    try:
        return loads_text(text)
    except StrictJsonError:
        return text


def _is_text(content: Json) -> bool:
    """Whether content is text, or made of parts, and no JSON value of its own."""
    if isinstance(content, list):
        return all(
            isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("type"), str))
            for part in content
        )
    return isinstance(content, str)


def _text(content: Json) -> str:
    return text_of(content) if _is_text(content) else ""
