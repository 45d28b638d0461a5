"""Changed copies of a passing trial."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reviews.core.probe_copies import (
    MOST_PADDING,
    CannotCopyError,
    ProbeCopy,
    ProbeOriginal,
    copy_of,
)
from reviews.core.probes import ProbeKind
from traces.core.additions import AddedResult, Addition, StoredEvidence, filled
from traces.core.records import TrialStatus
from traces.core.trajectory import ToolKind
from traces.core.transcript import transcript_of
from traces.core.values import JsonObject

SECRET = "what nobody is told"  # noqa: S105


def kind_of(tool: str) -> ToolKind:
    return ToolKind.READ if tool.startswith("get") else ToolKind.WRITE


def call(number: int, name: str, arguments: Any) -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": text}
    return {"id": f"c{number}", "type": "function", "function": function}


def asks(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


def answers(number: int, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": content, **more}


def at(second: int) -> dict[str, str]:
    return {"timestamp": f"2026-01-01T10:00:{second:02}Z"}


REFUND: list[dict[str, Any]] = [
    {"role": "system", "content": "You are the refund desk.", **at(0)},
    {"role": "user", "content": "Order A-2291 arrived damaged.", "trace_id": SECRET, **at(1)},
    asks(call(1, "get_order", {"order": "A-2291"}), reasoning=SECRET, **at(10)),
    answers(1, '{"order": "A-2291", "amount": 84.00}', name="get_order", is_error=False, **at(11)),
    {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": SECRET}, {"type": "text", "text": "Sure?"}],
        "usage": {"tokens": 5},
        **at(20),
    },
    {"role": "user", "content": "Yes.", **at(30)},
    asks(call(2, "issue_refund", {"order": "A-2291", "amount": 84.0}), **at(40)),
    answers(2, '{"refund": "R-1", "order": "A-2291"}', **at(41)),
    {
        "role": "assistant",
        "content": "I refunded 84.00. Is there anything else I can help you with?",
        **at(50),
    },
]


def original(
    messages: Sequence[JsonObject],
    *,
    kinds: Callable[[str], ToolKind] = kind_of,
    cited: frozenset[int] = frozenset(),
    **more: Any,
) -> ProbeOriginal:
    evidence = StoredEvidence(
        TrialStatus.COMPLETED, tuple(messages), transcript_of(messages), **more
    )
    return ProbeOriginal(evidence, kinds, cited)


def refund() -> ProbeOriginal:
    return original(
        REFUND,
        facts={"order": "A-2291"},
        initial_state={"refunds": []},
        final_state={"refunds": [{"order": "A-2291", "amount": 84.0}]},
        expected_state={"secret": SECRET},
    )


def texts(copy: ProbeCopy) -> str:
    return json.dumps(copy.record)


def shape(value: Any) -> Any:
    """The names of the fields, at every depth of messages."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


def test_an_unchanged_copy_holds_what_a_judge_may_see_and_no_more() -> None:
    copy = copy_of(refund(), ProbeKind.CONTROL, seed=1)

    assert copy.change.edits == ()
    assert set(copy.record) == {"status", "messages", "facts", "initial_state", "final_state"}
    assert SECRET not in texts(copy)
    assert '"c1"' not in texts(copy)
    messages: Any = copy.record["messages"]
    assert messages[4] == {"role": "assistant", "content": "Sure?", **at(20)}
    assert messages[3]["tool_call_id"] == messages[2]["tool_calls"][0]["id"]
    assert messages[3]["name"] == "get_order"
    assert messages[6]["tool_calls"][0]["function"] == {
        "name": "issue_refund",
        "arguments": '{"order": "A-2291", "amount": 84.0}',
    }


@pytest.mark.parametrize("kind", list(ProbeKind))
def test_the_same_seed_makes_the_same_copy_and_another_one_other_ids(kind: ProbeKind) -> None:
    first, again = (copy_of(refund(), kind, seed=3) for _ in range(2))
    assert first == again
    assert copy_of(refund(), kind, seed=4).record != first.record


