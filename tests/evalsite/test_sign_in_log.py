from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from evalsite.models import AuditEvent
from tests.support.cast import PASSWORD, Cast

pytestmark = pytest.mark.django_db


def site_log() -> list[tuple[str, str, str]]:
    found = AuditEvent.objects.filter(system=None).exclude(act="audit_log.begun").order_by("seq")
    return list(found.values_list("act", "actor_name", "object_label"))


def sign_in(client: Client, name: str, password: str) -> None:
    client.post(reverse("sign-in"), {"username": name, "password": password})


def test_signing_in_and_out_is_logged(cast: Cast, client: Client) -> None:
    sign_in(client, "owner", PASSWORD)
    client.post(reverse("sign-out"))
    client.post(reverse("sign-out"))
    assert site_log() == [("sign_in.made", "owner", "owner"), ("sign_out.made", "owner", "owner")]


def test_wrong_tries_are_logged_until_the_person_has_to_wait(cast: Cast, client: Client) -> None:
    for _ in range(settings.AXES_FAILURE_LIMIT + 2):
        sign_in(client, "owner", "wrong")
    tries = ("sign_in.failed", "", "owner")
    assert site_log() == [
        *[tries] * (settings.AXES_FAILURE_LIMIT - 1),
        ("sign_in.locked_out", "", "owner"),
    ]


def test_a_name_that_nobody_bears_is_not_kept(cast: Cast, client: Client) -> None:
    sign_in(client, "correct horse battery", "wrong")
    assert site_log() == [("sign_in.failed", "", "nobody of that name")]
    assert not AuditEvent.objects.filter(after__contains="horse").exists()
