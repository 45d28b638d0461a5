from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.strategies import rule_sets, trajectories
from traces.core import rule_reach
from traces.core.paths import PathKeys, PathLevel, path_keys
from traces.core.rule_effects import CHANGING_LEVELS, LevelCount, Regrouping, TaskEffect
from traces.core.rule_reach import (
    Concern,
    LevelKeys,
    MovedPaths,
    ReachSums,
    TakenTrajectory,
    TaskReach,
    concern_of,
    task_effect,
    task_reach,
)
from traces.core.rules import (
    ArgumentRule,
    Arithmetic,
    Ignore,
    PlainText,
    RuleSet,
    RuleTerms,
)
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    ToolKind,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.values import Json

ADDRESS = UUID(int=1)
SPELLINGS = ("1200", "1000 + 200", "600 * 2", "1500 - 300")
NONE = RuleSet()


def rule(
    terms: RuleTerms,
    *,
    tool: str = "calculate",
    argument: str = "expression",
    task: str | None = None,
) -> ArgumentRule:
    return ArgumentRule(tool, argument, terms, "reason", "ada", task)


SUMS = RuleSet((rule(Arithmetic()),))


def call(
    tool: str, arguments: Json, outcome: CallOutcome = CallOutcome.COMMITTED
) -> TrajectoryCall:
    return TrajectoryCall(tool, arguments, ArgumentsForm.JSON, outcome, 1)


def calculation(expression: Json) -> TrajectoryCall:
    return call("calculate", {"expression": expression})


def level_keys(keys: PathKeys) -> LevelKeys:
    return tuple(keys.key(level, messages=messages) for level, messages in CHANGING_LEVELS)


def taken_by(
    paths: Sequence[Trajectory],
    before: RuleSet,
    after: RuleSet,
    *,
    task_id: str = "t",
    n_trials: Sequence[int] = (),
) -> list[TakenTrajectory]:
    return [
        TakenTrajectory(
            pk,
            n_trials[pk] if n_trials else 1,
            level_keys(path_keys(path, before, task_id, own=bytes([pk]))),
            level_keys(path_keys(path, after, task_id, own=bytes([pk]))),
        )
        for pk, path in enumerate(paths)
    ]


def effect_of(
    paths: Sequence[Trajectory], before: RuleSet, after: RuleSet, **more: Any
) -> TaskEffect:
    reach = task_reach("t", ADDRESS, taken_by(paths, before, after, **more))
    steps = {
        pk: [step for step in path if isinstance(step, TrajectoryCall)]
        for pk, path in enumerate(paths)
    }
    return task_effect(reach, steps, before, after)


@pytest.mark.parametrize(
    ("before", "after", "tools", "of_tasks"),
    [
        pytest.param(SUMS, SUMS, set(), (), id="the same"),
        pytest.param(NONE, SUMS, {"calculate"}, (), id="a new rule"),
        pytest.param(SUMS, NONE, {"calculate"}, (), id="no longer a rule"),
        pytest.param(SUMS, RuleSet((rule(PlainText()),)), {"calculate"}, (), id="other terms"),
        pytest.param(
            SUMS,
            RuleSet((ArgumentRule("calculate", "/expression", Arithmetic(), "other", "bob"),)),
            set(),
            (),
            id="other words only",
        ),
        pytest.param(
            SUMS,
            RuleSet((*SUMS.rules, rule(Ignore(), task="7"))),
            set(),
            (("7", "calculate"),),
            id="a rule of a task",
        ),
        pytest.param(
            RuleSet((), (("get", ToolKind.READ), ("put", ToolKind.WRITE), ("end", ToolKind.READ))),
            RuleSet((), (("get", ToolKind.READ), ("end", ToolKind.HANDOFF))),
            {"end"},
            (),
            id="kinds; unset counts as write",
        ),
    ],
)
def test_concern_of_a_change(
    before: RuleSet, after: RuleSet, tools: set[str], of_tasks: tuple[tuple[str, str], ...]
) -> None:
    assert concern_of(before, after) == Concern(frozenset(tools), of_tasks)


def test_concerns_of_two_changes_together() -> None:
    left = Concern(frozenset({"a"}), (("7", "x"), ("8", "x")))
    right = Concern(frozenset({"b"}), (("1", "x"), ("7", "x")))

    assert left | right == Concern(frozenset({"a", "b"}), (("1", "x"), ("7", "x"), ("8", "x")))


@given(trajectories(absent=True), rule_sets, rule_sets, st.sampled_from(["7", "8"]))
def test_keys_of_a_trajectory_outside_of_the_concern_stay(
    path: Trajectory, before: RuleSet, after: RuleSet, task_id: str
) -> None:
    concern = concern_of(before, after)
    tools = concern.tools | {tool for task, tool in concern.tools_of_tasks if task == task_id}

    if not any(isinstance(step, TrajectoryCall) and step.name in tools for step in path):
        assert path_keys(path, before, task_id) == path_keys(path, after, task_id)


