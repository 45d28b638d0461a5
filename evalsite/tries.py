"""Wrong tries at what is kept secret, counted for all processes of the site together.

They stand in the tables of django-axes, under names that no sign-in can have, so that being refused
here and at sign-in are two things. `manage.py axes_reset` forgets them all.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime
from typing import Final

from axes.models import AccessAttempt
from django.conf import settings
from django.db.models import F, Q, Sum

_LONGEST_SIGN_IN_NAME: Final = 150


def n_tries(what: str, *, now: datetime, address: str | None = None) -> int:
    """How many wrong tries still count, of all addresses or of one.

    They are forgotten together, a wait after the last one.
    """
    tries = AccessAttempt.objects.filter(username=_key(what))
    if address is not None:
        tries = tries.filter(_of(address))
    if not tries.filter(attempt_time__gt=now - settings.AXES_COOLOFF_TIME).exists():
        tries.delete()
        return 0
    total: int | None = tries.aggregate(n=Sum("failures_since_start"))["n"]
    return total or 0


def count_try(what: str, *, address: str, now: datetime) -> None:
    """Count one more wrong try."""
    tries = AccessAttempt.objects.filter(_of(address), username=_key(what))
    if not tries.exists():
        AccessAttempt.objects.get_or_create(
            username=_key(what),
            ip_address=_valid(address),
            user_agent="",
            defaults={"failures_since_start": 0},
        )
    # The time of a new row is the database's own; the clock is an argument here.
    tries.update(failures_since_start=F("failures_since_start") + 1, attempt_time=now)


def forget_tries(what: str) -> None:
    """Start counting anew."""
    AccessAttempt.objects.filter(username=_key(what)).delete()


def _key(what: str) -> str:
    return f"{'tries at '.ljust(_LONGEST_SIGN_IN_NAME + 1, '.')}{what}"


def _of(address: str) -> Q:
    return Q(ip_address=_valid(address))


def _valid(address: str) -> str | None:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return None
