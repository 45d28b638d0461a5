from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core.rules import RejectionSettings
from traces.core.trajectory import (
    Actor,
    ArgumentsForm,
    CallOutcome,
    Part,
    Step,
    ToolCall,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.transcript import (
    Answer,
    counted_trajectory_of,
    text_of,
    trajectory_of,
    transcript_of,
)

JSON, INVALID, ABSENT = ArgumentsForm.JSON, ArgumentsForm.INVALID, ArgumentsForm.ABSENT
COMMITTED, REJECTED, UNKNOWN = CallOutcome.COMMITTED, CallOutcome.REJECTED, CallOutcome.UNKNOWN


def call(id_: Any, name: Any = "f", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    } | more


def assistant(*calls: dict[str, Any], content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(id_: Any, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content} | more


def outcomes(
    messages: list[Any], **options: Any
) -> list[tuple[str | None, CallOutcome, int | None]]:
    steps = transcript_of(messages, **options)
    return [(c.id, c.outcome, c.result_step) for step in steps for c in step.calls]


def test_transcript_of_whole_dialogue_gives_typed_steps() -> None:
    messages: list[Any] = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hi", "timestamp": "2026-01-01T00:00:00Z"},
        {**assistant(call("c1", "get", '{"id": 1}'), content="a moment"), "reasoning": "hm"},
        result("c1", '{"ok": true}', is_error=False, timestamp=1700000000),
        {"role": "critic", "content": ""},
        {"content": "no role"},
    ]
    made = ToolCall("c1", "get", {"id": 1}, JSON, COMMITTED, 3, 0, 4)
    assert transcript_of(messages) == (
        Step(1, Actor.SYSTEM, "system", (Part("text", "be kind"),)),
        Step(2, Actor.USER, "user", (Part("text", "hi"),), at="2026-01-01T00:00:00Z"),
        Step(
            3, Actor.AGENT, "assistant", (Part("reasoning", "hm"), Part("text", "a moment")), (made,)
        ),
        Step(
            4, Actor.ENVIRONMENT, "tool", (Part("text", '{"ok": true}'),),
            result_of="c1", is_error=False, at="1700000000",
        ),
        Step(5, Actor.OTHER, "critic", ()),
        Step(6, Actor.OTHER, "", (Part("text", "no role"),)),
    )  # fmt: skip


def test_trajectory_of_keeps_the_agents_own_actions_only() -> None:
    messages: list[Any] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": None, "tool_calls": [call("u1", "toggle")]},
        result("u1", requestor="user"),
        assistant(call("c1", "get"), call("x", "theirs", requestor="user")),
        result("c1", "Error: no"),
        assistant(call("y", "theirs", requestor="user")),
    ]
    expected = (
        TrajectoryMessage(2),
        TrajectoryCall("get", {}, JSON, REJECTED, 5),
        TrajectoryMessage(7),
    )
    assert trajectory_of(transcript_of(messages)) == expected
    counted = counted_trajectory_of(messages)
    assert (counted.trajectory, counted.n_calls, counted.n_rejected, counted.n_invalid) == (
        expected, 1, 1, 0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given_arguments", "arguments", "form"),
    [
        ('{"a": 1}', {"a": 1}, JSON),
        (' {"a": 1} ', {"a": 1}, JSON),
        ("", {}, JSON),
        ({"a": 1}, {"a": 1}, JSON),
        ("[1,2]", [1, 2], JSON),
        ("null", None, JSON),
        ('"L-1"', "L-1", JSON),
        ("true", True, JSON),
        ([], [], JSON),
        ('{"a": ', '{"a": ', INVALID),
        ('{"a":1,"a":2}', '{"a":1,"a":2}', INVALID),
        ('{"n": NaN}', '{"n": NaN}', INVALID),
        ("[" * 3000, "[" * 3000, INVALID),
        ("9" * 5000, "9" * 5000, INVALID),
        (" ", " ", INVALID),
        (None, None, ABSENT),
    ],
)
def test_transcript_of_arguments_are_parsed_or_kept_raw(
    given_arguments: Any, arguments: Any, form: ArgumentsForm
) -> None:
    (step,) = transcript_of([assistant(call("c", "f", given_arguments))])
    assert [(c.arguments, c.form) for c in step.calls] == [(arguments, form)]


