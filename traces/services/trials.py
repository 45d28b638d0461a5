"""Storing a batch of trials: identity, transcript, trajectory and paths, by COPY.

The caller holds the locks of `ingest_locks`, so that nobody else adds trials, calls or
trajectories of the system meanwhile, and rows can be written with identities taken beforehand.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from django.db import connection

from evalsite.common.copying import copy_rows, next_ids
from traces.core.records import Finding, ParsedTrial, Source, TrialStatus
from traces.core.text_marks import clean_text
from traces.models import Release, Run, System, Task, TaskVersion, Upload
from traces.services.packing import PackedTrial
from traces.services.trajectories import WantedTrajectory, store_trajectories


class Stored(StrEnum):
    """What became of a trial."""

    NEW = "new"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class IncomingTrial:
    """A packed trial with the rows that it belongs to."""

    packed: PackedTrial
    source: Source
    warnings: tuple[Finding, ...]
    release: Release
    run: Run
    task: Task
    version: TaskVersion

    @property
    def trial(self) -> ParsedTrial:
        """The trial without its messages, rest and trajectory."""
        return self.packed.trial


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """The outcome for one incoming trial. `trial_id` is the row that holds its identity."""

    outcome: Stored
    trial_id: int
    finding: Finding | None = None


@dataclass(slots=True)
class _Slot:
    """The stored attempts of one (run, task, label): attempt -> (id, digest, is_error)."""

    attempts: dict[int, tuple[int, uuid.UUID, bool]] = field(default_factory=dict)


SlotKey = tuple[int, int, str]


def ingest_locks(system: System, releases: Iterable[Release]) -> None:
    """Lock the releases' evidence and the system's dictionaries until the transaction ends."""
    from traces.services.work import lock_releases

    lock_releases(release.pk for release in releases)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('evalsite.ingest', %s))", [system.pk]
        )


def store_trials(
    system: System, upload: Upload, incoming: Sequence[IncomingTrial], *, now: datetime
) -> list[StoredTrial]:
    """Store what is new; name what is there already and what contradicts it.

    The first content under an identity stays. A further attempt is taken only where every
    attempt but the last is a harness error.
    """
    slots = _stored_slots(incoming)
    ids = iter(next_ids("traces_trial", len(incoming)))
    results: list[StoredTrial] = []
    fresh: list[tuple[int, IncomingTrial]] = []
    for one in incoming:
        slot = slots.setdefault(_slot_key(one), _Slot())
        result = _place(slot, one, ids)
        results.append(result)
        if result.outcome is Stored.NEW:
            fresh.append((result.trial_id, one))
    if fresh:
        _write(system, upload, fresh, now)
    return results


def _slot_key(one: IncomingTrial) -> SlotKey:
    return (one.run.pk, one.task.pk, one.trial.key.trial)


def _stored_slots(incoming: Sequence[IncomingTrial]) -> dict[SlotKey, _Slot]:
    keys = {_slot_key(one) for one in incoming}
    slots: dict[SlotKey, _Slot] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            # LATERAL with OFFSET: an index look-up a slot, never a scan of the whole table.
            "SELECT k.run_id, k.task_id, k.label, t.attempt, t.id, t.digest, t.status"
            " FROM unnest(%s::bigint[], %s::bigint[], %s::text[]) AS k(run_id, task_id, label)"
            " CROSS JOIN LATERAL (SELECT attempt, id, digest, status FROM traces_trial"
            " WHERE run_id = k.run_id AND task_id = k.task_id AND label = k.label OFFSET 0) t",
            [[k[0] for k in keys], [k[1] for k in keys], [k[2] for k in keys]],
        )
        for run, task, label, attempt, pk, digest, status in cursor.fetchall():
            slot = slots.setdefault((run, task, label), _Slot())
            slot.attempts[attempt] = (pk, digest, status == TrialStatus.ERROR.value)
    return slots


def _place(slot: _Slot, one: IncomingTrial, ids: Iterator[int]) -> StoredTrial:
    attempt, digest = one.trial.key.attempt, uuid.UUID(bytes=one.trial.digest)
    if known := slot.attempts.get(attempt):
        if known[1] == digest:
            return StoredTrial(Stored.DUPLICATE, known[0])
        return StoredTrial(Stored.CONFLICT, known[0], _other_content(one))
    is_error = one.trial.status is TrialStatus.ERROR
    if blocking := _blocking_attempt(slot, attempt, is_error=is_error):
        return StoredTrial(Stored.CONFLICT, slot.attempts[blocking][0], _not_taken(one, blocking))
    pk = next(ids)
    slot.attempts[attempt] = (pk, digest, is_error)
    return StoredTrial(Stored.NEW, pk)


def _blocking_attempt(slot: _Slot, attempt: int, *, is_error: bool) -> int | None:
    """The stored attempt beside which this one cannot stand: every attempt but the last of a
    slot has to be a harness error.
    """
    for other, (_, _, other_is_error) in slot.attempts.items():
        if other < attempt and not other_is_error:
            return other
        if other > attempt and not is_error:
            return other
    return None


def _name(one: IncomingTrial) -> str:
    key = one.trial.key
    return (
        f"trial {key.trial!r}, attempt {key.attempt}, of task {key.task_id!r} in run "
        f"{one.run.name!r} of release {one.release.label!r}"
    )


def _other_content(one: IncomingTrial) -> Finding:
    return Finding(
        code="trial-conflict",
        place="",
        sentence=clean_text(
            f"{_name(one)} is stored with other content; the first stays. "
            "Send a new trial number, or a further attempt after a harness error."
        ),
    )


def _not_taken(one: IncomingTrial, blocking: int) -> Finding:
    return Finding(
        code="attempt-conflict",
        place="attempt",
        sentence=clean_text(
            f"{_name(one)} is not taken: attempt {blocking} is stored, and every attempt of a "
            "trial but its last has to be a harness error."
        ),
    )


_TRIAL_COLUMNS = (
    ("id", "int8"),
    ("uuid", "uuid"),
    ("system_id", "int8"),
    ("release_id", "int8"),
    ("run_id", "int8"),
    ("task_id", "int8"),
    ("task_version_id", "int8"),
    ("trajectory_id", "int8"),
    ("label", "text"),
    ("attempt", "int4"),
    ("status", "text"),
    ("error", "text"),
    ("environment", "text"),
    ("external_id", "text"),
    ("digest", "uuid"),
    ("upload_id", "int8"),
    ("line", "int8"),
    ("n_messages", "int4"),
    ("n_tool_calls", "int4"),
    ("n_rejected", "int4"),
    ("cost_usd", "numeric"),
    ("input_tokens", "int8"),
    ("output_tokens", "int8"),
    ("started_at", "timestamptz"),
    ("ended_at", "timestamptz"),
    ("seconds", "numeric"),
    ("termination", "text"),
    ("has_fault", "bool"),
    ("warnings", "varchar[]"),
    ("created_at", "timestamptz"),
)
_RECORD_COLUMNS = (
    ("trial_id", "int8"),
    ("source_member", "text"),
    ("source_offset", "int8"),
    ("source_length", "int8"),
    ("content", "bytea"),
)
_CHUNK_COLUMNS = (
    ("trial_id", "int8"),
    ("first_step", "int4"),
    ("n_steps", "int4"),
    ("content", "bytea"),
)


def _write(
    system: System,
    upload: Upload,
    fresh: Sequence[tuple[int, IncomingTrial]],
    now: datetime,
) -> None:
    trajectory_ids = store_trajectories(
        system, [WantedTrajectory(one.task, one.packed.trajectory, _own(one)) for _, one in fresh]
    )
    copy_rows(
        "traces_trial",
        _TRIAL_COLUMNS,
        (
            _trial_row(system, upload, pk, one, trajectory, now)
            for (pk, one), trajectory in zip(fresh, trajectory_ids, strict=True)
        ),
    )
    copy_rows("traces_trialrecord", _RECORD_COLUMNS, (_record_row(pk, one) for pk, one in fresh))
    copy_rows(
        "traces_transcriptchunk",
        _CHUNK_COLUMNS,
        ((pk, *chunk) for pk, one in fresh for chunk in one.packed.chunks),
    )


def _own(one: IncomingTrial) -> bytes:
    key = one.trial.key
    return own_mark(one.trial.digest, one.run.pk, key.trial, key.attempt)


def own_mark(digest: bytes, run_id: int, label: str, attempt: int) -> bytes:
    """What tells a trial from every other, for a trajectory that cannot be compared."""
    return digest + f"{run_id} {attempt} {label}".encode("utf-8", "surrogatepass")


def _trial_row(
    system: System,
    upload: Upload,
    pk: int,
    one: IncomingTrial,
    trajectory_id: int,
    now: datetime,
) -> tuple[object, ...]:
    trial = one.trial
    return (
        pk,
        uuid.uuid4(),
        system.pk,
        one.release.pk,
        one.run.pk,
        one.task.pk,
        one.version.pk,
        trajectory_id,
        trial.key.trial,
        trial.key.attempt,
        trial.status.value,
        clean_text(trial.error),
        clean_text(trial.environment)[:64],
        clean_text(trial.external_id),
        uuid.UUID(bytes=trial.digest),
        upload.pk,
        one.source.number,
        one.packed.n_messages,
        trial.n_tool_calls,
        trial.n_rejected,
        trial.cost_usd,
        trial.input_tokens,
        trial.output_tokens,
        trial.started_at,
        trial.ended_at,
        trial.seconds,
        clean_text(trial.termination)[:200],
        trial.has_fault,
        sorted({finding.code for finding in one.warnings}),
        now,
    )


def _record_row(pk: int, one: IncomingTrial) -> tuple[object, ...]:
    source = one.source
    return (pk, source.member, source.offset, source.length, one.packed.record)
