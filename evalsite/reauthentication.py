"""Asking a signed-in person for their password again, before what needs it.

All processes of the site count wrong tries together. Being refused here and at sign-in are two
things.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.contrib.auth.hashers import check_password
from django.db import transaction

from evalsite.tries import count_try, forget_tries, n_tries
from traces.models import User

log = logging.getLogger("evalsite.accounts")

WRONG: Final = "The password is wrong."
NO_PASSWORD: Final = (
    "You have no password, so nothing can be confirmed by it. The site's operator gives you one: "
    "manage.py changepassword USERNAME."
)


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
    n_before = n_tries(_tries_at(person), now=now)
    # Not `person.check_password`: a newer hash would end the person's sessions. It runs when
    # locked, too, so that the time tells nothing.
    is_right = check_password(password, person.password)
    if n_before >= settings.AXES_FAILURE_LIMIT:
        return Reauthentication(is_right=False, sentence=locked_sentence(), is_locked=True)
    if is_right:
        forget_tries(_tries_at(person))
        return Reauthentication(is_right=True, sentence="")
    count_try(_tries_at(person), address=address, now=now)
    left = settings.AXES_FAILURE_LIMIT - n_before - 1
    if left <= 0:
        return Reauthentication(is_right=False, sentence=locked_sentence(), is_locked=True)
    return Reauthentication(is_right=False, sentence=WRONG, tries_left=left)


def locked_sentence() -> str:
    """What is said to a person who gave a wrong password too often."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    wait = "a minute" if minutes == 1 else f"{minutes} minutes"
    return f"The password was wrong too often. Wait {wait} after the last try."


def _tries_at(person: User) -> str:
    return f"password of {person.uuid}"
