"""Evidence written out again: native JSON Lines for programs, CSV for spreadsheets.

Both are generators that read the database a few trials at a time, so that memory does not grow
with the number of trials, and a slow reader holds no transaction open.
"""

from __future__ import annotations

import csv
import io
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import connection

from evalsite.common import blobs
from traces.core.formats.native import native_record
from traces.core.formats.verdicts import verdict_record
from traces.core.records import CriterionClass, GraderKind, ParsedVerdict, VerdictValue
from traces.core.text_marks import csv_safe
from traces.core.transcript import transcript_of
from traces.core.values import Json, JsonObject
from traces.models import Release, Run, System, Trial
from traces.selectors.paths import KEY_NAMES

BATCH_TRIALS = 100
BATCH_BYTES = 8 * 1024 * 1024  # of compressed transcripts


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """Which trials: of a system, or of one release or run of it."""

    system: System
    release: Release | None = None
    run: Run | None = None


CSV_COLUMNS = (
    "task",
    "family",
    "split",
    "release",
    "run",
    "trial",
    "attempt",
    "stands",
    "status",
    "disposition",
    "failed_classes",
    "next_actions",
    "environment",
    "has_fault",
    "error",
    "termination",
    "started_at",
    "ended_at",
    "seconds",
    "cost_usd",
    "input_tokens",
    "output_tokens",
    "messages",
    "tool_calls",
    "rejected_calls",
    *(f"path_{name}" for name in KEY_NAMES),
    "final_agent_message",
    "id",
)
"""The columns of the CSV export. A path is named by the first digits of its key."""

_TRIALS = """
SELECT t.id, t.uuid, k.task_id, k.family, k.split, r.name, u.name, t.label, t.attempt, d.stands,
       t.status, d.value, d.failed_classes, d.next_actions, t.environment, t.has_fault, t.error,
       t.termination, t.started_at, t.ended_at, t.seconds, t.cost_usd, t.input_tokens,
       t.output_tokens, t.n_messages, t.n_tool_calls, t.n_rejected,
       (SELECT coalesce(sum(octet_length(c.content)), 0) FROM traces_transcriptchunk c
        WHERE c.trial_id = t.id), {keys}
FROM traces_trial t
JOIN traces_task k ON k.id = t.task_id
JOIN traces_run u ON u.id = t.run_id
JOIN traces_release r ON r.id = t.release_id
LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id
LEFT JOIN traces_trajectorypaths p
    ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s
WHERE k.system_id = %(system)s AND t.id > %(after)s
  AND (%(release)s::bigint IS NULL OR t.release_id = %(release)s)
  AND (%(run)s::bigint IS NULL OR t.run_id = %(run)s)
ORDER BY t.id LIMIT %(limit)s
""".format(keys=", ".join(f"p.{name}" for name in KEY_NAMES))  # noqa: S608 - own names


@dataclass(frozen=True, slots=True)
class _Row:
    """A trial's columns as the query gives them."""

    pk: int
    identity: uuid.UUID
    described: tuple[object, ...]  # task to rejected_calls, in the order of CSV_COLUMNS
    n_bytes: int
    keys: tuple[uuid.UUID | None, ...]


def csv_rows(selection: ExportSelection) -> Iterator[str]:
    """One CSV line for the head and one for each trial, as RFC 4180 has them.

    A text that a spreadsheet would take for a formula gets an apostrophe in front; numbers are
    left alone. The JSON Lines export is the exact one.
    """
    yield _csv_line(CSV_COLUMNS)
    for rows in _batches(selection):
        chunks = _chunks([row.pk for row in rows])
        for row in rows:
            yield _csv_line(
                (
                    *map(_cell, row.described),
                    *(f"path-{key.hex[:12]}" if key else None for key in row.keys),
                    _final_agent_message(chunks.get(row.pk, [])),
                    str(row.identity),
                )
            )


def jsonl_lines(selection: ExportSelection) -> Iterator[str]:
    """The native record of each trial with its verdicts, one ASCII JSON line each.

    Ingested again, a record has the same digest. The name of its release or run is in it only
    where its source put it there: ingest release by release.
    """
    for rows in _batches(selection):
        for text in _records([row.pk for row in rows]):
            yield text + "\n"


def record_text(trial: Trial) -> str:
    """The native record of one trial with its verdicts, as ASCII JSON text."""
    return next(_records([trial.pk]))


def _batches(selection: ExportSelection) -> Iterator[list[_Row]]:
    after = 0
    while rows := _rows_after(selection, after):
        after = rows[-1].pk
        yield from _bounded(rows)


def _rows_after(selection: ExportSelection, after: int) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(
            _TRIALS,
            {
                "system": selection.system.pk,
                "rules": selection.system.shown_rules_id,
                "release": selection.release.pk if selection.release else None,
                "run": selection.run.pk if selection.run else None,
                "after": after,
                "limit": BATCH_TRIALS,
            },
        )
        n_keys = len(KEY_NAMES)
        return [
            _Row(row[0], row[1], row[2 : -n_keys - 1], int(row[-n_keys - 1]), row[-n_keys:])
            for row in cursor.fetchall()
        ]


def _bounded(rows: list[_Row]) -> Iterator[list[_Row]]:
    """The rows in groups whose transcripts fit into memory together."""
    group: list[_Row] = []
    size = 0
    for row in rows:
        if group and size + row.n_bytes > BATCH_BYTES:
            yield group
            group, size = [], 0
        group.append(row)
        size += row.n_bytes
    if group:
        yield group


