from __future__ import annotations

import pytest

from reviews.core.disposition import NextAction
from reviews.models import CaseState
from reviews.permissions.cases import (
    CASE_ASIDE,
    CASE_CLOSED,
    CASE_OPEN,
    NO_RERUN,
    NOT_A_MEMBER,
    NOT_A_WORKER,
    NOT_ASIDE,
    assignee_refusal,
    commenting_refusal,
    open_refusal,
    rerun_refusal,
    taking_up_refusal,
    workers_of,
    working_refusal,
)
from reviews.permissions.marks import (
    NOT_A_REVIEWER,
    WROTE_IT,
    mark_withdrawal_refusal,
    marking_refusal,
)
from traces.models import Role

ROLES = [*Role, None]


@pytest.mark.parametrize("role", ROLES, ids=str)
def test_who_works_on_cases_and_who_comments(role: Role | None) -> None:
    working = {Role.VIEWER: NOT_A_WORKER, None: NOT_A_MEMBER}.get(role, "")
    assert working_refusal(role) == working
    assert (commenting_refusal(role) == "") is (role is not None)


@pytest.mark.parametrize(
    ("state", "refused", "taken_up"),
    [
        pytest.param(CaseState.OPEN, "", CASE_OPEN, id="open"),
        pytest.param(CaseState.SET_ASIDE, CASE_ASIDE, "", id="set aside"),
        pytest.param(CaseState.CLOSED, CASE_CLOSED, NOT_ASIDE, id="closed"),
    ],
)
def test_what_a_case_takes_depends_on_its_state(
    state: CaseState, refused: str, taken_up: str
) -> None:
    assert (open_refusal(state), taking_up_refusal(state)) == (refused, taken_up)


@pytest.mark.parametrize("action", NextAction)
def test_a_rerun_is_taken_where_it_is_the_next_action(action: NextAction) -> None:
    is_rerun = action is NextAction.RERUN_TRIAL
    assert rerun_refusal([action.value]) == ("" if is_rerun else NO_RERUN)


@pytest.mark.parametrize("role", ROLES, ids=str)
@pytest.mark.parametrize("action", NextAction)
def test_a_case_goes_to_the_role_that_works_it(action: NextAction, role: Role | None) -> None:
    refusal = assignee_refusal(role, "Ada", [action.value])
    if role is not None and role.value == action.worked_by.value:
        assert refusal == ""
    elif role is None:
        assert refusal == "Ada is no member of this system."
    else:
        assert refusal.startswith("Ada is a")
        assert refusal.endswith(f"{action.worked_by.value} works this case.")


def test_the_role_of_the_first_action_comes_first() -> None:
    actions = ["repair_evidence", "grade", "rerun_trial"]
    assert workers_of(actions) == ("engineer", "reviewer")
    assert assignee_refusal(Role.ENGINEER, "Ada", actions) == ""
    assert assignee_refusal(Role.REVIEWER, "Ada", actions) == ""


@pytest.mark.parametrize("role", ROLES, ids=str)
def test_a_reviewer_who_did_not_write_it_marks_it(role: Role | None) -> None:
    is_reviewer = role is Role.REVIEWER
    assert marking_refusal(role) == ("" if is_reviewer else NOT_A_REVIEWER)
    assert marking_refusal(role, has_written=True) == (WROTE_IT if is_reviewer else NOT_A_REVIEWER)
    for is_own, has_written, refused in (
        (True, True, ""),
        (False, False, ""),
        (False, True, WROTE_IT),
    ):
        refusal = mark_withdrawal_refusal(role, is_own=is_own, has_written=has_written)
        assert refusal == (refused if is_reviewer else NOT_A_REVIEWER)
