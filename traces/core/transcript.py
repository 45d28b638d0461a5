"""From native messages to typed steps, and from steps to the trajectory.

Calls and results are paired by id: a result answers the latest earlier message with an unanswered
call of that id, and in it the first such call. A result without an id, or with one that no call
bears, answers the first unanswered earlier call that has no id, or any at all when neither side
names ids. Whatever finds no partner stays as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from traces.core.canonical import canonical_text, nfc
from traces.core.rules import RejectionSettings
from traces.core.strict_json import StrictJsonError, loads_text
from traces.core.trajectory import (
    Actor,
    ArgumentsForm,
    CallOutcome,
    Part,
    Step,
    ToolCall,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
    TrajectoryStep,
)
from traces.core.values import Json, JsonObject

_ACTORS: Final = {
    "assistant": Actor.AGENT,
    "user": Actor.USER,
    "system": Actor.SYSTEM,
    "developer": Actor.SYSTEM,
    "tool": Actor.ENVIRONMENT,
    "function": Actor.ENVIRONMENT,
}
_PART_KINDS: Final = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "text",
    "reasoning": "reasoning",
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "data",
    "input_audio": "data",
    "file": "data",
    "data": "data",
}
_REASONING_FIELDS: Final = ("reasoning", "reasoning_content", "thinking")
_TEXT_FIELDS: Final = ("text", "reasoning", "thinking", "refusal", "summary", "content")
_ABSENT: Final = object()


DEFAULT_REJECTION: Final = RejectionSettings()


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a call's result when the message that holds it is not at hand."""

    outcome: CallOutcome
    result_step: int | None


@dataclass(frozen=True, slots=True)
class CountedTrajectory:
    """A trajectory and how many calls of it there are: in all, rejected, with bad arguments."""

    trajectory: Trajectory
    n_calls: int
    n_rejected: int
    n_invalid: int


NO_ANSWERS: Final[Mapping[tuple[int, int], Answer]] = MappingProxyType({})


def transcript_of(
    messages: Sequence[JsonObject],
    rejection: RejectionSettings = DEFAULT_REJECTION,
    *,
    first_number: int = 1,
    answers: Mapping[tuple[int, int], Answer] = NO_ANSWERS,
) -> tuple[Step, ...]:
    """The steps of the messages, the first of them numbered `first_number`.

    Of a slice of a transcript, `answers` brings the results that lie outside, by the step and
    index of their call; a call without a partner on either way has outcome unknown.
    """
    paired = _Pairing(rejection).paired(messages, first_number)
    return tuple(
        _step_of(message, number, calls, answers)
        for number, (message, calls) in enumerate(zip(messages, paired, strict=True), first_number)
    )


def trajectory_of(steps: Sequence[Step]) -> Trajectory:
    """The agent's own tool calls, and its messages without one, in order."""
    path: list[TrajectoryStep] = []
    for step in steps:
        if step.actor is not Actor.AGENT:
            continue
        calls = [call for call in step.calls if not call.by_user]
        if not calls:
            path.append(TrajectoryMessage(step.number))
        path += (
            TrajectoryCall(call.name, call.arguments, call.form, call.outcome, call.step)
            for call in calls
        )
    return tuple(path)


def counted_trajectory_of(
    messages: Sequence[JsonObject], rejection: RejectionSettings = DEFAULT_REJECTION
) -> CountedTrajectory:
    """The trajectory of whole messages, the same as by their steps, without building those."""
    paired = _Pairing(rejection).paired(messages, 1)
    path: list[TrajectoryStep] = []
    n_calls = n_rejected = n_invalid = 0
    for number, message in enumerate(messages, 1):
        if message.get("role") != "assistant":
            continue
        own = [call for call in paired[number - 1] if not call.by_user]
        if not own:
            path.append(TrajectoryMessage(number))
        for call in own:
            n_calls += 1
            n_rejected += call.outcome is CallOutcome.REJECTED
            n_invalid += call.form is ArgumentsForm.INVALID
            path.append(TrajectoryCall(call.name, call.arguments, call.form, call.outcome, number))
    return CountedTrajectory(tuple(path), n_calls, n_rejected, n_invalid)


