from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import Release, System, Task, Trial

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
LOOK, PAY, ASK = ("look", {"n": 1}), ("pay", {"n": 2}), ("ask", {"n": 3})
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def tree_path(system: System, task_id: str = "t1") -> str:
    task = Task.objects.get(system=system, task_id=task_id)
    return f"{root(system)}tasks/{task.uuid}/tree/"


def drawn(page: Any) -> list[str]:
    """The rows as lines: lines before it, steps, tools, counts."""
    return [
        f"{'.'.join(row.guides)}|{row.steps}|{row.words}"
        f"{' '.join(cell.name or 'msg' for cell in row.cells)}|{row.counts.n_pass}"
        f"/{row.counts.n_fail}/{row.counts.n_unresolved}/{row.counts.n_error}"
        for row in page.rows
    ]


def test_failing_trials_leave_at_a_row_that_says_so(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(LOOK, LOOK, PAY)),
            record("t1", 1, calls=(LOOK, LOOK, PAY)),
            record("t1", 2, calls=(LOOK, LOOK, ASK, PAY), verdicts=FAIL),
            record("t1", 3, calls=(LOOK, LOOK), verdicts=FAIL),
            record("t1", 4, calls=(LOOK, LOOK, PAY), verdicts=FAIL),
            record("t1", 5, calls=(LOOK, LOOK), verdicts=[]),
        ],
    )
    page = visit(client, cast.viewer, tree_path(cast.system))
    start, pays, asks = page.rows

    assert drawn(page) == [
        "|1-2|look look|2/3/1/0",
        "tee|3|pay|2/1/0/0",
        "corner|3-4|ask pay|0/1/0/0",
    ]
    assert [row.parting for row in page.rows] == [
        "1 failing trial stops here, passing ones go on",
        "",
        "1 failing trial leaves the passing paths here",
    ]
    assert [row.ends for row in page.rows] == ["2 end here:", "3 end here:", ""]
    at = f"{root(cast.system)}trials/"
    trials = {trial.label: trial.uuid for trial in Trial.objects.all()}
    assert [(t.label, t.state, t.n_more, t.href) for t in start.trials] == [
        ("3", "fail", 0, f"{at}{trials['3']}/?agent=2"),
        ("5", "unresolved", 0, f"{at}{trials['5']}/?agent=2"),
    ]
    assert [(t.label, t.state, t.n_more, t.href) for t in pays.trials] == [
        ("0", "pass", 1, f"{at}{trials['0']}/?agent=3"),
        ("4", "fail", 0, f"{at}{trials['4']}/?agent=3"),
    ]
    assert [(t.label, t.href) for t in asks.trials] == [("2", f"{at}{trials['2']}/?agent=3")]
    assert [(p.label, p.words, p.href) for p in page.places] == [
        ("action 3", "1 leaves, 1 stops before it", "#branch-1")
    ]
    assert [(f.label, f.value, f.detail) for f in page.figures] == [
        ("Trials", "6", "0 harness errors"),
        ("Passed / graded / run", "40.0%", "2 / 5 / 6"),
        ("Leave the passing paths", "1", "of 3 failing"),
        ("Stop short", "1", "of 3 failing"),
        ("Fail on a passing path", "1", "of 3 failing"),
    ]
    assert [(part.state, part.start, part.length) for part in start.counts.bar] == [
        ("pass", "0.00", "33.33"),
        ("fail", "33.33", "50.00"),
        ("unresolved", "83.33", "16.67"),
    ]
    assert (page.has_errors, page.empty, page.more, page.note) == (False, None, None, "")
    assert page.words == "3 branches, most trials first"


def test_the_link_of_a_leaf_leads_to_the_step_where_it_parted(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, calls=(LOOK, PAY)), record("t1", 1, calls=(LOOK, ASK), verdicts=FAIL)],
    )
    page = visit(client, cast.viewer, tree_path(cast.system))
    assert [place.label for place in page.places] == ["action 2"]
    assert "action 2 may be step 4" in client.get(tree_path(cast.system)).content.decode()
    (trial,) = page.rows[2].trials
    answer = client.get(trial.href)

    # Step 1 asks, 2 and 3 look and answer; the agent parts with step 4.
    assert answer["Location"].endswith(
        f"/trials/{Trial.objects.get(label='1').uuid}/?step=4#step-4"
    )


def test_trials_that_did_nothing_part_at_the_start(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, calls=(LOOK,)), record("t1", 1, calls=(), error="boom", verdicts=[])],
    )
    page = visit(client, cast.viewer, tree_path(cast.system))

    assert drawn(page) == ["||Start|1/0/0/1", "corner|1|look|1/0/0/0"]
    assert (page.words, page.note, page.more) == ("1 branch, most trials first", "", None)
    assert page.has_errors
    assert [(t.label, t.state, t.href) for t in page.rows[0].trials] == [
        ("1", "harness-error", f"{root(cast.system)}trials/{Trial.objects.get(label='1').uuid}/")
    ]


