from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from evalsite.common import blobs
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.visits import n_queries, root, visit
from traces.core.contracts.reading import read_contract
from traces.models import ContractPreview, Role, Task, TaskOrigin, TaskVersion, Trial
from traces.services.new_tasks import NOT_OPEN

pytestmark = pytest.mark.django_db

HOSTILE = "<b>x</b>\u202e"
CONTRACT = """\
task: t1
family: refunds
split: held_out
facts: {order: A-1}
required:  # kept
  - {id: looked-up, call: get_order}
"""


def failed(cast: Cast, text: str = CONTRACT, **more: Any) -> str:
    """A trial that fails, and where its form is."""
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("fail")], **more)])
    Task.objects.filter(task_id="t1").update(family="refunds", split="held_out", title="Refund")
    if text:
        contract_in_effect(cast.system, text, by=cast.owner)
    trial = Trial.objects.get(system=cast.system)
    return f"{root(cast.system)}trials/{trial.uuid}/task/"


def filled(page: Any, **changed: str) -> dict[str, str]:
    """What the browser sends for the form as it is shown."""
    return {field.name: field.value() or "" for field in page.form} | changed


def test_the_form_is_prefilled_from_the_trial_and_its_contract(client: Client, cast: Cast) -> None:
    page = visit(client, cast.engineer, failed(cast, facts={"user": "U-1"}))
    values = filled(page)

    assert (values["task_id"], values["title"], values["family"], values["split"]) == (
        "t1-from-0",
        "Refund",
        "refunds",
        "held_out",
    )
    assert values["input"] == "Please help."
    assert values["facts"] == '{"order": "A-1", "user": "U-1"}'
    assert values["reason"] == "Trial 0 of task t1 is not decided: looked-up."
    contract = read_contract(values["text"]).contract
    assert contract is not None
    assert (contract.task_id, contract.family, contract.split, contract.input) == (
        "t1-from-0",
        "refunds",
        "held_out",
        "Please help.",
    )
    assert [entry.id for entry in contract.required] == ["looked-up"]
    assert page.contract_note == "From contract version 1 of task t1."
    assert page.split_note == (
        "The family is in split held out and stays together; its split is changed for all."
    )
    assert (page.why_not, page.made, page.findings) == ("", (), ())


def test_two_clicks_make_the_task_and_a_preview_of_its_contract(client: Client, cast: Cast) -> None:
    path = failed(cast)
    page = visit(client, cast.engineer, path)

    answer = client.post(path, filled(page))

    task = Task.objects.get(task_id="t1-from-0")
    preview = ContractPreview.objects.get()
    assert answer["Location"] == f"{root(cast.system)}contracts/previews/{preview.uuid}/"
    assert preview.texts == {"t1-from-0": filled(page)["text"]}
    assert (task.family, task.split, task.title) == ("refunds", "held_out", "Refund")
    assert blobs.unpack(TaskVersion.objects.get(task=task).definition) == {
        "input": "Please help.",
        "facts": {"order": "A-1"},
    }
    assert TaskOrigin.objects.get(task=task).trial == Trial.objects.get(task__task_id="t1")
    trial_page = path.removesuffix("task/")
    made = visit(client, cast.viewer, trial_page).standings.made
    assert [link.label for link in made] == ["t1-from-0"]


def test_a_second_click_makes_nothing_more(client: Client, cast: Cast) -> None:
    path = failed(cast)
    values = filled(visit(client, cast.engineer, path))

    answers = [client.post(path, values) for _ in range(2)]

    assert answers[0]["Location"] == answers[1]["Location"]
    assert (TaskOrigin.objects.count(), ContractPreview.objects.count()) == (1, 1)


def test_what_the_fields_say_goes_into_the_contract(client: Client, cast: Cast) -> None:
    path = failed(cast)
    page = visit(client, cast.engineer, path)

    client.post(path, filled(page, task_id="other", input="Where is it?", facts='{"order": "B-2"}'))

    contract = read_contract(ContractPreview.objects.get().texts["other"]).contract
    assert contract is not None
    assert (contract.task_id, contract.input, contract.facts) == (
        "other",
        "Where is it?",
        {"order": "B-2"},
    )


