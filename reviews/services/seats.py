"""Reservations of the items of a blind set: made, extended, given up.

All of it happens under the lock of the set, so that a queue is empty only when it is empty.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from evalsite.common.audit import AuditedObject, record
from reviews.core.seating import (
    RESERVED_FOR,
    QueuedItem,
    clock_text,
    extended,
    next_item,
    reserved_until,
    why_nothing,
)
from reviews.models import (
    CalibrationItem,
    CalibrationSet,
    DraftPurpose,
    Label,
    Revelation,
    ReviewDraft,
    Seat,
    SeatEnding,
)
from reviews.permissions.labels import (
    CLOSED_SET,
    DONE_SET,
    LABELLED,
    LEFT,
    item_refusal,
    labelling_refusal,
)
from reviews.selectors.blinding import open_items
from reviews.selectors.gradable import Gradable, criteria_of, gradable_criteria
from reviews.selectors.label_queue import queue_of
from traces.core.text_marks import clean_text, count_marks
from traces.models import Trial, User
from traces.selectors.contracts import contracts_in_effect

log = logging.getLogger("evalsite.labels")

LONGEST_REASON = 2_000  # characters of a reason to skip
NO_REASON = "Say why you leave this item to others."
NOT_RESERVED = "This item is not reserved for you; label the one that is."
NO_LONGER = (
    "Your reservation of this item ended, and others label it now. What you wrote stays here, and "
    "may be kept if the item comes free again."
)
EXTENDED_ENOUGH = "A reservation lasts an hour at most. Label the item or leave it to others."
SUBMITTED = (
    "Your label on this trial becomes final in some seconds; what others say is shown after that."
)
RUBRIC_CHANGED = (
    "The criterion that this set asks about changed for this trial since the set was made; the "
    "item is withdrawn from it."
)


class LabelError(Exception):
    """A refusal, with its sentence for people."""


class LabelDeniedError(LabelError):
    """Somebody who may not do that."""


class NoSeatKind(StrEnum):
    """Why nothing is reserved."""

    DENIED = "denied"  # the person labels nothing of this set
    DONE = "done"  # no item wants a label
    RESERVED = "reserved"  # all that is left is in the hands of others
    NOT_FOR_YOU = "not_for_you"  # the person may label none of what is left


@dataclass(frozen=True, slots=True)
class NoSeat:
    """Nothing is reserved, and the sentence that says why."""

    kind: NoSeatKind
    reason: str
    until: datetime | None = None  # when an item comes free, where all are reserved


@transaction.atomic
def take_seat(of: CalibrationSet, *, by: User, now: datetime) -> Seat | NoSeat:
    """Reserve the next item of a set for a person, or give them the one that they have.

    Items that others have begun come first, so that few are half done. Items whose criterion is no
    longer the one of the set are withdrawn on the way.
    """
    of = locked_set(of)
    if refusal := labelling_refusal(of, by):
        kind = NoSeatKind.DONE if refusal in (DONE_SET, CLOSED_SET) else NoSeatKind.DENIED
        return NoSeat(kind, refusal)
    queue = queue_of(of, by=by, now=now)
    chosen = next_item(queue, now)
    if chosen is not None and _gradable(of, chosen) is None:
        withdrawn = _withdraw_changed(of, now)
        queue = [item for item in queue if item.pk not in withdrawn]
        chosen = next_item(queue, now)
    return _none(queue) if chosen is None else _seated(chosen, by, now)


def _none(queue: list[QueuedItem]) -> NoSeat:
    if not queue:
        return NoSeat(NoSeatKind.DONE, DONE_SET)
    if until := reserved_until(queue):
        return NoSeat(
            NoSeatKind.RESERVED,
            "All that is left for you is reserved by others, the first until "
            f"{clock_text(until)}. Come back then.",
            until,
        )
    return NoSeat(NoSeatKind.NOT_FOR_YOU, why_nothing(queue))


def _seated(item: QueuedItem, by: User, now: datetime) -> Seat:
    if item.own_until is not None and item.own_until > now:
        return _seats().get(item=item.pk, by=by)
    Seat.objects.update_or_create(
        item_id=item.pk, by=by, defaults={"taken_at": now, "expires_at": now + RESERVED_FOR}
    )
    return _seats().get(item=item.pk, by=by)


def _seats() -> QuerySet[Seat]:
    return Seat.objects.select_related("item__set__criterion", "item__trial__task")


def locked_set(of: CalibrationSet) -> CalibrationSet:
    """A set as it is now, kept so until the transaction ends."""
    rows = CalibrationSet.objects.select_related("criterion", "system")
    return rows.select_for_update(no_key=True, of=("self",)).get(pk=of.pk)


def asked_of(of: CalibrationSet, trial: Trial) -> Gradable | None:
    """The criterion of a set as a trial is decided by it now; None where it is another one."""
    found = gradable_criteria(trial).get(of.criterion.name)
    return found if found and found.stored_digest == of.criterion_digest else None


def _gradable(of: CalibrationSet, item: QueuedItem) -> Gradable | None:
    trial = Trial.objects.select_related("task").get(
        pk=CalibrationItem.objects.values("trial").get(pk=item.pk)["trial"]
    )
    return asked_of(of, trial)


def _withdraw_changed(of: CalibrationSet, now: datetime) -> frozenset[int]:
    """Withdraw the open items whose criterion is no longer the one of the set."""
    rows = list(
        CalibrationItem.objects.filter(set=of, settled_at=None, withdrawn_at=None)
        .select_related("trial__task")
        .order_by("pk")
    )
    contracts = contracts_in_effect({row.trial.task_id for row in rows})
    asked = {
        task: criteria_of(found.contract, found.pk).get(of.criterion.name)
        for task, found in contracts.items()
    }
    changed = [row.pk for row in rows if not _still_asks(of, row.trial, asked)]
    CalibrationItem.objects.filter(pk__in=changed).update(
        withdrawn_at=now, withdrawn_reason=RUBRIC_CHANGED
    )
    log.info("items withdrawn", extra={"set": of.pk, "n_items": len(changed)})
    return frozenset(changed)


def _still_asks(of: CalibrationSet, trial: Trial, asked: dict[int, Gradable | None]) -> bool:
    if trial.task_id not in asked:
        return asked_of(of, trial) is not None
    found = asked[trial.task_id]
    return found is not None and found.stored_digest == of.criterion_digest


@transaction.atomic
def extend_seat(item: CalibrationItem, *, by: User, now: datetime) -> Seat:
    """Reserve an item for longer. Raises `LabelError` where it cannot be."""
    of = locked_set(item.set)
    seat = own_seat(of, item, by)
    check_room(of, item, by, now)
    until = extended(seat.taken_at, now)
    if until <= seat.expires_at:
        raise LabelError(EXTENDED_ENOUGH)
    seat.expires_at = until
    seat.save(update_fields=["expires_at"])
    return seat


@transaction.atomic
def hold_seat(item: CalibrationItem, *, until: datetime, by: User, now: datetime) -> None:
    """Keep an item reserved until a submitted label on it is final."""
    of = locked_set(item.set)
    seat = own_seat(of, item, by)
    check_room(of, item, by, now)
    if seat.expires_at < until:
        seat.expires_at = until
        seat.save(update_fields=["expires_at"])


@transaction.atomic
def skip_item(item: CalibrationItem, *, reason: str, by: User, now: datetime) -> Seat:
    """Leave an item to others for good, with a reason. The same again changes nothing."""
    of = locked_set(item.set)
    seat = Seat.objects.filter(item=item, by=by).first()
    if seat is not None and seat.ending == SeatEnding.SKIPPED.value:
        return seat
    if refusal := labelling_refusal(of, by):
        raise LabelDeniedError(refusal)
    seat = own_seat(of, item, by)
    why = clean_text(reason).strip()
    if count_marks(why) >= len("".join(why.split())):
        raise LabelError(NO_REASON)
    if len(why) > LONGEST_REASON:
        raise LabelError(f"A reason has at most {LONGEST_REASON:,} characters.")
    end_seat(seat, SeatEnding.SKIPPED, why, now)
    label_drafts(item.trial_id, of.criterion_id, by).delete()
    log.info("item skipped", extra={"item": item.pk, "by": by.username})
    return seat


@transaction.atomic
def reveal(trial: Trial, criterion_pk: int, *, where: str, by: User, now: datetime) -> None:
    """Note that a person sees what others say of a criterion of a trial, from now on.

    They label no item of it any more; what they reserved is free for others. Raises `LabelError`
    while a label of theirs on it is submitted and not final.
    """
    items = open_items().filter(trial=trial, set__criterion=criterion_pk)
    sets = CalibrationSet.objects.filter(pk__in=items.values("set")).order_by("pk")
    list(sets.select_for_update(no_key=True).values_list("pk", flat=True))
    drafts = label_drafts(trial.pk, criterion_pk, by)
    if drafts.filter(held_until__isnull=False).exists():
        raise LabelError(SUBMITTED)
    row, is_new = Revelation.objects.get_or_create(
        trial=trial,
        criterion_id=criterion_pk,
        by=by,
        defaults={"where": clean_text(where), "at": now},
    )
    for seat in Seat.objects.filter(item__in=items, by=by, ended_at=None):
        end_seat(seat, SeatEnding.GIVEN_UP, "", now)
    drafts.delete()
    if is_new:
        record(
            "verdicts.revealed",
            system_pk=trial.system_id,
            by_pk=by.pk,
            at=now,
            obj=AuditedObject("trial", str(trial.uuid), f"Trial {trial.label}"),
            after={"criterion": row.criterion.name, "where": row.where},
            rows=[("reviews_revelation", row.pk)],
        )
    log.info("verdicts revealed", extra={"trial": str(trial.uuid), "by": by.username})


@transaction.atomic
def reveal_in(trials: QuerySet[Trial], *, where: str, by: User, now: datetime) -> int:
    """Note that a person gets what others say of many trials at once, as a file.

    As `reveal` does for each criterion that is hidden from them; how many there were. What they
    have submitted becomes final all the same: it was written before.
    """
    found = open_items().filter(trial__in=trials).select_related("set")
    seen = Revelation.objects.filter(
        trial=OuterRef("trial"), criterion=OuterRef("set__criterion"), by=by
    )
    labelled = Label.objects.filter(item=OuterRef("pk"), by=by)
    submitted = ReviewDraft.objects.filter(item=OuterRef("pk"), by=by, held_until__isnull=False)
    items = list(found.filter(~Exists(seen), ~Exists(labelled), ~Exists(submitted)))
    sets = CalibrationSet.objects.filter(pk__in={item.set_id for item in items}).order_by("pk")
    list(sets.select_for_update(no_key=True).values_list("pk", flat=True))
    rows = {
        (item.trial_id, item.set.criterion_id): Revelation(
            trial_id=item.trial_id, criterion_id=item.set.criterion_id, by=by, where=where, at=now
        )
        for item in items
    }
    Revelation.objects.bulk_create(rows.values(), ignore_conflicts=True)
    Seat.objects.filter(item__in=items, by=by, ended_at=None).update(
        ending=SeatEnding.GIVEN_UP.value, ended_at=now
    )
    if rows:
        first = items[0].set
        record(
            "verdicts.revealed",
            system_pk=first.system_id,
            by_pk=by.pk,
            at=now,
            obj=AuditedObject("trials", str(len(rows)), f"{len(rows)} trials"),
            after={"where": where, "n_items": len(rows)},
        )
        log.info("verdicts revealed", extra={"where": where, "n": len(rows), "by": by.username})
    return len(rows)


def own_seat(of: CalibrationSet, item: CalibrationItem, by: User) -> Seat:
    """The person's reservation of an item that still wants labels."""
    seat = Seat.objects.filter(item=item, by=by).first()
    if seat is None:
        raise LabelError(NOT_RESERVED)
    fresh = CalibrationItem.objects.get(pk=item.pk)
    if refusal := item_refusal(fresh) or labelling_refusal(of, by):
        raise LabelError(refusal)
    if seat.ended_at is not None:
        raise LabelError(LABELLED if seat.ending == SeatEnding.LABELLED.value else LEFT)
    return seat


def check_room(of: CalibrationSet, item: CalibrationItem, by: User, now: datetime) -> QueuedItem:
    """The item as the person finds it. Raises `LabelError` where others have in hand what it wants.

    A reservation that ended does not matter as long as nobody else took its place.
    """
    (found,) = queue_of(of, by=by, now=now, item=item.pk)
    if not found.has_room:
        raise LabelError(NO_LONGER)
    return found


def end_seat(seat: Seat, ending: SeatEnding, reason: str, now: datetime) -> None:
    """Note how somebody left an item."""
    seat.ending, seat.reason, seat.ended_at = ending.value, reason, now
    seat.save(update_fields=["ending", "reason", "ended_at"])


def label_drafts(trial_pk: int, criterion_pk: int, by: User) -> QuerySet[ReviewDraft]:
    """What a person has written towards a label on a criterion of a trial."""
    return ReviewDraft.objects.filter(
        by=by, purpose=DraftPurpose.LABEL.value, trial=trial_pk, criterion=criterion_pk
    )
