"""Projections made anew from evidence: path keys, dispositions and figures."""

from __future__ import annotations

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
from traces.services.packing import path_columns
from traces.services.trajectories import write_paths
from traces.services.trials import ingest_locks, own_mark

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


# A trajectory that cannot be compared belongs to one trial, whose mark is in its keys.
_TRAJECTORIES = """
SELECT j.id, k.task_id, t.digest, t.run_id, t.label, t.attempt
FROM traces_trajectory j
JOIN traces_task k ON k.id = j.task_id
LEFT JOIN traces_trial t
    ON NOT j.is_comparable AND t.task_id = j.task_id AND t.trajectory_id = j.id
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
            (
                (
                    pk,
                    path_columns(
                        trajectory_with_steps(steps[pk], calls, _numbers(steps[pk])),
                        rules,
                        task_id,
                        own,
                    ),
                )
                for pk, task_id, own in rows
            ),
        )
        n_paths += len(rows)
    return n_paths


def _rows_after(system: System, after: int) -> list[tuple[int, str, bytes]]:
    """Id, task id and own mark of the next trajectories."""
    with connection.cursor() as cursor:
        cursor.execute(_TRAJECTORIES, [system.pk, after, BATCH])
        return [
            (pk, task_id, own_mark(digest.bytes, *trial) if digest else b"")
            for pk, task_id, digest, *trial in cursor.fetchall()
        ]


def _numbers(steps: StoredSteps) -> range:
    """Step numbers that keep apart what stood in different messages: keys ask no more of them."""
    return range(1, len(steps.groups) + 1)
