"""The checks of a gate as rows: threshold, figure, bar, counts and result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from uuid import UUID

from evalsite.web.gate_words import (
    GATES,
    RATES,
    RESULTS,
    counts_words,
    deciding_bound,
    dollar_words,
    figure_words,
    limit_words,
    measured_words,
    section_figures,
    section_title,
    thresholds_words,
)
from reviews.core.gate.model import Check, CheckKind, DecidedBy, Gate, Section, Threshold
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import check_name, threshold_sentence, threshold_text
from traces.web.addresses import Addresses, address
from traces.web.asking import uuid_of
from traces.web.pages import Link
from traces.web.pages.gates import GateBar, GateCheck, GateDetail, GateSection

LISTED_DETAILS = 12
LISTED_TRIALS = 8
_COUNTED = frozenset({CheckKind.PROHIBITED, CheckKind.UNRESOLVED, CheckKind.HARNESS_ERRORS})
_FEWEST = frozenset({CheckKind.FEWEST_TASKS, CheckKind.FEWEST_TRIALS, CheckKind.FEWEST_HELD_OUT})
_PLANNED = RATES | {CheckKind.FEWEST_TRIALS}


@dataclass(frozen=True, slots=True)
class GateView:
    """What the rows of a gate need beside the gate."""

    at: Addresses
    release: UUID
    begun_at: datetime | None
    trial_names: Mapping[str, str]  # by UUID; a trial without one reads "trial"
    n_details: int = LISTED_DETAILS
    n_trials: int = LISTED_TRIALS


def gate_sections(gate: Gate, view: GateView) -> tuple[GateSection, ...]:
    """The sections of a gate in their order."""
    return tuple(gate_section(each, n, view) for n, each in enumerate(gate.sections, start=1))


def gate_section(section: Section, n: int, view: GateView) -> GateSection:
    """One tier of a gate. `n` makes its ids unique on the page."""
    tier = uuid_of(section.tier_uuid)
    url = ""
    if tier and section.threshold_set:
        url = view.at.threshold_version(tier, section.threshold_set.number)
    return GateSection(
        id=f"tier-{n}",
        title=section_title(section),
        state=GATES[section.state],
        sentence=section.sentence,
        figures=section_figures(section),
        thresholds=thresholds_words(section, view.begun_at),
        thresholds_url=url,
        checks=tuple(
            gate_check_row(check, f"check-{n}-{place}", tier, view)
            for place, check in enumerate(section.checks, start=1)
        ),
    )


def gate_check_row(check: Check, identity: str, tier: UUID | None, view: GateView) -> GateCheck:
    """One check of a tier."""
    counts, words = counts_words(check)
    threshold = check.threshold
    return GateCheck(
        id=identity,
        name=check_name(threshold),
        threshold=threshold_text(threshold),
        measured=measured_words(check),
        counts=counts,
        counts_words=words,
        result=RESULTS[check.result],
        decided_by=limit_words(threshold),
        asks=threshold_sentence(threshold),
        sentence=check.sentence,
        bar=gate_bar(check),
        settles=check.settles,
        plan=_plan(check, tier, view),
        details=tuple(
            GateDetail(each.label, each.text, RESULTS[each.result] if each.result else None)
            for each in check.details[: view.n_details]
        ),
        n_more_details=max(len(check.details) - view.n_details, 0),
        trials=tuple(_trial(each, view) for each in check.trials[: view.n_trials]),
        evidence=Link(
            "The trials behind it", view.at.gate_check(view.release, tier, threshold.kind.value)
        )
        if tier
        else None,
    )


def _trial(identity: str, view: GateView) -> Link:
    uuid = uuid_of(identity)
    return Link(view.trial_names.get(identity, "trial"), view.at.trial(uuid) if uuid else "")


def _plan(check: Check, tier: UUID | None, view: GateView) -> Link | None:
    if check.result is not CheckResult.CANNOT_TELL or tier is None:
        return None
    if check.n_more is None or check.threshold.kind not in _PLANNED:
        return None
    href = address(view.at.sample_plan, {"tier": tier, "release": view.release})
    return Link("Plan the sample", href)


# --- the bar


def gate_bar(check: Check) -> GateBar | None:
    """The range and the deciding interval held against the threshold; None for what is no number."""
    threshold = check.threshold
    if threshold.limit is None or threshold.kind is CheckKind.REGRESSION:
        return None
    scale = _Scale.of(check, threshold.limit)
    found, interval = check.range, check.interval
    bound = deciding_bound(check)
    value = bound if bound is not None else check.measured
    return GateBar(
        words=_bar_words(check),
        state=RESULTS[check.result].state,
        limit=scale.place(threshold.limit),
        low=scale.place(found.low) if found else "",
        width=scale.width(found.low, found.high) if found else "",
        value=scale.place(value) if value is not None else "",
        whisker_low=scale.place(Fraction(interval.low)) if interval else "",
        whisker_width=scale.width(Fraction(interval.low), Fraction(interval.high))
        if interval
        else "",
        decides=threshold.decided_by is DecidedBy.BOUND,
        from_words=scale.end(threshold.kind, scale.low),
        to_words=scale.end(threshold.kind, scale.high),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """What the ends of a bar stand for: near the figures for rates, from 0 for all else."""

    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, check: Check, limit: Fraction) -> _Scale:
        points = [limit]
        points += [check.measured] if check.measured is not None else []
        points += [check.range.low, check.range.high] if check.range else []
        if check.interval:
            points += [Fraction(check.interval.low), Fraction(check.interval.high)]
        low, high = min(points), max(points)
        if check.threshold.kind not in RATES:
            return cls(Fraction(0), max(high * 5 / 4, Fraction(1, 100)) if high else Fraction(1))
        tenth = Fraction(1, 10 if high - low > Fraction(1, 20) else 100)
        floor = low // tenth * tenth
        ceiling = -(-high // tenth) * tenth
        floor -= tenth if low - floor < tenth / 4 else 0
        ceiling += tenth if ceiling - high < tenth / 4 else 0
        return cls(max(floor, Fraction(0)), min(ceiling, Fraction(1)))

    def place(self, value: Fraction) -> str:
        """Where a value stands, in percent of the width."""
        inside = min(max(value, self.low), self.high)
        return f"{float(100 * (inside - self.low) / (self.high - self.low)):.1f}"

    def width(self, low: Fraction, high: Fraction) -> str:
        """How wide a stretch is drawn: a point still shows."""
        wide = min(high, self.high) - max(low, self.low)
        return f"{max(float(100 * wide / (self.high - self.low)), 0.8):.1f}"

    @staticmethod
    def end(kind: CheckKind, value: Fraction) -> str:
        """What an end of the bar stands for."""
        if kind in RATES:
            return f"{round(value * 100)} %"
        if kind is CheckKind.COST_P95:
            return dollar_words(value) if value else "$0"
        return f"{int(value):,}"


def _bar_words(check: Check) -> str:
    threshold = check.threshold
    say: Callable[[Fraction], str] = lambda value: figure_words(  # noqa: E731 - one use of many
        threshold.kind, value, threshold.limit
    )
    words = [f"Threshold {threshold_text(threshold)}"]
    if check.measured is not None:
        words.append(f"measured {say(check.measured)}")
    if check.range and check.range.low != check.range.high:
        words.append(f"range {say(check.range.low)} to {say(check.range.high)}")
    if check.interval:
        ends = f"{say(Fraction(check.interval.low))} to {say(Fraction(check.interval.high))}"
        decides = threshold.decided_by is DecidedBy.BOUND
        words.append(f"{'bounds that decide' if decides else '95 % interval'} {ends}")
    return "; ".join(words)


def threshold_lines(thresholds: tuple[Threshold, ...]) -> tuple[str, ...]:
    """Thresholds in one line each."""
    return tuple(f"{check_name(each)} {threshold_text(each)}" for each in thresholds)
