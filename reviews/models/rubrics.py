"""Rubrics: named, versioned texts of a system that say what a criterion asks."""

from __future__ import annotations

from django.db import models

from evalsite.common.triggers import append_only
from reviews.models.adjudications import Adjudication
from traces.models import System, User


class Rubric(models.Model):
    """A rubric of a system, by the name that contracts use as a criterion."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="rubrics")
    name = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["system", "name"], name="rubric_once")]

    def __str__(self) -> str:
        return self.name


class RubricVersion(models.Model):
    """One text of a rubric. It decides nothing until a contract names it."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="versions")
    version = models.CharField(max_length=200)  # as contracts name it
    text = models.TextField()
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rubric", "version"], name="rubric_version_once"),
        ]
        triggers = append_only("a rubric version")

    def __str__(self) -> str:
        return f"{self.rubric} {self.version}"


class RubricRequest(models.Model):
    """That a criterion's text is unclear: opened by an adjudication, closed by a new version."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    criterion = models.CharField(max_length=512)
    rubric_version = models.CharField(max_length=200, blank=True)  # that was found unclear
    adjudication = models.OneToOneField(
        Adjudication, on_delete=models.PROTECT, related_name="rubric_request"
    )
    reason = models.TextField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    opened_at = models.DateTimeField()
    answered_by = models.ForeignKey(
        RubricVersion, on_delete=models.PROTECT, null=True, related_name="answers"
    )
    closed_at = models.DateTimeField(null=True)
    closed_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    closing_reason = models.TextField(blank=True)

    class Meta:
        indexes = [models.Index(fields=["system", "-id"], name="rubric_request_newest")]

    def __str__(self) -> str:
        return f"request on {self.criterion}"
