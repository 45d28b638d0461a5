"""Calibrations of judges: read from people's labels, and kept where status or figures changed."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from evalsite.common.gate_marks import touch_gates
from reviews.core.calibration import (
    DEFAULT_LIMITS,
    CalibrationStatus,
    JudgeFacts,
    LabelledItem,
    Limits,
    calibration_document,
    figures_of,
    status_of,
    valid_until_of,
)
from reviews.models import Calibration, Criterion, GraderVersion
from reviews.selectors.calibration_items import (
    CriterionKey,
    JudgeVersion,
    Labelled,
    is_asked,
    judge_words,
    labelled_items,
    newest_versions,
)
from reviews.selectors.probes import probe_results
from traces.models import System, User

log = logging.getLogger("evalsite.calibrations")


@dataclass(frozen=True, slots=True)
class Reading:
    """A new row, with the one that held before it."""

    row: Calibration
    earlier: Calibration | None

    @property
    def is_other_vote(self) -> bool:
        """Whether other verdicts of the judge count than before."""
        return _counts_until(self.row) != _counts_until(self.earlier)


def _counts_until(row: Calibration | None) -> datetime | None:
    if row is None or row.status != CalibrationStatus.CALIBRATED.value:
        return None
    return row.valid_until


def read_calibrations(
    system: System,
    criterion: Criterion,
    criterion_digest: uuid.UUID | None,
    *,
    now: datetime,
    by: User | None = None,
) -> list[Calibration]:
    """Read the status of every judge version on a criterion anew. Returns the rows it added.

    A row is added only where status or figures are others than the newest row's. `by` None: it was
    read because something changed. Part of a transaction that holds `ingest_locks` of the system;
    whoever calls it decides trials anew (`evalsite.after_calibration`).
    """
    key = CriterionKey(criterion, criterion_digest)
    return [reading.row for reading in readings_of(system, key, now=now, by=by)]


def readings_of(
    system: System,
    key: CriterionKey,
    *,
    now: datetime,
    by: User | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Reading]:
    """Like `read_calibrations`, each new row beside the one that held before it."""
    labelled = labelled_items(key)
    words = judge_words(key, labelled)
    newest = _newest_rows(system, key)
    judges = _judges(words, newest, _probed(key))
    if not judges:
        return []
    later = newest_versions(key, labelled.rubric_version, [judge.pk for judge in judges])
    asked = is_asked(key)
    found: list[Reading] = []
    for judge in judges:
        facts = JudgeFacts(
            has_newer=later.get(judge.judge_pk, 0) > judge.pk,
            is_asked=asked,
            n_failed_probes=_failed_probes(judge, key),
        )
        items = words.get(judge, labelled.items)
        row = _row(system, key, judge, labelled, items, facts, limits)
        row.read_at, row.by = now, by
        earlier = newest.get(judge.pk)
        if earlier is None or _content(earlier) != _content(row):
            found.append(Reading(row, earlier))
    Calibration.objects.bulk_create([reading.row for reading in found])
    touch_gates(_judged_releases(found), now=now)
    _note(system, found, by)
    return found


def _judged_releases(readings: list[Reading]) -> tuple[int, ...]:
    """The releases with verdicts of judges that were read anew: gates name what they were read from."""
    if not readings:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT t.release_id FROM reviews_verdict v"
            " JOIN traces_trial t ON t.id = v.trial_id"
            " WHERE v.criterion_id = ANY(%s) AND v.grader_version_id = ANY(%s)",
            [
                [reading.row.criterion_id for reading in readings],
                [reading.row.grader_version_id for reading in readings],
            ],
        )
        return tuple(row[0] for row in cursor.fetchall())


def _row(
    system: System,
    key: CriterionKey,
    judge: JudgeVersion,
    labelled: Labelled,
    items: Iterable[LabelledItem],
    facts: JudgeFacts,
    limits: Limits,
) -> Calibration:
    figures = figures_of(items)
    assessment = status_of(figures, limits, facts)
    is_calibrated = assessment.status is CalibrationStatus.CALIBRATED
    return Calibration(
        system=system,
        grader_version_id=judge.pk,
        criterion=key.criterion,
        criterion_digest=key.digest,
        rubric_version=labelled.rubric_version,
        status=assessment.status.value,
        why=assessment.why,
        figures=calibration_document(figures, assessment, limits),
        valid_until=valid_until_of(labelled.labelled_at, limits)
        if is_calibrated and labelled.labelled_at
        else None,
    )


def _content(row: Calibration) -> tuple[object, ...]:
    return (row.status, row.why, row.figures, row.valid_until)


def _newest_rows(system: System, key: CriterionKey) -> dict[int, Calibration]:
    """The row of each judge version that holds."""
    rows = (
        Calibration.objects.filter(
            system=system, criterion=key.criterion, criterion_digest=key.digest
        )
        .order_by("grader_version_id", "-pk")
        .distinct("grader_version_id")
    )
    return {row.grader_version_id: row for row in rows}


def _judges(
    words: Mapping[JudgeVersion, object], newest: Iterable[int], probed: Iterable[int]
) -> list[JudgeVersion]:
    """The judge versions to read, in the order in which they were first seen."""
    found = {judge.pk: judge for judge in words}
    others = {*newest, *probed} - set(found)
    if others:
        for row in GraderVersion.objects.filter(pk__in=others).select_related("grader"):
            found[row.pk] = JudgeVersion(row.pk, row.grader.name, row.version, row.grader_id)
    return [found[pk] for pk in sorted(found)]


def _probed(key: CriterionKey) -> set[int]:
    """The judge versions that were tried with probes of the criterion."""
    from reviews.models import ProbeVerdict

    of_batches = ProbeVerdict.objects.filter(
        probe__batch__criterion=key.criterion, probe__batch__criterion_digest=key.digest
    )
    return set(of_batches.values_list("grader_version", flat=True).distinct())


def _failed_probes(judge: JudgeVersion, key: CriterionKey) -> int:
    """How many probes of the criterion came out as they must not."""
    return probe_results(judge.pk, key.criterion.pk, key.digest).n_wrong


def _note(system: System, found: Iterable[Reading], by: User | None) -> None:
    for reading in found:
        row = reading.row
        log.info(
            "calibration read",
            extra={
                "system": system.slug,
                "version": row.grader_version_id,
                "criterion": row.criterion_id,
                "status": row.status,
                "was": reading.earlier.status if reading.earlier else None,
                "user": by.pk if by else None,
            },
        )
