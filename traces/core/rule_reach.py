"""How far a change of rules reaches: tools it concerns, paths it regroups, and why, in words.

Everything rests on the path keys of `traces.core.paths`, as stored or worked out, so counts are those
that pages show once the change is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from traces.core.canonical import natural_key
from traces.core.paths import CallTexts, PathLevel, call_texts
from traces.core.rule_effects import (
    CHANGING_LEVELS,
    MOST_EXAMPLES,
    MOST_LISTED_PATHS,
    MOST_SENTENCES,
    MOST_TASKS,
    LevelCount,
    Regrouping,
    RulesEffect,
    TaskEffect,
)
from traces.core.rule_words import merges_of
from traces.core.rules import ArgumentRule, RuleSet
from traces.core.trajectory import ArgumentsForm, CallOutcome, ToolKind, TrajectoryCall

MOST_MEMBERS = 30
"""Trajectories of a regrouping that are looked at for its sentences."""

MOST_COMPARED_STEPS = 2_000
"""Tool calls of a trajectory that are looked at for a sentence."""

LevelKeys = tuple[bytes, ...]
"""The keys of one trajectory, as CHANGING_LEVELS."""

StepsOf = Mapping[int, Sequence[TrajectoryCall]]
"""Trajectories by their ids, tool calls only."""


@dataclass(frozen=True, slots=True)
class Concern:
    """The tools whose calls may get other keys by a change of rules."""

    tools: frozenset[str] = frozenset()  # in every task
    tools_of_tasks: tuple[
        tuple[str, str], ...
    ] = ()  # task id and tool, where a task's rule changes

    def __or__(self, other: Concern) -> Concern:
        pairs = {*self.tools_of_tasks, *other.tools_of_tasks}
        return Concern(self.tools | other.tools, tuple(sorted(pairs)))


@dataclass(frozen=True, slots=True)
class TakenTrajectory:
    """A trajectory that passing trials of a task took, with its keys now and under a change."""

    pk: int
    n_trials: int
    before: LevelKeys
    after: LevelKeys


@dataclass(frozen=True, slots=True)
class MovedPaths:
    """Paths of one task at one level that become other paths. Trials are counted path by path."""

    level: PathLevel
    before: tuple[int, ...]  # most first
    after: tuple[int, ...]
    members: tuple[tuple[int, int, int], ...]  # trajectory, index of its path before and after
    is_cut: bool  # there are more members

    @property
    def n_trials(self) -> int:
        """Trials that took any of these paths."""
        return sum(self.before)


@dataclass(frozen=True, slots=True)
class TaskReach:
    """What a change does to one task, before its examples are put into words."""

    task_id: str
    uuid: UUID
    n_trials: int
    levels: tuple[LevelCount, ...]
    n_moved: int  # 0: no path merges or splits, with agent messages neither
    examples: tuple[MovedPaths, ...]

    @property
    def weight(self) -> tuple[int, int]:
        """What tells more affected tasks from less affected ones."""
        n_paths = sum(abs(count.n_after - count.n_before) for count in self.levels)
        return (n_paths, sum(moved.n_trials for moved in self.examples))


def concern_of(before: RuleSet, after: RuleSet) -> Concern:
    """The tools that one rule set treats otherwise than the other."""
    ours, theirs = _terms_of(before), _terms_of(after)
    differing = {place for place in {*ours, *theirs} if ours.get(place) != theirs.get(place)}
    named = {tool for tool, _ in (*before.tool_kinds, *after.tool_kinds)}
    kinds = {tool for tool in named if before.kind_of(tool) is not after.kind_of(tool)}
    return Concern(
        frozenset(kinds | {tool for task_id, tool, _ in differing if task_id is None}),
        tuple(sorted({(task, tool) for task, tool, _ in differing if task is not None})),
    )


def _terms_of(rules: RuleSet) -> dict[tuple[str | None, str, tuple[str | None, ...]], object]:
    return {(rule.task_id, rule.tool, rule.tokens): rule.terms for rule in rules.rules}


def task_reach(task_id: str, uuid: UUID, taken: Sequence[TakenTrajectory]) -> TaskReach:
    """What a change does to the paths of one task, given all its passing trajectories."""
    levels = tuple(
        LevelCount(
            level,
            messages,
            len({one.before[at] for one in taken}),
            len({one.after[at] for one in taken}),
        )
        for at, (level, messages) in enumerate(CHANGING_LEVELS)
    )
    moved = [
        paths
        for at, (level, messages) in enumerate(CHANGING_LEVELS)
        if not messages
        for paths in _moved_paths(level, at, taken)
    ]
    moved.sort(key=lambda paths: (-paths.n_trials, paths.level, paths.members))
    return TaskReach(
        task_id=task_id,
        uuid=uuid,
        n_trials=sum(one.n_trials for one in taken),
        levels=levels,
        n_moved=len(moved),
        examples=tuple(moved[:MOST_EXAMPLES]),
    )


def _moved_paths(
    level: PathLevel, at: int, taken: Sequence[TakenTrajectory]
) -> Iterable[MovedPaths]:
    """Smallest sets of paths that share their trials before and after, where these differ."""
    if all(one.before[at] == one.after[at] for one in taken):
        return
    joined = _Joined()
    for one in taken:
        joined.join((False, one.before[at]), (True, one.after[at]))
    sides: dict[_Side, list[TakenTrajectory]] = {}
    for one in taken:
        sides.setdefault(joined.first((False, one.before[at])), []).append(one)
    for together in sides.values():
        before = _trials_by((one.before[at], one.n_trials) for one in together)
        after = _trials_by((one.after[at], one.n_trials) for one in together)
        if len(before) == len(after) == 1:
            continue
        places_before = {key: place for place, (key, _) in enumerate(before)}
        places_after = {key: place for place, (key, _) in enumerate(after)}
        first: dict[tuple[int, int], int] = {}
        for one in sorted(together, key=lambda one: (-one.n_trials, one.pk)):
            pair = (places_before[one.before[at]], places_after[one.after[at]])
            first.setdefault(pair, one.pk)
        members = tuple((pk, *pair) for pair, pk in sorted(first.items()))
        yield MovedPaths(
            level=level,
            before=tuple(n for _, n in before),
            after=tuple(n for _, n in after),
            members=members[:MOST_MEMBERS],
            is_cut=len(members) > MOST_MEMBERS,
        )


def _trials_by(taken: Iterable[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    counts: dict[bytes, int] = {}
    for key, n_trials in taken:
        counts[key] = counts.get(key, 0) + n_trials
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


_Side = tuple[bool, bytes]  # a path after (True) or before the change


class _Joined:
    """Disjoint sets."""

    def __init__(self) -> None:
        self._above: dict[_Side, _Side] = {}

    def first(self, side: _Side) -> _Side:
        """What stands for the set of a path."""
        above = self._above
        while (upper := above.setdefault(side, side)) != side:
            above[side] = above[upper]
            side = upper
        return side

    def join(self, left: _Side, right: _Side) -> None:
        self._above[self.first(left)] = self.first(right)


class ReachSums:
    """Adds up tasks: exact totals, and the tasks that are affected most."""

    def __init__(self) -> None:
        self._before = [0] * len(CHANGING_LEVELS)
        self._after = [0] * len(CHANGING_LEVELS)
        self._n_trials = self._n_tasks = self._n_changed = 0
        self._changed: list[TaskReach] = []

    def add(self, reach: TaskReach) -> None:
        """Count a task with a passing trial."""
        self._n_tasks += 1
        self._n_trials += reach.n_trials
        for at, count in enumerate(reach.levels):
            self._before[at] += count.n_before
            self._after[at] += count.n_after
        if reach.n_moved:
            self._n_changed += 1
            self._changed.append(reach)
            if len(self._changed) > 2 * MOST_TASKS:
                self._changed = self.most_affected()

    def most_affected(self) -> list[TaskReach]:
        """The tasks to name: those with most paths more or fewer, then with most trials."""

        def order(reach: TaskReach) -> tuple[int, int, object]:
            n_paths, n_trials = reach.weight
            return (-n_paths, -n_trials, natural_key(reach.task_id))

        return sorted(self._changed, key=order)[:MOST_TASKS]

    def effect(self, tasks: Iterable[TaskEffect]) -> RulesEffect:
        """The whole, with the tasks to name put into words."""
        return RulesEffect(
            levels=tuple(
                LevelCount(level, messages, n_before, n_after)
                for (level, messages), n_before, n_after in zip(
                    CHANGING_LEVELS, self._before, self._after, strict=True
                )
            ),
            n_trials=self._n_trials,
            n_tasks=self._n_tasks,
            n_tasks_changed=self._n_changed,
            tasks=tuple(tasks),
        )


# In words


def task_effect(reach: TaskReach, steps: StepsOf, before: RuleSet, after: RuleSet) -> TaskEffect:
    """A task with its examples in words. `steps` holds the members of all of them."""
    return TaskEffect(
        task_id=reach.task_id,
        uuid=reach.uuid,
        levels=reach.levels,
        n_regroupings=reach.n_moved,
        examples=tuple(
            Regrouping(
                level=moved.level,
                n_before=len(moved.before),
                n_after=len(moved.after),
                before=moved.before[:MOST_LISTED_PATHS],
                after=moved.after[:MOST_LISTED_PATHS],
                n_trials=moved.n_trials,
                sentences=_sentences(moved, steps, before, after, reach.task_id),
            )
            for moved in reach.examples
        ),
    )


def _sentences(
    moved: MovedPaths, steps: StepsOf, before: RuleSet, after: RuleSet, task_id: str
) -> tuple[str, ...]:
    said: dict[str, None] = {}
    if moved.level is not PathLevel.EQUIVALENT:
        tools = {call.name for pk, _, _ in moved.members for call in steps[pk]}
        said |= dict.fromkeys(_kind_sentences(tools, before, after))
    if moved.level is not PathLevel.READS_ANY_ORDER:
        among = f" (among the first {MOST_MEMBERS} paths)" if moved.is_cut else ""
        values = _value_sentences(moved, steps, before, after, task_id)
        said |= dict.fromkeys(f"{sentence}{among}" for sentence in values)
    return tuple(said)[:MOST_SENTENCES]


def _kind_sentences(tools: Iterable[str], before: RuleSet, after: RuleSet) -> Iterable[str]:
    for tool in sorted(tools, key=natural_key):
        old, new = before.kind_of(tool), after.kind_of(tool)
        if old is not new:
            yield f"{tool} counts as {new}, not {old}"


def _value_sentences(
    moved: MovedPaths, steps: StepsOf, before: RuleSet, after: RuleSet, task_id: str
) -> Iterable[str]:
    """What the change makes equal, then what it no longer makes equal."""
    old, new = call_texts(before, task_id), call_texts(after, task_id)
    for together in _by_path(member[::2] for member in moved.members):
        calls = [_compared(steps[pk], moved.level, new) for pk in together]
        yield from _made_equal(calls, old, after, task_id)
    for together in _by_path(member[:2] for member in moved.members):
        calls = [_compared(steps[pk], moved.level, old) for pk in together]
        for sentence in _made_equal(calls, new, before, task_id):
            yield f"No longer equal: {sentence}"


def _by_path(members: Iterable[tuple[int, int]]) -> Iterable[list[int]]:
    paths: dict[int, list[int]] = {}
    for pk, path in members:
        paths.setdefault(path, []).append(pk)
    return paths.values()


def _compared(
    steps: Sequence[TrajectoryCall], level: PathLevel, texts: CallTexts
) -> list[TrajectoryCall]:
    """The calls whose arguments a level compares."""
    chosen = [
        call
        for call in steps
        if level is PathLevel.EQUIVALENT
        or (texts.kind_of(call.name) is ToolKind.WRITE and call.outcome is CallOutcome.COMMITTED)
    ]
    return chosen[:MOST_COMPARED_STEPS]


def _made_equal(
    trajectories: Sequence[Sequence[TrajectoryCall]],
    apart: CallTexts,
    rules: RuleSet,
    task_id: str,
) -> Iterable[str]:
    """Step by step, the values that differ under `apart` and that `rules` make equal."""
    for step in zip(*trajectories, strict=True):
        calls = [call for call in step if call.form is ArgumentsForm.JSON]
        if len({apart.normal_text(call, apart.exact_text(call)) for call in calls}) < 2:
            continue
        known = {_said(use.rule) for call in calls for use in apart.uses(call)}
        for merge in merges_of(calls[0].name, [call.arguments for call in calls], rules, task_id):
            if _said(merge.rule) not in known:
                yield merge.sentence


def _said(rule: ArgumentRule) -> tuple[tuple[str | None, ...], object]:
    return (rule.tokens, rule.terms)