def test_without_a_contract_the_editor_opens_next(client: Client, cast: Cast) -> None:
    path = failed(cast, text="")
    page = visit(client, cast.engineer, path)
    assert page.contract_note.startswith("Task t1 has no contract to start from.")
    assert "# What decides a trial of this task?" in filled(page)["text"]

    answer = client.post(path, filled(page))

    task = Task.objects.get(task_id="t1-from-0")
    assert answer["Location"] == f"{root(cast.system)}contracts/edit/?task={task.uuid}"
    assert not ContractPreview.objects.exists()


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        pytest.param({"task_id": ""}, "This field is required.", id="no-id"),
        pytest.param({"task_id": "t1"}, "choose another id.", id="taken"),
        pytest.param({"facts": "[1]"}, "Facts are a JSON object", id="facts"),
        pytest.param({"facts": "{"}, "Facts are a JSON object", id="no-json"),
        pytest.param({"split": "prod"}, "A split is tuning, held out or regression.", id="split"),
        pytest.param({"split": "tuning"}, "is in split held out, and stays together.", id="family"),
        pytest.param({"reason": "\u200b"}, "Say why: the reason is what", id="silent"),
        pytest.param({"text": "task: [1"}, "callout", id="yaml"),
        pytest.param(
            {"text": "task: t1\nrequired: [{id: a, call: get_order, where: '('}]\n"},
            "required[0]",
            id="expression",
        ),
    ],
)
def test_a_wrong_form_answers_with_the_place_and_makes_nothing(
    changed: dict[str, str], error: str, client: Client, cast: Cast
) -> None:
    path = failed(cast)
    page = visit(client, cast.engineer, path)

    answer = client.post(path, filled(page, **changed))

    assert answer.status_code == 422
    assert error in answer.content.decode()
    assert not TaskOrigin.objects.exists()
    assert not ContractPreview.objects.exists()


def test_a_passing_trial_makes_no_task(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    path = f"{root(cast.system)}trials/{Trial.objects.get().uuid}/task/"
    page = visit(client, cast.engineer, path)

    assert page.why_not == NOT_OPEN
    answer = client.post(path, filled(page))
    assert answer.status_code == 422
    assert answer.context["page"].form.non_field_errors() == [NOT_OPEN]


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ENGINEER])
def test_others_make_no_task(role: Role, client: Client, cast: Cast) -> None:
    path = failed(cast)
    client.force_login(cast.members()[role])
    assert (client.get(path).status_code, client.post(path, {}).status_code) == (403, 403)


def test_a_trial_of_another_system_is_absent(client: Client, cast: Cast) -> None:
    ingest(cast.other_system, [record("t1", 0, verdicts=[verdict("fail")])])
    client.force_login(cast.engineer)
    path = f"{root(cast.system)}trials/{Trial.objects.get().uuid}/task/"
    assert client.get(path).status_code == 404


def test_hostile_text_stays_text(client: Client, cast: Cast) -> None:
    one = record("t1", HOSTILE, verdicts=[verdict("fail", criterion=HOSTILE)])
    one["messages"][0]["content"] = f"</textarea>{HOSTILE}\x00"
    ingest(cast.system, [{**one, "facts": {HOSTILE: HOSTILE}}])
    client.force_login(cast.engineer)
    path = f"{root(cast.system)}trials/{Trial.objects.get().uuid}/task/"
    answer = client.get(path)
    assert "<b>x</b>" not in answer.content.decode()

    posted = client.post(path, filled(answer.context["page"]))

    assert posted.status_code == 422  # an id has no characters that cannot be seen
    assert "<b>x</b>" not in posted.content.decode()


@pytest.mark.parametrize("n", [1, 3])
def test_the_form_takes_the_same_queries_whatever_was_made(
    n: int, client: Client, cast: Cast
) -> None:
    path = failed(cast)
    client.force_login(cast.engineer)
    for at in range(n):
        page = client.get(path).context["page"]
        client.post(path, filled(page, task_id=f"made-{at}", text=""))
    assert TaskOrigin.objects.count() == n
    assert n_queries(client, path) == 21
