"""What pages read: written by `evalsite.pipeline` alone, rebuilt by `manage.py rebuild`.

A projection is never evidence.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from traces.core.records import Disposition
from traces.models.contracts import ContractVersion
from traces.models.rules import RulesVersion
from traces.models.trials import Trial
from traces.models.work import Release, Task, TaskVersion


class TrialDisposition(models.Model):
    """What a trial comes to on the verdicts so far."""

    trial = models.OneToOneField(
        Trial, on_delete=models.PROTECT, primary_key=True, related_name="disposition"
    )
    value = models.CharField(max_length=16)
    failed_classes = ArrayField(models.CharField(max_length=16))
    next_actions = ArrayField(models.CharField(max_length=24))  # the first one is shown
    stands = models.BooleanField()  # the last attempt stands for its slot
    contract = models.ForeignKey(
        ContractVersion, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )  # that it was decided by; null: none is in effect
    # What single figures count of the trial: pass, fail or unknown; "" where the contract requires
    # nothing of the kind. Rule-clean is outcome and every constraint.
    outcome = models.CharField(max_length=8, db_default="")
    rule_clean = models.CharField(max_length=8, db_default="")
    # Criteria by their standing, mandatory or not, in the order of the contract.
    passed = ArrayField(models.CharField(max_length=512), db_default=[])
    failed = ArrayField(models.CharField(max_length=512), db_default=[])
    open = ArrayField(models.CharField(max_length=512), db_default=[])
    harms_attempted = ArrayField(models.CharField(max_length=200), db_default=[])
    harms_committed = ArrayField(models.CharField(max_length=200), db_default=[])
    n_required = models.PositiveIntegerField(db_default=0)
    n_reached = models.PositiveIntegerField(db_default=0)  # of these, whatever came of the trial
    algorithm = models.SmallIntegerField()
    decided_at = models.DateTimeField()

    class Meta:
        constraints = [
            one_of("value", Disposition, name="trial_disposition_known"),
            models.CheckConstraint(
                condition=Q(outcome__in=["", "pass", "fail", "unknown"])
                & Q(rule_clean__in=["", "pass", "fail", "unknown"]),
                name="trial_disposition_figures_known",
            ),
        ]

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


class TrialFixture(models.Model):
    """The initial state of a trial under a contract, so that a task has one and no more.

    Trials of one task version with the same trial facts start from the same state; where they do
    not, none of them says anything about the agent.
    """

    trial = models.OneToOneField(
        Trial, on_delete=models.PROTECT, primary_key=True, related_name="fixture"
    )
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="+", db_index=False)
    task_version = models.ForeignKey(
        TaskVersion, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    facts = models.UUIDField()  # digest of the facts that the trial brings
    state = models.UUIDField()  # digest of its initial state

    class Meta:
        indexes = [
            models.Index(fields=["task", "task_version", "facts"], name="trial_fixture_group")
        ]

    def __str__(self) -> str:
        return f"fixture of {self.trial_id}"
