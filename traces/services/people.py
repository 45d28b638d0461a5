"""Systems, members and API keys."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.text import slugify

from traces.core.rule_documents import rule_set_document
from traces.core.rules import RuleSet
from traces.models import ApiKey, Member, Role, RulesVersion, Scope, System, User


class PeopleError(Exception):
    """A refusal, with its sentence for people."""


class OneRoleError(PeopleError):
    """A person would hold two roles in a system."""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A fresh API key. `secret` is shown once and stored nowhere."""

    key: ApiKey
    secret: str


@transaction.atomic
def create_system(
    name: str, *, slug: str = "", by: User | None, engineer: User | None = None
) -> System:
    """Create a system with empty rules. A person who creates one is its first owner.

    Raises `PeopleError` when the name gives no address of its own, and `OneRoleError` when the
    first engineer is the owner.
    """
    if engineer is not None and engineer == by:
        raise OneRoleError("A person has one role in a system, and you will be its owner.")
    slug = slug or slugify(name)[:80]
    if not slug:
        raise PeopleError(f"The name {name!r} has no letters or digits to make an address of.")
    if System.objects.filter(slug=slug).exists():
        raise PeopleError(f"A system with the address {slug!r} exists already.")
    system = System.objects.create(name=name, slug=slug, created_by=by)
    version = RulesVersion.objects.create(
        system=system,
        number=1,
        document=rule_set_document(RuleSet()),
        reason="A new system: arguments are compared exactly, every tool counts as a write.",
        created_by=by,
    )
    system.shown_rules = version
    system.save(update_fields=["shown_rules"])
    if by is not None:
        Member.objects.create(system=system, user=by, role=Role.OWNER.value)
    if engineer is not None:
        Member.objects.create(system=system, user=engineer, role=Role.ENGINEER.value)
    return system


def set_member(system: System, user: User, role: Role) -> Member:
    """Give a person their one role in a system."""
    member, _ = Member.objects.update_or_create(
        system=system, user=user, defaults={"role": role.value}
    )
    return member


def create_api_key(
    system: System, *, by: User, name: str, scopes: tuple[Scope, ...], expires_at: datetime
) -> NewKey:
    """Create a key for an engineer of the system, who counts as the uploader.

    Raises `PeopleError` when the person is not an engineer of the system.
    """
    is_engineer = Member.objects.filter(system=system, user=by, role=Role.ENGINEER.value).exists()
    if not is_engineer:
        raise PeopleError(
            f"{by.username} is not an engineer of {system.slug}: only an engineer holds a key."
        )
    prefix = secrets.token_hex(6)
    secret = f"evs_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        system=system,
        user=by,
        name=name,
        prefix=prefix,
        secret_sha256=hash_secret(secret),
        scopes=[scope.value for scope in scopes],
        expires_at=expires_at,
    )
    return NewKey(key=key, secret=secret)


def hash_secret(secret: str) -> bytes:
    """The stored form of a key: it has 256 random bits, so one round of SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).digest()


def revoke_api_key(key: ApiKey, *, now: datetime) -> None:
    """End a key at once."""
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now)
