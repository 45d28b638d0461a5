"""Two trajectories side by side: which calls belong together, where arguments differ, and where
the paths part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from json.encoder import encode_basestring_ascii

import numpy as np
from numpy.typing import NDArray

from traces.core.alignment import heaviest_matches, quick_matches
from traces.core.canonical import canonical_text
from traces.core.differences import Difference, DifferenceKind, state_differences
from traces.core.paths import CallTexts, call_texts, differ_only_within_messages
from traces.core.rule_words import argument_name
from traces.core.rules import ArgumentRule, Default, Ignore, RuleSet, RuleUse
from traces.core.trajectory import (
    ArgumentsForm,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
    TrajectoryStep,
)

MOST_ARGUMENT_DIFFERENCES = 100
"""Listed for one pair of calls."""

FOLDED_FROM = 3
"""Equal pairs in a row that a page folds."""

_MOST_CELLS = 4_000_000
_NAME_WEIGHT = 8  # two pairs of one name outweigh one pair that is equal to the letter
_RULE_WEIGHT = 2
_EXACT_WEIGHT = 1


class PairKind(StrEnum):
    """How one step of the left path relates to one of the right."""

    SAME = "same"
    SAME_BY_RULE = "same_by_rule"
    ARGUMENTS_DIFFER = "arguments_differ"
    NOT_COMPARABLE = "not_comparable"  # the arguments of one call were not recorded
    ONLY_LEFT = "only_left"
    ONLY_RIGHT = "only_right"


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One place where the arguments of two calls differ."""

    path: str  # JSON Pointer into the arguments
    name: str  # for people: calculate.expression
    left: str | None  # canonical text, or the raw text where it is not JSON; None: absent
    right: str | None
    rule: ArgumentRule | None = None  # that makes both the same


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A row of the comparison. `left` and `right` are indexes into the trajectories."""

    kind: PairKind
    left: int | None
    right: int | None
    differences: tuple[ArgumentDifference, ...] = ()
    are_all_listed: bool = True


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring rows, from `first` up to but without `end`, that are all equal or all not."""

    first: int
    end: int
    is_equal: bool

    @property
    def is_folded(self) -> bool:
        return self.is_equal and self.end - self.first >= FOLDED_FROM


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first row at which the paths part; steps are those of the transcripts, None: ended."""

    row: int
    left_step: int | None
    right_step: int | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two trajectories, row by row."""

    pairs: tuple[ComparedPair, ...]
    stretches: tuple[Stretch, ...]
    divergence: Divergence | None
    differ_only_within_messages: bool

    def n_pairs(self, kind: PairKind) -> int:
        return sum(pair.kind is kind for pair in self.pairs)


def compare(
    left: Trajectory,
    right: Trajectory,
    rules: RuleSet,
    task_id: str | None = None,
    *,
    messages: bool = True,
    names: tuple[str, str] = ("A", "B"),
) -> Comparison:
    """Align two trajectories and say how each pair of steps relates.

    Steps pair by name, in order, as many as can be; among such pairings the one with most equal
    arguments is taken. Swapping left and right mirrors the answer.
    """
    texts = call_texts(rules, task_id)
    ours, theirs = _steps_of(left, texts), _steps_of(right, texts)
    if not messages:
        ours = [each for each in ours if isinstance(each.step, TrajectoryCall)]
        theirs = [each for each in theirs if isinstance(each.step, TrajectoryCall)]
    matches = _matches(ours, theirs)
    pairs = tuple(_pairs(ours, theirs, matches, texts))
    return Comparison(
        pairs,
        _stretches(pairs),
        _divergence(left, right, pairs, names),
        differ_only_within_messages(left, right, messages=messages),
    )


@dataclass(frozen=True, slots=True)
class _Labelled:
    index: int  # in the whole trajectory
    step: TrajectoryStep
    name: str
    exact: str
    normal: str

    @property
    def key(self) -> tuple[str, str]:
        return (self.name, self.exact)


def _steps_of(trajectory: Trajectory, texts: CallTexts) -> list[_Labelled]:
    labelled: list[_Labelled] = []
    for index, step in enumerate(trajectory):
        if isinstance(step, TrajectoryCall):
            exact = texts.exact_text(step)
            name = encode_basestring_ascii(step.name)
            labelled.append(_Labelled(index, step, name, exact, texts.normal_text(step, exact)))
        else:
            labelled.append(_Labelled(index, step, "", "", ""))
    return labelled


