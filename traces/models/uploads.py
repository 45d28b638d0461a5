"""Uploads: the bytes as they came, the job that reads them, and the ledger."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.db import models
from django.db.models import F, Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.models.people import ApiKey, System, User
from traces.models.work import Release


class Door(StrEnum):
    """By which way an upload came in."""

    PAGE = "page"
    API = "api"
    COMMAND = "command"
    SAMPLE = "sample"


class UploadState(StrEnum):
    RECEIVED = "received"  # safe on disk, waiting for a worker
    PROCESSING = "processing"
    DONE = "done"  # every record is in the ledger
    FAILED = "failed"  # the file as a whole could not be read


class LineOutcome(StrEnum):
    """What became of one record, where it is not simply stored or already there."""

    CONFLICT = "conflict"
    REFUSED = "refused"
    PARTLY = "partly"  # the record is stored, a verdict of it was refused
    NOTE = "note"


class Upload(models.Model):
    """One accepted upload. Its bytes are kept unchanged under `stored_as`."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="uploads")
    release = models.ForeignKey(
        Release, on_delete=models.PROTECT, null=True, related_name="+"
    )  # null: each record names its own
    run_name = models.CharField(max_length=512, blank=True)
    format_asked = models.CharField(max_length=32, default="auto")
    file_name = models.CharField(max_length=255)
    size = models.BigIntegerField()  # bytes as received
    sha256 = models.BinaryField(max_length=32)
    stored_as = models.CharField(max_length=200)
    door = models.CharField(max_length=16)
    idempotency_key = models.CharField(max_length=255, null=True)  # noqa: DJ001 - absent is not ""
    received_at = models.DateTimeField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            one_of("door", Door, name="upload_door_known"),
            models.UniqueConstraint(
                fields=["system", "idempotency_key"], name="upload_idempotency_key_once"
            ),
        ]
        indexes = [models.Index(fields=["system", "-id"], name="upload_newest")]
        triggers = append_only("an upload")

    def __str__(self) -> str:
        return self.file_name


class UploadJob(models.Model):
    """The state of reading an upload: the truth that Celery messages only hint at.

    `n_read` is the checkpoint: it moves in the transaction that stores a batch, so a job that
    was killed goes on exactly behind the last stored record.
    """

    upload = models.OneToOneField(Upload, on_delete=models.PROTECT, related_name="job")
    state = models.CharField(max_length=16, default=UploadState.RECEIVED.value)
    format = models.CharField(max_length=32, blank=True)
    n_read = models.PositiveBigIntegerField(default=0)  # items of the reader that are settled
    bytes_read = models.BigIntegerField(default=0)
    n_received = models.PositiveBigIntegerField(default=0)
    n_stored = models.PositiveBigIntegerField(default=0)
    n_duplicate = models.PositiveBigIntegerField(default=0)
    n_conflict = models.PositiveBigIntegerField(default=0)
    n_refused = models.PositiveBigIntegerField(default=0)
    n_trials = models.PositiveBigIntegerField(default=0)  # trials stored
    n_verdicts = models.PositiveBigIntegerField(default=0)  # verdicts stored
    n_verdicts_refused = models.PositiveBigIntegerField(default=0)
    n_waiting = models.PositiveBigIntegerField(default=0)  # verdicts that wait for their trial
    n_warnings = models.PositiveBigIntegerField(default=0)
    n_tries = models.PositiveIntegerField(default=0)
    failure = models.TextField(blank=True)  # one sentence
    started_at = models.DateTimeField(null=True)
    touched_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            one_of("state", UploadState, name="upload_job_state_known"),
            models.CheckConstraint(
                condition=Q(
                    n_received=F("n_stored") + F("n_duplicate") + F("n_conflict") + F("n_refused")
                ),
                name="upload_job_ledger_balances",
            ),
        ]
        indexes = [
            models.Index(
                fields=["touched_at"],
                name="upload_job_open",
                condition=Q(state__in=["received", "processing"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.upload}: {self.state}"


class UploadLine(models.Model):
    """One record of an upload that a person should know of: refused, in conflict, or odd."""

    upload = models.ForeignKey(Upload, on_delete=models.PROTECT, related_name="lines")
    outcome = models.CharField(max_length=16)
    number = models.PositiveBigIntegerField()
    member = models.CharField(max_length=512, blank=True)
    offset = models.BigIntegerField()  # bytes into the decompressed file or member
    length = models.BigIntegerField()
    code = models.CharField(max_length=64)
    place = models.CharField(max_length=500, blank=True)
    sentence = models.TextField()

    class Meta:
        constraints = [one_of("outcome", LineOutcome, name="upload_line_outcome_known")]
        indexes = [models.Index(fields=["upload", "id"], name="upload_line_order")]
        triggers = append_only("a line of the ledger")

    def __str__(self) -> str:
        return f"line {self.number}: {self.sentence}"
