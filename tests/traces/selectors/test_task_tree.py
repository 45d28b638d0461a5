from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.core.paths import PathLevel
from traces.core.prefix_tree import BranchCounts, CutRow, TreeRow
from traces.core.records import Disposition
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.models import Release, Task, TaskVersion, Trial
from traces.selectors.rules import rules_of
from traces.selectors.task_detail import ChosenTrials
from traces.selectors.task_tree import TaskTree, task_tree

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
LOOK = ("look", {"n": 1})


def tree_of(
    cast: Cast,
    *,
    level: PathLevel = PathLevel.SEQUENCE,
    messages: bool = False,
    rules: RuleSet | None = None,
    release: str = "",
    **more: Any,
) -> TaskTree:
    task = Task.objects.get(system=cast.system, task_id="t1")
    releases = tuple(Release.objects.filter(name=release).values_list("pk", flat=True))
    return task_tree(
        ChosenTrials(task.pk, cast.system.shown_rules_id, releases, more.pop("version", None)),
        level=level,
        messages=messages,
        rules=rules or rules_of(cast.system),
        task_id="t1",
        **more,
    )


def lines(found: TaskTree) -> list[str]:
    """The rows: indentation, tools, and passed/failed/unresolved/broken trials."""
    written = []
    for row in found.tree.rows:
        if isinstance(row, CutRow):
            written.append(f"{' ' * row.depth}+{row.n_branches}")
            continue
        n = row.through
        names = " ".join(found.tools[label] or "msg" for label in row.labels) or "-"
        counts = f"{n.n_pass}/{n.n_fail}/{n.n_unresolved}/{n.n_error}"
        written.append(f"{' ' * row.depth}{names} {counts}")
    return written


def test_trials_fold_into_a_tree_with_an_example_of_each_disposition(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 10, calls=(LOOK, ("pay", {}))),
            record("t1", 9, calls=(LOOK, ("pay", {}))),
            record("t1", 1, calls=(LOOK, ("pay", {})), verdicts=FAIL),
            record("t1", 2, calls=(LOOK, ("ask", {})), verdicts=FAIL),
            record("t1", 3, calls=(LOOK,), verdicts=[]),
            record("t1", 4, calls=(LOOK,), error="boom", verdicts=[]),
        ],
    )
    found = tree_of(cast)

    assert lines(found) == ["look 2/2/1/1", " pay 2/1/0/0", " ask 0/1/0/0"]
    assert found.tree.counts == BranchCounts(2, 2, 1, 1)
    assert (found.tree.n_left, found.tree.n_alike, found.n_left_out) == (1, 1, 0)
    ends = [
        [(t.label, t.value, t.n_trials) for path in row.ends for t in found.ends[path]]
        for row in found.tree.rows
        if isinstance(row, TreeRow)
    ]
    assert ends == [
        [("3", Disposition.UNRESOLVED, 1), ("4", Disposition.HARNESS_ERROR, 1)],
        [("1", Disposition.FAIL, 1), ("9", Disposition.PASS, 2)],
        [("2", Disposition.FAIL, 1)],
    ]
    assert found.openings == {}


def test_the_agents_message_of_a_step_is_known(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(LOOK, ("pay", {})))])
    (trial,) = (trial for trials in tree_of(cast).ends.values() for trial in trials)
    (whole,) = (trial for trials in tree_of(cast, messages=True).ends.values() for trial in trials)

    assert trial.uuid == Trial.objects.get().uuid
    assert [trial.message(at) for at in (-1, 0, 1, 2)] == [None, 1, 2, None]
    assert [whole.message(at) for at in range(4)] == [1, 2, 3, None]


def test_messages_count_as_steps_when_asked(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=(LOOK,))])
    assert lines(tree_of(cast)) == ["look 1/0/0/0"]
    assert lines(tree_of(cast, messages=True)) == ["look msg 1/0/0/0"]


