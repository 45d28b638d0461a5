from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_review import add_evidence_to
from reviews.models import Case, Verdict
from reviews.permissions.verdicts import BROUGHT_EVIDENCE, NOT_A_REVIEWER
from reviews.services.person_verdicts import OUTDATED
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.visits import n_queries, root, visit
from traces.core.additions import Addition
from traces.models import Role, Task, Trial, TrialDisposition
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

HOSTILE = "<b>tone</b>\u202e"


def stored(cast: Cast, *verdicts: dict[str, Any]) -> str:
    """A trial that a judge alone has graded on `tone`, and where its form is."""
    given = verdicts or (verdict(), verdict("pass", criterion="tone", kind="model", grader="judge"))
    ingest(cast.system, [record("t1", 0, verdicts=list(given))])
    return f"{root(cast.system)}trials/{Trial.objects.get(system=cast.system).uuid}/verdict/"


def values(**changed: Any) -> dict[str, Any]:
    asked = {"criterion": "tone", "value": "pass", "reason": "Step 2 is polite.", "steps": "2, 4"}
    return asked | changed


def disposition() -> str:
    return TrialDisposition.objects.get().value


def test_the_form_offers_the_criteria_with_what_is_said(client: Client, cast: Cast) -> None:
    page = visit(client, cast.reviewer, stored(cast), criterion="tone")

    assert (page.heading, page.why_not, page.corrects, page.contract) == (
        "Give a verdict",
        "",
        "",
        None,
    )
    assert [
        (each.value, each.notes, each.standing.label, each.voters, each.is_chosen)
        for each in page.choices
    ] == [
        ("outcome", "outcome", "pass", "state check says pass", False),
        ("tone", "semantic", "open", "", True),
    ]


def test_a_verdict_decides_the_trial_and_closes_its_case(client: Client, cast: Cast) -> None:
    path = stored(cast)
    assert disposition() == "unresolved"
    assert Case.objects.get().state == "open"
    client.force_login(cast.reviewer)

    answer = client.post(path, values(), follow=True)

    assert answer.redirect_chain == [(path.removesuffix("verdict/"), 302)]
    assert [str(message) for message in answer.context["messages"]] == [
        "Your verdict on tone is kept: pass."
    ]
    row = Verdict.objects.get(by=cast.reviewer)
    assert (row.value, row.cited_steps, row.rationale) == ("pass", [2, 4], "Step 2 is polite.")
    assert disposition() == "pass"
    case = Case.objects.get()
    assert case.state == "closed"
    assert [event.kind for event in case.events.order_by("pk")] == ["verdict", "closed"]


def test_a_form_opened_from_a_case_leads_back_to_it(client: Client, cast: Cast) -> None:
    path = stored(cast)
    case = Case.objects.get()
    page = visit(client, cast.reviewer, path, case=case.uuid)

    answer = client.post(page.action, values())

    assert answer["Location"] == f"{root(cast.system)}cases/{case.uuid}/"


def test_a_second_click_keeps_one_verdict(client: Client, cast: Cast) -> None:
    path = stored(cast)
    client.force_login(cast.reviewer)

    answers = [client.post(path, values()) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [302, 302]
    assert Verdict.objects.filter(by=cast.reviewer).count() == 1


def test_ones_own_verdict_is_corrected(client: Client, cast: Cast) -> None:
    path = stored(cast)
    client.force_login(cast.reviewer)
    client.post(path, values())
    first = Verdict.objects.get(by=cast.reviewer)
    page = visit(client, cast.reviewer, path, criterion="tone", corrects=first.pk)
    assert (page.heading, page.corrects, len(page.choices)) == (
        "Correct your verdict",
        str(first.pk),
        1,
    )
    assert page.form["steps"].value() == "2, 4"
    assert page.other.label == "Another criterion"

    refused = client.post(path, values(value="fail"))
    assert refused.status_code == 422
    assert refused.context["page"].form.non_field_errors() == [
        "You have given a verdict on this criterion already; correct that one, with a reason."
    ]
    corrected = client.post(path, values(value="fail", corrects=str(first.pk)))

    assert corrected.status_code == 302
    assert disposition() == "fail"
    assert Verdict.objects.get(corrects=first).value == "fail"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        pytest.param({"criterion": ""}, "Choose a criterion.", id="no-criterion"),
        pytest.param({"criterion": "x\x00"}, "Null characters are not allowed.", id="null"),
        pytest.param({"criterion": "none"}, "This trial is not decided by", id="criterion"),
        pytest.param({"value": ""}, "Say pass, fail or unknown.", id="no-value"),
        pytest.param({"value": "error"}, "A person says pass, fail or unknown.", id="value"),
        pytest.param({"reason": " "}, "This field is required.", id="no-reason"),
        pytest.param({"reason": "\u200b"}, "Say why: the reason is what", id="silent"),
        pytest.param({"steps": "two"}, "is no number of a step; write them as 2, 5.", id="word"),
        pytest.param({"steps": "2 9"}, "There is no step 9; the transcript has 4", id="step"),
        pytest.param({"corrects": "x"}, "There is no such verdict of yours", id="corrects"),
        pytest.param({"corrects": "9" * 18}, "There is no such verdict of yours", id="far"),
    ],
)
def test_a_wrong_form_answers_with_the_place_and_the_reason(
    changed: dict[str, str], error: str, client: Client, cast: Cast
) -> None:
    path = stored(cast)
    client.force_login(cast.reviewer)

    answer = client.post(path, values(**changed))

    assert answer.status_code == 422
    assert error in answer.content.decode()
    assert not Verdict.objects.exclude(by=None).exists()


