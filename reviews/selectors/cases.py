"""Cases as the queue reads them: a page at a time, with counts and the choices of its filters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.core.disposition import NextAction
from reviews.models import CaseState
from traces.models import Role

PAGE_CASES = 50
MOST_FAMILIES = 500  # in the menu of a filter
_SHOWN_ERROR = 200  # characters of a harness error in the queue
_MICROSECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """Which cases of a system. What is None or "" leaves a choice open."""

    system_id: int
    state: CaseState | None = CaseState.OPEN
    action: NextAction | None = None  # the first next action
    worked_by: str = ""  # role that works the first action
    assignee_pk: int | None = None  # 0: nobody
    release_pk: int | None = None
    family: str | None = None  # "": tasks without one
    split: str | None = None  # "": tasks without one
    due_before: date | None = None
    words: str = ""  # in a task's id or title
    task_pk: int | None = None
    rerun_asked: bool = False  # since it opened last

    @property
    def is_newest_first(self) -> bool:
        """What waits is worked from the oldest on; what is closed is read from the newest on."""
        return self.state is CaseState.CLOSED


@dataclass(frozen=True, slots=True)
class Place:
    """Where a case stands in the queue. It stays the same when the case itself moves on."""

    opened_us: int  # microseconds since 1970
    pk: int

    def __str__(self) -> str:
        return f"{self.opened_us}.{self.pk}"

    @classmethod
    def of(cls, text: str) -> Place | None:
        """The place that a text spells; None when it is none."""
        opened, dot, pk = text.partition(".")
        is_number = all(p.isascii() and p.isdigit() and len(p) < 17 for p in (opened, pk))
        return cls(int(opened), int(pk)) if dot and is_number else None

    @property
    def opened_at(self) -> datetime:
        seconds, rest = divmod(self.opened_us, _MICROSECOND)
        return datetime.fromtimestamp(min(seconds, 10**11), tz=UTC).replace(microsecond=rest)


@dataclass(frozen=True, slots=True)
class ListedCase:
    """A case with what the queue tells of its trial."""

    pk: int
    uuid: UUID
    state: CaseState
    disposition: str
    next_actions: tuple[NextAction, ...]
    action: NextAction
    worked_by: str
    why: tuple[str, ...]
    n_opened: int
    opened_at: datetime
    closed_at: datetime | None
    due_on: date | None
    n_comments: int
    assignee_pk: int | None
    assignee_uuid: UUID | None
    assignee_name: str  # "": nobody
    trial_pk: int
    trial_uuid: UUID
    label: str
    attempt: int
    error: str  # of the harness, its beginning
    task_pk: int
    task_uuid: UUID
    task_id: str
    task_title: str
    family: str
    split: str
    release_pk: int
    release_uuid: UUID
    release_name: str
    run_name: str

    @property
    def place(self) -> Place:
        """Where it stands in the queue."""
        whole = int(self.opened_at.replace(microsecond=0).timestamp())
        return Place(whole * _MICROSECOND + self.opened_at.microsecond, self.pk)


@dataclass(frozen=True, slots=True)
class CasePage:
    """One page of cases, with the places of its neighbours."""

    rows: tuple[ListedCase, ...]
    next_after: Place | None
    previous_before: Place | None


_COLUMNS = """
SELECT c.id, c.uuid, c.state, c.disposition, c.next_actions, c.action, c.worked_by, c.why,
       c.n_opened, c.opened_at, c.closed_at, c.due_on, c.n_comments, c.assignee_id, p.uuid,
       coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, ''),
       t.id, t.uuid, t.label, t.attempt, left(t.error, %(most_error)s),
       k.id, k.uuid, k.task_id, k.title, k.family, coalesce(k.split, ''), r.id, r.uuid, r.name, u.name
FROM reviews_case c
JOIN traces_trial t ON t.id = c.trial_id
JOIN traces_task k ON k.id = c.task_id
JOIN traces_release r ON r.id = c.release_id
JOIN traces_run u ON u.id = t.run_id
LEFT JOIN traces_user p ON p.id = c.assignee_id
"""


def listed_cases(
    chosen: CaseFilter,
    *,
    after: Place | None = None,
    before: Place | None = None,
    n: int = PAGE_CASES,
) -> CasePage:
    """One page of cases in one query: the oldest first, closed ones the newest first.

    `after` (or `before`) is the place that the page follows (or precedes).
    """
    backward = before is not None
    place = before or after
    is_descending = chosen.is_newest_first != backward
    where, values = _where(chosen)
    if place is not None:
        where.append(f"(c.opened_at, c.id) {'<' if is_descending else '>'} (%(at)s, %(place)s)")
        values |= {"at": place.opened_at, "place": place.pk}
    order = "DESC" if is_descending else "ASC"
    query = (
        f"{_COLUMNS} WHERE {' AND '.join(where)}"
        f" ORDER BY c.opened_at {order}, c.id {order} LIMIT %(n)s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, {**values, "n": n + 1, "most_error": _SHOWN_ERROR})
        found = [_listed(row) for row in cursor.fetchall()]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return CasePage(
        rows=rows,
        next_after=rows[-1].place if rows and has_next else None,
        previous_before=rows[0].place if rows and has_previous else None,
    )


def case_of(system_pk: int, identity: UUID) -> ListedCase | None:
    """The case of that address in the system, in one query; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_COLUMNS} WHERE c.system_id = %(system)s AND c.uuid = %(uuid)s",
            {"system": system_pk, "uuid": identity, "most_error": _SHOWN_ERROR},
        )
        row = cursor.fetchone()
    return None if row is None else _listed(row)


