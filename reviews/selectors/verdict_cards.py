"""The verdicts on a trial as its page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.core.disposition import GivenVerdict
from traces.core.records import CriterionClass, GraderKind, VerdictValue


@dataclass(frozen=True, slots=True)
class VerdictCard:
    """One stored verdict: what the disposition reads of it, and what people read."""

    given: GivenVerdict
    rationale: str
    overrides: str
    extra: str  # ASCII JSON; "" when it came with nothing else
    created_at: datetime
    by_name: str  # the signed-in person, "" when it came in a file
    upload_uuid: UUID | None
    line: int | None


def verdict_cards(trial_pk: int) -> tuple[VerdictCard, ...]:
    """All verdicts on a trial in the order in which they came, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT v.id, g.name, gv.version, g.kind, c.name, v.value, v.criterion_class,"
            " v.is_mandatory, v.by_id IS NULL, v.raw_word, v.score, v.cited_steps, v.rationale,"
            " v.overrides, v.extra, v.created_at,"
            " coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, ''),"
            " u.uuid, v.line"
            " FROM reviews_verdict v"
            " JOIN reviews_graderversion gv ON gv.id = v.grader_version_id"
            " JOIN reviews_grader g ON g.id = gv.grader_id"
            " JOIN reviews_criterion c ON c.id = v.criterion_id"
            " LEFT JOIN traces_user p ON p.id = v.by_id"
            " LEFT JOIN traces_upload u ON u.id = v.upload_id"
            " WHERE v.trial_id = %s ORDER BY v.id",
            [trial_pk],
        )
        return tuple(VerdictCard(_given(row[:12]), *row[12:]) for row in cursor.fetchall())


def _given(row: tuple[Any, ...]) -> GivenVerdict:
    return GivenVerdict(
        id=str(row[0]),
        grader=row[1],
        grader_version=row[2],
        kind=GraderKind(row[3]),
        criterion=row[4],
        value=VerdictValue(row[5]),
        criterion_class=CriterionClass(row[6]),
        mandatory=row[7],
        is_imported=row[8],
        raw_word=row[9],
        score=row[10],
        cited_steps=tuple(row[11]),
    )
