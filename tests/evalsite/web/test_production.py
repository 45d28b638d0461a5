from __future__ import annotations

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.figures import count_writes, decide, put_contract
from tests.support.visits import n_queries, root, visit
from traces.models import Release

pytestmark = pytest.mark.django_db

CONTRACT = """
task: t
title: Refund
prohibited:
  - {id: big-refund, harm: money, call: issue_refund}
"""


@pytest.fixture
def live(cast: Cast) -> Cast:
    ingest(
        cast.system,
        [
            record("t", 0),
            record("t", 1, environment="live"),
            record("t", 2, environment="live", verdicts=[verdict("fail")]),
            record("t", 3, environment="<b>staging</b>", verdicts=[]),
        ],
    )
    return cast


def test_traces_are_counted_by_environment(client: Client, live: Cast) -> None:
    page = visit(client, live.viewer, f"{root(live.system)}production/")
    assert page.sentence == (
        "3 traces from 2 environments other than test. The same contracts decide them, and they "
        "enter no figure of a release."
    )
    assert [[cell.text for cell in row] for row in page.environments.rows] == [
        ["live", "50.0%", "-", "0", "1", "0", "0"],
        ["<b>staging</b>", "none", "-", "0", "0", "1", "0"],
    ]
    assert [row.label for row in page.rows] == ["3", "2", "1"]
    assert [(figure.label, figure.value) for figure in page.figures] == [
        ("Passed / graded / run", "50.0%"),
        ("Rule-clean", "none"),
        ("With a prohibited attempt", "0"),
        ("Failed", "1"),
        ("Unresolved", "1"),
        ("Harness errors", "0"),
    ]
    assert page.safety.empty.startswith("Cannot tell")
    failed = next(figure.href for figure in page.figures if figure.label == "Failed")
    assert [row.label for row in visit(client, live.viewer, failed).rows] == ["2"]
    text = client.get(f"{root(live.system)}production/").content.decode()
    assert "<b>staging</b>" not in text
    overview = visit(client, live.viewer, f"{root(live.system)}overview/")
    assert overview.numbers[0].detail == "1 / 1 / 1 passed / graded / run"


def test_the_same_checks_decide_them(client: Client, live: Cast) -> None:
    put_contract(live.system, CONTRACT, by=live.engineer)
    decide(live.system, "t", 1, clean="fail", failed=["big-refund"], harms_attempted=["money"])
    count_writes(live.system, "t", [1], writes=1, handoffs=0)
    page = visit(client, live.viewer, f"{root(live.system)}production/")
    assert [[cell.text for cell in row][:4] for row in page.safety.rows] == [
        ["any", "1", "0", "2 / 3 / 3"],
        ["money", "1", "0", "2 / 3 / 3"],
    ]
    assert page.requirements.rows[0][0].text in {"big-refund", "outcome"}
    assert [figure.label for figure in page.beside] == [
        "Handed to a person",
        "Ended without any change",
    ]
    assert page.figures[1].value != "none"


def test_a_release_can_be_chosen(client: Client, live: Cast) -> None:
    ingest(live.system, [record("t", 0)], release="2.0")
    release = Release.objects.get(name="2.0").uuid
    path = f"{root(live.system)}production/"
    page = visit(client, live.viewer, path, release=release)
    assert page.empty.heading == "No production trace of this release"
    assert page.clear_url == path
    unknown = visit(client, live.viewer, path, release="00000000-0000-0000-0000-000000000000")
    assert unknown.figures == ()


def test_a_system_without_production_traces_says_what_they_are(client: Client, cast: Cast) -> None:
    page = visit(client, cast.viewer, f"{root(cast.system)}production/")
    assert page.empty.heading == "No production trace yet"
    assert page.empty.act is None
    assert visit(client, cast.engineer, f"{root(cast.system)}production/").empty.act


def test_the_queries_do_not_grow(client: Client, cast: Cast) -> None:
    path = f"{root(cast.system)}production/"
    client.force_login(cast.viewer)
    ingest(cast.system, [record("t", 0, environment="live")])
    assert n_queries(client, path) == 14
    ingest(cast.system, [record(f"t{n}", n, environment=f"live{n}") for n in range(2)])
    assert n_queries(client, path) == 14
