"""The counts and groups of the published known answers come out of the path keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from tests.traces.core.known_files import (
    DATA,
    KnownTrial,
    airline_pool_trials,
    load,
    tau1_trials,
    telecom_trials,
)
from traces.core.canonical import natural_key
from traces.core.paths import PathLevel, path_keys
from traces.core.rules import RuleSet

LEVELS = {
    "tool_set": (PathLevel.TOOL_SET, False),
    "name_sequence": (PathLevel.SEQUENCE, False),
    "exact": (PathLevel.EXACT, False),
    "exact_msg": (PathLevel.EXACT, True),
}

FILES: list[tuple[str, Callable[[], Iterator[KnownTrial]]]] = [
    ("expected_tau1_gpt-4o-airline_tasks00-24.json", tau1_trials),
    ("expected_tau2_telecom_no-user_4trials.json", telecom_trials),
    ("expected_tau2_airline_pool_5agents.json", airline_pool_trials),
]


def groups_of(trials: list[KnownTrial], level: PathLevel, messages: bool) -> list[list[str]]:
    groups: dict[bytes, list[str]] = defaultdict(list)
    for trial in sorted(trials, key=lambda trial: natural_key(trial.label)):
        keys = path_keys(trial.trajectory, RuleSet())
        groups[keys.key(level, messages=messages)].append(trial.label)
    return sorted(groups.values(), key=lambda group: (-len(group), natural_key(group[0])))


@pytest.mark.parametrize(("answers", "trials"), FILES, ids=[name for name, _ in FILES])
def test_groups_of_passing_trials_match_the_known_answers(
    answers: str, trials: Callable[[], Iterator[KnownTrial]]
) -> None:
    expected = load(DATA / answers)
    by_task: dict[str, list[KnownTrial]] = defaultdict(list)
    for trial in trials():
        by_task[trial.task].append(trial)

    found = {
        task: {
            name: groups_of([one for one in of_task if one.passed], level, messages)
            for name, (level, messages) in LEVELS.items()
        }
        for task, of_task in by_task.items()
    }

    assert found == {task: facts["groups"] for task, facts in expected["tasks"].items()}
    assert sum(len(of_task) for of_task in by_task.values()) == expected["n_trials"]
    assert {
        task: {trial.label: path_keys(trial.trajectory, RuleSet()).n_tool_calls for trial in ones}
        for task, ones in by_task.items()
    } == {task: facts["tool_calls"] for task, facts in expected["tasks"].items()}
