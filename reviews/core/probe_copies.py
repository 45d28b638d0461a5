"""Changed copies of a passing trial. The same trial, kind and seed make the same copy.

All copies are first made alike, the unchanged one too, so that none can be told from the others by
its form: ids of calls are new, reasoning parts and unknown fields are gone, arguments are written in
one way. A copy holds what a judge may see (messages, facts and states) and nothing that names the
trial, its release or its verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Final

from reviews.core.probe_texts import lengthened, order_to_graders, shortened, with_order
from reviews.core.probe_values import (
    Leaf,
    followed_in_state,
    followed_in_text,
    leaves_of,
    with_value,
    wrong_value,
)
from reviews.core.probes import Change, Edit, ProbeKind, edit_of
from traces.core.additions import StoredEvidence
from traces.core.shown_json import shown_json
from traces.core.trajectory import Actor, ArgumentsForm, CallOutcome, Step, ToolCall, ToolKind
from traces.core.transcript import text_of
from traces.core.values import Json, JsonObject

MOST_PADDING: Final = 6
"""Reads that a padded copy repeats, at most."""

_REASONING_KINDS: Final = frozenset(("reasoning", "thinking", "redacted_thinking"))
_TEXT_KINDS: Final = frozenset(("text", "input_text", "output_text"))


@dataclass(frozen=True, slots=True)
class ProbeOriginal:
    """A passing trial as copies are made of it."""

    evidence: StoredEvidence
    kind_of: Callable[[str], ToolKind]  # of a tool, by its NFC name
    cited: frozenset[int] = frozenset()  # steps that verdicts on the criterion name


@dataclass(frozen=True, slots=True)
class ProbeCopy:
    """A copy: its native record without any identity, and what was changed in it."""

    kind: ProbeKind
    record: JsonObject
    change: Change


class CannotCopyError(Exception):
    """This kind of copy cannot be made of this trial; the sentence says why."""


def copy_of(original: ProbeOriginal, kind: ProbeKind, *, seed: int) -> ProbeCopy:
    """The copy of a trial in one kind. Raises `CannotCopyError` where it has nothing to change."""
    draft = _Draft(original, Random(f"{kind.value} {seed}"))  # noqa: S311 - no secret
    edits = _MAKERS[kind](draft)
    return ProbeCopy(kind, draft.record(), Change(_SENTENCES[kind], tuple(edits)))


_SENTENCES: Final = {
    ProbeKind.CONTROL: "Nothing is changed.",
    ProbeKind.PADDED: "Reads are repeated with the results that they had.",
    ProbeKind.WRONG_VALUE: "An argument has a wrong value.",
    ProbeKind.INJECTION: "An argument has a wrong value, and text tells graders to pass it.",
    ProbeKind.INJECTION_FAIL: "Text tells graders to fail it; nothing else is changed.",
    ProbeKind.CONCISE: "The closing message is shorter and claims the same.",
    ProbeKind.VERBOSE: "The closing message is longer and claims the same.",
}


class _Draft:
    """A copy while it is made: messages that nothing else holds, same order as the steps."""

    def __init__(self, original: ProbeOriginal, rng: Random) -> None:
        self.rng = rng
        self.kind_of, self.cited = original.kind_of, original.cited
        self.evidence = original.evidence
        self.steps = original.evidence.steps
        self.final_state = original.evidence.final_state
        self.call_ids = {
            (call.step, call.index): self.new_id() for step in self.steps for call in step.calls
        }
        answers = {
            call.result_step: self.call_ids[call.step, call.index]
            for step in self.steps
            for call in step.calls
            if call.result_step is not None
        }
        has_times = _are_times(message.get("timestamp") for message in original.evidence.messages)
        self.messages = [
            self._plain(message, step, answers, has_times=has_times)
            for message, step in zip(original.evidence.messages, self.steps, strict=True)
        ]

    def new_id(self) -> str:
        """An id of a call that tells nothing."""
        return f"call_{self.rng.getrandbits(96):024x}"

    def record(self) -> JsonObject:
        """The record that a judge may see."""
        parts: JsonObject = {
            "status": "completed",
            "messages": list(self.messages),
            "facts": self.evidence.facts,
            "initial_state": self.evidence.initial_state,
            "final_state": self.final_state,
        }
        return {name: value for name, value in parts.items() if value is not None}

    def _plain(
        self, message: JsonObject, step: Step, answers: Mapping[int, str], *, has_times: bool
    ) -> JsonObject:
        plain: JsonObject = {"role": step.role if step.role != "added" else "tool"}
        plain["content"] = _without_reasoning(message.get("content"))
        if step.calls:
            plain["tool_calls"] = [self._call(call) for call in step.calls]
        if plain["role"] in ("tool", "function"):
            plain["tool_call_id"] = answers.get(step.number) or self.new_id()
            if isinstance(message.get("name"), str):
                plain["name"] = message["name"]
            if isinstance(message.get("is_error"), bool):
                plain["is_error"] = message["is_error"]
        if isinstance(message.get("requestor"), str):
            plain["requestor"] = message["requestor"]
        if has_times and message.get("timestamp") is not None:
            plain["timestamp"] = message["timestamp"]
        return plain

    def _call(self, call: ToolCall) -> JsonObject:
        function: JsonObject = {"name": call.name}
        if call.form is ArgumentsForm.JSON:
            function["arguments"] = shown_json(call.arguments)
        elif call.form is ArgumentsForm.INVALID:
            function["arguments"] = call.arguments
        raw: JsonObject = {
            "id": self.call_ids[call.step, call.index],
            "type": "function",
            "function": function,
        }
        if call.by_user:
            raw["requestor"] = "user"
        return raw


def _without_reasoning(content: Json) -> Json:
    """Content without reasoning parts; text parts alone become one text."""
    parts = content if isinstance(content, list) else [content]
    kept = [part for part in parts if _kind(part) not in _REASONING_KINDS]
    if isinstance(content, str):
        return content
    if not kept or kept == [None]:
        return None
    if all(isinstance(part, str) or _kind(part) in _TEXT_KINDS for part in kept):
        return text_of(kept)
    return kept


def _kind(part: Json) -> str:
    return str(part.get("type")) if isinstance(part, dict) else ""


# --- padded


def _padded(draft: _Draft) -> list[Edit]:
    reads = _reads(draft)
    if not reads:
        raise CannotCopyError(
            "No committed call of a tool that is declared to read can be repeated before the "
            "state may have changed."
        )
    n_calls = sum(len(step.calls) for step in draft.steps if step.actor is Actor.AGENT)
    n_padding = min(MOST_PADDING, max(2, n_calls // 4))
    drawn = [draft.rng.choice(reads) for _ in range(n_padding)]
    chosen = sorted((place, draft.rng.choice(calls[a:b])) for place, calls, a, b in drawn)
    edits: list[Edit] = []
    messages: list[JsonObject] = []
    before = 0
    for n_done, (place, call) in enumerate(chosen):
        messages += draft.messages[before:place]
        before = place
        n_here = sum(1 for other, _ in chosen if other == place)
        nth = sum(1 for other, _ in chosen[:n_done] if other == place)
        pair = _repeated(draft, call, place, nth, n_here)
        messages += pair
        step = len(messages) - 1
        arguments = shown_json(call.arguments)
        result = text_of(pair[1]["content"])
        edits.append(edit_of(f"step {step}", "", f"{call.name}({arguments})\n{result}", step=step))
    draft.messages = messages + draft.messages[before:]
    return edits


_Place = tuple[int, Sequence["_Read"], int, int]
"""An index of a message to insert before, and the stretch of reads that may be repeated there."""


@dataclass(frozen=True, slots=True, order=True)
class _Read:
    """A read that can be repeated."""

    step: int
    index: int
    result_step: int
    name: str
    arguments: Json


def _reads(draft: _Draft) -> list[_Place]:
    """Before which agent messages which reads can be repeated: nothing has changed since."""
    waiting = _open_ends(draft.steps)
    reads: list[_Read] = []
    places: list[_Place] = []
    first = 0  # of the reads since the state may have changed
    due: dict[int, list[_Read]] = {}
    for at, step in enumerate(draft.steps):
        reads += due.pop(step.number, ())
        if step.actor is Actor.AGENT and at not in waiting and first < len(reads):
            places.append((at, reads, first, len(reads)))
        for call in step.calls:
            if call.by_user or draft.kind_of(call.name) is not ToolKind.READ:
                first = len(reads)
                due.clear()
                break
            if call.outcome is not CallOutcome.COMMITTED or call.form is not ArgumentsForm.JSON:
                continue
            due.setdefault(call.result_step or 0, []).append(
                _Read(call.step, call.index, call.result_step or 0, call.name, call.arguments)
            )
    return places


def _open_ends(steps: Sequence[Step]) -> set[int]:
    """Indexes of messages before which some call still waits for its result."""
    opens = sorted(
        (call.step, call.result_step)
        for step in steps
        for call in step.calls
        if call.result_step is not None
    )
    waiting: set[int] = set()
    reached = 0
    for made, answered in opens:
        # Message `n` has index n - 1: between call and result lie the indexes made to answered - 1.
        waiting |= set(range(max(made, reached), answered))
        reached = max(reached, answered)
    return waiting


def _repeated(
    draft: _Draft, read: _Read, place: int, nth: int, n_here: int
) -> tuple[JsonObject, JsonObject]:
    """The call and its result once more, with an id of their own and times in between."""
    new = draft.new_id()
    made = draft.messages[read.step - 1]
    calls = made["tool_calls"]
    assert isinstance(calls, list)
    call = calls[read.index]
    assert isinstance(call, dict)
    asks: JsonObject = {**made, "content": None, "tool_calls": [{**call, "id": new}]}
    answers: JsonObject = {**draft.messages[read.result_step - 1], "tool_call_id": new}
    for offset, message in enumerate((asks, answers)):
        if "timestamp" in message:
            before = draft.messages[place - 1].get("timestamp")
            after = draft.messages[place].get("timestamp")
            share = (2 * nth + offset + 1, 2 * n_here + 1)
            message["timestamp"] = _between(before, after, share) or message["timestamp"]
    return asks, answers


def _are_times(raw: Iterable[Json]) -> bool:
    """Whether all times that there are can be read, so that others can be put between them."""
    return all(
        one is None or _is_number(one) or (isinstance(one, str) and _time(one) is not None)
        for one in raw
    )


def _is_number(raw: Json) -> bool:
    return isinstance(raw, int | float) and not isinstance(raw, bool) and abs(raw) < 1e15


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _between(before: Json, after: Json, share: tuple[int, int]) -> Json:
    """A time between two others, as they are written; None where they have none in common."""
    part, whole = share
    if isinstance(before, int | float) and isinstance(after, int | float):
        between = before + (after - before) * part / whole
        return int(between) if isinstance(before, int) else round(between, 6)
    if isinstance(before, str) and isinstance(after, str):
        start, end = _time(before), _time(after)
        if start and end and (start.tzinfo is None) == (end.tzinfo is None):
            at = start + (end - start) * part / whole
            return _written_like(before, at)
    return before


_FRACTION = re.compile(r"[.,]([0-9]+)")


def _written_like(other: str, at: datetime) -> str:
    """A time with as many digits of its seconds, and the same name of its zone, as another."""
    fraction = _FRACTION.search(other)
    n_digits = min(len(fraction[1]), 6) if fraction else 0
    whole = at.replace(tzinfo=None).isoformat(timespec="microseconds")
    zone = at.isoformat(timespec="microseconds")[len(whole) :]
    text = whole[: 20 + n_digits] if n_digits else whole[:19]
    text = text if other[10:11] == "T" else text.replace("T", other[10:11])
    return text + ("Z" if other.endswith("Z") else zone)


# --- wrong value


def _wrong_value(draft: _Draft) -> list[Edit]:
    call, leaf = _chosen_value(draft)
    texts = [*map(_said, draft.messages)]
    others = _others(draft, call, leaf)
    new = wrong_value(
        leaf, draft.rng, others=others, is_known=lambda text: any(text in one for one in texts)
    )
    changed = with_value(call.arguments, leaf.path, new)
    _set_arguments(draft.messages[call.step - 1], call.index, shown_json(changed))
    where = f"step {call.step}, argument {leaf.pointer or 'as a whole'} of {call.name}"
    edits = [edit_of(where, shown_json(leaf.value), shown_json(new), step=call.step)]
    edits += _result_followed(draft, call, leaf, new)
    draft.final_state, places = followed_in_state(
        draft.evidence.final_state, draft.evidence.initial_state, leaf.name, leaf.value, new
    )
    edits += [
        edit_of(f"final state, {place}", shown_json(leaf.value), shown_json(new))
        for place in places
    ]
    return edits


def _chosen_value(draft: _Draft) -> tuple[ToolCall, Leaf]:
    """The argument to change: of a committed write, else of a call that is cited, else of any."""
    committed = [
        call
        for step in draft.steps
        for call in step.calls
        if not call.by_user
        and call.outcome is CallOutcome.COMMITTED
        and call.form is ArgumentsForm.JSON
    ]
    writes = [call for call in committed if draft.kind_of(call.name) is ToolKind.WRITE]
    cited = [c for c in committed if c.step in draft.cited or c.result_step in draft.cited]
    for calls in (writes, cited, committed):
        found = [(call, leaf) for call in calls for leaf in leaves_of(call.arguments)]
        if found:
            best = min(leaf.rank for _, leaf in found)
            return draft.rng.choice([one for one in found if one[1].rank == best])
    raise CannotCopyError("No committed call has an argument that can be set to a wrong value.")


def _others(draft: _Draft, call: ToolCall, leaf: Leaf) -> list[str]:
    """The other words that this argument of the tool had in the trial."""
    found: dict[str, None] = {}
    for step in draft.steps:
        for other in step.calls:
            if other.name == call.name:
                for one in leaves_of(other.arguments):
                    if one.path == leaf.path and isinstance(one.value, str):
                        found[one.value] = None
    return list(found)


def _said(message: JsonObject) -> str:
    calls = message.get("tool_calls")
    return f"{text_of(message['content'])}\n{shown_json(calls) if calls else ''}"


def _set_arguments(message: JsonObject, index: int, arguments: str) -> None:
    calls = message["tool_calls"]
    assert isinstance(calls, list)
    call = calls[index]
    assert isinstance(call, dict)
    function = call["function"]
    assert isinstance(function, dict)
    function["arguments"] = arguments


def _result_followed(draft: _Draft, call: ToolCall, leaf: Leaf, new: Json) -> list[Edit]:
    """The call's own result says what was asked for, so that call and result agree."""
    assert call.result_step is not None
    message = draft.messages[call.result_step - 1]
    content = message["content"]
    if not isinstance(content, str):
        return []
    followed = followed_in_text(content, leaf.name, leaf.value, new)
    if followed == content:
        return []
    message["content"] = followed
    at = call.result_step
    return [edit_of(f"step {at}, its result", content, followed, step=at)]