def test_a_failing_trial_without_a_step_stops_at_once(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1, calls=(), verdicts=FAIL)])
    page = visit(client, cast.viewer, tree_path(cast.system))
    assert [(p.label, p.words) for p in page.places] == [("action 1", "1 stops before it")]


def test_trials_without_an_action_make_no_branch(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n, calls=()) for n in range(2)])
    page = visit(client, cast.viewer, tree_path(cast.system))
    assert (drawn(page), page.words) == (["||No action|2/0/0/0"], "No branch")


def test_without_a_passing_trial_the_figures_say_so(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=FAIL)])
    page = visit(client, cast.viewer, tree_path(cast.system))
    assert [(f.label, f.value, f.detail) for f in page.figures][2:] == [
        ("Failing trials", "1", "none passes")
    ]
    assert (page.places, page.rows[0].parting) == ((), "")


def test_levels_and_messages_are_kept_in_every_link(client: Client, cast: Cast) -> None:
    def looks(order: str) -> dict[str, Any]:
        return record("t1", order, calls=(("look", {"order": order, "deep": [1]}),))

    ingest(cast.system, [looks("A"), looks("B")])
    page = visit(client, cast.viewer, tree_path(cast.system), level="exact", messages="1")

    assert drawn(page) == [
        "||Start|2/0/0/0",
        "tee|1-2|look msg|1/0/0/0",
        "corner|1-2|look msg|1/0/0/0",
    ]
    assert [row.opening for row in page.rows] == [
        "",
        'deep: [1], order: "A"',
        'deep: [1], order: "B"',
    ]
    assert [choice.label for choice in page.switches.levels] == ["Sequence", "Equivalent", "Exact"]
    assert page.switches.more_levels == ()
    assert [choice.label for choice in page.switches.levels if choice.is_current] == ["Exact"]
    assert all("messages=1" in choice.href for choice in page.switches.levels)
    assert [(tab.label, tab.is_current) for tab in page.tabs][:2] == [
        ("Paths", False),
        ("Tree", True),
    ]
    assert "level=exact" in page.tabs[0].href
    assert {(field.name, field.value) for field in page.hidden} == {
        ("level", "exact"),
        ("messages", "1"),
    }


def test_releases_narrow_the_tree_and_are_named_where_there_are_several(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0)], release="2.0")
    second = Release.objects.get(name="2.0")
    both = visit(client, cast.viewer, tree_path(cast.system))
    one = visit(client, cast.viewer, tree_path(cast.system), release=str(second.uuid))

    assert (both.releases_label, one.releases_label) == ("All releases", "2.0")
    assert both.rows[0].ends == "2 end here:"
    assert [(t.release, t.n_more) for t in both.rows[0].trials] == [("1.0", 1)]
    assert [(t.release, t.n_more) for t in one.rows[0].trials] == [("", 0)]


def test_a_release_without_a_trial_says_so(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t2", 0)], release="2.0")
    second = Release.objects.get(name="2.0")
    page = visit(client, cast.viewer, tree_path(cast.system), release=str(second.uuid))

    assert (page.rows, page.empty.heading) == ((), "No trial here")
    assert len(visit(client, cast.viewer, page.empty.act.href).rows) == 1


def test_a_task_without_a_trial_that_counts_says_what_is_left_out(
    client: Client, cast: Cast
) -> None:
    ingest(
        cast.system,
        [record("t1", 0, environment="production"), record("t1", 1, fault={"kind": "timeout"})],
    )
    page = visit(client, cast.viewer, tree_path(cast.system))
    assert (page.rows, page.empty.act) == ((), None)
    assert [notice.sentence for notice in page.notices] == [
        "2 trials of production or with an injected fault are not in this tree."
    ]


def test_a_long_stretch_is_folded(client: Client, cast: Cast) -> None:
    calls: Any = tuple((f"tool-{n:02}", {}) for n in range(40))
    ingest(cast.system, [record("t1", 0, calls=calls)])
    page = visit(client, cast.viewer, tree_path(cast.system))
    (row,) = page.rows

    assert [cell.name for cell in row.cells] == [f"tool-{n:02}" for n in range(6)]
    assert (row.steps, row.n_between) == ("1-40", 31)
    assert [cell.name for cell in row.last_cells] == ["tool-37", "tool-38", "tool-39"]
    assert len(page.tools) == 9
    assert page.note == "Long stretches without a branch are folded."


def test_a_deep_tree_says_its_level_in_words(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n, calls=(LOOK,) * n) for n in range(1, 25)])
    page = visit(client, cast.viewer, tree_path(cast.system))

    assert [row.level for row in page.rows] == list(range(1, 25))
    assert max(len(row.guides) for row in page.rows) == 16
    assert [row.level for row in page.rows if row.is_deep] == list(range(18, 25))
    assert [row.level for row in page.rows if row.is_deep_when_narrow] == list(range(6, 25))
    text = client.get(tree_path(cast.system)).content.decode()
    assert "level 24" in text


