from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reviews.core.disposition import Mark
from reviews.models import Case, CheckMark, CheckMarkWithdrawal
from reviews.services.marks import OUTDATED, mark_check
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.visits import n_queries, root, visit
from traces.models import Role, Trial, TrialDisposition, User

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7*7 }}"
GIVEN = {"criterion": "outcome", "mark": "defective", "reason": "It looks at the wrong record."}


def stored_trial(cast: Cast) -> Trial:
    named = verdict(criterion=HOSTILE, mandatory=False)
    ingest(cast.system, [record("t1", 0, verdicts=[verdict(), named]), record("t1", 1)])
    return Trial.objects.get(system=cast.system, label="0")


def path_of(trial: Trial) -> str:
    return f"{root(trial.system)}trials/{trial.uuid}/mark/"


def post(client: Client, by: User, path: str, **data: Any) -> Any:
    client.force_login(by)
    return client.post(path, {**GIVEN, **data})


def said(client: Client, answer: Any) -> list[str]:
    return [str(message) for message in client.get(answer["Location"]).context["messages"]]


def withdraw_path(mark: CheckMark) -> str:
    return f"{root(mark.system)}marks/{mark.uuid}/withdraw"


def test_the_form_lists_what_can_be_marked(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)

    page = visit(client, cast.reviewer, path_of(trial), criterion="outcome")

    assert [(c.value, c.label, c.is_chosen) for c in page.choices] == [
        ("outcome", "outcome", True),
        (HOSTILE, HOSTILE, False),
        ("", "The fixture", False),
    ]
    assert page.choices[1].note == "from files; not mandatory"
    assert (page.contract, page.n_trials, page.marks) == (None, 2, ())


def test_a_mark_opens_the_trials_and_is_withdrawn(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)

    answer = post(client, cast.reviewer, path_of(trial))

    assert answer["Location"] == f"{root(cast.system)}trials/{trial.uuid}/"
    (message,) = said(client, answer)
    assert message == (
        "Outcome is marked as defective. An engineer mends the contract; until then the task's "
        "trials wait for it."
    )
    mark = CheckMark.objects.get()
    assert {d.value for d in TrialDisposition.objects.all()} == {"unresolved"}
    case = Case.objects.get(trial=trial)
    page = visit(client, cast.second_reviewer, path_of(trial), case=str(case.uuid))
    (held,) = page.marks
    assert (held.word, held.by, held.why_not) == ("defective", "reviewer", "")
    assert page.back == f"{root(cast.system)}cases/{case.uuid}/"
    assert page.choices[0].note == "from files; marked defective already"

    answer = post(client, cast.second_reviewer, held.withdraw_url, reason="It was right.")

    assert answer["Location"] == f"{path_of(trial)}?case={case.uuid}"
    assert said(client, answer) == ["The mark is withdrawn; the task's trials are decided anew."]
    assert CheckMarkWithdrawal.objects.get(mark=mark).reason == "It was right."
    assert {d.value for d in TrialDisposition.objects.all()} == {"pass"}


def test_a_mark_on_what_the_contract_said_before_is_not_kept(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    text = "task: t1\nbudget: {{tool_calls: {n}}}\n"
    contract_in_effect(cast.system, text.format(n=1), by=cast.engineer)
    seen = visit(client, cast.reviewer, path_of(trial)).seen
    contract_in_effect(cast.system, text.format(n=9), by=cast.engineer)
    data = {"criterion": "budget.tool_calls", "mark": "defective", "reason": "Too few."}

    answer = post(client, cast.reviewer, path_of(trial), **data, seen=seen)

    assert answer.status_code == 422
    assert answer.context["page"].form.non_field_errors() == [OUTDATED]
    assert not CheckMark.objects.exists()
    seen = answer.context["page"].seen
    assert post(client, cast.reviewer, path_of(trial), **data, seen=seen).status_code == 302
    assert CheckMark.objects.get().criterion == "budget.tool_calls"


def test_the_fixture_is_marked_too(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)

    answer = post(client, cast.reviewer, path_of(trial), criterion="", mark="ambiguous")

    assert said(client, answer)[0].startswith("The fixture is marked as ambiguous.")
    mark = CheckMark.objects.get()
    assert (mark.criterion, mark.mark) == ("", "ambiguous")


def test_what_is_wrong_comes_back_with_the_form(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    for data, errors in (
        ({"reason": ""}, {"reason": ["This field is required."]}),
        ({"mark": ""}, {"mark": ["Say what is wrong with it."]}),
        (
            {"criterion": "x"},
            {"__all__": ["This trial is not decided by a criterion 'x'."]},
        ),
    ):
        answer = post(client, cast.reviewer, path_of(trial), **data)
        assert answer.status_code == 422
        assert answer.context["page"].form.errors == errors
    client.force_login(cast.reviewer)
    answer = client.post(path_of(trial), {"mark": "defective", "reason": "x"})
    assert answer.context["page"].form.errors == {"__all__": ["Choose what is at fault."]}
    assert not CheckMark.objects.exists()


def test_a_withdrawal_needs_a_reason_and_comes_once(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    mark = mark_check(
        trial,
        criterion="outcome",
        mark=Mark.DEFECTIVE,
        reason="x",
        by=cast.reviewer,
        now=timezone.now(),
    )

    answer = post(client, cast.reviewer, withdraw_path(mark), reason="")
    assert said(client, answer) == ["The mark stays: This field is required."]
    assert len(said(client, post(client, cast.reviewer, withdraw_path(mark), reason="x"))) == 1
    answer = post(client, cast.reviewer, withdraw_path(mark), reason="x")
    (message,) = said(client, answer)
    assert message.startswith("The mark stays: reviewer withdrew this mark at ")


def test_hostile_text_stays_text(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    post(client, cast.reviewer, path_of(trial), criterion=HOSTILE, reason=HOSTILE)
    assert CheckMark.objects.get().criterion == HOSTILE

    text = client.get(path_of(trial)).content.decode()

    assert "<img src=x" not in text
    assert text.count("&lt;img src=x") > 3


@pytest.mark.parametrize("role", Role)
def test_only_reviewers_mark(role: Role, client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    client.force_login(cast.members()[role])

    wanted = 200 if role is Role.REVIEWER else 403
    assert client.get(path_of(trial)).status_code == wanted


def test_marks_of_others_are_not_there(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    mark = mark_check(
        trial,
        criterion="outcome",
        mark=Mark.DEFECTIVE,
        reason="x",
        by=cast.reviewer,
        now=timezone.now(),
    )
    assert post(client, cast.outsider, withdraw_path(mark), reason="x").status_code == 404
    gone = f"{root(cast.system)}marks/{uuid.uuid4()}/withdraw"
    assert post(client, cast.reviewer, gone, reason="x").status_code == 404
    assert not CheckMarkWithdrawal.objects.exists()


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_the_form_takes_a_constant_number_of_queries(n: int, client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    marks = [("outcome", Mark.DEFECTIVE), ("outcome", Mark.AMBIGUOUS), (HOSTILE, Mark.DEFECTIVE)]
    for criterion, mark in marks[:n]:
        mark_check(
            trial,
            criterion=criterion,
            mark=mark,
            reason="x",
            by=cast.reviewer,
            now=timezone.now(),
        )
    client.force_login(cast.reviewer)

    assert n_queries(client, path_of(trial)) == 14
