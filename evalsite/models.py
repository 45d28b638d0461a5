"""Rows about the running site itself."""

from django.db import models


class WorkerSign(models.Model):
    """When a worker last took a message; one row, number 1."""

    seen_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.CheckConstraint(condition=models.Q(id=1), name="evalsite_workersign_one_row"),
        )

    def __str__(self) -> str:
        return f"worker seen at {self.seen_at:%Y-%m-%d %H:%M:%S}"
