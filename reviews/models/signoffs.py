"""Sign-offs: an owner's signed word on a release, bound to the digest of the evidence."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from reviews.core.gate.states import Meaning
from traces.models import Release, System, User


class EvidenceManifest(models.Model):
    """The canonical JSON of what a gate rests on; `digest` is its SHA-256 in hex."""

    digest = models.CharField(max_length=64, unique=True)
    content = models.BinaryField()  # zstd of the canonical JSON

    class Meta:
        triggers = append_only("an evidence manifest")

    def __str__(self) -> str:
        return self.digest


class SignOff(models.Model):
    """One owner's signature on a release.

    `envelope` is the DSSE envelope of the in-toto statement as it was made at signing; the columns
    beside it say the same for lists and are checked against it by `manage.py verify`. Where a tier
    asks for two owners, two rows over one manifest make an approval.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="sign_offs")
    manifest = models.ForeignKey(EvidenceManifest, on_delete=models.PROTECT, related_name="+")
    revision = models.BigIntegerField()  # of the gate when it was signed
    meaning = models.CharField(max_length=24)
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    printed_name = models.CharField(max_length=320)
    role = models.CharField(max_length=16)
    signed_at = models.DateTimeField()
    intended_use = models.TextField(blank=True)
    scope = models.TextField(blank=True)
    expires_on = models.DateField(null=True)
    reason = models.TextField(blank=True)
    next_action = models.TextField(blank=True)  # of a rejection
    waived_tier = models.CharField(max_length=80, blank=True)
    waived_check = models.CharField(max_length=32, blank=True)
    n_needed = models.PositiveSmallIntegerField()  # owners that the tiers ask for
    key_id = models.CharField(max_length=64)
    envelope = models.TextField()

    class Meta:
        constraints = [
            one_of("meaning", Meaning, name="sign_off_meaning_known"),
            models.CheckConstraint(
                condition=Q(meaning=Meaning.WAIVER.value, expires_on__isnull=False)
                & ~Q(waived_check="")
                & ~Q(reason="")
                & ~Q(scope="")
                | Q(meaning=Meaning.REJECTED.value, waived_check="")
                & ~Q(reason="")
                & ~Q(next_action="")
                | Q(meaning=Meaning.APPROVED.value, waived_check="", expires_on__isnull=False)
                & ~Q(intended_use="")
                & ~Q(scope=""),
                name="sign_off_whole",
            ),
        ]
        indexes = [models.Index(fields=["release", "-id"], name="sign_off_newest")]
        triggers = append_only("a sign-off")

    def __str__(self) -> str:
        return f"{self.meaning} by {self.printed_name}"


class SignOffVoid(models.Model):
    """A signature that an owner declared void, with the reason. The signature stays visible."""

    sign_off = models.OneToOneField(
        SignOff, on_delete=models.PROTECT, related_name="void", primary_key=True
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    voided_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="sign_off_void_has_reason"),
        ]
        triggers = append_only("the void of a sign-off")

    def __str__(self) -> str:
        return f"{self.sign_off_id} void"
