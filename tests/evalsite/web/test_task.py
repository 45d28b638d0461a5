from __future__ import annotations

import gzip
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reviews.models import Flag, FlagCode
from tests.support.accepted import accept
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.core.paths import PathLevel
from traces.core.rule_documents import rule_set_document
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import Release, RulesVersion, System, Task, TaskOrigin, Trial
from traces.services.families import note_exposure

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]


def use_rules(system: System) -> None:
    rules = RuleSet(
        rules=(
            ArgumentRule("calculate", "expression", Arithmetic(), reason="Same sum.", author="e"),
        ),
        tool_kinds=(("calculate", ToolKind.READ), ("get_order", ToolKind.READ)),
    )
    version = RulesVersion.objects.create(
        system=system, number=2, document=rule_set_document(rules), reason="For the test."
    )
    System.objects.filter(pk=system.pk).update(shown_rules=version)
    system.refresh_from_db()


def calculates(expression: str) -> Any:
    return (("calculate", {"expression": expression}),)


def task_path(system: System, task_id: str = "t1") -> str:
    task = Task.objects.get(system=system, task_id=task_id)
    return f"{root(system)}tasks/{task.uuid}/"


def test_paths_are_named_from_the_one_with_most_trials_on(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 10, calls=(("b", {}),)),
            record("t1", 9, calls=(("a", {}), ("c", {}))),
            record("t1", 2, calls=(("b", {}),)),
            record("t1", 3, calls=(("d", {}),), verdicts=FAIL),
        ],
    )
    page = visit(client, cast.viewer, task_path(cast.system))
    groups = [
        (g.name, g.n_trials, g.share, [t.label for t in g.trials], g.releases, g.finer)
        for g in page.aligned.groups
    ]

    assert groups == [
        ("A", 2, 66, ["2", "10"], ("1.0",), "1 exact path"),
        ("B", 1, 33, ["9"], ("1.0",), "1 exact path"),
    ]
    assert page.aligned.words == "2 sequences, most trials first"
    assert [[c and c.name for c in g.cells] for g in page.aligned.groups] == [
        ["b", None, None],
        [None, "a", "c"],
    ]
    assert [(row.label, row.path) for row in page.trials] == [
        ("10", "A"),
        ("9", "B"),
        ("2", "A"),
        ("3", ""),
    ]
    assert {f.label: f.value for f in page.figures} == {
        "Trials": "4",
        "Passed / graded / run": "75.0%",
        "Unresolved": "0",
        "pass^4": "0.00",
        "Cost per success": "-",
        "Passing paths": "2",
        "Accepted paths": "0 of 2",
    }


def test_each_level_counts_its_paths(client: Client, cast: Cast) -> None:
    use_rules(cast.system)
    ingest(
        cast.system,
        [
            record("t1", 0, calls=calculates("2 * 600")),
            record("t1", 1, calls=calculates("1200")),
            record("t1", 2, calls=calculates("1201")),
            record("t1", 3, calls=(("get_order", {}), *calculates("1200"))),
        ],
    )
    page = visit(client, cast.viewer, task_path(cast.system), level="equivalent")
    switches = (*page.switches.levels, *page.switches.more_levels)

    assert {choice.label: choice.count for choice in switches} == {
        "Sequence": 2,
        "Equivalent": 3,
        "Exact": 4,
        "Tool set": 2,
        "Effects": 1,
        "Reads in any order": 2,
    }
    assert [choice.label for choice in switches if choice.is_current] == ["Equivalent"]
    assert [(g.name, g.n_trials, g.cells[-1].differs) for g in page.aligned.groups] == [
        ("A", 2, True),
        ("B", 1, False),
        ("C", 1, False),
    ]
    (merge,) = page.merges
    assert (merge.tool, merge.argument, merge.rule, merge.n_values, merge.value, merge.path) == (
        "calculate",
        "expression",
        "arithmetic value",
        2,
        "1200",
        "A",
    )
    assert merge.reason == "Same sum."
    assert merge.examples == ('"2 * 600"', '"1200"')


def test_rejected_attempts_are_counted_by_trial(client: Client, cast: Cast) -> None:
    call = (("book", {"x": 1}),)
    ingest(
        cast.system,
        [
            record("t1", 0, calls=call, result="Error: no seat"),
            record("t1", 1, calls=call, result="Error: no seat"),
            record("t1", 2, calls=call),
        ],
    )
    page = visit(client, cast.viewer, task_path(cast.system))
    (group,) = page.aligned.groups
    (cell,) = group.cells

    assert (cell.n_rejected, cell.kind, cell.differs) == (2, "write", False)
    assert cell.css == "cell tool-c0 w x some"
    assert cell.words.endswith("rejected by the tool in 2 of 3 trials")
    trial = Trial.objects.get(label="0")
    assert cell.href == f"{root(cast.system)}trials/{trial.uuid}/?agent=1"


