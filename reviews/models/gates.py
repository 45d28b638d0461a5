"""Gates of releases: what is computed from evidence, and what owners do about it."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q

from evalsite.common.triggers import append_only
from reviews.core.gate.states import GateState
from traces.models import Release, Run, System, Trial, User


class ReleaseGate(models.Model):
    """A release's gate as it was last computed. A projection, never evidence.

    `revision` goes up in the transaction of whatever may change the release's evidence, under the
    release's lock; `computed_revision` is the one that `document` was computed from. Where the two
    differ, the gate is being computed anew.
    """

    release = models.OneToOneField(
        Release, on_delete=models.CASCADE, related_name="gate", primary_key=True
    )
    revision = models.BigIntegerField(default=1)
    computed_revision = models.BigIntegerField(default=0)
    touched_at = models.DateTimeField()
    computed_at = models.DateTimeField(null=True)
    state = models.CharField(max_length=16, blank=True)  # "" until it was computed
    sentence = models.TextField(blank=True)
    digest = models.CharField(max_length=64, blank=True)  # SHA-256 of the evidence manifest, hex
    document = models.JSONField(null=True)  # `reviews.core.gate.documents` writes and reads it
    version = models.SmallIntegerField(default=0)  # of the algorithm that computed it
    n_tries = models.PositiveSmallIntegerField(default=0)  # since it was last computed
    failure = models.TextField(blank=True)  # why it could not be computed

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["", *(s.value for s in GateState)]), name="gate_state_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["touched_at"],
                name="gate_outdated",
                condition=~Q(revision=F("computed_revision")),
            )
        ]

    def __str__(self) -> str:
        return f"gate of {self.release_id}: {self.state}"

    @property
    def is_current(self) -> bool:
        """Whether nothing was touched since it was computed."""
        return self.revision == self.computed_revision


class GateReevaluation(models.Model):
    """An owner's act: the gate of a release applies what is in force at `made_at` from now on.

    Thresholds, tiers and contract versions alike. The newest one of a release holds; what they
    were when the runs began stays shown beside it.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="reevaluations")
    number = models.PositiveIntegerField()
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["release", "number"], name="gate_reevaluation_number"),
            models.CheckConstraint(condition=~Q(reason=""), name="gate_reevaluation_has_reason"),
        ]
        triggers = append_only("a re-evaluation")

    def __str__(self) -> str:
        return f"re-evaluation {self.number} of {self.release_id}"


class RunExclusion(models.Model):
    """A run that an owner left out of its release's gate. One that was taken in again holds no more."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="exclusions")
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    left_out_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="run_exclusion_has_reason"),
        ]
        triggers = append_only("a run left out")

    def __str__(self) -> str:
        return f"run {self.run_id} left out"


class ExclusionConfirmation(models.Model):
    """A second owner's word that a run was left out for good reason."""

    exclusion = models.OneToOneField(
        RunExclusion, on_delete=models.PROTECT, related_name="confirmation", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    confirmed_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the confirmation of a run left out")

    def __str__(self) -> str:
        return f"{self.exclusion_id} confirmed"


class ExclusionEnd(models.Model):
    """A run that counts again after it was left out."""

    exclusion = models.OneToOneField(
        RunExclusion, on_delete=models.PROTECT, related_name="end", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    ended_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the end of an exclusion")

    def __str__(self) -> str:
        return f"{self.exclusion_id} ended"


class GateAlert(models.Model):
    """A prohibited action that a gate does not allow, raised once for a trial and harm."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="+")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="+")
    harm = models.CharField(max_length=200, blank=True)
    tier_name = models.CharField(max_length=80)
    raised_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "harm"], name="gate_alert_once"),
        ]
        indexes = [models.Index(fields=["system", "-id"], name="gate_alert_newest")]
        triggers = append_only("an alert")

    def __str__(self) -> str:
        return f"{self.harm} in {self.trial_id}"


class AlertSeen(models.Model):
    """An owner's note that an alert is known; the page then shows it no more on every page."""

    alert = models.OneToOneField(
        GateAlert, on_delete=models.PROTECT, related_name="seen", primary_key=True
    )
    note = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    seen_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the note on an alert")

    def __str__(self) -> str:
        return f"{self.alert_id} seen"
