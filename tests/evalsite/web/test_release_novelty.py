"""The panel of a release's page on accepted and new paths."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.support.accepted import accept, show_rules
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.core.paths import PathLevel
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.models import Release, Task

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
SUMS = RuleSet(rules=(ArgumentRule("calculate", "expression", Arithmetic(), "Same sum.", "e"),))
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"
ASK: list[Call] = [("ask", {})]


def release_path(cast: Cast, name: str) -> str:
    release = Release.objects.get(system=cast.system, name=name)
    return f"{root(cast.system)}releases/{release.uuid}/"


def panel(client: Client, cast: Cast, name: str, **query: str) -> Any:
    return visit(client, cast.viewer, release_path(cast, name), **query).novelty


def lists(found: Any) -> dict[str, Any]:
    return {
        each.name: (each.sentence, [(row.task.label, row.words) for row in each.rows])
        for each in found.lists
    }


def test_the_first_release_says_that_there_is_none_before_it(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    plain = panel(client, cast, "1.0")
    accept(cast)
    found = panel(client, cast, "1.0")

    assert (plain.lists, found.lists) == ((), ())
    assert plain.notes == (
        "No earlier release has trials, so no path can be called new.",
        "2 of 2 tasks have no accepted path.",
    )
    assert found.notes[1:] == (
        "1 accepted path is taken.",
        "1 of 2 tasks has no accepted path.",
    )


def test_a_release_says_what_is_new_lost_and_seen(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, calls=ASK),
            record("t1", 1),
            record("t2", 0),
            record("t3", 0),
            record("t4", 0),
        ],
    )
    accept(cast)
    accept(cast, "1")
    accept(cast, task_id="t3")
    accept(cast, task_id="t4")
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, calls=[("new", {})]),
            record("t1", 2, calls=[("newer", {})]),
            record("t2", 0),
            record("t2", 1, calls=ASK),
            record("t3", 0, verdicts=FAIL),
            record("t4", 0, error="lost", verdicts=[]),
        ],
        release="2.0",
    )
    accept(cast, release="1.0", task_id="t2", level=PathLevel.EXACT)
    ingest(cast.system, [record("t2", 0, calls=ASK)], release="3.0")
    found = panel(client, cast, "2.0")
    third = panel(client, cast, "3.0")
    link = found.lists[0].rows[0].task.href

    assert lists(found) == {
        "new": (
            "2 tasks pass by paths that no one has seen",
            [("t1", "2 paths"), ("t2", "")],
        ),
        "lost": (
            "2 accepted paths are no longer taken",
            [("t1", "Accepted 1"), ("t3", "Accepted 1")],
        ),
    }
    assert found.notes == (
        "2 accepted paths are taken.",
        "Of 1 accepted path nothing can be told: no trial of the task is graded.",
    )
    page = visit(client, cast.viewer, link)
    assert page.releases_label == "2.0"
    assert [g.badges[0].label for g in page.aligned.groups] == ["accepted", *["new in 2.0"] * 2]
    assert lists(third) == {
        "lost": ("1 accepted path is no longer taken", [("t2", "Accepted 1")]),
        "seen": (
            "1 task passes by a path that was seen before and is not, or not wholly, accepted",
            [("t2", "")],
        ),
    }
    assert third.notes == ("Every path by which it passes was seen before.",)


def test_the_level_that_is_looked_at_decides_what_is_new(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=[("calculate", {"expression": "1200"})])])
    ingest(
        cast.system,
        [record("t1", 0, calls=[("calculate", {"expression": "2 * 600"})])],
        release="2.0",
    )
    equivalent = panel(client, cast, "2.0", level="equivalent")
    show_rules(cast.system, SUMS)

    assert list(lists(panel(client, cast, "2.0"))) == ["seen"]
    assert list(lists(equivalent)) == ["new"]
    assert "level=equivalent" in equivalent.lists[0].rows[0].task.href
    assert list(lists(panel(client, cast, "2.0", level="equivalent"))) == ["seen"]
    assert [c.label for c in equivalent.switches.levels if c.is_current] == ["Equivalent"]


def test_merged_paths_are_named_together(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", n, calls=[("calculate", {"expression": text})])
            for n, text in enumerate(("1200", "2 * 600"))
        ],
    )
    accept(cast, "0", level=PathLevel.EQUIVALENT)
    accept(cast, "1", level=PathLevel.EQUIVALENT)
    ingest(cast.system, [record("t1", 0)], release="2.0")
    show_rules(cast.system, SUMS)

    assert lists(panel(client, cast, "2.0"))["lost"] == (
        "1 accepted path is no longer taken",
        [("t1", "Accepted 1 and 2")],
    )


def test_many_tasks_come_in_pages(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsite.web.novelty.LISTED_TASKS", 2)
    ingest(cast.system, [record("t0", 0)])
    ingest(cast.system, [record(f"t{n}", 0, calls=ASK) for n in range(1, 6)], release="2.0")
    seen, url, pages = [], release_path(cast, "2.0"), 0
    while url and pages < 3:
        (each,) = visit(client, cast.viewer, url).novelty.lists
        seen += [row.task.label for row in each.rows]
        url, pages = each.more.href, pages + 1

    assert seen == ["t1", "t2", "t3", "t4", "t5"]
    assert each.more.label == "From the first task on"
    beyond = panel(client, cast, "2.0", new="99").lists[0]
    assert [row.task.label for row in beyond.rows] == ["t1", "t2"]


def test_a_release_without_counted_trials_says_so(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, environment="production")])
    assert panel(client, cast, "1.0").notes == ("This release has no trial that figures count.",)


def test_the_query_count_of_a_release_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="0.9")
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.viewer)
    one = n_queries(client, release_path(cast, "1.0"))
    accept(cast)
    ingest(
        cast.system,
        [record(f"t{n}", 0, calls=ASK) for n in range(1, 4)],
        release="2.0",
    )
    accept(cast, release="2.0", task_id="t2")

    assert (one, n_queries(client, release_path(cast, "2.0"))) == (14, 14)


def test_hostile_names_stay_text(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    ingest(cast.system, [record(HOSTILE, 0)], release="<b>two</b>")
    client.force_login(cast.viewer)
    text = client.get(release_path(cast, "<b>two</b>")).content.decode()

    assert "1 task passes by a path that no one has seen" in text
    assert Task.objects.filter(task_id=HOSTILE).exists()
    assert "<img src=x" not in text
    assert "<b>two</b>" not in text
    assert "U+202E" in text
