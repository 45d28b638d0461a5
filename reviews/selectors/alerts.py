"""Alerts of a system: prohibited actions that a gate does not allow."""

from __future__ import annotations

from dataclasses import dataclass

from reviews.models import GateAlert

PAGE_ALERTS = 50


@dataclass(frozen=True, slots=True)
class AlertPage:
    """One page of alerts, newest first, with the places of its neighbours."""

    rows: tuple[GateAlert, ...]
    next_after: int | None
    previous_before: int | None


def listed_alerts(
    system_pk: int,
    *,
    is_open: bool,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_ALERTS,
) -> AlertPage:
    """One page of alerts, newest first, in one query. `is_open`: those that no owner has noted."""
    backward = before is not None
    place = after if before is None else before
    rows = (
        GateAlert.objects.filter(system=system_pk)
        .select_related("release", "trial__task", "seen__by")
        .defer("release__details")
    )
    if is_open:
        rows = rows.filter(seen=None)
    if place is not None:
        rows = rows.filter(pk__gt=place) if backward else rows.filter(pk__lt=place)
    found = list(rows.order_by("pk" if backward else "-pk")[: n + 1])
    shown = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return AlertPage(
        rows=shown,
        next_after=shown[-1].pk if shown and has_next else None,
        previous_before=shown[0].pk if shown and has_previous else None,
    )


def alert_counts(system_pk: int) -> tuple[int, int]:
    """How many alerts wait for an owner, and how many there are. Two queries."""
    rows = GateAlert.objects.filter(system=system_pk)
    return rows.filter(seen=None).count(), rows.count()
