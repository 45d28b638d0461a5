"""What a change of rules would do to the stored paths of a system.

Read task by task, a batch at a time, so that the work of one batch is all that is held. Keys that a
change cannot touch are taken as they are stored; those of trajectories that use a tool of its
concern are worked out as the recomputation will do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from traces.core.rule_effects import CHANGING_LEVELS, RulesEffect, TaskEffect
from traces.core.rule_reach import (
    LevelKeys,
    ReachSums,
    TakenTrajectory,
    TaskReach,
    concern_of,
    task_effect,
    task_reach,
)
from traces.core.rules import RuleSet
from traces.core.trajectory import TrajectoryCall
from traces.models import System
from traces.selectors.paths import key_name
from traces.selectors.rules import rules_in, shown_rules
from traces.selectors.stored_keys import StoredKeys, WantedKeys
from traces.selectors.trajectories import (
    MESSAGE,
    StoredCall,
    StoredSteps,
    stored_calls,
    stored_steps,
)

BATCH = 2_000  # passing trials of the tasks that are read at once, and trajectories worked out
_WORDED_TASKS = 10  # whose examples are put into words at once

Progress = Callable[[int, int], None]
"""Told the passing trials that are done with, and all of them."""


class PassedTask(NamedTuple):
    """A task that some trial passed."""

    pk: int
    task_id: str
    uuid: UUID
    n_passed: int


# Slots as `evalsite.projections` counts them: last attempts, no production traces, no faults.
PASSED = """
FROM traces_trial t
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands AND d.value = 'pass'
WHERE t.environment = 'test' AND NOT t.has_fault
"""

_TASKS = f"""
SELECT k.id, k.task_id, k.uuid, p.n FROM (
    SELECT t.task_id, count(*) AS n {PASSED} AND t.system_id = %s GROUP BY t.task_id
) p JOIN traces_task k ON k.id = p.task_id ORDER BY k.id
"""  # noqa: S608 - made of constants

_KEYS = ", ".join(
    f"uuid_send(p.{key_name(level, messages=messages)})" for level, messages in CHANGING_LEVELS
)
_TAKEN = f"""
WITH taken AS (
    SELECT t.task_id, t.trajectory_id, count(*) AS n {PASSED} AND t.task_id = ANY(%(tasks)s)
    GROUP BY t.task_id, t.trajectory_id
), concerned AS (
    SELECT DISTINCT a.trajectory_id FROM taken a
    JOIN traces_trajectory j ON j.id = a.trajectory_id
    CROSS JOIN unnest(j.steps) AS s(call) JOIN traces_distinctcall c ON c.id = s.call
    WHERE c.tool_id = ANY(%(tools)s) OR (a.task_id, c.tool_id) IN (
        SELECT * FROM unnest(%(own_tasks)s::bigint[], %(own_tools)s::bigint[])
    )
)
SELECT a.task_id, a.trajectory_id, a.n, c.trajectory_id IS NOT NULL, {_KEYS}
FROM taken a
JOIN traces_trajectorypaths p ON p.trajectory_id = a.trajectory_id AND p.rules_id = %(rules)s
LEFT JOIN concerned c ON c.trajectory_id = a.trajectory_id
ORDER BY a.task_id, a.trajectory_id
"""  # noqa: S608 - made of constants


def passed_tasks(system: System) -> list[PassedTask]:
    """The tasks that some trial of the system passed, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, [system.pk])
        return [PassedTask(*row) for row in cursor.fetchall()]


def in_batches(tasks: Iterable[PassedTask]) -> Iterator[list[PassedTask]]:
    """Tasks taken together until they have BATCH passing trials."""
    batch: list[PassedTask] = []
    n_passed = 0
    for task in tasks:
        batch.append(task)
        n_passed += task.n_passed
        if n_passed >= BATCH:
            yield batch
            batch, n_passed = [], 0
    if batch:
        yield batch


def rules_effect(
    system: System, base: RuleSet, changed: RuleSet, *, progress: Progress
) -> RulesEffect:
    """What pages will show of the passing paths under `changed`, beside what `base` gives.

    `base` need not be in force yet. Raises RulesMovedError when pages begin to show another
    version meanwhile.
    """
    reading = _Reading(system, base, changed)
    tasks = passed_tasks(system)
    n_all = sum(task.n_passed for task in tasks)
    sums, n_done = ReachSums(), 0
    for batch in in_batches(tasks):
        for reach in reading.reaches(batch):
            sums.add(reach)
        n_done += sum(task.n_passed for task in batch)
        progress(n_done, n_all)
    return sums.effect(_in_words(sums.most_affected(), base, changed))


