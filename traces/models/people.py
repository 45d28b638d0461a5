"""People, the systems that they work on, and the keys of their programs."""

from __future__ import annotations

import uuid
from enum import StrEnum

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models

from evalsite.common.fields import one_of
from evalsite.common.triggers import append_only


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


class MemberChange(models.Model):
    """A change of a person's role in a system. `old` or `new` "": no member."""

    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    old = models.CharField(max_length=16, blank=True)
    new = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True)
    by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+"
    )  # null: the operator, by command
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(old__in=["", *(r.value for r in Role)])
                & models.Q(new__in=["", *(r.value for r in Role)])
                & ~models.Q(old=models.F("new")),
                name="member_change_known",
            ),
        ]
        indexes = [models.Index(fields=["system", "user", "-id"], name="member_change_newest")]
        triggers = append_only("a change of role")

    def __str__(self) -> str:
        return f"{self.user_id}: {self.old or 'none'} to {self.new or 'none'}"


class Invitation(models.Model):
    """An address by which one person becomes a member. Only the hash of its secret is stored."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="invitations")
    role = models.CharField(max_length=16)
    note = models.CharField(max_length=200)  # for whom it is
    secret_sha256 = models.BinaryField(max_length=32)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    taken_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    taken_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [one_of("role", Role, name="invitation_role_known")]

    def __str__(self) -> str:
        return f"{self.role} for {self.note}"


class SignedInDevice(models.Model):
    """A session of a person, so that they can see and end it. Its key is stored as a hash."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="devices")
    session_sha256 = models.BinaryField(max_length=32, unique=True)
    address = models.CharField(max_length=64, blank=True)
    agent = models.CharField(max_length=300, blank=True)
    signed_in_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["user", "-last_seen_at"], name="device_newest")]

    def __str__(self) -> str:
        return f"device {self.uuid}"
