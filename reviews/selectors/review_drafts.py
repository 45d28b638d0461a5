"""Drafts of one person, and those that wait to become final."""

from __future__ import annotations

from datetime import datetime

from django.db.models import QuerySet

from reviews.models import DraftPurpose, ReviewDraft
from traces.models import User


def draft_on(
    purpose: DraftPurpose, *, trial_pk: int, criterion: str, by: User
) -> ReviewDraft | None:
    """What a person has written on a criterion of a trial and not decided yet."""
    return ReviewDraft.objects.filter(
        by=by, purpose=purpose.value, trial=trial_pk, criterion__name=criterion
    ).first()


def held_drafts(purpose: DraftPurpose, *, system_pk: int, by: User) -> list[ReviewDraft]:
    """What a person has submitted and can still take back, the latest first."""
    rows = _drafts(purpose, system_pk, by).filter(held_until__isnull=False)
    return list(rows.order_by("-held_until", "-pk")[:20])


def refused_drafts(purpose: DraftPurpose, *, system_pk: int, by: User) -> list[ReviewDraft]:
    """What a person submitted and was not kept: they have still to look at it, latest first."""
    rows = _drafts(purpose, system_pk, by).filter(held_until=None).exclude(refusal="")
    return list(rows.order_by("-saved_at", "-pk")[:20])


def _drafts(purpose: DraftPurpose, system_pk: int, by: User) -> QuerySet[ReviewDraft]:
    return ReviewDraft.objects.select_related("trial__task", "criterion", "item__set").filter(
        by=by, system=system_pk, purpose=purpose.value
    )


def due_drafts(*, now: datetime, by: User | None = None) -> list[int]:
    """Ids of submitted drafts whose time has come, of one person or of everybody."""
    rows = ReviewDraft.objects.filter(held_until__lte=now)
    if by is not None:
        rows = rows.filter(by=by)
    return list(rows.order_by("held_until", "pk").values_list("pk", flat=True)[:500])
