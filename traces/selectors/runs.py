"""The runs of a system: what was declared, what came, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

PAGE_RUNS = 50


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with its counts over slots: the last attempt of each trial stands."""

    pk: int
    uuid: UUID
    name: str
    release_pk: int
    release_uuid: UUID
    release_name: str
    begun_at: datetime
    declared_at: datetime | None
    declared_trials: int | None  # for each task
    details: str  # JSON text
    n_tasks: int  # that have a trial, or are declared
    n_present: int  # slots
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_error: int
    n_missing: int  # declared trials that never came

    @property
    def n_declared(self) -> int | None:
        """Trials that the declaration promises: each task of it so many; None without one."""
        return None if self.declared_trials is None else self.declared_trials * self.n_tasks

    @property
    def n_graded(self) -> int:
        """Trials that passed or failed."""
        return self.n_pass + self.n_fail

    @property
    def n_run(self) -> int:
        """Slots, the missing declared ones among them."""
        return self.n_present + self.n_missing


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of runs, newest first, with the places of its neighbours."""

    rows: tuple[RunRow, ...]
    next_after: int | None
    previous_before: int | None


# `{which}` chooses the runs, a page at most, before their trials are counted.
_ROWS = """
WITH chosen AS (
    SELECT u.*, r.uuid AS release_uuid, r.name AS release_name
    FROM traces_run u JOIN traces_release r ON r.id = u.release_id
    WHERE r.system_id = %(system)s {which}
), present AS (
    SELECT t.run_id, t.task_id, count(*) AS n,
           count(*) FILTER (WHERE d.value = 'pass') AS n_pass,
           count(*) FILTER (WHERE d.value = 'fail') AS n_fail,
           count(*) FILTER (WHERE d.value = 'unresolved') AS n_unresolved,
           count(*) FILTER (WHERE d.value = 'harness_error') AS n_error
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    WHERE t.run_id IN (SELECT id FROM chosen)
    GROUP BY t.run_id, t.task_id
), tasks AS (
    SELECT run_id, task_id FROM present
    UNION
    SELECT run_id, task_id FROM traces_runtask WHERE run_id IN (SELECT id FROM chosen)
), counted AS (
    SELECT k.run_id, count(*) AS n_tasks, coalesce(sum(p.n), 0) AS n_present,
           coalesce(sum(p.n_pass), 0) AS n_pass, coalesce(sum(p.n_fail), 0) AS n_fail,
           coalesce(sum(p.n_unresolved), 0) AS n_unresolved,
           coalesce(sum(p.n_error), 0) AS n_error,
           coalesce(sum(greatest(0, c.declared_trials - coalesce(p.n, 0))), 0) AS n_missing
    FROM tasks k JOIN chosen c ON c.id = k.run_id
    LEFT JOIN present p ON p.run_id = k.run_id AND p.task_id = k.task_id
    GROUP BY k.run_id
)
SELECT c.id, c.uuid, c.name, c.release_id, c.release_uuid, c.release_name, c.begun_at,
       c.declared_at, c.declared_trials, c.details, coalesce(n.n_tasks, 0),
       coalesce(n.n_present, 0), coalesce(n.n_pass, 0), coalesce(n.n_fail, 0),
       coalesce(n.n_unresolved, 0), coalesce(n.n_error, 0), coalesce(n.n_missing, 0)
FROM chosen c LEFT JOIN counted n ON n.run_id = c.id
ORDER BY c.id DESC
"""


def _rows(which: str, values: dict[str, Any]) -> list[RunRow]:
    with connection.cursor() as cursor:
        cursor.execute(_ROWS.format(which=which), values)
        return [RunRow(*row) for row in cursor.fetchall()]


def run_rows(
    system_id: int,
    *,
    release_pk: int | None = None,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_RUNS,
) -> RunPage:
    """One page of runs, newest first, in one query."""
    backward = before is not None
    place = after if before is None else before
    sign, way = (">", "ASC") if backward else ("<", "DESC")
    which = (
        " AND (%(release)s::bigint IS NULL OR u.release_id = %(release)s)"
        f" AND (%(place)s::bigint IS NULL OR u.id {sign} %(place)s)"
        f" ORDER BY u.id {way} LIMIT %(n)s"
    )
    values = {"system": system_id, "release": release_pk, "place": place, "n": n + 1}
    found = _rows(which, values)
    has_more = len(found) > n
    rows = tuple(found[len(found) - n :] if backward and has_more else found[:n])
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return RunPage(
        rows=rows,
        next_after=rows[-1].pk if rows and has_next else None,
        previous_before=rows[0].pk if rows and has_previous else None,
    )


def run_row(system_id: int, identity: UUID) -> RunRow | None:
    """The run of that address in the system; None when there is none."""
    found = _rows(" AND u.uuid = %(uuid)s", {"system": system_id, "uuid": identity})
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class MissingTask:
    """A task of a declared run that lacks trials."""

    uuid: UUID
    task_id: str
    n_declared: int
    n_present: int


def missing_tasks(run_pk: int, *, n: int) -> tuple[tuple[MissingTask, ...], int]:
    """The first tasks of a declared run that lack trials, and how many there are."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH present AS ("
            " SELECT t.task_id, count(*) AS n FROM traces_trial t"
            " JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands"
            " WHERE t.run_id = %(run)s GROUP BY t.task_id"
            "), tasks AS (SELECT task_id FROM present UNION"
            " SELECT task_id FROM traces_runtask WHERE run_id = %(run)s)"
            " SELECT k.uuid, k.task_id, u.declared_trials, coalesce(p.n, 0), count(*) OVER ()"
            " FROM tasks x JOIN traces_task k ON k.id = x.task_id"
            " JOIN traces_run u ON u.id = %(run)s"
            " LEFT JOIN present p ON p.task_id = x.task_id"
            " WHERE coalesce(p.n, 0) < u.declared_trials"
            " ORDER BY k.sort_key, k.id LIMIT %(n)s",
            {"run": run_pk, "n": n},
        )
        rows = cursor.fetchall()
    return tuple(MissingTask(*row[:4]) for row in rows), rows[0][4] if rows else 0


@dataclass(frozen=True, slots=True)
class RunUpload:
    """An upload that brought trials of a run."""

    uuid: UUID
    file_name: str
    received_at: datetime
    n_trials: int  # of this run
    n_refused: int  # records, of whatever run


def run_uploads(run_pk: int, *, n: int) -> tuple[RunUpload, ...]:
    """The uploads that brought trials of a run, newest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.uuid, p.file_name, p.received_at, x.n, j.n_refused FROM ("
            " SELECT upload_id, count(*) AS n FROM traces_trial WHERE run_id = %s"
            " GROUP BY upload_id) x"
            " JOIN traces_upload p ON p.id = x.upload_id"
            " JOIN traces_uploadjob j ON j.upload_id = p.id ORDER BY p.id DESC LIMIT %s",
            [run_pk, n],
        )
        return tuple(RunUpload(*row) for row in cursor.fetchall())
