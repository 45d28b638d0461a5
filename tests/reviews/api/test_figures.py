from __future__ import annotations

import csv
import io
import json
import uuid
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.keys import header
from traces.models import Task, Trial

pytestmark = pytest.mark.django_db

FIGURES, EXPORT, TRIALS = "/api/v1/figures", "/api/v1/export", "/api/v1/trials"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    for release in ("1.0", "2.0"):
        ingest(
            cast.system,
            [
                *(record("t1", n) for n in range(3)),
                record("t1", 3, verdicts=[verdict("fail")]),
                record("t2", 0, error="lost"),
                record("t3", 0, environment="production"),
            ],
            release=release,
        )
    return cast


def test_figures_of_all_of_one_and_of_several_releases(client: Client, filled: Cast) -> None:
    headers = header(filled.system, filled.engineer)

    def get(query: str) -> Any:
        return client.get(FIGURES + query, **headers).json()

    assert get("?release=1.0") == {
        "n_tasks": 2,
        "n_trials": 5,
        "n_graded": 4,
        "n_pass": 3,
        "pass_hat_k": {"1": 0.75, "2": 0.5, "3": 0.25, "4": 0.0},
        "pass_at_k": {"1": 0.75, "2": 1.0, "3": 1.0, "4": 1.0},
    }
    assert get("")["n_trials"] == 10
    assert get("?release=1.0&release=2.0") == get("")


def test_figures_leave_tuning_tasks_out(client: Client, filled: Cast) -> None:
    Task.objects.filter(task_id="t1").update(split="tuning")
    headers = header(filled.system, filled.engineer)

    assert client.get(FIGURES, **headers).json() == {
        "n_tasks": 1,
        "n_trials": 2,
        "n_graded": 0,
        "n_pass": 0,
        "pass_hat_k": {},
        "pass_at_k": {},
    }


def test_a_release_that_is_not_there_answers_404(client: Client, filled: Cast) -> None:
    headers = header(filled.system, filled.engineer)
    for address in (FIGURES, EXPORT):
        answer = client.get(f"{address}?release=9", **headers)
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
    assert client.get(f"{EXPORT}?run=none", **headers).status_code == 404
    assert client.get(f"{EXPORT}?format=xml", **headers).status_code == 400
    assert client.get(f"{FIGURES}?release=%00", **headers).status_code in (400, 404)


def test_a_person_names_the_system_and_sees_only_theirs(client: Client, filled: Cast) -> None:
    client.force_login(filled.viewer)
    assert client.get(FIGURES).status_code == 400
    assert client.get(f"{FIGURES}?system={filled.system.slug}").status_code == 200
    foreign = client.get(f"{FIGURES}?system={filled.other_system.slug}")
    absent = client.get(f"{FIGURES}?system=nowhere")
    assert (foreign.status_code, foreign.json()) == (404, absent.json())
    client.logout()
    assert client.get(f"{FIGURES}?system={filled.system.slug}").status_code == 401


def test_a_trial_is_shown_with_its_record_and_verdicts(client: Client, filled: Cast) -> None:
    headers = header(filled.system, filled.engineer)
    trial = Trial.objects.get(release__name="1.0", task__task_id="t1", label="3")

    shown = client.get(f"{TRIALS}/{trial.uuid}", **headers).json()

    native, standings = shown.pop("record"), shown.pop("standings")
    assert standings == {
        "contract": None,
        "sentence": "A requirement of it failed.",
        "evidence_order": 0,
        "missing_evidence": [],
        "fixture_faults": [],
        "requirements": [
            {
                "criterion": "outcome",
                "class": "outcome",
                "source": "imported",
                "mandatory": True,
                "prohibition": False,
                "result": "fail",
                "rule": 3,
                "sentence": "A code grader says fail.",
                "next_action": None,
                "check": None,
                "voters": [
                    {
                        "grader": "state check",
                        "version": "",
                        "kind": "code",
                        "verdict": "fail",
                        "steps": [],
                    }
                ],
                "marks": [],
                "adjudications": [],
                "judges": [],
            }
        ],
    }
    assert shown == {
        "id": str(trial.uuid),
        "system": filled.system.slug,
        "release": "1.0",
        "run": "default",
        "task_id": "t1",
        "trial": "3",
        "attempt": 1,
        "digest": trial.digest.hex,
        "disposition": "fail",
        "failed_classes": ["outcome"],
        "next_actions": [],
    }
    assert native["messages"] == record("t1", 3)["messages"]
    assert [one["verdict"] for one in native["verdicts"]] == ["fail"]
    assert client.get(f"{TRIALS}/{uuid.uuid4()}", **headers).status_code == 404
    client.force_login(filled.outsider)
    assert client.get(f"{TRIALS}/{trial.uuid}").status_code == 404


def test_exports_are_streamed_in_both_forms(client: Client, filled: Cast) -> None:
    headers = header(filled.system, filled.engineer)

    lines = client.get(f"{EXPORT}?release=1.0&format=jsonl", **headers)
    sheet = client.get(f"{EXPORT}?format=csv&release=2.0&run=default", **headers)

    assert lines["Content-Type"] == "application/x-ndjson"
    assert 'filename="airline.jsonl"' in lines["Content-Disposition"]
    records = [json.loads(line) for line in lines.streaming_content]  # type: ignore[attr-defined]
    assert [one["task_id"] for one in records] == ["t1"] * 4 + ["t2", "t3"]
    text = b"".join(sheet.streaming_content).decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert {row["release"] for row in rows} == {"2.0"}
    assert len(rows) == 6