def test_rows_beyond_the_limit_are_counted_and_can_be_drawn(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalsite.web import task_tree

    monkeypatch.setattr(task_tree, "MOST_ROWS", 3)
    monkeypatch.setattr(task_tree, "MOST_ROWS_OF_ALL", 5)
    calls: list[Any] = [(LOOK, (f"tool-{n}", {})) for n in range(6)]
    ingest(
        cast.system, [record("t1", n, calls=each, verdicts=FAIL) for n, each in enumerate(calls)]
    )
    page = visit(client, cast.viewer, tree_path(cast.system))
    more = visit(client, cast.viewer, page.more.href)

    assert drawn(page) == [
        "|1|look|0/6/0/0",
        "tee|2|tool-0|0/1/0/0",
        "tee|2|tool-1|0/1/0/0",
        "corner||4 more branches, not drawn|0/4/0/0",
    ]
    assert page.note == "The 3 branches with the most trials of 7 are drawn."
    assert page.more.label == "Draw 5 branches"
    assert (len(more.rows), more.more) == (6, None)


def test_a_start_is_no_branch_that_is_drawn(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalsite.web import task_tree

    monkeypatch.setattr(task_tree, "MOST_ROWS", 3)
    monkeypatch.setattr(task_tree, "MOST_ROWS_OF_ALL", 5)
    ingest(cast.system, [record("t1", n, calls=((f"tool-{n}", {}),)) for n in range(6)])
    page = visit(client, cast.viewer, tree_path(cast.system))
    more = visit(client, cast.viewer, page.more.href)

    assert drawn(page) == [
        "||Start|6/0/0/0",
        "tee|1|tool-0|1/0/0/0",
        "tee|1|tool-1|1/0/0/0",
        "corner||4 more branches, not drawn|4/0/0/0",
    ]
    assert page.words == "6 branches, most trials first"
    assert page.note == "The 2 branches with the most trials of 6 are drawn."
    assert page.more.label == "Draw 4 branches"
    assert more.note == "The 4 branches with the most trials of 6 are drawn."


def test_actions_of_parting_are_counted_in_branches_that_are_not_drawn_too(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalsite.web import task_tree

    monkeypatch.setattr(task_tree, "MOST_ROWS", 2)
    parted = [(*((LOOK,) * n), ASK) for n in range(8)]
    ingest(
        cast.system,
        [
            record("t1", "p", calls=(LOOK,) * 8),
            *(record("t1", n, calls=calls, verdicts=FAIL) for n, calls in enumerate(parted)),
            record("t1", "last", calls=parted[3], verdicts=FAIL),
        ],
    )
    page = visit(client, cast.viewer, tree_path(cast.system))
    assert [(p.label, p.words, p.href) for p in page.places][:2] == [
        ("action 4", "2 leave", ""),
        ("action 1", "1 leaves", ""),
    ]
    assert (len(page.places), page.n_more_places) == (6, 2)


def test_query_count_of_a_tree_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.viewer)
    path = tree_path(cast.system)
    one = n_queries(client, path, level="exact")
    ingest(
        cast.system,
        [record("t1", 1, calls=(PAY,)), record("t1", 2, calls=(ASK,), verdicts=FAIL)],
        release="2.0",
    )
    assert (one, n_queries(client, path, level="exact")) == (QUERIES, QUERIES)


QUERIES = 13


@pytest.mark.parametrize(
    "query",
    [
        "?level=effects",
        "?level=%00&messages=2&version=99999999999999999999999",
        "?release=nonsense&release=%00&version=-1",
        f"?release={uuid.uuid4()}&all=2",
    ],
    ids=["level", "nul", "release", "unknown"],
)
def test_odd_addresses_show_the_whole_tree(query: str, client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    page = visit(client, cast.viewer, tree_path(cast.system) + query)
    assert len(page.rows) == 1
    assert [choice.label for choice in page.switches.levels if choice.is_current] == ["Sequence"]


def test_the_tree_of_another_system_is_404(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    path = tree_path(cast.system)
    elsewhere = path.replace(root(cast.system), root(cast.other_system))
    client.force_login(cast.outsider)
    assert client.get(path).status_code == 404
    assert client.get(elsewhere).status_code == 404
    client.force_login(cast.viewer)
    assert client.get(f"{root(cast.system)}tasks/{uuid.uuid4()}/tree/").status_code == 404
    assert client.post(path).status_code == 405


def test_hostile_names_stay_text(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record(HOSTILE, HOSTILE, calls=((HOSTILE, {HOSTILE: HOSTILE}),)),
            record(HOSTILE, 1, calls=(LOOK,), verdicts=FAIL),
        ],
        release="<b>one</b>",
    )
    ingest(cast.system, [record("t1", 0)], release="2.0")
    task = Task.objects.get(system=cast.system, task_id__startswith="<img")
    client.force_login(cast.viewer)
    for query in ("", "?level=exact", "?level=equivalent&messages=1"):
        text = client.get(f"{root(cast.system)}tasks/{task.uuid}/tree/{query}").content.decode()
        assert "<img src=x" not in text
        assert "<b>one</b>" not in text
        assert "\x1b" not in text
        assert "U+202E" in text
        assert "style=" not in text
