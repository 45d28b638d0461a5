"""Required and prohibited: what must have happened in time, and what must not happen.

Conditions come out in three values, and so do the checks. Where a call decides only if its condition
or its result were known, both ways are looked at: what comes out the same both ways is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from reviews.core.checks.events import Event, Events
from reviews.core.checks.expressions import (
    FALSE,
    TOO_LARGE,
    TRUE,
    Answer,
    ExpressionError,
    Truth,
    compiled,
    evaluate,
    work_in_loops,
)
from reviews.core.checks.results import CheckResult
from reviews.core.checks.words import any_words, steps_words, target_words
from traces.core.contracts.expressions import CALL_NAMES, MESSAGE_NAMES
from traces.core.contracts.model import (
    Anchor,
    CallTarget,
    Prohibited,
    Required,
    Target,
)
from traces.core.records import VerdictValue

MOST_EVENTS: Final = 10_000
"""Calls or messages that one check looks at."""

MOST_WORK: Final = 20_000_000
"""Steps that one check's conditions take on all of them together: a second or two."""

_NO_RESULT: Final = Truth(Answer.UNKNOWN, "no result is recorded")
_TOO_MANY: Final = Truth(Answer.ERROR, TOO_LARGE)
_NEVER: Final = 2**62  # later than any step


@dataclass(frozen=True, slots=True)
class _Met:
    """An event and whether a target means it."""

    event: Event
    truth: Truth


def _truth_of(target: Target, event: Event, work_left: int) -> tuple[Truth, int]:
    """Whether a target means an event, and how much work is left after that."""
    if not target.where:
        return TRUE, work_left
    names = CALL_NAMES if isinstance(target, CallTarget) else MESSAGE_NAMES
    try:
        expression = compiled(target.where, names)
    except ExpressionError as error:
        return Truth(Answer.ERROR, error.sentence), work_left
    work_left -= work_in_loops(expression, event.bindings)
    return (evaluate(expression, event.bindings) if work_left >= 0 else _TOO_MANY), work_left


def _met(events: Events, targets: Sequence[Target]) -> list[_Met]:
    """The events of any of the targets, each once, in order of their steps."""
    found: dict[int, _Met] = {}
    n_left, work_left = MOST_EVENTS, MOST_WORK
    for target in targets:
        of_target = events.of(target)
        n_left -= len(of_target) if target.where else 0
        for event in of_target:
            truth = _TOO_MANY
            if n_left >= 0:
                truth, work_left = _truth_of(target, event, work_left)
            earlier = found.get(id(event))
            if earlier is None or _weight(truth) > _weight(earlier.truth):
                found[id(event)] = _Met(event, truth)
    return sorted(found.values(), key=lambda met: met.event.at)


_WEIGHTS: Final = {Answer.FALSE: 0, Answer.UNKNOWN: 1, Answer.ERROR: 2, Answer.TRUE: 3}


def _weight(truth: Truth) -> int:
    return _WEIGHTS[truth.answer]


def _any(truths: Iterable[Truth]) -> Truth:
    """True if any is, else the first error, else the first unknown, else false."""
    return max(truths, key=_weight, default=FALSE)


def prohibited_result(entry: Prohibited, events: Events) -> CheckResult:
    """Whether something prohibited happened: an attempt counts, unless narrowed to committed."""
    met = [each for each in _met(events, entry.any_of) if each.truth.answer is not Answer.FALSE]
    attempts = [each.event for each in met if each.truth.answer is Answer.TRUE]
    attempted = _at(attempts)
    committed = _at(event for event in attempts if not (event.is_rejected or event.is_open))
    counted = [_Met(each.event, _committed(each)) for each in met] if entry.committed_only else met
    truth = _any(each.truth for each in counted)
    deciding = [each.event for each in counted if each.truth.answer is truth.answer]
    steps = _at(deciding) if truth.answer is not Answer.FALSE else ()
    what = any_words(entry.any_of)
    match truth.answer:
        case Answer.TRUE:
            how = "was committed" if entry.committed_only else "happened"
            sentence = f"Prohibited, and it {how}: {what}, at {steps_words(steps)}."
        case Answer.FALSE:
            refused = " An attempt was made, and none was committed." if attempted else ""
            sentence = f"It did not happen: {what}.{refused}"
        case _:
            sentence = open_sentence(f"Whether it happened ({what})", truth)
    return CheckResult(
        entry.id,
        _PROHIBITED[truth.answer],
        sentence,
        steps,
        attempted=attempted,
        committed=committed,
    )