def text_of(content: Json) -> str:
    """The text parts of a message's content, joined by line breaks."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in _parts_of(content) if part.kind == "text")


class _Call:
    """A call while its result is being looked for."""

    __slots__ = ("arguments", "by_user", "form", "id", "name", "outcome", "result_step", "step")

    def __init__(self, raw: Json, step: int, *, by_user: bool) -> None:
        self.step = step
        self.outcome = CallOutcome.UNKNOWN
        self.result_step: int | None = None
        self.id: str | None = None
        self.by_user = by_user
        if not isinstance(raw, dict):
            self.name = ""
            self.arguments: Json = canonical_text(raw)
            self.form = ArgumentsForm.INVALID
            return
        if raw.get("requestor") == "user":
            self.by_user = True
        self.id = _id_of(raw.get("id"))
        function = raw.get("function")
        holder = function if isinstance(function, dict) else raw
        name = holder.get("name", function)
        self.name = nfc(name) if isinstance(name, str) else ""
        self.arguments, self.form = _arguments_of(holder.get("arguments"))


class _Pairing:
    """One walk over messages that reads their calls and finds each one's result.

    Answered calls leave the queues lazily, so that no order of hostile ids makes it quadratic.
    """

    def __init__(self, rejection: RejectionSettings) -> None:
        self.rejection = rejection
        self.by_id: dict[str, list[deque[_Call]]] = {}  # a queue for each message
        self.all = (deque[_Call](), deque[_Call]())  # the agent's, the user's
        self.without_id = (deque[_Call](), deque[_Call]())

    def paired(self, messages: Sequence[JsonObject], first: int) -> list[Sequence[_Call]]:
        """The calls of each message, as far as the messages tell with their results."""
        found: list[Sequence[_Call]] = []
        for number, message in enumerate(messages, first):
            role = message.get("role")
            if role in ("tool", "function"):
                self._answer(message, number)
                found.append(())
                continue
            raw_calls = message.get("tool_calls") or _legacy_call(message)
            if not isinstance(raw_calls, list):
                found.append(())
                continue
            calls = [_Call(raw, number, by_user=role == "user") for raw in raw_calls]
            for call in calls:
                self._wait(call)
            found.append(calls)
        return found

    def _wait(self, call: _Call) -> None:
        self.all[call.by_user].append(call)
        if call.id is None:
            self.without_id[call.by_user].append(call)
            return
        queues = self.by_id.setdefault(call.id, [])
        if queues and queues[-1] and queues[-1][0].step == call.step:
            queues[-1].append(call)
        else:
            queues.append(deque((call,)))

    def _answer(self, message: JsonObject, number: int) -> None:
        call = self._answered_by(message)
        if call is None:
            return
        call.result_step = number
        is_rejected = _is_rejected(message, self.rejection)
        call.outcome = CallOutcome.REJECTED if is_rejected else CallOutcome.COMMITTED

    def _answered_by(self, message: JsonObject) -> _Call | None:
        id_ = result_id_of(message)
        queues = self.by_id.get(id_, []) if id_ is not None else []
        while queues:
            call = _first_unanswered(queues[-1])
            if call is not None:
                return call
            queues.pop()
        waiting = self.all if id_ is None else self.without_id
        return _first_unanswered(waiting[message.get("requestor") == "user"])


def _first_unanswered(queue: deque[_Call]) -> _Call | None:
    while queue:
        if queue[0].result_step is None:
            return queue[0]
        queue.popleft()
    return None


def result_id_of(message: JsonObject) -> str | None:
    """The id of the call that a tool result answers."""
    return _id_of(message.get("tool_call_id"))


def _is_rejected(message: JsonObject, rejection: RejectionSettings) -> bool:
    flag = message.get("is_error")
    if rejection.use_flag and isinstance(flag, bool):
        return flag
    return rejection.is_rejection(text_of(message.get("content")), flag=None)


def _legacy_call(message: JsonObject) -> Json:
    """The one call of the chat form before `tool_calls`, as a list."""
    call = message.get("function_call")
    return [call] if isinstance(call, dict) else None


def _id_of(raw: Json) -> str | None:
    if isinstance(raw, str):
        return raw or None
    return str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else None


def _arguments_of(raw: Json) -> tuple[Json, ArgumentsForm]:
    if isinstance(raw, str):
        if not raw:
            return {}, ArgumentsForm.JSON
        try:
            return loads_text(raw), ArgumentsForm.JSON
        except StrictJsonError:
            return raw, ArgumentsForm.INVALID
    return raw, (ArgumentsForm.ABSENT if raw is None else ArgumentsForm.JSON)


def _step_of(
    message: JsonObject,
    number: int,
    calls: Sequence[_Call],
    answers: Mapping[tuple[int, int], Answer],
) -> Step:
    role = message.get("role")
    is_result = role in ("tool", "function")
    flag = message.get("is_error")
    return Step(
        number=number,
        actor=_ACTORS.get(role, Actor.OTHER) if isinstance(role, str) else Actor.OTHER,
        role=role if isinstance(role, str) else "",
        parts=_reasoning_of(message) + _parts_of(message.get("content")),
        calls=tuple(_typed(call, index, answers) for index, call in enumerate(calls)),
        result_of=result_id_of(message) if is_result else None,
        is_error=flag if is_result and isinstance(flag, bool) else None,
        at=_time_text(message.get("timestamp")),
    )


def _typed(call: _Call, index: int, answers: Mapping[tuple[int, int], Answer]) -> ToolCall:
    answer = Answer(call.outcome, call.result_step)
    if call.result_step is None:
        answer = answers.get((call.step, index), answer)
    return ToolCall(
        id=call.id,
        name=call.name,
        arguments=call.arguments,
        form=call.form,
        outcome=answer.outcome,
        step=call.step,
        index=index,
        result_step=answer.result_step,
        by_user=call.by_user,
    )


def _time_text(raw: Json) -> str | None:
    if raw is None or isinstance(raw, bool | dict | list):
        return None
    return raw if isinstance(raw, str) else canonical_text(raw)


def _reasoning_of(message: JsonObject) -> tuple[Part, ...]:
    texts = (message.get(name) for name in _REASONING_FIELDS)
    return tuple(Part("reasoning", text) for text in texts if isinstance(text, str) and text)


def _parts_of(content: Json) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (Part("text", content),) if content else ()
    if isinstance(content, list):
        return tuple(_part_of(item) for item in content)
    return (_part_of(content),)


def _part_of(item: Json) -> Part:
    if isinstance(item, str):
        return Part("text", item)
    if not isinstance(item, dict):
        return Part("other", canonical_text(item))
    kind = _PART_KINDS.get(str(item.get("type")), "other")
    if kind in ("text", "reasoning"):
        text = next((item[name] for name in _TEXT_FIELDS if isinstance(item.get(name), str)), None)
        return Part(kind, text if isinstance(text, str) else canonical_text(item))
    if kind == "image":
        return Part(kind, _image_address(item))
    return Part(kind, canonical_text(item))


def _image_address(item: JsonObject) -> str:
    holder = item.get("image_url", item.get("image"))
    address = holder.get("url") if isinstance(holder, dict) else holder
    return address if isinstance(address, str) else canonical_text(item)
