from __future__ import annotations

import copy
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.formats.reading import (
    CASES,
    MemoryStream,
    member_of,
    read,
    record,
    refusal,
    sliced,
    trial,
    warned,
    without,
)
from traces.core.canonical import canonical_text, digest_of, equal
from traces.core.formats.native import (
    item_of,
    item_of_slice,
    native_record,
    read_native,
    read_native_document,
)
from traces.core.formats.options import DEFAULT_OPTIONS, ReadOptions
from traces.core.formats.scanning import json_lines
from traces.core.limits import Limits
from traces.core.records import (
    Finding,
    Item,
    ParsedTrial,
    ParsedVerdicts,
    Source,
    TrialKey,
    TrialStatus,
)
from traces.core.trajectory import ArgumentsForm, CallOutcome, TrajectoryCall, TrajectoryMessage

FULL: dict[str, Any] = {
    "task_id": "12", "run": "nightly-14", "trial": 3, "attempt": 2,
    "agent": {"name": "airline", "version": "2.4.0", "model": "m"},
    "status": "completed", "error": None, "fault": {"kind": "timeout", "step": 7}, "environment": "test",
    "messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_user", "arguments": '{"id": 1}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "…", "is_error": False},
        {"role": "assistant", "content": "done"},
    ],
    "facts": {}, "final_state": {"a": 1},
    "verdicts": [{"grader": "g", "kind": "code", "criterion": "outcome", "verdict": "pass"}],
    "usage": {"cost_usd": 0.1, "input_tokens": 10, "output_tokens": 2},
    "started_at": "2026-11-30T10:00:00Z", "ended_at": "2026-11-30T10:00:01.5Z",
    "external_id": "sim-1", "termination_reason": "user_stop", "seed": 7, "extra": {"x": 1},
}  # fmt: skip


def test_trial_with_all_fields_is_read() -> None:
    parsed = trial(FULL)
    rest = without(FULL, "messages", "verdicts", "seed", "extra")
    assert parsed == ParsedTrial(
        key=TrialKey("nightly-14", "12", "3", 2),
        agent_name="airline",
        agent_version="2.4.0",
        agent_model="m",
        status=TrialStatus.COMPLETED,
        error="",
        environment="test",
        external_id="sim-1",
        messages=FULL["messages"],
        rest=rest | {"extra": {"seed": 7, "extra": {"x": 1}}},
        trajectory=(
            TrajectoryCall("get_user", {"id": 1}, ArgumentsForm.JSON, CallOutcome.COMMITTED, 2),
            TrajectoryMessage(4),
        ),
        n_tool_calls=1,
        n_rejected=0,
        verdicts=parsed.verdicts,
        cost_usd=Decimal("0.1"),
        input_tokens=10,
        output_tokens=2,
        started_at=datetime(2026, 11, 30, 10, tzinfo=UTC),
        ended_at=datetime(2026, 11, 30, 10, 0, 1, 500000, tzinfo=UTC),
        seconds=Decimal("1.5"),
        termination="user_stop",
        has_fault=True,
        task_digest=None,
        digest=digest_of(without(FULL, "verdicts")),
    )
    assert warned(FULL) == []


def test_trial_with_least_fields_is_read() -> None:
    parsed = trial({"task_id": 5, "trial": 0.0, "agent": {}, "messages": [], "record": "trial"})
    assert (parsed.key, parsed.agent_version, parsed.trajectory) == (
        TrialKey(None, "5", "0"),
        None,
        (),
    )
    assert (parsed.cost_usd, parsed.seconds, parsed.has_fault) == (None, None, False)
    assert parsed.rest == {"task_id": 5, "trial": 0, "agent": {}, "record": "trial"}


def test_digest_leaves_out_verdicts_and_the_spelling_of_numbers() -> None:
    digest = trial(FULL).digest
    assert trial(FULL | {"verdicts": []}).digest == digest
    assert trial(FULL | {"trial": 3.0}).digest == digest
    assert trial(FULL | {"final_state": {"a": True}}).digest != digest
    assert trial(without(FULL, "error")).digest != digest


