"""Voice runs of tau2-bench: ticks of a fifth of a second, folded into messages.

The rule: the chunks of one side are one turn until that side is silent for `SILENT_TICKS` ticks
or calls a tool; a turn stands where it began. A turn is one message, with the text of its chunks
joined, and `ticks` naming its first and last. A tick's calls are an assistant (or user) message
of their own, and each of its results a tool message. Ticks in which nobody speaks or acts leave
no message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from traces.core.formats.checks import object_or_empty, objects_in, text_or_empty
from traces.core.values import Json, JsonObject

SILENT_TICKS: Final = 10
"""Two seconds."""

_SIDES: Final = (("agent", "assistant"), ("user", "user"))


def messages_of_ticks(ticks: Sequence[JsonObject]) -> list[JsonObject]:
    """The messages of a voice run, calls and results in tau2's own form."""
    folding = _Folding()
    for position, tick in enumerate(ticks):
        for side, role in _SIDES:
            folding.speech(position, tick, object_or_empty(tick.get(f"{side}_chunk")), role)
        for side, role in _SIDES:
            folding.acts(tick, side, role)
    return [message for message in folding.messages if message]


class _Folding:
    def __init__(self) -> None:
        self.messages: list[JsonObject] = []
        self.turns: dict[str, JsonObject] = {}
        self.last_speech: dict[str, int] = {}

    def speech(self, position: int, tick: JsonObject, chunk: JsonObject, role: str) -> None:
        text = text_or_empty(chunk.get("content"))
        if not text and chunk.get("contains_speech") is not True:
            return
        turn = self.turns.get(role)
        if turn is None or position - self.last_speech[role] > SILENT_TICKS:
            turn = {"role": role, "content": "", "ticks": []}
            if tick.get("timestamp") is not None:
                turn["timestamp"] = tick["timestamp"]
            self.turns[role] = turn
            self.messages.append(turn)
            turn["ticks"] = [position, position]
        turn["content"] = text_or_empty(turn["content"]) + text
        turn["ticks"] = [_first_of(turn["ticks"]), position]
        self.last_speech[role] = position

    def acts(self, tick: JsonObject, side: str, role: str) -> None:
        calls = objects_in(tick.get(f"{side}_tool_calls"))
        results = objects_in(tick.get(f"{side}_tool_results"))
        if calls:
            self.turns.pop(role, None)
            message: JsonObject = {"role": role, "content": None, "tool_calls": list(calls)}
            if tick.get("timestamp") is not None:
                message["timestamp"] = tick["timestamp"]
            self.messages.append(message)
        for result in results:
            self.messages.append({**result, "role": "tool"})


def _first_of(ticks: Json) -> Json:
    return ticks[0] if isinstance(ticks, list) else None
