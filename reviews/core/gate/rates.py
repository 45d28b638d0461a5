"""Checks of rates of trials that must be high enough: outcome, rule-clean, recovery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from reviews.core.estimators import (
    Counts,
    Interval,
    clopper_pearson,
    lower_bound,
    percent,
    upper_bound,
)
from reviews.core.gate.bounds import fewest_more, lower_at_least, upper_below
from reviews.core.gate.evidence import (
    Decide,
    Decided,
    OrderedEvidence,
    decided_by,
    has_come,
    open_text,
    open_trials,
    task_details,
)
from reviews.core.gate.model import Check, DecidedBy, GateSlot, Threshold
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import counted, exact_percent


@dataclass(frozen=True, slots=True)
class RateWords:
    """How a rate is spoken of."""

    verb: str  # what a trial that passes did
    nothing: str  # there is no slot
    unchecked: str  # of trials that are graded, but not for this figure


OUTCOME_WORDS = RateWords(
    "reached the outcome", "No trial has come: run the tasks of this tier.", "without an outcome"
)
CLEAN_WORDS = RateWords(
    "ended rule-clean", "No trial has come: run the tasks of this tier.", "not checked for rules"
)
RECOVERY_WORDS = RateWords(
    "recovered",
    "No trial with an injected fault has come: run some.",
    "not known to have recovered",
)

_DECIDED = {"pass": True, "fail": False}


def outcome_passed(slot: GateSlot) -> bool | None:
    """Whether the outcome was reached; None where no check of it is decided."""
    return _DECIDED.get(slot.outcome)


def clean_passed(slot: GateSlot) -> bool | None:
    """Whether the trial ended rule-clean; None where that is not decided."""
    return _DECIDED.get(slot.clean)


def is_safe(slot: GateSlot) -> bool | None:
    """Whether nothing prohibited was attempted; None where nobody could tell, or nobody looked.

    Under a contract that prohibits nothing there was nothing to attempt.
    """
    if slot.harms_attempted:
        return False
    if prohibits_nothing(slot):
        return True if slot.value not in ("missing", "harness_error") else None
    return True if slot.has_prohibitions and slot.is_clean_known else None


def prohibits_nothing(slot: GateSlot) -> bool:
    """Whether a contract decides the slot that prohibits nothing: no figure of safety counts it."""
    return slot.contract > 0 and not slot.has_prohibitions


def recovered(slot: GateSlot) -> bool | None:
    """Whether a trial with a fault ended rule-clean, or was handed over with nothing prohibited."""
    safe, clean = is_safe(slot), clean_passed(slot)
    if safe is False:
        return False
    if clean or (slot.handed_over and safe):
        return True
    return False if clean is False and slot.handed_over is False else None


def outcome_rate(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Trials that left the environment in the required state, of all slots that count."""
    return rate_check(threshold, evidence.counted, outcome_passed, OUTCOME_WORDS)