@pytest.mark.parametrize(
    ("fields", "code", "place", "sentence"),
    [
        ({"task_id": None}, "missing-field", "task_id", "task_id is missing."),
        ({"task_id": "x" * 600}, "identifier-too-long", "task_id", "task_id too long (max 512)."),
        ({"trial": True}, "wrong-type", "trial", "trial must be text or a whole number, this is true or false."),
        ({"run": []}, "wrong-type", "run", "run must be text or a whole number, this is a list."),
        ({"attempt": 0}, "bad-attempt", "attempt", "attempt must be a whole number from 1 on."),
        ({"attempt": True}, "bad-attempt", "attempt", "attempt must be a whole number from 1 on."),
        ({"attempt": 1.5}, "bad-attempt", "attempt", "attempt must be a whole number from 1 on."),
        ({"agent": "airline"}, "wrong-type", "agent", "agent must be an object, this is text."),
        ({"agent": {"version": "\x00"}}, "bad-identifier", "agent.version", "agent.version holds a NUL character or half of a surrogate pair."),
        ({"messages": None}, "wrong-type", "messages", "messages must be a list, this is null."),
        ({"messages": [{}, None]}, "wrong-type", "messages[1]", "messages[1] must be an object, this is null."),
        ({"messages": [{"tool_calls": {}}, {"tool_calls": {"a": 1}}]}, "wrong-type", "messages[1].tool_calls", "messages[1].tool_calls must be a list, this is an object."),
        ({"messages": [{"tool_calls": [{}, "f()"]}]}, "wrong-type", "messages[0].tool_calls[1]", "messages[0].tool_calls[1] must be an object, this is text."),
        ({"status": "crashed"}, "bad-status", "status", "status must be completed or error, not 'crashed'."),
        ({"record": "event"}, "unknown-record", "record", "Unknown record type 'event': trial or verdicts."),
    ],
)  # fmt: skip
def test_trial_that_cannot_be_taken_names_its_field(
    fields: dict[str, Any], code: str, place: str, sentence: str
) -> None:
    assert refusal(record(**fields)) == (code, place, sentence)


def test_trial_without_messages_is_refused_by_name() -> None:
    assert refusal(without(record(), "messages")) == (
        "missing-field",
        "messages",
        "messages is missing.",
    )


def test_trial_that_is_no_object_is_refused() -> None:
    assert refusal([1]) == ("not-an-object", "", "A record must be a JSON object, this is a list.")


def test_trial_with_too_many_steps_is_refused() -> None:
    messages = [{"role": "user", "content": "x"}] * 4
    options = ReadOptions(limits=Limits(steps=3))
    assert refusal(record(messages=messages), options) == (
        "too-many-steps", "messages", "Too many steps: 4 (max 3).",
    )  # fmt: skip


def test_trial_without_agent_needs_a_given_release() -> None:
    nameless = without(record(), "agent")
    assert refusal(nameless)[:2] == ("missing-field", "agent")
    given_release = ReadOptions(release="2.4.0")
    assert trial(nameless, given_release).agent_version is None
    assert trial(record(), given_release).agent_version == "2.4.0"
    assert trial(record(agent={"version": ""}), given_release).agent_version is None


