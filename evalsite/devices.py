"""Where a person is signed in: their sessions, which they can see and end.

A session is known by the hash of its key. Ending it deletes it, so no request has to ask whether
it has ended.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth import SESSION_KEY, login, update_session_auth_hash
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.db import DatabaseError, connection, transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from evalsite.client_address import client_address
from traces.core.text_marks import clean_text
from traces.models import SignedInDevice, User

log = logging.getLogger("evalsite.accounts")

MOST_DEVICES: Final = 100  # shown of one person
_MARK: Final = "device"  # in the session: the UUID of its device
_SEEN_EVERY: Final = 60  # seconds
_AGENT_LENGTH: Final = 300


def sign_in_to(request: HttpRequest, user: User, *, backend: str | None = None) -> None:
    """Sign the person in, in a session with a new key, and note the device."""
    login(request, user, backend=backend)
    now = timezone.now()
    device = SignedInDevice(
        user=user,
        address=client_address(request)[:64],
        agent=clean_text(request.META.get("HTTP_USER_AGENT", ""))[:_AGENT_LENGTH],
        signed_in_at=now,
        last_seen_at=now,
    )
    request.session[_MARK] = str(device.uuid)
    request.session.save()
    device.session_sha256 = _hash_of(request)
    _forget_old(user, now=now)
    # One session, one device: signing in again in a session that goes on replaces it.
    SignedInDevice.objects.filter(session_sha256=device.session_sha256).delete()
    device.save()


def note_sign_out(request: HttpRequest) -> None:
    """The session is about to end by its own person."""
    if mark := _mark_in(request):
        SignedInDevice.objects.filter(uuid=mark).delete()


def devices_of(user: User, *, now: datetime) -> list[SignedInDevice]:
    """Where a person is signed in, the last seen first; the sessions of others have run out."""
    oldest = now - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    rows = SignedInDevice.objects.filter(user=user, ended_at=None, last_seen_at__gt=oldest)
    return list(rows.order_by("-last_seen_at", "-pk")[:MOST_DEVICES])


def is_this(request: HttpRequest, device: SignedInDevice) -> bool:
    """Whether a device is the one that asks."""
    return _mark_in(request) == device.uuid


@transaction.atomic
def end_device(device: SignedInDevice, *, now: datetime) -> None:
    """End a session: its next request is one of nobody."""
    SignedInDevice.objects.filter(pk=device.pk).update(ended_at=now)
    _delete_sessions([bytes(device.session_sha256)])


@transaction.atomic
def end_other_devices(request: HttpRequest, user: User, *, now: datetime) -> int:
    """End all sessions of a person but this one, those too that no device was noted for."""
    others = SignedInDevice.objects.filter(user=user, ended_at=None)
    if mark := _mark_in(request):
        others = others.exclude(uuid=mark)
    others.update(ended_at=now)
    theirs = [
        row.session_key
        for row in Session.objects.filter(expire_date__gt=now).iterator(chunk_size=500)
        if row.session_key != request.session.session_key
        and row.get_decoded().get(SESSION_KEY) == str(user.pk)
    ]
    Session.objects.filter(session_key__in=theirs).delete()
    return len(theirs)


def keep_after_new_password(request: HttpRequest, user: User) -> None:
    """Go on in this session, under a new key, after the person's password has changed."""
    mark = _mark_in(request)
    update_session_auth_hash(request, user)
    request.session.save()
    if mark:
        SignedInDevice.objects.filter(uuid=mark).update(session_sha256=_hash_of(request))


class SeenMiddleware:
    """Notes when a device was last seen, at most once a minute in each process.

    Works behind the answer and only where the session was read anyway, so it costs a page nothing.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        if request.session.accessed and (mark := _mark_in(request)):
            _note_seen(mark)
        return answer


def _note_seen(mark: UUID) -> None:
    if not cache.add(f"device-seen-{mark}", 1, _SEEN_EVERY):
        return
    now = timezone.now()
    rows = SignedInDevice.objects.filter(
        uuid=mark, last_seen_at__lt=now - timedelta(seconds=_SEEN_EVERY)
    )
    # The page has its answer; when a device was seen is not worth losing it.
    with suppress(DatabaseError):
        rows.update(last_seen_at=now)


def _mark_in(request: HttpRequest) -> UUID | None:
    with suppress(ValueError):
        return UUID(str(request.session.get(_MARK, "")))
    return None


def _hash_of(request: HttpRequest) -> bytes:
    key = request.session.session_key or ""
    return hashlib.sha256(key.encode()).digest()


def _delete_sessions(hashes: list[bytes]) -> None:
    # No index helps, and none is needed: people end sessions by hand.
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM django_session WHERE sha256(convert_to(session_key, 'UTF8')) = ANY(%s)",
            [hashes],
        )


def _forget_old(user: User, *, now: datetime) -> None:
    oldest = now - timedelta(seconds=settings.SESSION_COOKIE_AGE)
    rows = SignedInDevice.objects.filter(user=user)
    rows.exclude(ended_at=None).delete()
    rows.filter(last_seen_at__lt=oldest).delete()
