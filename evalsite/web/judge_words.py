"""Judges in words: how they are calibrated, and what reviewers decided where graders disagree."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction

from evalsite.common.formatting import NOTHING, count_text, counted
from reviews.core.calibration import CalibrationFigures, CalibrationStatus, ErrorRate, Needs
from reviews.core.disposition import AdjudicationRuling
from reviews.core.estimators import percent
from reviews.selectors.judge_states import JudgeState
from reviews.selectors.judges import SaidCounts, StoredCalibration
from traces.core.records import VerdictValue

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

STATUS_STATES = {
    CalibrationStatus.EXPLORATORY: "unresolved",
    CalibrationStatus.CALIBRATED: "pass",
    CalibrationStatus.STALE: "waiting",
    CalibrationStatus.FAILED: "fail",
}
"""The shape and colour of each status; its word stands beside."""


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


def votes_words(stored: StoredCalibration | None, *, now: datetime) -> str:
    """Whether the verdicts of a judge vote now, as a sentence."""
    if stored is None or stored.status is not CalibrationStatus.CALIBRATED:
        return "Its verdicts do not vote."
    until = date_text(stored.valid_until)
    if stored.status_at(now) is CalibrationStatus.CALIBRATED:
        return f"Its verdicts vote until {until}."
    return f"What it said until {until} votes; what it says since does not."


def said_words(said: SaidCounts) -> str:
    """How often a judge gave each verdict: "900 pass, 300 fail"."""
    return ", ".join(
        f"{count_text(said.by_value[value])} {value.value}"
        for value in VerdictValue
        if said.by_value.get(value)
    )


def labels_words(figures: CalibrationFigures) -> str:
    """How many labels of how many people: "120 labels by 3 people"."""
    return (
        f"{counted(figures.n_labels, 'label')} by {counted(figures.n_people, 'person', 'people')}"
    )


def errors_words(errors: ErrorRate, side: str) -> str:
    """How often it was wrong: "2 of 60 items that people failed"."""
    return f"{count_text(errors.n_errors)} of {counted(errors.n, 'item')} that people {side}"


def needs_words(needs: Needs) -> tuple[str, ...]:
    """What would settle it, if the judge is right on all of it."""
    wanted = (
        (needs.people, counted(needs.people, "more person", "more people") + " to label the items"),
        (needs.items, counted(needs.items, "more item")),
        (needs.failed, counted(needs.failed, "more item") + " that people fail"),
        (needs.passed, counted(needs.passed, "more item") + " that people pass"),
    )
    return tuple(words for n, words in wanted if n)


def bound_text(bound: float, limit: Fraction) -> str:
    """A bound, never on the other side of its limit than it is: "6.0%"."""
    return percent(Fraction(bound), [limit]).replace(" %", "%")


def tail_of(sentence: str) -> str:
    """A sentence as the end of another: without its capital and its full stop."""
    plain = sentence.strip().removesuffix(".")
    head, rest = plain[:1], plain[1:]
    return f"{head if rest[:1].isupper() else head.lower()}{rest}"
