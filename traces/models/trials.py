"""Trials, their transcripts, and the distinct calls and trajectories among them."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only
from traces.core.records import TrialStatus
from traces.core.trajectory import ArgumentsForm
from traces.models.people import System
from traces.models.rules import RulesVersion
from traces.models.uploads import Upload
from traces.models.work import Release, Run, Task, TaskVersion


class Tool(models.Model):
    """A tool that some stored trace of the system used."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="tools")
    name = models.TextField()  # NFC
    digest = models.UUIDField()  # of the name: names may be longer than an index row

    class Meta:
        constraints = [models.UniqueConstraint(fields=["system", "digest"], name="tool_once")]

    def __str__(self) -> str:
        return self.name


class DistinctCall(models.Model):
    """A tool with arguments, stored once for a system however often it is called."""

    id = models.BigAutoField(primary_key=True)
    tool = models.ForeignKey(Tool, on_delete=models.PROTECT, db_index=False, related_name="+")
    form = models.CharField(max_length=8)
    arguments = models.TextField()  # canonical JSON text; the raw text when it is not JSON
    digest = models.UUIDField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tool", "digest"], name="distinct_call_once"),
            one_of("form", ArgumentsForm, name="distinct_call_form_known"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.arguments}"


class Trajectory(models.Model):
    """The agent's own actions in a transcript, stored once for a task.

    `steps` holds the id of a `DistinctCall`, or 0 for an agent message without a call;
    `outcomes` one letter a step (c committed, r rejected, u unknown, m message); `groups` the
    running number of the message that made the step. A trajectory with a call whose arguments
    were not recorded is never shared.
    """

    id = models.BigAutoField(primary_key=True)
    task = models.ForeignKey(Task, on_delete=models.PROTECT, db_index=False, related_name="+")
    digest = models.UUIDField()
    steps = ArrayField(models.BigIntegerField())
    outcomes = models.TextField()
    groups = ArrayField(models.IntegerField())
    is_comparable = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "digest"], name="trajectory_once"),
        ]

    def __str__(self) -> str:
        return f"trajectory {self.pk}"


class TrajectoryPaths(models.Model):
    """The path of a trajectory at every level, under one version of the rules.

    A key is 16 bytes; two trajectories of a task with the same key are the same path at that
    level. `_msg` keys count an agent message without a call as a step.
    """

    id = models.BigAutoField(primary_key=True)
    trajectory = models.ForeignKey(
        Trajectory, on_delete=models.PROTECT, related_name="paths", db_index=False
    )
    rules = models.ForeignKey(
        RulesVersion, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    algorithm = models.SmallIntegerField()
    # Committed ones under the rules' tool kinds; null: stored before they were counted.
    n_writes = models.PositiveIntegerField(null=True)
    n_handoffs = models.PositiveIntegerField(null=True)
    tool_set = models.UUIDField()
    effects = models.UUIDField()
    reads_any_order = models.UUIDField()
    reads_any_order_msg = models.UUIDField()
    sequence = models.UUIDField()
    sequence_msg = models.UUIDField()
    equivalent = models.UUIDField()
    equivalent_msg = models.UUIDField()
    exact = models.UUIDField()
    exact_msg = models.UUIDField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trajectory", "rules"], name="trajectory_paths_once"),
        ]

    def __str__(self) -> str:
        return f"paths of {self.trajectory}"


class Trial(models.Model):
    """One attempt at a task in a run."""

    id = models.BigAutoField(primary_key=True)
    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, db_index=False, related_name="+")
    release = models.ForeignKey(Release, on_delete=models.PROTECT, db_index=False, related_name="+")
    run = models.ForeignKey(Run, on_delete=models.PROTECT, db_index=False, related_name="+")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, db_index=False, related_name="+")
    task_version = models.ForeignKey(
        TaskVersion, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    trajectory = models.ForeignKey(
        Trajectory, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    label = models.CharField(max_length=512)  # the trial's number or name in its run
    attempt = models.PositiveIntegerField()
    status = models.CharField(max_length=16)
    error = models.TextField(blank=True)
    environment = models.CharField(max_length=64)
    external_id = models.CharField(max_length=512, blank=True)
    digest = models.UUIDField()  # of the canonical record without its verdicts
    upload = models.ForeignKey(Upload, on_delete=models.PROTECT, db_index=False, related_name="+")
    line = models.PositiveBigIntegerField()
    n_messages = models.PositiveIntegerField()
    n_tool_calls = models.PositiveIntegerField()
    n_rejected = models.PositiveIntegerField()
    cost_usd = models.DecimalField(max_digits=40, decimal_places=20, null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    seconds = models.DecimalField(max_digits=20, decimal_places=6, null=True)
    termination = models.CharField(max_length=200, blank=True)
    has_fault = models.BooleanField()
    warnings = ArrayField(models.CharField(max_length=64))  # codes; sentences in the record
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "task", "label", "attempt"], name="trial_identity"
            ),
            one_of("status", TrialStatus, name="trial_status_known"),
            models.CheckConstraint(condition=Q(attempt__gte=1), name="trial_attempt_from_1"),
        ]
        indexes = [
            models.Index(fields=["task", "release"], name="trial_task_release"),
            models.Index(fields=["upload", "id"], name="trial_upload"),
            models.Index(fields=["system", "-id"], name="trial_newest"),
            models.Index(
                fields=["system", "external_id"],
                name="trial_external_id",
                condition=~Q(external_id=""),
            ),
        ]
        triggers = append_only("a trial")

    def __str__(self) -> str:
        return f"trial {self.label}"


class TrialRecord(models.Model):
    """All of a trial's record but its messages and verdicts: states, facts, unknown fields."""

    trial = models.OneToOneField(
        Trial, on_delete=models.PROTECT, primary_key=True, related_name="record"
    )
    source_member = models.CharField(max_length=512, blank=True)
    source_offset = models.BigIntegerField()  # bytes into the decompressed upload or member
    source_length = models.BigIntegerField()
    content = models.BinaryField()  # zstd of ASCII JSON: {"rest": …, "warnings": […]}

    class Meta:
        triggers = append_only("the record of a trial")

    def __str__(self) -> str:
        return f"record of {self.trial_id}"


class TranscriptChunk(models.Model):
    """A stretch of a trial's messages, in native form."""

    id = models.BigAutoField(primary_key=True)
    trial = models.ForeignKey(
        Trial, on_delete=models.PROTECT, related_name="chunks", db_index=False
    )
    first_step = models.PositiveIntegerField()
    n_steps = models.PositiveIntegerField()
    content = models.BinaryField()  # zstd of ASCII JSON: [message, …]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["trial", "first_step"], name="transcript_chunk_once"),
        ]
        triggers = append_only("a transcript")

    def __str__(self) -> str:
        return f"steps from {self.first_step} of {self.trial_id}"