def _committed(met: _Met) -> Truth:
    """Whether a call that a target means was committed."""
    if met.event.is_rejected:
        return FALSE
    if met.event.is_open and met.truth.answer is Answer.TRUE:
        return _NO_RESULT
    return met.truth


_PROHIBITED: Final = {
    Answer.TRUE: VerdictValue.FAIL,
    Answer.FALSE: VerdictValue.PASS,
    Answer.UNKNOWN: VerdictValue.UNKNOWN,
    Answer.ERROR: VerdictValue.ERROR,
}
_REQUIRED: Final = {
    Answer.TRUE: VerdictValue.PASS,
    Answer.FALSE: VerdictValue.FAIL,
    Answer.UNKNOWN: VerdictValue.UNKNOWN,
    Answer.ERROR: VerdictValue.ERROR,
}


@dataclass(frozen=True, slots=True)
class _Bound:
    """Where an anchor stands: at the easiest and at the hardest for what must be in time.

    None: it never happened, so it asks for nothing.
    """

    easiest: int | None
    hardest: int | None
    doubts: tuple[Truth, ...] = ()  # why both differ, and results that are not recorded
    is_committed_unknown: bool = False  # a call counts only if committed, and nobody knows


_NO_ANCHOR: Final = _Bound(None, None)


def required_result(entry: Required, events: Events) -> CheckResult:
    """Whether something required happened, where an anchor asks in time.

    It holds where an anchor never happened: nothing stands that it must come before or after.
    """
    met = [_Met(each.event, _satisfying(each)) for each in _met(events, entry.any_of)]
    before, after = _before(entry.before, events), _after(entry.after, events)
    has_anchor = entry.before is not None or entry.after is not None
    easy = _in_time(met, before.easiest, after.easiest, has_anchor=has_anchor)
    hard = _in_time(met, before.hardest, after.hardest, has_anchor=has_anchor)
    truth = easy
    is_committed_unknown = before.is_committed_unknown or after.is_committed_unknown
    if easy.answer is not hard.answer or (easy.answer is Answer.TRUE and is_committed_unknown):
        doubts = [each for each in (easy, hard, *before.doubts, *after.doubts) if _is_open(each)]
        truth = _any(doubts)
    reached = _at(each.event for each in met if each.truth.answer is Answer.TRUE)
    case = _Case(entry, truth, met, before, after, reached)
    return CheckResult(
        entry.id, _REQUIRED[truth.answer], case.sentence, case.steps, reached=reached
    )


def _satisfying(met: _Met) -> Truth:
    """Whether a call or message can be what is required: a rejected call never is."""
    if met.event.is_rejected:
        return FALSE
    if met.event.is_open and met.truth.answer is Answer.TRUE:
        return _NO_RESULT
    return met.truth


def _before(anchor: Anchor | None, events: Events) -> _Bound:
    """What must be known earlier than the first attempt, or the first committed one."""
    if anchor is None:
        return _NO_ANCHOR
    sure, open_ones, doubts, is_unknown = _occurrences(anchor, events)
    first_sure = min((event.at for event in sure), default=None)
    hardest = min((event.at for event in (*sure, *open_ones)), default=None)
    return _Bound(first_sure, hardest, doubts, is_unknown)


def _after(anchor: Anchor | None, events: Events) -> _Bound:
    """What must be later than the result of the last attempt, or the last committed one."""
    if anchor is None:
        return _NO_ANCHOR
    sure, open_ones, doubts, is_unknown = _occurrences(anchor, events)
    unanswered = [event for event in (*sure, *open_ones) if event.result_at is None]
    if unanswered:
        doubts = (*doubts, _NO_RESULT)
    easiest = max((event.result_at or event.at for event in sure), default=None)
    hardest = max(
        (event.result_at or _NEVER for event in (*sure, *open_ones)),
        default=None,
    )
    return _Bound(easiest, hardest, doubts, is_unknown)


