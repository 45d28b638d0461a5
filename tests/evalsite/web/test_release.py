from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from evalsite.common import blobs
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import Release, System, Task, TaskVersion, Trial
from traces.selectors.release_comparison import release_comparison
from traces.services.work import release_named

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
LOOK: Call = ("look", {})
PAY: Call = ("pay", {})
ASK: Call = ("ask", {})
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def release_path(system: System, name: str = "2.0") -> str:
    release = Release.objects.get(system=system, name=name)
    return f"{root(system)}releases/{release.uuid}/"


def paid(n: int, cost: float, *calls: Call, **more: Any) -> dict[str, Any]:
    return record("paths", n, calls=calls, usage={"cost_usd": cost}, **more)


@pytest.fixture
def two(cast: Cast) -> Cast:
    """Two releases: tasks flip, paths are kept, gone and new, a version differs."""
    ingest(
        cast.system,
        [
            record("fails", 0),
            record("passes", 0, verdicts=FAIL),
            paid(0, 0.02, LOOK, PAY),
            paid(1, 0.02, LOOK),
            record("same", 0),
            record("versions", 0),
            record("then", 0),
        ],
        release="1.0",
    )
    ingest(
        cast.system,
        [
            record("fails", 0, verdicts=FAIL),
            record("passes", 0),
            paid(0, 0.03, LOOK, PAY),
            paid(1, 0.03, LOOK, ASK, ASK),
            record("same", 0),
            record("versions", 0, verdicts=FAIL),
        ],
        release="2.0",
    )
    task = Task.objects.get(task_id="versions")
    version = TaskVersion.objects.create(
        task=task, number=2, digest=uuid.uuid4(), definition=blobs.pack({"input": "another"})
    )
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        Trial.objects.filter(task=task, release__name="2.0").update(task_version=version)
        cursor.execute("SET session_replication_role = origin")
    return cast


def test_a_release_is_compared_with_the_one_before_it(client: Client, two: Cast) -> None:
    page = visit(client, two.viewer, release_path(two.system))
    found = page.comparison
    fails, passes, paths = found.rows

    assert found.sentence == (
        "1 of 4 tasks passes by other paths; 1 flip to fail, 1 to pass; 1 new tool."
    )
    assert (found.tools_new, found.tools_gone) == (("ask",), ())
    assert (found.now, found.then.label) == ("2.0", "1.0")
    assert [(f.label, f.value, f.detail) for f in found.figures] == [
        ("Passed of graded", "80.0%", "80.0% there"),
        ("Flips to fail", "1", "of 4 tasks"),
        ("Flips to pass", "1", "of 4 tasks"),
        ("Pass by other paths", "1", "2 gone, 2 new, 2 kept"),
        ("Tool calls", "higher in 1", "of 2 tasks, the same in 1"),
        ("Cost", "higher in 1", "of 1 task"),
    ]
    assert [(row.task_id, [badge.label for badge in row.badges]) for row in found.rows] == [
        ("fails", ["flips to fail"]),
        ("passes", ["flips to pass"]),
        ("paths", ["other paths"]),
    ]
    assert (fails.then.n_pass, fails.now.n_pass, fails.now.n_graded) == (1, 0, 1)
    assert (fails.paths_words, passes.paths_words) == ("1 gone", "1 new")
    assert paths.paths_words == "1 gone, 1 new, 1 kept"
    assert [(path.fate, path.trials) for path in paths.paths] == [
        ("gone", "1 trial there"),
        ("new", "1 trial here"),
        ("kept", "1 trial there, 1 trial here"),
    ]
    assert [(choice.label, choice.count, choice.is_current) for choice in found.shown] == [
        ("Changed", 3, True),
        ("All", 4, False),
    ]
    assert [(out.task.label, out.reason) for out in found.left_out] == [
        ("versions", "other versions: 1 there, 2 here"),
        ("then", "not tried in this release"),
    ]
    assert found.left_out_words == "2 tasks are left out, whole or in part"
    text = client.get(release_path(two.system)).content.decode()
    assert found.sentence in text


def test_the_headline_counts_tasks_that_pass_less_or_more_often(client: Client, cast: Cast) -> None:
    def trials(task: str, *passed: bool) -> list[dict[str, Any]]:
        return [record(task, n, verdicts=None if ok else FAIL) for n, ok in enumerate(passed)]

    rarer, oftener = (True, False, False), (True, True, False)
    ingest(
        cast.system,
        [*trials("a", *oftener), *trials("b", *oftener), *trials("c", *rarer), record("d", 0)],
        release="1.0",
    )
    ingest(
        cast.system,
        [
            *trials("a", *rarer),
            *trials("b", *rarer),
            *trials("c", *oftener),
            record("d", 0, verdicts=[]),
        ],
        release="2.0",
    )
    path = release_path(cast.system)
    found = visit(client, cast.viewer, path).comparison
    assert found.sentence == (
        "0 of 4 tasks pass by other paths; 0 flips to fail, 0 to pass; 2 tasks pass less often, "
        "1 passes more often; 1 task is no longer graded; the same tools."
    )
    ingest(cast.system, trials("flips", True), release="1.0")
    ingest(cast.system, trials("flips", False), release="2.0")
    found = visit(client, cast.viewer, path).comparison
    assert "1 flip to fail, 0 to pass; 2 other tasks pass less often, 1 passes" in found.sentence


