"""Systems, members and API keys."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from evalsite.common.audit import AuditedObject, record
from traces.core.rule_documents import rule_set_document
from traces.core.rules import RuleSet
from traces.core.text_marks import clean_text, says_nothing
from traces.models import ApiKey, Member, MemberChange, Role, RulesVersion, Scope, System, User
from traces.permissions.people import owner_refusal, owners_of, removal_refusal, role_refusal

LONGEST_REASON: Final = 2_000  # characters
LONGEST_KEY_NAME: Final = 200
MOST_DAYS: Final = 365  # that a key is good for


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
    now = timezone.now()
    if by is not None:
        add_member(system, by, Role.OWNER, by=by, reason="Made the system.", now=now)
    if engineer is not None:
        add_member(system, engineer, Role.ENGINEER, by=by, reason="Its first engineer.", now=now)
    return system


@transaction.atomic
def set_member(
    system: System,
    user: User,
    role: Role,
    *,
    by: User | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> Member:
    """Give a person their one role in a system; `by` None is the operator. The same again is none.

    Raises `PeopleError` when `by` is no owner, changes their own role, or when the person is the
    only owner.
    """
    lock_system(system)
    member = Member.objects.filter(system=system, user=user).first()
    if member is not None and member.role == role.value:
        return member
    owners, actor, at = owners_of(system.pk), by.pk if by else None, now or timezone.now()
    if member is None:
        _refuse(owner_refusal(actor, owners))
        return add_member(system, user, role, by=by, reason=reason, now=at)
    _refuse(role_refusal(user, by=actor, owners=owners))
    old, member.role, member.since = member.role, role.value, at
    member.save(update_fields=["role", "since"])
    _note_change(system, user, old=old, new=role.value, by=by, reason=reason, now=at)
    return member


def add_member(
    system: System, user: User, role: Role, *, by: User | None, reason: str, now: datetime
) -> Member:
    """Make a person a member who is none yet. The caller has the system locked, and may do it."""
    member = Member.objects.create(system=system, user=user, role=role.value)
    member.since = now  # the column's own default is the database's clock
    member.save(update_fields=["since"])
    _note_change(system, user, old="", new=role.value, by=by, reason=reason, now=now)
    return member


@transaction.atomic
def remove_member(
    system: System,
    user: User,
    *,
    by: User | None = None,
    reason: str = "",
    now: datetime | None = None,
) -> None:
    """Take a person out of a system and end their keys; what they did there stays.

    Raises `PeopleError` when they are no member or the only owner, and when `by` is no owner.
    """
    lock_system(system)
    member = Member.objects.filter(system=system, user=user).first()
    if member is None:
        raise PeopleError(f"{user.username} is no member of {system.slug}.")
    _refuse(removal_refusal(user, by=by.pk if by else None, owners=owners_of(system.pk)))
    at, old = now or timezone.now(), member.role
    member.delete()
    for key in ApiKey.objects.filter(system=system, user=user, revoked_at=None).order_by("pk"):
        revoke_api_key(key, by=by, reason="Its holder is no longer a member.", now=at)
    _note_change(system, user, old=old, new="", by=by, reason=reason, now=at)


def lock_system(system: System) -> None:
    """Keep everybody else from changing the members of a system until the transaction ends."""
    System.objects.select_for_update(no_key=True).get(pk=system.pk)


def _refuse(sentence: str) -> None:
    if sentence:
        raise PeopleError(sentence)


def _note_change(
    system: System, user: User, *, old: str, new: str, by: User | None, reason: str, now: datetime
) -> None:
    why = clean_text(reason).strip()[:LONGEST_REASON]
    change = MemberChange.objects.create(
        system=system, user=user, old=old, new=new, by=by, reason=why, changed_at=now
    )
    record(
        "member.role_changed" if old and new else "member.added" if new else "member.removed",
        system_pk=system.pk,
        by_pk=by.pk if by else None,
        at=now,
        obj=AuditedObject("person", str(user.uuid), user.printed_name),
        before={"role": old} if old else None,
        after={"role": new} if new else None,
        reason=why,
        rows=[("traces_memberchange", change.pk)],
        role=old if by == user and not new else None,
    )


@transaction.atomic
def create_api_key(
    system: System,
    *,
    by: User,
    name: str,
    scopes: tuple[Scope, ...],
    expires_at: datetime,
    now: datetime | None = None,
) -> NewKey:
    """Create a key for an engineer of the system, who counts as the uploader.

    Raises `PeopleError` when the person is not an engineer of the system, and for a key without a
    name or scopes, or one that would be good for nothing or for more than a year.
    """
    at = now or timezone.now()
    named = clean_text(name).strip()
    is_engineer = Member.objects.filter(
        system=system, user=by, user__is_active=True, role=Role.ENGINEER.value
    ).exists()
    if not is_engineer:
        raise PeopleError(
            f"{by.username} is not an engineer of {system.slug}: only an engineer holds a key."
        )
    if says_nothing(named) or len(named) > LONGEST_KEY_NAME:
        raise PeopleError(f"A key has a name of at most {LONGEST_KEY_NAME} characters.")
    if not scopes:
        raise PeopleError("A key needs a scope: ingest, read or both.")
    if not at < expires_at <= at + timedelta(days=MOST_DAYS, minutes=1):
        raise PeopleError(f"A key expires in the future and within {MOST_DAYS} days.")
    prefix = secrets.token_hex(6)
    secret = f"evs_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        system=system,
        user=by,
        name=named,
        prefix=prefix,
        secret_sha256=hash_secret(secret),
        scopes=[scope.value for scope in scopes],
        expires_at=expires_at,
    )
    record(
        "api_key.made",
        system_pk=system.pk,
        by_pk=by.pk,
        at=at,
        obj=_audited(key),
        after={"scopes": key.scopes, "expires_at": expires_at.isoformat()},
    )
    return NewKey(key=key, secret=secret)


def hash_secret(secret: str) -> bytes:
    """The stored form of a key: it has 256 random bits, so one round of SHA-256 is enough."""
    return hashlib.sha256(secret.encode()).digest()


@transaction.atomic
def revoke_api_key(key: ApiKey, *, now: datetime, by: User | None = None, reason: str = "") -> None:
    """End a key at once; one that has ended stays as it is."""
    if not ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=now):
        return
    record(
        "api_key.revoked",
        system_pk=key.system_id,
        by_pk=by.pk if by else None,
        at=now,
        obj=_audited(key),
        after={"revoked_at": now.isoformat()},
        reason=reason,
    )


def _audited(key: ApiKey) -> AuditedObject:
    return AuditedObject("api_key", str(key.uuid), f"{key.name} (evs_{key.prefix}…)")
