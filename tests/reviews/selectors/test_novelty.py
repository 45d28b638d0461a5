from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from reviews.core.accepted_paths import GroupStanding, Taking, standing_of_group
from reviews.selectors.accepted import group_standings
from reviews.selectors.novelty import newest_release, novel_paths, release_novelty
from reviews.services.accepted_paths import withdraw_path
from tests.support.accepted import accept, show_rules, task_of
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from traces.core.paths import PathLevel
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.models import Release, Task, TrajectoryPaths
from traces.selectors.task_detail import ChosenTrials

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
SUMS = RuleSet(rules=(ArgumentRule("calculate", "expression", Arithmetic(), "Same sum.", "e"),))


def calculates(expression: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (("calculate", {"expression": expression}),)


def novelty(cast: Cast, release: str, key: str = "sequence") -> dict[str, dict[str, Any]]:
    """What a release does, by task; empty lists are left out."""
    pk = Release.objects.get(system=cast.system, name=release).pk
    found = release_novelty(cast.system, pk, path_key=key)
    labels = novel_paths(cast.system, pk, path_key=key)
    rows = {}
    for task in found.tasks:
        lists: dict[str, list[Any]] = {
            **{taking.value: list(task.numbers(taking)) for taking in Taking},
            "new": [list(group) for group in labels[task.pk].new] if task.pk in labels else [],
            "seen": [list(g) for g in labels[task.pk].seen_before] if task.pk in labels else [],
        }
        assert (len(lists["new"]), len(lists["seen"])) == (task.n_new, task.n_seen)
        rows[task.task_id] = {name: value for name, value in lists.items() if value}
    return rows


def test_taken_lost_and_new_paths_of_the_next_release(cast: Cast) -> None:
    ask: Call = ("look_up", {})
    act: Call = ("refund", {})
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(ask, act)),
            record("t1", 1, calls=(act,)),
            record("t2", 0, calls=(ask,)),
            record("t3", 0, calls=(ask,)),
            record("t4", 0, calls=(ask,)),
        ],
    )
    accept(cast, "0")
    accept(cast, "1")
    accept(cast, task_id="t3")
    accept(cast, task_id="t4")
    ingest(
        cast.system,
        [
            record("t1", 0, calls=(ask, act)),
            record("t1", 1, calls=(act, ask)),
            record("t1", 10, calls=(act, ask)),
            record("t1", 9, calls=(act, ask)),
            record("t2", 0, calls=(ask,)),
            record("t2", 1, calls=(act, act)),
            record("t3", 0, calls=(ask,), verdicts=FAIL),
            record("t3", 1, calls=(act,), environment="production"),
            record("t4", 0, calls=(ask,), error="lost", verdicts=[]),
            record("t5", 0, calls=(ask,)),
        ],
        release="2.0",
    )

    assert novelty(cast, "1.0") == {
        "t1": {"taken": [1, 2]},
        "t2": {"new": [["0"]]},
        "t3": {"taken": [1]},
        "t4": {"taken": [1]},
    }
    assert novelty(cast, "2.0") == {
        "t1": {"taken": [1], "no longer taken": [2], "new": [["1", "9", "10"]]},
        "t2": {"new": [["1"]], "seen": [["0"]]},
        "t3": {"no longer taken": [1]},
        "t4": {"cannot tell": [1]},
        "t5": {"new": [["0"]]},
    }