# --- JSON Lines


def _records(trial_ids: Sequence[int]) -> Iterator[str]:
    chunks = _chunks(trial_ids)
    rests = _rests(trial_ids)
    verdicts = _verdicts(trial_ids)
    for pk in trial_ids:
        messages = [message for chunk in chunks.pop(pk, []) for message in blobs.unpack(chunk)]
        rest = blobs.unpack(rests.pop(pk))["rest"]
        yield blobs.dumps(native_record(messages, rest, verdicts.get(pk, [])))


def _chunks(trial_ids: Sequence[int]) -> dict[int, list[bytes]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT trial_id, content FROM traces_transcriptchunk"
            " WHERE trial_id = ANY(%s) ORDER BY trial_id, first_step",
            [list(trial_ids)],
        )
        found: dict[int, list[bytes]] = {}
        for pk, content in cursor.fetchall():
            found.setdefault(pk, []).append(content)
        return found


def _rests(trial_ids: Sequence[int]) -> dict[int, bytes]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT trial_id, content FROM traces_trialrecord WHERE trial_id = ANY(%s)",
            [list(trial_ids)],
        )
        return dict(cursor.fetchall())


def _verdicts(trial_ids: Sequence[int]) -> dict[int, list[JsonObject]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT v.trial_id, g.name, gv.version, g.kind, c.name, v.criterion_class,"
            " v.is_mandatory, v.value, v.raw_word, v.key, v.score, v.rationale, v.cited_steps,"
            " v.overrides, v.extra, v.digest"
            " FROM reviews_verdict v"
            " JOIN reviews_graderversion gv ON gv.id = v.grader_version_id"
            " JOIN reviews_grader g ON g.id = gv.grader_id"
            " JOIN reviews_criterion c ON c.id = v.criterion_id"
            # The product's own checks are left out: they are made again wherever the contract is.
            " WHERE v.trial_id = ANY(%s) AND (v.contract_id IS NULL OR v.by_id IS NOT NULL)"
            " ORDER BY v.trial_id, v.id",
            [list(trial_ids)],
        )
        found: dict[int, list[JsonObject]] = {}
        for pk, *columns in cursor.fetchall():
            found.setdefault(pk, []).append(_verdict_record(*columns))
        return found


def _verdict_record(
    grader: str,
    version: str,
    kind: str,
    criterion: str,
    criterion_class: str,
    mandatory: bool,  # noqa: FBT001 - a column
    value: str,
    raw_word: str,
    key: str,
    score: Decimal | None,
    rationale: str,
    cited: list[int],
    overrides: str,
    extra: str,
    digest: uuid.UUID,
) -> JsonObject:
    return verdict_record(
        ParsedVerdict(
            grader=grader,
            grader_version=version,
            kind=GraderKind(kind),
            criterion=criterion,
            criterion_class=CriterionClass(criterion_class),
            mandatory=mandatory,
            value=VerdictValue(value),
            raw_word=raw_word,
            key=key,
            score=plain_decimal(score),
            rationale=rationale,
            cited_steps=tuple(cited),
            overrides=overrides or None,
            extra=blobs.loads(extra) if extra else {},
            digest=digest.bytes,
        )
    )


def plain_decimal(value: Decimal | None) -> Decimal | None:
    """The number without the zeros that its column adds: 1.000 is 1, and 100 stays 100."""
    if value is None:
        return None
    shorter = value.normalize()
    _, _, exponent = shorter.as_tuple()
    return shorter.quantize(Decimal(1)) if isinstance(exponent, int) and exponent > 0 else shorter


# --- CSV


def _csv_line(cells: Sequence[str | int | Decimal | None]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([csv_safe(cell) for cell in cells])
    return out.getvalue()


def _cell(value: object) -> str | int | Decimal | None:
    match value:
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return plain_decimal(value)
        case datetime():
            return value.isoformat()
        case list():
            return " ".join(value)
        case None | int() | str():
            return value
        case _:
            raise TypeError(f"no column holds {type(value).__name__}")


def _final_agent_message(chunks: Sequence[bytes]) -> str:
    """The last thing that the agent said; "" when it said nothing."""
    for chunk in reversed(chunks):
        for message in reversed(blobs.unpack(chunk)):
            if message.get("role") == "assistant" and (text := _said(message)):
                return text
    return ""


def _said(message: dict[str, Json]) -> str:
    step = transcript_of([message])[0]
    return "\n".join(part.text for part in step.parts if part.kind == "text" and part.text)


def trial_summary(trial: Trial) -> dict[str, object]:
    """What names a trial and what it comes to, as plain values for JSON."""
    disposition = getattr(trial, "disposition", None)
    return {
        "id": str(trial.uuid),
        "system": trial.system.slug,
        "release": trial.release.name,
        "run": trial.run.name,
        "task_id": trial.task.task_id,
        "trial": trial.label,
        "attempt": trial.attempt,
        "digest": trial.digest.hex,
        "disposition": disposition.value if disposition else None,
        "failed_classes": list(disposition.failed_classes) if disposition else [],
        "next_actions": list(disposition.next_actions) if disposition else [],
    }


def trial_text(trial: Trial) -> str:
    """The summary of a trial with its native record under `record`, as ASCII JSON text."""
    summary = json.dumps(trial_summary(trial))
    return f'{summary[:-1]}, "record": {record_text(trial)}}}'
