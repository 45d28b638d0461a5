"""Which task is in which risk tier, since when and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.selectors.contract_facts import contract_facts

PAGE_TASKS = 100
PAGE_MOVES = 30

NO_TIER = "none"
"""In a filter: tasks that are in no tier."""

# The newest assignment of the task holds, else the newest of the system.
_OWN = """
SELECT DISTINCT ON (task_id) task_id, tier_id, assigned_at, reason, by_id
FROM reviews_tierassignment WHERE system_id = %(system)s AND task_id IS NOT NULL
ORDER BY task_id, id DESC
"""
_SYSTEM = """
SELECT tier_id, assigned_at, reason, by_id FROM reviews_tierassignment
WHERE system_id = %(system)s AND task_id IS NULL ORDER BY id DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class TiersOfTasks:
    """Which tiers some tasks were put in, by ids. A task that has none of its own is not in `own`."""

    system_tier: int | None
    own: dict[int, int | None]


def tiers_of_tasks(system_id: int, task_ids: Iterable[int]) -> TiersOfTasks:
    """The tiers that tasks and the system have now. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT NULL, (SELECT tier_id FROM ({_SYSTEM}) s) UNION ALL "  # noqa: S608
            f"SELECT task_id, tier_id FROM ({_OWN}) o "
            "WHERE task_id = ANY(%(tasks)s) AND tier_id IS NOT NULL",
            {"system": system_id, "tasks": sorted(set(task_ids))},
        )
        rows = cursor.fetchall()
    return TiersOfTasks(
        system_tier=next(tier for task, tier in rows if task is None),
        own={task: tier for task, tier in rows if task is not None},
    )


def n_tasks_of(system_id: int) -> dict[int | None, int]:
    """How many tasks are in each tier now, by its id; None: in no tier. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(o.tier_id, s.tier_id) AS tier, count(*) FROM traces_task t "  # noqa: S608
            f"LEFT JOIN ({_OWN}) o ON o.task_id = t.id LEFT JOIN ({_SYSTEM}) s ON true "
            "WHERE t.system_id = %(system)s GROUP BY tier",
            {"system": system_id},
        )
        return dict(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class TierTaskFilter:
    """Which tasks of a system. "" leaves a choice open; a tier is a UUID as text or `NO_TIER`."""

    system_id: int
    family: str = ""
    tier: str = ""
    words: str = ""  # looked for in task id and title, letter case aside


@dataclass(frozen=True, slots=True)
class TierTaskRow:
    """A task with the tier that it is in. `is_own` False: that of the system, or none."""

    pk: int
    uuid: UUID
    task_id: str
    title: str
    family: str
    split: str
    tier_uuid: UUID | None
    tier_name: str
    is_own: bool
    since: datetime | None
    reason: str
    by_name: str


@dataclass(frozen=True, slots=True)
class TierTaskPage:
    """One page of tasks, with the places of its neighbours."""

    rows: tuple[TierTaskRow, ...]
    n_all: int  # that the filter finds
    next_after: int | None
    previous_before: int | None


_NAME = "coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, '')"
_TASKS = f"""
FROM traces_task t
LEFT JOIN ({_OWN}) o ON o.task_id = t.id AND o.tier_id IS NOT NULL
LEFT JOIN ({_SYSTEM}) s ON true
LEFT JOIN reviews_risktier r ON r.id = coalesce(o.tier_id, s.tier_id)
LEFT JOIN traces_user p ON p.id = CASE WHEN o.tier_id IS NULL THEN s.by_id ELSE o.by_id END
WHERE t.system_id = %(system)s
  AND (%(family)s = '' OR t.family = %(family)s)
  AND (%(tier)s = '' OR coalesce(r.uuid::text, 'none') = %(tier)s)
  AND (%(words)s = '' OR t.task_id ILIKE %(like)s OR t.title ILIKE %(like)s)
"""
_ROWS = f"""
SELECT t.id, t.uuid, t.task_id, t.title, t.family, t.split, r.uuid, coalesce(r.name, ''),
    o.tier_id IS NOT NULL, CASE WHEN o.tier_id IS NULL THEN s.assigned_at ELSE o.assigned_at END,
    coalesce(CASE WHEN o.tier_id IS NULL THEN s.reason ELSE o.reason END, ''), {_NAME}
{_TASKS}
"""


def tier_tasks(
    chosen: TierTaskFilter, *, after: int | None = None, before: int | None = None
) -> TierTaskPage:
    """One page of tasks in the order of their ids' numbers. Two queries."""
    backward = before is not None
    place = after if before is None else before
    sign, way = ("<", "DESC") if backward else (">", "ASC")
    values = _values(chosen) | {"place": place, "n": PAGE_TASKS + 1}
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_ROWS} AND (%(place)s::bigint IS NULL OR (t.sort_key, t.id) {sign} "  # noqa: S608
            "(SELECT k.sort_key, k.id FROM traces_task k "
            "WHERE k.id = %(place)s AND k.system_id = %(system)s)) "
            f"ORDER BY t.sort_key {way}, t.id {way} LIMIT %(n)s",
            values,
        )
        found = [TierTaskRow(*row) for row in cursor.fetchall()]
        cursor.execute(f"SELECT count(*) {_TASKS}", values)
        n_all = int(cursor.fetchone()[0])
    rows = found[:PAGE_TASKS]
    if backward:
        rows.reverse()
    more = len(found) > PAGE_TASKS
    has_next = bool(rows) if backward else more
    has_previous = more if backward else place is not None and bool(rows)
    return TierTaskPage(
        rows=tuple(rows),
        n_all=n_all,
        next_after=rows[-1].pk if rows and has_next else None,
        previous_before=rows[0].pk if rows and has_previous else None,
    )


