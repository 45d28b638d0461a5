from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.utils import timezone

from evalsite.reauthentication import (
    NO_PASSWORD,
    WRONG,
    Reauthentication,
    locked_sentence,
    password_refusal,
    reauthenticate,
)
from tests.support.cast import PASSWORD, Cast, person
from traces.models import User

pytestmark = pytest.mark.django_db

NOW = timezone.now()
TRIES = settings.AXES_FAILURE_LIMIT
RIGHT = Reauthentication(is_right=True, sentence="")
LOCKED = Reauthentication(is_right=False, sentence=locked_sentence(), is_locked=True)


def tried(
    user: User, password: str, *, after: timedelta = timedelta(0), at: str = "192.0.2.1"
) -> Reauthentication:
    return reauthenticate(user, password, address=at, now=NOW + after)


def test_the_right_password_confirms(cast: Cast) -> None:
    assert tried(cast.owner, PASSWORD) == RIGHT
    assert password_refusal(cast.owner, PASSWORD, address="", now=NOW) == ""


def test_a_wrong_password_says_so_and_how_many_tries_are_left(cast: Cast) -> None:
    assert tried(cast.owner, "wrong") == Reauthentication(
        is_right=False, sentence=WRONG, tries_left=TRIES - 1
    )
    assert password_refusal(cast.owner, "", address="not an address", now=NOW) == WRONG


def test_too_many_wrong_tries_lock_even_the_right_password_until_the_wait_is_over(
    cast: Cast,
) -> None:
    answers = [tried(cast.owner, "wrong") for _ in range(TRIES)]
    wait = settings.AXES_COOLOFF_TIME

    assert answers[-1] == LOCKED
    assert [answer.is_locked for answer in answers] == [False] * (TRIES - 1) + [True]
    assert tried(cast.owner, PASSWORD, after=wait - timedelta(seconds=1)) == LOCKED
    assert tried(cast.owner, PASSWORD, after=wait) == RIGHT


def test_tries_while_locked_do_not_make_the_wait_longer(cast: Cast) -> None:
    for _ in range(TRIES):
        tried(cast.owner, "wrong")
    wait = settings.AXES_COOLOFF_TIME
    assert tried(cast.owner, "wrong", after=wait / 2) == LOCKED
    assert tried(cast.owner, PASSWORD, after=wait) == RIGHT


def test_tries_from_several_addresses_count_together(cast: Cast) -> None:
    places = [f"192.0.2.{n}" for n in range(TRIES - 3)] + ["2001:db8::1", "", "no address"]
    answers = [tried(cast.owner, "wrong", at=place) for place in places]
    assert answers[-1] == LOCKED
    assert tried(cast.owner, PASSWORD, at="198.51.100.9") == LOCKED


def test_the_right_password_forgets_the_tries_of_that_person_only(cast: Cast) -> None:
    for _ in range(TRIES - 1):
        tried(cast.owner, "wrong")
        tried(cast.reviewer, "wrong")
    assert tried(cast.owner, PASSWORD) == RIGHT

    assert tried(cast.owner, "wrong").tries_left == TRIES - 1
    assert tried(cast.reviewer, "wrong") == LOCKED


def test_being_locked_here_and_at_sign_in_are_two_things(cast: Cast, client: Client) -> None:
    now = timezone.now() - NOW  # signing in forgets tries that are over
    for _ in range(TRIES):
        tried(cast.owner, "wrong", after=now)
    answer = client.post("/sign-in/", {"username": "owner", "password": PASSWORD})
    assert answer.status_code == 302
    assert tried(cast.owner, PASSWORD, after=now) == LOCKED

    for _ in range(TRIES):
        client.post("/sign-in/", {"username": "reviewer", "password": "wrong"})
    assert tried(cast.reviewer, PASSWORD) == RIGHT


def test_a_person_without_a_password_is_told_how_to_get_one(cast: Cast) -> None:
    demo = User.objects.create_user("demo")
    answers = [tried(demo, "") for _ in range(TRIES + 1)]
    assert set(answers) == {Reauthentication(is_right=False, sentence=NO_PASSWORD)}


def test_the_password_of_now_counts_not_that_of_the_page(cast: Cast) -> None:
    before = User.objects.get(pk=cast.owner.pk)
    cast.owner.set_password("another long secret")
    cast.owner.save()
    assert tried(before, PASSWORD).sentence == WRONG
    assert tried(before, "another long secret") == RIGHT


@pytest.mark.django_db(transaction=True)
def test_a_wrong_try_cannot_be_rolled_back() -> None:
    owner = person("owner")
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        tried(owner, "wrong")
    assert tried(owner, "wrong").tries_left == TRIES - 1
