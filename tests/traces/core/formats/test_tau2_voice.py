from __future__ import annotations

from typing import Any

from tests.traces.core.formats.reading import member_of
from traces.core.formats.tau2 import read_tau2_simulation
from traces.core.formats.tau2_voice import SILENT_TICKS, messages_of_ticks
from traces.core.records import ParsedTrial


def tick(agent: Any = None, user: Any = None, **more: Any) -> dict[str, Any]:
    def chunk(text: Any) -> dict[str, Any]:
        return {"content": text if isinstance(text, str) else None, "contains_speech": bool(text)}

    return {"timestamp": "t", "agent_chunk": chunk(agent), "user_chunk": chunk(user)} | more


def test_messages_of_ticks_speech_of_one_side_is_one_turn() -> None:
    ticks = [tick(), tick("Hel"), tick("lo", "Hi"), {}, tick(None, True)]
    assert messages_of_ticks(ticks) == [
        {"role": "assistant", "content": "Hello", "ticks": [1, 2], "timestamp": "t"},
        {"role": "user", "content": "Hi", "ticks": [2, 4], "timestamp": "t"},
    ]


def test_messages_of_ticks_long_silence_ends_a_turn() -> None:
    short = [tick("a"), *[tick()] * (SILENT_TICKS - 1), tick("b")]
    long = [tick("a"), *[tick()] * SILENT_TICKS, tick("b")]
    assert [m["content"] for m in messages_of_ticks(short)] == ["ab"]
    assert [m["content"] for m in messages_of_ticks(long)] == ["a", "b"]


def test_messages_of_ticks_calls_and_results_are_messages_of_their_own() -> None:
    call = {"id": "c1", "name": "get", "arguments": {}}
    ticks = [
        tick("one moment"),
        tick(agent_tool_calls=[call]),
        {"agent_chunk": {"content": "um"}},
        {"agent_tool_results": [{"id": "c1", "content": "ok", "error": False}], "user_tool_calls": [{"id": "u", "name": "f"}]},
        tick("done"),
    ]  # fmt: skip
    simulation = {
        "id": "s",
        "task_id": "1",
        "trial": 0,
        "mode": "full_duplex",
        "messages": None,
        "ticks": ticks,
    }
    (item,) = read_tau2_simulation(member_of(simulation))
    assert isinstance(item.content, ParsedTrial)
    assert [m["role"] for m in item.content.messages] == [
        "assistant", "assistant", "assistant", "tool", "user",
    ]  # fmt: skip
    assert (item.content.n_tool_calls, item.content.n_rejected) == (1, 0)


def test_messages_of_ticks_without_speech_leave_no_message() -> None:
    assert messages_of_ticks([{}, tick(), {"agent_chunk": 7, "agent_tool_calls": 7}]) == []