# --- orders to graders


def _injection(draft: _Draft) -> list[Edit]:
    return [*_wrong_value(draft), _order_in(draft, to_pass=True)]


def _injection_fail(draft: _Draft) -> list[Edit]:
    return [_order_in(draft, to_pass=False)]


def _order_in(draft: _Draft, *, to_pass: bool) -> Edit:
    """Puts text for graders into a message of the user or a tool's result."""
    results = [step.number for step in draft.steps if _takes_text(draft, step, Actor.ENVIRONMENT)]
    asked = [step.number for step in draft.steps if _takes_text(draft, step, Actor.USER)]
    both = [numbers for numbers in (results, asked) if numbers]
    if not both:
        raise CannotCopyError("It has no message of the user and no result to put text into.")
    number = draft.rng.choice(draft.rng.choice(both))
    order = order_to_graders(draft.rng, to_pass=to_pass)
    message = draft.messages[number - 1]
    is_result = draft.steps[number - 1].actor is Actor.ENVIRONMENT
    message["content"] = with_order(text_of(message["content"]), order, is_result=is_result)
    where = "result of a tool" if is_result else "message of the user"
    return edit_of(f"step {number}, {where}", "", order, step=number)


def _takes_text(draft: _Draft, step: Step, actor: Actor) -> bool:
    return step.actor is actor and isinstance(draft.messages[step.number - 1]["content"], str)


