from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reviews.api import cases as api
from reviews.models import Case
from reviews.services.case_rows import follow_dispositions
from reviews.services.cases import ask_rerun
from tests.support.cases import NOW, broken, case_of_trial, passed, stored_trials
from tests.support.cast import Cast, person
from tests.support.keys import header
from traces.models import Role, Scope
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

PATH = "/api/v1/cases"


def get(client: Client, cast: Cast, path: str = PATH, **query: str) -> Any:
    return client.get(path, query or None, **header(cast.system, cast.engineer, Scope.READ))


def test_a_case_tells_what_to_run_again(client: Client, cast: Cast) -> None:
    first, second = stored_trials(cast, 2)
    follow_dispositions([broken(first)], now=NOW)
    case = Case.objects.get(trial=first)
    ask_rerun(case, reason="It timed out.", by=cast.engineer, now=NOW)
    case_of_trial(second, actions=("grade",))

    answer = get(client, cast, rerun="1")

    assert answer.status_code == 200
    assert answer.json() == {
        "cases": [
            {
                "id": str(case.uuid),
                "state": "open",
                "disposition": "harness_error",
                "next_actions": ["rerun_trial"],
                "worked_by": "engineer",
                "open_criteria": [],
                "release": "1.0",
                "run": first.run.name,
                "task_id": "t1",
                "family": "",
                "split": None,
                "trial": "0",
                "attempt": 1,
                "trial_id": str(first.uuid),
                "assignee": None,
                "due_on": None,
                "opened_at": "2026-12-01T10:00:00+00:00",
                "closed_at": None,
                "rerun": {
                    "reason": "It timed out.",
                    "by": "engineer",
                    "asked_at": "2026-12-01T10:00:00+00:00",
                },
            }
        ],
        "next": None,
    }
    assert [c["trial"] for c in get(client, cast).json()["cases"]] == ["0", "1"]
    assert [c["trial"] for c in get(client, cast, action="grade").json()["cases"]] == ["1"]


def test_closed_cases_are_listed_when_asked_for(client: Client, cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    case_of_trial(trial)
    follow_dispositions([passed(trial)], now=timezone.now())

    assert get(client, cast).json()["cases"] == []
    (case,) = get(client, cast, state="closed").json()["cases"]
    assert (case["state"], case["disposition"], case["next_actions"]) == ("closed", "pass", [])
    assert len(get(client, cast, state="all").json()["cases"]) == 1


def test_pages_lead_to_each_other(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "PAGE_CASES", 2)
    for hour, trial in enumerate(stored_trials(cast, 3)):
        case_of_trial(trial, now=NOW + timedelta(hours=hour))

    first = get(client, cast, state="all").json()
    second = get(client, cast, first["next"]).json()

    assert [c["trial"] for c in first["cases"] + second["cases"]] == ["0", "1", "2"]
    assert "state=all" in first["next"]
    assert second["next"] is None


@pytest.mark.parametrize(
    ("query", "code"),
    [
        pytest.param({"state": "x"}, "unknown-state", id="state"),
        pytest.param({"action": "x"}, "unknown-action", id="action"),
        pytest.param({"rerun": "yes"}, "bad-rerun", id="rerun"),
        pytest.param({"after": "x"}, "bad-after", id="after"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(
    query: dict[str, str], code: str, client: Client, cast: Cast
) -> None:
    answer = get(client, cast, **query)

    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_a_key_of_another_system_sees_nothing(client: Client, cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    case_of_trial(trial)
    stranger = person("stranger")
    set_member(cast.other_system, stranger, Role.ENGINEER)
    key = header(cast.other_system, stranger, Scope.READ)

    assert client.get(PATH, **key).json() == {"cases": [], "next": None}
    assert client.get(PATH, {"system": cast.system.slug}, **key).status_code == 404
    assert client.get(PATH).status_code == 401


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_the_number_of_queries_does_not_grow(n: int, client: Client, cast: Cast) -> None:
    for trial in stored_trials(cast, n):
        case_of_trial(trial)
    key = header(cast.system, cast.engineer, Scope.READ)

    with CaptureQueriesContext(connection) as captured:
        assert len(client.get(PATH, **key).json()["cases"]) == n

    assert len(captured) == 6