def test_a_call_that_every_trial_of_a_path_saw_rejected_is_struck(
    client: Client, cast: Cast
) -> None:
    steps = (("book", {"x": 1}), ("book", {"x": 2}))
    ingest(
        cast.system,
        [
            record("t1", 0, calls=steps[:1], result="Error: no seat"),
            record("t1", 1, calls=steps[:1], result="Error: no seat"),
            record("t1", 2, calls=steps, result="Error: no seat"),
            record("t1", 3, calls=steps),
        ],
    )
    page = visit(client, cast.viewer, task_path(cast.system))
    tool_set = visit(client, cast.viewer, task_path(cast.system), level="tool_set")

    assert [[c.css.partition(" w")[2] for c in g.cells if c] for g in page.aligned.groups] == [
        [" x"],
        [" x some", " x some"],
    ]
    (group,) = tool_set.aligned.groups
    assert [cell.words.partition("tool")[2] for cell in group.cells] == [" in 3 of 4 trials"]


def others(page: Any) -> list[list[str]]:
    return [[cell.other if cell else "-" for cell in group.cells] for group in page.aligned.groups]


def test_a_step_says_in_what_it_differs_from_a_path_above(client: Client, cast: Cast) -> None:
    use_rules(cast.system)
    book = ("book", {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1})
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(*calculates("2 * 600"), book)),
            record("t1", 1, calls=(*calculates("2 * 600"), book)),
            record("t1", 2, calls=(*calculates("1200"), book)),
            record("t1", 3, calls=(*calculates("1201"), ("book", {"b": 2, "a": 1, "z": None}))),
            record("t1", 4, calls=(*calculates("1201"), ("sell", {}))),
            record("t1", 5, calls=(*calculates("1"), book), verdicts=FAIL),
        ],
    )
    path = task_path(cast.system)
    exact = visit(client, cast.viewer, path, level="exact", overlay="fail")
    equivalent = visit(client, cast.viewer, path, level="equivalent")
    effects = visit(client, cast.viewer, path, level="effects")
    sequence = visit(client, cast.viewer, path)
    expression = "expression differs from path A"

    assert others(exact) == [
        ["", "", "-"],
        [expression, "", "-"],
        [expression, "b, c, d and 2 more differ from path A", "-"],
        [expression, "-", ""],
    ]
    assert [cell.other for cell in exact.aligned.overlaid[0].cells if cell] == ["", ""]
    assert others(equivalent) == [
        ["", "", "-"],
        [expression, "b, c, d and 2 more differ from path A", "-"],
        [expression, "-", ""],
    ]
    assert others(effects) == [
        ["", "", "-"],
        ["", "b, c, d and 2 more differ from path A", "-"],
        ["", "-", ""],
    ]
    assert not any(word for row in others(sequence) for word in row if word != "-")
    assert (exact.aligned.compares_arguments, sequence.aligned.compares_arguments) == (True, False)


def test_steps_in_another_order_alone_differ_in_no_argument(client: Client, cast: Cast) -> None:
    one, other = ("a", {"x": 1}), ("b", {"x": 2})
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(one, other)),
            record("t1", 1, calls=(one, other)),
            record("t1", 2, calls=(other, one)),
        ],
    )
    page = visit(client, cast.viewer, task_path(cast.system), level="exact")

    assert len(page.aligned.groups) == 2
    assert {word for row in others(page) for word in row} == {"", "-"}


def test_hostile_names_of_arguments_stay_text(client: Client, cast: Cast) -> None:
    hostile = "<b>\u202e" + "n" * 100
    no_members: Any = [1]
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(("a", {hostile: 1}),)),
            record("t1", 1, calls=(("a", {hostile: 2}),)),
            record("t1", 2, calls=(("a", no_members),)),
        ],
    )
    client.force_login(cast.viewer)
    html = client.get(task_path(cast.system), {"level": "exact"}).content.decode()
    page = visit(client, cast.viewer, task_path(cast.system), level="exact")

    assert others(page) == [
        [""],
        ["<b>\u202e" + "n" * 35 + "… differs from path A"],
        ["arguments differ from path A"],
    ]
    assert "&lt;b&gt;[U+202E]nnn" in html
    assert "<b>\u202e" not in html


