"""Flags: reasons to look at a trial, passing ones too. They change no disposition."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.models import System, Trial, User


class FlagCode(StrEnum):
    """Who or what flagged a trial. All but the first are the product's own."""

    PERSON = "person"
    FAILED_CHECK_OUTSIDE_BASIS = "failed-check-outside-basis"
    CITED_STEP_MISSING = "cited-step-missing"
    VERDICT_AGAINST_SCORE = "verdict-against-score"
    PASS_ON_EMPTY_TRAJECTORY = "pass-on-empty-trajectory"
    ERROR_STATUS_WITH_PASS = "error-status-with-pass"
    IMPORTED_HUMAN_VERDICT = "imported-human-verdict"
    UNKNOWN_CRITERION = "unknown-criterion"


class Flag(models.Model):
    """One reason to look at a trial. It is open until somebody closes it with a reason.

    `key` is a digest of code, criterion, reason and steps for the product's own flags, so that
    each is raised once; a person's flag has a random one.
    """

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, db_index=False, related_name="+")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, db_index=False, related_name="flags")
    code = models.CharField(max_length=32)
    key = models.UUIDField()
    reason = models.TextField()  # of the product: with text from the trace
    criterion = models.CharField(max_length=512, blank=True)
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    raised_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "key"], name="flag_once"),
            one_of("code", FlagCode, name="flag_code_known"),
            models.CheckConstraint(
                condition=Q(code="person", by__isnull=False) | (~Q(code="person") & Q(by=None)),
                name="flag_person_named",
            ),
        ]
        indexes = [models.Index(fields=["system", "-id"], name="flag_newest")]
        triggers = append_only("a flag")

    def __str__(self) -> str:
        return f"{self.code} on {self.trial_id}"


class FlagClosing(models.Model):
    """Why a flag needs no further look, by whom and when. A closed flag stays visible."""

    flag = models.OneToOneField(
        Flag, on_delete=models.PROTECT, related_name="closing", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    closed_at = models.DateTimeField()

    class Meta:
        triggers = append_only("the closing of a flag")

    def __str__(self) -> str:
        return f"{self.flag_id} closed"