def _matches(ours: list[_Labelled], theirs: list[_Labelled]) -> list[tuple[int, int]]:
    """Pairs of places in both lists, ascending; mirrored when the lists are swapped."""
    if [step.key for step in ours] > [step.key for step in theirs]:
        return [(left, right) for right, left in _matches(theirs, ours)]
    start = _n_equal(ours, theirs)
    end = _n_equal(ours[start:][::-1], theirs[start:][::-1])
    inner_ours = ours[start : len(ours) - end]
    inner_theirs = theirs[start : len(theirs) - end]
    inner = [
        (start + left, start + right) for left, right in _inner_matches(inner_ours, inner_theirs)
    ]
    head = [(place, place) for place in range(start)]
    tail = [(len(ours) - back, len(theirs) - back) for back in range(end, 0, -1)]
    return head + inner + tail


def _n_equal(ours: Sequence[_Labelled], theirs: Sequence[_Labelled]) -> int:
    count = 0
    for left, right in zip(ours, theirs, strict=False):
        if left.key != right.key:
            break
        count += 1
    return count


def _inner_matches(ours: list[_Labelled], theirs: list[_Labelled]) -> list[tuple[int, int]]:
    if not ours or not theirs:
        return []
    if len(ours) * len(theirs) > _MOST_CELLS:
        return quick_matches([step.name for step in ours], [step.name for step in theirs])
    kinds = list({step.key: step for step in theirs}.values())
    number = {step.key: place for place, step in enumerate(kinds)}
    weights = _weights(ours, kinds)
    return heaviest_matches(weights, [number[step.key] for step in theirs])


def _weights(ours: list[_Labelled], kinds: list[_Labelled]) -> NDArray[np.int64]:
    """What each kind of step on the right weighs against each step on the left; 0: no pair."""
    names = _equalities([step.name for step in ours], [step.name for step in kinds])
    normal = _equalities([step.normal for step in ours], [step.normal for step in kinds])
    exact = _equalities([step.exact for step in ours], [step.exact for step in kinds])
    weights: NDArray[np.int64] = names * (
        _NAME_WEIGHT + _RULE_WEIGHT * normal + _EXACT_WEIGHT * exact
    )
    return weights


def _equalities(across: list[str], down: list[str]) -> NDArray[np.int64]:
    number = {text: place for place, text in enumerate(dict.fromkeys([*across, *down]))}
    columns = np.array([number[text] for text in across])
    rows = np.array([number[text] for text in down])
    equalities: NDArray[np.int64] = (rows[:, None] == columns[None, :]).astype(np.int64)
    return equalities


def _pairs(
    ours: list[_Labelled],
    theirs: list[_Labelled],
    matches: list[tuple[int, int]],
    texts: CallTexts,
) -> list[ComparedPair]:
    pairs: list[ComparedPair] = []
    left = right = 0
    for next_left, next_right in [*matches, (len(ours), len(theirs))]:
        pairs += (
            ComparedPair(PairKind.ONLY_LEFT, step.index, None) for step in ours[left:next_left]
        )
        pairs += (
            ComparedPair(PairKind.ONLY_RIGHT, None, step.index) for step in theirs[right:next_right]
        )
        if next_left < len(ours) and next_right < len(theirs):
            pairs.append(_pair(ours[next_left], theirs[next_right], texts))
        left, right = next_left + 1, next_right + 1
    return pairs


def _pair(left: _Labelled, right: _Labelled, texts: CallTexts) -> ComparedPair:
    ours, theirs = left.step, right.step
    if isinstance(ours, TrajectoryMessage) or isinstance(theirs, TrajectoryMessage):
        return ComparedPair(PairKind.SAME, left.index, right.index)
    if ArgumentsForm.ABSENT in (ours.form, theirs.form):
        return ComparedPair(PairKind.NOT_COMPARABLE, left.index, right.index)
    if left.exact == right.exact:
        return ComparedPair(PairKind.SAME, left.index, right.index)
    same = left.normal == right.normal
    kind = PairKind.SAME_BY_RULE if same else PairKind.ARGUMENTS_DIFFER
    differences, are_all_listed = _argument_differences(ours, theirs, texts)
    return ComparedPair(kind, left.index, right.index, differences, are_all_listed)