def test_a_failing_trial_laid_over_shows_where_it_leaves(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(("a", {}), ("b", {}), ("c", {}))),
            record("t1", 1, calls=(("a", {}), ("x", {}), ("c", {})), verdicts=FAIL),
            record("t1", 2, calls=(("a", {}),), verdicts=[]),
        ],
    )
    plain = visit(client, cast.viewer, task_path(cast.system))
    both = next(choice for choice in plain.overlay if choice.label == "+ failing")
    page = visit(client, cast.viewer, both.href)
    whole = visit(client, cast.viewer, task_path(cast.system), overlay="fail,unresolved")

    assert plain.aligned.overlaid == ()
    (trial,) = page.aligned.overlaid
    assert (trial.name, trial.state) == ("Trial 1", "fail")
    assert [cell.name for cell in trial.cells if cell and cell.leaves] == ["x"]
    assert [(g.name, g.state) for g in whole.aligned.overlaid] == [
        ("Trial 1", "fail"),
        ("Trial 2", "unresolved"),
    ]
    assert not any(cell and cell.leaves for cell in whole.aligned.overlaid[1].cells)


def test_a_trial_without_arguments_is_a_path_of_its_own_and_the_page_says_so(
    client: Client, cast: Cast
) -> None:
    def bare(trial: int) -> dict[str, Any]:
        one = record("t1", trial)
        one["messages"][1]["tool_calls"][0]["function"].pop("arguments")
        return one

    ingest(cast.system, [bare(0), bare(1), record("t1", 2)])
    page = visit(client, cast.viewer, task_path(cast.system), level="exact")

    assert [g.n_trials for g in page.aligned.groups] == [1, 1, 1]
    assert [bool(g.note) for g in page.aligned.groups] == [True, True, False]
    assert "2 passing trials made a call" in page.notices[0].sentence


def test_releases_and_versions_narrow_everything(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1, verdicts=FAIL)], release="1.0")
    ingest(cast.system, [record("t1", 0, calls=(("other", {}),))], release="2.0")
    second = Release.objects.get(name="2.0")
    page = visit(client, cast.viewer, task_path(cast.system), release=[str(second.uuid)])

    assert page.releases_label == "2.0"
    assert page.figures[1].detail == "1 / 1 / 1"
    assert [row.release.label for row in page.trials] == ["2.0"]
    assert [cell.name for cell in page.aligned.groups[0].cells] == ["other"]
    assert [(f.name, f.value) for f in page.compare_hidden if f.name == "release"] == [
        ("release", str(second.uuid))
    ]


def test_production_and_faults_stand_in_no_figure(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, environment="production", calls=(("x", {}),)),
            record("t1", 2, fault={"kind": "timeout"}, verdicts=FAIL),
        ],
    )
    page = visit(client, cast.viewer, task_path(cast.system))

    assert page.figures[1].detail == "1 / 1 / 1"
    assert len(page.aligned.groups) == 1
    assert len(page.trials) == 3
    assert "2 trials of production or with an injected fault" in page.notices[0].sentence


def test_many_paths_come_in_pages(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n, calls=((f"tool-{n}", {}),)) for n in range(23)])
    page = visit(client, cast.viewer, task_path(cast.system))
    rest = visit(client, cast.viewer, page.aligned.more.href)

    assert [g.name for g in page.aligned.groups][-1] == "T"
    assert [g.name for g in rest.aligned.groups] == ["U", "V", "W"]
    assert page.aligned.words == "23 sequences, 1 to 20"
    assert [g.trials[0].label for g in rest.aligned.groups] == ["20", "21", "22"]


def test_a_very_long_path_is_cut_and_says_so(client: Client, cast: Cast) -> None:
    calls = tuple(("step", {"n": n}) for n in range(250))
    ingest(cast.system, [record("t1", 0, calls=calls)])
    page = visit(client, cast.viewer, task_path(cast.system), level="exact")

    assert len(page.aligned.columns) == 200
    assert "cut after 200 steps" in page.aligned.note


def test_no_passing_trial_offers_the_others(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=FAIL)])
    page = visit(client, cast.viewer, task_path(cast.system))
    shown = visit(client, cast.viewer, page.empty.act.href)

    assert page.empty.heading == "No passing path"
    assert [g.name for g in shown.aligned.overlaid] == ["Trial 0"]


