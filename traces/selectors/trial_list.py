"""Trials as lists show them, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection

from traces.core.records import Disposition
from traces.selectors.paths import KEY_NAMES

PAGE_TRIALS = 100


class TrialScope(StrEnum):
    """Which trials a figure is about. Earlier attempts stand in no figure."""

    FIGURES = "figures"  # of the test environment, without an injected fault, of no tuning task
    TUNING = "tuning"  # the same of tuning tasks alone
    FAULT = "fault"  # with an injected fault
    PRODUCTION = "production"


class TrialEnding(StrEnum):
    """How a trial ended, beside what it comes to."""

    HANDED_OVER = "handed_over"
    NO_CHANGE = "no_change"  # no committed write


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
    scope: TrialScope | None = None
    family: str | None = None
    split: str | None = None  # "" for tasks without one
    environment: str = ""
    failed: str = ""  # a requirement
    still_open: str = ""  # a requirement
    failed_class: str = ""
    harm: str = ""
    any_harm: bool = False
    outcome: str = ""  # pass | fail | unknown
    rule_clean: str = ""  # pass | fail | unknown
    action: str = ""  # a next action
    ending: TrialEnding | None = None


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
    add("t.environment = %(environment)s", "environment", chosen.environment)
    add("d.failed @> ARRAY[%(failed)s]::varchar[]", "failed", chosen.failed)
    add("d.open @> ARRAY[%(still_open)s]::varchar[]", "still_open", chosen.still_open)
    add("d.failed_classes @> ARRAY[%(class)s]::varchar[]", "class", chosen.failed_class)
    add("d.harms_attempted @> ARRAY[%(harm)s]::varchar[]", "harm", chosen.harm)
    add("d.outcome = %(outcome)s", "outcome", chosen.outcome)
    add("d.rule_clean = %(clean)s", "clean", chosen.rule_clean)
    add("d.next_actions @> ARRAY[%(action)s]::varchar[]", "action", chosen.action)
    if chosen.family is not None:
        where.append("k.family = %(family)s")
        values["family"] = chosen.family
    if chosen.split is not None:
        where.append("k.split = %(split)s")
        values["split"] = chosen.split
    if chosen.any_harm:
        where.append("d.harms_attempted <> '{}'")
    if chosen.scope:
        where.append(_SCOPES[chosen.scope])
    if chosen.ending:
        where.append(_ENDINGS[chosen.ending])
    if identity := _uuid_of(chosen.words):
        add("(t.uuid = %(uuid)s OR t.external_id = %(words)s)", "uuid", identity)
        values["words"] = chosen.words
    else:
        add("(t.label = %(words)s OR t.external_id = %(words)s)", "words", chosen.words)
    return where, values


_TESTED = "d.stands AND t.environment = 'test' AND NOT t.has_fault"
_SCOPES = {
    TrialScope.FIGURES: f"{_TESTED} AND k.split <> 'tuning'",
    TrialScope.TUNING: f"{_TESTED} AND k.split = 'tuning'",
    TrialScope.FAULT: "d.stands AND t.environment = 'test' AND t.has_fault AND k.split <> 'tuning'",
    TrialScope.PRODUCTION: "d.stands AND t.environment <> 'test'",
}
_ENDED = (
    "d.value <> 'harness_error' AND EXISTS (SELECT 1 FROM traces_trajectorypaths w"
    " JOIN traces_system y ON y.id = t.system_id AND y.shown_rules_id = w.rules_id"
    " WHERE w.trajectory_id = t.trajectory_id AND {counted})"
)
_ENDINGS = {
    TrialEnding.HANDED_OVER: _ENDED.format(counted="w.n_handoffs > 0"),
    TrialEnding.NO_CHANGE: _ENDED.format(counted="w.n_writes = 0"),
}


def _uuid_of(words: str) -> UUID | None:
    try:
        return UUID(words)
    except ValueError:
        return None
