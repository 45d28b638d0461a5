"""Asking a signed-in person for their password again, before what needs it.

Wrong tries are counted in the tables of django-axes, so that all processes of the site share them,
under a name that no sign-in can have: being locked out here and at sign-in are two things.
"""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.db import transaction
from django.db.models import F, Sum

from traces.models import User

log = logging.getLogger("evalsite.accounts")

WRONG: Final = "The password is wrong."
NO_PASSWORD: Final = (
    "You have no password, so nothing can be confirmed by it. The site's operator gives you one: "
    "manage.py changepassword USERNAME."
)
# A name at sign-in has at most 150 characters.
_COUNTED_AS: Final = "password asked again ".ljust(152, ".")


@dataclass(frozen=True, slots=True)
class Reauthentication:
    """Whether a password was the person's, and why not. `sentence` is "" when it was."""

    is_right: bool
    sentence: str
    is_locked: bool = False
    tries_left: int = 0


def reauthenticate(user: User, password: str, *, address: str, now: datetime) -> Reauthentication:
    """Check the password of the signed-in person; too many wrong tries are refused for a while.

    Tries of a person count together wherever they come from, since a session that was taken over
    may move. To be called outside of every transaction: a refusal that rolled its own count back
    would never lock.
    """
    with transaction.atomic(durable=True):
        # Tries of one person wait for each other, so that many at once count each.
        person = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        answer = _checked(person, password, address=address, now=now)
    if not answer.is_right:
        log.warning(
            "password refused",
            extra={"user": user.pk, "locked": answer.is_locked, "address": address},
        )
    return answer


def password_refusal(user: User, password: str, *, address: str, now: datetime) -> str:
    """Why the password does not confirm that this is the person; "" when it does."""
    return reauthenticate(user, password, address=address, now=now).sentence


def _checked(person: User, password: str, *, address: str, now: datetime) -> Reauthentication:
    if not person.has_usable_password() or not person.is_active:
        return Reauthentication(is_right=False, sentence=NO_PASSWORD)
    n_before = _tries_of(person, now=now)
    # Not `person.check_password`: a newer hash would end the person's sessions. It runs when
    # locked, too, so that the time tells nothing.
    is_right = check_password(password, person.password)
    if n_before >= settings.AXES_FAILURE_LIMIT:
        return Reauthentication(is_right=False, sentence=locked_sentence(), is_locked=True)
    if is_right:
        AccessAttempt.objects.filter(username=_counted_as(person)).delete()
        return Reauthentication(is_right=True, sentence="")
    _count(person, address=address, now=now)
    left = settings.AXES_FAILURE_LIMIT - n_before - 1
    if left <= 0:
        return Reauthentication(is_right=False, sentence=locked_sentence(), is_locked=True)
    return Reauthentication(is_right=False, sentence=WRONG, tries_left=left)


def locked_sentence() -> str:
    """What is said to a person who gave a wrong password too often."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    wait = "a minute" if minutes == 1 else f"{minutes} minutes"
    return f"The password was wrong too often. Wait {wait} after the last try."


def _tries_of(person: User, *, now: datetime) -> int:
    """The wrong tries that still count; they are forgotten together, a wait after the last."""
    tries = AccessAttempt.objects.filter(username=_counted_as(person))
    if not tries.filter(attempt_time__gt=now - settings.AXES_COOLOFF_TIME).exists():
        tries.delete()
        return 0
    total: int | None = tries.aggregate(n=Sum("failures_since_start"))["n"]
    return total or 0


def _count(person: User, *, address: str, now: datetime) -> None:
    key = {"username": _counted_as(person), "ip_address": _valid(address)}
    tries = AccessAttempt.objects.filter(**key)
    if not tries.exists():
        AccessAttempt.objects.create(**key, failures_since_start=0)
    # The time of a new row is the database's own; the clock is an argument here.
    tries.update(failures_since_start=F("failures_since_start") + 1, attempt_time=now)


def _counted_as(person: User) -> str:
    return f"{_COUNTED_AS}{person.uuid}"


def _valid(address: str) -> str | None:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return None