@pytest.mark.parametrize("seed", range(8))
def test_copies_of_all_kinds_have_the_same_fields_and_no_id_in_common(seed: int) -> None:
    copies = [copy_of(refund(), kind, seed=seed) for kind in ProbeKind]
    control: Any = copies[0].record["messages"]
    shapes = {json.dumps(shape(message)) for message in control}
    ids: list[str] = []
    for copy in copies:
        messages: Any = copy.record["messages"]
        assert {json.dumps(shape(message)) for message in messages} <= shapes
        assert list(copy.record) == list(copies[0].record)
        ids += [raw["id"] for message in messages for raw in message.get("tool_calls", ())]
        for word in ("probe", "control", "padded", "copy", SECRET):
            assert word not in texts(copy).lower()
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("seed", range(12))
def test_a_padded_copy_repeats_reads_and_never_a_write(seed: int) -> None:
    copy = copy_of(refund(), ProbeKind.PADDED, seed=seed)
    messages: Any = copy.record["messages"]
    steps = transcript_of(messages)
    calls = [one for step in steps for one in step.calls]

    assert [c.name for c in calls].count("issue_refund") == 1
    reads = [c for c in calls if c.name == "get_order"]
    assert len(reads) == 1 + len(copy.change.edits) == 3
    written = next(c for c in calls if c.name == "issue_refund")
    assert all(read.step < written.step for read in reads)
    for read in reads:
        assert read.result_step == read.step + 1
        assert messages[read.step]["content"] == REFUND[3]["content"]
    assert [edit.step for edit in copy.change.edits] == [read.step for read in reads[1:]]
    times = [message["timestamp"] for message in messages]
    assert times == sorted(times)
    kept = [m for i, m in enumerate(messages, 1) if i not in _padding(reads[1:])]
    assert [m["content"] for m in kept] == [
        m["content"]
        for m in copy_of(refund(), ProbeKind.CONTROL, seed=1).record["messages"]  # type: ignore[union-attr,index,call-overload]
    ]


def _padding(reads: Sequence[Any]) -> set[int]:
    return {step for read in reads for step in (read.step, read.result_step)}


def test_a_read_is_not_repeated_after_the_state_may_have_changed() -> None:
    late = [*REFUND[:4], *REFUND[6:]]
    assert all(
        edit.step < 7
        for seed in range(10)
        for edit in copy_of(original(late), ProbeKind.PADDED, seed=seed).change.edits[:1]
    )
    writes_first = [REFUND[1], *REFUND[6:8], REFUND[8]]
    with pytest.raises(CannotCopyError, match="declared to read"):
        copy_of(original(writes_first), ProbeKind.PADDED, seed=1)
    with pytest.raises(CannotCopyError, match="declared to read"):
        copy_of(original(REFUND, kinds=lambda _: ToolKind.WRITE), ProbeKind.PADDED, seed=1)


def test_reads_beside_a_write_or_without_a_result_are_not_repeated() -> None:
    beside = [
        asks(call(1, "get_order", {}), call(2, "issue_refund", {}), call(3, "get_order", {})),
        answers(1, "a"),
        answers(2, "b"),
        answers(3, "c"),
        REFUND[8],
    ]
    refused = [asks(call(1, "get_order", {})), answers(1, "no", is_error=True), REFUND[8]]
    broken = [asks(call(1, "get_order", "{")), answers(1, "x"), REFUND[8]]
    silent = [asks(call(1, "get_order", {})), REFUND[8]]
    by_user = [
        *REFUND[2:4],
        {"role": "user", "content": None, "tool_calls": [call(9, "get_status", {})]},
        REFUND[8],
    ]
    for messages in (beside, refused, broken, silent, by_user):
        with pytest.raises(CannotCopyError):
            copy_of(original(messages), ProbeKind.PADDED, seed=1)


