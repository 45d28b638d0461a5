"""A trial with its record, and its transcript a page at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from evalsite.common import blobs
from evalsite.common.remembering import remembered
from traces.core.differences import StateDifferences, state_differences
from traces.core.rules import RejectionSettings
from traces.core.shown_json import shown_json
from traces.core.text_marks import clean_text
from traces.core.touched import TouchedCollection, TouchedRecords, touched_collections
from traces.core.trajectory import Actor, Step
from traces.core.transcript import DEFAULT_REJECTION, transcript_of
from traces.core.values import Json, JsonObject
from traces.models import TranscriptChunk, TrialRecord
from traces.selectors.trial_evidence import trial_evidence

LISTED_CHANGES = 50
_LONGEST_VALUE = 400


@dataclass(frozen=True, slots=True)
class TrialDetail:
    """A trial with what it belongs to."""

    pk: int
    uuid: UUID
    label: str
    attempt: int
    status: str
    error: str
    environment: str
    external_id: str
    digest: UUID
    line: int
    n_messages: int
    n_tool_calls: int
    n_rejected: int
    n_agent_steps: int
    cost_usd: Decimal | None
    input_tokens: int | None
    output_tokens: int | None
    started_at: datetime | None
    ended_at: datetime | None
    seconds: Decimal | None
    termination: str
    has_fault: bool
    task_pk: int
    task_uuid: UUID
    task_id: str
    task_title: str
    task_version: int
    task_split: str
    release_pk: int
    release_uuid: UUID
    release_name: str
    run_uuid: UUID
    run_name: str
    upload_uuid: UUID
    upload_name: str
    contract_pk: int | None  # the version that the task's trials are decided by
    is_standing: bool  # no later attempt stands for its slot
    n_same_path: int  # other passing trials of the task with the same exact path
    previous: tuple[UUID, str] | None  # the trial of the task that came before: address, label
    next: tuple[UUID, str] | None


_TRIAL = """
SELECT t.id, t.uuid, t.label, t.attempt, t.status, t.error, t.environment, t.external_id, t.digest,
       t.line, t.n_messages, t.n_tool_calls, t.n_rejected, cardinality(j.steps), t.cost_usd,
       t.input_tokens, t.output_tokens, t.started_at, t.ended_at, t.seconds, t.termination,
       t.has_fault, k.id, k.uuid, k.task_id, k.title, v.number, k.split, r.id, r.uuid, r.name, u.uuid, u.name,
       f.uuid, f.file_name, k.contract_id, coalesce(d.stands, true),
       (SELECT count(*) FROM traces_trial x
        JOIN traces_trialdisposition y ON y.trial_id = x.id AND y.stands AND y.value = 'pass'
        JOIN traces_trajectorypaths q ON q.trajectory_id = x.trajectory_id
             AND q.rules_id = %(rules)s
        WHERE x.task_id = t.task_id AND x.id <> t.id AND q.exact = p.exact),
       b.uuid, b.label, a.uuid, a.label
FROM traces_trial t
JOIN traces_trajectory j ON j.id = t.trajectory_id
JOIN traces_task k ON k.id = t.task_id
JOIN traces_taskversion v ON v.id = t.task_version_id
JOIN traces_release r ON r.id = t.release_id
JOIN traces_run u ON u.id = t.run_id
JOIN traces_upload f ON f.id = t.upload_id
LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id
LEFT JOIN traces_trajectorypaths p ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s
LEFT JOIN LATERAL (SELECT x.uuid, x.label FROM traces_trial x
    WHERE x.task_id = t.task_id AND x.id < t.id ORDER BY x.id DESC LIMIT 1) b ON true
LEFT JOIN LATERAL (SELECT x.uuid, x.label FROM traces_trial x
    WHERE x.task_id = t.task_id AND x.id > t.id ORDER BY x.id LIMIT 1) a ON true