def test_trial_of_another_release_is_refused() -> None:
    assert refusal(record(), ReadOptions(release="2.5.0")) == (
        "other-release", "agent.version",
        'agent.version is "2.4.0", but the upload is for release "2.5.0".',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({}, TrialStatus.COMPLETED, ""),
        ({"error": None}, TrialStatus.COMPLETED, ""),
        ({"error": "boom"}, TrialStatus.ERROR, "boom"),
        (
            {"error": {"kind": "agent"}, "status": "completed"},
            TrialStatus.ERROR,
            '{"kind":"agent"}',
        ),
        ({"status": "error"}, TrialStatus.ERROR, ""),
    ],
)
def test_trial_status_an_error_beats_completed(
    fields: dict[str, Any], status: TrialStatus, error: str
) -> None:
    parsed = trial(record(**fields))
    assert (parsed.status, parsed.error) == (status, error)


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"usage": {"cost_usd": -1}}, ("out-of-range", "usage.cost_usd")),
        ({"usage": {"cost_usd": "0.1"}}, ("not-a-number", "usage.cost_usd")),
        ({"usage": {"input_tokens": 1.5}}, ("not-a-number", "usage.input_tokens")),
        ({"usage": 7}, ("wrong-type", "usage")),
        ({"started_at": "soon"}, ("malformed-time", "started_at")),
        ({"ended_at": "2026-01-01T00:00:00"}, ("naive-time", "ended_at")),
        ({"final_state": {"a\x00": 1}}, ("control-characters", 'final_state["a\\u0000"]')),
        ({"messages": [{"role": "user", "content": "a\u202eb\u200b"}]}, ("control-characters", "messages[0].content")),
        ({"messages": [{"role": "user", "content": "a\x7f"}]}, ("control-characters", "messages[0].content")),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]}]},
            ("arguments-not-json", "messages"),
        ),
    ],
)  # fmt: skip
def test_trial_odd_field_is_warned_of_and_the_trial_is_taken(
    fields: dict[str, Any], warning: tuple[str, str]
) -> None:
    assert warned(record(**fields)) == [warning]


def test_trial_unseen_characters_are_counted() -> None:
    content = {"messages": [{"role": "user", "content": ["x", "é\u202e\x1b[0m"]}]}
    (finding,) = read(record(**content)).warnings
    assert finding.sentence == "Contains control characters: 2 characters that cannot be seen."


def test_trial_escaped_text_of_an_escape_is_no_control_character() -> None:
    assert warned(record(messages=[{"role": "tool", "content": '{"a":"\\u0000 \\u202e"}'}])) == []
    assert warned(record(messages=[{"role": "user", "content": "’quoted’ 👍"}])) == []


def test_trial_nan_in_a_measure_is_missing_with_a_warning() -> None:
    text = canonical_text(record(usage={"cost_usd": "X"})).replace('"X"', "NaN").encode()
    assert trial(text).cost_usd is None
    assert warned(text) == [("not-finite", "usage.cost_usd")]
    text = canonical_text(record(facts={"a": "X"})).replace('"X"', "-Infinity").encode()
    assert refusal(text)[:2] == ("not-finite", "facts.a")


VERDICT = {"grader": "g", "kind": "judge", "criterion": "c", "verdict": "fail"}


def test_verdicts_alone_are_read() -> None:
    item = read({"record": "verdicts", "task_id": "12", "trial": 3, "verdicts": [VERDICT, {}]})
    assert isinstance(item.content, ParsedVerdicts)
    assert item.content.key == TrialKey(None, "12", "3")
    assert (item.content.external_id, item.content.agent_version) == ("", None)
    assert len(item.content.verdicts) == 1
    assert [finding.place for finding in item.refusals] == ["verdicts[1].criterion"]


def test_verdicts_alone_may_name_their_trial_by_the_id_of_the_source() -> None:
    content = read({"record": "verdicts", "external_id": "s1", "verdicts": [VERDICT]}).content
    assert isinstance(content, ParsedVerdicts)
    assert (content.key, content.external_id) == (None, "s1")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"task_id": "1", "trial": 0}, "verdicts"),
        ({"task_id": "1", "verdicts": []}, "trial"),
        ({"trial": 1, "external_id": "s", "verdicts": []}, "task_id"),
        ({"task_id": "1", "trial": 0, "agent": {"version": "9"}, "verdicts": []}, "agent.version"),
    ],
)
def test_verdicts_alone_that_cannot_be_taken_name_their_field(
    fields: dict[str, Any], place: str
) -> None:
    assert refusal({"record": "verdicts"} | fields, ReadOptions(release="1"))[1] == place


