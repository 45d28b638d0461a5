"""The native record (docs/design.md section 10): the one place that decides what a record means.

Every other format is translated into native records and comes through here. Fields that are not
known are kept under `extra`. Beside the fields of the design, `external_id` (the id that the
source gave) and `termination_reason` are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from traces.core.canonical import digest_of
from traces.core.formats.containers import Member
from traces.core.formats.fields import (
    MOST_COST,
    RefusedError,
    amount,
    identifier,
    instant,
    kind_of,
    optional_identifier,
    seconds_between,
    text_or_json,
    token_count,
)
from traces.core.formats.options import DEFAULT_OPTIONS, ReadOptions
from traces.core.formats.scanning import Slice, json_lines, record_slices
from traces.core.formats.verdicts import verdicts_of
from traces.core.records import (
    Finding,
    Item,
    ParsedTrial,
    ParsedVerdict,
    ParsedVerdicts,
    Source,
    TrialKey,
    TrialStatus,
    VerdictValue,
)
from traces.core.strict_json import StrictJsonError, decoded, loads_tolerant, member_place
from traces.core.text_marks import count_marks, has_marks, marked_text, may_hold_marks
from traces.core.transcript import counted_trajectory_of
from traces.core.values import Json, JsonObject

KNOWN_FIELDS: Final = frozenset(
    [
        "record",
        "task_id",
        "run",
        "trial",
        "attempt",
        "agent",
        "status",
        "error",
        "fault",
        "environment",
        "facts",
        "initial_state",
        "final_state",
        "expected_state",
        "state_source",
        "usage",
        "started_at",
        "ended_at",
        "external_id",
        "termination_reason",
    ]
)
TEST_ENVIRONMENT: Final = "test"
"""The environment of a trial that names none. Any other is production."""

_APART: Final = frozenset(("messages", "verdicts"))

_MEASURES = re.compile(
    r"usage\.(?:cost_usd|[a-z_]*tokens)\Z|verdicts\[[0-9]+\]\.(?:score|cost|cost_usd)\Z"
)


def read_native(member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """The records of a JSON Lines file, one item a line that is not blank."""
    with member.open() as stream:
        for line in json_lines(stream, options.limits):
            yield item_of_slice(line, member.name, options)


def read_native_document(member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """The records of one JSON array, which is taken too, or one record over several lines."""
    with member.open() as stream:
        for piece in record_slices(stream, options.limits):
            yield item_of_slice(piece, member.name, options)


def item_of_slice(part: Slice, member: str, options: ReadOptions) -> Item:
    """The item of one native record in bytes. Never raises."""
    source = Source(part.number, member, part.offset, part.length)
    if part.refusal is not None:
        return Item(source, None, (part.refusal,))
    try:
        text = decoded(part.data)
        record, missing = loads_tolerant(text, is_measure, options.limits)
    except StrictJsonError as error:
        return Item(source, None, (Finding(error.code, error.place, error.sentence),))
    return item_of(record, source, options, data=part.data, missing=missing)


def is_measure(place: str) -> bool:
    """Whether NaN or Infinity at this place means a measure that is missing."""
    return _MEASURES.match(place) is not None


def item_of(
    record: Json,
    source: Source,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    data: bytes | None = None,
    missing: Sequence[str] = (),
    warnings: Sequence[Finding] = (),
    task_digest: bytes | None = None,
) -> Item:
    """The item of a parsed native record.

    `data` is the JSON text that it came from, for a quick look whether it can hold unseen
    characters; `missing` are the measures that were NaN or Infinity; `warnings` come from the
    reader that translated the record.
    """
    notes = _Notes(list(warnings))
    for place in missing:
        notes.warn("not-finite", place, f"{place} is NaN or Infinity: read as missing.")
    try:
        if not isinstance(record, dict):
            sentence = f"A record must be a JSON object, this is {kind_of(record)}."
            raise RefusedError("not-an-object", "", sentence)
        content = _content_of(record, options, notes, task_digest)
    except RefusedError as error:
        return Item(source, None, (error.finding,), tuple(notes.warnings))
    if data is None or may_hold_marks(data):
        _note_marks(record, notes)
    return Item(source, content, tuple(notes.refusals), tuple(notes.warnings))


def native_record(
    messages: Sequence[JsonObject], rest: JsonObject, verdicts: Sequence[JsonObject] = ()
) -> JsonObject:
    """The native record again, from the parts in which it is stored; its digest is the same."""
    record = {name: value for name, value in rest.items() if name != "extra"}
    extra = rest.get("extra")
    if isinstance(extra, dict):
        record |= extra
    record["messages"] = list(messages)
    if verdicts:
        record["verdicts"] = list(verdicts)
    return record


def digest_of_record(record: JsonObject) -> bytes:
    """16 bytes over the record without its verdicts."""
    return digest_of({name: value for name, value in record.items() if name != "verdicts"})


class _Notes:
    """What is found about one record while it is read."""

    __slots__ = ("refusals", "warnings")

    def __init__(self, warnings: list[Finding]) -> None:
        self.refusals: list[Finding] = []
        self.warnings = warnings

    def warn(self, code: str, place: str, sentence: str) -> None:
        self.warnings.append(Finding(code, place, sentence))

    def refuse(self, finding: Finding) -> None:
        self.refusals.append(finding)


def _content_of(
    record: JsonObject, options: ReadOptions, notes: _Notes, task_digest: bytes | None
) -> ParsedTrial | ParsedVerdicts:
    match record.get("record"):
        case "verdicts":
            return _verdicts_alone(record, options, notes)
        case None | "trial":
            return _trial(record, options, notes, task_digest)
        case other:
            sentence = f"Unknown record type {text_or_json(other)[:100]!r}: trial or verdicts."
            raise RefusedError("unknown-record", "record", sentence)


def _trial(
    record: JsonObject, options: ReadOptions, notes: _Notes, task_digest: bytes | None
) -> ParsedTrial:
    key = _key(record, options)
    name, version, model = _agent(record, options, required=True)
    messages = _messages(record, options)
    usage = _usage(record, notes)
    status, error = _status(record)
    counted = counted_trajectory_of(messages, options.rejection)
    if counted.n_invalid:
        sentence = f"The arguments of {counted.n_invalid} tool calls are not valid JSON: kept raw."
        notes.warn("arguments-not-json", "messages", sentence)
    started = instant(record.get("started_at"), "started_at", notes.warn)
    ended = instant(record.get("ended_at"), "ended_at", notes.warn)
    limits = options.limits
    verdicts = verdicts_of(record.get("verdicts"), limits, notes.warn, notes.refuse)
    _note_contradictions(verdicts, len(messages), notes)
    return ParsedTrial(
        key=key,
        agent_name=name,
        agent_version=version,
        agent_model=model,
        status=status,
        error=error,
        environment=optional_identifier(record.get("environment"), "environment", limits)
        or TEST_ENVIRONMENT,
        external_id=optional_identifier(record.get("external_id"), "external_id", limits) or "",
        messages=messages,
        rest=_rest(record),
        trajectory=counted.trajectory,
        n_tool_calls=counted.n_calls,
        n_rejected=counted.n_rejected,
        verdicts=verdicts,
        cost_usd=amount(usage.get("cost_usd"), "usage.cost_usd", notes.warn, most=MOST_COST),
        input_tokens=token_count(usage.get("input_tokens"), "usage.input_tokens", notes.warn),
        output_tokens=token_count(usage.get("output_tokens"), "usage.output_tokens", notes.warn),
        started_at=started,
        ended_at=ended,
        seconds=seconds_between(started, ended, notes.warn),
        termination=text_or_json(record.get("termination_reason"))[:512],
        has_fault=record.get("fault") is not None,
        task_digest=task_digest,
        digest=digest_of_record(record),
    )


def _verdicts_alone(record: JsonObject, options: ReadOptions, notes: _Notes) -> ParsedVerdicts:
    limits = options.limits
    external_id = optional_identifier(record.get("external_id"), "external_id", limits) or ""
    key = None
    if not external_id or record.get("trial") is not None:
        key = _key(record, options)
    _, version, _ = _agent(record, options, required=False)
    if not isinstance(record.get("verdicts"), list):
        raise RefusedError("missing-field", "verdicts", "verdicts must be a list.")
    verdicts = verdicts_of(record["verdicts"], limits, notes.warn, notes.refuse)
    return ParsedVerdicts(key, external_id, version, verdicts)


def _key(record: JsonObject, options: ReadOptions) -> TrialKey:
    limits = options.limits
    task_id = identifier(record.get("task_id"), "task_id", limits)
    trial = identifier(record.get("trial"), "trial", limits)
    run = optional_identifier(record.get("run"), "run", limits)
    attempt = record.get("attempt", 1)
    if isinstance(attempt, float) and attempt.is_integer():
        attempt = int(attempt)
    if not isinstance(attempt, int) or isinstance(attempt, bool) or not 1 <= attempt < 2**31:
        raise RefusedError("bad-attempt", "attempt", "attempt must be a whole number from 1 on.")
    return TrialKey(run, task_id, trial, attempt)


def _agent(
    record: JsonObject, options: ReadOptions, *, required: bool
) -> tuple[str, str | None, str]:
    """Name, version and model of the agent."""
    agent = record.get("agent")
    if agent is None:
        if required and options.release is None:
            sentence = (
                "agent is missing: the record names no agent version, and no release is given."
            )
            raise RefusedError("missing-field", "agent", sentence)
        agent = {}
    if not isinstance(agent, dict):
        sentence = f"agent must be an object, this is {kind_of(agent)}."
        raise RefusedError("wrong-type", "agent", sentence)
    limits = options.limits
    version = optional_identifier(agent.get("version"), "agent.version", limits)
    if version is not None and options.release is not None and version != options.release:
        sentence = (
            f'agent.version is "{marked_text(version)}", but the upload is for release '
            f'"{options.release}".'
        )
        raise RefusedError("other-release", "agent.version", sentence)
    name = optional_identifier(agent.get("name"), "agent.name", limits)
    model = optional_identifier(agent.get("model"), "agent.model", limits)
    return name or "", version, model or ""


def _messages(record: JsonObject, options: ReadOptions) -> list[JsonObject]:
    if "messages" not in record:
        raise RefusedError("missing-field", "messages", "messages is missing.")
    messages = record["messages"]
    if not isinstance(messages, list):
        sentence = f"messages must be a list, this is {kind_of(messages)}."
        raise RefusedError("wrong-type", "messages", sentence)
    if len(messages) > options.limits.steps:
        sentence = f"Too many steps: {len(messages)} (max {options.limits.steps})."
        raise RefusedError("too-many-steps", "messages", sentence)
    checked: list[JsonObject] = []
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            place = f"messages[{index}]"
            sentence = f"{place} must be an object, this is {kind_of(message)}."
            raise RefusedError("wrong-type", place, sentence)
        if message.get("tool_calls"):
            _check_calls(message["tool_calls"], index)
        checked.append(message)
    return checked


def _check_calls(calls: Json, index: int) -> None:
    # A call that is not read would be an attempt that nobody sees.
    place = f"messages[{index}].tool_calls"
    if not isinstance(calls, list):
        sentence = f"{place} must be a list, this is {kind_of(calls)}."
        raise RefusedError("wrong-type", place, sentence)
    for position, call in enumerate(calls):
        if not isinstance(call, dict):
            place = f"{place}[{position}]"
            sentence = f"{place} must be an object, this is {kind_of(call)}."
            raise RefusedError("wrong-type", place, sentence)


def _usage(record: JsonObject, notes: _Notes) -> JsonObject:
    usage = record.get("usage")
    if usage is None:
        return {}
    if not isinstance(usage, dict):
        notes.warn("wrong-type", "usage", "usage is not an object: read as missing.")
        return {}
    return usage


def _status(record: JsonObject) -> tuple[TrialStatus, str]:
    error = record.get("error")
    match record.get("status"):
        case None | "completed":
            status = TrialStatus.COMPLETED if error is None else TrialStatus.ERROR
        case "error":
            status = TrialStatus.ERROR
        case other:
            sentence = f"status must be completed or error, not {text_or_json(other)[:100]!r}."
            raise RefusedError("bad-status", "status", sentence)
    return status, text_or_json(error)


def _rest(record: JsonObject) -> JsonObject:
    rest: JsonObject = {}
    extra: JsonObject = {}
    for name, value in record.items():
        if name in KNOWN_FIELDS:
            rest[name] = value
        elif name not in _APART:
            extra[name] = value
    if extra:
        rest["extra"] = extra
    return rest


def _note_contradictions(verdicts: Sequence[ParsedVerdict], n_steps: int, notes: _Notes) -> None:
    for verdict in verdicts:
        beyond = [step for step in verdict.cited_steps if not 1 <= step <= n_steps]
        if beyond:
            sentence = (
                f'The verdict on "{marked_text(verdict.criterion)}" cites step {beyond[0]}, '
                f"but the trial has {n_steps} steps."
            )
            notes.warn("cited-step-missing", "verdicts", sentence)
        if verdict.score is not None and (
            (verdict.value is VerdictValue.PASS and verdict.score == 0)
            or (verdict.value is VerdictValue.FAIL and verdict.score == 1)
        ):
            sentence = (
                f'The verdict on "{marked_text(verdict.criterion)}" is {verdict.value.value} '
                f"with score {verdict.score}."
            )
            notes.warn("verdict-against-score", "verdicts", sentence)


def _note_marks(record: JsonObject, notes: _Notes) -> None:
    total, first = 0, ""
    waiting: list[tuple[str, Json]] = [("", record)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            count = count_marks(value)
            total += count
            first = first or (place if count else "")
        elif isinstance(value, list):
            waiting += ((f"{place}[{i}]", item) for i, item in reversed(list(enumerate(value))))
        elif isinstance(value, dict):
            for key, item in reversed(value.items()):
                at = member_place(place, key)
                waiting.append((at, item))
                if has_marks(key):
                    waiting.append((at, key))
    if total:
        sentence = f"Contains control characters: {total} characters that cannot be seen."
        notes.warn("control-characters", first[:200], sentence)
