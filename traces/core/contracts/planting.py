"""Grader tests: planted trials in their short form, written out as native records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from traces.core.contracts.conforming import nearest
from traces.core.contracts.model import PlantedTrial
from traces.core.contracts.places import Findings, Path, path_of, quoted
from traces.core.formats.native import item_of
from traces.core.records import Source
from traces.core.shown_json import shown_json
from traces.core.values import Json, JsonObject

_RECORD_FIELDS: Final = (
    "facts",
    "initial_state",
    "final_state",
    "expected_state",
    "status",
    "usage",
    "started_at",
    "ended_at",
)
MOST_PLANTED_STEPS: Final = 5_000
"""Of all planted trials of a contract together, what they take over from each other counted."""

_MOST_HINTED: Final = 10  # findings, others counted: guessing takes long among many names

_STAND_IN: Final[JsonObject] = {
    "task_id": "planted",
    "trial": 0,
    "agent": {"name": "planted", "version": "1"},
}
_ANY_VALUE: Final = frozenset(("facts", "initial_state", "final_state", "expected_state"))
_FAULTY_WARNINGS: Final = frozenset(
    ("not-a-number", "out-of-range", "malformed-time", "negative-duration")
)
"""What a reader of trials takes as missing; in a planted trial it is a mistake."""


def planted_trials(
    tests: Sequence[tuple[int, JsonObject]], checks: Sequence[str], findings: Findings
) -> tuple[PlantedTrial, ...]:
    """The planted trials, each with its index in the document; `checks` may be expected."""
    written: dict[str, JsonObject] = {}
    trials: list[PlantedTrial] = []
    n_steps = 0
    for index, data in tests:
        path: Path = ("grader_tests", index)
        name = str(data["name"])
        if name in written:
            sentence = f"There is a grader test {quoted(name)} already."
            findings.add("second-name", (*path, "name"), sentence)
            continue
        full = _written_out(data, written, path, findings)
        n_steps += sum(len(_list_of(full, part)) for part in ("steps", "messages"))
        if n_steps > MOST_PLANTED_STEPS:
            sentence = (
                f"The grader tests hold more than {MOST_PLANTED_STEPS} steps together, those taken "
                "over counted: make them shorter."
            )
            findings.add("too-many-steps", path, sentence)
            break
        written[name] = full
        expect = tuple(_expected(data["expect"], checks, path, findings))
        record = _record_of(full)
        _check_record(record, path, findings)
        trials.append(PlantedTrial(name, record, expect))
    return tuple(trials)


def _hint(word: str, known: Iterable[str], findings: Findings) -> str:
    """What was probably meant, for the first few mistakes."""
    return nearest(word, known) if len(findings.items) < _MOST_HINTED else ""


def _list_of(data: JsonObject, name: str) -> list[Json]:
    value = data.get(name)
    return value if isinstance(value, list) else []


def _expected(
    expect: Json, checks: Sequence[str], path: Path, findings: Findings
) -> Iterator[tuple[str, str]]:
    assert isinstance(expect, dict)
    for criterion, word in expect.items():
        if criterion not in checks:
            sentence = (
                f"The contract has no check {quoted(criterion)} that code decides."
                f"{_hint(criterion, checks, findings)}"
            )
            findings.add("unknown-check", (*path, "expect", criterion), sentence, name=True)
        yield criterion, str(word)


def _written_out(
    data: JsonObject, earlier: dict[str, JsonObject], path: Path, findings: Findings
) -> JsonObject:
    """The test with what it takes over from another."""
    like = data.get("like")
    if not isinstance(like, str):
        return data
    base = earlier.get(like)
    if base is None:
        sentence = (
            f"There is no earlier grader test {quoted(like)}.{_hint(like, earlier, findings)}"
        )
        findings.add("unknown-test", (*path, "like"), sentence)
        base = {}
    own_transcript = "steps" in data or "messages" in data
    taken = {
        name: value
        for name, value in base.items()
        if not (own_transcript and name in {"steps", "messages"})
    }
    without = data.get("without")
    if isinstance(without, list) and findings.is_sound(*path, "like"):
        taken["steps"] = _steps_without(taken, without, (*path, "without"), findings)
    return {**taken, **{name: data[name] for name in data if name != "without"}}


def _steps_without(base: JsonObject, without: list[Json], path: Path, findings: Findings) -> Json:
    """The steps of another test but those."""
    steps = base.get("steps")
    if not isinstance(steps, list):
        sentence = "The grader test has no `steps` to leave out: it has `messages`."
        findings.add("no-steps", path, sentence)
        return []
    numbers: set[int] = set()
    names: set[str] = set()
    called = set(_called(steps))
    for index, item in enumerate(without):
        if isinstance(item, str):
            names.add(item)
            if item not in called:
                sentence = f"No step there calls {quoted(item)}.{_hint(item, called, findings)}"
                findings.add("no-such-step", (*path, index), sentence)
        else:
            number = int(item)  # type: ignore[arg-type]
            numbers.add(number)
            if not 1 <= number <= len(steps):
                sentence = f"There is no step {number}: there are {len(steps)}, from 1."
                findings.add("no-such-step", (*path, index), sentence)
    kept: list[Json] = []
    for number, step in enumerate(steps, 1):
        assert isinstance(step, dict)
        if number in numbers or step.get("call") in names:
            continue
        if "together" in step:
            calls = [call for call in _calls_in(step) if call["call"] not in names]
            if not calls:
                continue
            step = {"together": [*calls]}  # noqa: PLW2901
        kept.append(step)
    return kept


def _calls_in(step: JsonObject) -> list[JsonObject]:
    """The calls of one step, in order."""
    if "call" in step:
        return [step]
    return [call for call in _list_of(step, "together") if isinstance(call, dict)]


def _called(steps: list[Json]) -> Iterator[str]:
    for step in steps:
        assert isinstance(step, dict)
        for call in _calls_in(step):
            yield str(call["call"])


def _record_of(full: JsonObject) -> JsonObject:
    record: JsonObject = {"messages": full.get("messages", [])}
    steps = full.get("steps")
    if isinstance(steps, list):
        record["messages"] = [*_messages_of(steps)]
    return {**record, **{name: full[name] for name in _RECORD_FIELDS if name in full}}


def _messages_of(steps: list[Json]) -> Iterator[JsonObject]:
    """Native messages of the short form; calls get the ids c1, c2, …"""
    n_calls = 0
    for step in steps:
        assert isinstance(step, dict)
        if "user" in step:
            yield {"role": "user", "content": step["user"]}
            continue
        if "agent" in step:
            yield {"role": "assistant", "content": step["agent"]}
            continue
        calls = [(f"c{n_calls + n}", call) for n, call in enumerate(_calls_in(step), 1)]
        n_calls += len(calls)
        tool_calls: list[Json] = [_tool_call(call_id, call) for call_id, call in calls]
        yield {"role": "assistant", "content": None, "tool_calls": tool_calls}
        for call_id, call in calls:
            if "rejected" in call:
                yield _result(call_id, call["rejected"], is_error=True)
            elif "result" in call:
                yield _result(call_id, call["result"], is_error=False)


def _tool_call(call_id: str, call: JsonObject) -> JsonObject:
    function: JsonObject = {"name": call["call"], "arguments": call.get("args", {})}
    return {"id": call_id, "type": "function", "function": function}


def _result(call_id: str, result: Json, *, is_error: bool) -> JsonObject:
    content = result if isinstance(result, str) else shown_json(result)
    return {"role": "tool", "tool_call_id": call_id, "content": content, "is_error": is_error}


def _check_record(record: JsonObject, path: Path, findings: Findings) -> None:
    """Note why the reader of trials would refuse the record, or read a part as missing."""
    checked = {name: value for name, value in record.items() if name not in _ANY_VALUE}
    item = item_of({**_STAND_IN, **checked}, Source(1))
    faults = [warning for warning in item.warnings if warning.code in _FAULTY_WARNINGS]
    for finding in (*item.refusals, *faults):
        sentence = f"The planted trial cannot be read: {finding.sentence}"
        findings.add("bad-record", (*path, *path_of(finding.place)), sentence)