def test_a_path_accepted_later_was_not_yet_taken_by_an_earlier_release(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    ingest(cast.system, [record("t1", 0, calls=(("other", {}),))], release="2.0")
    path = accept(cast, release="2.0")

    assert novelty(cast, "1.0") == {"t1": {"not taken yet": [1], "new": [["0"]]}}
    assert novelty(cast, "2.0") == {"t1": {"taken": [1]}}
    withdraw_path(path, reason="It lies.", by=cast.engineer, now=timezone.now())
    assert novelty(cast, "2.0") == {"t1": {"new": [["0"]]}}


def test_a_change_of_rules_moves_what_is_taken_lost_and_new(cast: Cast) -> None:
    """Accept on one release, load the next ones: right before and after a rule change."""
    ingest(cast.system, [record("t1", 0, calls=calculates("1200"))])
    accept(cast, level=PathLevel.EQUIVALENT)
    ingest(cast.system, [record("t1", 0, calls=calculates("2 * 600"))], release="2.0")
    ingest(cast.system, [record("t1", 0, calls=calculates("1201"))], release="3.0")
    accept(cast, release="2.0", level=PathLevel.EQUIVALENT)
    before = [novelty(cast, name, "equivalent") for name in ("1.0", "2.0", "3.0")]
    show_rules(cast.system, SUMS)
    after = [novelty(cast, name, "equivalent") for name in ("1.0", "2.0", "3.0")]
    (task,) = release_novelty(
        cast.system, Release.objects.get(name="2.0").pk, path_key="equivalent"
    ).tasks

    assert before == [
        {"t1": {"taken": [1], "not taken yet": [2]}},
        {"t1": {"taken": [2], "no longer taken": [1]}},
        {"t1": {"no longer taken": [1, 2], "new": [["0"]]}},
    ]
    assert after == [
        {"t1": {"taken": [1, 2]}},
        {"t1": {"taken": [1, 2]}},
        {"t1": {"no longer taken": [1, 2], "new": [["0"]]}},
    ]
    assert task.merged(Taking.TAKEN) == ((1, 2),)


def test_a_path_that_is_accepted_in_part_is_not_new(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    ingest(
        cast.system,
        [record("t1", n, calls=calculates(str(n))) for n in range(3)],
        release="2.0",
    )
    accept(cast, "1", release="2.0", level=PathLevel.EXACT)

    assert novelty(cast, "2.0", "sequence") == {"t1": {"taken": [1], "seen": [["0", "2"]]}}
    assert novelty(cast, "2.0", "exact") == {"t1": {"taken": [1], "new": [["0"], ["2"]]}}


def test_the_first_release_has_none_before_it(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, environment="production")], release="0.9")
    ingest(cast.system, [record("t1", 0)])
    ingest(cast.system, [record("t1", 0)], release="2.0")
    pks = [Release.objects.get(name=name).pk for name in ("1.0", "2.0")]
    found = [release_novelty(cast.system, pk, path_key="exact") for pk in pks]

    assert [each.has_earlier for each in found] == [False, True]
    assert newest_release(cast.system) == Release.objects.get(name="2.0")
    assert newest_release(cast.other_system) is None
    with pytest.raises(ValueError, match="no column of path keys"):
        release_novelty(cast.system, pks[0], path_key="id")


@pytest.mark.parametrize("key", ["tool_set", "sequence", "equivalent", "exact_msg"])
def test_sql_and_core_agree_on_what_is_new(cast: Cast, key: str) -> None:
    paths = ["1", "2", "1 + 1", "3"]
    for number, shown in enumerate((paths[:2], paths[1:3], paths[2:], paths)):
        ingest(
            cast.system,
            [
                record("t1", n, calls=(*calculates(text), *([("x", {})] * (n % 2))))
                for n, text in enumerate(shown)
            ],
            release=f"{number}.0",
        )
    accept(cast, "0", release="0.0", level=PathLevel.EXACT)
    accept(cast, "1", release="3.0", level=PathLevel.EQUIVALENT)
    show_rules(cast.system, SUMS)
    task: Task = task_of(cast.system)
    keys = tuple(TrajectoryPaths.objects.values_list(key, flat=True))

    for release in Release.objects.filter(system=cast.system):
        (row,) = release_novelty(cast.system, release.pk, path_key=key).tasks
        chosen = ChosenTrials(task.pk, cast.system.shown_rules_id, (release.pk,))
        groups = group_standings(chosen, path_key=key, keys=keys).groups.values()
        standings = [
            standing_of_group(
                n_trials=group.n_trials,
                n_covered=group.n_covered,
                is_first_seen=group.first_release == release.pk,
            )
            for group in groups
        ]
        n_new = standings.count(GroupStanding.NEW)
        n_accepted = standings.count(GroupStanding.ACCEPTED)
        assert (row.n_new, row.n_seen) == (n_new, len(standings) - n_new - n_accepted)
