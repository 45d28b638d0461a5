"""Who may reach what, on every route of the site."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import (
    LineOutcome,
    Member,
    Release,
    Role,
    Run,
    System,
    Task,
    Trial,
    Upload,
    UploadLine,
)
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

PUBLIC = {
    "sign-in",
    "sign-out",
    "demo-sign-in",
    "health",
    "csp-report",
    "api-schema",
    "api-docs",
}
RULE = re.compile(
    r"public|signed-in|system:(read|flag|contribute|review|own)|api-key:(ingest|read)"
)


def patterns(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    for each in (resolver or get_resolver()).url_patterns:
        if isinstance(each, URLResolver):
            yield from patterns(each)
        else:
            yield each


def rule_of(pattern: URLPattern) -> str:
    return getattr(pattern.callback, "access_rule", "none")


ROUTES = {str(pattern.name): pattern for pattern in patterns()}
IN_SYSTEM = sorted(name for name, p in ROUTES.items() if rule_of(p).startswith("system:"))
FOR_ENGINEERS = sorted(n for n, p in ROUTES.items() if rule_of(p) == "system:contribute")
SIGNED_IN = sorted(name for name, p in ROUTES.items() if rule_of(p) == "signed-in")
OBJECTS = {"task", "trial", "run", "release", "upload", "line", "step"}


@dataclass(frozen=True, slots=True)
class World:
    """Addresses of things in one system."""

    values: dict[str, object]

    def path(self, name: str, **other: object) -> str:
        wanted = ROUTES[name].pattern.converters
        values = {key: {**self.values, **other}[key] for key in wanted}
        return reverse(name, kwargs=values)


def world_of(system: System) -> World:
    ingest(system, [record("t1", 0), record("t1", 1), {"task_id": "broken"}])
    return World(
        {
            "slug": system.slug,
            "task": Task.objects.get(system=system, task_id="t1").uuid,
            "trial": Trial.objects.filter(system=system).order_by("pk")[0].uuid,
            "run": Run.objects.get(release__system=system).uuid,
            "release": Release.objects.get(system=system).uuid,
            "upload": Upload.objects.get(system=system).uuid,
            "line": UploadLine.objects.get(
                upload__system=system, outcome=LineOutcome.REFUSED.value
            ).pk,
            "step": 1,
        }
    )


@pytest.fixture
def world(cast: Cast) -> World:
    return world_of(cast.system)


def test_every_route_states_who_may_reach_it() -> None:
    rules = {pattern.name or str(pattern.pattern): rule_of(pattern) for pattern in patterns()}

    assert {name: rule for name, rule in rules.items() if not RULE.fullmatch(rule)} == {}
    assert {name for name, rule in rules.items() if rule == "public"} == PUBLIC


def test_a_route_names_its_system_exactly_where_its_rule_asks_for_one() -> None:
    with_slug = {name for name, p in ROUTES.items() if "slug" in p.pattern.converters}
    assert with_slug == set(IN_SYSTEM)


@pytest.mark.parametrize("name", [*IN_SYSTEM, *SIGNED_IN])
def test_a_stranger_is_asked_to_sign_in(name: str, client: Client, world: World) -> None:
    path = world.path(name)
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in/?next={path}")


@pytest.mark.parametrize("name", IN_SYSTEM)
def test_an_outsider_sees_nothing_and_cannot_tell_it_from_nothing(
    name: str, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.outsider)
    foreign = client.get(world.path(name))
    absent = client.get(world.path(name, slug="no-such-system"))

    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.content == absent.content


@pytest.mark.parametrize("name", IN_SYSTEM)
def test_an_outsider_cannot_post_either(
    name: str, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.outsider)
    assert client.post(world.path(name), {}).status_code in (404, 405)


@pytest.mark.parametrize(
    "name", [n for n in IN_SYSTEM if OBJECTS & set(ROUTES[n].pattern.converters)]
)
def test_another_systems_things_are_absent_under_ones_own_address(
    name: str, client: Client, cast: Cast, world: World
) -> None:
    elsewhere = world_of(cast.other_system)
    client.force_login(cast.engineer)
    foreign = client.get(elsewhere.path(name, slug=cast.system.slug))
    nothing = {key: uuid.uuid4() for key in ("task", "trial", "run", "release", "upload")}
    absent = client.get(world.path(name, **nothing))

    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.content == absent.content


@pytest.mark.parametrize("role", list(Role))
def test_every_member_reads(role: Role, client: Client, cast: Cast, world: World) -> None:
    client.force_login(cast.members()[role])
    readable = [name for name in IN_SYSTEM if rule_of(ROUTES[name]) == "system:read"]
    answers = {name: client.get(world.path(name)).status_code for name in readable}

    assert answers == {name: 302 if name == "system-start" else 200 for name in readable}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER, Role.OWNER])
@pytest.mark.parametrize("name", FOR_ENGINEERS)
def test_only_an_engineer_contributes(
    name: str, role: Role, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.members()[role])
    answer = client.get(world.path(name))

    assert answer.status_code == 403
    assert "Only an engineer of this system uploads evidence" in answer.content.decode()


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
    cast.engineer.is_active = False
    cast.engineer.save()
    assert client.get(world.path("task-list")).status_code == 302