def neighbours_of(case: ListedCase, chosen: CaseFilter) -> tuple[UUID | None, UUID | None]:
    """The cases before and after one in the queue as filtered, in one query."""
    where, values = _where(chosen)
    joins = _joins(chosen)
    sides = []
    for sign, order in (("<", "DESC"), (">", "ASC")):
        sides.append(
            f"(SELECT c.uuid FROM reviews_case c {joins} WHERE {' AND '.join(where)}"  # noqa: S608
            f" AND (c.opened_at, c.id) {sign} (%(at)s, %(place)s)"
            f" ORDER BY c.opened_at {order}, c.id {order} LIMIT 1)"
        )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {', '.join(sides)}",
            {**values, "at": case.place.opened_at, "place": case.pk},
        )
        older, newer = cursor.fetchone()
    return (newer, older) if chosen.is_newest_first else (older, newer)


@dataclass(frozen=True, slots=True)
class CaseTotals:
    """How many cases are like that, by first next action; and how many wait in the system."""

    by_action: dict[NextAction, int]
    n_open: int  # in the system, whatever is chosen
    n_mine: int  # of these, assigned to the person

    @property
    def n(self) -> int:
        """All that are like that."""
        return sum(self.by_action.values())


def case_totals(chosen: CaseFilter, *, person_pk: int) -> CaseTotals:
    """Counts for the tabs, whatever action is chosen, and for the headline, in one query."""
    wanted = replace(chosen, action=None)
    where, values = _where(wanted)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT c.action, count(*) FROM reviews_case c {_joins(wanted)}"  # noqa: S608
            f" WHERE {' AND '.join(where)} GROUP BY c.action"
            " UNION ALL SELECT 'open', count(*) FROM reviews_case"
            " WHERE system_id = %(system)s AND state = 'open'"
            " UNION ALL SELECT 'mine', count(*) FROM reviews_case"
            " WHERE system_id = %(system)s AND state = 'open' AND assignee_id = %(person)s",
            {**values, "person": person_pk},
        )
        found: dict[str, int] = dict(cursor.fetchall())
    return CaseTotals(
        {action: found.get(action.value, 0) for action in NextAction},
        n_open=found["open"],
        n_mine=found["mine"],
    )


@dataclass(frozen=True, slots=True)
class Worker:
    """A member to whom cases are assigned."""

    pk: int
    uuid: UUID
    name: str
    role: Role


def case_workers(system_pk: int) -> tuple[Worker, ...]:
    """The engineers and reviewers of a system by name, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT p.id, p.uuid,"
            " coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username) AS name,"
            " m.role FROM traces_member m JOIN traces_user p ON p.id = m.user_id"
            " WHERE m.system_id = %s AND p.is_active AND m.role IN ('engineer', 'reviewer')"
            " ORDER BY name, p.id",
            [system_pk],
        )
        return tuple(
            Worker(pk, identity, name, Role(role)) for pk, identity, name, role in cursor.fetchall()
        )


def task_families(system_pk: int) -> tuple[str, ...]:
    """The families of a system's tasks by name, "" for tasks without one, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT family FROM traces_task WHERE system_id = %s ORDER BY family LIMIT %s",
            [system_pk, MOST_FAMILIES],
        )
        return tuple(family for (family,) in cursor.fetchall())


def _listed(row: tuple[Any, ...]) -> ListedCase:
    pk, identity, state, disposition, actions, action, worked_by, why, *others = row
    return ListedCase(
        pk,
        identity,
        CaseState(state),
        disposition,
        tuple(NextAction(each) for each in actions),
        NextAction(action),
        worked_by,
        tuple(why),
        *others,
    )


def _joins(chosen: CaseFilter) -> str:
    """What the conditions of `_where` need beside the case itself."""
    of_task = chosen.words or chosen.family is not None or chosen.split is not None
    return "JOIN traces_task k ON k.id = c.task_id" if of_task else ""


_RERUN_ASKED = """EXISTS (SELECT 1 FROM reviews_caseevent e WHERE e.case_id = c.id
    AND e.kind = 'rerun_asked' AND e.at >= c.opened_at)"""


def _where(chosen: CaseFilter) -> tuple[list[str], dict[str, Any]]:
    """Conditions that are asked for, so that the database can choose the index that fits."""
    where = ["c.system_id = %(system)s"]
    values: dict[str, Any] = {"system": chosen.system_id}
    for condition, name, value in (
        ("c.state = %(state)s", "state", chosen.state and chosen.state.value),
        ("c.action = %(action)s", "action", chosen.action and chosen.action.value),
        ("c.worked_by = %(role)s", "role", chosen.worked_by or None),
        ("c.assignee_id = %(assignee)s", "assignee", chosen.assignee_pk or None),
        ("c.release_id = %(release)s", "release", chosen.release_pk),
        ("c.due_on < %(due)s", "due", chosen.due_before),
        ("c.task_id = %(task)s", "task", chosen.task_pk),
        ("k.family = %(family)s", "family", chosen.family),
        ("coalesce(k.split, '') = %(split)s", "split", chosen.split),
        (
            "position(lower(%(words)s) IN lower(k.task_id || ' ' || k.title)) > 0",
            "words",
            chosen.words or None,
        ),
    ):
        if value is not None:
            where.append(condition)
            values[name] = value
    if chosen.assignee_pk == 0:
        where.append("c.assignee_id IS NULL")
    if chosen.rerun_asked:
        where.append(_RERUN_ASKED)
    return where, values
