"""Flags as lists, trials and accepted paths read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.models import FlagCode
from traces.core.records import Disposition, TrialStatus

PAGE_FLAGS = 50
_SHOWN_REASON = 400  # characters of a reason in a list
_WHOLE_REASON = 1_000_000  # longer than any is stored


@dataclass(frozen=True, slots=True)
class FlagFilter:
    """Which flags of a system. What is None leaves a choice open."""

    system_id: int
    is_open: bool | None = None
    code: FlagCode | None = None
    release_pk: int | None = None
    task_pk: int | None = None
    trial_pk: int | None = None
    passing_only: bool = False  # flags of trials that stand and pass: these keep a path back


@dataclass(frozen=True, slots=True)
class FlaggedTrial:
    """The trial that a flag is on."""

    uuid: UUID
    label: str
    attempt: int
    disposition: Disposition
    stands: bool
    task_uuid: UUID
    task_id: str
    release_uuid: UUID
    release_name: str


@dataclass(frozen=True, slots=True)
class RaisedFlag:
    """A flag, and its closing where it has one."""

    pk: int
    uuid: UUID
    code: FlagCode
    key: UUID
    reason: str
    criterion: str
    by_pk: int | None  # None: the product
    by_name: str  # "": the product
    raised_at: datetime
    closed_by: str  # "" while it is open
    closed_at: datetime | None
    closing_reason: str

    @property
    def is_open(self) -> bool:
        """Whether it waits for somebody to look."""
        return self.closed_at is None


@dataclass(frozen=True, slots=True)
class ListedFlag:
    """A flag in a list."""

    flag: RaisedFlag
    trial: FlaggedTrial


@dataclass(frozen=True, slots=True)
class FlagPage:
    """One page of flags, with the places of its neighbours."""

    rows: tuple[ListedFlag, ...]
    next_after: int | None
    previous_before: int | None


@dataclass(frozen=True, slots=True)
class CodeTotal:
    """How many flags there are for one kind of reason."""

    code: FlagCode
    n_open: int
    n_closed: int


@dataclass(frozen=True, slots=True)
class FlagDetail:
    """One flag with what its trial must tell to judge it."""

    flag: RaisedFlag
    trial: FlaggedTrial
    trial_pk: int
    release_pk: int
    status: TrialStatus
    n_steps: int  # of the transcript
    n_agent_steps: int


def _name_of(person: str) -> str:
    return (
        f"coalesce(nullif(trim({person}.first_name || ' ' || {person}.last_name), ''),"
        f" {person}.username, '')"
    )


_FLAG = f"""f.id, f.uuid, f.code, f.key, left(f.reason, %(most)s), f.criterion, f.by_id,
       {_name_of("p")}, f.raised_at, {_name_of("q")}, c.closed_at,
       coalesce(left(c.reason, %(most)s), '')"""
_TRIAL = """t.uuid, t.label, t.attempt, coalesce(d.value, 'unresolved'),
       coalesce(d.stands, true), k.uuid, k.task_id, r.uuid, r.name"""
_PEOPLE = """LEFT JOIN reviews_flagclosing c ON c.flag_id = f.id
LEFT JOIN traces_user p ON p.id = f.by_id
LEFT JOIN traces_user q ON q.id = c.by_id"""
_OF_TRIAL = """LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id
JOIN traces_task k ON k.id = t.task_id
JOIN traces_release r ON r.id = t.release_id"""
_TRIALS = f"JOIN traces_trial t ON t.id = f.trial_id {_OF_TRIAL}"
_N_FLAG, _N_TRIAL = 12, 9  # columns


def listed_flags(
    chosen: FlagFilter,
    *,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_FLAGS,
) -> FlagPage:
    """One page of flags, newest first, in one query.

    `after` (or `before`) is the flag that the page follows (or precedes).
    """
    backward = before is not None
    place = after if before is None else before
    where, values = _where(chosen)
    if place is not None:
        where.append(f"f.id {'>' if backward else '<'} %(place)s")
    query = (
        f"SELECT {_FLAG}, {_TRIAL} FROM reviews_flag f {_PEOPLE} {_TRIALS}"  # noqa: S608
        f" WHERE {' AND '.join(where)}"
        f" ORDER BY f.id {'ASC' if backward else 'DESC'} LIMIT %(n)s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, {**values, "place": place, "n": n + 1, "most": _SHOWN_REASON})
        found = [
            ListedFlag(_raised(row[:_N_FLAG]), _flagged(row[_N_FLAG:])) for row in cursor.fetchall()
        ]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return FlagPage(
        rows=rows,
        next_after=rows[-1].flag.pk if rows and has_next else None,
        previous_before=rows[0].flag.pk if rows and has_previous else None,
    )


def flag_totals(chosen: FlagFilter) -> tuple[CodeTotal, ...]:
    """How many flags there are by code, whatever code and state are chosen, in one query."""
    where, values = _where(
        FlagFilter(
            chosen.system_id,
            release_pk=chosen.release_pk,
            task_pk=chosen.task_pk,
            trial_pk=chosen.trial_pk,
            passing_only=chosen.passing_only,
        )
    )
    trials = "JOIN traces_trial t ON t.id = f.trial_id" if len(where) > 1 else ""
    if chosen.passing_only:
        trials += " JOIN traces_trialdisposition d ON d.trial_id = t.id"
    query = (
        "SELECT f.code, count(*) FILTER (WHERE c.flag_id IS NULL),"  # noqa: S608
        " count(c.flag_id) FROM reviews_flag f"
        f" LEFT JOIN reviews_flagclosing c ON c.flag_id = f.id {trials}"
        f" WHERE {' AND '.join(where)} GROUP BY f.code"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        found = {code: (n_open, n_closed) for code, n_open, n_closed in cursor.fetchall()}
    return tuple(CodeTotal(code, *found.get(code.value, (0, 0))) for code in FlagCode)


def flags_of_trial(trial_pk: int) -> tuple[RaisedFlag, ...]:
    """All flags of a trial in the order in which they were raised, open ones first."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_FLAG} FROM reviews_flag f {_PEOPLE} WHERE f.trial_id = %(trial)s"  # noqa: S608
            " ORDER BY c.flag_id IS NOT NULL, f.id",
            {"trial": trial_pk, "most": _SHOWN_REASON},
        )
        return tuple(_raised(row) for row in cursor.fetchall())


