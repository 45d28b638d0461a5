from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command
from django.test import Client

from tests.support.accepted import accept
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.keys import header

pytestmark = pytest.mark.django_db

NOVELTY = "/api/v1/novelty"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    accept(cast)
    ingest(cast.system, [record("t1", 0, calls=[("other", {})]), record("t2", 0)], release="2.0")
    return cast


def test_the_answer_is_what_the_command_prints(client: Client, filled: Cast) -> None:
    headers = header(filled.system, filled.engineer)
    for query, words in (
        ("", []),
        ("?level=sequence&messages=0", ["--level", "sequence", "--no-messages"]),
        ("?release=1.0&task=t1", ["--release", "1.0", "--task", "t1"]),
    ):
        out = io.StringIO()
        call_command("paths", "--system", "airline", "--novel", "--json", *words, stdout=out)
        assert client.get(NOVELTY + query, **headers).json() == json.loads(out.getvalue())


def test_a_task_that_the_release_did_not_run_gives_no_row(client: Client, filled: Cast) -> None:
    headers = header(filled.system, filled.engineer)
    assert client.get(f"{NOVELTY}?task=t9", **headers).json()["tasks"] == []


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("?level=nonsense", 400, "unknown-level"),
        ("?messages=yes", 400, "bad-messages"),
        ("?release=9", 404, "not-found"),
        ("?release=%00", 400, "unreadable-text"),
        ("?system=elsewhere", 404, "not-found"),
    ],
)
def test_what_it_cannot_answer_it_says(
    client: Client, filled: Cast, query: str, status: int, code: str
) -> None:
    answer = client.get(NOVELTY + query, **header(filled.system, filled.engineer))
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_system_without_trials_has_no_release_to_look_at(client: Client, cast: Cast) -> None:
    answer = client.get(NOVELTY, **header(cast.system, cast.engineer))
    assert answer.status_code == 404
