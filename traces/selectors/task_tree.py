"""The trials of a task as a prefix tree of their steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

from traces.core.paths import PathLevel, call_texts
from traces.core.prefix_tree import BranchCounts, PrefixTree, TakenPath, TreeRow, prefix_tree
from traces.core.records import Disposition
from traces.core.rules import RuleSet, compiled
from traces.core.trajectory import ArgumentsForm
from traces.selectors.paths import key_name
from traces.selectors.task_detail import LABEL_ORDER, SLOTS, ChosenTrials
from traces.selectors.trajectories import (
    MESSAGE,
    StoredCall,
    StoredSteps,
    stored_calls,
    stored_steps,
    tool_names_of,
)

TREE_LEVELS = (PathLevel.SEQUENCE, PathLevel.EQUIVALENT, PathLevel.EXACT)
"""The levels at which a path is a sequence of steps."""

MOST_ROWS = 80


@dataclass(frozen=True, slots=True)
class TreeTrial:
    """The first trial of one disposition that took a path whole, and how many did."""

    uuid: UUID
    label: str
    attempt: int
    release_name: str
    value: Disposition
    n_trials: int
    messages: tuple[int, ...]  # for each step, the agent's message that made it, from 1

    def message(self, step: int) -> int | None:
        """The agent's message of a step by its index; None where the trial has fewer."""
        return self.messages[step] if 0 <= step < len(self.messages) else None


@dataclass(frozen=True, slots=True)
class TaskTree:
    """The tree with what its numbers stand for."""

    tree: PrefixTree
    ends: Mapping[int, tuple[TreeTrial, ...]]  # by path of the tree, of the rows that are shown
    tools: Mapping[int, str]  # by label; "" for an agent message
    openings: Mapping[int, StoredCall]  # by label: first steps of rows, where arguments count
    n_left_out: int  # trials of production or with an injected fault


_PATHS = """
WITH s AS ({slots}), ordered AS (
    SELECT s.*, r.name AS release_name, CASE WHEN counted THEN p.{key} END AS key,
           row_number() OVER (ORDER BY {order}) AS place
    FROM s JOIN traces_release r ON r.id = s.release_id
    JOIN traces_trajectorypaths p ON p.trajectory_id = s.trajectory_id AND p.rules_id = %(rules)s
)
SELECT key, count(*), CASE WHEN counted THEN value END AS came_to,
       (array_agg(trajectory_id ORDER BY place))[1], (array_agg(uuid ORDER BY place))[1],
       (array_agg(label ORDER BY place))[1], (array_agg(attempt ORDER BY place))[1],
       (array_agg(release_name ORDER BY place))[1]
FROM ordered GROUP BY key, came_to ORDER BY min(place)
"""


def task_tree(
    chosen: ChosenTrials,
    *,
    level: PathLevel,
    messages: bool,
    rules: RuleSet,
    task_id: str,
    most_rows: int = MOST_ROWS,
) -> TaskTree:
    """Where the trials part at one of `TREE_LEVELS`, in five queries at most.

    Last attempts stand for their slots; production traces and trials with an injected fault are
    left out and counted. A call without its arguments equals no other where arguments count.
    """
    if level not in TREE_LEVELS:
        raise ValueError(f"no level of steps: {level}")
    query = _PATHS.format(slots=SLOTS, key=key_name(level, messages=messages), order=LABEL_ORDER)
    with connection.cursor() as cursor:
        cursor.execute(query, chosen.values)
        rows = cursor.fetchall()
    by_key: dict[UUID, list[tuple[Any, ...]]] = {}
    for key, *row in rows:
        if key is not None:
            by_key.setdefault(key, []).append(tuple(row))
    groups = list(by_key.values())
    stored = stored_steps(row[2] for group in groups for row in group)
    labelled = _Labels(level, rules, task_id, [stored[group[0][2]] for group in groups])
    tree = prefix_tree(
        [
            TakenPath(
                labelled.of(stored[group[0][2]], messages=messages),
                _counts((row[1], row[0]) for row in group),
            )
            for group in groups
        ],
        most_rows=most_rows,
    )
    shown = [row for row in tree.rows if isinstance(row, TreeRow)]
    return TaskTree(
        tree=tree,
        ends={
            path: tuple(_trial(row, stored, messages=messages) for row in groups[path])
            for row in shown
            for path in row.ends
        },
        tools=labelled.tools,
        openings=labelled.openings(row.labels[0] for row in shown if row.labels),
        n_left_out=sum(n for key, n, *_ in rows if key is None),
    )


def _counts(values: Iterable[tuple[str, int]]) -> BranchCounts:
    n = dict(values)
    return BranchCounts(
        n.get(Disposition.PASS, 0),
        n.get(Disposition.FAIL, 0),
        n.get(Disposition.UNRESOLVED, 0),
        n.get(Disposition.HARNESS_ERROR, 0),
    )


def _trial(row: tuple[Any, ...], stored: Mapping[int, StoredSteps], *, messages: bool) -> TreeTrial:
    n_trials, value, trajectory, identity, label, attempt, release_name = row
    steps = stored[trajectory] if messages else stored[trajectory].without_messages()
    return TreeTrial(
        identity,
        label,
        attempt,
        release_name,
        Disposition(value),
        n_trials,
        tuple(group + 1 for group in steps.groups),
    )


class _Labels:
    """Numbers for steps, equal where the steps are equal at the level."""

    def __init__(
        self, level: PathLevel, rules: RuleSet, task_id: str, every: list[StoredSteps]
    ) -> None:
        self._level = level
        names = tool_names_of(call for steps in every for call in steps.calls)
        self._calls: dict[int, StoredCall] = {}
        self._n_unlike = 0
        self.tools: dict[int, str] = {MESSAGE: "", **names}
        self._labels: dict[int, int] = {MESSAGE: MESSAGE}
        if level is PathLevel.SEQUENCE:
            first: dict[str, int] = {}
            self._labels |= {call: first.setdefault(name, call) for call, name in names.items()}
            return
        self._labels |= {call: call for call in names}
        ruled = compiled(rules, task_id).roots if level is PathLevel.EQUIVALENT else {}
        unlike = {call for steps in every if not steps.is_comparable for call in steps.calls}
        self._calls = stored_calls(
            call for call, name in names.items() if name in ruled or call in unlike
        )
        texts, alike = call_texts(rules, task_id), dict[tuple[str, str], int]()
        for call, stored in self._calls.items():
            if stored.name in ruled:
                made = stored.made("u", step=0)
                text = texts.normal_text(made, texts.exact_text(made))
                self._labels[call] = alike.setdefault((stored.name, text), call)

    def of(self, steps: StoredSteps, *, messages: bool) -> tuple[int, ...]:
        """The labels of a trajectory; a call that equals no other gets one below 0."""
        calls = steps.calls if messages else tuple(c for c in steps.calls if c != MESSAGE)
        if steps.is_comparable or self._level is PathLevel.SEQUENCE:
            return tuple(map(self._labels.__getitem__, calls))
        return tuple(
            self._unlike(call)
            if call != MESSAGE and self._calls[call].form is ArgumentsForm.ABSENT
            else self._labels[call]
            for call in calls
        )

    def _unlike(self, call: int) -> int:
        self._n_unlike += 1
        self.tools[-self._n_unlike] = self.tools[call]
        return -self._n_unlike

    def openings(self, labels: Iterable[int]) -> dict[int, StoredCall]:
        """The calls of some labels, where the level tells arguments apart."""
        if self._level is PathLevel.SEQUENCE:
            return {}
        return stored_calls(label for label in labels if label > MESSAGE)
