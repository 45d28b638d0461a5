"""Regrades: stored trials graded again, under other contract versions."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from traces.models import BackgroundWork, ContractProposal, System, User, WorkState


class Regrade(BackgroundWork):
    """Stored trials graded under contract versions: adds verdicts and touches no trial.

    With a `proposal` its versions take effect when all their trials are graded. Without one the
    trials of `tasks` are graded again under the versions in effect, as after a change of checks.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="regrades")
    number = models.PositiveIntegerField()
    proposal = models.OneToOneField(
        ContractProposal, on_delete=models.PROTECT, null=True, related_name="regrade"
    )
    tasks = ArrayField(models.BigIntegerField())  # ids, in the order in which they are worked
    reason = models.TextField(blank=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    n_tasks_done = models.PositiveIntegerField(default=0)  # checkpoint: tasks that took effect
    after = models.BigIntegerField(default=0)  # checkpoint: the last trial of the current task
    n_verdicts = models.BigIntegerField(default=0)  # that it added
    result = models.JSONField(null=True)  # `reviews.core.regrades` writes and reads it
    cancelled_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "number"], name="regrade_number"),
            one_of("state", WorkState, name="regrade_state_known"),
            models.CheckConstraint(
                condition=Q(proposal__isnull=False) | ~Q(reason=""), name="regrade_has_reason"
            ),
        ]

    def __str__(self) -> str:
        return f"regrade {self.number} of {self.system}"