def test_calls_and_their_results_are_never_parted() -> None:
    messages = [
        asks(call(1, "get_a", {}), call(2, "get_b", {})),
        answers(2, "b"),
        answers(1, "a"),
        asks(call(3, "get_c", {})),
        {"role": "assistant", "content": "One moment."},
        answers(3, "c"),
        REFUND[8],
    ]
    for seed in range(20):
        copy = copy_of(original(messages), ProbeKind.PADDED, seed=seed)
        made: Any = copy.record["messages"]
        assert [m["role"] for m in made[:3]] == ["assistant", "tool", "tool"]
        repeated = {edit.after.split("(")[0] for edit in copy.change.edits}
        assert repeated <= {"get_a", "get_b", "get_c"}
        assert all(call_.result_step for step in transcript_of(made) for call_ in step.calls)
        at_c = next(i for i, m in enumerate(made) if m["content"] == "One moment.")
        assert made[at_c + 1]["content"] == "c"


@pytest.mark.parametrize(
    ("first", "second"),
    [(100, 200), (0.5, 1.5), ("2026-01-01T10:00:00.5", "2026-01-01T10:00:09"), (None, None)],
)
def test_times_of_repeated_reads_lie_between_their_neighbours(first: Any, second: Any) -> None:
    messages = [
        asks(call(1, "get_a", {}), timestamp=first),
        answers(1, "a", timestamp=first),
        {**REFUND[8], "timestamp": second},
    ]
    made: Any = copy_of(original(messages), ProbeKind.PADDED, seed=1).record["messages"]
    times = [message.get("timestamp") for message in made]
    if first is None:
        assert times == [None] * len(made)
    else:
        assert times == sorted(times)
        assert times[2] > times[1]
        assert {type(time) for time in times} == {type(first)}


@pytest.mark.parametrize(
    ("first", "second", "between"),
    [
        ("2026-01-01T10:00:00.000Z", "2026-01-01T10:00:05.000Z", "2026-01-01T10:00:01.000Z"),
        ("2026-01-01T10:00:00", "2026-01-01T10:00:10", "2026-01-01T10:00:02"),
        (
            "2026-01-01 10:00:00.123456+02:00",
            "2026-01-01 10:00:05.123456+02:00",
            "2026-01-01 10:00:01.123456+02:00",
        ),
    ],
)
def test_times_are_written_as_their_neighbours(first: str, second: str, between: str) -> None:
    messages = [
        asks(call(1, "get_a", {}), timestamp=first),
        answers(1, "a", timestamp=first),
        {**REFUND[8], "timestamp": second},
    ]
    made: Any = copy_of(original(messages), ProbeKind.PADDED, seed=1).record["messages"]
    assert made[2]["timestamp"] == between


def test_times_that_differ_in_kind_are_repeated_and_unreadable_ones_left_out() -> None:
    mixed = [
        asks(call(1, "get_a", {}), timestamp=1),
        answers(1, "a", timestamp="2026-01-01T10:00:00"),
        {**REFUND[8], "timestamp": "2026-01-01T10:00:00Z"},
    ]
    made: Any = copy_of(original(mixed), ProbeKind.PADDED, seed=1).record["messages"]
    assert made[2]["timestamp"] == made[1]["timestamp"]
    partly = [mixed[0], {k: v for k, v in mixed[1].items() if k != "timestamp"}, REFUND[8]]
    made = copy_of(original(partly), ProbeKind.PADDED, seed=1).record["messages"]
    assert made[2]["timestamp"] == 1
    for odd in ("yesterday", True, [1], 1e300):
        unread = [*mixed[:2], {**REFUND[8], "timestamp": odd}]
        made = copy_of(original(unread), ProbeKind.CONTROL, seed=1).record["messages"]
        assert not any("timestamp" in message for message in made)


@pytest.mark.parametrize("seed", range(12))
def test_a_wrong_value_is_in_the_write_its_result_and_the_state(seed: int) -> None:
    copy = copy_of(refund(), ProbeKind.WRONG_VALUE, seed=seed)
    control: Any = copy_of(refund(), ProbeKind.CONTROL, seed=1).record
    made: Any = copy.record
    arguments = json.loads(made["messages"][6]["tool_calls"][0]["function"]["arguments"])
    assert arguments != {"order": "A-2291", "amount": 84.0}
    assert made["final_state"]["refunds"][0] == arguments
    assert made["initial_state"] == control["initial_state"]
    assert json.loads(made["messages"][7]["content"])["order"] == arguments["order"]
    for place in (0, 1, 3, 4, 5, 8):
        assert made["messages"][place]["content"] == control["messages"][place]["content"]
    first = copy.change.edits[0]
    assert first.place.startswith("step 6, argument /") or first.place.startswith("step 7, ")
    assert first.step == 7
    assert len(copy.change.edits) == (3 if arguments["order"] != "A-2291" else 2)


