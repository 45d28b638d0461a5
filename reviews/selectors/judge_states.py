"""How the judges with a verdict on one trial are calibrated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from evalsite.common import blobs
from reviews.core.calibration import (
    CalibrationFigures,
    CalibrationStatus,
    parse_figures,
    shown_status,
)
from reviews.core.calibrations import CalibrationKey, Calibrations
from reviews.core.disposition import GivenVerdict

JudgeKey = tuple[str, str, str]
"""Judge, its version, and the criterion."""


@dataclass(frozen=True, slots=True)
class JudgeState:
    """The newest calibration of a judge version on a criterion of one digest."""

    status: CalibrationStatus
    why: str  # a sentence
    read_at: datetime
    valid_until: datetime | None
    document: Any  # its figures as they are stored

    @property
    def figures(self) -> CalibrationFigures:
        """What the status was read from."""
        return parse_figures(self.document)

    def status_at(self, now: datetime) -> CalibrationStatus:
        """What it is by now: a calibrated one is stale once its date has passed."""
        return shown_status(self.status, self.valid_until, now=now)


@dataclass(frozen=True, slots=True)
class KnownJudge:
    """A judge version that has a verdict on a criterion of the trial."""

    version_pk: int
    criterion_pk: int
    states: Mapping[bytes | None, JudgeState]  # by digest of the criterion


@dataclass(frozen=True, slots=True)
class TrialJudges:
    """The judges with verdicts on a trial, and which of them are calibrated."""

    known: Mapping[JudgeKey, KnownJudge] = field(default_factory=dict)
    calibrations: Calibrations = field(default_factory=Calibrations)

    def of(self, verdict: GivenVerdict) -> KnownJudge | None:
        """The judge that gave a verdict."""
        return self.known.get((verdict.grader, verdict.grader_version, verdict.criterion))

    def state_of(self, verdict: GivenVerdict, criterion_digest: bytes | None) -> JudgeState | None:
        """How the judge of a verdict is calibrated for the criterion of that digest."""
        judge = self.of(verdict)
        return judge.states.get(criterion_digest) if judge else None


_JUDGES = """
SELECT g.name, gv.version, c.name, w.grader_version_id, w.criterion_id,
       b.status, b.criterion_digest, b.why, b.read_at, b.valid_until, b.figures
FROM (SELECT DISTINCT v.grader_version_id, v.criterion_id FROM reviews_verdict v
      WHERE v.trial_id = %s) w
JOIN reviews_graderversion gv ON gv.id = w.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id AND g.kind = 'model'
JOIN reviews_criterion c ON c.id = w.criterion_id
LEFT JOIN LATERAL (
    SELECT DISTINCT ON (b.criterion_digest) b.*
    FROM reviews_calibration b
    WHERE b.system_id = %s AND b.grader_version_id = w.grader_version_id
      AND b.criterion_id = w.criterion_id
    ORDER BY b.criterion_digest, b.id DESC
) b ON true
"""


def judges_on(trial_pk: int, *, system_pk: int) -> TrialJudges:
    """The judges with a verdict on a trial and how each is calibrated, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_JUDGES, [trial_pk, system_pk])
        rows = cursor.fetchall()
    known: dict[JudgeKey, KnownJudge] = {}
    until: dict[CalibrationKey, datetime] = {}
    for key, version_pk, criterion_pk, states in _by_judge(rows):
        known[key] = KnownJudge(version_pk, criterion_pk, states)
        for digest, state in states.items():
            if state.status is CalibrationStatus.CALIBRATED and state.valid_until is not None:
                until[*key, digest] = state.valid_until
    return TrialJudges(known, Calibrations(until))


def _by_judge(
    rows: Iterable[tuple[Any, ...]],
) -> Iterable[tuple[JudgeKey, int, int, dict[bytes | None, JudgeState]]]:
    found: dict[JudgeKey, tuple[int, int, dict[bytes | None, JudgeState]]] = {}
    for grader, version, criterion, version_pk, criterion_pk, status, *row in rows:
        key = (grader, version, criterion)
        _, _, states = found.setdefault(key, (version_pk, criterion_pk, {}))
        if status is not None:
            digest, state = _state(status, *row)
            states[digest] = state
    return ((key, *rest) for key, rest in found.items())


def _state(
    status: str,
    digest: UUID | None,
    why: str,
    read_at: datetime,
    valid_until: datetime | None,
    figures: str | dict[str, Any],
) -> tuple[bytes | None, JudgeState]:
    loaded = blobs.loads(figures) if isinstance(figures, str) else figures
    state = JudgeState(CalibrationStatus(status), why, read_at, valid_until, loaded)
    return digest.bytes if digest else None, state
