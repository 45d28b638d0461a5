"""A person labels an item blind, and its trial is decided anew in the same transaction.

The last label of a set completes it: calibrations are read, and what they decide is decided anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from evalsite.after_calibration import all_evidence_locked, calibrations_and_decide
from evalsite.after_review import decided_again
from reviews.models import CalibrationItem, CalibrationSet, Label, ReviewDraft, Seat
from reviews.services.calibration_sets import complete_if_done
from reviews.services.labels import give_label
from reviews.services.review_drafts import DraftRefusedError
from reviews.services.seats import LabelError, NoSeat, NoSeatKind, take_seat
from traces.core.records import VerdictValue
from traces.models import User


def label_and_decide(
    item: CalibrationItem,
    *,
    value: VerdictValue,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    seen: str = "",
) -> Label:
    """Give a blind label (`reviews.services.labels.give_label`) and decide the trial on it."""
    of = CalibrationSet.objects.select_related("system", "criterion").get(pk=item.set_id)
    # Before the set's own lock, as everybody does who takes both.
    with all_evidence_locked(of.system):
        row = give_label(item, value=value, reason=reason, steps=steps, by=by, now=now, seen=seen)
        decided_again([item.trial_id], of.system, now=now)
        _complete(of, now)
    return row


def seat_of(of: CalibrationSet, *, by: User, now: datetime) -> Seat | NoSeat:
    """Reserve the next item (`take_seat`); where none wants a label, the set is complete by it."""
    found = take_seat(of, by=by, now=now)
    if isinstance(found, NoSeat) and found.kind is NoSeatKind.DONE:
        complete_set(of, now=now)
    return found


def complete_set(of: CalibrationSet, *, now: datetime) -> bool:
    """Complete a set that wants no label any more, and read what follows. Whether this did it."""
    with all_evidence_locked(of.system):
        return _complete(of, now)


def _complete(of: CalibrationSet, now: datetime) -> bool:
    is_complete = complete_if_done(of, now=now)
    if is_complete:
        calibrations_and_decide(of.system, of.criterion, of.criterion_digest, now=now)
    return is_complete


_VALUES = {value.value: value for value in VerdictValue}


def finish_label(draft: ReviewDraft, now: datetime) -> None:
    """Keep what a held draft says as a label. Raises `DraftRefusedError` where it cannot be."""
    value = _VALUES.get(draft.decision)
    try:
        if draft.item is None or value is None:
            raise LabelError("Say pass, fail or cannot tell.")
        label_and_decide(
            draft.item,
            value=value,
            reason=draft.reason,
            steps=draft.steps,
            by=draft.by,
            now=now,
            seen=draft.seen,
        )
    except LabelError as error:
        raise DraftRefusedError(str(error)) from error
