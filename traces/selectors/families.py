"""Families of tasks with their splits, and what could go into the regression split."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from traces.models import Task

PAGE_FAMILIES = 50
LISTED_OFFERS = 12
FEWEST_TRIALS = 3  # a release, of each task that is offered
RELEASES_LOOKED_AT = 2


@dataclass(frozen=True, slots=True)
class Happened:
    """A change of split or an exposure: who, when and why."""

    reason: str
    by_name: str
    at: datetime
    trial_uuid: uuid.UUID | None = None
    label: str = ""  # of that trial


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """A family, or a task that has none, with its split."""

    name: str  # of the family, else the task's id
    task_pk: int | None  # None: a family
    task_uuid: uuid.UUID | None
    splits: tuple[str, ...]  # more than one: its tasks are apart; "" where somebody has to say
    n_tasks: int
    n_trials: int  # slots of all releases
    n_exposed: int  # exposures, each noted once
    change: Happened | None  # the last change of split
    exposure: Happened | None  # the newest


@dataclass(frozen=True, slots=True)
class FamilyPage:
    """One page of families or of tasks without one; with the places of its neighbours."""

    rows: tuple[FamilyRow, ...]
    next_after: str | None
    previous_before: str | None


@dataclass(frozen=True, slots=True)
class FamilyTotals:
    """How many families a system has, and tasks without one."""

    n_families: int
    n_lone: int


_UNITS = {
    False: (
        "SELECT k.family AS name, k.family AS sort, NULL::bigint AS task_id, NULL::uuid AS task,"
        " array_agg(DISTINCT k.split ORDER BY k.split) AS splits, count(*) AS n_tasks,"
        " coalesce(sum(f.n_run + f.n_left_out), 0) AS n_trials"
        " FROM traces_task k"
        " LEFT JOIN traces_taskfigures f ON f.task_id = k.id AND f.release_id IS NULL"
        " WHERE k.system_id = %(system)s AND k.family <> '' {place}"
        " GROUP BY k.family ORDER BY k.family {way}"
    ),
    True: (
        "SELECT k.task_id AS name, k.sort_key AS sort, k.id AS task_id, k.uuid AS task,"
        " ARRAY[k.split] AS splits, 1 AS n_tasks,"
        " coalesce(f.n_run + f.n_left_out, 0) AS n_trials"
        " FROM traces_task k"
        " LEFT JOIN traces_taskfigures f ON f.task_id = k.id AND f.release_id IS NULL"
        " WHERE k.system_id = %(system)s AND k.family = '' {place}"
        " ORDER BY k.sort_key {way}, k.id {way}"
    ),
}
_PLACES = {
    False: "AND k.family {sign} %(at)s",
    True: "AND (k.sort_key, k.id) {sign} (SELECT sort_key, id FROM traces_task WHERE id = %(at)s)",
}
_NAME = "coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, '')"

# The parts are texts from here; what was asked for comes in as values.
_ROWS = f"""
WITH units AS ({{units}} LIMIT %(n)s)
SELECT u.name, u.task_id, u.task, u.splits, u.n_tasks, u.n_trials,
       coalesce(x.n, 0), c.reason, c.by_name, c.at, x.reason, x.by_name, x.at, x.trial, x.label,
       coalesce(u.task_id::text, u.name)
