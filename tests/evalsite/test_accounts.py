from __future__ import annotations

import pytest
from django.conf import settings as site_settings
from django.test import Client
from pytest_django import Settings

from tests.support.cast import PASSWORD, Cast
from traces.models import User

pytestmark = pytest.mark.django_db

SIGN_IN = "/sign-in/"


def tried(client: Client, password: str, **more: str) -> int:
    body = {"username": "engineer", "password": password, **more}
    return client.post(SIGN_IN, body).status_code


def test_signing_in_starts_a_new_session(client: Client, cast: Cast) -> None:
    client.get(SIGN_IN)
    client.session["planted"] = True
    client.session.save()
    planted = client.session.session_key
    answer = client.post(SIGN_IN, {"username": "engineer", "password": PASSWORD})

    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.session.session_key != planted
    assert client.session["_auth_user_id"] == str(cast.engineer.pk)


@pytest.mark.parametrize(
    ("wanted", "target"),
    [
        ("/systems/airline/tasks/?level=exact", "/systems/airline/tasks/?level=exact"),
        ("https://elsewhere.example/", "/"),
        ("//elsewhere.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/\\elsewhere.example", "/"),
        ("system", "/"),
        ("0", "/"),
        ("", "/"),
    ],
)
def test_signing_in_leads_to_an_address_of_this_site_only(
    wanted: str, target: str, client: Client, cast: Cast
) -> None:
    answer = client.post(SIGN_IN, {"username": "engineer", "password": PASSWORD, "next": wanted})
    assert (answer.status_code, answer["Location"]) == (302, target)


def test_a_wrong_password_is_told_from_a_wrong_name_by_nothing(client: Client, cast: Cast) -> None:
    wrong = client.post(SIGN_IN, {"username": "engineer", "password": "no"})
    nobody = client.post(SIGN_IN, {"username": "nobody", "password": "no"})

    assert (wrong.status_code, nobody.status_code) == (422, 422)
    sentence = "The name or the password is wrong."
    assert sentence in wrong.content.decode()
    assert sentence in nobody.content.decode()


@pytest.mark.parametrize("next_url", ["0", "system", "\x00", "a b"])
def test_whoever_is_signed_in_is_led_to_no_word(next_url: str, client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    answer = client.get(SIGN_IN, {"next": next_url})
    assert (answer.status_code, answer["Location"]) == (302, "/")


@pytest.mark.parametrize("name", ["x" * 151, "x" * 5000, "a\x00b"])
def test_a_name_that_nobody_can_have_is_refused(name: str, client: Client, cast: Cast) -> None:
    answer = client.post(SIGN_IN, {"username": name, "password": "wrong"})
    assert answer.status_code == 422


def test_too_many_wrong_tries_are_refused_for_a_while(client: Client, cast: Cast) -> None:
    tries = site_settings.AXES_FAILURE_LIMIT
    codes = [tried(client, "wrong") for _ in range(tries)]
    locked = client.post(SIGN_IN, {"username": "engineer", "password": PASSWORD})

    assert codes == [422] * (tries - 1) + [429]
    assert locked.status_code == 429
    assert locked["Retry-After"] == str(int(site_settings.AXES_COOLOFF_TIME.total_seconds()))
    assert "Too many tries" in locked.content.decode()
    assert "_auth_user_id" not in client.session


def test_signing_out_ends_the_session_and_takes_a_post(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    by_link = client.get("/sign-out/").status_code
    answer = client.post("/sign-out/")

    assert by_link == 405
    assert (answer.status_code, answer["Location"]) == (302, SIGN_IN)
    assert "_auth_user_id" not in client.session


@pytest.fixture
def demo(settings: Settings, cast: Cast) -> None:
    settings.EVALSITE_DEMO = True
    settings.ALLOWED_HOSTS = ["*"]
    for person in (cast.engineer, cast.viewer):
        person.set_unusable_password()
        person.save()


def test_the_demo_signs_in_by_one_click(client: Client, cast: Cast, demo: None) -> None:
    page = client.get(SIGN_IN, headers={"host": "localhost:8000"})
    answer = client.post("/demo-sign-in/", {"role": "viewer"}, headers={"host": "localhost:8000"})

    assert 'value="viewer"' in page.content.decode()
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.session["_auth_user_id"] == str(cast.viewer.pk)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "[::1]:8000", "[::1]", "localhost"])
def test_the_demo_knows_the_names_of_this_machine(host: str, client: Client, demo: None) -> None:
    answer = client.post("/demo-sign-in/", {"role": "engineer"}, headers={"host": host})
    assert answer.status_code == 302


@pytest.mark.parametrize(
    ("headers", "more"),
    [
        ({"host": "evil.example"}, {}),
        ({"host": "localhost.evil.example"}, {}),
        ({"host": "localhost"}, {"REMOTE_ADDR": "192.0.2.7"}),
        ({"host": "localhost", "x-forwarded-for": "127.0.0.1"}, {}),
        ({"host": "localhost", "forwarded": "for=127.0.0.1"}, {}),
        ({"host": "localhost", "x-real-ip": "192.0.2.7"}, {}),
        ({"host": "localhost", "x-forwarded-host": "evals.example"}, {}),
    ],
)
def test_the_demo_is_closed_to_other_machines(
    headers: dict[str, str], more: dict[str, str], client: Client, demo: None
) -> None:
    answer = client.post("/demo-sign-in/", {"role": "engineer"}, headers=headers, **more)
    page = client.get(SIGN_IN, headers=headers, **more)

    assert answer.status_code == 404
    assert 'value="engineer"' not in page.content.decode()
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize("role", ["reviewer", "owner", "god", ""])
def test_the_demo_signs_in_nobody_who_has_a_password(role: str, client: Client, demo: None) -> None:
    answer = client.post("/demo-sign-in/", {"role": role}, headers={"host": "localhost"})
    assert answer.status_code == 404


def test_there_is_no_demo_outside_of_demo_mode(client: Client, cast: Cast) -> None:
    User.objects.filter(pk=cast.engineer.pk).update(password="!")
    answer = client.post("/demo-sign-in/", {"role": "engineer"}, headers={"host": "localhost"})
    assert answer.status_code == 404


def test_whoever_is_signed_in_is_led_on(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    answer = client.get(SIGN_IN, {"next": "/systems/airline/runs/"})
    assert (answer.status_code, answer["Location"]) == (302, "/systems/airline/runs/")


def test_the_demo_needs_an_address_to_judge_by(client: Client, demo: None) -> None:
    answer = client.post(
        "/demo-sign-in/", {"role": "engineer"}, headers={"host": "localhost"}, REMOTE_ADDR=""
    )
    assert answer.status_code == 404