WHERE t.system_id = %(system)s AND t.uuid = %(uuid)s
"""


def trial_detail(system_pk: int, identity: UUID, *, rules_pk: int | None) -> TrialDetail | None:
    """The trial of that address in the system, in one query; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_TRIAL, {"system": system_pk, "uuid": identity, "rules": rules_pk})
        row = cursor.fetchone()
    if row is None:
        return None
    *plain, before, before_label, after, after_label = row
    neighbours = [
        (before, before_label) if before else None,
        (after, after_label) if after else None,
    ]
    return TrialDetail(*plain, *neighbours)


@dataclass(frozen=True, slots=True)
class RecordWarning:
    """What a reader found odd about a record that it took."""

    code: str
    place: str
    sentence: str


@dataclass(frozen=True, slots=True)
class ShownChange:
    """One difference of two states, with values short enough for a page."""

    kind: str  # added | removed | changed
    path: str  # JSON Pointer
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ShownDifference:
    """The differences of two recorded states."""

    n_differences: int
    n_collections: int
    n_records: int
    changes: tuple[ShownChange, ...]  # the first ones


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """What a page shows of a trial's record beside its messages. Records never change."""

    member: str
    offset: int
    length: int
    warnings: tuple[RecordWarning, ...]
    recorded_states: tuple[str, ...]  # of initial_state, final_state, expected_state
    state_source: str
    changed: ShownDifference | None  # initial against final state
    against_expected: ShownDifference | None  # expected against final state
    touched: tuple[TouchedCollection, ...]  # empty where a state is missing
    agent: tuple[tuple[str, str], ...]
    fault: str  # JSON text, "" without one


@remembered(256)
def record_facts(trial_pk: int) -> RecordFacts:
    """The trial's record, in one query."""
    row = TrialRecord.objects.get(pk=trial_pk)
    content = blobs.unpack(row.content)
    rest = content["rest"]
    recorded = tuple(name for name in _STATES if rest.get(name) is not None)
    source = rest.get("state_source")
    agent = rest.get("agent")
    fault = rest.get("fault")
    return RecordFacts(
        member=row.source_member,
        offset=row.source_offset,
        length=row.source_length,
        warnings=tuple(
            RecordWarning(*(clean_text(str(part)) for part in each))
            for each in content.get("warnings", [])
        ),
        recorded_states=recorded,
        state_source=clean_text(source) if isinstance(source, str) else "",
        changed=_difference(rest, "initial_state", "final_state", recorded),
        against_expected=_difference(rest, "expected_state", "final_state", recorded),
        touched=_touched(rest.get("initial_state"), rest.get("final_state")),
        agent=tuple(
            (clean_text(name), clean_text(_short(value)))
            for name, value in (agent.items() if isinstance(agent, dict) else ())
            if value not in (None, "")
        ),
        fault="" if fault is None else clean_text(_short(fault)),
    )


_STATES = ("initial_state", "final_state", "expected_state")


@remembered(256)
def record_with_additions(trial_pk: int, order: int) -> RecordFacts:
    """The trial's record with the states that its first so many additions fill."""
    record = record_facts(trial_pk)
    evidence = next(iter(trial_evidence([trial_pk]))).evidence(order)
    states: dict[str, Any] = {name: getattr(evidence, name) for name in _STATES}
    recorded = tuple(name for name in _STATES if states[name] is not None)
    sources = [record.state_source, "added evidence"]
    return replace(
        record,
        recorded_states=recorded,
        state_source=", ".join(source for source in sources if source),
        changed=_difference(states, "initial_state", "final_state", recorded),
        against_expected=_difference(states, "expected_state", "final_state", recorded),
        touched=_touched(evidence.initial_state, evidence.final_state),
    )


def _touched(before: Json, after: Json) -> tuple[TouchedCollection, ...]:
    if before is None or after is None:
        return ()
    return tuple(
        TouchedCollection(
            clean_text(each.name),
            *(
                TouchedRecords(tuple(clean_text(name) for name in records.names), records.n)
                for records in (each.created, each.changed, each.removed)
            ),
        )
        for each in touched_collections(before, after)
    )


