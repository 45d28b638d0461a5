"""Background work on rules: a row says what is to be done, and how often it was tried.

A worker begins it, notes how far it is, and ends it. What it leaves open the sweeper finds.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet

from traces.models import BackgroundWork, WorkState

MOST_TRIES = 5
_OPEN = (WorkState.WAITING.value, WorkState.WORKING.value)

Work = TypeVar("Work", bound=BackgroundWork)


@transaction.atomic
def begun(rows: QuerySet[Work], pk: int, *, now: datetime) -> Work | None:
    """The row of some work, counted as tried once more; None where there is nothing to do.

    Work that was tried `MOST_TRIES` times without getting any further fails, with a sentence.
    """
    row = rows.select_for_update(of=("self",)).filter(pk=pk).first()
    if row is None or not row.is_open:
        return None
    row.touched_at = now
    if row.n_tries >= MOST_TRIES:
        row.state = WorkState.FAILED.value
        row.failure = (
            f"This work stopped {MOST_TRIES} times in a row{_place(row)}. "
            "The log of the worker names the cause."
        )
        row.finished_at = now
        row.save()
        return None
    row.state = WorkState.WORKING.value
    row.n_tries += 1
    row.started_at = row.started_at or now
    row.save()
    return row


def _place(row: BackgroundWork) -> str:
    return "" if row.n_total is None else f" behind {row.n_done:,} of {row.n_total:,}"


def stale_work(rows: QuerySet[Work], *, now: datetime, older_than_seconds: float) -> list[int]:
    """Open work that nobody has touched for a while: it was never hinted at, or a worker died."""
    limit = now - timedelta(seconds=older_than_seconds)
    stale = rows.filter(state__in=_OPEN, touched_at__lt=limit)
    return list(stale.order_by("touched_at", "pk").values_list("pk", flat=True)[:500])
