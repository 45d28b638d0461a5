"""Accepted paths: which ways of passing a task people have looked at and hold to be valid."""

from __future__ import annotations

import uuid

from django.db import models

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.core.paths import PathLevel
from traces.models import RulesVersion, Task, Trajectory, Trial, User


class AcceptedPath(models.Model):
    """A path that an engineer accepted for a task, at one level, with the reason.

    `trajectory` is its representative: under a later version of the rules the path is the class
    of that trajectory. It covers every trial on the path, and so every finer path inside it. Two
    accepted paths that later rules merge are shown as one, with both names.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, db_index=False, related_name="+")
    number = models.PositiveIntegerField()  # its name in the task
    level = models.CharField(max_length=16)
    messages = models.BooleanField()  # agent messages count as steps
    trajectory = models.ForeignKey(Trajectory, on_delete=models.PROTECT, related_name="+")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="+")  # that showed it
    rules = models.ForeignKey(
        RulesVersion, on_delete=models.PROTECT, db_index=False, related_name="+"
    )  # in force when it was accepted
    key = models.UUIDField()  # its key under these rules
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    accepted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "number"], name="accepted_path_number"),
            one_of("level", PathLevel, name="accepted_path_level_known"),
        ]
        triggers = append_only("an accepted path")

    def __str__(self) -> str:
        return f"accepted path {self.number} of {self.task_id}"


class AcceptedPathWithdrawal(models.Model):
    """Why an accepted path is accepted no longer, by whom and when."""

    path = models.OneToOneField(
        AcceptedPath, on_delete=models.PROTECT, related_name="withdrawal", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    withdrawn_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the withdrawal of an accepted path")

    def __str__(self) -> str:
        return f"{self.path_id} withdrawn"