def test_the_article_s_case() -> None:
    apart = [
        (call("a", {}), call("b", {})),
        (call("a", {}),),
        (call("b", {}),),
    ]
    sums = [(calculation(text),) for text in SPELLINGS]

    effect = effect_of([*apart, *sums], NONE, SUMS, n_trials=(2, 1, 1, 3, 1, 1, 1))

    # Nothing says that the calculator reads, so that its calls are effects too.
    assert effect == TaskEffect(
        task_id="t",
        uuid=ADDRESS,
        levels=tuple(
            LevelCount(level, messages, n_before, n_after)
            for (level, messages), (n_before, n_after) in zip(
                CHANGING_LEVELS, [(7, 4), (4, 4), (4, 4), (7, 4), (7, 4)], strict=True
            )
        ),
        n_regroupings=2,
        examples=tuple(
            Regrouping(
                level=level,
                n_before=4,
                n_after=1,
                before=(3, 1, 1, 1),
                after=(6,),
                n_trials=6,
                sentences=("calculate.expression: 4 spellings, all 1200",),
            )
            for level in (PathLevel.EFFECTS, PathLevel.EQUIVALENT)
        ),
    )


def test_a_rule_that_is_dropped_splits_paths() -> None:
    kinds = (("calculate", ToolKind.READ),)
    paths = [(calculation(text),) for text in SPELLINGS]

    effect = effect_of(paths, RuleSet(SUMS.rules, kinds), RuleSet((), kinds))

    (example,) = effect.examples
    assert (example.is_split, example.before, example.after) == (True, (4,), (1, 1, 1, 1))
    assert example.sentences == ("No longer equal: calculate.expression: 4 spellings, all 1200",)


def test_a_rule_of_other_terms_regroups_paths() -> None:
    kinds = (("calculate", ToolKind.READ),)
    paths = [(calculation(text),) for text in ("a B", "A b", "1 + 1", "2", "1  + 1")]

    effect = effect_of(
        paths, RuleSet((rule(PlainText()),), kinds), RuleSet((rule(Arithmetic()),), kinds)
    )

    assert [(one.n_before, one.n_after, one.sentences) for one in effect.examples] == [
        (2, 1, ("calculate.expression: 2 spellings, all 2",)),
        (1, 2, ("No longer equal: calculate.expression: 2 spellings of one text, all a b",)),
    ]


def test_values_that_another_rule_made_equal_before_are_not_named() -> None:
    kinds = (("calculate", ToolKind.READ),)
    note = rule(Ignore(), argument="note")
    paths = [
        (call("calculate", {"expression": text, "note": text}),) for text in ("2", "1 + 1", "3")
    ]

    effect = effect_of(paths, RuleSet((note,), kinds), RuleSet((note, *SUMS.rules), kinds))

    (example,) = effect.examples
    assert example.sentences == ("calculate.expression: 2 spellings, all 2",)


def test_arguments_that_are_not_json_stand_in_no_sentence() -> None:
    kinds = (("calculate", ToolKind.READ),)
    broken = TrajectoryCall("calculate", "{", ArgumentsForm.INVALID, CallOutcome.COMMITTED, 1)
    paths = [(calculation(text), broken) for text in ("2", "1 + 1")]

    effect = effect_of(paths, RuleSet((), kinds), RuleSet(SUMS.rules, kinds))

    assert [one.sentences for one in effect.examples] == [
        ("calculate.expression: 2 spellings, all 2",)
    ]


def test_kinds_of_tools_regroup_effects_and_reads() -> None:
    get, see = call("get", {"id": 1}), call("see", {"id": 2})
    paths = [(get, TrajectoryMessage(2), see), (see, TrajectoryMessage(2), get)]
    reads = RuleSet((), (("get", ToolKind.READ), ("see", ToolKind.READ)))

    effect = effect_of(paths, NONE, reads)

    says = ("get counts as read, not write", "see counts as read, not write")
    assert [(one.level, one.n_before, one.n_after, one.sentences) for one in effect.examples] == [
        (PathLevel.EFFECTS, 2, 1, says),
        (PathLevel.READS_ANY_ORDER, 2, 1, says),
    ]
    assert [(count.n_before, count.n_after) for count in effect.levels] == [
        (2, 1),
        (2, 1),
        (2, 1),
        (2, 2),
        (2, 2),
    ]


def test_attempts_that_were_rejected_are_no_effects() -> None:
    paths = [
        (call("calculate", {"expression": text}, CallOutcome.REJECTED), call("book", {"n": 1}))
        for text in ("2", "1 + 1")
    ]

    effect = effect_of(paths, NONE, SUMS)

    assert [one.level for one in effect.examples] == [PathLevel.EQUIVALENT]


