"""Argument rules and tool kinds: versioned data."""

from __future__ import annotations

import uuid

from django.db import models

from evalsite.common.triggers import append_only
from traces.models.people import System, User


class RulesVersion(models.Model):
    """One version of a system's argument rules and tool kinds.

    `document` is the data of `traces.core.rules.RuleSet`. A system without a version uses the
    empty rule set: arguments are exact and every tool counts as a write.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="rules_versions")
    number = models.PositiveIntegerField()
    document = models.JSONField()
    reason = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "number"], name="rules_version_number"),
        ]
        triggers = append_only("a rules version")

    def __str__(self) -> str:
        return f"rules {self.number} of {self.system}"