def _difference(
    rest: dict[str, Any], before: str, after: str, recorded: Sequence[str]
) -> ShownDifference | None:
    if before not in recorded or after not in recorded:
        return None
    found: StateDifferences = state_differences(rest[before], rest[after], limit=LISTED_CHANGES)
    return ShownDifference(
        n_differences=found.n_differences,
        n_collections=len(found.collections),
        n_records=sum(count.n_compared for count in found.collections),
        changes=tuple(
            ShownChange(
                each.kind.value,
                clean_text(each.path),
                _short(each.before),
                _short(each.after),
            )
            for each in found.differences
        ),
    )


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else shown_json(value)
    return clean_text(text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…")


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """A stretch of a transcript as it is stored together."""

    steps: tuple[Step, ...]
    nearby: dict[int, Step]  # results of its calls, and calls of its results, on other pages
    first: int  # 0 when the transcript is empty
    last: int
    previous: int | None  # the first step of the page before
    next: int | None


@remembered(1024)
def page_places(trial_pk: int) -> tuple[int, ...]:
    """The first step of each page of a transcript, which never changes; in one query."""
    rows = TranscriptChunk.objects.filter(trial_id=trial_pk).order_by("first_step")
    return tuple(rows.values_list("first_step", flat=True))


def page_of_step(trial_pk: int, step: int) -> int:
    """The place of the page that holds a step, or of the last page; 0 without any page."""
    return max(0, bisect_right(page_places(trial_pk), step) - 1)


def transcript_page(
    trial_pk: int, at: int, *, rejection: RejectionSettings = DEFAULT_REJECTION
) -> TranscriptPage:
    """The page at a place among `page_places`, in one query.

    Calls and results are paired across pages. The rest of a long transcript is read only where a
    call on this page has no result on it or beside it.
    """
    places = page_places(trial_pk)
    if not places:
        return TranscriptPage((), {}, 0, 0, None, None)
    beside = places[max(0, at - 1) : at + 2]
    chunks = _contents(trial_pk, beside)
    messages = blobs.unpack(chunks[places[at]])
    first, last = places[at], places[at] + len(messages) - 1
    steps = transcript_of(messages, rejection, first_number=first)
    nearby: dict[int, Step] = {}
    if len(places) > 1 and _is_open(steps):
        known = _paired(chunks, beside, rejection)
        steps = known[first - beside[0] :][: len(messages)]
        if len(places) > len(beside) and _is_open(steps, known):
            known = _paired(_contents(trial_pk, places), places, rejection)
        start = known[0].number
        steps = known[first - start : last + 1 - start]
        nearby = {each.number: each for each in known}
    return TranscriptPage(
        steps=steps,
        nearby=nearby,
        first=first,
        last=last,
        previous=places[at - 1] if at else None,
        next=places[at + 1] if at + 1 < len(places) else None,
    )


def _contents(trial_pk: int, places: Sequence[int]) -> dict[int, bytes]:
    rows = TranscriptChunk.objects.filter(trial_id=trial_pk, first_step__in=places)
    return {first: bytes(content) for first, content in rows.values_list("first_step", "content")}


def _paired(
    chunks: dict[int, bytes], places: Sequence[int], rejection: RejectionSettings
) -> tuple[Step, ...]:
    messages: list[JsonObject] = [
        message for place in places for message in blobs.unpack(chunks[place])
    ]
    return transcript_of(messages, rejection, first_number=places[0])


def _is_open(steps: Sequence[Step], known: Sequence[Step] | None = None) -> bool:
    """Whether a call of these steps lacks its result, or a result its call.

    `known` are the steps that partners are looked for among: these alone by default.
    """
    if any(call.result_step is None for step in steps for call in step.calls):
        return True
    around = steps if known is None else known
    answered = {call.result_step for step in around for call in step.calls}
    return any(step.actor is Actor.ENVIRONMENT and step.number not in answered for step in steps)


def message_of(trial_pk: int, step: int) -> JsonObject | None:
    """One message of a trial as it came; None when there is none of that number."""
    row = (
        TranscriptChunk.objects.filter(trial_id=trial_pk, first_step__lte=step)
        .order_by("-first_step")
        .first()
    )
    if row is None or step >= row.first_step + row.n_steps:
        return None
    message: JsonObject = blobs.unpack(row.content)[step - row.first_step]
    return message
