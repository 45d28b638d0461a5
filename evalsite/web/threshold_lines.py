"""Thresholds as pages show them for reading, and what changed between two versions."""

from __future__ import annotations

from evalsite.common.formatting import count_text, counted
from reviews.core.gate.model import CheckKind, Threshold, Thresholds
from reviews.core.gate.thresholds import (
    KIND_NAMES,
    check_name,
    threshold_sentence,
    threshold_text,
)
from traces.web.pages.thresholds import ChangeLine, ThresholdLine

OFF = "switched off"
NOTHING = "nothing"


def threshold_lines(thresholds: Thresholds) -> tuple[ThresholdLine, ...]:
    """The checks that a tier asks for, each with its level and its sentence."""
    return tuple(
        ThresholdLine(
            name=check_name(threshold),
            limit=threshold_text(threshold),
            sentence=threshold_sentence(threshold),
        )
        for threshold in thresholds.checks
    )


def checks_off(thresholds: Thresholds) -> tuple[str, ...]:
    """The names of the checks that a tier does not ask for."""
    asked = {threshold.kind for threshold in thresholds.checks}
    return tuple(KIND_NAMES[kind] for kind in CheckKind if kind not in asked)


def change_lines(before: Thresholds, after: Thresholds) -> tuple[ChangeLine, ...]:
    """What one version says otherwise than another, check by check."""
    was = {threshold.kind: threshold for threshold in before.checks}
    now = {threshold.kind: threshold for threshold in after.checks}
    lines = [
        ChangeLine(KIND_NAMES[kind], _words(was.get(kind)), _words(now.get(kind)))
        for kind in CheckKind
        if was.get(kind) != now.get(kind)
    ]
    if before.n_owners != after.n_owners:
        lines.append(
            ChangeLine(
                "Owners who sign",
                counted(before.n_owners, "owner"),
                counted(after.n_owners, "owner"),
            )
        )
    if before.requests_per_day != after.requests_per_day:
        lines.append(
            ChangeLine(
                "Requests a day, for planning",
                _requests(before.requests_per_day),
                _requests(after.requests_per_day),
            )
        )
    return tuple(lines)


def _words(threshold: Threshold | None) -> str:
    return OFF if threshold is None else threshold_sentence(threshold)


def _requests(n: int | None) -> str:
    return "not said" if n is None else count_text(n)
