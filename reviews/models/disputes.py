"""Disputes: criteria of trials whose verdicts disagree. A projection, never evidence."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.contrib.postgres.fields import ArrayField
from django.db import models

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.models import Release, System, Task, Trial, User


class DisputeState(StrEnum):
    """Whether somebody has still to decide it."""

    OPEN = "open"
    ADJUDICATED = "adjudicated"
    OVER = "over"  # its verdicts agree by now, or none of them is asked for any more


class Dispute(models.Model):
    """One criterion of one trial whose verdicts disagree, whether or not they count.

    `evalsite.projections` writes it as trials are decided. `says` holds who says what, so that
    lists need nothing else: grader, version, kind, values and whether it counts.
    """

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, db_index=False, related_name="+")
    trial = models.ForeignKey(
        Trial, on_delete=models.PROTECT, db_index=False, related_name="disputes"
    )
    task = models.ForeignKey(Task, on_delete=models.PROTECT, db_index=False, related_name="+")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, db_index=False, related_name="+")
    criterion = models.CharField(max_length=512)
    criterion_class = models.CharField(max_length=16)
    class_rank = models.PositiveSmallIntegerField()  # outcome, constraint, semantic
    criterion_digest = models.UUIDField(null=True)
    rubric_version = models.CharField(max_length=200, blank=True)
    kinds = ArrayField(models.CharField(max_length=16))  # `reviews.core.disputes.DisputeKind`
    judges = ArrayField(models.TextField())  # judge versions in it, as '["name", "version"]'
    says = models.JSONField()
    is_counting = models.BooleanField()  # graders that count disagree among themselves
    decides = models.BooleanField()  # an adjudication would settle a mandatory requirement
    stands = models.BooleanField()  # its trial stands for its slot
    state = models.CharField(max_length=16)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "criterion"], name="dispute_once"),
            one_of("state", DisputeState, name="dispute_state_known"),
        ]
        indexes = [
            models.Index(
                fields=["system", "state", "-decides", "class_rank", "opened_at", "id"],
                name="dispute_queue",
            ),
            # The criteria of the menu, one step each.
            models.Index(fields=["system", "criterion"], name="dispute_criterion"),
        ]

    def __str__(self) -> str:
        return f"dispute {self.pk}"


class DisputeSkip(models.Model):
    """That a reviewer left a dispute to others, and why."""

    dispute = models.ForeignKey(Dispute, on_delete=models.PROTECT, related_name="skips")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    reason = models.TextField()
    at = models.DateTimeField()

    class Meta:
        triggers = append_only("a skipped dispute")

    def __str__(self) -> str:
        return f"{self.dispute_id} skipped"