def test_only_the_first_of_many_paths_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_reach, "MOST_MEMBERS", 2)
    monkeypatch.setattr(rule_reach, "MOST_LISTED_PATHS", 3)
    kinds = (("calculate", ToolKind.READ),)
    paths = [(calculation(text),) for text in SPELLINGS]

    effect = effect_of(paths, RuleSet((), kinds), RuleSet(SUMS.rules, kinds))

    (example,) = effect.examples
    assert (example.n_before, example.before, example.after) == (4, (1, 1, 1), (4,))
    assert example.sentences == (
        "calculate.expression: 2 spellings, all 1200 (among the first 2 paths)",
    )


def test_totals_are_exact_and_the_most_affected_tasks_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rule_reach, "MOST_TASKS", 2)
    sums = ReachSums()
    spellings = {"3": 2, "1": 3, "10": 2, "9": 1, "2": 2, "4": 4}
    for task_id, n in spellings.items():
        paths = [(calculation(text),) for text in SPELLINGS[:n]]
        sums.add(task_reach(task_id, ADDRESS, taken_by(paths, NONE, SUMS)))

    named = sums.most_affected()
    effect = sums.effect(
        task_effect(one, {0: [], 1: [], 2: [], 3: []}, NONE, NONE) for one in named
    )

    assert [task.task_id for task in effect.tasks] == ["4", "1"]
    assert (effect.n_trials, effect.n_tasks, effect.n_tasks_changed) == (14, 6, 5)
    assert effect.count(PathLevel.EQUIVALENT, messages=False) == LevelCount(
        PathLevel.EQUIVALENT, messages=False, n_before=14, n_after=6
    )


def test_tasks_alike_are_named_in_natural_order() -> None:
    sums = ReachSums()
    for task_id in ("10", "9"):
        taken = taken_by([(calculation("2"),), (calculation("1+1"),)], NONE, SUMS)
        sums.add(task_reach(task_id, ADDRESS, taken))

    assert [reach.task_id for reach in sums.most_affected()] == ["9", "10"]


keys = st.sampled_from([b"a", b"b", b"c", b"d"])


@given(st.lists(st.tuples(st.integers(1, 3), keys, keys), max_size=8))
def test_moved_paths_are_what_the_two_groupings_differ_in(
    drawn: list[tuple[int, bytes, bytes]],
) -> None:
    taken = [
        TakenTrajectory(pk, n, (before,) * 5, (after,) * 5)
        for pk, (n, before, after) in enumerate(drawn)
    ]

    reach = task_reach("t", ADDRESS, taken)

    moved = [one for one in reach.examples if one.level is PathLevel.EQUIVALENT]
    kept = {
        one.before[0]
        for one in taken
        if {x.pk for x in taken if x.before == one.before}
        == {x.pk for x in taken if x.after == one.after}
    }
    count = reach.levels[-1]
    assert count.n_before == len({one.before[0] for one in taken})
    assert count.n_after == len({one.after[0] for one in taken})
    assert sum(len(one.before) for one in moved) == count.n_before - len(kept)
    assert sum(len(one.after) for one in moved) == count.n_after - len(kept)
    assert all(sum(one.before) == sum(one.after) for one in moved)
    for one in moved:
        assert_is_connected(one)


def assert_is_connected(moved: MovedPaths) -> None:
    """From one path every other one of the set is reached over shared trials."""
    reached = {(False, 0)}
    for _ in moved.members:
        for _, before, after in moved.members:
            if (False, before) in reached or (True, after) in reached:
                reached |= {(False, before), (True, after)}
    assert len(reached) == len(moved.before) + len(moved.after)


@given(st.lists(trajectories(absent=True), max_size=6), rule_sets, rule_sets)
def test_a_task_can_always_be_put_into_words(
    paths: list[Trajectory], before: RuleSet, after: RuleSet
) -> None:
    effect = effect_of(paths, before, after, task_id="7")

    for at, (level, messages) in enumerate(CHANGING_LEVELS):
        for n, rules in ((effect.levels[at].n_before, before), (effect.levels[at].n_after, after)):
            found = {
                path_keys(path, rules, "7", own=bytes([pk])).key(level, messages=messages)
                for pk, path in enumerate(paths)
            }
            assert n == len(found)
    assert isinstance(effect, TaskEffect)


def test_weight_of_a_task_counts_paths_and_then_trials() -> None:
    reach = task_reach(
        "t",
        ADDRESS,
        taken_by([(calculation("2"),), (calculation("1+1"),)], NONE, SUMS, n_trials=(3, 4)),
    )

    assert isinstance(reach, TaskReach)
    assert reach.weight == (3, 14)
