"""Marks: what a reviewer says of a check, a rubric or a fixture that is itself at fault."""

from __future__ import annotations

import uuid

from django.db import models

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from reviews.core.disposition import Mark
from traces.models import System, Task, Trial, User


class CheckMark(models.Model):
    """A check, rubric or external criterion of a task marked as defective or ambiguous.

    It holds for the criterion as it stood (`criterion_digest`): a contract version that changes
    the criterion leaves it behind. `criterion` "" is the task's fixture, whose digest is that of
    the whole contract.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="check_marks")
    criterion = models.CharField(max_length=512, blank=True)
    criterion_digest = models.UUIDField(null=True)  # null: an imported criterion, no contract
    mark = models.CharField(max_length=16)
    reason = models.TextField()
    trial = models.ForeignKey(
        Trial, on_delete=models.PROTECT, null=True, related_name="+"
    )  # on which it was seen
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    marked_at = models.DateTimeField()

    class Meta:
        constraints = [one_of("mark", Mark, name="check_mark_known")]
        indexes = [models.Index(fields=["system", "-id"], name="check_mark_newest")]
        triggers = append_only("a mark")

    def __str__(self) -> str:
        return f"{self.criterion or 'fixture'} of {self.task_id}: {self.mark}"


class CheckMarkWithdrawal(models.Model):
    """Why a mark no longer holds, by whom and when."""

    mark = models.OneToOneField(
        CheckMark, on_delete=models.PROTECT, related_name="withdrawal", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    withdrawn_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the withdrawal of a mark")

    def __str__(self) -> str:
        return f"{self.mark_id} withdrawn"
