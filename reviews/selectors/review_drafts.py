"""Drafts of one person, and those that wait to become final."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from reviews.models import DraftPurpose, ReviewDraft
from traces.models import User


def draft_on(
    purpose: DraftPurpose, *, trial_pk: int, criterion: str, by: User
) -> ReviewDraft | None:
    """What a person has written on a criterion of a trial and not decided yet."""
    return ReviewDraft.objects.filter(
        by=by, purpose=purpose.value, trial=trial_pk, criterion__name=criterion
    ).first()


@dataclass(frozen=True, slots=True)
class SubmittedDrafts:
    """What a person submitted: what can still be taken back, and what was not kept."""

    held: tuple[ReviewDraft, ...]  # the latest first
    refused: tuple[ReviewDraft, ...]


def submitted_drafts(purpose: DraftPurpose, *, system_pk: int, by: User) -> SubmittedDrafts:
    """What a person submitted in a system and is not decided. One query."""
    rows = list(
        ReviewDraft.objects.select_related("trial__task", "criterion", "item__set")
        .filter(by=by, system=system_pk, purpose=purpose.value)
        .filter(Q(held_until__isnull=False) | ~Q(refusal=""))
        .order_by("-held_until", "-saved_at", "-pk")[:40]
    )
    return SubmittedDrafts(
        held=tuple(row for row in rows if row.held_until is not None),
        refused=tuple(row for row in rows if row.held_until is None),
    )


def held_drafts(purpose: DraftPurpose, *, system_pk: int, by: User) -> list[ReviewDraft]:
    """What a person has submitted and can still take back, the latest first."""
    return list(submitted_drafts(purpose, system_pk=system_pk, by=by).held)


def refused_drafts(purpose: DraftPurpose, *, system_pk: int, by: User) -> list[ReviewDraft]:
    """What a person submitted and was not kept: they have still to look at it."""
    return list(submitted_drafts(purpose, system_pk=system_pk, by=by).refused)


def due_drafts(*, now: datetime, by: User | None = None) -> list[int]:
    """Ids of submitted drafts whose time has come, of one person or of everybody."""
    rows = ReviewDraft.objects.filter(held_until__lte=now)
    if by is not None:
        rows = rows.filter(by=by)
    return list(rows.order_by("held_until", "pk").values_list("pk", flat=True)[:500])
