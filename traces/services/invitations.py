"""Invitations: an address that makes one person a member of a system."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from evalsite.common.audit import AuditedObject, record
from traces.core.text_marks import clean_text, has_marks, says_nothing
from traces.models import Invitation, Member, Role, System, User
from traces.permissions.people import owner_refusal, owners_of
from traces.services.people import PeopleError, add_member, hash_secret, lock_system

LONGEST_NOTE: Final = 200  # characters
LONGEST_PRINTED_NAME: Final = 150
DAYS: Final = 7  # that an invitation is good for
MOST_DAYS: Final = 30
NAME_TAKEN: Final = "Somebody has this name already; choose another."
HIDDEN: Final = "A name has no characters that cannot be seen."


class InvitationOverError(PeopleError):
    """An invitation that nobody can take (any longer)."""


class PersonError(PeopleError):
    """A field of the new person, and what is wrong with it."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A fresh invitation. `secret` is shown once and stored nowhere."""

    invitation: Invitation
    secret: str


@dataclass(frozen=True, slots=True)
class NewPerson:
    """What somebody without an account says of themselves."""

    username: str
    printed_name: str
    password: str


@transaction.atomic
def make_invitation(
    system: System, *, role: Role, note: str, by: User, now: datetime, days: int = DAYS
) -> NewInvitation:
    """Invite one person, who is described by `note`.

    Raises `PeopleError` when `by` is no owner, and for a note or a number of days out of bounds.
    """
    lock_system(system)
    if refusal := owner_refusal(by.pk, owners_of(system.pk)):
        raise PeopleError(refusal)
    for_whom = clean_text(note).strip()
    if says_nothing(for_whom) or len(for_whom) > LONGEST_NOTE:
        raise PeopleError(f"Say for whom it is, in at most {LONGEST_NOTE} characters.")
    if not 1 <= days <= MOST_DAYS:
        raise PeopleError(f"An invitation is good for 1 to {MOST_DAYS} days.")
    secret = secrets.token_urlsafe(32)
    invitation = Invitation.objects.create(
        system=system,
        role=role.value,
        note=for_whom,
        secret_sha256=hash_secret(secret),
        made_by=by,
        made_at=now,
        expires_at=now + timedelta(days=days),
    )
    record(
        "invitation.made",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=_audited(invitation),
        after={"role": role.value, "expires_at": invitation.expires_at.isoformat()},
    )
    return NewInvitation(invitation=invitation, secret=secret)


@transaction.atomic
def revoke_invitation(invitation: Invitation, *, by: User, now: datetime) -> None:
    """End an invitation; one that is over already stays as it is.

    Raises `PeopleError` when `by` is no owner, and `InvitationOverError` when it has been taken.
    """
    if refusal := owner_refusal(by.pk, owners_of(invitation.system_id)):
        raise PeopleError(refusal)
    row = Invitation.objects.select_for_update().get(pk=invitation.pk)
    if row.taken_at is not None:
        raise InvitationOverError("It has been taken; remove the member instead.")
    if row.revoked_at is not None:
        return
    row.revoked_at = now
    row.save(update_fields=["revoked_at"])
    record(
        "invitation.revoked",
        system_pk=row.system_id,
        by_pk=by.pk,
        at=now,
        obj=_audited(row),
        after={"revoked_at": now.isoformat()},
    )


def open_invitation(uuid: UUID, secret: str, *, now: datetime) -> Invitation | None:
    """The invitation of that address, None for one that is unknown, over, or of no owner any more."""
    row = Invitation.objects.select_related("system", "made_by").filter(uuid=uuid).first()
    stored = bytes(row.secret_sha256) if row else bytes(32)
    is_right = hmac.compare_digest(stored, hash_secret(clean_text(secret)))
    if row is None or not is_right:
        return None
    return row if _is_open(row, now=now) else None


def _is_open(row: Invitation, *, now: datetime) -> bool:
    if row.taken_at is not None or row.revoked_at is not None or row.expires_at <= now:
        return False
    return row.made_by_id in owners_of(row.system_id)


@transaction.atomic
def take_invitation(invitation: Invitation, *, by: User, now: datetime) -> Member:
    """Make the person a member. Raises `InvitationOverError`, and `PeopleError` for a member."""
    row = _locked(invitation, now=now)
    return _taken(row, by=by, now=now)


@transaction.atomic
def join_by_invitation(invitation: Invitation, person: NewPerson, *, now: datetime) -> User:
    """Make an account for somebody without one, and make them a member.

    Raises `InvitationOverError`, and `PersonError` for a name or a password that cannot be.
    """
    row = _locked(invitation, now=now)
    user = _account(person)
    _taken(row, by=user, now=now)
    return user


def _locked(invitation: Invitation, *, now: datetime) -> Invitation:
    """The invitation, kept from everybody else, still open."""
    lock_system(invitation.system)
    row = (
        Invitation.objects.select_for_update(of=("self",))
        .select_related("system", "made_by")
        .get(pk=invitation.pk)
    )
    if not _is_open(row, now=now):
        raise InvitationOverError("The invitation is over.")
    return row


def _taken(row: Invitation, *, by: User, now: datetime) -> Member:
    held = Member.objects.filter(system=row.system, user=by).values_list("role", flat=True).first()
    if held is not None:
        raise PeopleError(f"You are a member of {row.system.name} already, as {held}.")
    row.taken_by, row.taken_at = by, now
    row.save(update_fields=["taken_by", "taken_at"])
    member = add_member(
        row.system, by, Role(row.role), by=row.made_by, reason=f"Invited: {row.note}", now=now
    )
    record(
        "invitation.taken",
        system_pk=row.system_id,
        by_pk=by.pk,
        at=now,
        obj=_audited(row),
        after={"role": row.role},
    )
    return member


def _account(person: NewPerson) -> User:
    username = User.normalize_username(person.username.strip())
    printed = " ".join(person.printed_name.split())
    first, _, last = printed.partition(" ")
    user = User(username=username, first_name=first, last_name=last)
    if has_marks(printed):
        raise PersonError("printed_name", HIDDEN)
    if not 1 <= len(printed) <= LONGEST_PRINTED_NAME:
        raise PersonError("printed_name", f"At most {LONGEST_PRINTED_NAME} characters.")
    if User.objects.filter(username__iexact=username).exists():
        raise PersonError("username", NAME_TAKEN)
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        raise PersonError("username", " ".join(error.messages)) from None
    try:
        validate_password(person.password, user)
    except ValidationError as error:
        raise PersonError("password", " ".join(error.messages)) from None
    user.set_password(person.password)
    try:
        with transaction.atomic():
            user.save(force_insert=True)
    except IntegrityError:
        raise PersonError("username", NAME_TAKEN) from None
    return user


def _audited(row: Invitation) -> AuditedObject:
    return AuditedObject("invitation", str(row.uuid), f"{row.role} for {row.note}")
