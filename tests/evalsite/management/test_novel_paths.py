"""`manage.py paths --novel`."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.support.accepted import accept, show_rules
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from traces.core.paths import PathLevel
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet

pytestmark = pytest.mark.django_db

SUMS = RuleSet(rules=(ArgumentRule("calculate", "expression", Arithmetic(), "Same sum.", "e"),))


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("paths", "--system", "airline", "--novel", *words, stdout=out)
    return out.getvalue()


def document(*words: str) -> Any:
    return json.loads(run("--json", *words))


def calculates(expression: str) -> list[Call]:
    return [("calculate", {"expression": expression})]


@pytest.fixture
def two_releases(cast: Cast) -> Cast:
    """Three accepted paths of `t1` at release 1.0; the next release takes one of them."""
    ingest(cast.system, [record("t1", n, calls=calculates(str(n))) for n in range(3)])
    ingest(cast.system, [record("t2", 0)])
    for label in "012":
        accept(cast, label, level=PathLevel.EQUIVALENT)
    ingest(
        cast.system,
        [
            record("t1", 0, calls=calculates("1")),
            record("t1", 1, calls=calculates("1 + 1")),
            record("t1", 10, calls=[("ask", {})]),
            record("t1", 9, calls=[("ask", {})]),
            record("t1", "x", calls=[("ask", {})]),
            record("t2", 0),
            record("t3", 0, verdicts=[verdict("fail")]),
        ],
        release="2.0",
    )
    return cast


def test_the_document_of_the_newest_release(two_releases: Cast) -> None:
    none: dict[str, Any] = {
        "taken": [],
        "no_longer_taken": [],
        "not_taken_yet": [],
        "cannot_tell": [],
        "new": [],
        "seen_before": [],
    }
    assert document("--level", "equivalent") == {
        "release": "2.0",
        "level": "equivalent",
        "messages": True,
        "tasks": [
            {
                **none,
                "task_id": "t1",
                "taken": [2],
                "no_longer_taken": [1, 3],
                "new": [["9", "10", "x"], ["1"]],
            },
            {**none, "task_id": "t2", "seen_before": [["0"]]},
            {**none, "task_id": "t3"},
        ],
    }
    show_rules(two_releases.system, SUMS)
    (task,) = document("--level", "equivalent", "--task", "t1")["tasks"]
    assert task == {
        **none,
        "task_id": "t1",
        "taken": [2, 3],
        "no_longer_taken": [1],
        "new": [["9", "10", "x"]],
    }


def test_the_level_and_messages_are_those_that_are_asked_for(two_releases: Cast) -> None:
    assert document()["level"] == "exact"
    found = document("--release", "1.0", "--level", "sequence", "--no-messages")
    assert (found["release"], found["level"], found["messages"]) == ("1.0", "sequence", False)
    assert [task["taken"] for task in found["tasks"]] == [[1, 2, 3], []]


def test_lines_for_people(two_releases: Cast) -> None:
    accept(two_releases, "1", release="2.0", level=PathLevel.EXACT)
    show_rules(two_releases.system, SUMS)
    assert run("--level", "sequence").splitlines() == [
        "Airline: accepted and new paths of 2.0 at the level sequence, with agent messages",
        "t1:",
        "  taken                   Accepted 2",
        "  taken                   Accepted 3",
        "  taken                   Accepted 4",
        "  no longer taken         Accepted 1",
        "  new                     trials 9, 10, x",
        "t2:",
        "  seen, not accepted      trials 0",
        "t3:",
    ]


def test_what_cannot_be_looked_at_is_said_in_a_sentence(two_releases: Cast) -> None:
    with pytest.raises(CommandError, match="one release: name one, or none"):
        run("--release", "1.0", "--release", "2.0")
    with pytest.raises(CommandError, match="no trial of the release '1.0' of the task 't3'"):
        run("--release", "1.0", "--task", "t3")
    with pytest.raises(CommandError, match="No release of elsewhere has a trial"):
        call_command("paths", "--system", "elsewhere", "--novel")
