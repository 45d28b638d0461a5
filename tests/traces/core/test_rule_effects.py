from __future__ import annotations

import json
from uuid import UUID

import pytest

from traces.core.paths import PathLevel
from traces.core.rule_effects import (
    CHANGING_LEVELS,
    LevelCount,
    Regrouping,
    RulesEffect,
    TaskEffect,
    effect_document,
    parse_effect,
)

LEVELS = tuple(
    LevelCount(level, messages, 7, n_after)
    for (level, messages), n_after in zip(CHANGING_LEVELS, (7, 7, 7, 4, 5), strict=True)
)
EFFECT = RulesEffect(
    levels=LEVELS,
    n_trials=10,
    n_tasks=3,
    n_tasks_changed=1,
    tasks=(
        TaskEffect(
            task_id="12",
            uuid=UUID(int=12),
            levels=LEVELS,
            n_regroupings=1,
            examples=(
                Regrouping(
                    level=PathLevel.EQUIVALENT,
                    n_before=4,
                    n_after=1,
                    before=(3, 1, 1, 1),
                    after=(6,),
                    n_trials=6,
                    sentences=("calculate.expression: 4 spellings, all 1200",),
                ),
            ),
        ),
    ),
)


def test_parse_effect_reads_back_what_was_written() -> None:
    assert parse_effect(json.loads(json.dumps(effect_document(EFFECT)))) == EFFECT


def test_parse_effect_of_another_version_is_none() -> None:
    assert parse_effect({**effect_document(EFFECT), "version": 0}) is None


def test_count_of_a_level() -> None:
    assert EFFECT.count(PathLevel.EQUIVALENT, messages=True) == LevelCount(
        PathLevel.EQUIVALENT, messages=True, n_before=7, n_after=5
    )


@pytest.mark.parametrize(
    ("n_before", "n_after", "merge", "split"),
    [(4, 1, True, False), (1, 2, False, True), (3, 2, False, False)],
)
def test_regrouping_is_a_merge_or_a_split(
    n_before: int, n_after: int, *, merge: bool, split: bool
) -> None:
    regrouping = Regrouping(PathLevel.EFFECTS, n_before, n_after, (), (), 5, ())

    assert (regrouping.is_merge, regrouping.is_split) == (merge, split)
