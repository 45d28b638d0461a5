from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from evalsite.models import AuditEvent
from evalsite.reauthentication import NO_PASSWORD, WRONG, locked_sentence
from evalsite.web.browser_words import browser_words
from tests.evalsite.test_devices import is_in, signed_in
from tests.support.cast import PASSWORD, Cast
from tests.support.visits import n_queries, visit
from traces.models import SignedInDevice, User

pytestmark = pytest.mark.django_db

NEW = "another long enough secret"


def changed(client: Client, old: str = PASSWORD, new: str = NEW, again: str | None = None) -> Any:
    form = {"old": old, "new": new, "again": new if again is None else again}
    return client.post("/account/password", form)


def errors(answer: Any) -> dict[str, list[str]]:
    assert answer.status_code == 422
    return dict(answer.context["page"].password.form.errors)


def test_the_account_shows_systems_and_devices(client: Client, cast: Cast) -> None:
    page = visit(client, cast.owner, "/account/")
    assert [(row.system.label, row.role) for row in page.memberships] == [("Airline", "owner")]
    assert (page.username, page.no_password, page.devices) == ("owner", "", ())
    assert page.unlisted != ""

    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    here = signed_in(HTTP_USER_AGENT=firefox)
    page = here.get("/account/").context["page"]
    assert [(row.words, row.is_this, row.end_url) for row in page.devices] == [
        ("Firefox on Linux", True, "")
    ]
    assert page.unlisted == ""


def test_nobody_is_led_to_sign_in(client: Client) -> None:
    assert client.get("/account/")["Location"] == "/sign-in/?next=/account/"
    assert client.post("/account/password").status_code == 302


def test_a_new_password_ends_all_other_sessions(cast: Cast) -> None:
    here, there, unlisted, other = signed_in(), signed_in(), Client(), signed_in("reviewer")
    unlisted.force_login(cast.owner)
    before = here.session.session_key
    answer = changed(here)

    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert here.session.session_key != before
    assert [is_in(each) for each in (here, there, unlisted, other)] == [True, False, False, True]
    assert User.objects.get(pk=cast.owner.pk).check_password(NEW)
    page = here.get("/account/").context["page"]
    assert [row.is_this for row in page.devices] == [True]
    event = AuditEvent.objects.get(system=None, act="account.password_changed")
    assert (event.actor, event.object_id) == (cast.owner, str(cast.owner.uuid))


@pytest.mark.parametrize(
    ("form", "field", "word"),
    [
        ({"old": "wrong"}, "old", WRONG),
        ({"new": "12345678"}, "new", "too common"),
        ({"new": "owner"}, "new", "similar"),
        ({"again": "different"}, "again", "The two passwords differ."),
        ({"old": ""}, "old", "required"),
    ],
)
def test_a_change_of_password_that_cannot_be(
    form: dict[str, str], field: str, word: str, cast: Cast
) -> None:
    here, there = signed_in(), signed_in()
    found = errors(changed(here, **form))
    assert list(found) == [field]
    assert word in " ".join(found[field])
    assert (is_in(here), is_in(there)) == (True, True)
    assert User.objects.get(pk=cast.owner.pk).check_password(PASSWORD)


def test_too_many_wrong_passwords_wait(cast: Cast) -> None:
    here = signed_in()
    for _ in range(settings.AXES_FAILURE_LIMIT):
        changed(here, old="wrong")
    assert errors(changed(here)) == {"old": [locked_sentence()]}
    assert User.objects.get(pk=cast.owner.pk).check_password(PASSWORD)


def test_somebody_without_a_password_is_told_so(client: Client, cast: Cast) -> None:
    cast.viewer.set_unusable_password()
    cast.viewer.save()
    page = visit(client, cast.viewer, "/account/")
    assert (page.password, page.no_password) == (None, NO_PASSWORD)
    answer = changed(client, old="!")
    assert answer.status_code == 422


def test_one_device_is_ended(cast: Cast) -> None:
    here, there = signed_in(), signed_in()
    device = SignedInDevice.objects.get(uuid=there.session["device"])
    answer = here.post(reverse("device-end", kwargs={"device": device.uuid}))

    assert (answer.status_code, answer["Location"]) == (302, "/account/")
    assert (is_in(here), is_in(there)) == (True, False)
    again = here.post(reverse("device-end", kwargs={"device": device.uuid}))
    assert again.status_code == 404


def test_devices_of_others_are_absent(cast: Cast) -> None:
    here, other = signed_in(), signed_in("reviewer")
    path = reverse("device-end", kwargs={"device": other.session["device"]})
    assert here.post(path).status_code == 404
    assert is_in(other)


def test_all_other_sessions_are_ended(cast: Cast) -> None:
    here, there, unlisted, other = signed_in(), signed_in(), Client(), signed_in("reviewer")
    unlisted.force_login(cast.owner)
    answer = here.post("/account/devices/end-others")

    assert answer.status_code == 302
    assert [is_in(each) for each in (here, there, unlisted, other)] == [True, False, False, True]


def test_queries_do_not_grow_with_devices(cast: Cast) -> None:
    here = signed_in()
    n_before = n_queries(here, "/account/")
    signed_in(), signed_in()
    assert n_before == n_queries(here, "/account/") == 5


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/128.0.0.0 Safari/537.36 Edg/128.0",
            "Edge on Windows",
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Safari/604.1",
            "Safari on iOS",
        ),
        ("curl/8.5.0", "curl"),
        ("<b>X11</b>", "a browser on Linux"),
        ("", "an unknown browser"),
    ],
)
def test_browsers_in_words(agent: str, words: str) -> None:
    assert browser_words(agent) == words
