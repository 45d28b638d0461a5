"""The check that every declared trial is there, and that no run was left out by one person alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from reviews.core.estimators import Counts
from reviews.core.gate.evidence import OrderedEvidence, bounded, by_unit, has_come, unit_names
from reviews.core.gate.model import (
    Check,
    CheckDetail,
    GateSlot,
    RunOfRelease,
    Threshold,
)
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import counted, listed, shortened

_LONGEST_REASON = 500


def declared(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Missing declared trials outside split tuning: none may be.

    A run left out without a second owner's confirmation makes it not met, whatever else is there.
    Where no run was declared it does not apply. No trial: cannot be told.
    """
    alone = [run for run in evidence.runs if run.is_left_out and not run.is_confirmed]
    slots = [slot for slot in evidence.slots if slot.split != "tuning"]
    missing = [slot for slot in slots if slot.value == "missing"]
    n_come = len(slots) - len(missing)
    counts = Counts(n_come, n_come, len(slots), len(missing))
    details = bounded([*map(_run_detail, _left_out(evidence)), *_missing_details(missing)])
    n_declared = sum(
        run.declared_trials is not None and not run.is_left_out for run in evidence.runs
    )
    measured: Fraction | None = Fraction(len(missing))
    settles, n_more = "", None
    if alone:
        result = CheckResult.NOT_MET
        sentence = (
            f"{listed([shortened(run.name) for run in alone[:5]])} {'was' if len(alone) == 1 else 'were'} left "
            f"out without a second owner's confirmation{_and_more(len(alone) - 5)}."
        )
    elif not n_declared and not missing:
        result, measured = CheckResult.DOES_NOT_APPLY, None
        sentence = "No run said beforehand how many trials it would have, so none can be missing."
    elif not has_come(slots):
        result, measured = CheckResult.CANNOT_TELL, None
        sentence = "No trial has come."
        settles = "No trial has come: run the tasks of this tier."
        n_more = len(missing) or None
    elif missing:
        result = CheckResult.CANNOT_TELL
        sentence = f"{len(missing):,} of {counted(len(slots), 'trial')} did not come."
        noun = "declared trial is" if len(missing) == 1 else "declared trials are"
        settles, n_more = f"{len(missing):,} {noun} still to come.", len(missing)
    else:
        result = CheckResult.MET
        sentence = f"Every declared trial is there: {counted(n_come, 'trial')}."
    return Check(
        threshold,
        result,
        measured,
        sentence,
        counts,
        settles=settles,
        n_more=n_more,
        details=details,
    )


def _left_out(evidence: OrderedEvidence) -> list[RunOfRelease]:
    left_out = [run for run in evidence.runs if run.is_left_out]
    return sorted(left_out, key=lambda run: (run.begun_at, run.name, run.uuid))


def _run_detail(run: RunOfRelease) -> CheckDetail:
    confirmed = "confirmed by a second owner" if run.is_confirmed else "not confirmed"
    return CheckDetail(
        shortened(run.name),
        f"left out, {confirmed}: {shortened(run.left_out_reason, _LONGEST_REASON)}",
        CheckResult.MET if run.is_confirmed else CheckResult.NOT_MET,
    )


def _missing_details(missing: Sequence[GateSlot]) -> list[CheckDetail]:
    units = by_unit(missing)
    names = unit_names(units)
    n_missing = Counter({unit: len(units[unit]) for unit in units})
    return [
        CheckDetail(names[unit], f"{counted(n, 'trial')} missing", CheckResult.CANNOT_TELL)
        for unit, n in n_missing.items()
    ]


def _and_more(n: int) -> str:
    return f", and {n:,} more" if n > 0 else ""
