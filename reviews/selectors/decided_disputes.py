"""Adjudications of a system as their list reads them, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.core.disposition import AdjudicationRuling

PAGE_DECIDED = 50
SHOWN_REASON = 400  # characters of a reason in the list


@dataclass(frozen=True, slots=True)
class DecidedDispute:
    """An adjudication with what the list tells of its trial."""

    pk: int
    uuid: UUID
    ruling: AdjudicationRuling
    reason: str  # its beginning
    is_cut: bool
    cited_steps: tuple[int, ...]
    is_by_party: bool
    is_label: bool  # the third blind label of an item, whose first two differ
    by_pk: int
    by_name: str
    decided_at: datetime
    criterion: str
    rubric_version: str
    dispute_uuid: UUID | None
    corrects: UUID | None  # the decision that it takes the place of
    corrects_ruling: AdjudicationRuling | None
    corrected_by: UUID | None  # the later one that takes its place
    trial_pk: int
    trial_uuid: UUID
    label: str
    attempt: int
    task_id: str
    task_title: str
    family: str
    release_name: str


@dataclass(frozen=True, slots=True)
class DecidedPage:
    """One page of adjudications, with the ids of its neighbours."""

    rows: tuple[DecidedDispute, ...]
    next_after: int | None
    previous_before: int | None


_COLUMNS = """
SELECT a.id, a.uuid, a.ruling, left(a.reason, %(shown)s), length(a.reason) > %(shown)s,
       a.cited_steps, a.is_by_party,
       EXISTS (SELECT FROM reviews_label l WHERE l.adjudication_id = a.id), p.id,
       coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username), a.decided_at,
       c.name, a.rubric_version, d.uuid, b.uuid, b.ruling, e.uuid, t.id, t.uuid, t.label,
       t.attempt, k.task_id, k.title, k.family, r.name
FROM reviews_adjudication a
JOIN traces_user p ON p.id = a.by_id
JOIN reviews_criterion c ON c.id = a.criterion_id
JOIN traces_trial t ON t.id = a.trial_id
JOIN traces_task k ON k.id = t.task_id
JOIN traces_release r ON r.id = t.release_id
LEFT JOIN reviews_dispute d ON d.trial_id = a.trial_id AND d.criterion = c.name
LEFT JOIN reviews_adjudication b ON b.id = a.replaces_id
LEFT JOIN reviews_adjudication e ON e.replaces_id = a.id
"""


def decided_disputes(
    system_pk: int,
    *,
    by_pk: int | None = None,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_DECIDED,
) -> DecidedPage:
    """One page of adjudications in one query, the newest first.

    `after` (or `before`) is the id of the one that the page follows (or precedes).
    """
    backward = before is not None
    place = before if backward else after
    where = ["a.system_id = %(system)s"]
    if place is not None:
        where.append(f"a.id {'>' if backward else '<'} %(place)s")
    if by_pk is not None:
        where.append("a.by_id = %(by)s")
    query = (
        f"{_COLUMNS} WHERE {' AND '.join(where)}"
        f" ORDER BY a.id {'ASC' if backward else 'DESC'} LIMIT %(n)s"
    )
    values = {
        "system": system_pk,
        "shown": SHOWN_REASON,
        "place": place,
        "by": by_pk,
        "n": n + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        found = [_decided(row) for row in cursor.fetchall()]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return DecidedPage(
        rows=rows,
        next_after=rows[-1].pk if rows and has_next else None,
        previous_before=rows[0].pk if rows and has_previous else None,
    )


_CORRECTS_RULING = 9  # its place behind the first six columns


def _decided(row: tuple[Any, ...]) -> DecidedDispute:
    pk, identity, ruling, reason, is_cut, cited, *others = row
    corrected = others[_CORRECTS_RULING]
    others[_CORRECTS_RULING] = AdjudicationRuling(corrected) if corrected else None
    return DecidedDispute(
        pk, identity, AdjudicationRuling(ruling), reason, is_cut, tuple(cited), *others
    )