def test_transcript_of_call_without_arguments_is_not_comparable() -> None:
    messages: list[Any] = [
        assistant({"id": "a", "name": "f"}, {"id": "b", "name": "g", "arguments": {}}),
        assistant({"id": "c", "function": "h", "arguments": {"x": 1}}, {"id": "d"}),
        {"role": "assistant", "content": None, "tool_calls": ["text"]},
    ]
    calls = [c for step in transcript_of(messages) for c in step.calls]
    assert [(c.name, c.arguments, c.form) for c in calls] == [
        ("f", None, ABSENT),
        ("g", {}, JSON),
        ("h", {"x": 1}, JSON),
        ("", None, ABSENT),
        ("", '"text"', INVALID),
    ]


def test_transcript_of_tool_names_are_compared_after_nfc() -> None:
    (step,) = transcript_of([assistant(call("a", "cafe\u0301"), call("b", 7))])
    assert [c.name for c in step.calls] == ["café", ""]


def test_transcript_of_chat_form_before_tool_calls_is_read() -> None:
    messages: list[Any] = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "ok"},
        {"role": "assistant", "function_call": "auto", "tool_calls": None},
    ]
    assert outcomes(messages) == [(None, COMMITTED, 2)]


def test_pairing_swapped_results_go_by_id() -> None:
    messages = [assistant(call("1"), call("2")), result("2", "Error"), result("1")]
    assert outcomes(messages) == [("1", COMMITTED, 3), ("2", REJECTED, 2)]


def test_pairing_without_ids_goes_in_order_on_each_side() -> None:
    messages: list[Any] = [
        assistant(call(None), call("")),
        {"role": "user", "content": None, "tool_calls": [call(None)]},
        result(None, "Error", requestor="user"),
        result(None),
        result(None, "Error"),
        result(None, "one too many"),
    ]
    assert outcomes(messages) == [
        (None, COMMITTED, 4), (None, REJECTED, 5), (None, REJECTED, 3),
    ]  # fmt: skip


def test_pairing_repeated_ids_go_to_the_latest_message_first() -> None:
    messages = [
        assistant(call("0"), call("0")), result("0"), assistant(call("0")), result("0", "Error"),
        result("0"), result("0", "extra"),
    ]  # fmt: skip
    assert outcomes(messages) == [("0", COMMITTED, 2), ("0", COMMITTED, 5), ("0", REJECTED, 4)]


def test_pairing_unknown_id_answers_a_call_without_id_only() -> None:
    assert outcomes([assistant(call("a")), result("b")]) == [("a", UNKNOWN, None)]
    assert outcomes([assistant(call(None)), result("b")]) == [(None, COMMITTED, 2)]
    assert outcomes([assistant(call(7)), result(7)]) == [("7", COMMITTED, 2)]
    assert outcomes([assistant(call("a")), result(None)]) == [("a", COMMITTED, 2)]
    assert outcomes([result("a"), assistant(call("a"))]) == [("a", UNKNOWN, None)]


@pytest.mark.parametrize(
    ("content", "more", "outcome"),
    [
        ("Error: no", {}, REJECTED),
        ("error: timeout", {}, REJECTED),
        ("Error: no", {"is_error": False}, COMMITTED),
        ("fine", {"is_error": True}, REJECTED),
        ("fine", {"is_error": None}, COMMITTED),
        ("An Error", {}, COMMITTED),
        (None, {}, COMMITTED),
        ([{"type": "text", "text": "Error"}], {}, REJECTED),
    ],
)
def test_outcome_a_flag_decides_before_the_text(
    content: Any, more: dict[str, Any], outcome: CallOutcome
) -> None:
    assert outcomes([assistant(call("a")), result("a", content, **more)]) == [("a", outcome, 2)]


