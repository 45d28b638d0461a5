"""Who may reach what, on every route of the site."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evalsite.access import ALLOWED, Act
from tests.support.access_world import (
    IDENTITIES,
    NUMBERS,
    OBJECTS,
    ROUTES,
    World,
    patterns,
    rule_of,
    world_of,
)
from tests.support.cast import Cast, cast_anew, person
from tests.support.keys import header, new_key
from traces.models import Member, Role, Scope, User
from traces.services.people import revoke_api_key, set_member

pytestmark = pytest.mark.django_db

PUBLIC = {
    "sign-in",
    "sign-out",
    "demo-sign-in",
    "health",
    "csp-report",
    "api-schema",
    "api-docs",
    "contract-schema",
    "invitation-take",
}
RULE = re.compile(
    r"public|signed-in|system:(read|flag|contribute|approve|recompute|work|review|own"
    r"|write_rubric|ask_judges)"
    r"|api-key:(ingest|read)"
)


IN_SYSTEM = sorted(name for name, p in ROUTES.items() if rule_of(p).startswith("system:"))
SIGNED_IN = sorted(name for name, p in ROUTES.items() if rule_of(p) == "signed-in")
METHODS = ("get", "post", "put", "patch", "delete", "options")
ABSENT = {name: uuid.uuid4() for name in IDENTITIES} | dict.fromkeys(NUMBERS, 999_999_999)
# They look for more than their address says: a computed gate, or what the form or query names.
OWN_IS_ABSENT = {
    *("gate-check", "gate-json", "calibration-item-withdraw", "path-accept", "tier-assign"),
    *("label-page", "label-draft", "label-undo", "label-skip", "label-extend", "label-reveal"),
    "vouch-for",
}


@pytest.fixture(scope="module")
def cast(module_db: None) -> Cast:
    return cast_anew()


@pytest.fixture(scope="module")
def world(cast: Cast) -> World:
    return world_of(cast.system, cast.engineer)


@pytest.fixture(scope="module")
def elsewhere(cast: Cast) -> World:
    return world_of(cast.other_system, cast.outsider)


def test_every_route_states_who_may_reach_it() -> None:
    rules = {pattern.name or str(pattern.pattern): rule_of(pattern) for pattern in patterns()}

    assert {name: rule for name, rule in rules.items() if not RULE.fullmatch(rule)} == {}
    assert {name for name, rule in rules.items() if rule == "public"} == PUBLIC


def test_a_route_names_its_system_exactly_where_its_rule_asks_for_one() -> None:
    with_slug = {name for name, p in ROUTES.items() if "slug" in p.pattern.converters}
    of_pages = {name for name in with_slug if not rule_of(ROUTES[name]).startswith("api-key:")}
    assert of_pages == set(IN_SYSTEM)


@pytest.mark.parametrize("name", SIGNED_IN)
def test_a_stranger_is_asked_to_sign_in(name: str, client: Client) -> None:
    wanted = ROUTES[name].pattern.converters
    path = reverse(name, kwargs={key: uuid.uuid4() for key in wanted})
    takes = allowed_methods(client, path)
    for method in sorted(takes):
        answer = ask(client, method, path)
        assert (answer.status, answer.location) == (302, f"/sign-in/?next={path}")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    location: str
    allowed: frozenset[str]


def ask(client: Client, method: str, path: str) -> Answer:
    """The answer to a request, with everything that it did taken back."""
    with transaction.atomic():
        answer = getattr(client, method)(path)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        transaction.set_rollback(True)
    allowed = answer.get("Allow", "") if answer.status_code == 405 else ""
    return Answer(
        answer.status_code,
        body,
        answer.get("Location", ""),
        frozenset(each.strip().lower() for each in allowed.split(",") if each.strip()),
    )


def allowed_methods(client: Client, path: str) -> frozenset[str]:
    """What a route takes: each refuses OPTIONS and says what it allows."""
    answer = ask(client, "options", path)
    assert answer.status == 405, path
    return answer.allowed - {"head"}


def people(cast: Cast) -> dict[str, User]:
    operator = person("operator")
    operator.is_superuser = operator.is_staff = True
    operator.save()
    return {
        "outsider": cast.outsider,
        "operator": operator,
        **{role.value: one for role, one in cast.members().items()},
    }


WHO = ("nobody", "outsider", "operator", *(role.value for role in Role))


@pytest.mark.parametrize("who", WHO)
def test_every_route_by_every_method_as(
    who: str, client: Client, cast: Cast, world: World, elsewhere: World
) -> None:
    """One's own, a foreign and an absent object, each request taken back afterwards."""
    if who != "nobody":
        client.force_login(people(cast)[who])
    wrong: list[str] = []
    for name in IN_SYSTEM:
        wrong += [f"{name}: {what}" for what in _wrong(client, who, name, world, elsewhere, cast)]
    assert not wrong, "\n".join(wrong)