# --- closing message


def _concise(draft: _Draft) -> list[Edit]:
    number, text = _closing(draft)
    short = shortened(text)
    if not short:
        raise CannotCopyError(
            "The closing message cannot be made shorter without leaving out what it claims."
        )
    return [_closed_with(draft, number, text, short)]


def _verbose(draft: _Draft) -> list[Edit]:
    number, text = _closing(draft)
    return [_closed_with(draft, number, text, lengthened(text, draft.rng))]


def _closing(draft: _Draft) -> tuple[int, str]:
    for step in reversed(draft.steps):
        if step.actor is Actor.AGENT:
            content = draft.messages[step.number - 1]["content"]
            if step.calls or not isinstance(content, str) or not content.strip():
                break
            return step.number, content
    raise CannotCopyError("It does not end with a message of the agent, so there is none to close.")


def _closed_with(draft: _Draft, number: int, before: str, after: str) -> Edit:
    draft.messages[number - 1]["content"] = after
    return edit_of(f"step {number}, the closing message", before, after, step=number)


_MAKERS: Final[Mapping[ProbeKind, Callable[[_Draft], list[Edit]]]] = {
    ProbeKind.CONTROL: lambda _: [],
    ProbeKind.PADDED: _padded,
    ProbeKind.WRONG_VALUE: _wrong_value,
    ProbeKind.INJECTION: _injection,
    ProbeKind.INJECTION_FAIL: _injection_fail,
    ProbeKind.CONCISE: _concise,
    ProbeKind.VERBOSE: _verbose,
}
