"""Gates, checks and signatures in words and shapes, the same on every page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

from evalsite.common.formatting import NOTHING, counted, money_text, time_text
from reviews.core.estimators import percent
from reviews.core.gate.model import Check, CheckKind, DecidedBy, Gate, Section, Threshold
from reviews.core.gate.states import CheckResult, GateState, Mark, Meaning, SignOffState
from reviews.core.gate.threshold_words import check_name, exact_text, listed
from traces.web.pages import Badge

RESULTS = {
    CheckResult.MET: Badge("met", "pass"),
    CheckResult.NOT_MET: Badge("not met", "fail"),
    CheckResult.CANNOT_TELL: Badge("cannot tell", "unresolved"),
    CheckResult.DOES_NOT_APPLY: Badge("does not apply"),
}
GATES = {
    GateState.BLOCKED: Badge("blocked", "fail"),
    GateState.WAITING: Badge("waiting for evidence", "unresolved"),
    GateState.READY: Badge("ready", "pass"),
}
NOT_COMPUTED = Badge("not computed", "waiting")
SIGN_OFFS = {
    SignOffState.NONE: Badge("not signed", "waiting"),
    SignOffState.PARTLY: Badge("partly signed", "working"),
    SignOffState.APPROVED: Badge("approved", "pass"),
    SignOffState.WAIVER: Badge("approved with waiver", "pass"),
    SignOffState.REJECTED: Badge("rejected", "fail"),
    SignOffState.VOID: Badge("void"),
}
MEANINGS = {
    Meaning.APPROVED: Badge("approved", "pass"),
    Meaning.WAIVER: Badge("approved with waiver", "pass"),
    Meaning.REJECTED: Badge("rejected", "fail"),
}
MARKS = {
    Mark.STALE: Badge("stale", "unresolved"),
    Mark.EXPIRED: Badge("expired", "unresolved"),
}
MARK_SENTENCES = {
    Mark.STALE: "The evidence is another than the one that was signed.",
    Mark.EXPIRED: "The last day that it was signed for has passed.",
}
NONE_IN_FORCE = (
    "No thresholds were in force when its first run began. Until an owner re-evaluates it under "
    "later ones, nothing can be told."
)
SEPARATION = "The people who built this release cannot change them or sign."
RATES = frozenset(
    {
        CheckKind.OUTCOME_RATE,
        CheckKind.RULE_CLEAN_RATE,
        CheckKind.PASS_HAT_K,
        CheckKind.PROHIBITED_RATE,
        CheckKind.RECOVERY_RATE,
    }
)


def gate_title(release: str, gate: Gate | None) -> str:
    """The first words of the page: "Release 2.4.0 is blocked"."""
    if gate is None:
        return f"Release {release} has no gate yet"
    return f"Release {release} is {GATES[gate.state].label}"


def gate_sentence(release: str, gate: Gate) -> str:
    """What keeps a release from being ready; the title said what it is."""
    start = f"Release {release} is "
    said = gate.sentence.removeprefix(start)
    rest = said.partition(": ")[2] if said != gate.sentence else said
    return rest[:1].upper() + rest[1:] if rest else gate.sentence


def open_check_badges(gate: Gate) -> tuple[tuple[str, Badge], ...]:
    """The checks that keep a gate from being ready, those that are not met first.

    Each with the id of its row.
    """
    several = len(gate.sections) > 1
    found = [
        (
            f"check-{n}-{place}",
            f"{check_name(check.threshold)}{f', {section.tier}' if several and section.tier else ''}",
            check.result,
        )
        for n, section in enumerate(gate.sections, start=1)
        for place, check in enumerate(section.checks, start=1)
    ]
    return tuple(
        (row, Badge(f"{name}: {RESULTS[wanted].label}", RESULTS[wanted].state))
        for wanted in (CheckResult.NOT_MET, CheckResult.CANNOT_TELL)
        for row, name, result in found
        if result is wanted
    )


def results_words(gate: Gate) -> str:
    """How many checks come to what: "9 met, 1 not met, 2 cannot tell"."""
    found = [check.result for section in gate.sections for check in section.checks]
    return ", ".join(
        f"{found.count(result):,} {_result_words(result, found.count(result))}"
        for result in CheckResult
        if result in found
    )


def _result_words(result: CheckResult, n: int) -> str:
    if result is CheckResult.DOES_NOT_APPLY and n != 1:
        return "do not apply"
    return RESULTS[result].label


def limit_words(threshold: Threshold) -> str:
    """How a check is decided; "" where there is no choice."""
    if threshold.kind not in RATES or threshold.kind is CheckKind.PASS_HAT_K:
        return ""
    return "by the bound" if threshold.decided_by is DecidedBy.BOUND else "by the estimate"


def figure_words(kind: CheckKind, value: Fraction, limit: Fraction | None = None) -> str:
    """A figure of a check, printed on the side of the threshold on which it is."""
    if kind in RATES:
        return percent(value, [limit] if limit is not None else [])
    if kind is CheckKind.COST_P95:
        return dollar_words(value, limit)
    if kind is CheckKind.REGRESSION:
        return f"{_decimal(value * 100)} points"
    return f"{_decimal(value)}"


def dollar_words(value: Fraction, limit: Fraction | None = None) -> str:
    """US dollars for reading; exact where rounding would cross the limit."""
    amount = Decimal(value.numerator) / Decimal(value.denominator)
    text = money_text(amount)
    shown = Fraction(Decimal(text.strip("$").replace(",", "") or "0"))
    if limit is not None and (shown > limit, shown < limit) != (value > limit, value < limit):
        return f"${exact_text(value)}"
    return text


def _decimal(value: Fraction) -> str:
    if value.denominator == 1:
        return f"{value.numerator:,}"
    return f"{float(value):,.2f}".rstrip("0").rstrip(".")


def measured_words(check: Check) -> str:
    """The figure that is held against the threshold; where a bound decides, the bound."""
    threshold = check.threshold
    bound = deciding_bound(check)
    if bound is not None:
        return figure_words(threshold.kind, bound, threshold.limit)
    if check.measured is not None and threshold.kind is CheckKind.DECLARED:
        return f"{int(check.measured):,} missing"
    if check.measured is not None and threshold.kind is CheckKind.JUDGE_CALIBRATION:
        return counted(int(check.measured), "judge")
    if check.measured is None:
        return "none" if check.result is CheckResult.CANNOT_TELL else NOTHING
    return figure_words(threshold.kind, check.measured, threshold.limit)


def deciding_bound(check: Check) -> Fraction | None:
    """The bound at the bad end, where a bound decides."""
    if check.threshold.decided_by is not DecidedBy.BOUND or check.interval is None:
        return None
    if check.threshold.kind is CheckKind.PROHIBITED_RATE:
        return Fraction(check.interval.high)
    return Fraction(check.interval.low)


_COUNTS = {
    CheckKind.OUTCOME_RATE: "passed / graded / run",
    CheckKind.RULE_CLEAN_RATE: "rule-clean / graded / run",
    CheckKind.RECOVERY_RATE: "recovered / graded / run",
    CheckKind.PROHIBITED: "clean / known / run",
    CheckKind.PROHIBITED_RATE: "clean / known / run",
    CheckKind.COST_P95: "known / run",
    CheckKind.PASS_HAT_K: "passed / graded / run",
}


def counts_words(check: Check) -> tuple[str, str]:
    """Passed / graded / run of a check, and what they are counts of; "" where there are none."""
    counts = check.counts
    if counts is None:
        return "", ""
    words = _COUNTS.get(check.threshold.kind, "passed / graded / run")
    if check.threshold.kind in (CheckKind.UNRESOLVED, CheckKind.HARNESS_ERRORS):
        return f"of {counts.run:,}", "trials"
    if check.threshold.kind is CheckKind.DECLARED:
        return f"{counts.run - counts.missing:,} of {counts.run:,}", "trials came"
    if check.threshold.kind is CheckKind.COST_P95:
        return f"{counts.graded:,} / {counts.run:,}", words
    return f"{counts.passed:,} / {counts.graded:,} / {counts.run:,}", words


def section_title(section: Section) -> str:
    """What a section is called."""
    return f"Tier {section.tier}" if section.tier else "No tier"


def section_figures(section: Section) -> str:
    """How much evidence a section has."""
    return f"{counted(section.n_slots, 'trial')} of {counted(section.n_tasks, 'task')}"


def instant_of(text: str) -> datetime | None:
    """An instant of a document; None where there is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def thresholds_words(section: Section, begun_at: datetime | None) -> str:
    """Which thresholds a section applies, since when, and who set them."""
    found = section.threshold_set
    if found is None:
        return "No thresholds were in force for these tasks, so nothing can be told of them."
    since = instant_of(found.in_force_from)
    words = (
        f"Thresholds version {found.number}, set by {found.by}, in force since {time_text(since)}"
    )
    if begun_at is None or since is None:
        return f"{words}."
    when = "before" if since <= begun_at else "after"
    return f"{words}, {when} the first run began."


