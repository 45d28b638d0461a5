from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import HeldOutExposure, Role, SplitChange, Task, Trial
from traces.permissions.families import NOT_AN_ENGINEER
from traces.services.families import note_exposure

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
HOSTILE = "<b>f</b>\u202e&amp;"


def families(cast: Cast) -> str:
    return f"{root(cast.system)}families/"


def put(cast: Cast, name: str, family: str, split: str = "") -> Task:
    Task.objects.filter(system=cast.system, task_id=name).update(family=family, split=split)
    return Task.objects.get(system=cast.system, task_id=name)


def three_families(cast: Cast) -> None:
    ingest(cast.system, [record(name, 0) for name in ("a", "b", "c", "lone")])
    put(cast, "a", "one", "held_out")
    put(cast, "b", "one", "tuning")
    put(cast, "c", "two", "held_out")


def test_families_are_listed_with_their_splits(client: Client, cast: Cast) -> None:
    three_families(cast)

    page = visit(client, cast.viewer, families(cast))

    assert [
        (row.name.label, [badge.label for badge in row.splits], row.is_apart, row.n_tasks)
        for row in page.rows
    ] == [("one", ["held out", "tuning"], True, 2), ("two", ["held out"], False, 1)]
    assert page.rows[0].name.href == f"{root(cast.system)}tasks/?family=one"
    assert [(choice.label, choice.count) for choice in page.shown] == [
        ("Families", 2),
        ("Tasks without family", 1),
    ]
    assert {row.change_url for row in page.rows} == {""}
    assert (page.form, page.offers, page.empty) == (None, (), None)


def test_tasks_without_family_are_listed_apart(client: Client, cast: Cast) -> None:
    three_families(cast)
    task = put(cast, "lone", "", "held_out")

    (row,) = visit(client, cast.engineer, families(cast), show="tasks").rows

    assert (row.name.label, row.name.href) == ("lone", f"{root(cast.system)}tasks/{task.uuid}/")
    assert row.change_url == f"{families(cast)}?show=tasks&task={task.uuid}#form"
    assert row.expose_url == f"{families(cast)}?show=tasks&expose={task.uuid}#form"


def test_an_engineer_moves_a_family(client: Client, cast: Cast) -> None:
    three_families(cast)
    page = visit(client, cast.engineer, families(cast), family="one")
    assert (page.form.heading, page.form.why_not) == ("Put family one into another split", "")

    values = {"family": "one", "split": "regression", "reason": "Stable for weeks."}
    answer = client.post(f"{families(cast)}split", values, follow=True)

    assert [str(m) for m in answer.context["messages"]] == [
        "2 tasks of family one moved to split regression."
    ]
    row = answer.context["page"].rows[0]
    assert [badge.label for badge in row.splits] == ["regression"]
    assert (row.change.by, row.change.reason) == ("engineer", "Stable for weeks.")


def test_a_second_click_moves_nothing_more(client: Client, cast: Cast) -> None:
    three_families(cast)
    client.force_login(cast.engineer)
    values = {"family": "one", "split": "tuning", "reason": "Seen."}

    answers = [client.post(f"{families(cast)}split", values) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [302, 302]
    assert SplitChange.objects.count() == 1


@pytest.mark.parametrize(
    ("values", "error"),
    [
        pytest.param({"split": "prod"}, "A split is tuning, held out or regression.", id="split"),
        pytest.param({"reason": ""}, "This field is required.", id="reason"),
        pytest.param(
            {"family": "none such"},
            "There is no task of family &#x27;none such&#x27; in this system.",
            id="family",
        ),
    ],
)
def test_a_wrong_change_answers_with_the_form(
    values: dict[str, str], error: str, client: Client, cast: Cast
) -> None:
    three_families(cast)
    client.force_login(cast.engineer)
    asked = {"family": "one", "split": "tuning", "reason": "Seen."} | values

    answer = client.post(f"{families(cast)}split", asked)

    assert answer.status_code == 422
    assert error in answer.content.decode()
    assert not SplitChange.objects.exists()


def test_a_task_of_another_system_is_not_moved(client: Client, cast: Cast) -> None:
    ingest(cast.other_system, [record("z", 0)])
    client.force_login(cast.engineer)
    task = Task.objects.get(system=cast.other_system)

    values = {"task": str(task.uuid), "split": "tuning", "reason": "Seen."}
    assert client.post(f"{families(cast)}split", values).status_code == 404
    exposure = f"{root(cast.system)}tasks/{task.uuid}/exposure"
    assert client.post(exposure, {"reason": "Used."}).status_code == 404


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ENGINEER])
def test_others_see_why_they_may_not(role: Role, client: Client, cast: Cast) -> None:
    three_families(cast)
    person = cast.members()[role]

    page = visit(client, person, families(cast), family="one")
    answer = client.post(
        f"{families(cast)}split", {"family": "one", "split": "tuning", "reason": "x"}
    )

    assert page.form.why_not == NOT_AN_ENGINEER
    assert answer.status_code == 403
    assert not SplitChange.objects.exists()


