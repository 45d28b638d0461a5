"""The tasks of a system with their figures, a page at a time."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.db import connection

from traces.selectors.paths import KEY_NAMES

PAGE_TASKS = 200


class TaskOrder(StrEnum):
    """By what the table of tasks is sorted; ties by task id."""

    TASK = "task"
    FAMILY = "family"
    SPLIT = "split"
    RATE = "rate"
    PASSED = "passed"
    FAILED = "failed"
    UNRESOLVED = "unresolved"
    HARNESS_ERRORS = "errors"
    RUN = "run"
    PATHS = "paths"


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """Which tasks, and the trials of which release. None and "" leave a choice open."""

    system_id: int
    release_id: int | None = None
    family: str = ""
    split: str = ""  # one of `Split`, "none" for tasks without one
    words: str = ""  # looked for in task id and title, letter case aside


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task with its figures over the chosen trials."""

    pk: int
    uuid: uuid.UUID
    task_id: str
    title: str
    family: str
    split: str
    n_run: int
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_error: int
    n_left_out: int
    n_paths: int  # distinct passing paths at the chosen level

    @property
    def n_graded(self) -> int:
        """Trials that passed or failed."""
        return self.n_pass + self.n_fail


@dataclass(frozen=True, slots=True)
class TaskPage:
    """One page of tasks. `next_after` and `previous_before` are places for the neighbours."""

    rows: tuple[TaskRow, ...]
    next_after: int | None
    previous_before: int | None


@dataclass(frozen=True, slots=True)
class CountedTasks:
    """How many tasks have so many passed and graded trials: enough for every estimate."""

    n_pass: int
    n_graded: int
    n_tasks: int


@dataclass(frozen=True, slots=True)
class TaskTotals:
    """Sums over every task of a filter, with production traces and faults left out."""

    n_tasks: int
    n_run: int
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_error: int
    n_left_out: int
    n_paths: int
    n_tasks_tuning: int  # tasks of split `tuning`, which stand in no other count here
    by_counts: tuple[CountedTasks, ...]

    @property
    def n_graded(self) -> int:
        """Trials that passed or failed."""
        return self.n_pass + self.n_fail


# `{paths}` is a position in the array of path counts: never text from outside.
_ROWS = """
SELECT t.id, t.uuid, t.task_id, t.title, t.family, t.split, t.sort_key,
       coalesce(f.n_run, 0) AS n_run, coalesce(f.n_pass, 0) AS n_pass,
       coalesce(f.n_fail, 0) AS n_fail, coalesce(f.n_unresolved, 0) AS n_unresolved,
       coalesce(f.n_error, 0) AS n_error, coalesce(f.n_left_out, 0) AS n_left_out,
       coalesce(f.n_paths[{paths}], 0) AS n_paths
FROM traces_task t
LEFT JOIN traces_taskfigures f
  ON f.task_id = t.id AND f.release_id IS NOT DISTINCT FROM %(release)s
WHERE t.system_id = %(system)s
  AND (%(family)s = '' OR t.family = %(family)s)
  AND (%(split)s = '' OR t.split = %(stored_split)s)
  AND (%(words)s = '' OR t.task_id ILIKE %(like)s OR t.title ILIKE %(like)s)
"""

_KEYS = {
    TaskOrder.TASK: "''",
    TaskOrder.FAMILY: "family",
    TaskOrder.SPLIT: "split",
    TaskOrder.RATE: "coalesce(n_pass::float / nullif(n_pass + n_fail, 0), -1)",
    TaskOrder.PASSED: "n_pass",
    TaskOrder.FAILED: "n_fail",
    TaskOrder.UNRESOLVED: "n_unresolved",
    TaskOrder.HARNESS_ERRORS: "n_error",
    TaskOrder.RUN: "n_run",
    TaskOrder.PATHS: "n_paths",
}


