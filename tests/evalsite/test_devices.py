from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from evalsite.devices import devices_of, end_device
from tests.support.cast import PASSWORD, Cast
from traces.models import SignedInDevice

pytestmark = pytest.mark.django_db


def signed_in(name: str = "owner", **more: Any) -> Client:
    client = Client(**more)
    answer = client.post("/sign-in/", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302
    return client


def is_in(client: Client) -> bool:
    return client.get("/").status_code == 200


def test_signing_in_notes_the_device(cast: Cast) -> None:
    client = signed_in(HTTP_USER_AGENT="Mozilla/5.0 \x00" + "x" * 400, REMOTE_ADDR="192.0.2.7")
    (device,) = devices_of(cast.owner, now=timezone.now())

    assert (device.address, device.agent[:13], len(device.agent)) == (
        "192.0.2.7",
        "Mozilla/5.0 ␀",
        300,
    )
    key = client.session.session_key
    assert key is not None
    assert bytes(device.session_sha256) == hashlib.sha256(key.encode()).digest()


def test_an_ended_session_is_nobody_s_at_its_next_request(cast: Cast) -> None:
    here, there = signed_in(), signed_in()
    device = SignedInDevice.objects.get(uuid=there.session["device"])
    end_device(device, now=timezone.now())

    assert (is_in(here), is_in(there)) == (True, False)
    assert [row.pk for row in devices_of(cast.owner, now=timezone.now())] == [
        SignedInDevice.objects.get(uuid=here.session["device"]).pk
    ]


def test_signing_out_forgets_the_device(cast: Cast) -> None:
    client = signed_in()
    client.post("/sign-out/")
    assert SignedInDevice.objects.count() == 0


def test_old_and_ended_devices_are_forgotten_at_the_next_sign_in(cast: Cast) -> None:
    old, ended, other = signed_in(), signed_in(), signed_in("reviewer")
    long_ago = timezone.now() - timedelta(seconds=settings.SESSION_COOKIE_AGE + 1)
    rows = SignedInDevice.objects
    rows.filter(uuid=old.session["device"]).update(last_seen_at=long_ago)
    end_device(rows.get(uuid=ended.session["device"]), now=timezone.now())
    rows.filter(uuid=other.session["device"]).update(last_seen_at=long_ago)

    new = signed_in()

    kept = {str(uuid) for uuid in rows.values_list("uuid", flat=True)}
    assert kept == {new.session["device"], other.session["device"]}


def test_a_device_is_seen_at_most_once_a_minute(cast: Cast, django_assert_num_queries: Any) -> None:
    client = signed_in()
    cache.clear()
    rows = SignedInDevice.objects.filter(uuid=client.session["device"])
    before = timezone.now() - timedelta(minutes=2)
    rows.update(last_seen_at=before)

    client.get("/")
    seen = rows.get().last_seen_at
    rows.update(last_seen_at=before)
    client.get("/")

    assert seen > before + timedelta(minutes=1)
    assert rows.get().last_seen_at == before
    cache.clear()
    client.get("/")
    assert rows.get().last_seen_at > before


def test_a_session_without_a_device_costs_nothing(cast: Cast, client: Client) -> None:
    client.force_login(cast.owner)
    assert is_in(client)
    assert SignedInDevice.objects.count() == 0
    assert Session.objects.count() == 1
