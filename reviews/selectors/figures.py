"""Figures over the tasks of a system, for `manage.py figures` and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from reviews.core.estimators import (
    Counts,
    SuiteMean,
    TaskCounts,
    mean_pass_at_k,
    mean_pass_hat_k,
)
from traces.models import Release, Split, System


@dataclass(frozen=True, slots=True)
class SystemFigures:
    """The headline figures: over test trials without an injected fault, of no tuning task."""

    tasks: tuple[TaskCounts, ...]
    n_left_out: int  # slots: production, injected fault, or a task of split `tuning`
    pass_hat_k: tuple[SuiteMean, ...]  # the first is for k = 1
    pass_at_k: tuple[SuiteMean, ...]

    @property
    def total(self) -> Counts:
        """Passed / graded / run over all tasks."""
        return sum((task.counts for task in self.tasks), Counts(0, 0, 0))


def system_figures(system: System, releases: Sequence[Release] = ()) -> SystemFigures:
    """The figures of some releases taken together, of the whole system without any."""
    if len(releases) > 1:
        tasks, n_left_out = _counted(system, [release.pk for release in releases])
    else:
        tasks, n_left_out = _projected(system, releases[0].pk if releases else None)
    most = max((task.counts.graded for task in tasks), default=0)
    ks = range(1, most + 1)
    return SystemFigures(
        tasks=tasks,
        n_left_out=n_left_out,
        pass_hat_k=tuple(mean_pass_hat_k(tasks, k) for k in ks),
        pass_at_k=tuple(mean_pass_at_k(tasks, k) for k in ks),
    )


_PROJECTED = """
SELECT k.task_id, k.split, f.n_pass, f.n_pass + f.n_fail, f.n_run, f.n_left_out
FROM traces_taskfigures f JOIN traces_task k ON k.id = f.task_id
WHERE k.system_id = %s AND f.release_id IS NOT DISTINCT FROM %s
ORDER BY k.sort_key, k.task_id
"""

# A slot counts as in evalsite.projections.
_COUNTED = """
SELECT task_id, split, count(*) FILTER (WHERE counted AND value = 'pass'),
       count(*) FILTER (WHERE counted AND value IN ('pass', 'fail')),
       count(*) FILTER (WHERE counted), count(*) FILTER (WHERE NOT counted)
FROM (SELECT k.task_id, k.split, k.sort_key, d.value,
             t.environment = 'test' AND NOT t.has_fault AS counted
      FROM traces_trial t
      JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
      JOIN traces_task k ON k.id = t.task_id
      WHERE k.system_id = %s AND t.release_id = ANY(%s)) slots
GROUP BY task_id, split, sort_key ORDER BY sort_key, task_id
"""


def _projected(system: System, release_id: int | None) -> tuple[tuple[TaskCounts, ...], int]:
    with connection.cursor() as cursor:
        cursor.execute(_PROJECTED, [system.pk, release_id])
        return _without_tuning(cursor.fetchall())


def _counted(system: System, release_ids: list[int]) -> tuple[tuple[TaskCounts, ...], int]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED, [system.pk, release_ids])
        return _without_tuning(cursor.fetchall())


def _without_tuning(
    rows: Sequence[tuple[str, str, int, int, int, int]],
) -> tuple[tuple[TaskCounts, ...], int]:
    tasks: list[TaskCounts] = []
    n_left_out = 0
    for task, split, n_pass, n_graded, n_run, n_apart in rows:
        if split == Split.TUNING.value:
            n_left_out += n_run + n_apart
        else:
            n_left_out += n_apart
            if n_run:
                tasks.append(TaskCounts(task, Counts(n_pass, n_graded, n_run)))
    return tuple(tasks), n_left_out