def badges(page: Any) -> list[tuple[int, list[str]]]:
    return [(g.n_trials, [badge.label for badge in g.badges]) for g in page.aligned.groups]


def test_paths_say_whether_they_are_accepted_new_or_flagged(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, calls=calculates("1")), record("t1", 1, calls=(("old", {}),))],
    )
    first = visit(client, cast.viewer, task_path(cast.system))
    accept(cast, level=PathLevel.EXACT)
    ingest(
        cast.system,
        [
            record("t1", 0, calls=calculates("1")),
            record("t1", 1, calls=calculates("2")),
            record("t1", 2, calls=(("new", {}),)),
        ],
        release="2.0",
    )
    Flag.objects.create(
        system=cast.system,
        trial=Trial.objects.get(label="2"),
        code=FlagCode.PERSON.value,
        key=uuid.uuid4(),
        reason="look",
        by=cast.viewer,
        raised_at=timezone.now(),
    )
    second = Release.objects.get(name="2.0")
    page = visit(client, cast.viewer, task_path(cast.system))
    chosen = visit(client, cast.viewer, task_path(cast.system), release=str(second.uuid))
    exact = visit(client, cast.viewer, task_path(cast.system), level="exact")
    (figure,) = [figure for figure in exact.figures if figure.label == "Accepted paths"]

    assert badges(first) == [(1, []), (1, [])]
    assert badges(page) == [
        (3, ["partly accepted"]),
        (1, []),
        (1, ["new in 2.0", "flagged 1"]),
    ]
    assert badges(chosen) == [(2, ["partly accepted"]), (1, ["new in 2.0", "flagged 1"])]
    assert badges(exact) == [
        (2, ["accepted"]),
        (1, []),
        (1, ["new in 2.0"]),
        (1, ["new in 2.0", "flagged 1"]),
    ]
    assert figure.value == "1 of 4"
    assert "level=exact" in figure.href
    (tab,) = [tab for tab in chosen.tabs if tab.label == "Accepted paths"]
    assert f"release={second.uuid}" in tab.href


def test_an_engineer_gets_to_accept_what_is_not_accepted(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1, calls=(("x", {}),))])
    accept(cast)
    page = visit(client, cast.engineer, task_path(cast.system), level="exact", messages="1")
    viewed = visit(client, cast.viewer, task_path(cast.system))
    trial = Trial.objects.get(label="1")

    assert [g.accept_url for g in page.aligned.groups] == [
        "",
        f"{task_path(cast.system)}accept/?trial={trial.uuid}&level=exact&messages=1",
    ]
    assert visit(client, cast.engineer, page.aligned.groups[1].accept_url).level == (
        "Exact, with messages"
    )
    assert [g.accept_url for g in viewed.aligned.groups] == ["", ""]


def test_query_count_of_a_task_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.viewer)
    path = task_path(cast.system)
    one = n_queries(client, path)
    ingest(
        cast.system,
        [record("t1", 1, calls=(("x", {}),)), record("t1", 2, calls=(("y", {}),))],
        release="2.0",
    )

    assert (one, n_queries(client, path)) == (16, 16)
    assert n_queries(client, path) == 13  # the layout is remembered


def test_a_task_that_does_not_exist_is_404(client: Client, cast: Cast) -> None:
    client.force_login(cast.viewer)
    assert client.get(f"{root(cast.system)}tasks/{uuid.uuid4()}/").status_code == 404


HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def test_hostile_names_stay_text(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record(HOSTILE, HOSTILE, calls=((HOSTILE, {HOSTILE: HOSTILE}),))],
        release="<b>one</b>",
        run="{{ 7*7 }}",
    )
    client.force_login(cast.viewer)
    for path in ("tasks/", "tasks/?view=table", "trials/", "runs/", "releases/"):
        text = client.get(root(cast.system) + path).content.decode()
        assert "<img src=x" not in text, path
        assert "<b>one</b>" not in text, path
        assert "\x1b" not in text, path
    task = Task.objects.get(system=cast.system)
    trial = Trial.objects.get(system=cast.system)
    for path in (f"tasks/{task.uuid}/?level=exact", f"trials/{trial.uuid}/"):
        text = client.get(root(cast.system) + path).content.decode()
        assert "<img src=x" not in text, path
        assert "U+202E" in text, path


TELECOM = (
    Path(__file__).resolve().parents[2]
    / "data/02_tau2_results/telecom_no-user_gpt-4.1_4trials_5tasks.json.gz"
)


