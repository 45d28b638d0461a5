"""Risk tiers of a system, which tasks are in them, and the versions of their thresholds."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q

from evalsite.common.triggers import append_only
from traces.models import System, Task, User


class RiskTier(models.Model):
    """A class of tasks by what a mistake in them costs. Its thresholds are versions of their own."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="risk_tiers")
    name = models.CharField(max_length=80)
    description = models.TextField(blank=True)
    template = models.CharField(max_length=32, blank=True)  # what its first thresholds began with
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "name"], name="risk_tier_name_once"),
        ]
        triggers = append_only("a risk tier")

    def __str__(self) -> str:
        return self.name


class TierRetirement(models.Model):
    """A tier that no gate asks for any longer, from an instant on."""

    tier = models.OneToOneField(
        RiskTier, on_delete=models.PROTECT, related_name="retirement", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    retired_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the retirement of a risk tier")

    def __str__(self) -> str:
        return f"{self.tier_id} retired"


class TierAssignment(models.Model):
    """Which tier a task is in from an instant on; `task` null: all tasks that have none of their own.

    The newest row at the instant that a gate asks for holds.
    """

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    task = models.ForeignKey(
        Task, on_delete=models.PROTECT, null=True, related_name="tier_assignments"
    )
    tier = models.ForeignKey(
        RiskTier, on_delete=models.PROTECT, null=True, related_name="assignments"
    )  # null: the system's own again; of a system: none
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    assigned_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["system", "-id"], name="tier_assignment_newest")]
        triggers = append_only("the tier of a task")

    def __str__(self) -> str:
        return f"{self.task_id or 'system'} in {self.tier_id}"


class ThresholdSet(models.Model):
    """One version of a tier's thresholds, in force from an instant on and never before it was made.

    `document` is what `reviews.core.gate.thresholds` writes and reads; `digest` is the SHA-256 of
    its canonical JSON, in hex. In force at an instant is the newest version whose time has come.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    tier = models.ForeignKey(RiskTier, on_delete=models.PROTECT, related_name="threshold_sets")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    digest = models.CharField(max_length=64)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    made_at = models.DateTimeField()
    in_force_from = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tier", "number"], name="threshold_set_number"),
            models.CheckConstraint(
                condition=Q(in_force_from__gte=F("made_at")), name="threshold_set_not_retroactive"
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="threshold_set_has_reason"),
        ]
        triggers = append_only("a threshold set")

    def __str__(self) -> str:
        return f"thresholds {self.number} of {self.tier_id}"
