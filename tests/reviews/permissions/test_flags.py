from __future__ import annotations

import pytest

from reviews.permissions.flags import closing_refusal, flagging_refusal, role_in
from tests.support.cast import Cast
from traces.models import Role

SECOND_LOOK = (
    "A flag asks for a second look by somebody who did not build the release: a reviewer "
    "of this system closes it. Whoever raised it may withdraw it."
)


@pytest.mark.parametrize("role", Role)
def test_every_member_flags(role: Role) -> None:
    assert flagging_refusal(role) == ""


def test_nobody_else_flags_or_closes() -> None:
    assert flagging_refusal(None) == "Only a member of this system flags its trials."
    for is_own in (True, False):
        assert closing_refusal(None, is_own=is_own) == (
            "Only a member of this system closes its flags."
        )


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        (Role.VIEWER, SECOND_LOOK),
        (Role.ENGINEER, SECOND_LOOK),
        (Role.REVIEWER, ""),
        (Role.OWNER, SECOND_LOOK),
    ],
)
def test_a_reviewer_closes_any_flag_and_others_their_own(role: Role, sentence: str) -> None:
    assert closing_refusal(role, is_own=False) == sentence
    assert closing_refusal(role, is_own=True) == ""


@pytest.mark.django_db
def test_a_role_is_that_of_an_active_member_of_the_system(cast: Cast) -> None:
    for role, person in cast.members().items():
        assert role_in(cast.system.pk, person) is role
        assert role_in(cast.other_system.pk, person) is None
    assert role_in(cast.system.pk, cast.outsider) is None

    cast.reviewer.is_active = False
    cast.reviewer.save()
    assert role_in(cast.system.pk, cast.reviewer) is None