def test_cost_is_told_by_how_many_tasks_it_fell_in(client: Client, cast: Cast) -> None:
    def paid_for(task: str, cost: float, n: int) -> list[dict[str, Any]]:
        return [record(task, trial, usage={"cost_usd": cost}) for trial in range(n)]

    ingest(cast.system, paid_for("cheap", 0.02, 3) + paid_for("dear", 0.9, 1), release="1.0")
    ingest(cast.system, paid_for("cheap", 0.01, 1) + paid_for("dear", 0.8, 3), release="2.0")
    ingest(cast.system, [record("cheap", 0), record("dear", 0)], release="3.0")
    found = visit(client, cast.viewer, release_path(cast.system)).comparison
    calls, cost = found.figures[-2:]
    unknown = visit(client, cast.viewer, release_path(cast.system, "3.0")).comparison.figures[-1]

    assert (calls.value, calls.detail) == ("the same in 2", "of 2 tasks")
    assert (cost.value, cost.detail) == ("lower in 2", "of 2 tasks")
    assert (unknown.value, unknown.detail) == ("-", "no task has it in both")


def test_steps_and_cost_say_their_direction_in_words(client: Client, two: Cast) -> None:
    found = visit(client, two.viewer, release_path(two.system)).comparison
    fails, _, paths = found.rows
    gone, new, kept = paths.paths

    assert (paths.calls.then, paths.calls.now, paths.calls.words) == ("1.5", "2.5", "1 more")
    assert (paths.cost.then, paths.cost.now, paths.cost.words) == ("$0.02", "$0.03", "50% more")
    assert (fails.calls.then, fails.calls.now, fails.calls.words) == ("1", "-", "")
    assert (kept.calls.words, kept.cost.words) == ("the same", "50% more")
    assert (gone.calls.then, gone.calls.now, new.calls.now) == ("1", "-", "3")


def test_rows_lead_to_the_task_and_to_compare(client: Client, two: Cast) -> None:
    found = visit(client, two.viewer, release_path(two.system)).comparison
    names = {str(release.uuid): release.name for release in Release.objects.all()}

    for row, words, titles in zip(
        found.rows,
        ("passing, failing", "failing, passing", "two passing paths"),
        (("1.0", "2.0"), ("1.0", "2.0"), None),
        strict=True,
    ):
        task = visit(client, two.viewer, row.href)
        assert [names[o.value] for o in task.releases if o.is_selected] == ["2.0", "1.0"]
        assert row.compare.title == words
        sides = visit(client, two.viewer, row.compare.href)
        if titles:
            assert [side.words.rsplit(" ", 1)[1] for side in (sides.left, sides.right)] == list(
                titles
            )
        assert "No divergence" not in sides.divergence or row.task_id != "paths"
    trial = visit(client, two.viewer, found.rows[0].compare.href)
    assert (trial.left.state, trial.right.state) == ("pass", "fail")


def test_all_tasks_can_be_shown(client: Client, two: Cast) -> None:
    changed = visit(client, two.viewer, release_path(two.system)).comparison
    found = visit(client, two.viewer, changed.shown[1].href).comparison
    assert [row.task_id for row in found.rows] == ["fails", "passes", "paths", "same"]
    assert found.rows[3].badges == ()


def test_another_release_can_be_chosen(client: Client, two: Cast) -> None:
    ingest(two.system, [record("same", 0)], release="3.0")
    third = visit(client, two.viewer, release_path(two.system, "3.0")).comparison
    first = next(choice for choice in third.others if choice.label == "1.0")
    found = visit(client, two.viewer, first.href).comparison
    later = visit(
        client,
        two.viewer,
        release_path(two.system),
        against=str(Release.objects.get(name="3.0").uuid),
    ).comparison

    assert [(choice.label, choice.is_current) for choice in third.others] == [
        ("2.0", True),
        ("1.0", False),
    ]
    assert (third.then.label, found.then.label, later.then.label) == ("2.0", "1.0", "3.0")
    assert third.sentence == (
        "0 of 1 task pass by other paths; 0 flips to fail, 0 to pass; the same tools."
    )
    assert third.rows_words == "No task changed: the same rates, by the same passing paths."


def test_a_change_of_level_keeps_the_other_release(client: Client, two: Cast) -> None:
    ingest(two.system, [record("same", 0, calls=(("get_order", {}),))], release="3.0")
    first = str(Release.objects.get(name="1.0").uuid)
    page = visit(client, two.viewer, release_path(two.system, "3.0"), against=first)
    (exact,) = (choice for choice in page.novelty.switches.levels if choice.label == "Exact")
    found = visit(client, two.viewer, exact.href).comparison

    assert (page.comparison.then.label, found.then.label) == ("1.0", "1.0")
    assert (page.comparison.rows, [row.paths_words for row in found.rows]) == (
        (),
        ["1 gone, 1 new"],
    )
    assert (
        page.comparison.level_words == "Paths at level sequence, tool calls only, as chosen above."
    )
    assert found.level_words == "Paths at level exact, tool calls only, as chosen above."


