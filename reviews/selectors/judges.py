"""The judges of a system: what each version said of each criterion, and how it is calibrated."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

from evalsite.common import blobs
from reviews.core.calibration import CalibrationFigures, CalibrationStatus, parse_figures
from reviews.core.calibration import shown_status as status_shown
from traces.core.records import VerdictValue


@dataclass(frozen=True, slots=True)
class SaidCounts:
    """What a judge version said of a criterion, over all trials."""

    by_value: Mapping[VerdictValue, int] = field(default_factory=dict)
    first_at: datetime | None = None
    last_at: datetime | None = None

    @property
    def n(self) -> int:
        """All its verdicts."""
        return sum(self.by_value.values())


@dataclass(frozen=True, slots=True)
class StoredCalibration:
    """One row of the history of a judge version on a criterion."""

    pk: int
    digest: uuid.UUID | None  # of the criterion
    rubric_version: str
    status: CalibrationStatus
    why: str  # a sentence
    document: Any  # its figures as they are stored
    read_at: datetime
    valid_until: datetime | None
    by_name: str  # "": it was read by itself

    @property
    def figures(self) -> CalibrationFigures:
        """What the status was read from."""
        return parse_figures(self.document)

    def status_at(self, now: datetime) -> CalibrationStatus:
        """What it is by now: a calibrated one is stale once its date has passed."""
        return status_shown(self.status, self.valid_until, now=now)


@dataclass(frozen=True, slots=True)
class ListedJudge:
    """A judge version on a criterion."""

    version_pk: int
    criterion_pk: int
    judge_pk: int
    judge: str
    version: str
    criterion: str
    said: SaidCounts
    calibrations: tuple[StoredCalibration, ...]  # the newest of each digest, newest first

    @property
    def current(self) -> StoredCalibration | None:
        """The calibration that says most now: the newest that is not stale, else the newest."""
        fresh = (c for c in self.calibrations if c.status is not CalibrationStatus.STALE)
        return next(fresh, next(iter(self.calibrations), None))

    def status_at(self, now: datetime) -> CalibrationStatus:
        """Its status: exploratory until one was read."""
        current = self.current
        return current.status_at(now) if current else CalibrationStatus.EXPLORATORY


# The verdicts of judges are found from the short table of their versions.
_SAID = """
SELECT v.grader_version_id, v.criterion_id, v.value, count(*), min(v.created_at),
       max(v.created_at)
FROM reviews_verdict v
WHERE v.grader_version_id = ANY(ARRAY(
        SELECT gv.id FROM reviews_graderversion gv JOIN reviews_grader g ON g.id = gv.grader_id
        WHERE g.system_id = %(system)s AND g.kind = 'model'
          AND (%(version)s::bigint IS NULL OR gv.id = %(version)s)))
  AND (%(criterion)s::bigint IS NULL OR v.criterion_id = %(criterion)s)
GROUP BY 1, 2, 3
"""
_NAMES = """
SELECT w.version, w.criterion, g.id, g.name, gv.version, c.name
FROM unnest(%s::bigint[], %s::bigint[]) AS w(version, criterion)
JOIN reviews_graderversion gv ON gv.id = w.version
JOIN reviews_grader g ON g.id = gv.grader_id
JOIN reviews_criterion c ON c.id = w.criterion
ORDER BY c.name, g.name, g.id, gv.id DESC
"""
_COLUMNS = """
b.grader_version_id, b.criterion_id, b.id, b.criterion_digest, b.rubric_version, b.status, b.why,
b.figures, b.read_at, b.valid_until,
coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, '')
"""
_NEWEST = f"""
SELECT * FROM (
    SELECT DISTINCT ON (b.grader_version_id, b.criterion_id, b.criterion_digest) {_COLUMNS}
    FROM reviews_calibration b LEFT JOIN traces_user p ON p.id = b.by_id
    WHERE b.system_id = %(system)s
      AND (%(version)s::bigint IS NULL OR b.grader_version_id = %(version)s)
      AND (%(criterion)s::bigint IS NULL OR b.criterion_id = %(criterion)s)
    ORDER BY b.grader_version_id, b.criterion_id, b.criterion_digest, b.id DESC
) newest ORDER BY 3 DESC
"""  # noqa: S608 - columns from here
_HISTORY = f"""
SELECT {_COLUMNS}
FROM reviews_calibration b LEFT JOIN traces_user p ON p.id = b.by_id
WHERE b.system_id = %s AND b.grader_version_id = %s AND b.criterion_id = %s
  AND b.criterion_digest IS NOT DISTINCT FROM %s
ORDER BY b.id DESC LIMIT %s
"""  # noqa: S608 - columns from here

_Key = tuple[int, int]
"""Judge version and criterion, by the ids of their rows."""


def judges_of(
    system_pk: int, *, version_pk: int | None = None, criterion_pk: int | None = None
) -> tuple[ListedJudge, ...]:
    """The judge versions with what they decided, or one of them, in three queries.

    In order of criterion and judge, the newest version of a judge first. A version that was tried
    with probes alone has a status and no verdicts.
    """
    asked = {"system": system_pk, "version": version_pk, "criterion": criterion_pk}
    said = _said(asked)
    newest: dict[_Key, list[StoredCalibration]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, asked)
        for version, criterion, *row in cursor.fetchall():
            newest.setdefault((version, criterion), []).append(_stored(*row))
    keys = sorted({*said, *newest})
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, [[key[0] for key in keys], [key[1] for key in keys]])
        return tuple(
            ListedJudge(
                version_pk=version,
                criterion_pk=criterion,
                judge_pk=judge_pk,
                judge=judge,
                version=version_name,
                criterion=name,
                said=said.get((version, criterion), SaidCounts()),
                calibrations=tuple(newest.get((version, criterion), ())),
            )
            for version, criterion, judge_pk, judge, version_name, name in cursor.fetchall()
        )


def calibration_history(
    system_pk: int,
    version_pk: int,
    criterion_pk: int,
    digest: uuid.UUID | None,
    *,
    most: int,
) -> tuple[StoredCalibration, ...]:
    """The rows of a judge version on a criterion of one digest, newest first, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_HISTORY, [system_pk, version_pk, criterion_pk, digest, most])
        return tuple(_stored(*row[2:]) for row in cursor.fetchall())


def _said(asked: Mapping[str, int | None]) -> dict[_Key, SaidCounts]:
    found: dict[_Key, list[tuple[VerdictValue, int, datetime, datetime]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_SAID, asked)
        for version, criterion, value, n, first, last in cursor.fetchall():
            found.setdefault((version, criterion), []).append((VerdictValue(value), n, first, last))
    return {key: _counts(rows) for key, rows in found.items()}


def _counts(rows: Iterable[tuple[VerdictValue, int, datetime, datetime]]) -> SaidCounts:
    listed = list(rows)
    return SaidCounts(
        by_value={value: n for value, n, _, _ in listed},
        first_at=min(first for _, _, first, _ in listed),
        last_at=max(last for _, _, _, last in listed),
    )


def _stored(
    pk: int,
    digest: uuid.UUID | None,
    rubric_version: str,
    status: str,
    why: str,
    figures: Any,
    read_at: datetime,
    valid_until: datetime | None,
    by_name: str,
) -> StoredCalibration:
    return StoredCalibration(
        pk=pk,
        digest=digest,
        rubric_version=rubric_version,
        status=CalibrationStatus(status),
        why=why,
        document=blobs.loads(figures) if isinstance(figures, str) else figures,
        read_at=read_at,
        valid_until=valid_until,
        by_name=by_name,
    )
