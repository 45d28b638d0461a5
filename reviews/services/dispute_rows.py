"""Disputes follow the verdicts: opened, brought up to date and closed as trials are decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from reviews.core.disposition import Adjudication, Decision, GivenVerdict


@dataclass(frozen=True, slots=True)
class DecidedDisputes:
    """A decided trial, as far as disputes on it depend on it."""

    trial_id: int
    system_id: int
    task_id: int
    release_id: int
    stands: bool
    decision: Decision
    verdicts: Sequence[GivenVerdict]  # calibrated judges are marked as such
    adjudications: tuple[Adjudication, ...]
    evidence_order: int


def follow_disputes(decided: Iterable[DecidedDisputes], *, now: datetime) -> int:
    """Open, change and close the disputes of decided trials. Returns how many it touched.

    Part of the transaction that decides the trials, under the locks of their releases.
    """
    del decided, now
    return 0
