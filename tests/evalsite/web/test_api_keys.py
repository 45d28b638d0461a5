from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evalsite.models import AuditEvent
from tests.support.cast import Cast
from tests.support.keys import new_key
from tests.support.visits import n_queries, root, visit
from traces.models import ApiKey, Role, Scope
from traces.permissions.people import NOT_THEIR_KEY
from traces.services.people import PeopleError, create_api_key, set_member

pytestmark = pytest.mark.django_db


def keys(cast: Cast) -> str:
    return f"{root(cast.system)}keys/"


def is_good(headers: dict[str, Any]) -> bool:
    status = Client().get("/api/v1/figures", **headers).status_code
    assert status in (200, 401)
    return status == 200


def revoke(client: Client, cast: Cast, key: ApiKey) -> Any:
    return client.post(
        reverse("api-key-revoke", kwargs={"slug": cast.system.slug, "key": key.uuid})
    )


def test_an_engineer_makes_a_key_that_is_shown_once_and_works(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    form = {"name": "nightly", "scopes": ["read"], "days": "30"}
    made = client.post(f"{keys(cast)}new", form)
    first, second = (client.get(keys(cast)).context["page"] for _ in range(2))
    key = ApiKey.objects.get()
    secret = first.fresh.secret

    assert (made.status_code, made["Location"]) == (302, keys(cast))
    assert second.fresh is None
    assert secret.startswith(f"evs_{key.prefix}_")
    assert (key.user, key.name, key.scopes) == (cast.engineer, "nightly", ["read"])
    assert timedelta(days=29) < key.expires_at - timezone.now() <= timedelta(days=30)
    headers: Any = {"HTTP_AUTHORIZATION": f"Bearer {secret}"}
    assert is_good(headers)
    event = AuditEvent.objects.filter(system=cast.system).latest("seq")
    assert (event.act, event.actor, event.object_id) == (
        "api_key.made",
        cast.engineer,
        str(key.uuid),
    )
    assert secret.rpartition("_")[2] not in event.after + event.object_label


@pytest.mark.parametrize(
    "form",
    [
        {"name": "", "scopes": ["read"], "days": "30"},
        {"name": "x", "days": "30"},
        {"name": "x", "scopes": ["sign"], "days": "30"},
        {"name": "x", "scopes": ["read"], "days": "366"},
        {"name": "x", "scopes": ["read"], "days": "0"},
    ],
)
def test_a_key_that_cannot_be_is_refused(form: dict[str, Any], client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    assert client.post(f"{keys(cast)}new", form).status_code == 422
    assert ApiKey.objects.count() == 0


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"name": " "}, "A key has a name"),
        ({"scopes": ()}, "A key needs a scope"),
        ({"expires_at": timezone.now() - timedelta(days=1)}, "within 365 days"),
        ({"expires_at": timezone.now() + timedelta(days=400)}, "within 365 days"),
    ],
)
def test_the_service_refuses_the_same(more: dict[str, Any], sentence: str, cast: Cast) -> None:
    good: dict[str, Any] = {
        "name": "x",
        "scopes": (Scope.READ,),
        "expires_at": timezone.now() + timedelta(days=1),
    }
    with pytest.raises(PeopleError, match=sentence):
        create_api_key(cast.system, by=cast.engineer, **{**good, **more})


@pytest.mark.parametrize("role", ["owner", "reviewer", "viewer"])
def test_only_an_engineer_makes_keys(role: str, client: Client, cast: Cast) -> None:
    user = cast.members()[Role(role)]
    page = visit(client, user, keys(cast))
    assert (page.new, page.new_why_not) == (
        None,
        "Only an engineer of this system makes API keys, for themself.",
    )
    form = {"name": "x", "scopes": ["read"], "days": "30"}
    assert client.post(f"{keys(cast)}new", form).status_code == 403
    assert ApiKey.objects.count() == 0


def test_an_engineer_sees_and_ends_their_own_keys_only(client: Client, cast: Cast) -> None:
    set_member(cast.system, cast.reviewer, Role.ENGINEER)
    own, headers = new_key(cast.system, cast.engineer)
    other, others = new_key(cast.system, cast.reviewer)
    page = visit(client, cast.engineer, keys(cast))

    assert [row.prefix for row in page.keys] == [f"evs_{own.prefix}…"]
    refused = revoke(client, cast, other)
    assert refused.status_code == 403
    assert NOT_THEIR_KEY in refused.content.decode()
    assert revoke(client, cast, own).status_code == 302
    assert not is_good(headers)
    assert is_good(others)


def test_an_owner_sees_and_ends_all_keys(client: Client, cast: Cast) -> None:
    key, headers = new_key(cast.system, cast.engineer)
    foreign, _ = new_key(cast.system, cast.engineer)
    set_member(cast.other_system, cast.viewer, Role.ENGINEER)
    foreign, _ = new_key(cast.other_system, cast.viewer)
    page = visit(client, cast.owner, keys(cast))

    assert len(page.keys) == 2
    assert revoke(client, cast, key).status_code == 302
    assert revoke(client, cast, key).status_code == 302  # twice is once
    assert revoke(client, cast, foreign).status_code == 404
    assert not is_good(headers)
    events = AuditEvent.objects.filter(act="api_key.revoked")
    assert [(e.actor, e.reason) for e in events] == [(cast.owner, "Ended by an owner.")]


def test_states_of_keys_are_told(client: Client, cast: Cast) -> None:
    made = [new_key(cast.system, cast.engineer, days=days)[0] for days in (100, 1, 1)]
    ApiKey.objects.filter(pk=made[2].pk).update(expires_at=timezone.now())
    page = visit(client, cast.owner, keys(cast))
    assert [(row.state.label, bool(row.revoke_url)) for row in page.keys] == [
        ("expired", False),
        ("expires soon", True),
        ("works", True),
    ]


def test_queries_do_not_grow_with_keys(client: Client, cast: Cast) -> None:
    new_key(cast.system, cast.engineer)
    client.force_login(cast.owner)
    n_before = n_queries(client, keys(cast))
    for _ in range(2):
        new_key(cast.system, cast.engineer)
    assert n_before == n_queries(client, keys(cast)) == 5