FROM units u
LEFT JOIN LATERAL (
    SELECT s.reason, {_NAME} AS by_name, s.changed_at AS at
    FROM traces_splitchange s LEFT JOIN traces_user p ON p.id = s.by_id
    WHERE s.system_id = %(system)s AND CASE WHEN u.task_id IS NULL THEN s.family = u.name
          ELSE s.task_id = u.task_id END
    ORDER BY s.id DESC LIMIT 1
) c ON true
LEFT JOIN LATERAL (
    SELECT e.reason, {_NAME} AS by_name, e.noted_at AS at, t.uuid AS trial, t.label,
           count(*) OVER () AS n
    FROM traces_heldoutexposure e
    JOIN traces_task k ON k.id = e.task_id JOIN traces_user p ON p.id = e.by_id
    LEFT JOIN traces_trial t ON t.id = e.trial_id
    WHERE e.system_id = %(system)s AND CASE WHEN u.task_id IS NULL THEN k.family = u.name
          ELSE k.id = u.task_id END
    ORDER BY e.id DESC LIMIT 1
) x ON true
ORDER BY u.sort, u.task_id
"""  # noqa: S608


def family_rows(
    system_pk: int,
    *,
    lone: bool = False,
    after: str | None = None,
    before: str | None = None,
    n: int = PAGE_FAMILIES,
) -> FamilyPage:
    """One page of families by name, or of tasks without a family (`lone`), in one query.

    `after` and `before` are names of families, or ids of tasks in digits.
    """
    backward = before is not None
    at = after if before is None else before
    sign, way = ("<", "DESC") if backward else (">", "ASC")
    place = "" if at is None else _PLACES[lone].format(sign=sign)
    query = _ROWS.format(units=_UNITS[lone].format(place=place, way=way))
    with connection.cursor() as cursor:
        cursor.execute(query, {"system": system_pk, "at": at, "n": n + 1})
        found = cursor.fetchall()
    has_more = len(found) > n
    if has_more:
        found = found[1:] if backward else found[:n]
    has_next, has_previous = (True, has_more) if backward else (has_more, at is not None)
    return FamilyPage(
        rows=tuple(_row(row) for row in found),
        next_after=found[-1][-1] if found and has_next else None,
        previous_before=found[0][-1] if found and has_previous else None,
    )


def _row(row: tuple[Any, ...]) -> FamilyRow:
    change = None if row[7] is None else Happened(*row[7:10])
    exposure = None if row[10] is None else _exposure(row[10:15])
    return FamilyRow(
        name=row[0],
        task_pk=row[1],
        task_uuid=row[2],
        splits=tuple(row[3]),
        n_tasks=row[4],
        n_trials=int(row[5]),
        n_exposed=row[6],
        change=change,
        exposure=exposure,
    )


def _exposure(parts: tuple[Any, ...]) -> Happened:
    reason, by_name, at, trial_uuid, label = parts
    return Happened(reason, by_name, at, trial_uuid, label or "")


def family_totals(system_pk: int) -> FamilyTotals:
    """How many families and tasks without one there are, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(DISTINCT family) FILTER (WHERE family <> ''),"
            " count(*) FILTER (WHERE family = '') FROM traces_task WHERE system_id = %s",
            [system_pk],
        )
        return FamilyTotals(*cursor.fetchone())


def splits_of_family(system_pk: int, family: str) -> tuple[str, ...]:
    """The splits that a family's tasks are in; empty for a family without tasks. One query."""
    rows = Task.objects.filter(system=system_pk, family=family).values_list("split", flat=True)
    return tuple(rows.distinct().order_by("split")) if family else ()


@dataclass(frozen=True, slots=True)
class RegressionOffer:
    """A family, or a task without one, that passed in every trial of the last two releases."""

    name: str
    task_uuid: uuid.UUID | None  # None: a family
    splits: tuple[str, ...]
    n_tasks: int
    n_trials: int  # of both releases
    fewest: int  # trials of one task in one release


@dataclass(frozen=True, slots=True)
class RegressionOffers:
    """What could go into the regression split, and the releases that say so, newest first."""

    releases: tuple[tuple[uuid.UUID, str], ...]  # fewer than two: nothing can be offered
    offers: tuple[RegressionOffer, ...]  # the first ones
    n_more: int