def test_without_a_write_a_cited_call_gets_the_wrong_value() -> None:
    messages = [
        asks(call(1, "get_order", {"order": "A-1"})),
        answers(1, "A-1 is late"),
        asks(call(2, "get_order", {"order": "B-2"})),
        answers(2, ["B-2", {"type": "image", "image": "x"}]),
        asks(call(3, "get_rules", {})),
        answers(3, "none"),
        REFUND[8],
    ]
    cited = copy_of(original(messages, cited=frozenset({2})), ProbeKind.WRONG_VALUE, seed=1)
    assert [edit.place for edit in cited.change.edits] == [
        "step 1, argument /order of get_order",
        "step 2, its result",
    ]
    places = {
        copy_of(original(messages), ProbeKind.WRONG_VALUE, seed=seed).change.edits[0].place
        for seed in range(20)
    }
    assert places == {f"step {n}, argument /order of get_order" for n in (1, 3)}


def test_another_word_of_the_same_argument_is_taken() -> None:
    messages = [
        asks(call(1, "pay", {"to": "card"})),
        answers(1, "no", is_error=True),
        asks(call(2, "pay", {"to": "voucher", "n": None})),
        answers(2, {"text": "paid"}),
        asks(call(3, "other", {"to": "x"}), call(4, "pay", {"too": "y"})),
        REFUND[8],
    ]
    copy = copy_of(original(messages), ProbeKind.WRONG_VALUE, seed=1)
    assert [(edit.before, edit.after) for edit in copy.change.edits] == [('"voucher"', '"card"')]


def test_a_whole_argument_can_be_wrong() -> None:
    messages = [asks(call(1, "cancel", '"A-1"')), answers(1, "ok"), REFUND[8]]
    copy = copy_of(original(messages), ProbeKind.WRONG_VALUE, seed=1)
    assert copy.change.edits[0].place == "step 1, argument as a whole of cancel"


@pytest.mark.parametrize("kind", [ProbeKind.WRONG_VALUE, ProbeKind.INJECTION])
def test_without_a_value_to_change_there_is_no_copy(kind: ProbeKind) -> None:
    for messages in ([REFUND[8]], [asks(call(1, "cancel", {})), answers(1, "ok"), REFUND[8]]):
        with pytest.raises(CannotCopyError, match="wrong value"):
            copy_of(original(messages), kind, seed=1)


def test_orders_stand_in_results_and_messages_of_the_user() -> None:
    places: set[str] = set()
    for seed in range(30):
        copy = copy_of(refund(), ProbeKind.INJECTION_FAIL, seed=seed)
        (edit,) = copy.change.edits
        made: Any = copy.record["messages"]
        json_text = made[edit.step - 1]["content"]
        assert edit.after in json_text or json.dumps(edit.after)[1:-1] in json_text
        assert "fail" in edit.after.lower()
        places.add(edit.place)
    assert places == {
        "step 2, message of the user",
        "step 4, result of a tool",
        "step 6, message of the user",
        "step 8, result of a tool",
    }
    order = copy_of(refund(), ProbeKind.INJECTION, seed=1).change.edits[-1]
    assert "pass" in order.after.lower()


def test_without_a_place_for_an_order_there_is_no_copy() -> None:
    picture = [{"role": "user", "content": [{"type": "image", "image": "x"}]}, REFUND[8]]
    with pytest.raises(CannotCopyError, match="no message of the user"):
        copy_of(original(picture), ProbeKind.INJECTION_FAIL, seed=1)


