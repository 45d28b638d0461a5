"""Signing in and out in the site's audit log."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.http import HttpRequest

from evalsite.client_address import client_address
from evalsite.common.audit import AuditedObject, record
from traces.models import User


def note_signed_in(request: HttpRequest, user: User, *, now: datetime, is_demo: bool) -> None:
    """A person signed in."""
    after = {"address": client_address(request), "demo": is_demo}
    _record("sign_in.made", user, by=user, now=now, after=after)


def note_signed_out(user: User, *, now: datetime) -> None:
    """A person signed out."""
    _record("sign_out.made", user, by=user, now=now)


def note_refused(request: HttpRequest, name: str, *, now: datetime) -> None:
    """A sign-in failed, or was one too many. Tries of who has to wait already are no news.

    The name that was tried is kept only where somebody bears it: people type passwords there.
    """
    n_failures = getattr(request, "axes_failures_since_start", None)
    if n_failures is None or n_failures > settings.AXES_FAILURE_LIMIT:
        return
    is_last = n_failures == settings.AXES_FAILURE_LIMIT
    act = "sign_in.locked_out" if is_last else "sign_in.failed"
    person = User.objects.filter(username=name.replace("\x00", "")).first()
    _record(act, person, by=None, now=now, after={"address": client_address(request)})


def _record(
    act: str,
    person: User | None,
    *,
    by: User | None,
    now: datetime,
    after: dict[str, object] | None = None,
) -> None:
    obj = (
        AuditedObject("person", str(person.uuid), person.printed_name)
        if person
        else AuditedObject("person", "", "nobody of that name")
    )
    record(act, system_pk=None, by_pk=by.pk if by else None, at=now, obj=obj, after=after)
