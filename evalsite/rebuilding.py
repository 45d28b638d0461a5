"""Projections made anew from evidence: path keys, fixtures, dispositions and figures.

Trials that lack gradings under the checks of this version of the product get them first: after a
change of the checks a rebuild grades every trial of a task with a contract again. Cases are no
projection alone, as people work on them: they are kept, and follow the dispositions. Disputes are
worked out anew and keep their addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evalsite.grading import grade_task
from evalsite.projections import decide_trials, refresh_figures
from evalsite.stored_keys import BATCH, KeyMaker, trajectories_after
from traces.models import RulesVersion, System, Task, TaskFigures, TrajectoryPaths, Trial
from traces.selectors.rules import shown_rules_id
from traces.services.trials import ingest_locks


def rebuild(system: System, *, say: Callable[[str], None]) -> None:
    """Make every projection of a system anew. Uploads of the system wait meanwhile.

    One transaction, so that pages show the old figures until the new ones are whole.
    """
    with transaction.atomic():
        ingest_locks(system, system.releases.all())
        n_paths = _rebuild_paths(system)
        say(f"{n_paths:,} trajectories have their path keys")
        for task_pk in Task.objects.filter(system=system, contract__isnull=False).values_list(
            "pk", flat=True
        ):
            grade_task(system, task_pk, now=timezone.now())
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


def _rebuild_paths(system: System) -> int:
    # Read under the lock, under which alone it moves.
    version = RulesVersion.objects.get(pk=shown_rules_id(system))
    TrajectoryPaths.objects.filter(rules=version).delete()
    maker = KeyMaker(version)
    after, n_paths = 0, 0
    while rows := trajectories_after(system.pk, after):
        maker.write(rows)
        after = rows[-1].pk
        n_paths += len(rows)
    return n_paths