def test_item_of_takes_warnings_of_the_reader_before() -> None:
    finding = Finding("odd", "", "Odd.")
    item = item_of(record(), Source(1), warnings=[finding], task_digest=b"t")
    assert item.warnings == (finding,)
    assert isinstance(item.content, ParsedTrial)
    assert item.content.task_digest == b"t"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    st.dictionaries(st.text(max_size=5) | st.sampled_from(["extra", "final_state", "facts"]), JSON_VALUES, max_size=4),
    st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": JSON_VALUES}), max_size=3),
)  # fmt: skip
def test_native_record_written_again_has_the_same_digest(
    unknown: dict[str, Any], messages: list[Any]
) -> None:
    given_record = unknown | record(messages=messages)
    item = read(canonical_text(given_record).encode())
    if not isinstance(item.content, ParsedTrial):
        assert item.refusals
        return
    again = native_record(item.content.messages, item.content.rest)
    assert equal(again, given_record)
    assert trial(canonical_text(again).encode()).digest == item.content.digest


def test_native_record_carries_verdicts() -> None:
    parsed = trial(FULL)
    assert native_record(parsed.messages, parsed.rest, FULL["verdicts"]) == FULL


def test_read_native_one_item_a_line() -> None:
    member = member_of(b'{"a":1}\n\n[1]\n' + canonical_text(record()).encode(), "m.jsonl")
    items = list(read_native(member))
    assert [(i.source.number, i.source.member, i.content is None) for i in items] == [
        (1, "m.jsonl", True), (3, "m.jsonl", True), (4, "m.jsonl", False),
    ]  # fmt: skip
    assert items[2].source == Source(4, "m.jsonl", 13, len(canonical_text(record())))


def test_read_native_line_over_the_limit_is_refused() -> None:
    options = ReadOptions(limits=Limits(record_bytes=50))
    (item,) = read_native(member_of(record()), options)
    assert [finding.code for finding in item.refusals] == ["record-too-large"]


def test_read_native_document_takes_an_array() -> None:
    items = list(read_native_document(member_of([record(), 7, record(trial=4)])))
    assert [isinstance(i.content, ParsedTrial) for i in items] == [True, False, True]


def test_item_of_slice_mutated_bytes_are_read_or_refused() -> None:
    lines = [
        line.data
        for path in sorted(CASES.glob("*.jsonl"))
        for line in json_lines(MemoryStream(path.read_bytes()), DEFAULT_OPTIONS.limits)
    ]
    rng = random.Random(20261130)  # noqa: S311
    tokens = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"NaN", b"1e999", b"9" * 4500,
              b"\\u0000", b"\\ud800", b"\xff", b"\x00", b"\\", b"true", b"-1", b"[" * 70]  # fmt: skip
    for _ in range(2000):
        data = bytearray(rng.choice(lines))
        for _ in range(rng.choice((1, 1, 3))):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(3):
                case 0:
                    data[at : at + rng.randrange(3)] = rng.choice(tokens)
                case 1:
                    del data[at : at + rng.randrange(20)]
                case _:
                    data[at : at + 1] = bytes([rng.randrange(256)])
        item = item_of_slice(sliced(bytes(data)), "", DEFAULT_OPTIONS)
        assert item.content is not None or item.refusals
        assert all(f.sentence.endswith(".") for f in item.refusals + item.warnings)


ODD: list[Any] = [
    None, True, 0, -1, 2.5, 1e300, 10**30, "", "x", "\x00", "\ud800", "a" * 600, [], {}, [None],
    {"a": 1}, "tool", "2026-01-01", "pass", [["x"]], "{", [{"type": "text"}],
]  # fmt: skip


def test_item_of_odd_values_anywhere_are_read_or_refused() -> None:
    rng = random.Random(7)  # noqa: S311
    for _ in range(3000):
        odd = copy.deepcopy(FULL)
        for _ in range(rng.choice((1, 2, 4))):
            holder: Any = odd
            while True:
                keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
                if not keys:
                    break
                key = rng.choice(keys)
                if isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.7:
                    holder = holder[key]
                    continue
                holder[key] = copy.deepcopy(rng.choice(ODD))
                break
        item = item_of(odd, Source(1))
        assert item.content is not None or item.refusals


