"""The releases of a system, with what was run against them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

PAGE_RELEASES = 50
NO_RELEASE = "no release"


@dataclass(frozen=True, slots=True)
class ReleaseName:
    """A release as menus name it."""

    pk: int
    uuid: UUID
    name: str

    @property
    def label(self) -> str:
        """The name that pages show."""
        return self.name or NO_RELEASE


def release_names(system_id: int) -> tuple[ReleaseName, ...]:
    """All releases of a system, newest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, uuid, name FROM traces_release WHERE system_id = %s ORDER BY id DESC",
            [system_id],
        )
        return tuple(ReleaseName(*row) for row in cursor.fetchall())


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A release with its figures, which leave split `tuning` out."""

    pk: int
    uuid: UUID
    name: str
    details: str  # JSON text
    created_at: datetime
    n_runs: int
    n_tasks: int  # of every split
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_error: int
    n_missing: int  # declared, and nothing came
    n_left_out: int  # trials of production or with an injected fault, of no tuning task
    n_tuning: int  # trials of split `tuning`, whatever else they are

    @property
    def label(self) -> str:
        """The name that pages show."""
        return self.name or NO_RELEASE

    @property
    def n_graded(self) -> int:
        """Trials that passed or failed."""
        return self.n_pass + self.n_fail

    @property
    def n_run(self) -> int:
        """Graded trials, those that nothing decides, harness errors and missing ones."""
        return self.n_graded + self.n_unresolved + self.n_error + self.n_missing


@dataclass(frozen=True, slots=True)
class ReleasePage:
    """One page of releases, newest first, with the places of its neighbours."""

    rows: tuple[ReleaseRow, ...]
    next_after: int | None
    previous_before: int | None


_ROWS = """
SELECT r.id, r.uuid, r.name, r.details, r.created_at,
       (SELECT count(*) FROM traces_run u WHERE u.release_id = r.id),
       f.n_tasks, f.n_pass, f.n_fail, f.n_unresolved, f.n_error, f.n_missing, f.n_left_out,
       f.n_tuning
FROM traces_release r, LATERAL (
    SELECT count(*) AS n_tasks,
           coalesce(sum(n_pass) FILTER (WHERE NOT tuning), 0) AS n_pass,
           coalesce(sum(n_fail) FILTER (WHERE NOT tuning), 0) AS n_fail,
           coalesce(sum(n_unresolved) FILTER (WHERE NOT tuning), 0) AS n_unresolved,
           coalesce(sum(n_error) FILTER (WHERE NOT tuning), 0) AS n_error,
           coalesce(sum(n_missing) FILTER (WHERE NOT tuning), 0) AS n_missing,
           coalesce(sum(n_left_out) FILTER (WHERE NOT tuning), 0) AS n_left_out,
           coalesce(sum(n_run + n_left_out) FILTER (WHERE tuning), 0) AS n_tuning
    FROM (SELECT x.*, k.split = 'tuning' AS tuning
          FROM traces_taskfigures x JOIN traces_task k ON k.id = x.task_id
          WHERE x.release_id = r.id) x
) f
WHERE r.system_id = %(system)s AND (%(uuid)s::uuid IS NULL OR r.uuid = %(uuid)s)
"""


def release_rows(
    system_id: int, *, after: int | None = None, before: int | None = None, n: int = PAGE_RELEASES
) -> ReleasePage:
    """One page of releases, newest first, in one query."""
    backward = before is not None
    place = after if before is None else before
    sign, way = (">", "ASC") if backward else ("<", "DESC")
    with connection.cursor() as cursor:
        cursor.execute(
            _ROWS + f" AND (%(place)s::bigint IS NULL OR r.id {sign} %(place)s)"
            f" ORDER BY r.id {way} LIMIT %(n)s",
            {"system": system_id, "uuid": None, "place": place, "n": n + 1},
        )
        found = [ReleaseRow(*row) for row in cursor.fetchall()]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return ReleasePage(
        rows=rows,
        next_after=rows[-1].pk if rows and has_next else None,
        previous_before=rows[0].pk if rows and has_previous else None,
    )


def release_row(system_id: int, identity: UUID) -> ReleaseRow | None:
    """The release of that address in the system; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, {"system": system_id, "uuid": identity})
        row = cursor.fetchone()
    return ReleaseRow(*row) if row else None