def test_outcome_text_convention_is_a_setting() -> None:
    messages = [assistant(call("a")), result("a", "DENIED")]
    assert outcomes(messages, rejection=RejectionSettings(prefixes=("DENIED",))) == [
        ("a", REJECTED, 2)
    ]
    assert outcomes(messages, rejection=RejectionSettings(prefixes=())) == [("a", COMMITTED, 2)]


def test_transcript_of_a_slice_takes_results_from_outside() -> None:
    messages: list[Any] = [result("z"), assistant(call("a"), call("b"))]
    known = {(102, 1): Answer(REJECTED, 104)}
    steps = transcript_of(messages, first_number=101, answers=known)
    assert [step.number for step in steps] == [101, 102]
    assert [(c.step, c.outcome, c.result_step) for c in steps[1].calls] == [
        (102, UNKNOWN, None), (102, REJECTED, 104),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (None, ()),
        ("", ()),
        (7, (Part("other", "7"),)),
        ({"a": 1}, (Part("other", '{"a":1}'),)),
        (["x", 1], (Part("text", "x"), Part("other", "1"))),
        (
            [
                {"type": "text", "text": "one"},
                {"type": "image_url", "image_url": {"url": "https://example.org/x.png"}},
                {"type": "image", "image": "data:x"},
                {"type": "input_image"},
                {"type": "thinking", "thinking": "hm"},
                {"type": "reasoning", "summary": []},
                {"type": "input_audio", "data": "AA"},
                {"type": "tool_use", "name": "f"},
            ],
            (
                Part("text", "one"),
                Part("image", "https://example.org/x.png"),
                Part("image", "data:x"),
                Part("image", '{"type":"input_image"}'),
                Part("reasoning", "hm"),
                Part("reasoning", '{"summary":[],"type":"reasoning"}'),
                Part("data", '{"data":"AA","type":"input_audio"}'),
                Part("other", '{"name":"f","type":"tool_use"}'),
            ),
        ),
    ],
)
def test_transcript_of_all_parts_are_kept_in_order(content: Any, parts: tuple[Part, ...]) -> None:
    (step,) = transcript_of([{"role": "user", "content": content}])
    assert step.parts == parts


def test_transcript_of_odd_fields_are_no_fault() -> None:
    messages: list[Any] = [
        {"role": {"a": 1}, "timestamp": {"a": 1}, "is_error": 1, "tool_calls": 7}
    ]
    assert transcript_of(messages) == (Step(1, Actor.OTHER, "", ()),)


def test_text_of_joins_the_text_parts() -> None:
    assert text_of("a") == "a"
    assert text_of([{"type": "text", "text": "a"}, {"type": "image"}, "b"]) == "a\nb"


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool"])},
        optional={
            "tool_calls": st.lists(
                st.builds(
                    call,
                    st.sampled_from([None, "1", "2"]),
                    requestor=st.sampled_from(["user", "assistant"]),
                ),
                max_size=3,
            ),
            "tool_call_id": st.sampled_from([None, "1", "2", "3"]),
            "content": st.sampled_from([None, "ok", "Error"]),
            "requestor": st.sampled_from(["user", "assistant"]),
        },
    ),
    max_size=12,
)


@given(MESSAGES)
def test_counted_trajectory_of_is_the_trajectory_of_the_steps(messages: list[Any]) -> None:
    counted = counted_trajectory_of(messages)
    steps = transcript_of(messages)
    assert counted.trajectory == trajectory_of(steps)
    answered = [c.result_step for step in steps for c in step.calls if c.result_step is not None]
    assert len(answered) == len(set(answered))
    assert all(messages[step - 1]["role"] == "tool" for step in answered)
    assert all(
        c.result_step > c.step for step in steps for c in step.calls if c.result_step is not None
    )


@pytest.mark.parametrize("ids", [("a", "a"), ("a", "b"), (None, "b"), ("a", None)])
def test_pairing_many_hostile_calls_takes_no_quadratic_time(ids: tuple[Any, Any]) -> None:
    n = 20_000
    messages: list[Any] = [assistant(*(call(ids[0]) for _ in range(n)))]
    messages += [result(ids[1]) for _ in range(n)]
    started = time.process_time()
    transcript_of(messages)
    assert time.process_time() - started < 5