def items_of_case(name: str, options: ReadOptions = DEFAULT_OPTIONS) -> list[Item]:
    (path,) = CASES.glob(f"{name}.jsonl")
    return list(read_native(member_of(path.read_bytes()), options))


def trials_of_case(name: str) -> list[ParsedTrial]:
    return [item.content for item in items_of_case(name) if isinstance(item.content, ParsedTrial)]


@pytest.mark.parametrize(
    ("name", "n_taken", "refused"),
    [
        ("args-type-equality--one-true-text", 6, []),
        ("big-integer--args-and-state", 1, []),
        ("deep-nesting--control-40", 1, []),
        ("duplicate-json-keys--trial-number-twice", 1, [(1, 'Duplicate key "trial".')]),
        ("duplicate-json-keys--verdict-twice", 1, [(1, 'Duplicate key "verdict" at verdicts[0].')]),
        ("empty-trajectory--no-messages", 2, [(3, "messages is missing.")]),
        ("lone-surrogate--half-emoji", 2, []),
        ("malformed-line--middle", 3, [
            (2, "The text is cut short: it ends at messages[0], unfinished."),
            (4, "A record must be a JSON object, this is a list."),
            (5, "A record must be a JSON object, this is text."),
        ]),
        ("nan-infinity--cost-nan", 3, []),
        ("nan-infinity--score-1e999", 1, []),
        ("non-object-args--list-null-text", 5, []),
        ("nul-byte--object-key", 1, []),
        ("nul-byte--tool-output", 2, []),
        ("odd-identifiers--slashes", 7, []),
        ("stale-or-mixed-results--no-version", 2, [
            (3, "agent is missing: the record names no agent version, and no release is given."),
        ]),
        ("text-framing--bom-crlf-blank", 2, []),
        ("text-framing--u2028-inside", 1, []),
        ("truncated-file--last-line-cut", 1, [
            (2, "The text is cut short: it ends at expected_state.loans.L-204, unfinished."),
        ]),
        ("truncated-tool-args--nearly-json", 6, []),
        ("unknown-criterion--null-criterion", 1, [
            (1, "verdicts[0].criterion is missing."), (1, "verdicts[1].criterion is empty."),
        ]),
    ],
)  # fmt: skip
def test_case_is_taken_or_refused_line_by_line(
    name: str, n_taken: int, refused: list[tuple[int, str]]
) -> None:
    items = items_of_case(name)
    assert sum(isinstance(item.content, ParsedTrial) for item in items) == n_taken
    assert [(i.source.number, f.sentence) for i in items for f in i.refusals] == refused


def verdicts_of_case(name: str) -> list[tuple[str, str, str, Decimal | None]]:
    return [
        (v.criterion, v.value.value, v.raw_word, v.score)
        for parsed in trials_of_case(name)
        for v in parsed.verdicts
    ]


def test_case_malformed_verdicts_are_errors() -> None:
    assert verdicts_of_case("judge-malformed-verdict--spellings") == [
        ("c1", "pass", "PASS", None), ("c2", "pass", "Pass ", None),
        ("c3", "error", "GRADE: CI", None), ("c4", "error", "pass\u200b", None),
        ("c5", "error", "yes", None), ("c6", "error", "true", None), ("c7", "error", "", None),
    ]  # fmt: skip
    assert verdicts_of_case("judge-malformed-verdict--verdict-absent") == [
        ("policy_kept", "error", "", None), ("tone_ok", "pass", "pass", Decimal(0)),
    ]  # fmt: skip


def codes(name: str) -> list[list[str]]:
    return [[finding.code for finding in item.warnings] for item in items_of_case(name)]


