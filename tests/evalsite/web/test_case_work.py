from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.web.case_work import CHOOSE_CASES, NOT_A_WORKER
from reviews.models import Case, CaseEvent
from reviews.permissions.cases import CASE_CLOSED, NO_RERUN
from reviews.services.case_rows import follow_dispositions
from reviews.services.cases import NO_COMMENT, NOT_OF_SYSTEM, set_aside
from tests.support.cases import broken, case_of_trial, passed, stored_trials
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.visits import root
from traces.models import Role, Trial, User

pytestmark = pytest.mark.django_db


def open_case(cast: Cast, *actions: str) -> Case:
    (trial,) = stored_trials(cast)
    return case_of_trial(trial, actions=actions or ("repair_evidence", "grade"))


def path_of(case: Case, act: str = "") -> str:
    return f"{root(case.system)}cases/{case.uuid}/{act}"


def post(client: Client, by: User, path: str, **data: Any) -> Any:
    client.force_login(by)
    return client.post(path, data)


def said(client: Client, answer: Any) -> list[str]:
    """What the next page tells the person."""
    return [str(message) for message in client.get(answer["Location"]).context["messages"]]


# ---- one case ----


def test_a_case_is_taken_given_and_let_go(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    for to, holder, words in (
        ("me", cast.engineer, "The case is yours now."),
        (str(cast.reviewer.uuid), cast.reviewer, "The case is reviewer's now."),
        ("", None, "The case is nobody's now."),
    ):
        answer = post(client, cast.engineer, f"{path_of(case, 'assign')}?role=engineer", to=to)
        assert (answer.status_code, answer["Location"]) == (302, f"{path_of(case)}?role=engineer")
        assert said(client, answer) == [words]
        case.refresh_from_db()
        assert case.assignee == holder


def test_who_saw_another_holder_is_told(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    Case.objects.update(assignee=cast.reviewer)

    answer = post(client, cast.engineer, path_of(case, "assign"), to="me", seen="")

    assert answer.status_code == 422
    assert answer.context["page"].assign_errors == (
        "Meanwhile it was assigned to reviewer; assign it again if that is wrong.",
    )
    post(client, cast.engineer, path_of(case, "assign"), to="me", seen=str(cast.reviewer.uuid))
    assert Case.objects.get().assignee == cast.engineer


@pytest.mark.parametrize(
    "to",
    [pytest.param("x", id="word"), pytest.param(str(uuid.UUID(int=0)), id="stranger")],
)
def test_a_case_is_given_to_members_only(to: str, client: Client, cast: Cast) -> None:
    answer = post(client, cast.engineer, path_of(open_case(cast), "assign"), to=to)

    assert answer.status_code == 422
    assert answer.context["page"].assign_errors == (NOT_A_WORKER,)


def test_a_due_date_is_set_and_wrong_ones_come_back(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    day = timezone.now().date() + timedelta(days=3)

    answer = post(client, cast.engineer, path_of(case, "due"), due_on=day.isoformat())
    assert said(client, answer) == ["The due date is set."]
    assert Case.objects.get().due_on == day

    for wrong, words in (
        ("2001-01-01", "A due date is today or later, and before 2200."),
        ("soon", "Write a date as 2026-12-31."),
        ("9999-12-31", "A due date is today or later, and before 2200."),
    ):
        answer = post(client, cast.engineer, path_of(case, "due"), due_on=wrong)
        assert answer.status_code == 422
        assert answer.context["page"].due_form.errors == {"due_on": [words]}
    answer = post(client, cast.engineer, path_of(case, "due"), due_on="")
    assert said(client, answer) == ["The case has no due date now."]
    assert Case.objects.get().due_on is None


@pytest.mark.parametrize("role", Role)
def test_every_member_comments(role: Role, client: Client, cast: Cast) -> None:
    case = open_case(cast)

    answer = post(client, cast.members()[role], path_of(case, "comment"), comment="Look here.")

    assert said(client, answer) == ["Your comment stands in the history."]
    assert CaseEvent.objects.get().text == "Look here."


def test_a_comment_that_says_nothing_comes_back(client: Client, cast: Cast) -> None:
    case = open_case(cast)

    answer = post(client, cast.viewer, path_of(case, "comment"), comment="\u200b")

    assert answer.status_code == 422
    assert answer.context["page"].comment_form.errors == {"comment": [NO_COMMENT]}


def test_a_case_is_set_aside_and_taken_up_again(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    answer = post(client, cast.engineer, path_of(case, "set-aside"), reason="")
    assert (answer.status_code, Case.objects.get().state) == (422, "open")

    answer = post(client, cast.engineer, path_of(case, "set-aside"), reason="Known limit.")
    assert said(client, answer) == ["The case is set aside."]
    assert Case.objects.get().state == "set_aside"

    answer = post(client, cast.reviewer, path_of(case, "take-up"))
    assert said(client, answer) == ["The case is open again."]
    answer = post(client, cast.reviewer, path_of(case, "take-up"))
    assert said(client, answer) == ["The case is open already."]


def test_a_rerun_is_asked_for(client: Client, cast: Cast) -> None:
    case = open_case(cast, "rerun_trial")

    answer = post(client, cast.engineer, path_of(case, "rerun"), reason="It timed out.")

    words = "The rerun is asked for. The case closes when a further attempt comes."
    assert said(client, answer) == [words]
    assert CaseEvent.objects.get().kind == "rerun_asked"


def test_a_rerun_that_helps_nothing_is_refused(client: Client, cast: Cast) -> None:
    answer = post(client, cast.engineer, path_of(open_case(cast), "rerun"), reason="x")

    assert (answer.status_code, CaseEvent.objects.count()) == (422, 0)
    # The form is not on the page of such a case, so that the sentence has no place but here.
    assert NO_RERUN.startswith("A further attempt is taken only where the harness broke.")


def test_what_closed_meanwhile_takes_no_act(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    follow_dispositions([passed(case.trial)], now=timezone.now())

    answer = post(client, cast.engineer, path_of(case, "assign"), to="me")
    assert answer.context["page"].assign_errors == (CASE_CLOSED,)
    answer = post(client, cast.engineer, path_of(case, "set-aside"), reason="x")
    assert answer.status_code == 422


@pytest.mark.parametrize("act", ["assign", "due", "comment", "set-aside", "take-up", "rerun"])
def test_cases_of_others_are_not_there(act: str, client: Client, cast: Cast) -> None:
    case = open_case(cast)
    foreign = f"{root(cast.other_system)}cases/{case.uuid}/{act}"

    assert post(client, cast.outsider, path_of(case, act)).status_code == 404
    assert post(client, cast.outsider, foreign).status_code == 404
    assert client.get(path_of(case, act)).status_code in (404, 405)


# ---- several cases of the queue ----


def boxes(*cases: Case, holder: User | None = None) -> list[str]:
    return [f"{case.uuid}:{holder.uuid if holder else ''}" for case in cases]


def test_ticked_cases_are_taken_as_far_as_one_works_them(client: Client, cast: Cast) -> None:
    first, second, third = stored_trials(cast, 3)
    cases = [
        case_of_trial(first),
        case_of_trial(second),
        case_of_trial(third, actions=("grade",)),
    ]
    path = f"{root(cast.system)}cases/assign"

    answer = post(
        client, cast.engineer, f"{path}?role=engineer&after=5.1", case=boxes(*cases), to="me"
    )

    queue = f"{root(cast.system)}cases/?role=engineer&after=5.1#case-{cases[0].uuid}"
    assert answer["Location"] == queue
    assert said(client, answer) == [
        "2 cases are yours now.",
        "engineer is an engineer here; a reviewer works this case.",
    ]
    holders = [case.assignee for case in Case.objects.order_by("pk")]
    assert holders == [cast.engineer, cast.engineer, None]

    answer = post(
        client, cast.owner, path, case=boxes(cases[0], holder=cast.engineer), person="nobody"
    )
    assert said(client, answer) == ["1 case is nobody's now."]
    answer = post(client, cast.owner, path, case=boxes(cases[0]), person="nobody")
    assert said(client, answer) == ["Nothing changed: the chosen are nobody's already."]


def test_a_ticked_case_that_somebody_took_stays_theirs(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    Case.objects.update(assignee=cast.reviewer)

    answer = post(
        client, cast.engineer, f"{root(cast.system)}cases/assign", case=boxes(case), to="me"
    )

    assert said(client, answer) == [
        "Meanwhile it was assigned to reviewer; assign it again if that is wrong."
    ]
    assert Case.objects.get().assignee == cast.reviewer


def test_nonsense_assigns_nothing(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    ingest(cast.other_system, [record("t1", 0)])
    other = case_of_trial(Trial.objects.get(system=cast.other_system))
    path = f"{root(cast.system)}cases/assign"
    for data, words in (
        ({}, CHOOSE_CASES),
        ({"case": ["x"]}, NOT_OF_SYSTEM),
        ({"case": boxes(case, other), "to": "me"}, NOT_OF_SYSTEM),
        ({"case": boxes(case), "person": "x"}, NOT_A_WORKER),
    ):
        assert said(client, post(client, cast.engineer, path, **data)) == [words]
    assert not CaseEvent.objects.exists()


def test_a_viewer_assigns_nothing(client: Client, cast: Cast) -> None:
    case = open_case(cast)
    path = f"{root(cast.system)}cases/assign"

    assert post(client, cast.viewer, path, case=boxes(case), to="me").status_code == 403
    assert post(client, cast.viewer, path_of(case, "assign"), to="me").status_code == 403


def test_an_act_says_no_more_than_the_page_knows(client: Client, cast: Cast) -> None:
    first, second = stored_trials(cast, 2)
    follow_dispositions([broken(first)], now=timezone.now())
    case = case_of_trial(second)
    set_aside(case, reason="x", by=cast.engineer, now=timezone.now())

    answer = post(client, cast.engineer, path_of(case, "due"), due_on="")

    assert answer.status_code == 422
    assert answer.context["page"].work_why_not.startswith("The case is set aside")