def telecom(trials: tuple[int, ...], *, reason: str = "") -> bytes:
    """Some trials of one task of a real file, its definition changed by another reason."""
    whole = json.loads(gzip.decompress(TELECOM.read_bytes()))
    task = whole["tasks"][0]
    if reason:
        task["user_scenario"]["instructions"]["reason_for_call"] = reason
    kept = [s for s in whole["simulations"] if s["task_id"] == task["id"] and s["trial"] in trials]
    return json.dumps({**whole, "tasks": [task], "simulations": kept}).encode()


def test_a_task_says_what_it_asks_and_lets_one_choose_a_version(client: Client, cast: Cast) -> None:
    ingest(cast.system, telecom((0, 1)), file_name="results.json")
    ingest(cast.system, telecom((2,), reason="My phone is slow."), file_name="results.json")
    task = Task.objects.get(system=cast.system)
    path = f"{root(cast.system)}tasks/{task.uuid}/"
    page = visit(client, cast.viewer, path)
    first = next(choice for choice in page.versions if choice.label == "Version 1")
    old = visit(client, cast.viewer, first.href)

    assert page.text == "My phone is slow."
    assert [(c.label, c.count, c.is_current) for c in page.versions] == [
        ("All versions", 3, True),
        ("Version 2", 1, False),
        ("Version 1", 2, False),
    ]
    assert page.notices[0].sentence == "All 2 versions of this task are taken together here."
    assert [row.label for row in old.trials] == ["0", "1"]
    assert "version 1" in old.facts
    assert old.notices == ()
    assert ("version", "1") in [(field.name, field.value) for field in old.hidden]


def test_a_release_without_a_trial_of_the_task_says_so(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t2", 0)], release="2.0")
    second = Release.objects.get(name="2.0")
    page = visit(client, cast.viewer, task_path(cast.system), release=[str(second.uuid)])
    beyond = visit(client, cast.viewer, task_path(cast.system), **{"from": "21"})

    assert page.empty.heading == "No trial here"
    assert visit(client, cast.viewer, page.empty.act.href).empty is None
    assert beyond.empty.heading == "No path here"


def test_costs_are_known_for_some_trials_only(client: Client, cast: Cast) -> None:
    usage = [{"cost_usd": 0.01}, {"cost_usd": 0.04}, {"cost_usd": 0.02}, {}]
    ingest(cast.system, [record("t1", n, usage=each) for n, each in enumerate(usage)])
    page = visit(client, cast.viewer, task_path(cast.system))
    (cost,) = [figure for figure in page.figures if figure.label == "Cost per success"]

    assert (cost.value, cost.detail) == ("$0.02", "p95 $0.04")
    assert "known for 3 of 4 passing trials" in cost.help
    assert str(page.aligned.groups[0].cost_usd).startswith("0.02")


def test_a_coarse_level_marks_what_differs_among_other_orders(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(("a", {"n": 1}), ("b", {}))),
            record("t1", 1, calls=(("b", {}), ("a", {"n": 2}))),
            record("t1", 2, calls=(("a", {"n": 1}), ("b", {}), ("b", {}))),
        ],
    )
    page = visit(client, cast.viewer, task_path(cast.system), level="tool_set")
    (group,) = page.aligned.groups

    assert (group.n_trials, group.finer) == (3, "3 exact paths")
    assert [(cell.name, cell.differs) for cell in group.cells] == [("a", True), ("b", False)]


def test_a_task_says_where_it_comes_from_and_that_it_was_exposed(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 7), record("made", 0)])
    trial, task = Trial.objects.get(label="7"), Task.objects.get(task_id="made")
    Task.objects.filter(pk=task.pk).update(split="held_out")
    now = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
    TaskOrigin.objects.create(task=task, trial=trial, reason="x", by=cast.engineer, made_at=now)
    note_exposure(task, reason="<b>Used.</b>", by=cast.engineer, now=now)

    page = visit(client, cast.viewer, f"{root(cast.system)}tasks/{task.uuid}/")

    assert [(line.label, line.href, line.title) for line in page.history] == [
        (
            "made from trial 7 of task t1",
            f"{root(cast.system)}trials/{trial.uuid}/",
            "engineer, 2026-12-01 10:00:00 UTC",
        ),
        ("1 exposure, engineer: <b>Used.</b>", "", "2026-12-01 10:00:00 UTC"),
    ]
    page = visit(client, cast.viewer, f"{root(cast.system)}tasks/{trial.task.uuid}/")
    assert page.history == ()
    assert client.get(page.contract_url).status_code == 200