def test_case_warnings_say_what_is_odd() -> None:
    assert codes("bidi-and-ansi--rlo-zw-ansi") == [["control-characters"]]
    assert codes("nul-byte--object-key") == [["control-characters"]]
    assert codes("nan-infinity--cost-nan") == [["not-finite"], ["not-finite"], []]
    assert codes("nan-infinity--score-1e999") == [["out-of-range"]]
    assert codes("negative-duration--trial-ends-before-start") == [[], ["negative-duration"]]
    assert codes("timezone-mix--same-instant") == [[], [], ["naive-time", "naive-time"], [], []]
    assert codes("judge-contradiction--bad-evidence") == [["cited-step-missing"]]
    assert codes("judge-malformed-verdict--verdict-absent") == [["verdict-against-score"]]
    assert codes("truncated-tool-args--nearly-json") == [["arguments-not-json"]] * 5 + [[]]


def test_case_measures_are_exact() -> None:
    assert [t.cost_usd for t in trials_of_case("nan-infinity--cost-nan")] == [
        None, None, Decimal("0.0123"),
    ]  # fmt: skip
    dimes = [t.cost_usd for t in trials_of_case("decimal-cost--ten-dimes")]
    assert sum(cost for cost in dimes if cost is not None) == Decimal("1.0")
    (parsed,) = trials_of_case("big-integer--args-and-state")
    assert parsed.rest["final_state"] == {"loan_no": 9007199254740993}
    assert parsed.rest["expected_state"] == {"loan_no": 9007199254740992}
    assert [t.seconds for t in trials_of_case("negative-duration--trial-ends-before-start")] == [
        Decimal(30), None,
    ]  # fmt: skip
    times = trials_of_case("timezone-mix--same-instant")
    assert len({t.started_at.replace(microsecond=0) for t in times if t.started_at}) == 1
    assert [t.seconds for t in times] == [Decimal(10)] * 4 + [Decimal("9.876544")]


def calls(parsed: ParsedTrial) -> list[tuple[str, Any, str, str]]:
    return [
        (step.name, step.arguments, step.form.value, step.outcome.value)
        for step in parsed.trajectory
        if isinstance(step, TrajectoryCall)
    ]


def test_case_calls_are_read_as_they_are() -> None:
    arguments = [calls(t)[0][1] for t in trials_of_case("non-object-args--list-null-text")]
    assert arguments == [[1, 2], None, "L-204", 7, True]
    first, second = trials_of_case("truncated-tool-args--cut-json")
    assert calls(first)[0][1:3] == ('{"loan_id": "L-20', "invalid")
    assert calls(second)[0][1:3] == ({}, "json")
    retried, straight = trials_of_case("retries-in-trajectory--fail-fail-ok")
    assert (retried.n_tool_calls, retried.n_rejected) == (3, 2)
    assert (straight.n_tool_calls, straight.n_rejected) == (1, 0)
    (named,) = trials_of_case("tool-name-forms--dots-slashes-unicode")
    assert named.n_tool_calls == 9


def test_case_same_content_has_the_same_digest() -> None:
    first, second = trials_of_case("resubmit-conflicting--number-spelling")
    assert (first.key, first.digest) == (second.key, second.digest)


def test_case_versions_and_errors_are_kept_apart() -> None:
    versions = [t.agent_version for t in trials_of_case("stale-or-mixed-results--two-versions")]
    assert versions == ["1.4.0", "1.4.0", "1.4.0", "1.3.9"]
    (failed,) = trials_of_case("error-status-lost--native-error-with-pass")
    assert (failed.status, len(failed.verdicts)) == (TrialStatus.ERROR, 1)
    assert [len(t.verdicts) for t in trials_of_case("no-verdicts--empty-list")] == [0, 0, 1]
    (chain,) = trials_of_case("human-override--override-chain")
    assert [(v.key, v.kind.value, v.overrides) for v in chain.verdicts] == [
        ("v1", "model", None), ("v2", "human", "v1"), ("v3", "human", "v2"),
    ]  # fmt: skip


def test_case_early_verdicts_are_the_same_twice() -> None:
    items = items_of_case("verdict-before-trace--two-graders-early")
    found = [i.content for i in items if isinstance(i.content, ParsedVerdicts)]
    assert len(found) == 3
    assert len({(c.key, v.key) for c in found for v in c.verdicts}) == 2
