"""Cases: trials that the evidence does not decide, and the work on them."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from reviews.core.disposition import Worker
from traces.models import Release, System, Task, Trial, User


class CaseState(StrEnum):
    """Whether somebody has still to work on it."""

    OPEN = "open"
    CLOSED = "closed"  # its disposition changed
    SET_ASIDE = "set_aside"  # closed by hand, with a reason


class Case(models.Model):
    """A trial whose disposition is open. `evalsite.projections` opens and closes it.

    One a trial: when the trial opens again, so does its case. What people did is in its events.
    """

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, db_index=False, related_name="+")
    trial = models.OneToOneField(Trial, on_delete=models.PROTECT, related_name="case")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, db_index=False, related_name="+")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, db_index=False, related_name="+")
    state = models.CharField(max_length=16)
    disposition = models.CharField(max_length=16)  # of the trial, as last decided
    next_actions = ArrayField(models.CharField(max_length=24))  # the first one is shown
    action = models.CharField(max_length=24)  # the first one; of a closed case the last it had
    worked_by = models.CharField(max_length=16)  # role that works the first action
    why = ArrayField(models.CharField(max_length=600))  # criteria that are open, in order
    n_opened = models.PositiveIntegerField(default=1)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    assignee = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, db_index=False, related_name="+"
    )
    due_on = models.DateField(null=True)
    n_comments = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            one_of("state", CaseState, name="case_state_known"),
            one_of("worked_by", Worker, name="case_worker_known"),
            models.CheckConstraint(
                condition=Q(state="open", closed_at=None)
                | (~Q(state="open") & Q(closed_at__isnull=False)),
                name="case_closed_at",
            ),
        ]
        indexes = [
            models.Index(fields=["system", "state", "opened_at", "id"], name="case_queue"),
            models.Index(
                fields=["assignee", "system"], name="case_assignee", condition=Q(state="open")
            ),
        ]

    def __str__(self) -> str:
        return f"case {self.pk}"


class CaseEventKind(StrEnum):
    """What happened to a case."""

    OPENED = "opened"  # again: the first opening is the case itself
    CLOSED = "closed"  # by itself
    SET_ASIDE = "set_aside"  # by hand
    TAKEN_UP = "taken_up"  # opened again by hand
    ASSIGNED = "assigned"
    DUE = "due"
    COMMENT = "comment"
    RERUN_ASKED = "rerun_asked"
    EVIDENCE = "evidence"  # evidence was added
    MARKED = "marked"  # a check, fixture or rubric was marked
    VERDICT = "verdict"  # a person gave one, or corrected their own
    ADJUDICATED = "adjudicated"  # a reviewer decided a dispute, or corrected that


class CaseEvent(models.Model):
    """One thing that happened to a case. `by` null: it happened by itself."""

    id = models.BigAutoField(primary_key=True)
    case = models.ForeignKey(Case, on_delete=models.PROTECT, db_index=False, related_name="events")
    kind = models.CharField(max_length=16)
    text = models.TextField(blank=True)  # comment, reason, or what closed it
    detail = models.JSONField(null=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [one_of("kind", CaseEventKind, name="case_event_kind_known")]
        indexes = [models.Index(fields=["case", "id"], name="case_event_order")]
        triggers = append_only("the history of a case")

    def __str__(self) -> str:
        return f"{self.kind} of {self.case_id}"
