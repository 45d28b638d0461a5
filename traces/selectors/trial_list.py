"""Trials as lists show them, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from traces.core.records import Disposition
from traces.selectors.paths import KEY_NAMES

PAGE_TRIALS = 100


@dataclass(frozen=True, slots=True)
class TrialFilter:
    """Which trials of a system. What is None, () or "" leaves a choice open."""

    system_id: int
    task_pk: int | None = None
    version_pk: int | None = None
    release_pks: tuple[int, ...] = ()
    run_pk: int | None = None
    upload_pk: int | None = None
    disposition: Disposition | None = None
    words: str = ""  # a trial's address, number or name, or the id that its source gave


@dataclass(frozen=True, slots=True)
class ListedTrial:
    """A trial in a list."""

    pk: int
    uuid: UUID
    label: str
    attempt: int
    status: str
    error: str
    n_messages: int
    n_tool_calls: int
    n_rejected: int
    cost_usd: Decimal | None
    seconds: Decimal | None
    started_at: datetime | None
    disposition: Disposition
    failed_classes: tuple[str, ...]
    next_actions: tuple[str, ...]
    stands: bool
    task_uuid: UUID
    task_id: str
    release_uuid: UUID
    release_name: str
    run_uuid: UUID
    run_name: str
    path_key: UUID | None


@dataclass(frozen=True, slots=True)
class TrialPage:
    """One page of trials, with the places of its neighbours."""

    rows: tuple[ListedTrial, ...]
    next_after: int | None
    previous_before: int | None


_COLUMNS = """
SELECT t.id, t.uuid, t.label, t.attempt, t.status, left(t.error, 300), t.n_messages,
       t.n_tool_calls, t.n_rejected, t.cost_usd, t.seconds, t.started_at,
       coalesce(d.value, 'unresolved'), coalesce(d.failed_classes, '{{}}'),
       coalesce(d.next_actions, '{{}}'), coalesce(d.stands, true),
       k.uuid, k.task_id, r.uuid, r.name, u.uuid, u.name, {key}
FROM traces_trial t
LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id
JOIN traces_task k ON k.id = t.task_id
JOIN traces_release r ON r.id = t.release_id
JOIN traces_run u ON u.id = t.run_id
{paths}
WHERE {where}
ORDER BY t.id {way} LIMIT %(n)s
"""
_PATHS = (
    "LEFT JOIN traces_trajectorypaths p"
    " ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s"
)


def listed_trials(
    chosen: TrialFilter,
    *,
    newest_first: bool = False,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_TRIALS,
    path_key: str = "",
    rules_pk: int | None = None,
) -> TrialPage:
    """One page of trials in the order in which they came, in one query.

    `after` (or `before`) is the trial that the page follows (or precedes). With `path_key`, one
    of `KEY_NAMES`, each row has its path under the rules.
    """
    if path_key and path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {path_key}")
    backward = before is not None
    place = after if before is None else before
    descending = newest_first != backward
    where, values = _where(chosen)
    if place is not None:
        where.append(f"t.id {'<' if descending else '>'} %(place)s")
    query = _COLUMNS.format(
        key=f"p.{path_key}" if path_key else "NULL",
        paths=_PATHS if path_key else "",
        where=" AND ".join(where),
        way="DESC" if descending else "ASC",
    )
    with connection.cursor() as cursor:
        cursor.execute(query, {**values, "place": place, "n": n + 1, "rules": rules_pk})
        found = [_listed(row) for row in cursor.fetchall()]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return TrialPage(
        rows=rows,
        next_after=rows[-1].pk if rows and has_next else None,
        previous_before=rows[0].pk if rows and has_previous else None,
    )


def _listed(row: tuple[Any, ...]) -> ListedTrial:
    disposition, failed, actions = row[12:15]
    decided = (Disposition(disposition), tuple(failed), tuple(actions))
    return ListedTrial(*[*row[:12], *decided, *row[15:]])


def _where(chosen: TrialFilter) -> tuple[list[str], dict[str, Any]]:
    """Conditions that are asked for, so that the database can choose the index that fits."""
    where = ["t.system_id = %(system)s"]
    values: dict[str, Any] = {"system": chosen.system_id}

    def add(condition: str, name: str, value: Any) -> None:
        if value not in (None, "", ()):
            where.append(condition)
            values[name] = list(value) if isinstance(value, tuple) else value

    add("t.task_id = %(task)s", "task", chosen.task_pk)
    add("t.task_version_id = %(version)s", "version", chosen.version_pk)
    add("t.release_id = ANY(%(releases)s)", "releases", chosen.release_pks)
    add("t.run_id = %(run)s", "run", chosen.run_pk)
    add("t.upload_id = %(upload)s", "upload", chosen.upload_pk)
    add("d.value = %(value)s", "value", chosen.disposition and chosen.disposition.value)
    if identity := _uuid_of(chosen.words):
        add("(t.uuid = %(uuid)s OR t.external_id = %(words)s)", "uuid", identity)
        values["words"] = chosen.words
    else:
        add("(t.label = %(words)s OR t.external_id = %(words)s)", "words", chosen.words)
    return where, values


def _uuid_of(words: str) -> UUID | None:
    try:
        return UUID(words)
    except ValueError:
        return None