def _argument_differences(
    left: TrajectoryCall, right: TrajectoryCall, texts: CallTexts
) -> tuple[tuple[ArgumentDifference, ...], bool]:
    if ArgumentsForm.INVALID in (left.form, right.form):
        whole = ArgumentDifference("", left.name, _shown(left), _shown(right))
        return (whole,), True
    found = state_differences(left.arguments, right.arguments, limit=MOST_ARGUMENT_DIFFERENCES)
    ours, theirs = texts.uses(left), texts.uses(right)
    differences = tuple(
        ArgumentDifference(
            path=each.path,
            name=argument_place(left.name, each.path),
            left=None if each.kind is DifferenceKind.ADDED else canonical_text(each.before),
            right=None if each.kind is DifferenceKind.REMOVED else canonical_text(each.after),
            rule=_rule_that_merges(each, ours, theirs),
        )
        for each in found.differences
    )
    return differences, found.is_complete


def _shown(call: TrajectoryCall) -> str:
    if call.form is ArgumentsForm.INVALID and isinstance(call.arguments, str):
        return call.arguments
    return canonical_text(call.arguments)


def argument_place(tool: str, path: str) -> str:
    """A place in a call's arguments, for people: `book.flights[0].date`."""
    name = tool
    for part in path.split("/")[1:]:
        plain = part.replace("~1", "/").replace("~0", "~")
        name = f"{name}[{plain}]" if plain.isdigit() else argument_name(name, (plain,))
    return name


def _rule_that_merges(
    difference: Difference, ours: tuple[RuleUse, ...], theirs: tuple[RuleUse, ...]
) -> ArgumentRule | None:
    """The rule, at the place of a difference or around it, under which both sides are equal."""
    left = {(use.place, use.rule): canonical_text(use.normal) for use in ours}
    right = {(use.place, use.rule): canonical_text(use.normal) for use in theirs}
    for place, rule in {**left, **right}:
        if place and not f"{difference.path}/".startswith(f"{place}/"):
            continue
        alone = difference.kind is not DifferenceKind.CHANGED and place == difference.path
        if left.get((place, rule)) == right.get((place, rule)):
            return rule
        if alone and isinstance(rule.terms, Ignore | Default):
            return rule
    return None


def _stretches(pairs: tuple[ComparedPair, ...]) -> tuple[Stretch, ...]:
    stretches: list[Stretch] = []
    first = 0
    for is_equal, run in groupby(pairs, key=lambda pair: pair.kind is PairKind.SAME):
        end = first + sum(1 for _ in run)
        stretches.append(Stretch(first, end, is_equal))
        first = end
    return tuple(stretches)


def _divergence(
    left: Trajectory,
    right: Trajectory,
    pairs: tuple[ComparedPair, ...],
    names: tuple[str, str],
) -> Divergence | None:
    row = next(
        (
            at
            for at, pair in enumerate(pairs)
            if pair.kind not in (PairKind.SAME, PairKind.SAME_BY_RULE)
        ),
        None,
    )
    if row is None:
        return None
    ours = _next_step(left, [pair.left for pair in pairs[row:]])
    theirs = _next_step(right, [pair.right for pair in pairs[row:]])
    left_step = None if ours is None else ours.step
    right_step = None if theirs is None else theirs.step
    place = _place_in_words(left_step, right_step, names)
    acts = _acts_in_words(pairs[row], ours, theirs, names)
    return Divergence(row, left_step, right_step, f"Paths part at {place}: {acts}.")


def _next_step(trajectory: Trajectory, indexes: list[int | None]) -> TrajectoryStep | None:
    return next((trajectory[index] for index in indexes if index is not None), None)


def _place_in_words(left: int | None, right: int | None, names: tuple[str, str]) -> str:
    if left == right:
        return f"step {left}"
    steps = zip((left, right), names, strict=True)
    return " and ".join(f"step {step} of {name}" for step, name in steps if step is not None)


def _acts_in_words(
    pair: ComparedPair,
    ours: TrajectoryStep | None,
    theirs: TrajectoryStep | None,
    names: tuple[str, str],
) -> str:
    both = f"{names[0]} and {names[1]}"
    if isinstance(ours, TrajectoryCall) and isinstance(theirs, TrajectoryCall):
        if pair.kind is PairKind.NOT_COMPARABLE:
            return f"{both} call {ours.name}, with arguments that were not recorded"
        if ours.name == theirs.name:
            where = [each.path for each in pair.differences if each.rule is None and each.path]
            what = (
                f"another {argument_place('', where[0]).lstrip('.')}"
                if where
                else "other arguments"
            )
            return f"{both} call {ours.name} with {what}"
    return f"{names[0]} {_act_in_words(ours)}, {names[1]} {_act_in_words(theirs)}"


def _act_in_words(step: TrajectoryStep | None) -> str:
    if step is None:
        return "ends"
    if isinstance(step, TrajectoryMessage):
        return "sends a message"
    return f"calls {step.name}"
