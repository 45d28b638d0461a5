from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.utils import timezone

from evalsite import pipeline
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import Release, Run, Task
from traces.services.work import declare_run, note_details, release_named

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]


def declared(cast: Cast, *, trials: int = 3, tasks: tuple[str, ...] = ("t1", "t2")) -> Run:
    release = release_named(cast.system, "1.0", by=cast.engineer)
    return declare_run(
        release, "night", trials=trials, task_ids=tasks, by=cast.engineer, now=timezone.now()
    )


def test_a_declared_run_shows_what_never_came(client: Client, cast: Cast) -> None:
    run = declared(cast)
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, verdicts=FAIL),
            record("t1", 2, error="boom", verdicts=[]),
            record("t1", 2, attempt=2),
            record("t3", 0, error="dead", verdicts=[]),
        ],
        run="night",
    )
    (row,) = visit(client, cast.viewer, root(cast.system) + "runs/").rows
    page = visit(client, cast.viewer, row.href)

    assert (row.n_declared, row.n_present, row.n_missing, row.n_error) == (9, 4, 5, 1)
    assert (row.counts.n_pass, row.counts.n_graded, row.counts.n_run) == (2, 3, 9)
    assert [(m.task.label, m.n_declared, m.n_present) for m in page.missing] == [
        ("t2", 3, 0),
        ("t3", 3, 1),
    ]
    assert [(e.label, e.detail) for e in page.errors] == [
        ("2", "an earlier attempt: a later one stands"),
        ("0", "dead"),
    ]
    assert {f.label: (f.value, f.detail) for f in page.figures} == {
        "Passed / graded / run": ("66.7%", "2 / 3 / 9"),
        "Unresolved": ("0", ""),
        "Harness errors": ("1", ""),
        "Missing": ("5", ""),
    }
    assert row.href == f"{root(cast.system)}runs/{run.uuid}/"
    assert "with 3 trials for each of 3 tasks" in page.sentence
    assert [upload.words for upload in page.uploads] == ["5 trials"]


def test_a_run_that_was_not_declared_says_so(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    run = Run.objects.get()
    note_details(run, {"info": {"llm": "m-1", "seed": 300, "empty": None}})
    page = visit(client, cast.viewer, f"{root(cast.system)}runs/{run.uuid}/")

    assert page.n_declared is None
    assert "nobody can say whether trials are missing" in page.sentence
    assert [(fact.name, fact.value) for fact in page.facts] == [
        ("info.llm", "m-1"),
        ("info.seed", "300"),
    ]


def test_runs_are_narrowed_by_release(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0)], release="2.0", run="other")
    page = visit(client, cast.viewer, root(cast.system) + "runs/")
    second = next(choice for choice in page.releases if choice.label == "2.0")
    only = visit(client, cast.viewer, second.href)

    assert [row.name for row in page.rows] == ["other", "default"]
    assert [row.name for row in only.rows] == ["other"]
    assert only.release_label == "2.0"


def test_no_run_says_how_to_declare_one(client: Client, cast: Cast) -> None:
    page = visit(client, cast.viewer, root(cast.system) + "runs/")
    assert "run declare --system airline" in page.empty.command


def test_a_release_shows_its_version_record(client: Client, cast: Cast) -> None:
    one = record("t1", 0, agent={"name": "airline", "version": "1.0", "model": "m-1"})
    ingest(cast.system, [one, record("t1", 1, verdicts=FAIL)])
    (row,) = visit(client, cast.viewer, root(cast.system) + "releases/").rows
    page = visit(client, cast.viewer, row.href)

    assert (row.name, row.detail, row.n_runs, row.n_tasks) == ("1.0", "airline, m-1", 1, 1)
    assert (row.counts.n_pass, row.counts.n_graded, row.counts.n_run) == (1, 2, 2)
    assert [(fact.name, fact.value) for fact in page.facts] == [
        ("agent.name", "airline"),
        ("agent.version", "1.0"),
        ("agent.model", "m-1"),
    ]
    assert '"model": "m-1"' in page.record
    assert [run.name for run in page.runs] == ["default"]