def test_an_exposure_is_noted_from_a_trial(client: Client, cast: Cast) -> None:
    three_families(cast)
    task = Task.objects.get(task_id="c")
    trial = Trial.objects.get(task=task)
    page = visit(client, cast.engineer, families(cast), expose=task.uuid, trial=trial.uuid)
    assert page.form.heading == "A held-out failure was used: task c, trial 0"
    assert page.form.cancel_url == f"{root(cast.system)}trials/{trial.uuid}/"

    values = {"trial": str(trial.uuid), "reason": HOSTILE}
    answers = [client.post(page.form.action, values) for _ in range(2)]

    assert {answer["Location"] for answer in answers} == {page.form.cancel_url}
    assert HeldOutExposure.objects.count() == 1
    shown = client.get(families(cast))
    assert shown.context["page"].rows[1].exposure.words == "1 exposure"
    assert "<b>f</b>" not in shown.content.decode()


@pytest.mark.parametrize(
    ("values", "status"),
    [
        pytest.param({"reason": ""}, 422, id="silent"),
        pytest.param({"reason": "x", "trial": "no-uuid"}, 404, id="no-trial"),
    ],
)
def test_a_wrong_exposure_is_not_noted(
    values: dict[str, str], status: int, client: Client, cast: Cast
) -> None:
    three_families(cast)
    client.force_login(cast.engineer)
    task = Task.objects.get(task_id="c")

    answer = client.post(f"{root(cast.system)}tasks/{task.uuid}/exposure", values)

    assert answer.status_code == status
    assert not HeldOutExposure.objects.exists()


def test_a_task_that_is_not_held_out_is_not_exposed(client: Client, cast: Cast) -> None:
    three_families(cast)
    client.force_login(cast.engineer)
    task = Task.objects.get(task_id="b")

    answer = client.post(f"{root(cast.system)}tasks/{task.uuid}/exposure", {"reason": "Used."})

    assert answer.status_code == 422
    assert answer.context["page"].form.form.non_field_errors() == [
        "Task 'b' is in split tuning; only a held-out task can be exposed."
    ]


def passing(release: str, *names: str) -> dict[str, Any]:
    records = [record(name, n, verdicts=[verdict()]) for name in names for n in range(3)]
    return {"body": records, "release": release}


def test_what_always_passed_is_offered_for_the_regression_split(client: Client, cast: Cast) -> None:
    for release in ("1.0", "2.0"):
        ingest(cast.system, **passing(release, "a", "b"))
    put(cast, "a", "one", "held_out")

    page = visit(client, cast.engineer, families(cast))

    assert page.offers_words.startswith("Passed in every trial of releases 2.0 and 1.0, with ")
    first, second = page.offers
    assert (first.name.label, first.words) == ("one", "1 task, 6 passing trials")
    assert [link.label for link in first.evidence] == ["2.0", "1.0"]
    assert second.name.label == "b"
    assert (
        visit(client, cast.engineer, first.change_url.split("#", maxsplit=1)[0])
        .form.form["split"]
        .initial
        == "regression"
    )
    assert visit(client, cast.viewer, families(cast)).offers[0].change_url == ""


def test_hostile_names_stay_text(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record(HOSTILE, 0)])
    put(cast, HOSTILE, HOSTILE, "held_out")
    client.force_login(cast.engineer)

    for query in ({}, {"family": HOSTILE}, {"show": "tasks"}, {"after": HOSTILE}):
        answer = client.get(families(cast), query)
        assert answer.status_code == 200
        assert "<b>f</b>" not in answer.content.decode()


def test_nonsense_in_the_address_asks_for_nothing(client: Client, cast: Cast) -> None:
    three_families(cast)
    query = {"expose": "x", "task": "\x00", "after": "\x00", "trial": "9", "split": "?"}
    assert visit(client, cast.viewer, families(cast), **query).form is None
    assert visit(client, cast.viewer, families(cast), show="tasks", after="x").rows


@pytest.mark.parametrize("n", [1, 3])
def test_the_list_takes_the_same_queries_whatever_its_length(
    n: int, client: Client, cast: Cast
) -> None:
    names = [f"t{at}" for at in range(n)]
    ingest(cast.system, [record(name, 0) for name in names])
    for name in names:
        task = put(cast, name, f"family {name}", "held_out")
        note_exposure(task, reason="Used.", by=cast.engineer, now=NOW)
    client.force_login(cast.viewer)

    assert n_queries(client, families(cast)) == 7
