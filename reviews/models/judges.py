"""Judges: how far people's labels and probes bear them out, and runs of them from here."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from reviews.core.calibration import CalibrationStatus
from reviews.models.verdicts import Criterion, GraderVersion, Verdict
from traces.core.records import VerdictValue
from traces.models import BackgroundWork, System, Trial, Upload, User, WorkState


class Calibration(models.Model):
    """The status of a judge version on a criterion as it was read at an instant.

    The newest row of (judge version, criterion, digest) holds. A calibrated judge's verdicts count
    if they were given until `valid_until`: a date that passes changes no earlier decision.
    """

    id = models.BigAutoField(primary_key=True)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    grader_version = models.ForeignKey(
        GraderVersion, on_delete=models.PROTECT, related_name="calibrations"
    )
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    criterion_digest = models.UUIDField(null=True)
    rubric_version = models.CharField(max_length=200, blank=True)
    status = models.CharField(max_length=16)
    why = models.TextField()  # a sentence
    figures = models.JSONField()  # what it was read from; `reviews.core.calibration` writes it
    read_at = models.DateTimeField()
    valid_until = models.DateTimeField(null=True)  # of a calibrated one
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            one_of("status", CalibrationStatus, name="calibration_status_known"),
            models.CheckConstraint(
                condition=~Q(status="calibrated") | Q(valid_until__isnull=False),
                name="calibration_has_date",
            ),
        ]
        indexes = [
            models.Index(fields=["system", "grader_version", "-id"], name="calibration_newest")
        ]
        triggers = append_only("a calibration")

    def __str__(self) -> str:
        return f"{self.grader_version_id} on {self.criterion_id}: {self.status}"


class ProbeBatch(models.Model):
    """Copies of passing trials, changed on purpose, for judges to be tried with."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="probe_batches")
    number = models.PositiveIntegerField()
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    criterion_digest = models.UUIDField(null=True)
    rubric_version = models.CharField(max_length=200, blank=True)
    question = models.TextField(blank=True)
    may_fall = models.BooleanField()  # the criterion asks for brevity: padded copies may fail it
    seed = models.BigIntegerField()
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "number"], name="probe_batch_number"),
        ]
        triggers = append_only("a batch of probes")

    def __str__(self) -> str:
        return f"probes {self.number} of {self.system}"


class Probe(models.Model):
    """One changed copy of a trial. It is no trial, and enters no rate of the agent."""

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)  # its blind name
    batch = models.ForeignKey(ProbeBatch, on_delete=models.PROTECT, related_name="probes")
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=24)  # `reviews.core.probes.ProbeKind`
    position = models.PositiveIntegerField()  # in the bundle, in a drawn order
    record = models.BinaryField()  # zstd of ASCII JSON: the native record without verdicts
    change = models.JSONField()  # what was changed, and where

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["batch", "position"], name="probe_position"),
        ]
        triggers = append_only("a probe")

    def __str__(self) -> str:
        return f"probe {self.position} of {self.batch_id}"


class JudgeRun(BackgroundWork):
    """Verdicts asked of a model through the operator's endpoint, by a worker."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="judge_runs")
    number = models.PositiveIntegerField()
    criterion = models.ForeignKey(Criterion, on_delete=models.PROTECT, related_name="+")
    criterion_digest = models.UUIDField(null=True)
    rubric_version = models.CharField(max_length=200, blank=True)
    question = models.TextField(blank=True)
    probes = models.ForeignKey(
        ProbeBatch, on_delete=models.PROTECT, null=True, related_name="judge_runs"
    )  # null: stored trials
    grader_version = models.ForeignKey(GraderVersion, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=200)
    endpoint = models.CharField(max_length=300)  # host and path, never a secret
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    cost_usd = models.DecimalField(max_digits=20, decimal_places=10, default=0)
    n_errors = models.PositiveIntegerField(default=0)
    cancelled_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "number"], name="judge_run_number"),
            one_of("state", WorkState, name="judge_run_state_known"),
        ]

    def __str__(self) -> str:
        return f"judge run {self.number} of {self.system}"


class ProbeVerdict(models.Model):
    """What a judge version says of a probe. It stands apart from all verdicts on trials."""

    id = models.BigAutoField(primary_key=True)
    probe = models.ForeignKey(Probe, on_delete=models.PROTECT, related_name="verdicts")
    grader_version = models.ForeignKey(GraderVersion, on_delete=models.PROTECT, related_name="+")
    value = models.CharField(max_length=8)
    raw_word = models.TextField(blank=True)
    score = models.DecimalField(max_digits=60, decimal_places=30, null=True)
    rationale = models.TextField(blank=True)
    extra = models.TextField(blank=True)  # ASCII JSON
    key = models.CharField(max_length=512)  # its own id, else a digest of its content
    digest = models.UUIDField()
    upload = models.ForeignKey(Upload, on_delete=models.PROTECT, null=True, related_name="+")
    line = models.PositiveBigIntegerField(null=True)
    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, null=True, related_name="+")
    given_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["probe", "grader_version", "key"], name="probe_verdict_identity"
            ),
            one_of("value", VerdictValue, name="probe_verdict_value_known"),
        ]
        triggers = append_only("a verdict on a probe")

    def __str__(self) -> str:
        return f"{self.probe_id}: {self.value}"


class JudgeRunItem(models.Model):
    """One trial or probe of a judge run, and what came of it."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(
        JudgeRun, on_delete=models.PROTECT, db_index=False, related_name="items"
    )
    position = models.PositiveIntegerField()
    trial = models.ForeignKey(Trial, on_delete=models.PROTECT, null=True, related_name="+")
    probe = models.ForeignKey(Probe, on_delete=models.PROTECT, null=True, related_name="+")
    verdict = models.OneToOneField(
        Verdict, on_delete=models.PROTECT, null=True, related_name="judge_run_item"
    )
    n_tries = models.PositiveSmallIntegerField(default=0)
    value = models.CharField(max_length=8, blank=True)  # "" until it is answered
    failure = models.TextField(blank=True)  # why it ended as an error
    cost_usd = models.DecimalField(max_digits=20, decimal_places=10, null=True)
    seconds = models.DecimalField(max_digits=12, decimal_places=3, null=True)
    done_at = models.DateTimeField(null=True)
    tokens = ArrayField(models.BigIntegerField(), default=list)  # input, output

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="judge_run_item_position"),
            models.CheckConstraint(
                condition=Q(trial=None, probe__isnull=False) | Q(trial__isnull=False, probe=None),
                name="judge_run_item_of_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"item {self.position} of judge run {self.run_id}"
