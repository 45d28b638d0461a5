"""Calibration sets: trials that people label blind, so that judges can be held against them."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from reviews.core.consensus import Consensus
from reviews.models.adjudications import Adjudication
from reviews.models.verdicts import Criterion, Verdict
from traces.core.records import VerdictValue
from traces.models import System, Trial, User


class Sampling(StrEnum):
    """How the items of a set were chosen. Agreement and kappa are read on random ones only."""

    RANDOM = "random"
    STRATIFIED = "stratified"
    CHOSEN = "chosen"  # by hand, or nobody knows how


class CalibrationSet(models.Model):
    """Trials of a system to be labelled on one criterion, as it stood when the set was made."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="calibration_sets")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    criterion_digest = models.UUIDField(null=True)  # null: an imported criterion, no contract
    rubric_version = models.CharField(max_length=200, blank=True)
    question = models.TextField(blank=True)
    sampling = models.CharField(max_length=16)
    seed = models.BigIntegerField(null=True)  # null: nothing was drawn
    strata = models.JSONField(
        null=True
    )  # of a stratified one: what was wanted and found, by stratum
    reason = models.TextField()
    is_imported = models.BooleanField()  # its labels came in a file: exploratory until vouched for
    source = models.TextField(blank=True)  # of imported labels: where they are from
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)  # every item settled or withdrawn
    closed_at = models.DateTimeField(null=True)  # by hand: nobody labels it any more
    closed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    closing_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "number"], name="calibration_set_number"),
            one_of("sampling", Sampling, name="calibration_set_sampling_known"),
        ]

    def __str__(self) -> str:
        return f"calibration set {self.number} of {self.system}"


class SetVouch(models.Model):
    """A reviewer's word for the imported labels of a set: calibrations count them then."""

    set = models.OneToOneField(
        CalibrationSet, on_delete=models.PROTECT, related_name="vouch", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    vouched_at = models.DateTimeField()

    class Meta:
        triggers = append_only("a vouch for labels")

    def __str__(self) -> str:
        return f"vouch for {self.set_id}"


class CalibrationItem(models.Model):
    """One trial of a set. Two people label it, a third one where they differ."""

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    set = models.ForeignKey(
        CalibrationSet, on_delete=models.PROTECT, db_index=False, related_name="items"
    )
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveIntegerField()  # in a drawn order, so that neighbours tell nothing
    stratum = models.CharField(max_length=200, blank=True)
    n_needed = models.PositiveSmallIntegerField(default=2)
    consensus = models.CharField(max_length=8, blank=True)  # "" until it is settled
    settled_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)
    withdrawn_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    withdrawn_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["set", "trial"], name="calibration_item_once"),
            models.UniqueConstraint(fields=["set", "position"], name="calibration_item_position"),
            models.CheckConstraint(
                condition=Q(consensus__in=["", *(c.value for c in Consensus)]),
                name="calibration_item_consensus_known",
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.position} of set {self.set_id}"


class SeatEnding(StrEnum):
    """How somebody left an item that was reserved for them."""

    LABELLED = "labelled"
    SKIPPED = "skipped"  # with a reason; never offered to them again
    GIVEN_UP = "given_up"  # they looked at verdicts of others, or lost the right to label


class Seat(models.Model):
    """That an item is reserved for a person until a stated time. One a person and item, ever."""

    id = models.BigAutoField(primary_key=True)
    item = models.ForeignKey(CalibrationItem, on_delete=models.PROTECT, related_name="seats")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    taken_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    ending = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "by"], name="seat_once"),
            models.CheckConstraint(
                condition=Q(ending="", ended_at=None)
                | Q(ending__in=[e.value for e in SeatEnding], ended_at__isnull=False),
                name="seat_ending_known",
            ),
        ]

    def __str__(self) -> str:
        return f"seat of {self.by_id} at {self.item_id}"


class Label(models.Model):
    """What one person says of an item without sight of any other verdict. Never corrected.

    Of a signed-in person it is a verdict as well, the third one of an item an adjudication.
    An imported one is neither: it stands in `labeller` and votes nowhere.
    """

    id = models.BigAutoField(primary_key=True)
    item = models.ForeignKey(CalibrationItem, on_delete=models.PROTECT, related_name="labels")
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    labeller = models.CharField(max_length=200, blank=True)  # of an imported one
    round = models.PositiveSmallIntegerField()  # 1, 2, or 3 where the first two differ
    value = models.CharField(max_length=8)
    reason = models.TextField(blank=True)
    cited_steps = ArrayField(models.IntegerField(), default=list)
    verdict = models.OneToOneField(
        Verdict, on_delete=models.PROTECT, null=True, related_name="label"
    )
    adjudication = models.OneToOneField(
        Adjudication, on_delete=models.PROTECT, null=True, related_name="label"
    )
    given_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item", "by"], condition=Q(by__isnull=False), name="label_once_a_person"
            ),
            models.UniqueConstraint(
                fields=["item", "labeller"], condition=~Q(labeller=""), name="label_once_a_name"
            ),
            models.UniqueConstraint(fields=["item", "round"], name="label_round_once"),
            one_of("value", VerdictValue, name="label_value_known"),
            models.CheckConstraint(
                condition=Q(by__isnull=False, labeller="") | (Q(by=None) & ~Q(labeller="")),
                name="label_has_one_labeller",
            ),
        ]
        triggers = append_only("a label")

    def __str__(self) -> str:
        return f"label {self.round} of {self.item_id}"


class Revelation(models.Model):
    """That a person saw what others say of a criterion of a trial, and when they first did."""

    id = models.BigAutoField(primary_key=True)
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="+")
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    where = models.CharField(max_length=32)  # page on which it was
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "criterion", "by"], name="revelation_once"),
        ]
        triggers = append_only("a revelation")

    def __str__(self) -> str:
        return f"{self.trial_id} revealed to {self.by_id}"
