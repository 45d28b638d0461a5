"""The fixed cast: who works on the system, and an outsider who must see nothing of it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from traces.models import Member, Role, System, User
from traces.services.people import create_system, set_member

PASSWORD = "correct horse battery staple"  # noqa: S105 - the cast's, in tests only


@dataclass(frozen=True, slots=True)
class Cast:
    """One system with its people, and another system that the outsider owns."""

    system: System
    engineer: User
    reviewer: User
    second_reviewer: User
    owner: User
    viewer: User
    outsider: User
    other_system: System

    def members(self) -> dict[Role, User]:
        """One person for each role."""
        return {
            Role.ENGINEER: self.engineer,
            Role.REVIEWER: self.reviewer,
            Role.OWNER: self.owner,
            Role.VIEWER: self.viewer,
        }


def person(username: str) -> User:
    """A person of that name, with the cast's password."""
    return User.objects.create_user(username=username, password=PASSWORD)


@pytest.fixture
def cast(db: None) -> Cast:
    """The cast, in a system named `airline`."""
    return cast_anew()


def cast_anew() -> Cast:
    """What the fixture gives, for those that share it among the tests of a module."""
    owner, outsider = person("owner"), person("outsider")
    system = create_system("Airline", by=owner)
    others = {
        "engineer": Role.ENGINEER,
        "reviewer": Role.REVIEWER,
        "second_reviewer": Role.REVIEWER,
        "viewer": Role.VIEWER,
    }
    people = {name: person(name) for name in others}
    for name, role in others.items():
        set_member(system, people[name], role)
    return Cast(
        system=system,
        owner=owner,
        outsider=outsider,
        other_system=create_system("Elsewhere", by=outsider),
        **people,
    )


def role_of(user: User, system: System) -> str:
    """The role that is stored."""
    return Member.objects.get(user=user, system=system).role
