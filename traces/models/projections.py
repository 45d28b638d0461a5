"""What pages read: written by `evalsite.pipeline` alone, rebuilt by `manage.py rebuild`.

A projection is never evidence.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from evalsite.common.fields import one_of
from traces.core.records import Disposition
from traces.models.rules import RulesVersion
from traces.models.trials import Trial
from traces.models.work import Release, Task


class TrialDisposition(models.Model):
    """What a trial comes to on the verdicts so far."""

    trial = models.OneToOneField(
        Trial, on_delete=models.PROTECT, primary_key=True, related_name="disposition"
    )
    value = models.CharField(max_length=16)
    failed_classes = ArrayField(models.CharField(max_length=16))
    next_actions = ArrayField(models.CharField(max_length=24))  # the first one is shown
    stands = models.BooleanField()  # the last attempt stands for its slot
    algorithm = models.SmallIntegerField()
    decided_at = models.DateTimeField()

    class Meta:
        constraints = [one_of("value", Disposition, name="trial_disposition_known")]

    def __str__(self) -> str:
        return self.value


class TaskFigures(models.Model):
    """Counts of one task over the slots of one release, or of all releases (`release` null).

    Production traces and trials with an injected fault stand in `n_left_out` and in no other
    count. `n_paths` holds the number of distinct passing paths, one entry for each of
    `traces.selectors.paths.KEY_NAMES`, under `rules`.
    """

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="figures")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, null=True, related_name="+")
    rules = models.ForeignKey(
        RulesVersion, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    n_run = models.PositiveIntegerField()
    n_pass = models.PositiveIntegerField()
    n_fail = models.PositiveIntegerField()
    n_unresolved = models.PositiveIntegerField()
    n_error = models.PositiveIntegerField()
    n_left_out = models.PositiveIntegerField()
    n_missing = models.PositiveIntegerField(default=0)  # declared, and nothing came
    n_paths = ArrayField(models.IntegerField())
    computed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["task", "release"], name="task_figures_once", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"figures of {self.task_id}"