def test_nobody_corrects_the_verdict_of_another(client: Client, cast: Cast) -> None:
    path = stored(cast)
    client.force_login(cast.second_reviewer)
    client.post(path, values())
    theirs = Verdict.objects.get(by=cast.second_reviewer)
    client.force_login(cast.reviewer)

    answer = client.post(path, values(corrects=str(theirs.pk)))

    assert answer.status_code == 403
    assert visit(client, cast.reviewer, path, criterion="tone").corrects == ""


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.REVIEWER])
def test_others_give_no_verdict(role: Role, client: Client, cast: Cast) -> None:
    path = stored(cast)
    client.force_login(cast.members()[role])

    assert client.get(path).status_code == 403
    assert client.post(path, values()).status_code == 403


def test_who_brought_the_evidence_sees_why_they_may_not(client: Client, cast: Cast) -> None:
    set_member(cast.system, cast.engineer, Role.REVIEWER)
    ingest(cast.system, [record("t1", 0)], by=cast.engineer)
    trial = Trial.objects.get()
    path = f"{root(cast.system)}trials/{trial.uuid}/verdict/"

    assert visit(client, cast.engineer, path).why_not == BROUGHT_EVIDENCE
    answer = client.post(path, values(criterion="outcome"))
    assert answer.status_code == 403
    assert NOT_A_REVIEWER not in answer.content.decode()


def test_a_trial_of_another_system_is_absent(client: Client, cast: Cast) -> None:
    ingest(cast.other_system, [record("t1", 0)])
    trial = Trial.objects.get(system=cast.other_system)
    client.force_login(cast.reviewer)
    assert client.get(f"{root(cast.system)}trials/{trial.uuid}/verdict/").status_code == 404


def test_hostile_names_stay_text(client: Client, cast: Cast) -> None:
    path = stored(cast, verdict("pass", criterion=HOSTILE, kind="model", grader=HOSTILE))
    client.force_login(cast.reviewer)
    assert "<b>tone</b>" not in client.get(path, {"criterion": HOSTILE}).content.decode()

    answer = client.post(path, values(criterion=HOSTILE), follow=True)

    assert answer.status_code == 200
    assert "<b>tone</b>" not in answer.content.decode()
    assert "\u202e" not in str(next(iter(answer.context["messages"])))
    assert Verdict.objects.get(by=cast.reviewer).criterion.name == HOSTILE


def test_the_question_of_a_rubric_is_shown(client: Client, cast: Cast) -> None:
    path = stored(cast)
    text = "task: t1\nsemantic: [{rubric: tone, question: Is it polite?}]\n"
    contract_in_effect(cast.system, text, by=cast.engineer)

    page = visit(client, cast.reviewer, path)

    assert [(each.value, each.question) for each in page.choices] == [("tone", "Is it polite?")]
    assert page.contract.label == "version 1"


@pytest.mark.parametrize("n", [1, 3])
def test_the_form_takes_the_same_queries_whatever_it_lists(
    n: int, client: Client, cast: Cast
) -> None:
    path = stored(cast, *[verdict(criterion=f"c{at}") for at in range(n)])
    client.force_login(cast.reviewer)
    assert n_queries(client, path) == 18


RUBRIC = "task: t1\nsemantic:\n  - {{rubric: tone, question: {question}}}\n"


def test_a_verdict_on_what_was_asked_before_is_not_kept(client: Client, cast: Cast) -> None:
    path = stored(cast)
    contract_in_effect(cast.system, RUBRIC.format(question="Is it polite?"), by=cast.engineer)
    seen = visit(client, cast.reviewer, path).seen
    contract_in_effect(cast.system, RUBRIC.format(question="Is it short?"), by=cast.engineer)

    answer = client.post(path, values(seen=seen))

    page = answer.context["page"]
    assert answer.status_code == 422
    assert page.form.non_field_errors() == [OUTDATED]
    assert [each.question for each in page.choices] == ["Is it short?"]
    assert not Verdict.objects.filter(by=cast.reviewer).exists()

    assert client.post(path, values(seen=page.seen)).status_code == 302
    assert Verdict.objects.get(by=cast.reviewer).contract == Task.objects.get().contract


def test_a_fail_on_less_evidence_is_offered_for_correction(client: Client, cast: Cast) -> None:
    path = stored(cast, verdict(), verdict(criterion="tone", kind="model", grader="judge"))
    client.force_login(cast.reviewer)
    client.post(path, values(value="fail"))
    add_evidence_to(
        Trial.objects.get(), Addition(cost_usd=Decimal(1)), source="api", reason="lost",
        by=cast.engineer, now=timezone.now(),
    )  # fmt: skip
    first = Verdict.objects.get(by=cast.reviewer)

    page = visit(client, cast.reviewer, path, criterion="tone")
    assert (page.heading, page.corrects) == ("Correct your verdict", str(first.pk))
    answer = client.post(path, values(corrects=page.corrects, seen=page.seen))

    assert answer.status_code == 302
    assert disposition() == "pass"


def test_a_verdict_is_not_kept_on_evidence_that_nobody_saw(client: Client, cast: Cast) -> None:
    path = stored(cast)
    seen = visit(client, cast.reviewer, path).seen
    add_evidence_to(
        Trial.objects.get(), Addition(cost_usd=Decimal(1)), source="api", reason="lost",
        by=cast.engineer, now=timezone.now(),
    )  # fmt: skip

    answer = client.post(path, values(seen=seen))

    assert answer.status_code == 422
    assert answer.context["page"].form.non_field_errors() == [OUTDATED]
    assert client.post(path, values(seen=answer.context["page"].seen)).status_code == 302
    assert Verdict.objects.get(by=cast.reviewer).evidence_order == 1
