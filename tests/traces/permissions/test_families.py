from __future__ import annotations

import pytest

from tests.support.cast import Cast
from traces.models import Role
from traces.permissions.families import NOT_AN_ENGINEER, tasks_refusal
from traces.services.people import set_member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        (Role.VIEWER, NOT_AN_ENGINEER),
        (Role.ENGINEER, ""),
        (Role.REVIEWER, NOT_AN_ENGINEER),
        (Role.OWNER, NOT_AN_ENGINEER),
    ],
)
def test_only_an_engineer_changes_tasks(role: Role, sentence: str, cast: Cast) -> None:
    assert tasks_refusal(cast.system.pk, cast.members()[role]) == sentence


def test_an_outsider_and_a_person_who_left_change_nothing(cast: Cast) -> None:
    cast.engineer.is_active = False
    cast.engineer.save()
    set_member(cast.other_system, cast.viewer, Role.ENGINEER)

    for person in (cast.outsider, cast.engineer, cast.viewer):
        assert tasks_refusal(cast.system.pk, person) == NOT_AN_ENGINEER