def test_arguments_part_trials_at_the_finer_levels_and_rules_join_them(cast: Cast) -> None:
    def adds(expression: str) -> tuple[tuple[str, dict[str, Any]], ...]:
        return (LOOK, ("calculate", {"expression": expression}))

    ingest(
        cast.system,
        [
            record("t1", 0, calls=adds("2 * 600")),
            record("t1", 1, calls=adds("1200")),
            record("t1", 2, calls=adds("7")),
        ],
    )
    rules = RuleSet(
        rules=(ArgumentRule("calculate", "expression", Arithmetic(), reason="r", author="a"),)
    )
    exact = tree_of(cast, level=PathLevel.EXACT)
    without = tree_of(cast, level=PathLevel.EQUIVALENT)
    merged = tree_of(cast, level=PathLevel.EQUIVALENT, rules=rules)

    assert lines(tree_of(cast)) == ["look calculate 3/0/0/0"]
    apart = ["look 3/0/0/0", *[" calculate 1/0/0/0"] * 3]
    assert lines(exact) == lines(without) == apart
    assert lines(merged) == ["look 3/0/0/0", " calculate 2/0/0/0", " calculate 1/0/0/0"]
    assert sorted(call.text for call in exact.openings.values()) == [
        '{"expression":"1200"}',
        '{"expression":"2 * 600"}',
        '{"expression":"7"}',
        '{"n":1}',
    ]


def test_a_call_without_arguments_equals_no_other_where_arguments_count(cast: Cast) -> None:
    def bare(trial: int) -> dict[str, Any]:
        one = record("t1", trial, calls=(LOOK, ("pay", {})))
        one["messages"][1]["tool_calls"][0]["function"].pop("arguments")
        return one

    ingest(cast.system, [bare(0), bare(1), record("t1", 2, calls=(LOOK, ("pay", {})))])
    exact = tree_of(cast, level=PathLevel.EXACT, messages=True)

    assert lines(tree_of(cast)) == ["look pay 3/0/0/0"]
    assert lines(exact) == ["- 3/0/0/0", *[" look pay msg 1/0/0/0"] * 3]
    assert [call.name for call in exact.openings.values()] == ["look"]


def test_production_and_faults_are_left_out_and_counted(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, environment="production"),
            record("t1", 2, fault={"kind": "timeout"}),
        ],
    )
    found = tree_of(cast)
    assert (found.tree.counts, found.n_left_out) == (BranchCounts(1), 2)


def test_releases_and_a_version_narrow_the_tree(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0, calls=(LOOK,))], release="2.0")
    version = TaskVersion.objects.get()

    assert lines(tree_of(cast, release="2.0")) == ["look 1/0/0/0"]
    assert tree_of(cast, version=version.pk).tree.counts == BranchCounts(2)
    assert tree_of(cast, version=version.pk + 1).tree.counts == BranchCounts()


def test_an_earlier_attempt_does_not_count(cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, error="boom", verdicts=[]), record("t1", 0, attempt=2, calls=(LOOK,))],
    )
    assert lines(tree_of(cast)) == ["look 1/0/0/0"]


def test_rows_are_limited_and_the_rest_is_counted(cast: Cast) -> None:
    ingest(cast.system, [record("t1", n, calls=(LOOK, (f"tool-{n}", {}))) for n in range(5)])
    found = tree_of(cast, most_rows=3)
    assert lines(found) == ["look 5/0/0/0", " tool-0 1/0/0/0", " tool-1 1/0/0/0", " +3"]
    assert len(found.ends) == 2


@pytest.mark.parametrize(
    ("level", "n"), [(PathLevel.SEQUENCE, 3), (PathLevel.EQUIVALENT, 5), (PathLevel.EXACT, 5)]
)
def test_query_count_does_not_grow(level: PathLevel, n: int, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    rules = rules_of(cast.system)
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            task = Task.objects.get(system=cast.system)
            task_tree(
                ChosenTrials(task.pk, cast.system.shown_rules_id),
                level=level,
                messages=True,
                rules=rules,
                task_id="t1",
            )
        assert len(captured) == n + 1
        ingest(cast.system, [record("t1", n, calls=((f"t{n}", {"n": n}),)) for n in range(1, 4)])


def test_a_level_without_steps_is_refused(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    with pytest.raises(ValueError, match="no level of steps: effects"):
        tree_of(cast, level=PathLevel.EFFECTS)
