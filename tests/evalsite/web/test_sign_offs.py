"""The page that an owner signs on."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.signing import CHANGED, signing_page
from reviews.models import SignOff
from tests.support.cast import PASSWORD, Cast
from tests.support.evidence import ingest
from tests.support.signing import SignedWorld, a_ready_release, trials
from tests.support.visits import root

pytestmark = pytest.mark.django_db

WORDS = {"intended_use": "Refunds", "scope": "The pilot", "expires_on": "2099-01-01"}


@pytest.fixture
def world(cast: Cast) -> SignedWorld:
    return a_ready_release(cast)


def signs(client: Client, world: SignedWorld, seen: str, **words: str) -> Any:
    client.force_login(world.cast.owner)
    path = f"{root(world.cast.system)}releases/{world.release.uuid}/sign/?meaning=approved"
    return client.post(path, {**WORDS, "password": PASSWORD, "seen_digest": seen, **words})


def shown(world: SignedWorld) -> str:
    return signing_page(world.release, world.cast.owner, now=timezone.now()).digest


@pytest.mark.parametrize("words", [{"scope": ""}, {"password": ""}, {"password": "another"}])
def test_a_form_that_comes_back_says_what_changed_since_it_was_shown(
    words: dict[str, str], client: Client, world: SignedWorld
) -> None:
    seen = shown(world)
    ingest(
        world.cast.system,
        trials([9]),
        release=world.release.name,
        run="more",
        by=world.cast.engineer,
    )

    page = signs(client, world, seen, **words).context["page"]

    assert page.digest_before == seen != page.digest
    assert page.differences
    assert page.form["intended_use"].value() == "Refunds"


def test_a_form_that_comes_back_over_the_same_evidence_says_nothing_of_it(
    client: Client, world: SignedWorld
) -> None:
    answer = signs(client, world, shown(world), scope="")
    page = answer.context["page"]
    assert (answer.status_code, page.refusal, page.digest_before) == (422, "", "")
    assert CHANGED not in answer.content.decode()


@pytest.mark.parametrize("seen", ["", "x", "0" * 63 + "G", "<b>"])
def test_what_is_no_digest_is_not_repeated(seen: str, client: Client, world: SignedWorld) -> None:
    answer = signs(client, world, seen)
    page = answer.context["page"]
    assert (answer.status_code, page.digest_before) == (422, "")
    assert not SignOff.objects.exists()


@pytest.mark.parametrize(
    "words",
    [{"scope": "\u200b\u200b"}, {"intended_use": "\u2060 \u200b"}, {"expires_on": "03/04/2099"}],
)
def test_words_that_nobody_sees_and_dates_of_two_readings_are_not_signed(
    words: dict[str, str], client: Client, world: SignedWorld
) -> None:
    assert signs(client, world, shown(world), **words).status_code == 422
    assert not SignOff.objects.exists()


def test_two_tabs_sign_once(client: Client, world: SignedWorld) -> None:
    seen = shown(world)
    assert [signs(client, world, seen).status_code for _ in range(2)] == [302, 409]
    assert SignOff.objects.count() == 1


def test_what_was_typed_for_what_cannot_be_signed_any_more_is_shown(
    client: Client, world: SignedWorld
) -> None:
    seen = shown(world)
    ingest(
        world.cast.system,
        trials([9], amount=500),
        release=world.release.name,
        run="more",
        by=world.cast.engineer,
    )

    answer = signs(client, world, seen, scope="<b>Pilot</b>")

    page = answer.context["page"]
    assert (answer.status_code, page.form) == (409, None)
    assert [(fact.name, fact.value) for fact in page.kept] == [
        ("Intended use", "Refunds"),
        ("Scope", "<b>Pilot</b>"),
        ("Expires on", "2099-01-01"),
    ]
    text = answer.content.decode()
    assert "&lt;b&gt;Pilot" in text
    assert PASSWORD not in text
