"""The check of judges: those whose votes decide were held against people, within the tier's limits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from reviews.core.calibration import CalibrationFigures, ErrorRate, Limits
from reviews.core.estimators import percent
from reviews.core.gate.bounds import fewest_more, lower_above, upper_at_most
from reviews.core.gate.evidence import OrderedEvidence, bounded
from reviews.core.gate.model import Check, CheckDetail, JudgeThatDecides, Threshold
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import counted, limits_of, listed, shortened
from traces.core.canonical import natural_key


def judge_calibration(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Every judge version that decides, on each criterion, from the figures that let it decide.

    Met if the one-sided 95 % upper bounds of false passes and false failures are within their
    limits, over enough items and people; not met if a lower bound is above its limit; else it
    cannot be told. Does not apply where no judge's vote decides. A judge without figures, or
    without an item on one side, cannot be told.
    """
    judges = sorted(
        evidence.judges,
        key=lambda judge: (natural_key(judge.judge), natural_key(judge.version), judge.criterion),
    )
    if not judges:
        return Check(
            threshold,
            CheckResult.DOES_NOT_APPLY,
            None,
            "No judge's vote decides a trial here.",
        )
    limits = limits_of(threshold)
    assessed = [_assessed(judge, limits) for judge in judges]
    results = [each.result for each in assessed]
    result = _worst(results)
    n_met = results.count(CheckResult.MET)
    open_ones = [
        f"{each.name} needs {each.needs}"
        for each in assessed
        if each.result is CheckResult.CANNOT_TELL
    ]
    is_open = result is CheckResult.CANNOT_TELL
    return Check(
        threshold,
        result,
        Fraction(n_met),
        f"{n_met:,} of {counted(len(judges), 'judge')} whose votes decide "
        f"{'keeps' if n_met == 1 else 'keep'} to the limits.",
        settles=f"{'; '.join(open_ones[:5])}{_and_more(len(open_ones) - 5)}." if is_open else "",
        details=bounded([CheckDetail(each.name, each.text, each.result) for each in assessed]),
    )


def _and_more(n: int) -> str:
    return f"; and {n:,} more" if n > 0 else ""


def _worst(results: list[CheckResult]) -> CheckResult:
    for result in (CheckResult.NOT_MET, CheckResult.CANNOT_TELL):
        if result in results:
            return result
    return CheckResult.MET


@dataclass(frozen=True, slots=True)
class _Assessed:
    name: str
    result: CheckResult
    text: str
    needs: str = ""


def _assessed(judge: JudgeThatDecides, limits: Limits) -> _Assessed:
    name = " ".join(
        (shortened(judge.judge), shortened(judge.version), "on", shortened(judge.criterion))
    )
    decides = f"decides {counted(judge.n_trials, 'trial')}"
    figures = judge.figures
    if figures is None:
        needs = f"{limits.min_items:,} items labelled by {limits.min_people} people"
        return _Assessed(
            name, CheckResult.CANNOT_TELL, f"{decides}; never held against people", needs
        )
    held = figures.held
    text = (
        f"{decides}; false passes {_rate_text(held.false_pass, limits.false_pass)}, false failures "
        f"{_rate_text(held.false_fail, limits.false_fail)}, over {figures.n_checked:,} items and "
        f"{counted(figures.n_people, 'person', 'people')}"
    )
    sides = ((held.false_pass, limits.false_pass), (held.false_fail, limits.false_fail))
    if any(lower_above(rate.n_errors, rate.n, limit) for rate, limit in sides):
        return _Assessed(name, CheckResult.NOT_MET, text)
    needs = _needs(figures, limits)
    if needs:
        return _Assessed(name, CheckResult.CANNOT_TELL, text, needs)
    return _Assessed(name, CheckResult.MET, text)


def _needs(figures: CalibrationFigures, limits: Limits) -> str:
    """What is lacking, should the judge be right on all further items; "" for nothing."""
    held = figures.held
    lacking = (
        (limits.min_people - figures.n_people, "more person who labels", "more people who label"),
        (limits.min_items - figures.n_checked, "more labelled item", "more labelled items"),
        _lacking(held.false_pass, limits.false_pass, "fail"),
        _lacking(held.false_fail, limits.false_fail, "pass"),
    )
    return listed([counted(n, one, many) for n, one, many in lacking if n > 0])


def _lacking(rate: ErrorRate, limit: Fraction, people: str) -> tuple[int, str, str]:
    n = fewest_more(lambda more: upper_at_most(rate.n_errors, rate.n + more, limit)) or 0
    return (n, f"more item that people {people}", f"more items that people {people}")


def _rate_text(rate: ErrorRate, limit: Fraction) -> str:
    bound = None if rate.bound is None else Fraction(rate.bound)
    return f"{rate.n_errors:,}/{rate.n:,}, at most {percent(bound, [limit])}"