def _values(chosen: TaskFilter) -> dict[str, Any]:
    return {
        "system": chosen.system_id,
        "release": chosen.release_id,
        "family": chosen.family,
        "split": chosen.split,
        "stored_split": "" if chosen.split == "none" else chosen.split,
        "words": chosen.words,
        "like": f"%{_escaped(chosen.words)}%",
    }


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def task_rows(
    chosen: TaskFilter,
    *,
    path_key: str,
    order: TaskOrder = TaskOrder.TASK,
    descending: bool = False,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_TASKS,
) -> TaskPage:
    """One page of tasks with figures, in one query.

    `path_key` is one of `KEY_NAMES`. `after` (or `before`) is the task that the page follows (or
    precedes) in the order; the page goes on from where that task stands now.
    """
    backward = before is not None
    key, place = _KEYS[order], after if before is None else before
    way = "DESC" if descending != backward else "ASC"
    sign = "<" if descending != backward else ">"
    rows_sql = _ROWS.format(paths=KEY_NAMES.index(path_key) + 1)
    query = (
        f"WITH r AS (SELECT x.*, {key} AS k FROM ({rows_sql}) x)"  # noqa: S608 - from tables here
        " SELECT id, uuid, task_id, title, family, split, n_run, n_pass, n_fail, n_unresolved,"
        " n_error, n_left_out, n_paths FROM r"
        " WHERE %(place)s::bigint IS NULL OR (k, sort_key, id) "
        f"{sign} (SELECT k, sort_key, id FROM r WHERE id = %(place)s)"
        f" ORDER BY k {way}, sort_key {way}, id {way} LIMIT %(n)s"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, {**_values(chosen), "place": place, "n": n + 1})
        found = [TaskRow(*row) for row in cursor.fetchall()]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return TaskPage(
        rows=rows,
        next_after=rows[-1].pk if rows and has_next else None,
        previous_before=rows[0].pk if rows and has_previous else None,
    )


_TOTALS = """
SELECT n_pass, n_pass + n_fail, split = 'tuning', count(*), sum(n_run), sum(n_fail),
       sum(n_unresolved), sum(n_error), sum(n_left_out), sum(n_paths)
FROM ({rows}) r GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


def task_totals(chosen: TaskFilter, *, path_key: str) -> TaskTotals:
    """Sums over every task of the filter, in one query.

    Tasks of split `tuning` are left out unless the filter asks for that split.
    """
    rows_sql = _ROWS.format(paths=KEY_NAMES.index(path_key) + 1)
    with connection.cursor() as cursor:
        cursor.execute(_TOTALS.format(rows=rows_sql), _values(chosen))
        found = cursor.fetchall()
    asked = chosen.split == "tuning"
    counted = [row for row in found if asked or not row[2]]
    sums = [int(sum(row[at] for row in counted)) for at in range(3, 10)]
    n_tasks, n_run, n_fail, n_unresolved, n_error, n_left_out, n_paths = sums
    return TaskTotals(
        n_tasks=n_tasks,
        n_run=n_run,
        n_pass=sum(row[0] * row[3] for row in counted),
        n_fail=n_fail,
        n_unresolved=n_unresolved,
        n_error=n_error,
        n_left_out=n_left_out,
        n_paths=n_paths,
        n_tasks_tuning=0 if asked else sum(row[3] for row in found if row[2]),
        by_counts=tuple(CountedTasks(row[0], row[1], row[3]) for row in counted),
    )


@dataclass(frozen=True, slots=True)
class TaskChoices:
    """What the filters of the tasks page offer."""

    families: tuple[str, ...]
    splits: tuple[str, ...]  # "" where tasks have none


def task_choices(system_id: int) -> TaskChoices:
    """The families and splits that the system's tasks have, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT family, split FROM traces_task WHERE system_id = %s", [system_id]
        )
        found = cursor.fetchall()
    return TaskChoices(
        families=tuple(sorted({family for family, _ in found if family})),
        splits=tuple(sorted({split for _, split in found})),
    )
