from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.common import blobs
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from traces.models import Release, Task, TaskVersion, Trial
from traces.selectors.release_comparison import (
    ComparedReleases,
    ComparedTask,
    Flip,
    Moves,
    PathFate,
    ReleaseComparison,
    release_comparison,
    releases_with_trials,
)
from traces.services.work import release_named

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
LOOK: Call = ("look", {})
PAY: Call = ("pay", {})
ASK: Call = ("ask", {})


def compared(cast: Cast, *, key: str = "sequence", **more: Any) -> ReleaseComparison:
    now, then = (Release.objects.get(system=cast.system, name=name) for name in ("2.0", "1.0"))
    return release_comparison(
        ComparedReleases(cast.system.pk, now.pk, then.pk, cast.system.shown_rules_id, key), **more
    )


def both(cast: Cast, then: list[dict[str, Any]], now: list[dict[str, Any]]) -> None:
    """Trials of the release 1.0 and of 2.0."""
    ingest(cast.system, then, release="1.0")
    ingest(cast.system, now, release="2.0")


def told(task: ComparedTask) -> tuple[Any, ...]:
    """The flip, passed of graded in both, and the paths that are gone, new and kept."""
    return (
        task.task_id,
        task.flip.value,
        f"{task.then.n_pass}/{task.then.n_graded}",
        f"{task.now.n_pass}/{task.now.n_graded}",
        (task.n_gone, task.n_new, task.n_kept),
    )


def test_flips_other_paths_and_rates_come_in_this_order(cast: Cast) -> None:
    both(
        cast,
        [
            record("a-same", 0),
            record("b-rate", 0),
            record("b-rate", 1, verdicts=FAIL),
            record("c-paths", 0, calls=(LOOK, PAY)),
            record("c-paths", 1, calls=(LOOK,)),
            record("d-to-pass", 0, verdicts=FAIL),
            record("e-to-fail", 0),
            record("f-one-fails", 0),
            record("f-one-fails", 1),
            record("g-open", 0),
        ],
        [
            record("a-same", 0),
            record("b-rate", 0),
            record("b-rate", 1),
            record("c-paths", 0, calls=(LOOK, PAY)),
            record("c-paths", 1, calls=(LOOK, ASK)),
            record("d-to-pass", 0),
            record("e-to-fail", 0, verdicts=FAIL),
            record("f-one-fails", 0),
            record("f-one-fails", 1, verdicts=FAIL),
            record("g-open", 0, verdicts=[]),
        ],
    )
    found, everything = compared(cast), compared(cast, everything=True)

    assert [told(task) for task in found.tasks] == [
        ("e-to-fail", "to_fail", "1/1", "0/1", (1, 0, 0)),
        ("f-one-fails", "to_fail", "2/2", "1/2", (0, 0, 1)),
        ("d-to-pass", "to_pass", "0/1", "1/1", (0, 1, 0)),
        ("c-paths", "none", "2/2", "2/2", (1, 1, 1)),
        ("b-rate", "none", "1/2", "2/2", (0, 0, 1)),
        ("g-open", "none", "1/1", "0/0", (1, 0, 0)),
    ]
    assert [task.task_id for task in everything.tasks][-1] == "a-same"
    assert (found.n_tasks, found.n_changed, found.n_to_fail, found.n_to_pass) == (7, 6, 2, 1)
    assert (found.n_other_paths, found.n_kept, found.n_gone, found.n_new) == (1, 4, 3, 2)
    assert (found.then.n_run, found.then.n_pass, found.then.n_fail) == (10, 8, 2)
    assert (found.now.n_run, found.now.n_pass, found.now.n_graded) == (10, 7, 9)
    assert (found.tools_new, found.tools_gone, found.left_out) == (("ask",), (), ())


def test_always_and_at_least_once_are_meant_of_graded_trials(cast: Cast) -> None:
    both(
        cast,
        [record("t1", 0), record("t1", 1, error="boom", verdicts=[]), record("t1", 2, verdicts=[])],
        [record("t1", 0), record("t1", 1, verdicts=FAIL), record("t1", 2)],
    )
    (task,) = compared(cast).tasks
    assert (task.flip, task.then.n_run, task.then.n_graded) == (Flip.TO_FAIL, 3, 1)


def test_a_task_that_sometimes_failed_does_not_flip(cast: Cast) -> None:
    both(
        cast,
        [record("t1", 0), record("t1", 1, verdicts=FAIL)],
        [record("t1", 0, verdicts=FAIL), record("t1", 1, verdicts=FAIL)],
    )
    (task,) = compared(cast).tasks
    assert task.flip is Flip.NONE


