from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.keys import header
from traces.models import Role, Run, RunTask, Scope
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

RUNS, PATHS = "/api/v1/runs", "/api/v1/paths"
NIGHT = {"release": "1.0", "name": "night", "trials": 2, "tasks": ["t1", "t2"]}


def declare(client: Client, headers: dict[str, str], body: Any) -> Any:
    return client.post(RUNS, body, content_type="application/json", **headers)


def test_a_declared_run_shows_what_is_missing(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer)
    answer = declare(client, headers, NIGHT)
    run = Run.objects.get()

    assert answer.status_code == 201
    assert answer["Location"] == f"{RUNS}/{run.uuid}"
    assert run.declared_by == cast.engineer
    assert RunTask.objects.filter(run=run).count() == 2

    ingest(
        cast.system,
        [record("t1", 0), record("t1", 1, verdicts=[verdict("fail")]), record("t2", 0, error="x")],
        run="night",
    )
    shown = client.get(answer["Location"], **headers).json()

    assert {name: value for name, value in shown.items() if not name.endswith("_at")} == {
        "id": str(run.uuid),
        "release": "1.0",
        "name": "night",
        "declared_trials": 2,
        "n_tasks": 2,
        "n_trials": 3,
        "n_graded": 2,
        "n_pass": 1,
        "n_harness_errors": 1,
        "n_missing": 1,
    }


def test_a_run_is_declared_once(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer)
    declare(client, headers, NIGHT)

    answer = declare(client, headers, NIGHT)

    assert (answer.status_code, answer.json()["code"]) == (409, "run-exists")
    assert "exists already" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        NIGHT | {"trials": 0},
        NIGHT | {"trials": "many"},
        NIGHT | {"name": ""},
        NIGHT | {"name": "a\x00b"},
        NIGHT | {"tasks": [""]},
        NIGHT | {"tasks": "t1"},
        [1],
        "{broken",
        '{"a":' * 3000,
    ],
)
def test_a_declaration_that_cannot_be_one_answers_400(
    client: Client, cast: Cast, body: Any
) -> None:
    answer = declare(client, header(cast.system, cast.engineer), body)
    assert answer.status_code == 400
    assert answer.json()["detail"]
    assert Run.objects.count() == 0


def test_who_may_declare_a_run(client: Client, cast: Cast) -> None:
    reading = header(cast.system, cast.engineer, Scope.READ)
    assert declare(client, reading, NIGHT).status_code == 403
    assert declare(client, {}, NIGHT).status_code == 401
    headers = header(cast.system, cast.engineer)
    foreign = declare(client, headers, NIGHT | {"system": cast.other_system.slug})
    assert foreign.status_code == 404
    set_member(cast.system, cast.engineer, Role.REVIEWER)
    assert declare(client, headers, NIGHT).status_code == 403
    assert Run.objects.count() == 0


def test_a_run_of_another_system_answers_404(client: Client, cast: Cast) -> None:
    declare(client, header(cast.system, cast.engineer), NIGHT)
    run = Run.objects.get()
    client.force_login(cast.outsider)
    foreign, absent = client.get(f"{RUNS}/{run.uuid}"), client.get(f"{RUNS}/{uuid.uuid4()}")
    assert (foreign.status_code, foreign.json()) == (404, absent.json())


def test_paths_are_grouped_and_labelled(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer)
    other = [("get_order", {"order": "B"})]
    ingest(
        cast.system,
        [
            record("t1", 2),
            record("t1", 10),
            record("t1", 1, calls=other),
            record("t1", 3, verdicts=[verdict("fail")]),
            record("t1", 4, error="lost"),
            record("t2", "a", calls=[]),
        ],
    )

    def groups(query: str) -> Any:
        body = client.get(PATHS + query, **headers).json()
        return {task: row["groups"] for task, row in body["tasks"].items()}

    assert client.get(PATHS + "?task=t1&level=exact&messages=0", **headers).json() == {
        "level": "exact",
        "messages": False,
        "tasks": {
            "t1": {"n_trials": 5, "n_graded": 4, "n_pass": 3, "groups": [["2", "10"], ["1"]]}
        },
    }
    assert groups("?level=sequence") == {"t1": [["1", "2", "10"]], "t2": [["a"]]}

    ingest(cast.system, [record("t1", 2, calls=other)], release="2.0")

    assert groups("?task=t1&release=2.0") == {"t1": [["2"]]}
    both = {"t1": [["1.0:1", "2.0:2"], ["1.0:10", "1.0:2"]]}
    assert groups("?task=t1") == groups("?task=t1&release=2.0&release=1.0") == both


@pytest.mark.parametrize("query", ["?level=all", "?messages=yes"])
def test_a_choice_that_is_none_answers_400(client: Client, cast: Cast, query: str) -> None:
    answer = client.get(PATHS + query, **header(cast.system, cast.engineer))
    assert answer.status_code == 400


def test_the_schema_names_every_door(client: Client, db: None) -> None:
    schema = client.get("/api/schema").json()
    assert set(schema["paths"]) == {
        "/api/v1/uploads",
        "/api/v1/uploads/{upload_id}",
        "/api/v1/uploads/{upload_id}/lines",
        "/api/v1/uploads/{upload_id}/raw",
        "/api/v1/runs",
        "/api/v1/runs/{run_id}",
        "/api/v1/paths",
        "/api/v1/novelty",
        "/api/v1/figures",
        "/api/v1/trials/{trial_id}",
        "/api/v1/trials/{trial_id}/evidence",
        "/api/v1/contracts",
        "/api/v1/contracts/check",
        "/api/v1/contracts/previews",
        "/api/v1/contracts/previews/{preview_id}",
        "/api/v1/contracts/previews/{preview_id}/propose",
        "/api/v1/cases",
        "/api/v1/disputes",
        "/api/v1/judges",
        "/api/v1/judges/{judge}/{criterion}",
        "/api/v1/overview",
        "/api/v1/systems/{slug}/releases/{release}/gate",
        "/api/v1/systems/{slug}/releases/gate",
        "/api/v1/systems/{slug}/sign-offs/{sign_off}/attestation",
        "/api/v1/systems/{slug}/tiers",
        "/api/v1/probes",
        "/api/v1/probes/{number}",
        "/api/v1/probes/{number}/bundle",
        "/api/v1/export",
    }