def _in_words(
    reaches: Sequence[TaskReach], base: RuleSet, changed: RuleSet
) -> Iterable[TaskEffect]:
    for start in range(0, len(reaches), _WORDED_TASKS):
        few = reaches[start : start + _WORDED_TASKS]
        steps = stored_steps(
            pk for one in few for moved in one.examples for pk, *_ in moved.members
        )
        calls = stored_calls(call for one in steps.values() for call in one.calls)
        made = {pk: _made(one, calls) for pk, one in steps.items()}
        for reach in few:
            yield task_effect(reach, made, base, changed)


def _made(steps: StoredSteps, calls: dict[int, StoredCall]) -> tuple[TrajectoryCall, ...]:
    return tuple(
        calls[call].made(letter, step=0)
        for call, letter in zip(steps.calls, steps.outcomes, strict=True)
        if call != MESSAGE
    )


class _Row(NamedTuple):
    task: int
    trajectory: int
    n_trials: int
    is_concerned: bool
    keys: LevelKeys  # as stored


class RulesMovedError(Exception):
    """Pages began to show another version of the rules; what was read must be read anew."""


class _Reading:
    """Follows paths from the shown rules to a base, and on to what the base is changed to."""

    def __init__(self, system: System, base: RuleSet, changed: RuleSet) -> None:
        version = shown_rules(system)
        shown = rules_in(version)
        self._shown_by = System.objects.filter(pk=system.pk, shown_rules=version)
        self._shown_pk = version.pk
        self._concern = concern_of(shown, base) | concern_of(base, changed)
        self._tools = {tool.name: tool.pk for tool in system.tools.all()}
        self._before = None if base == shown else StoredKeys(base)
        self._after = StoredKeys(changed)

    def reaches(self, batch: Sequence[PassedTask]) -> Iterator[TaskReach]:
        """What the change does to each task of a batch."""
        tasks = {task.pk: task for task in batch}
        rows = self._rows(batch)
        concerned = [(row.trajectory, tasks[row.task].task_id) for row in rows if row.is_concerned]
        before = _level_keys(self._before, concerned) if self._before else {}
        after = _level_keys(self._after, concerned)
        for pk, taken in groupby(rows, key=attrgetter("task")):
            yield task_reach(
                tasks[pk].task_id,
                tasks[pk].uuid,
                [
                    TakenTrajectory(
                        row.trajectory,
                        row.n_trials,
                        before.get(row.trajectory, row.keys),
                        after.get(row.trajectory, row.keys),
                    )
                    for row in taken
                ],
            )

    def _rows(self, batch: Sequence[PassedTask]) -> list[_Row]:
        tools, pks = self._tools, {task.task_id: task.pk for task in batch}
        own = [
            (pks[task_id], tools[tool])
            for task_id, tool in self._concern.tools_of_tasks
            if task_id in pks and tool in tools
        ]
        with connection.cursor() as cursor:
            cursor.execute(
                _TAKEN,
                {
                    "tasks": [task.pk for task in batch],
                    "tools": [tools[tool] for tool in self._concern.tools if tool in tools],
                    "own_tasks": [task for task, _ in own],
                    "own_tools": [tool for _, tool in own],
                    "rules": self._shown_pk,
                },
            )
            rows = [
                _Row(task, trajectory, n_trials, is_concerned, tuple(keys))
                for task, trajectory, n_trials, is_concerned, *keys in cursor.fetchall()
            ]
        # Keys of a version that is no longer shown may be gone; until now they were whole.
        if not self._shown_by.exists():
            raise RulesMovedError
        return rows


def _level_keys(
    stored: StoredKeys, trajectories: Sequence[tuple[int, str]]
) -> dict[int, LevelKeys]:
    """The keys of trajectories, each given with the id of its task, a batch at a time."""
    found: dict[int, LevelKeys] = {}
    for start in range(0, len(trajectories), BATCH):
        # A trajectory that is not comparable belongs to one trial, so that its id tells it apart.
        few = {pk: WantedKeys(task, b"%d" % pk) for pk, task in trajectories[start : start + BATCH]}
        for pk, keys in stored.keys(few).items():
            found[pk] = tuple(
                keys.key(level, messages=messages) for level, messages in CHANGING_LEVELS
            )
    return found
