"""What happened to a case, as its page tells it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from evalsite.common import blobs
from reviews.models import CaseEventKind

MOST_EVENTS = 500  # of one case on its page, the newest


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One thing that happened to a case. `by_name` "": it happened by itself."""

    pk: int
    kind: CaseEventKind
    text: str
    detail: dict[str, Any]
    by_name: str
    at: datetime


def case_history(case_pk: int) -> tuple[HistoryEvent, ...]:
    """The newest events of a case in the order in which they happened, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT e.id, e.kind, e.text, e.detail::text,"
            " coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, ''), e.at"
            " FROM reviews_caseevent e LEFT JOIN traces_user p ON p.id = e.by_id"
            " WHERE e.case_id = %s ORDER BY e.id DESC LIMIT %s",
            [case_pk, MOST_EVENTS],
        )
        rows = cursor.fetchall()
    return tuple(
        HistoryEvent(
            pk, CaseEventKind(kind), text, blobs.loads(detail) if detail else {}, by_name, at
        )
        for pk, kind, text, detail, by_name, at in reversed(rows)
    )


@dataclass(frozen=True, slots=True)
class RerunAsk:
    """A rerun that was asked for, of a case that waits still."""

    case_pk: int
    reason: str
    by_name: str
    at: datetime


def rerun_asks(case_pks: list[int]) -> dict[int, RerunAsk]:
    """The newest request for a rerun since each case opened, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT ON (e.case_id) e.case_id, e.text,"
            " coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, ''), e.at"
            " FROM reviews_caseevent e JOIN reviews_case c ON c.id = e.case_id"
            " LEFT JOIN traces_user p ON p.id = e.by_id"
            " WHERE e.case_id = ANY(%s) AND e.kind = 'rerun_asked' AND e.at >= c.opened_at"
            " ORDER BY e.case_id, e.id DESC",
            [case_pks],
        )
        return {row[0]: RerunAsk(*row) for row in cursor.fetchall()}