def test_the_closing_message_is_made_shorter_and_longer() -> None:
    short = copy_of(refund(), ProbeKind.CONCISE, seed=1)
    assert short.change.edits[0].after == "I refunded 84.00."
    longer: Any = copy_of(refund(), ProbeKind.VERBOSE, seed=1).record["messages"]
    assert longer[-1]["content"].count(REFUND[8]["content"]) == 2


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "user", "content": "Hi."}], "does not end with a message"),
        (REFUND[:8], "does not end with a message"),
        ([{"role": "assistant", "content": " "}], "does not end with a message"),
        ([{"role": "assistant", "content": "Refunded 84.00."}], "cannot be made shorter"),
    ],
)
def test_a_closing_message_that_cannot_be_changed_is_left(
    messages: list[JsonObject], words: str
) -> None:
    with pytest.raises(CannotCopyError, match=words):
        copy_of(original(messages), ProbeKind.CONCISE, seed=1)


def test_odd_messages_keep_what_they_say() -> None:
    messages: list[Any] = [
        {"content": "no role"},
        {"role": "user", "content": [{"type": "image", "image": "x"}, "look"]},
        {"role": "user", "content": {"type": "text", "text": "one part"}},
        {"role": "assistant", "content": [{"type": "reasoning", "text": SECRET}]},
        {"role": "assistant", "content": ["a", {"type": "text", "text": "b"}]},
        {"role": "assistant", "function_call": {"name": "get_a", "arguments": "{"}},
        {"role": "function", "name": "get_a", "content": "x", "requestor": "assistant"},
        {"role": "assistant", "tool_calls": [{"name": "get_b", "requestor": "user"}, 5]},
        {"role": "tool", "content": "of no call", "name": 7, "is_error": "no"},
    ]
    made: Any = copy_of(original(messages), ProbeKind.CONTROL, seed=1).record["messages"]
    assert SECRET not in json.dumps(made)
    assert [m["role"] for m in made] == [
        "", "user", "user", "assistant", "assistant", "assistant", "function", "assistant", "tool",
    ]  # fmt: skip
    assert made[1]["content"] == [{"type": "image", "image": "x"}, "look"]
    assert [made[place]["content"] for place in (2, 3, 4)] == ["one part", None, "a\nb"]
    assert made[5]["tool_calls"][0]["function"] == {"name": "get_a", "arguments": "{"}
    assert made[6]["tool_call_id"] == made[5]["tool_calls"][0]["id"]
    assert made[6]["requestor"] == "assistant"
    assert made[7]["tool_calls"][0] == {
        "id": made[7]["tool_calls"][0]["id"],
        "type": "function",
        "function": {"name": "get_b"},
        "requestor": "user",
    }
    assert "name" not in made[8]
    assert "is_error" not in made[8]


def test_added_evidence_is_part_of_a_copy() -> None:
    recorded = original([asks(call(1, "cancel", {"order": "A-1"})), REFUND[8]])
    addition = Addition(final_state={"done": True}, results=(AddedResult(1, 0, "A-1 cancelled"),))
    evidence = filled(recorded.evidence, [addition])
    copy = copy_of(ProbeOriginal(evidence, kind_of), ProbeKind.WRONG_VALUE, seed=1)
    made: Any = copy.record["messages"]
    assert made[2]["role"] == "tool"
    assert made[2]["tool_call_id"] == made[0]["tool_calls"][0]["id"]
    assert copy.record["final_state"] == {"done": True}
    assert [edit.place for edit in copy.change.edits] == [
        "step 1, argument /order of cancel",
        "step 3, its result",
    ]


def test_a_trial_of_many_steps_is_copied_within_bounds() -> None:
    messages: list[JsonObject] = [{"role": "user", "content": "Go on."}]
    for number in range(2_000):
        messages.append(asks(call(number, "get_page", {"page": number})))
        messages.append(answers(number, f"page {number}"))
        messages.append({"role": "user", "content": "More."})
    messages += [asks(call(9_999, "save", {"order": "A-1"})), answers(9_999, "saved")]
    messages.append({"role": "assistant", "content": "Saved. Have a great day!"})
    trial = original(messages)
    for kind in ProbeKind:
        copy = copy_of(trial, kind, seed=1)
        n_added = len(copy.record["messages"]) - len(messages)  # type: ignore[arg-type]
        assert n_added == (2 * MOST_PADDING if kind is ProbeKind.PADDED else 0)