def rules_words(gate: Gate, begun_at: datetime | None) -> tuple[str, ...]:
    """Which thresholds a gate applies, in short, and who cannot change them."""
    named = [section for section in gate.sections if section.threshold_set]
    if not named:
        return (NONE_IN_FORCE,)
    if len(named) == 1:
        name = f"{section_title(named[0])}: " if named[0].tier else ""
        return (f"{name}{thresholds_words(named[0], begun_at)}", SEPARATION)
    sets = [section.threshold_set for section in named if section.threshold_set]
    versions = listed([f"{s.tier} version {t.number}" for s, t in zip(named, sets, strict=True)])
    people = listed(list(dict.fromkeys(each.by for each in sets)))
    since = max((at for each in sets if (at := instant_of(each.in_force_from))), default=None)
    words = f"Thresholds: {versions}, set by {people}"
    if since is not None and begun_at is not None:
        when = "before" if since <= begun_at else "not all of them before"
        words += f", in force {when} the first run began on {time_text(begun_at)}"
    return (f"{words}.", SEPARATION)


def release_label(name: str) -> str:
    """A release as pages name it."""
    return name or "no release"


def mark_badges(marks: Iterable[Mark]) -> tuple[Badge, ...]:
    """Stale and expired as badges."""
    return tuple(MARKS[mark] for mark in marks)


def waived_words(tier: str, kind: str, gate: Gate | None) -> str:
    """The check that a waiver names, as the gate calls it."""
    if not kind:
        return ""
    sections: Sequence[Section] = gate.sections if gate else ()
    names = [
        check_name(check.threshold)
        for section in sections
        for check in section.checks
        if section.tier == tier and check.threshold.kind == kind
    ]
    name = names[0] if names else kind.replace("_", " ")
    return f"{name}, of tier {tier}" if tier else name
