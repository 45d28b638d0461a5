"""A computed gate as JSON: what is stored, what the API and the command print, and reading it back.

Fractions are text, "num/den", and stand beside a rounded number for readers, which is not read
back. Reading tolerates what is missing, so that older documents can be shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from reviews.core.estimators import Counts, Interval, Range
from reviews.core.gate.model import (
    GATE_VERSION,
    Check,
    CheckDetail,
    CheckKind,
    DecidedBy,
    Gate,
    Section,
    Threshold,
    Thresholds,
    ThresholdSetInForce,
)
from reviews.core.gate.states import CheckResult, GateState
from reviews.core.gate.threshold_words import check_name, threshold_sentence, threshold_text
from reviews.core.gate.thresholds import (
    parse_stored_check,
    parse_thresholds,
    threshold_document,
    thresholds_document,
)
from traces.core.values import Json, JsonObject, list_in, object_in, text_in

_DIGITS = 9

Value = TypeVar("Value", bound=StrEnum)


def gate_document(gate: Gate) -> JsonObject:
    """A gate as it is stored and handed out."""
    return {
        "gate_version": GATE_VERSION,
        "state": gate.state.value,
        "sentence": gate.sentence,
        "n_owners": gate.n_owners,
        "sections": [_section_document(section) for section in gate.sections],
    }


def _section_document(section: Section) -> JsonObject:
    return {
        "tier": section.tier,
        "tier_uuid": section.tier_uuid,
        "state": section.state.value,
        "sentence": section.sentence,
        "slots": section.n_slots,
        "tasks": section.n_tasks,
        "threshold_set": _set_document(section.threshold_set),
        "checks": [check_document(check) for check in section.checks],
    }


def _set_document(found: ThresholdSetInForce | None) -> Json:
    if found is None:
        return None
    return {
        "number": found.number,
        "digest": found.digest,
        "by": found.by,
        "made_at": found.made_at,
        "in_force_from": found.in_force_from,
        "thresholds": thresholds_document(found.thresholds),
    }


def check_document(check: Check) -> JsonObject:
    """One check, with its threshold in words."""
    threshold = check.threshold
    return {
        "kind": threshold.kind.value,
        "name": check_name(threshold),
        "threshold": threshold_document(threshold),
        "threshold_text": threshold_text(threshold),
        "threshold_sentence": threshold_sentence(threshold),
        "decided_by": threshold.decided_by.value,
        "result": check.result.value,
        "measured": fraction_text(check.measured),
        "measured_number": _number_of(check.measured),
        "sentence": check.sentence,
        "counts": _counts_document(check.counts),
        "range": _range_document(check.range),
        "interval": _interval_document(check.interval),
        "settles": check.settles,
        "more_trials": check.n_more,
        "details": [
            {
                "label": detail.label,
                "text": detail.text,
                "result": None if detail.result is None else detail.result.value,
            }
            for detail in check.details
        ],
        "trials": list(check.trials),
    }


def fraction_text(value: Fraction | None) -> str | None:
    """A fraction exactly: "19/20", "0/1"; None for none."""
    return None if value is None else f"{value.numerator}/{value.denominator}"


def _number_of(value: Fraction | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS)


def _counts_document(counts: Counts | None) -> Json:
    if counts is None:
        return None
    return {
        "passed": counts.passed,
        "graded": counts.graded,
        "run": counts.run,
        "missing": counts.missing,
    }


def _range_document(found: Range | None) -> Json:
    if found is None:
        return None
    return {
        "low": fraction_text(found.low),
        "high": fraction_text(found.high),
        "low_number": _number_of(found.low),
        "high_number": _number_of(found.high),
    }


def _interval_document(found: Interval | None) -> Json:
    return None if found is None else {"low": found.low, "high": found.high}


def parse_gate(document: Json) -> Gate:
    """A stored gate. What is missing reads as nothing, and what is unknown is left out."""
    found = object_in(document)
    return Gate(
        state=_one_of(GateState, found.get("state"), GateState.WAITING),
        sentence=text_in(found.get("sentence")),
        sections=tuple(_parse_section(object_in(one)) for one in list_in(found.get("sections"))),
    )


def _parse_section(found: JsonObject) -> Section:
    return Section(
        tier=text_in(found.get("tier")),
        tier_uuid=text_in(found.get("tier_uuid")),
        threshold_set=_parse_set(found.get("threshold_set")),
        state=_one_of(GateState, found.get("state"), GateState.WAITING),
        sentence=text_in(found.get("sentence")),
        checks=tuple(_parse_checks(list_in(found.get("checks")))),
        n_slots=_count(found.get("slots")),
        n_tasks=_count(found.get("tasks")),
    )


def _parse_set(document: Json) -> ThresholdSetInForce | None:
    if not isinstance(document, dict):
        return None
    thresholds = parse_thresholds(document.get("thresholds"))
    return ThresholdSetInForce(
        number=_count(document.get("number")),
        digest=text_in(document.get("digest")),
        by=text_in(document.get("by")),
        made_at=text_in(document.get("made_at")),
        in_force_from=text_in(document.get("in_force_from")),
        thresholds=thresholds if isinstance(thresholds, Thresholds) else Thresholds(()),
    )


def _parse_checks(documents: Iterable[Json]) -> Iterable[Check]:
    for document in documents:
        found = object_in(document)
        threshold = _parse_threshold(found)
        if threshold is not None:
            yield _parse_check(found, threshold)


def _parse_threshold(found: JsonObject) -> Threshold | None:
    threshold = parse_stored_check(found.get("threshold"))
    if threshold is not None:
        return threshold
    kind = found.get("kind")
    if not isinstance(kind, str) or kind not in set(CheckKind):
        return None
    return Threshold(
        CheckKind(kind),
        decided_by=_one_of(DecidedBy, found.get("decided_by"), DecidedBy.ESTIMATE),
    )


def _parse_check(found: JsonObject, threshold: Threshold) -> Check:
    more = found.get("more_trials")
    return Check(
        threshold=threshold,
        result=_one_of(CheckResult, found.get("result"), CheckResult.CANNOT_TELL),
        measured=parse_fraction(found.get("measured")),
        sentence=text_in(found.get("sentence")),
        counts=_parse_counts(found.get("counts")),
        range=_parse_range(found.get("range")),
        interval=_parse_interval(found.get("interval")),
        settles=text_in(found.get("settles")),
        n_more=None if more is None else _count(more),
        details=tuple(_parse_detail(object_in(one)) for one in list_in(found.get("details"))),
        trials=tuple(text_in(one) for one in list_in(found.get("trials"))),
    )


def _parse_detail(found: JsonObject) -> CheckDetail:
    result = found.get("result")
    return CheckDetail(
        text_in(found.get("label")),
        text_in(found.get("text")),
        None if result is None else _one_of(CheckResult, result, CheckResult.CANNOT_TELL),
    )


def parse_fraction(value: Json) -> Fraction | None:
    """A fraction of its text; None for what is none."""
    if not isinstance(value, str):
        return None
    above, slash, below = value.partition("/")
    try:
        return Fraction(int(above), int(below) if slash else 1)
    except (ValueError, ZeroDivisionError):
        return None


def _parse_counts(document: Json) -> Counts | None:
    if not isinstance(document, dict):
        return None
    try:
        return Counts(
            *(_count(document.get(key)) for key in ("passed", "graded", "run", "missing"))
        )
    except ValueError:
        return None


def _parse_range(document: Json) -> Range | None:
    found = object_in(document)
    low, high = parse_fraction(found.get("low")), parse_fraction(found.get("high"))
    return None if low is None or high is None else Range(low, high)


def _parse_interval(document: Json) -> Interval | None:
    found = object_in(document)
    low, high = found.get("low"), found.get("high")
    if isinstance(low, bool | str | list | dict | None) or isinstance(
        high, bool | str | list | dict | None
    ):
        return None
    return Interval(float(low), float(high))


def _one_of(values: type[Value], value: Json, otherwise: Value) -> Value:
    return values(value) if isinstance(value, str) and value in set(values) else otherwise


def _count(value: Json) -> int:
    return value if type(value) is int else 0