def test_figures_of_a_release_leave_out_split_tuning_and_say_so(client: Client, cast: Cast) -> None:
    Task.objects.create(system=cast.system, task_id="tuned", split="tuning", sort_key="tuned")
    pipeline.declare_run(
        release_named(cast.system, "1.0", by=cast.engineer),
        "night",
        trials=3,
        task_ids=("t1", "tuned"),
        by=cast.engineer,
        now=timezone.now(),
    )
    fault = {"kind": "timeout"}
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, fault=fault),
            record("tuned", 0, verdicts=FAIL),
            record("tuned", 1, fault=fault),
        ],
        run="night",
    )
    listed = visit(client, cast.viewer, root(cast.system) + "releases/")
    (row,) = listed.rows
    page = visit(client, cast.viewer, row.href)
    words = (
        "1 trial of production or with an injected fault and 2 of split tuning "
        "stand in no figure here"
    )

    assert (row.counts.n_pass, row.counts.n_graded, row.counts.n_run) == (1, 1, 2)
    assert (row.n_tasks, row.n_error) == (2, 0)
    assert [notice.sentence for notice in listed.notices] == [f"{words}."]
    assert {f.label: (f.value, f.detail) for f in page.figures} == {
        "Passed / graded / run": ("100.0%", "1 / 1 / 2"),
        "Unresolved": ("0", ""),
        "Harness errors": ("0", ""),
        "Missing": ("1", ""),
    }
    assert [notice.sentence for notice in page.notices] == [
        f"{words}; only the counts of runs hold them."
    ]
    assert client.get(root(cast.system) + "releases/").content.decode().count("Outcome rate") == 0


def test_a_single_trial_left_out_stands_in_no_figure(client: Client, cast: Cast) -> None:
    Task.objects.create(system=cast.system, task_id="tuned", split="tuning", sort_key="tuned")
    ingest(cast.system, [record("tuned", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0)], release="2.0")
    listed = visit(client, cast.viewer, root(cast.system) + "releases/")
    second, first = listed.rows

    assert (first.counts.percent, first.counts.n_run, second.counts.n_run) == ("none", 0, 1)
    assert [notice.sentence for notice in listed.notices] == [
        "1 trial of split tuning stands in no figure here."
    ]
    assert visit(client, cast.viewer, second.href).notices == ()


def test_evidence_without_a_version_has_a_release_of_its_own(client: Client, cast: Cast) -> None:
    release_named(cast.system, "", by=None)
    (row,) = visit(client, cast.viewer, root(cast.system) + "releases/").rows
    assert row.name == "no release"
    assert visit(client, cast.viewer, row.href).name == "no release"


def test_pages_of_releases_and_runs_show_each_once(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalsite.web import releases
    from traces.web import runs

    for name in ("a", "b", "c", "d", "e"):
        ingest(cast.system, [record("t1", 0)], release=name, run=f"run-{name}")
    rows, run_rows = releases.release_rows, runs.run_rows
    monkeypatch.setattr(releases, "release_rows", lambda *a, **k: rows(*a, n=2, **k))
    monkeypatch.setattr(runs, "run_rows", lambda *a, **k: run_rows(*a, n=2, **k))

    for place, expected in (
        ("releases/", ["e", "d", "c", "b", "a"]),
        ("runs/", ["run-e", "run-d", "run-c", "run-b", "run-a"]),
    ):
        url, back, seen = root(cast.system) + place, "", []
        while url:
            page = visit(client, cast.viewer, url)
            seen += [row.name for row in page.rows]
            url, back = page.pager.next_url, page.pager.previous_url
        assert seen == expected
        before = visit(client, cast.viewer, back)
        assert [row.name for row in before.rows] == expected[2:4]


def test_query_counts_do_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="0.9")
    ingest(cast.system, [record("t1", 0)], release="1.0")
    client.force_login(cast.viewer)
    base = root(cast.system)

    def counts() -> tuple[int, ...]:
        release = Release.objects.order_by("-pk")[0]
        run = Run.objects.order_by("-pk")[0]
        paths = ("runs/", f"runs/{run.uuid}/", "releases/", f"releases/{release.uuid}/", "trials/")
        return tuple(n_queries(client, base + path) for path in paths)

    one = counts()
    ingest(cast.system, [record("t1", 0), record("t2", 0)], release="2.0")
    ingest(cast.system, [record(f"t{n}", 0, error="x") for n in range(3)], release="3.0")

    assert (one, counts()) == ((6, 9, 7, 14, 6), (6, 9, 7, 14, 6))


@pytest.mark.parametrize("place", ["runs", "releases"])
def test_what_does_not_exist_is_404(place: str, client: Client, cast: Cast) -> None:
    client.force_login(cast.viewer)
    assert client.get(f"{root(cast.system)}{place}/{uuid.uuid4()}/").status_code == 404
