from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record, verdict
from tests.support.keys import header, new_key
from traces.models import EvidenceAddition, Role, Scope, Trial
from traces.services import additions
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

GIVEN = {"source": "inspection api", "reason": "It was lost.", "final_state": {"orders": {}}}


def stored_trial(cast: Cast, **more: Any) -> Trial:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("unknown")], **more)])
    return Trial.objects.get(system=cast.system)


def send(client: Client, trial: Trial, body: object, key: dict[str, str]) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    path = f"/api/v1/trials/{trial.uuid}/evidence"
    return client.post(path, data, content_type="application/json", **key)


def test_a_program_adds_evidence_once(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    api_key, key = new_key(cast.system, cast.engineer)

    answer = send(client, trial, GIVEN, key)

    row = EvidenceAddition.objects.get()
    assert (answer.status_code, answer.json()) == (
        201,
        {
            "id": str(row.uuid),
            "trial": str(trial.uuid),
            "order": 1,
            "parts": ["final_state"],
            "source": "inspection api",
            "reason": "It was lost.",
            "digest": row.digest.hex,
            "added_at": row.added_at.isoformat().replace("+00:00", "Z"),
        },
    )
    assert (row.by, row.api_key) == (cast.engineer, api_key)
    again = send(client, trial, {**GIVEN, "reason": "Again."}, key)
    assert (again.status_code, again.json()) == (200, answer.json())


def test_what_is_there_already_is_a_conflict(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast, final_state={"orders": {"A-1": 1}})

    answer = send(client, trial, GIVEN, header(cast.system, cast.engineer))

    assert answer.status_code == 409
    assert answer.json() == {
        "code": "recorded",
        "detail": "The trial has final_state already; evidence never changes.",
        "findings": [
            {
                "code": "recorded",
                "place": "final_state",
                "sentence": "The trial has final_state already; evidence never changes.",
            }
        ],
    }


@pytest.mark.parametrize(
    ("body", "code", "place"),
    [
        pytest.param(b"", "empty", "", id="nothing"),
        pytest.param(b"{", "cut-short", "", id="cut short"),
        pytest.param(b"[]", "wrong-type", "", id="a list"),
        pytest.param({**GIVEN, "source": 3}, "wrong-type", "source", id="source"),
        pytest.param({"final_state": {}}, "missing-field", "source", id="no source"),
        pytest.param({**GIVEN, "final_state": None}, "empty", "", id="no part"),
        pytest.param({**GIVEN, "verdicts": []}, "unknown-part", "verdicts", id="verdicts"),
        pytest.param(b'{"source": "a", "source": "b"}', "duplicate-key", "source", id="twice"),
    ],
)
def test_a_bad_body_names_its_place(
    body: object, code: str, place: str, client: Client, cast: Cast
) -> None:
    trial = stored_trial(cast)

    answer = send(client, trial, body, header(cast.system, cast.engineer))

    assert answer.status_code == 400
    assert (answer.json()["code"], answer.json()["findings"][0]["place"]) == (code, place)
    assert not EvidenceAddition.objects.exists()


def test_a_large_body_is_refused(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traces.api.additions.MOST_BYTES", 100)
    trial = stored_trial(cast)

    body = {**GIVEN, "facts": {"x": "y" * 200}}
    answer = send(client, trial, body, header(cast.system, cast.engineer))

    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    assert additions.MOST_BYTES > 100


def test_who_may_not_add_is_refused(client: Client, cast: Cast) -> None:
    trial = stored_trial(cast)
    key = header(cast.system, cast.engineer, Scope.INGEST)

    assert send(client, trial, GIVEN, {}).status_code == 401
    readers = header(cast.system, cast.engineer, Scope.READ)
    assert send(client, trial, GIVEN, readers).status_code == 403
    stranger = person("stranger")
    set_member(cast.other_system, stranger, Role.ENGINEER)
    others = header(cast.other_system, stranger, Scope.INGEST)
    assert send(client, trial, GIVEN, others).status_code == 404
    set_member(cast.system, cast.engineer, Role.REVIEWER)
    assert send(client, trial, GIVEN, key).status_code == 403
    assert not EvidenceAddition.objects.exists()
