"""Uploads, their receipts and the lines of their ledgers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from evalsite.common.remembering import remembered
from traces.models import Trial

PAGE_UPLOADS = 50
PAGE_LINES = 100


@dataclass(frozen=True, slots=True)
class UploadRow:
    """An upload with the state of its job."""

    pk: int
    uuid: UUID
    file_name: str
    size: int
    sha256: bytes
    door: str
    received_at: datetime
    run_name: str
    format_asked: str
    by_name: str  # the person, "" for the operator
    key_name: str  # of the API key, "" without one
    release_uuid: UUID | None
    release_name: str | None
    state: str
    format: str
    bytes_read: int
    n_received: int
    n_stored: int
    n_duplicate: int
    n_conflict: int
    n_refused: int
    n_trials: int
    n_verdicts: int
    n_verdicts_refused: int
    n_waiting: int
    n_warnings: int
    failure: str
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def is_moving(self) -> bool:
        """Whether more is to come."""
        return self.state in ("received", "processing")


@dataclass(frozen=True, slots=True)
class UploadPage:
    """One page of uploads, newest first, with the places of its neighbours."""

    rows: tuple[UploadRow, ...]
    next_after: int | None
    previous_before: int | None


_ROWS = """
SELECT u.id, u.uuid, u.file_name, u.size, u.sha256, u.door, u.received_at, u.run_name,
       u.format_asked, coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, ''),
       coalesce(a.name, ''), r.uuid, r.name, j.state, j.format, j.bytes_read, j.n_received,
       j.n_stored, j.n_duplicate, j.n_conflict, j.n_refused, j.n_trials, j.n_verdicts,
       j.n_verdicts_refused, j.n_waiting, j.n_warnings, j.failure, j.started_at, j.finished_at
FROM traces_upload u JOIN traces_uploadjob j ON j.upload_id = u.id
LEFT JOIN traces_user p ON p.id = u.by_id
LEFT JOIN traces_apikey a ON a.id = u.api_key_id
LEFT JOIN traces_release r ON r.id = u.release_id
WHERE u.system_id = %(system)s
"""


def upload_rows(
    system_id: int, *, after: int | None = None, before: int | None = None, n: int = PAGE_UPLOADS
) -> UploadPage:
    """One page of uploads, newest first, in one query."""
    backward = before is not None
    place = after if before is None else before
    sign, way = (">", "ASC") if backward else ("<", "DESC")
    with connection.cursor() as cursor:
        cursor.execute(
            _ROWS + f" AND (%(place)s::bigint IS NULL OR u.id {sign} %(place)s)"
            f" ORDER BY u.id {way} LIMIT %(n)s",
            {"system": system_id, "place": place, "n": n + 1},
        )
        found = [UploadRow(*row) for row in cursor.fetchall()]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return UploadPage(
        rows=rows,
        next_after=rows[-1].pk if rows and has_next else None,
        previous_before=rows[0].pk if rows and has_previous else None,
    )


def upload_row(system_id: int, identity: UUID) -> UploadRow | None:
    """The upload of that address in the system; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS + " AND u.uuid = %(uuid)s", {"system": system_id, "uuid": identity})
        row = cursor.fetchone()
    return UploadRow(*row) if row else None


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One record that a person should know of, in the order of the ledger."""

    pk: int
    outcome: str
    number: int
    member: str
    code: str
    place: str
    sentence: str


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """One page of lines, with the places of its neighbours."""

    lines: tuple[LedgerLine, ...]
    next_after: int | None
    previous_before: int | None


def ledger_lines(
    upload_pk: int, *, after: int | None = None, before: int | None = None, n: int = PAGE_LINES
) -> LedgerPage:
    """One page of the ledger's lines, in one query."""
    backward = before is not None
    place = (after or 0) if before is None else before
    sign, way = ("<", "DESC") if backward else (">", "ASC")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, outcome, number, member, code, place, sentence"  # noqa: S608
            " FROM traces_uploadline"
            f" WHERE upload_id = %s AND id {sign} %s ORDER BY id {way} LIMIT %s",
            [upload_pk, place, n + 1],
        )
        found = [LedgerLine(*row) for row in cursor.fetchall()]
    lines = tuple(reversed(found[:n])) if before is not None else tuple(found[:n])
    has_more = len(found) > n
    if before is not None:
        has_next, has_previous = True, has_more
    else:
        has_next, has_previous = has_more, after is not None
    return LedgerPage(
        lines=lines,
        next_after=lines[-1].pk if lines and has_next else None,
        previous_before=lines[0].pk if lines and has_previous else None,
    )


@dataclass(frozen=True, slots=True)
class Landed:
    """Something that trials of an upload are of."""

    kind: str  # task | run | release
    uuid: UUID
    name: str
    n_trials: int


def landed_of(upload_pk: int, *, most: int) -> tuple[Landed, ...]:
    """Releases, runs and tasks that the trials of an upload landed in, most trials first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH g AS MATERIALIZED (SELECT release_id, run_id, task_id, count(*) AS n"
            "  FROM traces_trial WHERE upload_id = %(u)s GROUP BY 1, 2, 3)"
            " (SELECT 'release', r.uuid, r.name, sum(n)::bigint AS n FROM g"
            "  JOIN traces_release r ON r.id = g.release_id GROUP BY r.id"
            "  ORDER BY n DESC, r.id LIMIT %(most)s)"
            " UNION ALL (SELECT 'run', r.uuid, r.name, sum(n)::bigint AS n FROM g"
            "  JOIN traces_run r ON r.id = g.run_id GROUP BY r.id ORDER BY n DESC, r.id"
            "  LIMIT %(most)s)"
            " UNION ALL (SELECT 'task', k.uuid, k.task_id, sum(n)::bigint AS n FROM g"
            "  JOIN traces_task k ON k.id = g.task_id GROUP BY k.id"
            "  ORDER BY k.sort_key, k.id LIMIT %(most)s)",
            {"u": upload_pk, "most": most},
        )
        return tuple(Landed(*row) for row in cursor.fetchall())


def trials_of_lines(upload_pk: int, numbers: Iterable[int]) -> dict[int, UUID]:
    """The trials that came with some records of an upload, by the number of the record."""
    rows = Trial.objects.filter(upload_id=upload_pk, line__in=list(numbers))
    return dict(rows.order_by("pk").values_list("line", "uuid"))


@remembered(64)
def landed_for_good(upload_pk: int, *, most: int) -> tuple[Landed, ...]:
    """As `landed_of`, for an upload that is read to its end: its trials never change."""
    return landed_of(upload_pk, most=most)
