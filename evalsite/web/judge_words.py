"""Judges in words: how they are calibrated, and what reviewers decided where graders disagree."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from evalsite.common.formatting import NOTHING, counted
from reviews.core.calibration import CalibrationStatus
from reviews.core.disposition import AdjudicationRuling
from reviews.core.estimators import percent
from reviews.selectors.judge_states import JudgeState

NOT_CALIBRATED = "the judge is not calibrated for this criterion"
_GIVEN_LATE = "it was given after the judge's calibration ended"
_NOT_COUNTING = {
    CalibrationStatus.EXPLORATORY: NOT_CALIBRATED,
    CalibrationStatus.CALIBRATED: _GIVEN_LATE,
    CalibrationStatus.STALE: "the judge's calibration is stale",
    CalibrationStatus.FAILED: "the judge failed its calibration for this criterion",
}
RULINGS = {
    AdjudicationRuling.PASS: ("pass", "pass"),
    AdjudicationRuling.FAIL: ("fail", "fail"),
    AdjudicationRuling.INSUFFICIENT_EVIDENCE: ("unresolved", "insufficient evidence"),
    AdjudicationRuling.RUBRIC_UNCLEAR: ("unresolved", "rubric unclear"),
}
"""The state and the words of each ruling."""


def date_text(at: datetime | None) -> str:
    """The day of an instant in UTC: "2026-11-30"; "" when there is none."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d}"


def why_not_counting(state: JudgeState | None) -> str:
    """Why the verdict of a judge does not count."""
    return NOT_CALIBRATED if state is None else _NOT_COUNTING[state.status]


def state_words(state: JudgeState | None, *, now: datetime) -> str:
    """How a judge stands on a criterion, in one short line."""
    if state is None:
        return "not calibrated: no label holds it against people yet"
    why = tail_of(state.why)
    match state.status_at(now):
        case CalibrationStatus.EXPLORATORY:
            return f"not calibrated: {why}"
        case CalibrationStatus.CALIBRATED:
            return f"calibrated until {date_text(state.valid_until)}, {_bound_words(state)}"
        case CalibrationStatus.FAILED:
            return f"failed: {why}"
        case CalibrationStatus.STALE if state.status is CalibrationStatus.CALIBRATED:
            return f"stale: its calibration ended on {date_text(state.valid_until)}"
        case CalibrationStatus.STALE:
            return f"stale: {why}"


def _bound_words(state: JudgeState) -> str:
    figures = state.figures
    bound = figures.held.false_pass.bound
    items = counted(figures.held.n, "item")
    return f"false-pass bound {NOTHING if bound is None else rate_text(bound)} on {items}"


def rate_text(rate: Fraction | float) -> str:
    """A rate or bound to a tenth of a percent: "6.0%"."""
    return percent(Fraction(rate)).replace(" %", "%")


def tail_of(sentence: str) -> str:
    """A sentence as the end of another: without its capital and its full stop."""
    plain = sentence.strip().removesuffix(".")
    head, rest = plain[:1], plain[1:]
    return f"{head if rest[:1].isupper() else head.lower()}{rest}"