@dataclass(frozen=True, slots=True)
class OpenFlags:
    """Open flags of a trial, first raised first, and how many more there are."""

    rows: tuple[RaisedFlag, ...]
    n_more: int


def open_flags_beside(
    flag: FlagDetail, *, by_pk: int | None = None, n: int = PAGE_FLAGS
) -> OpenFlags:
    """The other open flags of a flag's trial, at most `n`, in one query.

    `by_pk`: only those that this person raised.
    """
    raised = "" if by_pk is None else " AND f.by_id = %(by)s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_FLAG}, count(*) OVER () FROM reviews_flag f {_PEOPLE}"  # noqa: S608
            " WHERE f.trial_id = %(trial)s AND f.id <> %(flag)s AND c.flag_id IS NULL"
            f"{raised} ORDER BY f.id LIMIT %(n)s",
            {
                "trial": flag.trial_pk,
                "flag": flag.flag.pk,
                "by": by_pk,
                "n": n,
                "most": _SHOWN_REASON,
            },
        )
        found = cursor.fetchall()
    rows = tuple(_raised(row[:_N_FLAG]) for row in found)
    return OpenFlags(rows, n_more=found[0][_N_FLAG] - len(rows) if found else 0)


def flag_with_trial(system_pk: int, identity: UUID) -> FlagDetail | None:
    """The flag of that address in the system, in one query; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_FLAG}, {_TRIAL}, t.id, t.release_id, t.status, t.n_messages,"  # noqa: S608
            f" length(j.outcomes) FROM reviews_flag f {_PEOPLE} {_TRIALS}"
            " JOIN traces_trajectory j ON j.id = t.trajectory_id"
            " WHERE f.system_id = %(system)s AND f.uuid = %(uuid)s",
            {"system": system_pk, "uuid": identity, "most": _WHOLE_REASON},
        )
        row = cursor.fetchone()
    if row is None:
        return None
    at = _N_FLAG + _N_TRIAL
    trial_pk, release_pk, status, n_steps, n_agent_steps = row[at:]
    return FlagDetail(
        _raised(row[:_N_FLAG]),
        _flagged(row[_N_FLAG:at]),
        trial_pk,
        release_pk,
        TrialStatus(status),
        n_steps,
        n_agent_steps,
    )


@dataclass(frozen=True, slots=True)
class FlaggableTrial:
    """A trial that somebody is about to flag."""

    pk: int
    trial: FlaggedTrial


def flaggable_trial(system_pk: int, identity: UUID) -> FlaggableTrial | None:
    """The trial of that address in the system, in one query; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT t.id, {_TRIAL} FROM traces_trial t {_OF_TRIAL}"  # noqa: S608
            " WHERE t.system_id = %s AND t.uuid = %s",
            [system_pk, identity],
        )
        row = cursor.fetchone()
    return None if row is None else FlaggableTrial(row[0], _flagged(row[1:]))


