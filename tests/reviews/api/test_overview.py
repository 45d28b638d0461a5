from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.keys import header
from traces.models import Task

pytestmark = pytest.mark.django_db

OVERVIEW = "/api/v1/overview"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    ingest(cast.system, [record("t1", n) for n in range(3)])
    rule = verdict("fail", criterion="limits", **{"class": "constraint"})
    ingest(
        cast.system,
        [record("t1", 0), record("t1", 1, verdicts=[verdict(), rule]), record("t2", 0)],
        release="2.0",
    )
    Task.objects.filter(task_id="t2").update(family="refunds", split="held_out")
    return cast


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param("", [], id="newest"),
        pytest.param("?release=1.0&k=2", ["--release", "1.0", "--k", "2"], id="release-and-k"),
        pytest.param(
            "?family=refunds&split=held_out",
            ["--family", "refunds", "--split", "held_out"],
            id="family-and-split",
        ),
    ],
)
def test_the_answer_is_what_the_command_prints(
    client: Client, filled: Cast, query: str, words: list[str]
) -> None:
    out = io.StringIO()
    call_command("overview", "airline", "--json", *words, stdout=out)
    answer = client.get(OVERVIEW + query, **header(filled.system, filled.engineer))
    assert answer.json() == json.loads(out.getvalue())


def test_the_figures_of_the_newest_release(client: Client, filled: Cast) -> None:
    found = client.get(OVERVIEW, **header(filled.system, filled.engineer)).json()
    assert (found["release"], found["has_rules"], found["n_tasks"]) == ("2.0", True, 2)
    assert found["outcome"]["rate"] == 1.0
    assert (found["rule_clean"]["n_pass"], found["rule_clean"]["n_graded"]) == (2, 3)
    assert found["gap"] == pytest.approx(1 / 3)
    assert found["change"]["previous"] == "1.0"
    assert found["change"]["not_paired"] == [
        {"task_id": "t2", "version": 1, "contract": 0, "reason": "only_now"}
    ]
    assert [each["criterion"] for each in found["requirements"]] == ["limits", "outcome"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("?split=nonsense", 400, "unknown-split"),
        ("?k=0", 400, "bad-k"),
        ("?k=17", 400, "bad-k"),
        ("?k=x", 400, "bad-k"),
        ("?release=9", 404, "not-found"),
        ("?system=elsewhere", 404, "not-found"),
    ],
)
def test_what_it_cannot_answer_it_says(
    client: Client, filled: Cast, query: str, status: int, code: str
) -> None:
    answer = client.get(OVERVIEW + query, **header(filled.system, filled.engineer))
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_the_command_prints_the_headline_figures(filled: Cast) -> None:
    out = io.StringIO()
    call_command("overview", "airline", stdout=out)
    assert out.getvalue().splitlines() == [
        "Airline, release 2.0: 3 trials of 2 tasks",
        "outcome       100.0 % (3 / 3 / 3), range 100.0 % to 100.0 %",
        "rule-clean    66.7 % (2 / 3 / 3), range 66.7 % to 66.7 %",
        "pass^2        0.0 % over 1 task",
        "cost          median -, 95th - over 0 rule-clean trials",
        "recovery      none",
        "prohibited    cannot tell: no contract says what is prohibited",
        "not decided   0 unresolved, 0 harness errors, 0 missing",
    ]


def test_the_command_says_what_it_cannot_do(filled: Cast) -> None:
    with pytest.raises(CommandError, match="--k is a whole number from 1 to 16"):
        call_command("overview", "airline", "--k", "0")
    with pytest.raises(CommandError, match="has no release '9'"):
        call_command("overview", "airline", "--release", "9")