def test_steps_and_cost_are_medians_over_passing_trials(cast: Cast) -> None:
    def costs(n: int, cost: float, calls: int, **more: Any) -> dict[str, Any]:
        return record("t1", n, calls=(LOOK,) * calls, usage={"cost_usd": cost}, **more)

    both(
        cast,
        [costs(0, 0.01, 1), costs(1, 0.03, 3), costs(2, 9, 50, verdicts=FAIL)],
        [costs(0, 0.02, 1), costs(1, 0.04, 1), costs(2, 0.09, 4), record("t1", 3, calls=(LOOK,))],
    )
    found = compared(cast)
    (task,) = found.tasks

    assert (task.calls_then, task.calls_now) == (Decimal(2), Decimal(1))
    assert (task.cost_then, task.cost_now) == (Decimal("0.02"), Decimal("0.04"))
    assert (found.then, found.now) == (task.then, task.now)
    assert (found.calls, found.cost) == (Moves(1, 0, 0), Moves(0, 1, 0))
    assert [
        (p.fate, p.n_then, p.n_now, p.calls_then, p.calls_now, p.cost_then, p.cost_now)
        for p in task.paths
    ] == [
        (PathFate.GONE, 1, 0, 3, None, Decimal("0.03"), None),
        (PathFate.NEW, 0, 1, None, 4, None, Decimal("0.09")),
        (PathFate.KEPT, 1, 3, 1, 1, Decimal("0.01"), Decimal("0.03")),
    ]
    kept = task.paths[2]
    trials = {trial.uuid: (trial.release.name, trial.label) for trial in Trial.objects.all()}
    assert kept.trial_then
    assert kept.trial_now
    assert (trials[kept.trial_then], trials[kept.trial_now]) == (("1.0", "0"), ("2.0", "0"))
    assert task.failing_then is not None
    assert trials[task.failing_then] == ("1.0", "2")
    assert task.failing_now is None


def test_medians_of_tasks_are_counted_by_what_became_of_them_never_pooled(cast: Cast) -> None:
    def paid(task: str, n: int, cost: float | None, calls: int, **more: Any) -> dict[str, Any]:
        usage = {} if cost is None else {"usage": {"cost_usd": cost}}
        return record(task, n, calls=(LOOK,) * calls, **usage, **more)

    both(
        cast,
        [
            *(paid("cheap", n, 0.02, 2) for n in range(3)),
            paid("dear", 0, 0.9, 9),
            paid("same", 0, 0.05, 1),
            paid("unknown", 0, None, 1),
            paid("fails", 0, 0.01, 1),
        ],
        [
            paid("cheap", 0, 0.01, 1),
            *(paid("dear", n, 0.8, 8) for n in range(3)),
            paid("same", 0, 0.05, 1),
            paid("unknown", 0, 0.05, 2),
            paid("fails", 0, 0.01, 1, verdicts=FAIL),
        ],
    )
    found = compared(cast)
    assert (found.calls, found.cost) == (Moves(2, 1, 1), Moves(2, 0, 1))
    assert (found.calls.n_tasks, found.cost.n_tasks) == (4, 3)


def test_rates_without_a_flip_are_counted_as_less_and_more_often(cast: Cast) -> None:
    def trials(task: str, *passed: bool) -> list[dict[str, Any]]:
        return [record(task, n, verdicts=None if ok else FAIL) for n, ok in enumerate(passed)]

    both(
        cast,
        [
            *trials("flips", True, True),
            *trials("less", True, True, False),
            *trials("more", True, False),
            *trials("third", True, False, False),
            *trials("ungraded", True),
            record("open", 0, verdicts=[]),
        ],
        [
            *trials("flips", True, False),
            *trials("less", True, False),
            *trials("more", True, True),
            *trials("third", True, True, False, False, False, False),
            record("ungraded", 0, verdicts=[]),
            *trials("open", True),
        ],
    )
    found = compared(cast)
    assert (found.n_to_fail, found.n_less_often, found.n_more_often) == (1, 1, 1)
    assert found.n_no_longer_graded == 1


def test_the_level_decides_what_is_the_same_path(cast: Cast) -> None:
    both(
        cast,
        [record("t1", 0, calls=(("look", {"n": 1}),))],
        [record("t1", 0, calls=(("look", {"n": 2}),))],
    )
    assert compared(cast).n_kept == 1
    exact = compared(cast, key="exact")
    assert (exact.n_kept, exact.n_gone, exact.n_new) == (0, 1, 1)


def test_tools_of_failing_trials_count_too_and_names_are_ordered_by_use(cast: Cast) -> None:
    both(
        cast,
        [record("t1", 0, calls=(LOOK, ("old", {})))],
        [
            record("t1", 0, calls=(LOOK, ("b", {}))),
            record("t1", 1, calls=(("c", {}), ("a", {})), verdicts=FAIL),
            record("t1", 2, calls=(("c", {}),)),
        ],
    )
    found = compared(cast)
    assert (found.tools_new, found.tools_gone) == (("c", "a", "b"), ("old",))
    assert (found.n_tools_new, found.n_tools_gone) == (3, 1)


def another_version(task_id: str, number: int, *, releases: tuple[str, ...]) -> None:
    """Trials of some releases belong to another version of the task."""
    task = Task.objects.get(task_id=task_id)
    version = TaskVersion.objects.create(
        task=task,
        number=number,
        digest=f"00000000-0000-0000-0000-{number:012}",
        definition=blobs.pack({"input": f"version {number}"}),
    )
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        Trial.objects.filter(task=task, release__name__in=releases).update(task_version=version)
        cursor.execute("SET session_replication_role = origin")


