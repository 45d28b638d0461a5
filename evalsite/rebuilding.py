"""Projections made anew from evidence: path keys, dispositions and figures."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsite.projections import decide_trials, refresh_figures
from traces.models import System, Task, TaskFigures, TrajectoryPaths, Trial
from traces.selectors.rules import rules_of, shown_rules
from traces.selectors.trajectories import (
    StoredSteps,
    stored_calls,
    stored_steps,
    trajectory_with_steps,
)
from traces.services.trajectories import write_paths
from traces.services.trials import ingest_locks

BATCH = 2_000


def rebuild(system: System, *, say: Callable[[str], None]) -> None:
    """Make every projection of a system anew. Uploads of the system wait meanwhile.

    One transaction, so that pages show the old figures until the new ones are whole.
    """
    with transaction.atomic():
        ingest_locks(system, system.releases.all())
        n_paths = _rebuild_paths(system)
        say(f"{n_paths:,} trajectories have their path keys")
        n_trials = 0
        for trial_ids in _batches(Trial.objects.filter(task__system=system)):
            decide_trials(trial_ids, now=timezone.now())
            n_trials += len(trial_ids)
        say(f"{n_trials:,} trials have their dispositions")
        tasks = list(Task.objects.filter(system=system).values_list("pk", flat=True))
        TaskFigures.objects.filter(task__in=tasks).delete()
        refresh_figures(system, tasks)
        say(f"{len(tasks):,} tasks have their figures")


def _batches(trials: QuerySet[Trial]) -> Iterator[list[int]]:
    after = 0
    while ids := list(
        trials.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:BATCH]
    ):
        after = ids[-1]
        yield ids


_TRAJECTORIES = """
SELECT j.id, k.task_id,
       CASE WHEN NOT j.is_comparable THEN
           (SELECT t.digest FROM traces_trial t
            WHERE t.task_id = j.task_id AND t.trajectory_id = j.id ORDER BY t.id LIMIT 1) END
FROM traces_trajectory j JOIN traces_task k ON k.id = j.task_id
WHERE k.system_id = %s AND j.id > %s ORDER BY j.id LIMIT %s
"""


def _rebuild_paths(system: System) -> int:
    version, rules = shown_rules(system), rules_of(system)
    TrajectoryPaths.objects.filter(rules=version).delete()
    after, n_paths = 0, 0
    while rows := _rows_after(system, after):
        after = rows[-1][0]
        steps = stored_steps(pk for pk, _, _ in rows)
        calls = stored_calls(call for one in steps.values() for call in one.calls)
        write_paths(
            version.pk,
            rules,
            (
                (
                    pk,
                    trajectory_with_steps(steps[pk], calls, _numbers(steps[pk])),
                    task_id,
                    own.bytes if own else b"",
                )
                for pk, task_id, own in rows
            ),
        )
        n_paths += len(rows)
    return n_paths


def _rows_after(system: System, after: int) -> list[tuple[int, str, uuid.UUID | None]]:
    with connection.cursor() as cursor:
        cursor.execute(_TRAJECTORIES, [system.pk, after, BATCH])
        rows: list[tuple[int, str, uuid.UUID | None]] = cursor.fetchall()
        return rows


def _numbers(steps: StoredSteps) -> range:
    """Step numbers that keep apart what stood in different messages: keys ask no more of them."""
    return range(1, len(steps.groups) + 1)
