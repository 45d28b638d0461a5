"""What a change of rules does to the passing paths: which merge, which split, and why.

Counts are those of pages once the change is in force: distinct passing paths of a task, all its
releases and versions together. The three levels named here are the only ones that rules or tool
kinds can change. Examples are chosen without agent messages; both columns are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from traces.core.paths import PathLevel
from traces.core.values import Json, JsonObject

EFFECTS_VERSION = 1
"""Changes when a stored effect can no longer be read, or would come out otherwise."""

MOST_TASKS = 200
"""Tasks that an effect names; the totals count all of them."""

MOST_EXAMPLES = 5
"""Regroupings that an effect shows of each task."""

MOST_SENTENCES = 5
"""Sentences of a regrouping."""

MOST_LISTED_PATHS = 12
"""Paths of a regrouping whose trials are listed."""

CHANGING_LEVELS = (
    (PathLevel.EFFECTS, False),
    (PathLevel.READS_ANY_ORDER, False),
    (PathLevel.READS_ANY_ORDER, True),
    (PathLevel.EQUIVALENT, False),
    (PathLevel.EQUIVALENT, True),
)
"""Level, and whether agent messages count as steps: in the order of an effect's counts."""


_Stored: TypeAlias = dict[str, Any]  # a document that this module wrote


@dataclass(frozen=True, slots=True)
class LevelCount:
    """Distinct passing paths at one level, as things stand and under the change."""

    level: PathLevel
    messages: bool  # agent messages without a call count as steps; the same for both at effects
    n_before: int
    n_after: int


@dataclass(frozen=True, slots=True)
class Regrouping:
    """Paths of one task that become other paths, at one level without agent messages.

    Several that become one are a merge, one that becomes several a split.
    """

    level: PathLevel
    n_before: int  # paths
    n_after: int
    before: tuple[int, ...]  # trials of each path, most first; the first MOST_LISTED_PATHS
    after: tuple[int, ...]
    n_trials: int
    sentences: tuple[str, ...]  # "calculate.expression: 4 spellings, all 1200"

    @property
    def is_merge(self) -> bool:
        """Whether several paths become one."""
        return self.n_after == 1

    @property
    def is_split(self) -> bool:
        """Whether one path becomes several."""
        return self.n_before == 1


@dataclass(frozen=True, slots=True)
class TaskEffect:
    """What a change does to the paths of one task."""

    task_id: str
    uuid: UUID  # of the task's address
    levels: tuple[LevelCount, ...]  # as CHANGING_LEVELS
    n_regroupings: int  # without agent messages
    examples: tuple[Regrouping, ...]  # most trials first


@dataclass(frozen=True, slots=True)
class RulesEffect:
    """What a change does to all passing paths of a system."""

    levels: tuple[LevelCount, ...]  # as CHANGING_LEVELS, all tasks together
    n_trials: int  # that passed
    n_tasks: int  # with a passing trial
    n_tasks_changed: int  # in which paths merge or split at any of the levels
    tasks: tuple[TaskEffect, ...]  # most affected first, MOST_TASKS of them

    def count(self, level: PathLevel, *, messages: bool) -> LevelCount:
        """The paths of all tasks at one of CHANGING_LEVELS; effects has no messages."""
        return self.levels[CHANGING_LEVELS.index((level, messages))]


def effect_document(effect: RulesEffect) -> JsonObject:
    """The document that `parse_effect` reads back as the same effect."""
    return {
        "version": EFFECTS_VERSION,
        "levels": _counts_data(effect.levels),
        "n_trials": effect.n_trials,
        "n_tasks": effect.n_tasks,
        "n_tasks_changed": effect.n_tasks_changed,
        "tasks": [
            {
                "task_id": task.task_id,
                "uuid": str(task.uuid),
                "levels": _counts_data(task.levels),
                "n_regroupings": task.n_regroupings,
                "examples": [_regrouping_data(example) for example in task.examples],
            }
            for task in effect.tasks
        ],
    }


def parse_effect(document: JsonObject) -> RulesEffect | None:
    """The effect of a stored document; None where another version of the program wrote it."""
    if document.get("version") != EFFECTS_VERSION:
        return None
    data: _Stored = document
    return RulesEffect(
        levels=_counts_of(data["levels"]),
        n_trials=data["n_trials"],
        n_tasks=data["n_tasks"],
        n_tasks_changed=data["n_tasks_changed"],
        tasks=tuple(
            TaskEffect(
                task_id=task["task_id"],
                uuid=UUID(task["uuid"]),
                levels=_counts_of(task["levels"]),
                n_regroupings=task["n_regroupings"],
                examples=tuple(_regrouping_of(example) for example in task["examples"]),
            )
            for task in data["tasks"]
        ),
    )


def _counts_data(counts: tuple[LevelCount, ...]) -> Json:
    return [[count.n_before, count.n_after] for count in counts]


def _counts_of(data: list[list[int]]) -> tuple[LevelCount, ...]:
    return tuple(
        LevelCount(level, messages, n_before, n_after)
        for (level, messages), (n_before, n_after) in zip(CHANGING_LEVELS, data, strict=True)
    )


def _regrouping_data(regrouping: Regrouping) -> JsonObject:
    return {
        "level": str(regrouping.level),
        "n_before": regrouping.n_before,
        "n_after": regrouping.n_after,
        "before": list(regrouping.before),
        "after": list(regrouping.after),
        "n_trials": regrouping.n_trials,
        "sentences": list(regrouping.sentences),
    }


def _regrouping_of(data: _Stored) -> Regrouping:
    return Regrouping(
        level=PathLevel(data["level"]),
        n_before=data["n_before"],
        n_after=data["n_after"],
        before=tuple(data["before"]),
        after=tuple(data["after"]),
        n_trials=data["n_trials"],
        sentences=tuple(data["sentences"]),
    )
