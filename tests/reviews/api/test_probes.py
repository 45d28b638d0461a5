"""Probes by API: lists, results and blind bundles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from reviews.core.probes import ProbeKind
from reviews.models import Probe
from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record, verdict
from tests.support.keys import header
from tests.support.probes import MODEL, batch_of, judged, probe_of
from traces.models import Role, Scope
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

PROBES = "/api/v1/probes"


@pytest.fixture
def headers(cast: Cast) -> dict[str, str]:
    said = [verdict(), verdict(grader=MODEL, kind="model", grader_version="1")]
    ingest(cast.system, [record("t1", 0, verdicts=said, calls=[("cancel", {"order": "A-1"})])])
    return header(cast.system, cast.engineer, Scope.READ)


def test_batches_are_listed_a_page_at_a_time(
    client: Client, cast: Cast, headers: dict[str, str]
) -> None:
    for _ in range(51):
        batch = batch_of(cast, [ProbeKind.VERBOSE])

    first = client.get(PROBES, **headers).json()
    rest = client.get(f"{PROBES}?before={first['next_before']}", **headers).json()

    assert (len(first["batches"]), first["next_before"]) == (50, 2)
    assert ([row["number"] for row in rest["batches"]], rest["next_before"]) == ([1], None)
    assert first["batches"][0] == {
        "number": 51,
        "criterion": "outcome",
        "rubric_version": None,
        "n_trials": 1,
        "n_probes": 2,
        "n_judges": 0,
        "may_fall": False,
        "reason": "To try the judges.",
        "by": "engineer",
        "made_at": batch.made_at.isoformat(),
    }
    for wrong in ("x", "-1", "9" * 13):
        answer = client.get(f"{PROBES}?before={wrong}", **headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-before")


def test_what_judges_made_of_a_batch_is_told_by_kind(
    client: Client, cast: Cast, headers: dict[str, str]
) -> None:
    batch = batch_of(cast, [ProbeKind.VERBOSE, ProbeKind.INJECTION])
    lines = [
        judged(probe_of(batch, ProbeKind.INJECTION), "pass"),
        judged(probe_of(batch, ProbeKind.VERBOSE), "pass"),
    ]
    ingest(cast.system, lines, release=None)

    found = client.get(f"{PROBES}/1", **headers).json()

    (judge,) = found.pop("judges")
    assert found == {
        "number": 1,
        "criterion": "outcome",
        "criterion_digest": None,
        "rubric_version": None,
        "question": "",
        "may_fall": False,
    }
    nothing = dict.fromkeys(("held", "fell", "flipped", "right", "wrong", "open", "missing"), 0)
    assert judge == {
        "judge": MODEL,
        "version": "1",
        "has_failed": True,
        "n_missing": 1,
        "kinds": {
            "control": {**nothing, "missing": 1},
            "injection": {**nothing, "held": 1, "wrong": 1},
            "verbose": {**nothing, "held": 1, "right": 1},
        },
    }


def test_the_bundle_is_native_and_blind(
    client: Client, cast: Cast, headers: dict[str, str]
) -> None:
    batch_of(cast)

    answer: Any = client.get(f"{PROBES}/1/bundle", **headers)

    assert answer["Content-Type"] == "application/x-ndjson"
    assert answer["Content-Disposition"] == 'attachment; filename="airline-judge-items-1.jsonl"'
    lines = [json.loads(line) for line in b"".join(answer.streaming_content).splitlines()]
    names = Probe.objects.order_by("position").values_list("uuid", flat=True)
    assert [line["external_id"] for line in lines] == [str(name) for name in names]


@pytest.mark.parametrize("path", ["/1", "/1/bundle"])
def test_others_find_no_batch(
    client: Client, cast: Cast, headers: dict[str, str], path: str
) -> None:
    batch_of(cast)
    stranger = person("stranger")
    set_member(cast.other_system, stranger, Role.ENGINEER)
    theirs = header(cast.other_system, stranger, Scope.READ)

    absent = client.get(f"{PROBES}{path.replace('1', '2')}", **headers)
    foreign = client.get(f"{PROBES}{path}", **theirs)

    assert (foreign.status_code, foreign.json()) == (absent.status_code, absent.json())
    assert absent.status_code == 404
    huge = client.get(f"{PROBES}{path.replace('1', '9' * 20)}", **headers)
    assert huge.status_code == 404
    without = header(cast.system, cast.engineer, Scope.INGEST)
    assert client.get(f"{PROBES}{path}", **without).status_code == 403
    assert client.get(f"{PROBES}{path}").status_code == 401
    assert client.get(PROBES, **theirs).json() == {"batches": [], "next_before": None}