def test_the_first_release_has_none_before_it(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    alone = visit(client, cast.viewer, release_path(cast.system, "1.0")).comparison
    release_named(cast.system, "0.9", by=None)
    ingest(cast.system, [record("t1", 0)], release="2.0")
    first = visit(client, cast.viewer, release_path(cast.system, "1.0")).comparison
    empty = visit(client, cast.viewer, release_path(cast.system, "0.9")).comparison

    assert (alone.then, alone.others) == (None, ())
    assert alone.sentence.startswith("None before it: no other release")
    assert first.sentence.startswith("None before it: no earlier release has trials.")
    assert [choice.label for choice in first.others] == ["2.0"]
    assert empty.sentence == "This release has no trial to compare yet."


def test_evidence_without_a_version_is_not_compared_unless_chosen(
    client: Client, cast: Cast
) -> None:
    unversioned = release_named(cast.system, "", by=None)
    ingest(cast.system, [record("t1", 0)], release=unversioned)
    ingest(cast.system, [record("t1", 0)], release="2.0")
    path = release_path(cast.system)

    assert visit(client, cast.viewer, path).comparison.then is None
    asked = visit(client, cast.viewer, path, against=str(unversioned.uuid)).comparison
    assert asked.then.label == "no release"


def test_nothing_in_common_says_so(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t2", 0)], release="2.0")
    found = visit(client, cast.viewer, release_path(cast.system)).comparison
    assert found.sentence == "No task was tried in both at the same version."
    assert (found.rows, found.rows_words) == ((), "No task can be compared.")
    assert [out.reason for out in found.left_out] == [
        "not tried in this release",
        "not tried in the other release",
    ]


def test_changed_tasks_come_in_pages(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "evalsite.web.release_comparison.release_comparison",
        lambda *a, **k: release_comparison(*a, n=2, **k),
    )
    ingest(cast.system, [record(f"t{n}", 0) for n in range(5)], release="1.0")
    ingest(cast.system, [record(f"t{n}", 0, verdicts=FAIL) for n in range(5)], release="2.0")
    url, seen = release_path(cast.system), []
    while url:
        found = visit(client, cast.viewer, url).comparison
        seen += [row.task_id for row in found.rows]
        url = found.pager.next_url
    back = visit(client, cast.viewer, found.pager.previous_url).comparison
    beyond = visit(client, cast.viewer, release_path(cast.system), after="999999999").comparison

    assert seen == ["t0", "t1", "t2", "t3", "t4"]
    assert [row.task_id for row in back.rows] == ["t2", "t3"]
    assert beyond.rows_words == "No task stands behind that one."


def test_query_count_of_a_release_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0, verdicts=FAIL)], release="2.0")
    client.force_login(cast.viewer)
    path = release_path(cast.system)
    one = n_queries(client, path)
    ingest(cast.system, [record(f"t{n}", 0) for n in (2, 3)], release="1.0")
    ingest(cast.system, [record(f"t{n}", 0, calls=(PAY,)) for n in (2, 3)], release="2.0")

    assert (one, n_queries(client, path)) == (14, 14)


@pytest.mark.parametrize(
    "query",
    [
        "?against=nonsense&level=%00&after=-1",
        f"?against={uuid.uuid4()}&before=99999999999999999999999&all=2",
        "?against=%00&messages=9",
    ],
    ids=["words", "unknown", "nul"],
)
def test_odd_addresses_compare_with_the_one_before(query: str, client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0, verdicts=FAIL)], release="2.0")
    found = visit(client, cast.viewer, release_path(cast.system) + query).comparison
    assert (found.then.label, len(found.rows)) == ("1.0", 1)


def test_a_release_of_another_system_is_404_and_never_compared(client: Client, two: Cast) -> None:
    ingest(two.other_system, [record("t1", 0)], release="9.0")
    foreign = Release.objects.get(name="9.0")
    path = release_path(two.system)
    found = visit(client, two.viewer, path, against=str(foreign.uuid)).comparison
    assert found.then.label == "1.0"
    client.force_login(two.outsider)
    assert client.get(path).status_code == 404
    elsewhere = path.replace(root(two.system), root(two.other_system))
    assert client.get(elsewhere).status_code == 404


def test_hostile_names_stay_text(client: Client, cast: Cast) -> None:
    hostile: Call = (HOSTILE, {HOSTILE: HOSTILE})
    ingest(cast.system, [record(HOSTILE, 0, calls=(hostile,))], release=HOSTILE)
    ingest(cast.system, [record(HOSTILE, 0, verdicts=FAIL), record("x", 0)], release="2.0")
    client.force_login(cast.viewer)
    for query in ("", "?all=1&level=exact"):
        text = client.get(release_path(cast.system) + query).content.decode()
        assert "<img src=x" not in text
        assert "\x1b" not in text
        assert "U+202E" in text
        assert "No longer used" in text
