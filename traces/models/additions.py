"""What is added to a trial after it was stored. The trial itself never changes."""

from __future__ import annotations

import uuid

from django.db import models

from evalsite.common.triggers import append_only
from traces.models.people import ApiKey, System, User
from traces.models.trials import Trial
from traces.models.work import Task


class EvidenceAddition(models.Model):
    """Evidence that a trial's record lacked, with where it comes from.

    `content` fills what was not recorded and never changes what was (`traces.core.additions`).
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="additions")
    order = models.PositiveIntegerField()  # 1, 2, …: how much evidence there is then
    parts = models.JSONField()  # names of the parts that it fills, in order
    content = models.BinaryField()  # zstd of ASCII JSON
    source = models.CharField(max_length=500)  # where it was read: "inspection api, by hand"
    reason = models.TextField()
    digest = models.UUIDField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, null=True, related_name="+")
    added_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "order"], name="evidence_addition_order"),
            models.CheckConstraint(
                condition=models.Q(order__gte=1), name="evidence_addition_from_1"
            ),
        ]
        triggers = append_only("added evidence")

    def __str__(self) -> str:
        return f"addition {self.order} to {self.trial_id}"


class TaskOrigin(models.Model):
    """The trial that a task was made from."""

    task = models.OneToOneField(
        Task, on_delete=models.PROTECT, related_name="origin", primary_key=True
    )
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the origin of a task")

    def __str__(self) -> str:
        return f"{self.task_id} from {self.trial_id}"


class HeldOutExposure(models.Model):
    """A held-out failure that was used to change the agent: the task is no longer unseen."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="exposures")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, null=True, related_name="+")
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    noted_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["system", "-id"], name="exposure_newest")]
        triggers = append_only("an exposure of a held-out task")

    def __str__(self) -> str:
        return f"exposure of {self.task_id}"
