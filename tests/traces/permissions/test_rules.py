"""Sentences on rules are the same wherever they are said."""

from __future__ import annotations

import pytest

from evalsite.access import Access, Act
from tests.support.cast import Cast
from tests.support.rules import approved, proposed
from traces.core.rule_changes import RuleChange
from traces.core.trajectory import ToolKind
from traces.models import Role
from traces.permissions.rules import decision_refusal, draft_refusal, restart_refusal, stop_refusal

pytestmark = pytest.mark.django_db

READ = RuleChange(kinds=(("get_order", ToolKind.READ),))


@pytest.mark.parametrize("role", list(Role))
def test_a_route_and_a_service_refuse_the_same_roles(cast: Cast, role: Role) -> None:
    user = cast.members()[role]
    access = Access(user, cast.system, role)
    proposal, work = proposed(cast, READ), approved(cast, READ)

    assert decision_refusal(proposal, user) == access.refusal(Act.APPROVE)
    assert stop_refusal(work, user) == access.refusal(Act.RECOMPUTE)
    assert bool(draft_refusal(cast.system, user)) is not access.may(Act.CONTRIBUTE)
    if not access.may(Act.RECOMPUTE):
        assert restart_refusal(work, user) == access.refusal(Act.RECOMPUTE)
