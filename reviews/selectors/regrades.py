"""Regrades of a system as their pages show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from reviews.core.regrades import RegradeResult, parse_regrade
from traces.models import System, Task, WorkState

PAGE = 50
NAMED_TASKS = 3


@dataclass(frozen=True, slots=True)
class RegradeRow:
    """A regrade with who asked for it and how far it is."""

    pk: int
    number: int
    state: WorkState
    proposal: int | None  # its number; None: asked for by a person, under the versions in effect
    tasks: tuple[str, ...]  # ids of the first tasks
    n_tasks: int
    n_tasks_done: int
    n_done: int  # trials, see `Regrade`
    n_total: int | None
    n_verdicts: int
    reason: str
    by_name: str  # "" for the operator
    failure: str
    asked_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancelled_by: str
    result: RegradeResult

    @property
    def is_open(self) -> bool:
        """Whether a worker has still to do with it."""
        return self.state in (WorkState.WAITING, WorkState.WORKING)


_ROWS = """
SELECT r.id, r.number, r.state, p.number,
       (SELECT array_agg(k.task_id ORDER BY w.place) FROM unnest(r.tasks[1:{named}])
        WITH ORDINALITY AS w(id, place) JOIN traces_task k ON k.id = w.id),
       cardinality(r.tasks), r.n_tasks_done, r.n_done, r.n_total, r.n_verdicts,
       coalesce(p.reason, r.reason),
       coalesce(nullif(trim(u.first_name || ' ' || u.last_name), ''), u.username, ''),
       r.failure, r.asked_at, r.started_at, r.finished_at,
       coalesce(nullif(trim(c.first_name || ' ' || c.last_name), ''), c.username, ''),
       r.result
FROM reviews_regrade r
LEFT JOIN traces_contractproposal p ON p.id = r.proposal_id
LEFT JOIN traces_user u ON u.id = r.by_id
LEFT JOIN traces_user c ON c.id = r.cancelled_by_id
WHERE r.system_id = %s AND {where} ORDER BY r.number DESC LIMIT %s
"""


def regrade_rows(system: System, *, before: int | None = None) -> tuple[RegradeRow, ...]:
    """Regrades, newest first, one more than a page shows; `before` is the number of the last one."""
    where = "(%s::int IS NULL OR r.number < %s)"
    return _rows(where, [system.pk, before, before, PAGE + 1])


def regrade_row(system: System, number: int) -> RegradeRow | None:
    """One regrade of a system."""
    found = _rows("r.number = %s", [system.pk, number, 1])
    return found[0] if found else None


def _rows(where: str, parameters: list[int | None]) -> tuple[RegradeRow, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_ROWS.format(where=where, named=NAMED_TASKS), parameters)
        return tuple(_row(*row) for row in cursor.fetchall())


def _row(pk: int, number: int, state: str, proposal: int | None, *others: object) -> RegradeRow:
    tasks, *middle, stored = others
    names = tuple(tasks) if isinstance(tasks, list) else ()
    result = parse_regrade(json.loads(stored) if isinstance(stored, str) else None)
    return RegradeRow(pk, number, WorkState(state), proposal, names, *middle, result)  # type: ignore[arg-type,call-arg]


def tasks_by_id(system: System, task_ids: set[str]) -> Mapping[str, UUID]:
    """The addresses of tasks by their ids."""
    rows = Task.objects.filter(system=system, task_id__in=task_ids)
    return dict(rows.values_list("task_id", "uuid"))
