"""What reviewers have written and not decided yet: saved, held for some seconds, taken back.

A draft is a working row, never evidence. With `held_until` it is submitted; it becomes final once
that time has come, in one transaction that decides and deletes it, so that it is decided once
however many try. Whoever makes it final locks the draft first and evidence after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from reviews.models import CalibrationItem, Criterion, DraftPurpose, ReviewDraft
from traces.core.text_marks import clean_text
from traces.models import System, Trial, User

HOLD = timedelta(seconds=8)
LONGEST_REASON = 4_000  # characters, as verdicts take it
LONGEST_DECISION = 24
MOST_STEPS = 50
LARGEST_STEP = 2**31 - 1
HELD = "This is submitted already. Take it back to change it."


class DraftHeldError(Exception):
    """What is submitted does not change; its sentence is for people."""


class DraftRefusedError(Exception):
    """A held draft that cannot be made final, with the sentence that says why."""


@dataclass(frozen=True, slots=True)
class DraftPlace:
    """What a draft is about: one a person, purpose, trial and criterion."""

    purpose: DraftPurpose
    by: User
    system: System
    trial: Trial
    criterion: Criterion
    item: CalibrationItem | None = None  # of a blind label


@transaction.atomic
def save_draft(
    place: DraftPlace,
    *,
    decision: str = "",
    reason: str = "",
    steps: Iterable[int] = (),
    seen: str = "",
    now: datetime,
    hold: bool = False,
) -> ReviewDraft:
    """Keep what somebody has written so far; with `hold`, submit it, to be final after `HOLD`.

    What is too long is cut, and checked when it is decided. Raises `DraftHeldError` for one that is
    submitted already.
    """
    row, _ = ReviewDraft.objects.get_or_create(
        **_key(place), defaults={"system": place.system, "item": place.item, "saved_at": now}
    )
    row = ReviewDraft.objects.select_for_update().get(pk=row.pk)
    if row.held_until is not None:
        raise DraftHeldError(HELD)
    row.item = place.item
    row.decision = clean_text(decision)[:LONGEST_DECISION]
    row.reason = clean_text(reason)[: LONGEST_REASON + 1]
    row.steps = sorted({step for step in steps if 0 < step <= LARGEST_STEP})[: MOST_STEPS + 1]
    row.seen, row.saved_at, row.refusal = clean_text(seen)[:200], now, ""
    row.held_until = now + HOLD if hold else None
    row.save()
    return row


@transaction.atomic
def undo_hold(place: DraftPlace, *, now: datetime) -> ReviewDraft | None:
    """Take a submitted draft back, with all that was written. None: it is final by now."""
    row = ReviewDraft.objects.select_for_update().filter(**_key(place)).first()
    if row is None or row.held_until is None:
        return row
    if row.held_until <= now:
        return None
    row.held_until, row.saved_at = None, now
    row.save(update_fields=["held_until", "saved_at"])
    return row


def drop_draft(place: DraftPlace) -> bool:
    """Forget what somebody has written; part of the transaction that decides it, or on request.

    Whether there was one. A submitted one goes as well: it was decided without waiting.
    """
    deleted, _ = ReviewDraft.objects.filter(**_key(place)).delete()
    return deleted > 0


def take_due(draft_pk: int, *, now: datetime) -> ReviewDraft | None:
    """A submitted draft whose time has come, locked until the transaction ends.

    None where it was taken back, or made final by somebody else meanwhile.
    """
    return (
        ReviewDraft.objects.select_for_update(of=("self",))
        .select_related("by", "system", "trial__task", "criterion", "item__set")
        .filter(pk=draft_pk, held_until__lte=now)
        .first()
    )


def refuse_draft(draft: ReviewDraft, sentence: str, *, now: datetime) -> None:
    """Say why a submitted draft was not kept. All that was written stays with its author."""
    draft.held_until, draft.refusal, draft.saved_at = None, sentence, now
    draft.save(update_fields=["held_until", "refusal", "saved_at"])


def _key(place: DraftPlace) -> dict[str, object]:
    return {
        "by": place.by,
        "purpose": place.purpose.value,
        "trial": place.trial,
        "criterion": place.criterion,
    }