def test_versions_are_never_pooled_and_what_is_left_out_is_listed(cast: Cast) -> None:
    both(
        cast,
        [record("a", 0), record("b", 0), record("c", 0), record("e", 0), record("f", 0)],
        [record("a", 0), record("b", 0, verdicts=FAIL), record("d", 0), record("f", 0)],
    )
    another_version("b", 2, releases=("2.0",))
    Task.objects.filter(task_id="f").update(split="tuning")
    found = compared(cast, everything=True)

    assert [task.task_id for task in found.tasks] == ["a"]
    assert [
        (out.task_id, out.reason, out.n_trials, out.versions_then, out.versions_now)
        for out in found.left_out
    ] == [
        ("b", "versions_differ", 2, (1,), (2,)),
        ("c", "only_then", 1, (1,), ()),
        ("e", "only_then", 1, (1,), ()),
        ("d", "only_now", 1, (), (1,)),
        ("f", "tuning", 2, (1,), (1,)),
    ]
    assert (found.n_left_out, found.n_to_fail) == (5, 0)


def test_the_newest_version_that_both_tried_is_compared(cast: Cast) -> None:
    both(cast, [record("a", 0)], [record("a", 0)])
    another_version("a", 2, releases=("1.0", "2.0"))
    ingest(cast.system, [record("a", 1, verdicts=FAIL)], release="1.0")
    (task,) = (found := compared(cast, everything=True)).tasks

    assert (task.version, task.flip, task.then.n_run) == (2, Flip.NONE, 1)
    assert [(out.reason, out.n_trials) for out in found.left_out] == [("other_versions", 1)]


def test_production_faults_and_earlier_attempts_do_not_count(cast: Cast) -> None:
    both(
        cast,
        [record("a", 0), record("a", 1, environment="production", verdicts=FAIL)],
        [
            record("a", 0, error="boom", verdicts=[]),
            record("a", 0, attempt=2),
            record("a", 1, fault={"kind": "timeout"}, verdicts=FAIL),
        ],
    )
    (task,) = compared(cast, everything=True).tasks
    assert (task.flip, task.then.n_run, task.now.n_run) == (Flip.NONE, 1, 1)


def test_nothing_in_common_is_nothing_compared(cast: Cast) -> None:
    both(cast, [record("a", 0)], [record("b", 0)])
    found = compared(cast)
    assert (found.n_tasks, found.tasks, found.then.n_run) == (0, (), 0)
    assert (found.calls, found.cost) == (Moves(0, 0, 0), Moves(0, 0, 0))
    assert [out.reason for out in found.left_out] == ["only_then", "only_now"]


def test_pages_show_each_task_once_in_both_directions(cast: Cast) -> None:
    both(
        cast,
        [record(f"t{n}", 0, verdicts=FAIL if n % 2 else None) for n in range(5)],
        [record(f"t{n}", 0, verdicts=None if n % 2 else FAIL) for n in range(5)],
    )
    order = ["t0", "t2", "t4", "t1", "t3"]
    seen: list[str] = []
    page, after = None, None
    while page is None or after is not None:
        page = compared(cast, n=2, after=after)
        seen += [task.task_id for task in page.tasks]
        assert (page.n_tasks, page.n_to_fail, page.n_to_pass) == (5, 3, 2)
        after = page.next_after
    back = compared(cast, n=2, before=page.previous_before)

    assert seen == order
    assert [task.task_id for task in back.tasks] == order[2:4]
    assert compared(cast, n=2, after=10**15).tasks == ()


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_a_comparison_takes_four_queries(n_tasks: int, cast: Cast) -> None:
    trials = [record(f"t{n}", 0) for n in range(n_tasks)]
    both(cast, trials, [record(f"t{n}", 0, verdicts=FAIL) for n in range(n_tasks)])
    now, then = (Release.objects.get(system=cast.system, name=name) for name in ("2.0", "1.0"))
    pair = ComparedReleases(
        cast.system.pk, now.pk, then.pk, cast.system.shown_rules_id, "exact_msg"
    )
    with CaptureQueriesContext(connection) as captured:
        assert len(release_comparison(pair).tasks) == n_tasks
    assert len(captured) == 4


def test_a_column_that_is_no_path_key_is_refused(cast: Cast) -> None:
    both(cast, [record("a", 0)], [record("a", 0)])
    with pytest.raises(ValueError, match="no column of path keys: id"):
        compared(cast, key="id")


def test_releases_without_a_trial_are_not_offered(cast: Cast) -> None:
    both(cast, [record("a", 0)], [record("a", 0)])
    release_named(cast.system, "3.0", by=None)
    ingest(cast.system, [record("a", 0)], release=release_named(cast.system, "", by=None))
    found = releases_with_trials(cast.system.pk)
    assert [(each.name, each.is_unversioned) for each in found] == [
        ("", True),
        ("2.0", False),
        ("1.0", False),
    ]
