"""Contracts of tasks: versioned data, how versions come into force, and drafts of them."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.models.people import System, User
from traces.models.rules import BackgroundWork, WorkState
from traces.models.work import Task


class ContractPreview(BackgroundWork):
    """What drafted contracts would do to the stored trials, before anybody proposes them.

    Not evidence: a draft of its author, with its result. `texts` holds one document a task.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.CASCADE, related_name="+")
    texts = models.JSONField()  # task_id: text
    by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    result = models.JSONField(null=True)  # `reviews.core.regrades` writes and reads it

    class Meta:
        constraints = [one_of("state", WorkState, name="contract_preview_state_known")]
        indexes = [models.Index(fields=["system", "-id"], name="contract_preview_newest")]

    def __str__(self) -> str:
        return f"contract preview {self.uuid}"


class ContractProposal(models.Model):
    """One or more contract versions that are proposed, and decided, together."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="contract_proposals")
    number = models.PositiveIntegerField()
    reason = models.TextField()
    preview = models.OneToOneField(
        ContractPreview, on_delete=models.SET_NULL, null=True, related_name="proposed_as"
    )
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "number"], name="contract_proposal_number"),
        ]
        triggers = append_only("a proposal of contracts")

    def __str__(self) -> str:
        return f"contract proposal {self.number} of {self.system}"


class ContractVersion(models.Model):
    """One version of a task's contract, as its author wrote it.

    Numbered by task in the order of proposal. `digest` is that of the parsed document: the same
    meaning in another spelling has the same digest. `based_on` is the version in effect then.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    proposal = models.ForeignKey(
        ContractProposal, on_delete=models.PROTECT, related_name="versions"
    )
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="contract_versions")
    number = models.PositiveIntegerField()
    text = models.TextField()
    digest = models.UUIDField()
    based_on = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "number"], name="contract_version_number"),
            models.UniqueConstraint(fields=["proposal", "task"], name="contract_version_once"),
        ]
        triggers = append_only("a contract version")

    def __str__(self) -> str:
        return f"contract {self.number} of {self.task_id}"


class ContractOutcome(StrEnum):
    """What became of a proposal."""

    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"  # by the person who proposed it


class ContractDecision(models.Model):
    """What was decided about a proposal: by whom, when and why. Made once."""

    proposal = models.OneToOneField(
        ContractProposal, on_delete=models.PROTECT, related_name="decision", primary_key=True
    )
    outcome = models.CharField(max_length=16)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField()

    class Meta:
        constraints = [one_of("outcome", ContractOutcome, name="contract_outcome_known")]
        triggers = append_only("a decision on contracts")

    def __str__(self) -> str:
        return f"{self.proposal} {self.outcome}"


class SplitChange(models.Model):
    """A family of tasks that was put into another split, with the reason."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    family = models.CharField(max_length=200, blank=True)
    task = models.ForeignKey(
        Task, on_delete=models.PROTECT, null=True, related_name="+"
    )  # null: the whole family; a task without family moves alone
    old = models.CharField(max_length=16, blank=True)
    new = models.CharField(max_length=16, blank=True)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(task__isnull=False, family="") | (Q(task=None) & ~Q(family="")),
                name="split_change_of_family_or_task",
            ),
        ]
        indexes = [models.Index(fields=["system", "-id"], name="split_change_newest")]
        triggers = append_only("a change of split")

    def __str__(self) -> str:
        return f"{self.family or self.task_id}: {self.new}"
