"""The open items of a calibration set as one person finds them, and how far the set is."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, Q

from reviews.core.seating import Bar, QueuedItem
from reviews.models import CalibrationItem, CalibrationSet, Label
from reviews.permissions.labels import releases_brought
from traces.models import User

# Reservations of people who signed off or stopped being reviewers hold nothing.
_QUEUE = """
SELECT i.id, i.position, i.n_needed,
  (SELECT count(*) FROM reviews_label l WHERE l.item_id = i.id),
  coalesce(held.n, 0), held.until,
  EXISTS (SELECT FROM reviews_label l WHERE l.item_id = i.id AND l.by_id = %(me)s),
  EXISTS (SELECT FROM reviews_reviewdraft d WHERE d.by_id = %(me)s AND d.purpose = 'label'
    AND d.trial_id = i.trial_id AND d.criterion_id = %(criterion)s
    AND d.held_until IS NOT NULL),
  own.ending, own.expires_at,
  EXISTS (SELECT FROM reviews_revelation r WHERE r.trial_id = i.trial_id
    AND r.criterion_id = %(criterion)s AND r.by_id = %(me)s)
    OR EXISTS (SELECT FROM reviews_adjudication d WHERE d.trial_id = i.trial_id
      AND d.criterion_id = %(criterion)s AND d.by_id = %(me)s),
  EXISTS (SELECT FROM reviews_verdict v WHERE v.trial_id = i.trial_id
    AND v.criterion_id = %(criterion)s AND v.by_id = %(me)s),
  t.release_id = ANY(%(brought)s)
    OR EXISTS (SELECT FROM reviews_verdict v JOIN traces_upload u ON u.id = v.upload_id
      LEFT JOIN traces_apikey a ON a.id = u.api_key_id
      WHERE v.trial_id = i.trial_id AND (u.by_id = %(me)s OR a.user_id = %(me)s)),
  EXISTS (SELECT FROM traces_contractversion c JOIN traces_contractproposal p
    ON p.id = c.proposal_id WHERE c.id = k.contract_id AND p.created_by_id = %(me)s),
  EXISTS (SELECT FROM traces_evidenceaddition e LEFT JOIN traces_apikey a ON a.id = e.api_key_id
    WHERE e.trial_id = i.trial_id AND (e.by_id = %(me)s OR a.user_id = %(me)s))
FROM reviews_calibrationitem i
JOIN traces_trial t ON t.id = i.trial_id
JOIN traces_task k ON k.id = t.task_id
LEFT JOIN reviews_seat own ON own.item_id = i.id AND own.by_id = %(me)s
LEFT JOIN LATERAL (
  SELECT count(*) AS n, min(s.expires_at) AS until FROM reviews_seat s
  JOIN traces_user u ON u.id = s.by_id AND u.is_active
  JOIN traces_member m ON m.user_id = s.by_id AND m.system_id = %(system)s AND m.role = 'reviewer'
  WHERE s.item_id = i.id AND s.by_id <> %(me)s AND s.ended_at IS NULL AND s.expires_at > %(now)s
) held ON true
WHERE i.set_id = %(set)s AND i.settled_at IS NULL AND i.withdrawn_at IS NULL
  AND (%(item)s::bigint IS NULL OR i.id = %(item)s)
ORDER BY i.position
"""
_ENDINGS = {"labelled": Bar.LABELLED, "skipped": Bar.SKIPPED, "given_up": Bar.GIVEN_UP}


def queue_of(
    of: CalibrationSet, *, by: User, now: datetime, item: int | None = None
) -> list[QueuedItem]:
    """The items of a set that still want labels, in their order, or one of them. Two queries."""
    values: dict[str, int | datetime | list[int] | None] = {
        "me": by.pk,
        "criterion": of.criterion_id,
        "system": of.system_id,
        "now": now,
        "set": of.pk,
        "item": item,
        "brought": list(releases_brought(of.system_id, by)),
    }
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE, values)
        return [_queued(*row) for row in cursor.fetchall()]


def _queued(
    pk: int,
    position: int,
    n_needed: int,
    n_labels: int,
    n_held: int,
    held_until: datetime | None,
    is_labelled: bool,  # noqa: FBT001 - a column
    is_submitted: bool,  # noqa: FBT001 - a column
    ending: str | None,
    own_until: datetime | None,
    *others: bool,
) -> QueuedItem:
    bars = (
        (Bar.LABELLED, is_labelled),
        (Bar.SUBMITTED, is_submitted),
        (_ENDINGS.get(ending or ""), bool(ending)),
        *zip(
            (
                Bar.SEEN,
                Bar.OWN_VERDICT,
                Bar.BROUGHT_EVIDENCE,
                Bar.OWN_CONTRACT,
                Bar.ADDED_EVIDENCE,
            ),
            others,
            strict=True,
        ),
    )
    return QueuedItem(
        pk=pk,
        position=position,
        n_needed=n_needed,
        n_labels=n_labels,
        n_held=n_held,
        held_until=held_until,
        bar=next((bar for bar, holds in bars if holds), None),
        own_until=own_until,
    )


@dataclass(frozen=True, slots=True)
class LabelProgress:
    """How far a set is, in items."""

    n_items: int  # without the withdrawn ones
    n_settled: int
    n_own: int  # labels of the person


def label_progress(of: CalibrationSet, *, by: User) -> LabelProgress:
    """How far a set is, and how much of it a person labelled. Two queries."""
    counts = CalibrationItem.objects.filter(set=of, withdrawn_at=None).aggregate(
        n_items=Count("pk"), n_settled=Count("pk", filter=Q(settled_at__isnull=False))
    )
    own = Label.objects.filter(item__set=of, by=by).count()
    return LabelProgress(counts["n_items"], counts["n_settled"], own)


def item_of(of: CalibrationSet, item: uuid.UUID) -> CalibrationItem | None:
    """An item of a set by its name in addresses and forms, with its trial and task."""
    return (
        CalibrationItem.objects.select_related("set__system", "set__criterion", "trial__task")
        .filter(set=of, uuid=item)
        .first()
    )
