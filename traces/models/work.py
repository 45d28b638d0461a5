"""Releases, tasks and runs: what the trials are trials of."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.db import models
from django.db.models import Q

from evalsite.common.triggers import append_only
from traces.models.people import System, User


class Split(StrEnum):
    TUNING = "tuning"
    HELD_OUT = "held_out"
    REGRESSION = "regression"


class Release(models.Model):
    """One fixed configuration of what is under test.

    The row is also the lock that every writer of the release's evidence takes. Evidence that
    names no version belongs to the system's one unversioned release, which no gate counts.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="releases")
    name = models.CharField(max_length=512)  # "" for the unversioned release
    is_unversioned = models.BooleanField(default=False)
    details = models.TextField(blank=True)  # the version record, as JSON text
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "name"], name="release_name_once"),
            models.CheckConstraint(
                condition=Q(is_unversioned=True, name="") | (Q(is_unversioned=False) & ~Q(name="")),
                name="release_named_unless_unversioned",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """The name that pages show."""
        return self.name or "no release"


class Task(models.Model):
    """One test case of a system. Title, family and split follow its newest version."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="tasks")
    task_id = models.CharField(max_length=512)  # NFC
    sort_key = models.CharField(max_length=1200)  # natural order of task_id
    title = models.CharField(max_length=500, blank=True)
    family = models.CharField(max_length=200, blank=True)
    split = models.CharField(max_length=16, blank=True)  # "" until somebody says
    # By which contract pages decide the task's trials; moves when all of them are graded under it.
    contract = models.ForeignKey(
        "traces.ContractVersion", on_delete=models.PROTECT, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "task_id"], name="task_id_once"),
            models.CheckConstraint(
                condition=Q(split__in=["", *(s.value for s in Split)]), name="task_split_known"
            ),
        ]

    def __str__(self) -> str:
        return self.task_id


class TaskVersion(models.Model):
    """One version of a task: another input, facts or criteria make another version.

    A task that no file defined has a version with an empty definition.
    """

    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.UUIDField()
    definition = models.BinaryField()  # zstd of ASCII JSON
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["task", "digest"], name="task_version_digest_once"),
            models.UniqueConstraint(fields=["task", "number"], name="task_version_number_once"),
        ]
        triggers = append_only("a task version")

    def __str__(self) -> str:
        return f"{self.task} v{self.number}"


class Run(models.Model):
    """A number of trials of a set of tasks against one release, declared or simply uploaded."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="runs")
    name = models.CharField(max_length=512)
    begun_at = models.DateTimeField()  # the server's time of declaration, else of the first byte
    declared_at = models.DateTimeField(null=True)
    declared_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    declared_trials = models.PositiveIntegerField(null=True)  # per task
    details = models.TextField(blank=True)  # what its files say of the run, as JSON text

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["release", "name"], name="run_name_once"),
            models.CheckConstraint(
                condition=Q(declared_at__isnull=True, declared_trials__isnull=True)
                | Q(declared_at__isnull=False, declared_trials__gte=1),
                name="run_declared_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RunTask(models.Model):
    """A task that a declared run is to try."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="declared_tasks")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "task"], name="run_task_once"),
        ]

    def __str__(self) -> str:
        return f"{self.task} in {self.run}"
