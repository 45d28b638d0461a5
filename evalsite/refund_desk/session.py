"""One trial while it is told: the talk, the calls and the clock, as the harness would record them."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar

from evalsite.refund_desk.desk import Answer, Desk, Row, State

_Picked = TypeVar("_Picked")


class Chance:
    """Chance that repeats itself: the same name gives the same draws on every Python.

    It uses `Random.random` alone, the one method whose sequence Python promises to keep.
    """

    def __init__(self, name: str) -> None:
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
        self._random = Random(seed)  # noqa: S311 - nothing is secret here

    def below(self, end: int) -> int:
        """A whole number from 0 to end - 1."""
        return int(self._random.random() * end)

    def between(self, least: int, most: int) -> int:
        """A whole number from least to most."""
        return least + self.below(most - least + 1)

    def pick(self, options: Sequence[_Picked]) -> _Picked:
        """One of the options."""
        return options[self.below(len(options))]


@dataclass(frozen=True, slots=True)
class Called:
    """One call with what came of it. Without `result_step` its result was not recorded."""

    step: int
    tool: str
    arguments: Row
    answer: Answer
    result_step: int | None

    @property
    def is_committed(self) -> bool:
        return self.result_step is not None and not self.answer.is_error


@dataclass(frozen=True, slots=True)
class Said:
    """A message without a call."""

    step: int
    role: str  # user | assistant
    text: str


class HarnessBrokeError(Exception):
    """The harness breaks here; the trial ends without evidence about the agent."""


class Session:
    """Writes the messages of one trial, and remembers what happened for the graders."""

    def __init__(
        self,
        state: State,
        *,
        customer: str,
        facts: Mapping[str, Any],
        chance: Chance,
        begun_at: datetime,
    ) -> None:
        self.facts = facts
        self.chance = chance
        self.begun_at = self.now = begun_at
        self.initial = copy.deepcopy(state)
        self.desk = Desk(state, customer=customer, now=begun_at)
        self.messages: list[Row] = []
        self.calls: list[Called] = []
        self.said: list[Said] = []
        self.fault: Row | None = None
        self.has_final_state = True
        self.error: str | None = None
        self.input_tokens = 0
        self.output_tokens = 0
        self._faulty_tool = ""

    # What the story tells

    def user(self, *options: str, opens_link: bool = False) -> None:
        """The customer says one of these."""
        self._pass(2000, 6000)
        if opens_link:
            self.desk.customer_opens_link()
        self._say("user", self.chance.pick(options))

    def say(self, *options: str) -> None:
        """The agent says one of these."""
        self._turn()
        self._say("assistant", self.chance.pick(options))

    def call(self, tool: str, **arguments: Any) -> Row:
        """The agent calls a tool. Gives the result; {} where the tool refused."""
        return self.call_together((tool, arguments))[0]

    def call_together(self, *wanted: tuple[str, Row]) -> list[Row]:
        """The agent makes several calls in one message."""
        step = self._ask(wanted)
        return [self._answer(step, at, *one) for at, one in enumerate(wanted)]

    def call_without_result(self, tool: str, **arguments: Any) -> None:
        """The agent calls a tool that does its work, but its answer never reaches the record."""
        step = self._ask([(tool, arguments)])
        self.desk.now = self.now
        answer = self.desk.use(tool, arguments)
        self._pass(10_000, 12_000)
        self.calls.append(Called(step, tool, arguments, answer, None))
        if self._faulty_tool == tool:
            self._strike("lost result", step)

    def inject_timeout(self, tool: str, times: int = 1) -> None:
        """The test injects a fault: the next calls of the tool time out."""
        self.desk.times_out(tool, times)
        self._faulty_tool = tool

    def inject_lost_result(self, tool: str) -> None:
        """The test injects a fault: the result of the tool's next call gets lost."""
        self._faulty_tool = tool

    def state_is_not_recorded(self) -> None:
        """The harness forgets to read the state at the end."""
        self.has_final_state = False

    def breaks(self, error: str) -> None:
        """The harness breaks. Nothing behind this is told."""
        self.error = error
        self.has_final_state = False
        raise HarnessBrokeError(error)

    # What graders ask

    @property
    def n_steps(self) -> int:
        return len(self.messages)

    @property
    def seconds(self) -> float:
        return (self.now - self.begun_at).total_seconds()

    def last_words(self) -> Said | None:
        """The agent's last message."""
        return next((one for one in reversed(self.said) if one.role == "assistant"), None)

    # How it is written

    def _pass(self, least_ms: int, most_ms: int) -> None:
        self.now += timedelta(milliseconds=self.chance.between(least_ms, most_ms))

    def _write(self, message: Row) -> int:
        at = self.now.astimezone(UTC).isoformat(timespec="milliseconds")
        self.messages.append({**message, "timestamp": at.replace("+00:00", "Z")})
        return len(self.messages)

    def _say(self, role: str, text: str) -> None:
        step = self._write({"role": role, "content": text})
        self.said.append(Said(step, role, text))
        if role == "assistant":
            self.output_tokens += len(text) // 4 + 12

    def _turn(self) -> None:
        """The model is asked once: it reads everything so far."""
        self._pass(900, 2600)
        self.input_tokens += 420 + len(json.dumps(self.messages)) // 6

    def _ask(self, wanted: Sequence[tuple[str, Row]]) -> int:
        self._turn()
        number = len(self.calls) + 1
        calls = [
            {
                "id": f"call_{number + at}",
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(arguments, ensure_ascii=False)},
            }
            for at, (tool, arguments) in enumerate(wanted)
        ]
        self.output_tokens += len(json.dumps(calls)) // 5
        return self._write({"role": "assistant", "content": None, "tool_calls": calls})

    def _answer(self, step: int, at: int, tool: str, arguments: Row) -> Row:
        self.desk.now = self.now
        answer = self.desk.use(tool, arguments)
        is_late = answer.is_error and "timed out" in answer.text
        self._pass(10_000, 10_200) if is_late else self._pass(150, 900)
        call_id = self.messages[step - 1]["tool_calls"][at]["id"]
        result_step = self._write(
            {
                "role": "tool",
                "tool_call_id": call_id,
                "content": answer.text,
                "is_error": answer.is_error,
            }
        )
        self.calls.append(Called(step, tool, arguments, answer, result_step))
        if is_late and self._faulty_tool == tool:
            self._strike("timeout", result_step)
        return answer.result

    def _strike(self, kind: str, step: int) -> None:
        if self.fault is None:
            self.fault = {"kind": kind, "step": step, "tool": self._faulty_tool}
        if kind == "lost result":
            self._faulty_tool = ""
