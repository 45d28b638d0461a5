"""What reviewers decide on disputes and vouch for, and what they have begun to write."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from reviews.core.disposition import AdjudicationRuling
from reviews.models.verdicts import Criterion, Verdict
from traces.models import ContractVersion, System, Trial, User


class Adjudication(models.Model):
    """A reviewer's decision on a dispute. A correction is a new row that names the earlier one.

    The decisions on a criterion of a trial, as the criterion stood, form one chain: one without
    `replaces`, and each other one replaces the one before it.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="adjudications")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    criterion_digest = models.UUIDField(null=True)  # null: an imported criterion, no contract
    rubric_version = models.CharField(max_length=200, blank=True)
    contract = models.ForeignKey(
        ContractVersion, on_delete=models.PROTECT, null=True, related_name="+"
    )
    ruling = models.CharField(max_length=24)
    reason = models.TextField()
    cited_steps = ArrayField(models.IntegerField())
    seen = ArrayField(models.BigIntegerField())  # ids of the verdicts on it when it was decided
    evidence_order = models.PositiveIntegerField()  # additions to the evidence by then
    evidence_digest = models.UUIDField()  # of the trial
    replaces = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, related_name="replaced_by"
    )
    is_by_party = models.BooleanField()  # decided by somebody with a verdict of their own on it
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField()

    class Meta:
        constraints = [
            one_of("ruling", AdjudicationRuling, name="adjudication_ruling_known"),
            models.UniqueConstraint(
                fields=["trial", "criterion", "criterion_digest"],
                condition=Q(replaces=None),
                nulls_distinct=False,
                name="adjudication_first_once",
            ),
        ]
        indexes = [models.Index(fields=["system", "-id"], name="adjudication_newest")]
        triggers = append_only("an adjudication")

    def __str__(self) -> str:
        return f"{self.criterion} of {self.trial_id}: {self.ruling}"


class Vouch(models.Model):
    """A reviewer's word that an imported human verdict is what that person said. It counts then."""

    verdict = models.OneToOneField(
        Verdict, on_delete=models.PROTECT, related_name="vouch", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    vouched_at = models.DateTimeField()

    class Meta:
        triggers = append_only("a vouch")

    def __str__(self) -> str:
        return f"vouch for {self.verdict_id}"


class DraftPurpose(StrEnum):
    """What somebody is about to decide."""

    ADJUDICATE = "adjudicate"
    LABEL = "label"


class ReviewDraft(models.Model):
    """What somebody has written on a criterion of a trial and not decided yet.

    With `held_until` it is submitted, and can be taken back until then. Not evidence.
    """

    id = models.BigAutoField(primary_key=True)
    by = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    purpose = models.CharField(max_length=16)
    system = models.ForeignKey(System, on_delete=models.CASCADE, related_name="+")
    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.CASCADE, related_name="+")
    item = models.ForeignKey(
        "reviews.CalibrationItem", on_delete=models.CASCADE, null=True, related_name="+"
    )
    decision = models.CharField(max_length=24, blank=True)  # "" while nothing is chosen
    reason = models.TextField(blank=True)
    steps = ArrayField(models.IntegerField(), default=list)
    seen = models.CharField(max_length=200, blank=True)  # contract, evidence and verdicts before it
    saved_at = models.DateTimeField()
    held_until = models.DateTimeField(null=True)
    refusal = models.TextField(blank=True)  # why it was not kept when its time came

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["by", "purpose", "trial", "criterion"], name="review_draft_once"
            ),
            one_of("purpose", DraftPurpose, name="review_draft_purpose_known"),
        ]
        indexes = [
            models.Index(
                fields=["held_until"],
                name="review_draft_due",
                condition=Q(held_until__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"draft {self.pk}"