_LAST = """
SELECT r.id, r.uuid, r.name FROM traces_release r
WHERE r.system_id = %(system)s AND NOT r.is_unversioned
  AND EXISTS (SELECT 1 FROM traces_taskfigures f WHERE f.release_id = r.id AND f.n_run > 0)
ORDER BY r.id DESC LIMIT %(releases)s
"""
_OFFERS = """
WITH tried AS (
    SELECT k.id, k.uuid, k.task_id, k.family, k.split, k.sort_key,
           sum(f.n_run) AS n_run, min(f.n_run) AS fewest,
           count(f.id) = cardinality(%(last)s::bigint[]) AND bool_and(
               f.n_run >= %(fewest)s AND f.n_pass = f.n_run AND f.n_missing = 0) AS passed
    FROM traces_task k
    LEFT JOIN traces_taskfigures f ON f.task_id = k.id AND f.release_id = ANY(%(last)s)
    WHERE k.system_id = %(system)s
    GROUP BY k.id
), units AS (
    SELECT coalesce(nullif(family, ''), min(task_id)) AS name,
           CASE WHEN family = '' THEN min(uuid::text)::uuid END AS task,
           array_agg(DISTINCT split ORDER BY split) AS splits, count(*) AS n_tasks,
           sum(n_run) AS n_trials, min(fewest) AS fewest, min(sort_key) AS sort_key
    FROM tried
    GROUP BY family, CASE WHEN family = '' THEN id END
    HAVING bool_and(passed) AND bool_or(split <> 'regression')
)
SELECT name, task, splits, n_tasks, n_trials, fewest, count(*) OVER () FROM units
ORDER BY task IS NOT NULL, sort_key, name LIMIT %(n)s
"""


def regression_offers(system_pk: int, *, n: int = LISTED_OFFERS) -> RegressionOffers:
    """What passed in all slots of the last two releases, at least three a task and release.

    A family is offered as a whole or not at all. Two queries.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LAST, {"system": system_pk, "releases": RELEASES_LOOKED_AT})
        last = cursor.fetchall()
        if len(last) < RELEASES_LOOKED_AT:
            return RegressionOffers(tuple(row[1:] for row in last), (), 0)
        values: dict[str, Any] = {
            "system": system_pk,
            "last": [row[0] for row in last],
            "fewest": FEWEST_TRIALS,
            "n": n,
        }
        cursor.execute(_OFFERS, values)
        found = cursor.fetchall()
    offers = tuple(
        RegressionOffer(name, task, tuple(splits), n_tasks, int(n_trials), fewest)
        for name, task, splits, n_tasks, n_trials, fewest, _ in found
    )
    n_all = found[0][-1] if found else 0
    return RegressionOffers(tuple(row[1:] for row in last), offers, n_all - len(offers))


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """Where a task comes from, and whether it is still unseen."""

    origin_uuid: uuid.UUID | None  # the trial that it was made from
    origin_label: str
    origin_task: str
    made_by: str
    made_at: datetime | None
    n_exposed: int
    exposure: Happened | None  # the newest


_HISTORY = f"""
SELECT t.uuid, t.label, k.task_id, {_NAME}, o.made_at, coalesce(x.n, 0), x.reason, x.by_name, x.at,
       x.trial, x.label
FROM (SELECT %(task)s::bigint AS id) w
LEFT JOIN traces_taskorigin o ON o.task_id = w.id
LEFT JOIN traces_trial t ON t.id = o.trial_id
LEFT JOIN traces_task k ON k.id = t.task_id
LEFT JOIN traces_user p ON p.id = o.by_id
LEFT JOIN LATERAL (
    SELECT e.reason, coalesce(nullif(trim(q.first_name || ' ' || q.last_name), ''), q.username)
               AS by_name, e.noted_at AS at, s.uuid AS trial, s.label, count(*) OVER () AS n
    FROM traces_heldoutexposure e JOIN traces_user q ON q.id = e.by_id
    LEFT JOIN traces_trial s ON s.id = e.trial_id
    WHERE e.task_id = w.id ORDER BY e.id DESC LIMIT 1
) x ON true
"""  # noqa: S608


def task_history(task_pk: int) -> TaskHistory:
    """The origin and the exposures of a task, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_HISTORY, {"task": task_pk})
        row = cursor.fetchone()
    exposure = None if row[6] is None else _exposure(row[6:11])
    return TaskHistory(row[0], row[1] or "", row[2] or "", row[3], row[4], row[5], exposure)


@dataclass(frozen=True, slots=True)
class MadeTask:
    """A task that was made from a trial."""

    uuid: uuid.UUID
    task_id: str
    split: str


def tasks_made_from(trial_pk: int) -> tuple[MadeTask, ...]:
    """The tasks that were made from a trial, oldest first, in one query."""
    rows = Task.objects.filter(origin__trial=trial_pk).order_by("pk")
    return tuple(MadeTask(*row) for row in rows.values_list("uuid", "task_id", "split"))