def _raised(row: tuple[Any, ...]) -> RaisedFlag:
    pk, identity, code, *others = row
    return RaisedFlag(pk, identity, FlagCode(code), *others)


def _flagged(row: tuple[Any, ...]) -> FlaggedTrial:
    identity, label, attempt, disposition, *others = row
    return FlaggedTrial(identity, label, attempt, Disposition(disposition), *others)


def _where(chosen: FlagFilter) -> tuple[list[str], dict[str, Any]]:
    """Conditions that are asked for, so that the database can choose the index that fits."""
    where = ["f.system_id = %(system)s"]
    values: dict[str, Any] = {"system": chosen.system_id}
    if chosen.is_open is not None:
        where.append(f"c.flag_id IS {'' if chosen.is_open else 'NOT '}NULL")
    for condition, name, value in (
        ("f.code = %(code)s", "code", chosen.code and chosen.code.value),
        ("t.release_id = %(release)s", "release", chosen.release_pk),
        ("t.task_id = %(task)s", "task", chosen.task_pk),
        ("f.trial_id = %(trial)s", "trial", chosen.trial_pk),
    ):
        if value is not None:
            where.append(condition)
            values[name] = value
    if chosen.passing_only:
        where.append("d.stands AND d.value = 'pass'")
    return where, values


_FLAGGED = """
SELECT DISTINCT t.trajectory_id
FROM traces_trial t
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands AND d.value = 'pass'
JOIN reviews_flag f ON f.trial_id = t.id
LEFT JOIN reviews_flagclosing c ON c.flag_id = f.id
WHERE t.task_id = %s AND c.flag_id IS NULL
"""
_NEXT_OPEN = """
SELECT f.uuid FROM reviews_flag f LEFT JOIN reviews_flagclosing c ON c.flag_id = f.id
WHERE f.system_id = %s AND f.id < %s AND c.flag_id IS NULL ORDER BY f.id DESC LIMIT 1
"""
_N_OPEN = """
SELECT count(*) FROM reviews_flag f LEFT JOIN reviews_flagclosing c ON c.flag_id = f.id
WHERE f.system_id = %s AND c.flag_id IS NULL
"""


def next_open_flag(system_pk: int, *, after: int) -> UUID | None:
    """The address of the next older open flag of a system, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_NEXT_OPEN, [system_pk, after])
        row = cursor.fetchone()
    return row[0] if row else None


def flagged_trajectories(task_pk: int) -> frozenset[int]:
    """Ids of the trajectories of passing trials that stand and carry an open flag.

    No path that holds one of them can be accepted. One query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FLAGGED, [task_pk])
        return frozenset(pk for (pk,) in cursor.fetchall())


def n_open_flags(system_pk: int) -> int:
    """How many flags of a system wait for somebody to look."""
    with connection.cursor() as cursor:
        cursor.execute(_N_OPEN, [system_pk])
        (n,) = cursor.fetchone()
        return int(n)
