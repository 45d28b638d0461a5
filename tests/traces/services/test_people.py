"""Roles, removals and invitations when two people act at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier

import pytest
from django.db import connection
from django.utils import timezone

from tests.support.cast import person
from traces.models import Member, MemberChange, Role, System, User
from traces.services.invitations import make_invitation, take_invitation
from traces.services.people import (
    PeopleError,
    create_system,
    remove_member,
    set_member,
)


def at_once(*acts: Callable[[], object]) -> list[str]:
    """What each of the acts says when all are done at once; "" when it was done."""
    start = Barrier(len(acts))

    def done(act: Callable[[], object]) -> str:
        try:
            start.wait(10)
            act()
        except PeopleError as error:
            return str(error)
        else:
            return ""
        finally:
            connection.close()

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(done, acts))


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_remove_each_other_at_once_leave_one() -> None:
    first, second = person("first"), person("second")
    for n in range(5):
        system = create_system(f"System {n}", by=first)
        set_member(system, second, Role.OWNER, by=first)
        said = at_once(
            lambda system=system: remove_member(system, first, by=second),  # type: ignore[misc]
            lambda system=system: remove_member(system, second, by=first),  # type: ignore[misc]
        )
        assert sorted(map(bool, said)) == [False, True]
        assert Member.objects.filter(system=system, role="owner").count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_invitation_that_two_take_at_once_makes_one_member() -> None:
    owner, ada, bob = person("owner"), person("ada"), person("bob")
    system = create_system("One", by=owner)
    for _ in range(5):
        now = timezone.now()
        row = make_invitation(system, role=Role.VIEWER, note="x", by=owner, now=now).invitation

        def take(by: User, row: object = row) -> Callable[[], object]:
            return lambda: take_invitation(row, by=by, now=timezone.now())  # type: ignore[arg-type]

        said = at_once(take(ada), take(bob))
        assert sorted(said) == ["", "The invitation is over."]
        for user in (ada, bob):
            if Member.objects.filter(system=system, user=user).exists():
                remove_member(system, user, by=owner)


@pytest.mark.django_db
def test_since_is_when_the_role_of_now_began() -> None:
    owner, ada = person("owner"), person("ada")
    system, now = create_system("One", by=owner), timezone.now()
    later = now + timedelta(days=3)
    member = set_member(system, ada, Role.REVIEWER, by=owner, now=now)
    assert member.since == now
    set_member(system, ada, Role.OWNER, by=owner, now=later)
    set_member(system, ada, Role.OWNER, by=owner, now=later + timedelta(days=1))

    assert Member.objects.get(system=system, user=ada).since == later
    assert changes(system) == [
        ("owner", "", "owner", "owner"),
        ("ada", "", "reviewer", "owner"),
        ("ada", "reviewer", "owner", "owner"),
    ]


@pytest.mark.django_db
def test_an_engineer_of_a_new_system_is_written_down() -> None:
    owner, ada = person("owner"), person("ada")
    system = create_system("One", by=owner, engineer=ada)
    assert changes(system) == [("owner", "", "owner", "owner"), ("ada", "", "engineer", "owner")]


def changes(system: System) -> list[tuple[str, str, str, str | None]]:
    rows = MemberChange.objects.filter(system=system).order_by("pk")
    return [(r.user.username, r.old, r.new, r.by.username if r.by else None) for r in rows]