def _wrong(
    client: Client, who: str, name: str, own: World, elsewhere: World, cast: Cast
) -> list[str]:
    """What is not as it must be on one route, for one person."""
    paths = {"own": own.path(name), "no system": own.path(name, slug="no-such-system")}
    if OBJECTS & set(ROUTES[name].pattern.converters):
        paths["foreign"] = elsewhere.path(name, slug=cast.system.slug)
        paths["absent"] = own.path(name, **ABSENT)
    takes = allowed_methods(client, paths["own"])
    answers = {
        (method, which): ask(client, method, path)
        for method in METHODS[:-1]
        for which, path in paths.items()
        if method in takes or which == "own"
    }
    found = [
        f"{method} answers {one.status}, not 405"
        for (method, which), one in answers.items()
        if method not in takes and one.status != 405
    ]
    act = Act(rule_of(ROUTES[name]).removeprefix("system:"))
    for method in sorted(takes):
        found += _wrong_answers(who, act, {w: answers[method, w] for w in paths}, name, method)
    return found


def _wrong_answers(
    who: str, act: Act, by_path: dict[str, Answer], name: str, method: str
) -> list[str]:
    found = [
        f"{method} of {which} answers {one.status}"
        for which, one in by_path.items()
        if one.status >= 500
    ]
    if who == "nobody":
        for which, one in by_path.items():
            if one.status != 302 or not one.location.startswith("/sign-in/?next="):
                found.append(f"{method} of {which} answers {one.status} to a stranger")
        return found
    nothing = by_path["no system"]
    if nothing.status != 404:
        found.append(f"{method} of no system answers {nothing.status}")
    if who in ("outsider", "operator"):
        for which, one in by_path.items():
            if one.status != 404 or one.body != nothing.body:
                found.append(f"{method} of {which} tells an outsider something: {one.status}")
        return found
    inside = {which: one for which, one in by_path.items() if which != "no system"}
    if Role(who) not in ALLOWED[act]:
        for which, one in inside.items():
            if one.status != 403:
                found.append(f"{method} of {which} answers {one.status}, not 403")
        return found
    if inside["own"].status in (401, 404, 405) and name not in OWN_IS_ABSENT:
        found.append(f"{method} of own answers {inside['own'].status}")
    if "absent" in inside:
        foreign, absent = inside["foreign"], inside["absent"]
        if (foreign.status, absent.status) != (404, 404) or foreign.body != absent.body:
            found.append(f"{method}: foreign {foreign.status}, absent {absent.status}")
    return found


SENTENCES = {
    "upload-new": "Only an engineer of this system uploads evidence",
    "rules-decide": "Only a reviewer or an owner of this system decides",
    "verdict-form": "Only a reviewer of this system",
    "rubric-new": "Only an engineer or a reviewer of this system",
    "tier-new": "Only an owner of this system does that",
    "case-assign": "A viewer does not work on cases",
}


@pytest.mark.parametrize("name", SENTENCES)
def test_a_refusal_says_who_may(name: str, client: Client, cast: Cast, world: World) -> None:
    client.force_login(cast.viewer)
    method = "post" if "post" in allowed_methods(client, world.path(name)) else "get"
    answer = ask(client, method, world.path(name))

    assert answer.status == 403
    assert SENTENCES[name] in answer.body.decode()


def test_every_member_reads(client: Client, cast: Cast, world: World) -> None:
    client.force_login(cast.viewer)
    rules = ("system:read", "system:flag")
    found = {
        name: client.get(world.path(name)).status_code
        for name in IN_SYSTEM
        if rule_of(ROUTES[name]) in rules and name not in OWN_IS_ABSENT
    }
    assert {n: s for n, s in found.items() if s not in (200, 405)} == {"system-start": 302}


