"""Messages of tau2-bench in the chat form of the native record.

Fields that are null and the provider's raw reply (`raw_data`), which repeats the message, are
left out: the stored upload keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from traces.core.formats.checks import object_or_empty, objects_in
from traces.core.values import Json, JsonObject

_CALL_FIELDS: Final = frozenset(("id", "name", "arguments", "requestor"))


def native_messages(messages: list[Json]) -> list[Json]:
    """The messages; several results in one message become one message each."""
    return [native for message in messages for native in _native(message)]


def agent_tokens(messages: list[Json]) -> tuple[int | None, int | None]:
    """Prompt and completion tokens of the agent's messages, None when none tells any."""
    usages = [
        object_or_empty(message.get("usage"))
        for message in objects_in(messages)
        if message.get("role") == "assistant"
    ]
    return _sum(usages, "prompt_tokens"), _sum(usages, "completion_tokens")


def _sum(usages: list[JsonObject], name: str) -> int | None:
    counts = [usage.get(name) for usage in usages]
    known = [n for n in counts if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return sum(known) if known else None


def _native(message: Json) -> Iterator[Json]:
    if not isinstance(message, dict):
        yield message  # refused by name where all messages are checked
        return
    several = message.get("tool_messages")
    if message.get("role") == "tool" and isinstance(several, list) and several:
        for single in several:
            yield from _native(single)
        return
    native: JsonObject = {
        name: value
        for name, value in message.items()
        if value is not None and name not in ("raw_data", "tool_calls")
    }
    native["content"] = message.get("content")
    if message.get("tool_calls"):
        native["tool_calls"] = _calls(message["tool_calls"])
    if message.get("role") == "tool":
        _name_result_fields(native)
    yield native


def _name_result_fields(native: JsonObject) -> None:
    if "id" in native:
        native["tool_call_id"] = native.pop("id")
    if isinstance(native.get("error"), bool):
        native["is_error"] = native.pop("error")


def _calls(calls: Json) -> Json:
    if not isinstance(calls, list):
        return calls  # refused by name where all messages are checked
    return [_call(call) if isinstance(call, dict) else call for call in calls]


def _call(call: JsonObject) -> JsonObject:
    if "function" in call:
        return call
    native: JsonObject = {
        "id": call.get("id"),
        "type": "function",
        "function": {"name": call.get("name"), "arguments": call.get("arguments")},
    }
    if call.get("requestor", "assistant") != "assistant":
        native["requestor"] = call["requestor"]
    return native | {name: call[name] for name in call if name not in _CALL_FIELDS}
