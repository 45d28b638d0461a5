"""People, the systems that they work on, and the keys of their programs."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models

from evalsite.common.fields import one_of


class Role(StrEnum):
    """What a member may do in a system (docs/design.md section 9)."""

    VIEWER = "viewer"
    ENGINEER = "engineer"
    REVIEWER = "reviewer"
    OWNER = "owner"


class Scope(StrEnum):
    """What an API key may be used for."""

    INGEST = "ingest"
    READ = "read"


class User(AbstractUser):
    """A person who signs in. Superusers operate the site; that right signs nothing."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)

    @property
    def printed_name(self) -> str:
        """The name that pages and signatures show."""
        return self.get_full_name() or self.username


class System(models.Model):
    """An AI agent in use: it has members and a risk tier."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    source_note = models.TextField(blank=True)  # licence and source of sample data
    # Which rules the stored path keys of the pages were made with; moves when a new version
    # has been computed for every trajectory.
    shown_rules = models.ForeignKey(
        "traces.RulesVersion", on_delete=models.PROTECT, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+"
    )  # null: the operator, by command

    def __str__(self) -> str:
        return self.name


class Member(models.Model):
    """A person's one role in a system."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="members")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=16, choices=[(r.value, r.value) for r in Role])
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["system", "user"], name="member_one_role"),
            one_of("role", Role, name="member_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role})"


class ApiKey(models.Model):
    """A key of a system, held by a named engineer, who counts as the uploader.

    Only the hash of the secret is stored; the prefix finds the row.
    """

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="api_keys")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=200)
    prefix = models.CharField(max_length=16, unique=True)
    secret_sha256 = models.BinaryField(max_length=32)
    scopes = ArrayField(models.CharField(max_length=16))
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
