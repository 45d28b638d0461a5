"""Graders and their verdicts. A verdict is never edited and never overwritten."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.core.records import CriterionClass, GraderKind, VerdictValue
from traces.models import ContractVersion, Release, System, Trial, Upload, User


class Criterion(models.Model):
    """One thing that a grader decides, by its name in the system."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="criteria")
    name = models.CharField(max_length=512)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "name"], name="criterion_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Grader(models.Model):
    """Code, a model (a judge) or a person that gives verdicts."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="graders")
    kind = models.CharField(max_length=8)
    name = models.CharField(max_length=512)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "kind", "name"], name="grader_once"),
            one_of("kind", GraderKind, name="grader_kind_known"),
        ]

    def __str__(self) -> str:
        return self.name


class GraderVersion(models.Model):
    """One version of a grader; a judge's is its model, prompt and rubric version."""

    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, related_name="versions")
    version = models.CharField(max_length=512, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["grader", "version"], name="grader_version_once"),
        ]

    def __str__(self) -> str:
        return f"{self.grader} {self.version}".strip()


class Verdict(models.Model):
    """What one grader version said of one criterion of one trial.

    `key` is the verdict's own id, else a digest of its content. `by` is the signed-in person
    who gave it; a human verdict without one came in a file and is *imported*: it does not count
    until a reviewer vouches for it.
    """

    id = models.BigAutoField(primary_key=True)
    trial = models.ForeignKey(
        Trial, on_delete=models.PROTECT, related_name="verdicts", db_index=False
    )
    grader_version = models.ForeignKey(
        GraderVersion, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    criterion = models.ForeignKey(
        Criterion, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    criterion_class = models.CharField(max_length=16)
    is_mandatory = models.BooleanField()
    value = models.CharField(max_length=8)
    raw_word = models.TextField(blank=True)
    key = models.CharField(max_length=512)
    score = models.DecimalField(max_digits=60, decimal_places=30, null=True)
    rationale = models.TextField(blank=True)
    cited_steps = ArrayField(models.IntegerField())
    overrides = models.CharField(max_length=512, blank=True)
    extra = models.TextField(blank=True)  # ASCII JSON: raw answer, cost and all else it came with
    digest = models.UUIDField()
    evidence_digest = models.UUIDField()  # of the trial that it was given on
    upload = models.ForeignKey(
        Upload, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    line = models.PositiveBigIntegerField(null=True)
    by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    # The contract version that it was given under, and the criterion as that version has it.
    contract = models.ForeignKey(
        ContractVersion, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    criterion_digest = models.UUIDField(null=True)
    evidence_order = models.PositiveIntegerField(db_default=0)  # additions that it saw
    corrects = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "criterion", "grader_version", "key"], name="verdict_identity"
            ),
            one_of("value", VerdictValue, name="verdict_value_known"),
            one_of("criterion_class", CriterionClass, name="verdict_class_known"),
        ]
        indexes = [
            # What one judge says, without reading what everybody else says.
            models.Index(fields=["grader_version", "criterion"], name="verdict_grader"),
        ]
        triggers = append_only("a verdict")

    def __str__(self) -> str:
        return f"{self.criterion}: {self.value}"


class WaitingVerdict(models.Model):
    """A verdict that arrived before its trial. It counts nowhere until the trial comes."""

    id = models.BigAutoField(primary_key=True)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    release = models.ForeignKey(
        Release, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    run_name = models.CharField(max_length=512, blank=True)
    task_id = models.CharField(max_length=512, blank=True)
    label = models.CharField(max_length=512, blank=True)
    attempt = models.PositiveIntegerField()
    external_id = models.CharField(max_length=512, blank=True)
    digest = models.UUIDField()  # of target and verdict: the same again waits once
    verdict = models.TextField()  # ASCII JSON of the verdict, in native form
    upload = models.ForeignKey(Upload, on_delete=models.PROTECT, related_name="+")
    line = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    attached_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "digest"], name="waiting_verdict_once"),
        ]
        indexes = [
            models.Index(
                fields=["system", "task_id", "label"],
                name="waiting_verdict_trial",
                condition=models.Q(attached_at__isnull=True, external_id=""),
            ),
            models.Index(
                fields=["system", "external_id"],
                name="waiting_verdict_external",
                condition=models.Q(attached_at__isnull=True) & ~models.Q(external_id=""),
            ),
        ]

    def __str__(self) -> str:
        return f"waiting verdict {self.pk}"