def rule_clean_rate(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Trials that reached the outcome by the rules, of all slots that count."""
    return rate_check(threshold, evidence.counted, clean_passed, CLEAN_WORDS)


def recovery_rate(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Trials with an injected fault that recovered, of all of them."""
    return rate_check(threshold, evidence.with_fault, recovered, RECOVERY_WORDS)


def rate_check(
    threshold: Threshold, slots: Sequence[GateSlot], decide: Decide, words: RateWords
) -> Check:
    """A rate that must be at least the limit, by its estimate or its lower bound.

    Estimate: met if passed / run is enough, not met if (passed + open) / run is not. Bound: met if
    the one-sided 95 % lower bound of passed of run is enough, not met if the upper one of (passed +
    open) of run is not. No trial: cannot be told. One trial: its own rate, and bounds so wide that
    they seldom tell. All passed: a rate of 1, and a lower bound of 0.05^(1/n).
    """
    decided = decided_by(slots, decide)
    counts = decided.counts
    if not has_come(slots):
        return Check(
            threshold,
            CheckResult.CANNOT_TELL,
            None,
            _nothing_sentence(counts),
            counts,
            counts.range,
            settles=words.nothing,
            n_more=_needed(threshold, Counts(0, 0, 0)) or None,
        )
    result = _result_of(threshold, counts)
    is_open = result is CheckResult.CANNOT_TELL
    return Check(
        threshold,
        result,
        counts.rate,
        _sentence(threshold, decided, words),
        counts,
        counts.range,
        _interval_of(threshold, counts),
        _settles(threshold, decided) if is_open else "",
        (_needed(threshold, counts) or None) if is_open else None,
        task_details(decided, words.verb),
        decided.first_trials(is_open_first=is_open),
    )


def _nothing_sentence(counts: Counts) -> str:
    if counts.run:
        return f"None of {counted(counts.run, 'declared trial')} has come."
    return "No trial has come."


def _limit(threshold: Threshold) -> Fraction:
    return threshold.limit if threshold.limit is not None else Fraction(0)


def _result_of(threshold: Threshold, counts: Counts) -> CheckResult:
    limit = _limit(threshold)
    best = counts.passed + counts.unknown
    if threshold.decided_by is DecidedBy.BOUND:
        is_met = lower_at_least(counts.passed, counts.run, limit)
        is_missed = upper_below(best, counts.run, limit)
    else:
        is_met = Fraction(counts.passed, counts.run) >= limit
        is_missed = Fraction(best, counts.run) < limit
    if is_met:
        return CheckResult.MET
    return CheckResult.NOT_MET if is_missed else CheckResult.CANNOT_TELL


def _interval_of(threshold: Threshold, counts: Counts) -> Interval | None:
    """The deciding bounds, from the bad end to the good end; else the two-sided one of the rate."""
    if threshold.decided_by is DecidedBy.ESTIMATE:
        return clopper_pearson(counts.passed, counts.graded)
    low = lower_bound(counts.passed, counts.run)
    high = upper_bound(counts.passed + counts.unknown, counts.run)
    return None if low is None or high is None else Interval(low, high)


def _sentence(threshold: Threshold, decided: Decided, words: RateWords) -> str:
    counts, limit = decided.counts, _limit(threshold)
    rate = f": {percent(counts.rate, [limit])}" if counts.graded else ""
    graded = counted(counts.graded, "graded trial")
    said = [f"{counts.passed:,} of {graded} {words.verb}, of {counts.run:,} run{rate}."]
    if decided.open and counts.range is not None:
        said.append(
            f"{open_trials(decided.open)} ({open_text(decided.open, words.unchecked)}): between "
            f"{percent(counts.range.low, [limit])} and {percent(counts.range.high, [limit])} once "
            f"{'it is' if len(decided.open) == 1 else 'they are'} decided."
        )
    if threshold.decided_by is DecidedBy.BOUND:
        said.append(_bound_sentence(counts, limit))
    return " ".join(said)


def _bound_sentence(counts: Counts, limit: Fraction) -> str:
    low = lower_bound(counts.passed, counts.run)
    shown = percent(None if low is None else Fraction(low), [limit])
    failed = ", every open trial counted as failed" if counts.unknown else ""
    return f"With 95 % confidence the true rate is at least {shown}{failed}."


def _needed(threshold: Threshold, counts: Counts) -> int | None:
    """Further trials, all passing, that bring the bound once open ones pass; None for no number.

    An estimate needs none: its open trials decide it.
    """
    if threshold.decided_by is DecidedBy.ESTIMATE:
        return 0
    best, limit = counts.passed + counts.unknown, _limit(threshold)
    return fewest_more(lambda more: lower_at_least(best + more, counts.run + more, limit))


def _must_pass(threshold: Threshold, counts: Counts) -> int:
    """The fewest of the open trials that have to pass, where it is met if all of them do."""
    limit = _limit(threshold)
    if threshold.decided_by is DecidedBy.ESTIMATE:
        return ceil(limit * counts.run) - counts.passed
    return next(
        passing
        for passing in range(counts.unknown + 1)
        if lower_at_least(counts.passed + passing, counts.run, limit)
    )


def _settles(threshold: Threshold, decided: Decided) -> str:
    counts, level = decided.counts, exact_percent(_limit(threshold))
    needed = _needed(threshold, counts)
    if needed is None:
        return f"No number of trials that could be run brings the bound to {level}."
    if needed == 0:
        return _settled_by_open(threshold, decided)
    noun = "more passing trial brings" if needed == 1 else "more passing trials bring"
    more = f"{needed:,} {noun} the bound to {level}"
    if not decided.open:
        return f"{more}."
    return f"Once {open_trials(decided.open)} {_pass(decided)} too, {more}."


def _pass(decided: Decided) -> str:
    return "has passed" if len(decided.open) == 1 else "have passed"


def _settled_by_open(threshold: Threshold, decided: Decided) -> str:
    n, needed = len(decided.open), _must_pass(threshold, decided.counts)
    said = (
        f"{open_trials(decided.open)} can still decide it: it is met if at least {needed:,} of "
        f"them {'passes' if needed == 1 else 'pass'}"
    )
    if threshold.decided_by is DecidedBy.BOUND:
        return f"{said}."
    n_failing = n - needed + 1
    return f"{said}, and not met if {n_failing:,} of them {'fails' if n_failing == 1 else 'fail'}."
