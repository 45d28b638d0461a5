"""Checks of how much evidence there is, and how much of it is open. They are never *not met*.

Work can still settle each of them: a count too high falls, and one too low rises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from reviews.core.estimators import Counts
from reviews.core.gate.evidence import (
    OrderedEvidence,
    bounded,
    by_unit,
    has_come,
    trials_of,
    unit_names,
)
from reviews.core.gate.model import Check, CheckDetail, GateSlot, Threshold
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import counted, number_or_none
from traces.core.canonical import natural_key

_HELD = frozenset({"pass", "fail", "unresolved"})
_NO_TRIAL = "No trial has come: run the tasks of this tier."


def unresolved(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Trials that are unresolved: at most the limit. No trial: cannot be told."""
    return _at_most(
        threshold,
        evidence,
        "unresolved",
        lambda n, total: (
            f"{number_or_none(n)} of {counted(total, 'trial')} {_is(n or total)} unresolved."
        ),
        lambda n: f"{counted(n, 'unresolved trial')} {'has' if n == 1 else 'have'} to be resolved",
    )


def harness_errors(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Slots whose last attempt was lost as the harness broke: at most the limit."""
    return _at_most(
        threshold,
        evidence,
        "harness_error",
        lambda n, total: (
            f"The harness broke in {number_or_none(n).lower()} of {counted(total, 'trial')}."
        ),
        lambda n: f"{counted(n, 'trial')} {'has' if n == 1 else 'have'} to be run again",
    )


def _at_most(
    threshold: Threshold,
    evidence: OrderedEvidence,
    value: str,
    sentence: Callable[[int, int], str],
    work: Callable[[int], str],
) -> Check:
    slots = evidence.counted
    found = [slot for slot in slots if slot.value == value]
    most = int(threshold.limit if threshold.limit is not None else 0)
    n_missing = sum(slot.value == "missing" for slot in slots)
    n_come = len(slots) - n_missing
    counts = Counts(n_come - len(found), n_come, len(slots), n_missing)
    if not n_come:
        return Check(
            threshold,
            CheckResult.CANNOT_TELL,
            None,
            "No trial has come.",
            counts,
            settles=_NO_TRIAL,
        )
    is_met = len(found) <= most
    over = len(found) - most
    return Check(
        threshold,
        CheckResult.MET if is_met else CheckResult.CANNOT_TELL,
        Fraction(len(found)),
        sentence(len(found), n_come),
        counts,
        settles="" if is_met else _settles(work(over), len(found) - over),
        details=_by_task(found),
        trials=trials_of(found),
    )


def _settles(work: str, n_let_through: int) -> str:
    if n_let_through:
        return f"{work}; {n_let_through:,} may stay as {'it is' if n_let_through == 1 else 'they are'}."
    return f"{work}."


def _by_task(found: Sequence[GateSlot]) -> tuple[CheckDetail, ...]:
    units = by_unit(found)
    names = unit_names(units)
    most = sorted(units, key=lambda unit: (-len(units[unit]), natural_key(unit[0]), unit))
    return bounded([CheckDetail(names[unit], counted(len(units[unit]), "trial")) for unit in most])


def _held(evidence: OrderedEvidence) -> list[GateSlot]:
    """Slots whose trial came and whose harness held."""
    return [slot for slot in evidence.counted if slot.value in _HELD]


def fewest_trials(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Trials whose harness held: at least the limit."""
    return _at_least(threshold, evidence, len(_held(evidence)), "trial", "trial")


def fewest_tasks(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Tasks with at least one trial whose harness held: at least the limit."""
    n = len({slot.task for slot in _held(evidence)})
    return _at_least(threshold, evidence, n, "task", "task")


def fewest_held_out(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """The same among tasks of split held-out."""
    n = len({slot.task for slot in _held(evidence) if slot.split == "held_out"})
    return _at_least(threshold, evidence, n, "held-out task", "task")


def _at_least(
    threshold: Threshold, evidence: OrderedEvidence, n: int, noun: str, more: str
) -> Check:
    slots = evidence.counted
    least = int(threshold.limit if threshold.limit is not None else 0)
    is_met = n >= least and has_come(slots)
    lacking = max(least - n, 1)
    each = "" if more == "trial" else ", with one trial of each at least"
    return Check(
        threshold,
        CheckResult.MET if is_met else CheckResult.CANNOT_TELL,
        Fraction(n),
        f"{counted(n, noun)} {'was' if n == 1 else 'were'} tried without the harness breaking."
        if more == "task"
        else f"{counted(n, noun)} ran without the harness breaking, of {len(slots):,} run.",
        settles=""
        if is_met
        else f"{lacking:,} more {noun if lacking == 1 else noun + 's'} {_is(lacking)} needed{each}.",
        n_more=None if is_met else lacking,
    )


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