def _values(chosen: TierTaskFilter) -> dict[str, Any]:
    escaped = chosen.words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return {
        "system": chosen.system_id,
        "family": chosen.family,
        "tier": chosen.tier,
        "words": chosen.words,
        "like": f"%{escaped}%",
    }


def families_of(system_id: int) -> tuple[str, ...]:
    """The families of a system's tasks, in order. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT family FROM traces_task WHERE system_id = %s AND family <> '' "
            "ORDER BY family",
            [system_id],
        )
        return tuple(row[0] for row in cursor.fetchall())


@dataclass(frozen=True, slots=True)
class TierMove:
    """One assignment: a task, or the system where `task_uuid` is None, into a tier or none."""

    pk: int
    task_uuid: UUID | None
    task_id: str
    tier_uuid: UUID | None
    tier_name: str
    reason: str
    by_name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class TierMovePage:
    """One page of assignments, the newest first."""

    rows: tuple[TierMove, ...]
    next_after: int | None


def tier_moves(
    system_id: int, *, task: int | None = None, after: int | None = None, n: int = PAGE_MOVES
) -> TierMovePage:
    """Who put which task into which tier, the newest first. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT a.id, t.uuid, coalesce(t.task_id, ''), r.uuid, coalesce(r.name, ''), a.reason, "  # noqa: S608
            f"{_NAME}, a.assigned_at FROM reviews_tierassignment a "
            "LEFT JOIN traces_task t ON t.id = a.task_id "
            "LEFT JOIN reviews_risktier r ON r.id = a.tier_id "
            "LEFT JOIN traces_user p ON p.id = a.by_id "
            "WHERE a.system_id = %(system)s AND (%(task)s::bigint IS NULL OR a.task_id = %(task)s) "
            "AND (%(after)s::bigint IS NULL OR a.id < %(after)s) ORDER BY a.id DESC LIMIT %(n)s",
            {"system": system_id, "task": task, "after": after, "n": n + 1},
        )
        found = cursor.fetchall()
    rows = tuple(TierMove(*row) for row in found[:n])
    return TierMovePage(rows, rows[-1].pk if len(found) > n else None)


def harms_of_tier(system_id: int, tier_id: int) -> tuple[str, ...]:
    """The harms that contracts in effect of the tier's tasks name, in order. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT c.text FROM traces_task t "  # noqa: S608
            "JOIN traces_contractversion c ON c.id = t.contract_id "
            f"LEFT JOIN ({_OWN}) o ON o.task_id = t.id LEFT JOIN ({_SYSTEM}) s ON true "
            "WHERE t.system_id = %(system)s AND coalesce(o.tier_id, s.tier_id) = %(tier)s",
            {"system": system_id, "tier": tier_id},
        )
        texts = [row[0] for row in cursor.fetchall()]
    return tuple(sorted({harm for text in texts for harm, _ in contract_facts(text).harms if harm}))


@dataclass(frozen=True, slots=True)
class TierName:
    """A tier that is not retired."""

    pk: int
    uuid: UUID
    name: str


def tiers_in_use(system_id: int) -> tuple[TierName, ...]:
    """The tiers of a system that are not retired, in the order in which they were made."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.id, t.uuid, t.name FROM reviews_risktier t WHERE t.system_id = %s AND NOT "
            "EXISTS (SELECT FROM reviews_tierretirement e WHERE e.tier_id = t.id) ORDER BY t.id",
            [system_id],
        )
        return tuple(TierName(*row) for row in cursor.fetchall())


@dataclass(frozen=True, slots=True)
class SystemTier:
    """The tier of tasks that have none of their own. `tier_name` "": none."""

    tier_name: str
    since: datetime
    reason: str
    by_name: str


def system_tier(system_id: int) -> SystemTier | None:
    """What an owner said last of tasks that have no tier of their own; None: nobody did."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT coalesce(r.name, ''), s.assigned_at, s.reason, {_NAME} FROM ({_SYSTEM}) s "  # noqa: S608
            "LEFT JOIN reviews_risktier r ON r.id = s.tier_id "
            "LEFT JOIN traces_user p ON p.id = s.by_id",
            {"system": system_id},
        )
        row = cursor.fetchone()
    return SystemTier(*row) if row else None
