from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from reviews.models import Case
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import EvidenceAddition, Role, Trial

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7*7 }}"
GIVEN = {"evidence": '{"final_state": {"a": 1}}', "source": "api", "reason": "It was lost."}


def stored_trial(cast: Cast, **more: Any) -> Trial:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("unknown")], **more)])
    return Trial.objects.get(system=cast.system)


def path_of(trial: Trial) -> str:
    return f"{root(trial.system)}trials/{trial.uuid}/evidence/"


def post(client: Client, cast: Cast, trial: Trial, path: str = "", **data: Any) -> Any:
    client.force_login(cast.engineer)
    return client.post(path or path_of(trial), {**GIVEN, **data})


def test_the_form_says_what_is_there_and_what_is_missing(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast, initial_state={"a": 0}, usage={"cost_usd": 0.1})
    trial_record = record("t2", 0, verdicts=[verdict("unknown")])
    trial_record["messages"] = [m for m in trial_record["messages"] if m["role"] != "tool"]
    ingest(cast.system, [trial_record])
    other = Trial.objects.get(task__task_id="t2")

    page = visit(client, cast.engineer, path_of(trial))
    assert [(part.name, part.state) for part in page.parts] == [
        ("initial_state", "recorded"),
        ("final_state", "missing"),
        ("facts", "missing"),
        ("results", "recorded"),
        ("cost_usd", "recorded"),
        ("tokens", "missing"),
        ("seconds", "missing"),
    ]
    assert list(json.loads(page.example)) == ["final_state", "facts", "tokens", "seconds"]
    assert page.open_calls == ()

    page = visit(client, cast.engineer, path_of(other))
    (call,) = page.open_calls
    assert call.label == "step 2, call 1"
    assert json.loads(page.example)["results"] == [{"step": 2, "index": 0, "content": "…"}]


def test_evidence_is_added_from_text_and_file(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    case = Case.objects.get()

    answer = post(client, cast, trial, f"{path_of(trial)}?case={case.uuid}")
    assert (answer.status_code, answer["Location"]) == (
        302,
        f"{root(cast.system)}cases/{case.uuid}/",
    )
    file = SimpleUploadedFile("facts.json", b'{"facts": {"customer": "C-1"}}')
    answer = post(client, cast, trial, evidence="", file=file)
    assert answer["Location"] == f"{root(cast.system)}trials/{trial.uuid}/"

    rows = EvidenceAddition.objects.order_by("order")
    assert list(rows.values_list("order", "parts", "by")) == [
        (1, ["final_state"], cast.engineer.pk),
        (2, ["facts"], cast.engineer.pk),
    ]
    page = visit(client, cast.engineer, path_of(trial))
    assert [(row.order, row.parts, row.source) for row in page.additions] == [
        (1, "final state", "api"),
        (2, "facts", "api"),
    ]
    states = {part.name: part.state for part in page.parts}
    assert (states["final_state"], states["facts"]) == ("added", "recorded")


@pytest.mark.parametrize(
    ("data", "place"),
    [
        pytest.param({"evidence": ""}, "", id="nothing"),
        pytest.param({"evidence": "{"}, "", id="cut short"),
        pytest.param({"evidence": '{"a": 1}'}, "a", id="unknown"),
        pytest.param({"evidence": '{"initial_state": 1}'}, "initial_state", id="there already"),
        pytest.param({"source": "\u200b"}, "source", id="source"),
    ],
)
def test_wrong_evidence_comes_back_with_its_place(
    data: dict[str, str], place: str, client: Client, cast: Cast
) -> None:
    trial = stored_trial(cast, initial_state={"a": 0})

    answer = post(client, cast, trial, **data)

    assert answer.status_code == 422
    assert [fact.name for fact in answer.context["page"].findings] == [place]
    assert not EvidenceAddition.objects.exists()


def test_text_and_file_together_are_refused(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)

    answer = post(client, cast, trial, file=SimpleUploadedFile("a.json", b"{}"))

    (finding,) = answer.context["page"].findings
    assert finding.value == "Give the evidence as text or as a file, not both."


def test_a_file_may_not_be_too_large(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsite.web.evidence_form.MOST_BYTES", 4)
    trial = stored_trial(cast)

    answer = post(client, cast, trial, evidence="", file=SimpleUploadedFile("a.json", b"[1, 2]"))

    (finding,) = answer.context["page"].findings
    assert finding.value.startswith("Added evidence has at most")


def test_hostile_text_stays_text(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast, facts={HOSTILE: 1})
    post(client, cast, trial, source=HOSTILE, reason=HOSTILE)
    answer = post(client, cast, trial, evidence=json.dumps({HOSTILE: 1}))

    text = answer.content.decode()
    assert "<img src=x" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("role", Role)
def test_only_engineers_see_the_form(role: Role, client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    client.force_login(cast.members()[role])

    wanted = 200 if role is Role.ENGINEER else 403
    assert client.get(path_of(trial)).status_code == wanted
    client.force_login(cast.outsider)
    assert client.get(path_of(trial)).status_code == 404


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_the_form_takes_a_constant_number_of_queries(n: int, client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    for number in range(n):
        post(client, cast, trial, evidence=json.dumps({"facts": {f"f{number}": 1}}))
    client.force_login(cast.engineer)

    assert n_queries(client, path_of(trial)) == 12