# The API: keys of a system, and members who are signed in.

IN_API = sorted(name for name, p in ROUTES.items() if rule_of(p).startswith("api-key:"))
API_NAMES = {
    "upload_id": "upload",
    "run_id": "run",
    "trial_id": "trial",
    "preview_id": "preview",
}


def api_path(name: str, values: dict[str, object], *, system: str) -> str:
    """The address of a route with the things of some values, asked for in a system."""
    wanted = ROUTES[name].pattern.converters
    keys = {key: values[API_NAMES.get(key, key)] for key in wanted}
    query = "" if "slug" in wanted else f"?system={system}"
    return reverse(name, kwargs=keys) + query


def api_answer(client: Client, method: str, path: str, **headers: str) -> tuple[int, bytes]:
    with transaction.atomic():
        more = {"content_type": "application/json"} if method == "post" else {}
        answer = getattr(client, method)(path, **more, **headers)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        transaction.set_rollback(True)
    return answer.status_code, body


@pytest.mark.parametrize("name", IN_API)
def test_the_api_is_closed_to_whoever_has_no_key_for_it(
    name: str, client: Client, cast: Cast, world: World, elsewhere: World
) -> None:
    slug = cast.system.slug
    path = api_path(name, world.values, system=slug)
    scope = Scope(rule_of(ROUTES[name]).removeprefix("api-key:"))
    other_scope = Scope.READ if scope is Scope.INGEST else Scope.INGEST
    with transaction.atomic():
        key, right = new_key(cast.system, cast.engineer)
        narrow = header(cast.system, cast.engineer, other_scope)
        stranger = person("another engineer")
        set_member(cast.other_system, stranger, Role.ENGINEER)
        theirs = header(cast.other_system, stranger)
        wrong = {"HTTP_AUTHORIZATION": right["HTTP_AUTHORIZATION"] + "x"}
        client.logout()
        takes = [m for m in ("get", "post") if api_answer(client, m, path, **right)[0] != 405]
        assert takes
        for method in takes:
            nobody = api_answer(client, method, path)[0]
            assert nobody in (401, 403), method
            assert api_answer(client, method, path, **wrong)[0] == 401
            assert api_answer(client, method, path, **narrow)[0] == 403
            foreign = api_answer(client, method, path, **theirs)
            nothing = {**world.values, **ABSENT, "slug": "no-such-system"}
            absent = api_answer(
                client, method, api_path(name, nothing, system="no-such-system"), **theirs
            )
            assert foreign == absent
            assert foreign[0] in (400, 404)  # a body that names nothing comes first
        revoke_api_key(key, now=timezone.now())
        assert {api_answer(client, method, path, **right)[0] for method in takes} == {401}
        transaction.set_rollback(True)


@pytest.mark.parametrize("who", ["outsider", "operator"])
def test_the_api_tells_an_outsider_nothing(
    who: str, client: Client, cast: Cast, world: World
) -> None:
    with transaction.atomic():
        client.force_login(people(cast)[who])
        found = {}
        for name in IN_API:
            path = api_path(name, world.values, system=cast.system.slug)
            for method in ("get", "post"):
                status, _ = api_answer(client, method, path)
                if status not in (401, 403, 404, 405):
                    found[name, method] = status
        transaction.set_rollback(True)
    assert found == {}


def test_a_change_of_role_holds_at_once(client: Client, cast: Cast, world: World) -> None:
    client.force_login(cast.engineer)
    path = world.path("upload-new")
    before = client.get(path).status_code
    set_member(cast.system, cast.engineer, Role.VIEWER)
    demoted = client.get(path).status_code
    Member.objects.filter(system=cast.system, user=cast.engineer).delete()
    removed = client.get(path).status_code

    assert (before, demoted, removed) == (200, 403, 404)


def test_a_person_who_is_no_longer_active_reaches_nothing(
    client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.engineer)
    User.objects.filter(pk=cast.engineer.pk).update(is_active=False)
    assert client.get(world.path("task-list")).status_code == 302