def _occurrences(
    anchor: Anchor, events: Events
) -> tuple[list[Event], list[Event], tuple[Truth, ...], bool]:
    """The events that an anchor means surely and perhaps, why perhaps, and if for want of a result."""
    sure: list[Event] = []
    open_ones: list[Event] = []
    doubts: list[Truth] = []
    is_unknown = False
    for met in _met(events, (anchor.target,)):
        truth = _committed(met) if anchor.committed_only else met.truth
        if truth.answer is Answer.TRUE:
            sure.append(met.event)
        elif truth.answer is not Answer.FALSE:
            open_ones.append(met.event)
            doubts.append(truth)
            is_unknown = is_unknown or (anchor.committed_only and met.event.is_open)
    return sure, open_ones, tuple(doubts), is_unknown


def _in_time(
    met: Sequence[_Met], before: int | None, after: int | None, *, has_anchor: bool
) -> Truth:
    """Whether something that satisfies stands in time."""
    if has_anchor and before is None and after is None:
        return TRUE
    return _any(each.truth for each in met if _stands(each.event, before, after))


def _stands(event: Event, before: int | None, after: int | None) -> bool:
    """Whether an event is known before one step and starts after the other.

    What has no recorded result counts from its own step: it is unknown at most.
    """
    known_at = event.at if event.result_at is None else event.result_at
    return (before is None or known_at < before) and (after is None or event.at > after)


def _is_open(truth: Truth) -> bool:
    return truth.answer in {Answer.UNKNOWN, Answer.ERROR}


def _at(events: Iterable[Event]) -> tuple[int, ...]:
    """The steps of events, each once."""
    return tuple(dict.fromkeys(event.at for event in events))


@dataclass(frozen=True, slots=True)
class _Case:
    """What a required entry comes to, for its steps and its sentence."""

    entry: Required
    truth: Truth
    met: Sequence[_Met]
    before: _Bound
    after: _Bound
    reached: tuple[int, ...]

    @property
    def satisfying(self) -> Event | None:
        """The first event that satisfies it in time."""
        for each in self.met:
            in_time = _stands(each.event, self.before.hardest, self.after.hardest)
            if in_time and each.truth.answer is Answer.TRUE:
                return each.event
        return None

    @property
    def steps(self) -> tuple[int, ...]:
        match self.truth.answer:
            case Answer.TRUE:
                is_idle = self.idle_words != ""
                return self.satisfying.steps if self.satisfying and not is_idle else ()
            case Answer.FALSE:
                anchor = self.before.easiest or self.after.easiest
                return (anchor,) if anchor is not None else ()
            case _:
                open_ones = _at(each.event for each in self.met if _is_open(each.truth))
                anchor = self.before.hardest or self.after.hardest
                anchored = (anchor,) if anchor is not None and anchor != _NEVER else ()
                return open_ones or anchored

    @property
    def idle_words(self) -> str:
        """Which anchors never happened, where that is all there is to say."""
        anchors = [each for each in (self.entry.before, self.entry.after) if each is not None]
        if not anchors or self.before.hardest is not None or self.after.hardest is not None:
            return ""
        return any_words(anchor.target for anchor in anchors)

    @property
    def sentence(self) -> str:
        what = any_words(self.entry.any_of)
        match self.truth.answer:
            case Answer.TRUE if self.idle_words:
                return f"Nothing to be in time for: {self.idle_words} did not happen."
            case Answer.TRUE:
                return f"It happened in time: {what}, {steps_words(self.steps)}."
            case Answer.FALSE:
                return self.failed_sentence(what)
            case _:
                return open_sentence(f"Whether it happened in time ({what})", self.truth)

    def failed_sentence(self, what: str) -> str:
        """What is missing, and before or after what."""
        late = f" It happened at {steps_words(self.reached)}." if self.reached else ""
        if self.entry.before is not None and self.before.easiest is not None:
            anchor = target_words(self.entry.before.target)
            return (
                f"{anchor} stands at step {self.before.easiest}, and no result of this "
                f"stands before it: {what}.{late}"
            )
        if self.entry.after is not None and self.after.easiest is not None:
            anchor = target_words(self.entry.after.target)
            return f"After {anchor} (step {self.after.easiest}) this is missing: {what}.{late}"
        return f"Required, and it did not happen: {what}."


def open_sentence(what: str, truth: Truth) -> str:
    """Why a check is unknown or ends in an error."""
    if truth.answer is Answer.ERROR:
        return f"{what} could not be worked out: {truth.reason.rstrip('.')}."
    return f"{what} cannot be told: {truth.reason}."
