"""Argument rules and tool kinds: versioned data, how versions come into force, and the jobs around."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.db import models

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.models.people import System, User


class RulesVersion(models.Model):
    """One version of a system's argument rules and tool kinds, from its proposal on.

    `document` is the data of `traces.core.rules.RuleSet`, whole; `change` is what its author
    changed in the version that it is based on (`traces.core.rule_changes`), null where a version
    was made whole. A system starts with the empty rule set: arguments are exact and every tool
    counts as a write. Versions are numbered in the order in which they were proposed.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="rules_versions")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    based_on = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="+")
    change = models.JSONField(null=True)
    reason = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "number"], name="rules_version_number"),
        ]
        triggers = append_only("a rules version")

    def __str__(self) -> str:
        return f"rules {self.number} of {self.system}"


class RulesOutcome(StrEnum):
    """What became of a proposed version."""

    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"  # by the person who proposed it


class RulesDecision(models.Model):
    """What was decided about a proposed version: by whom, when and why. Made once.

    A version that a system was made with has no decision, and stands as approved.
    """

    rules = models.OneToOneField(
        RulesVersion, on_delete=models.PROTECT, related_name="decision", primary_key=True
    )
    outcome = models.CharField(max_length=16)
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField()

    class Meta:
        constraints = [one_of("outcome", RulesOutcome, name="rules_outcome_known")]
        triggers = append_only("a decision on rules")

    def __str__(self) -> str:
        return f"{self.rules} {self.outcome}"


class WorkState(StrEnum):
    """Where background work stands."""

    WAITING = "waiting"
    WORKING = "working"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class BackgroundWork(models.Model):
    """Work that a worker does beside the pages. The row is the truth, a message only a hint."""

    state = models.CharField(max_length=16, default=WorkState.WAITING.value)
    n_done = models.BigIntegerField(default=0)
    n_total = models.BigIntegerField(null=True)  # None: not counted yet
    n_tries = models.PositiveSmallIntegerField(default=0)
    failure = models.TextField(blank=True)
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    touched_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True

    @property
    def is_open(self) -> bool:
        """Whether a worker has still to do with it."""
        return self.state in (WorkState.WAITING.value, WorkState.WORKING.value)


class RulesJob(BackgroundWork):
    """The path keys of all trajectories of a system, worked out for an approved version.

    When it is done the system's pages show the version; until then they show the one before.
    """

    rules = models.OneToOneField(
        RulesVersion, on_delete=models.PROTECT, related_name="job", primary_key=True
    )
    after = models.BigIntegerField(default=0)  # checkpoint: the last trajectory worked out
    is_cancel_asked = models.BooleanField(default=False)
    cancelled_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [one_of("state", WorkState, name="rules_job_state_known")]

    def __str__(self) -> str:
        return f"{self.rules}: {self.state}"


class RulesPreview(BackgroundWork):
    """What a change of rules would do to the stored paths, before anybody proposes it.

    Not evidence: a draft of its author, with its result (`traces.core.rule_effects`). `document`
    is `change` applied to `base`.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.CASCADE, related_name="+")
    base = models.ForeignKey(RulesVersion, on_delete=models.CASCADE, related_name="+")
    change = models.JSONField()
    document = models.JSONField()
    by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    result = models.JSONField(null=True)
    proposed_as = models.OneToOneField(
        RulesVersion, on_delete=models.SET_NULL, null=True, related_name="preview"
    )

    class Meta:
        constraints = [one_of("state", WorkState, name="rules_preview_state_known")]
        indexes = [models.Index(fields=["system", "-id"], name="rules_preview_newest")]

    def __str__(self) -> str:
        return f"preview {self.uuid}"


class RulesSuggestions(BackgroundWork):
    """Rules that the stored paths suggest, on top of a version. Never applied by themselves."""

    rules = models.OneToOneField(
        RulesVersion, on_delete=models.CASCADE, related_name="suggestions", primary_key=True
    )
    result = models.JSONField(null=True)  # of the last finished search
    result_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [one_of("state", WorkState, name="rules_suggestions_state_known")]

    def __str__(self) -> str:
        return f"suggestions on {self.rules}"
