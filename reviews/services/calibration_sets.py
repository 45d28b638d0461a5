"""Calibration sets: made, thinned out, closed, completed and vouched for."""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import counted
from evalsite.common.row_digests import RowRef
from reviews.core.sampling import (
    Candidate,
    Drawn,
    Stratum,
    chosen_order,
    random_draw,
    strata_document,
    stratified_draw,
)
from reviews.models import (
    CalibrationItem,
    CalibrationSet,
    Criterion,
    Label,
    Sampling,
    SetVouch,
)
from reviews.permissions.calibration_sets import set_refusal, vouch_refusal
from reviews.permissions.flags import role_in
from reviews.selectors.calibration_candidates import (
    CandidateFilter,
    LabelCriterion,
    criteria_to_label,
    qualifying_trials,
)
from traces.core.text_marks import clean_text, count_marks
from traces.models import Release, System, User

log = logging.getLogger("evalsite.calibration_sets")

LONGEST_NAME = 200  # characters
LONGEST_REASON = 4_000
MOST_ITEMS = 1_000

NO_CRITERION = "This system has no such criterion to label; it may have changed since."
NO_TRIAL = "No trial qualifies: completed ones that stand, of tasks asked for this criterion now."
WITHDRAWN = "This item was withdrawn already."
SETTLED = "People have settled this item; labels are never taken back."
OVER = "This set is not open any more."
NOT_IMPORTED = "Labels that people gave here need nobody's word."
NOT_COMPLETE = "This set is not complete."
VOUCHED = "Somebody has vouched for this set already."


class CalibrationSetError(Exception):
    """A refusal, with its sentence for people."""


class CalibrationSetDeniedError(CalibrationSetError):
    """Somebody who may not do that."""


@dataclass(frozen=True, slots=True)
class SetWish:
    """What somebody wants of a new set.

    `n` counts for a random set, `wanted` for a stratified one, `trials` for one chosen by hand.
    """

    name: str
    reason: str
    criterion: str
    criterion_digest: uuid.UUID | None
    sampling: Sampling = Sampling.RANDOM
    n: int = 50
    wanted: Mapping[Stratum, int] = field(default_factory=dict)
    trials: tuple[uuid.UUID, ...] = ()
    release: Release | None = None
    family: str = ""
    environment: str = ""  # test or production; "" takes both


@transaction.atomic
def make_set(
    system: System, wish: SetWish, *, by: User, now: datetime, seed: int | None = None
) -> CalibrationSet:
    """Draw trials for people to label blind on a criterion as it stands now.

    Fewer trials than wanted make a smaller set, whose strata say so. Without `seed` one is drawn; it is
    kept. Raises `CalibrationSetDeniedError` for who is no reviewer, and `CalibrationSetError` for a
    missing name or reason, a criterion that nothing asks for, and where no trial, or one of those
    that were chosen by hand does not, qualifies.
    """
    if refusal := set_refusal(role_in(system.pk, by)):
        raise CalibrationSetDeniedError(refusal)
    name = field_text(wish.name, "A set has a name.", LONGEST_NAME)
    reason = field_text(wish.reason, "Say why these trials are to be labelled.", LONGEST_REASON)
    # The system's lock gives the number, and keeps a trial out of two sets that are made at once.
    System.objects.select_for_update(no_key=True).get(pk=system.pk)
    criterion = criterion_now(system, wish.criterion, wish.criterion_digest)
    drawn_seed = secrets.randbits(62) if seed is None else seed
    drawn = _drawn(system, wish, criterion, drawn_seed)
    row = CalibrationSet.objects.create(
        system=system,
        number=next_number(system),
        name=name,
        criterion=Criterion.objects.get_or_create(system=system, name=criterion.name)[0],
        criterion_digest=criterion.digest,
        rubric_version=criterion.rubric_version,
        question=criterion.question,
        sampling=wish.sampling.value,
        seed=drawn_seed,
        strata=strata_document(drawn.strata) if drawn.strata else None,
        reason=reason,
        is_imported=False,
        by=by,
        created_at=now,
    )
    CalibrationItem.objects.bulk_create(
        CalibrationItem(
            set=row,
            trial_id=each.pk,
            position=position,
            stratum=each.stratum.value if wish.sampling is Sampling.STRATIFIED else "",
        )
        for position, each in enumerate(drawn.candidates, start=1)
    )
    _record(
        "calibration_set.made",
        row,
        reason,
        by,
        now,
        after={"sampling": row.sampling, "n_items": len(drawn.candidates), "seed": row.seed},
    )
    _note("calibration set made", row, by, items=len(drawn.candidates))
    return row


def _drawn(system: System, wish: SetWish, criterion: LabelCriterion, seed: int) -> Drawn:
    is_chosen = wish.sampling is Sampling.CHOSEN
    found = qualifying_trials(
        CandidateFilter(
            system,
            criterion,
            release_pk=wish.release.pk if wish.release else None,
            family=wish.family,
            environment=wish.environment,
            trials=wish.trials if is_chosen else None,
        )
    )
    if is_chosen and (others := set(wish.trials) - found.identities):
        raise CalibrationSetError(_others_words(others))
    if not found.candidates:
        raise CalibrationSetError(NO_TRIAL)
    drawn = _draw(wish, found.candidates, seed)
    if not drawn.candidates:
        raise CalibrationSetError("A set has at least one trial.")
    if len(drawn.candidates) > MOST_ITEMS:
        raise CalibrationSetError(f"A set has at most {MOST_ITEMS:,} trials.")
    return drawn


def _draw(wish: SetWish, candidates: tuple[Candidate, ...], seed: int) -> Drawn:
    match wish.sampling:
        case Sampling.RANDOM:
            return random_draw(candidates, max(wish.n, 0), seed=seed)
        case Sampling.STRATIFIED:
            return stratified_draw(candidates, wish.wanted, seed=seed)
        case Sampling.CHOSEN:
            return chosen_order(candidates, seed=seed)


_SHOWN = 5


def _others_words(others: set[uuid.UUID]) -> str:
    named = ", ".join(sorted(map(str, others))[:_SHOWN])
    more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
    stand = "stands" if len(others) == 1 else "stand"
    return (
        f"You chose {counted(len(others), 'trial')} that cannot be labelled on this criterion, or "
        f"{stand} in a blind set on it already: {named}{more}."
    )


@transaction.atomic
def withdraw_item(item: CalibrationItem, *, reason: str, by: User, now: datetime) -> None:
    """Take an item out of an open set, with a reason: nobody labels it any more.

    The caller asks `complete_if_done` next. Raises `CalibrationSetDeniedError` for who is no
    reviewer, and `CalibrationSetError` for an item that is settled or withdrawn, or a set that is
    not open.
    """
    row = _locked(item.set_id)
    if refusal := set_refusal(role_in(row.system_id, by)):
        raise CalibrationSetDeniedError(refusal)
    why = field_text(reason, "Say why it is taken out.", LONGEST_REASON)
    kept = CalibrationItem.objects.get(pk=item.pk)
    if refusal := _not_withdrawable(row, kept):
        raise CalibrationSetError(refusal)
    kept.withdrawn_at, kept.withdrawn_by, kept.withdrawn_reason = now, by, why
    kept.save(update_fields=["withdrawn_at", "withdrawn_by", "withdrawn_reason"])
    _record("calibration_set.item_withdrawn", row, why, by, now, after={"item": kept.position})
    _note("calibration item withdrawn", row, by, item=kept.pk)


def _not_withdrawable(row: CalibrationSet, item: CalibrationItem) -> str:
    if item.withdrawn_at:
        return WITHDRAWN
    if item.settled_at:
        return SETTLED
    return OVER if row.completed_at or row.closed_at else ""


@transaction.atomic
def close_set(calibration_set: CalibrationSet, *, reason: str, by: User, now: datetime) -> None:
    """End an open set by hand: nobody labels it any more, and it counts in no calibration.

    Raises `CalibrationSetDeniedError` for who is no reviewer, and `CalibrationSetError` for a set
    that is not open.
    """
    row = _locked(calibration_set.pk)
    if refusal := set_refusal(role_in(row.system_id, by)):
        raise CalibrationSetDeniedError(refusal)
    why = field_text(reason, "Say why it ends before it is complete.", LONGEST_REASON)
    if row.completed_at or row.closed_at:
        raise CalibrationSetError(OVER)
    row.closed_at, row.closed_by, row.closing_reason = now, by, why
    row.save(update_fields=["closed_at", "closed_by", "closing_reason"])
    _record("calibration_set.closed", row, why, by, now)
    _note("calibration set closed", row, by)


@transaction.atomic
def complete_if_done(calibration_set: CalibrationSet, *, now: datetime) -> bool:
    """Complete an open set whose items are all settled or withdrawn. Whether this did it.

    Locks the set's row, so that of two people who give the last labels one completes it.
    """
    row = _locked(calibration_set.pk)
    if row.completed_at or row.closed_at:
        return False
    if CalibrationItem.objects.filter(set=row, settled_at=None, withdrawn_at=None).exists():
        return False
    row.completed_at = now
    row.save(update_fields=["completed_at"])
    log.info("calibration set complete", extra={"set": row.pk})
    return True


@transaction.atomic
def vouch_for_set(
    calibration_set: CalibrationSet, *, reason: str, by: User, now: datetime
) -> SetVouch:
    """Give one's word for imported labels: calibrations count them from now on.

    Raises `CalibrationSetDeniedError` for who is no reviewer, brought them in or gave one of them, and
    `CalibrationSetError` for labels given here and where somebody has vouched already.
    """
    row = _locked(calibration_set.pk)
    if refusal := vouching_refusal_of(row, by):
        raise CalibrationSetDeniedError(refusal)
    why = field_text(reason, "Say what you checked.", LONGEST_REASON)
    if not row.is_imported:
        raise CalibrationSetError(NOT_IMPORTED)
    if SetVouch.objects.filter(set=row).exists():
        raise CalibrationSetError(VOUCHED)
    vouch = SetVouch.objects.create(set=row, reason=why, by=by, vouched_at=now)
    _record("calibration_set.vouched", row, why, by, now, rows=[("reviews_setvouch", row.pk)])
    _note("calibration set vouched for", row, by)
    return vouch


def vouching_refusal_of(calibration_set: CalibrationSet, user: User) -> str:
    """Why a person may not vouch for a set; "" when they may."""
    labels = Label.objects.filter(item__set=calibration_set)
    names = {user.username, user.printed_name}
    return vouch_refusal(
        role_in(calibration_set.system_id, user),
        is_importer=calibration_set.by_id == user.pk,
        is_labeller=labels.filter(by=user).exists() or labels.filter(labeller__in=names).exists(),
    )


def criterion_now(system: System, name: str, digest: uuid.UUID | None) -> LabelCriterion:
    """The criterion of that name and digest as it stands. Raises `CalibrationSetError` without."""
    for each in criteria_to_label(system.pk):
        if each.name == name and each.digest == digest:
            return each
    raise CalibrationSetError(NO_CRITERION)


def next_number(system: System) -> int:
    """The number of the system's next set. The caller holds the system's lock."""
    last = CalibrationSet.objects.filter(system=system).aggregate(n=Max("number"))["n"]
    return (last or 0) + 1


def field_text(text: str, missing: str, longest: int) -> str:
    """A text as it is stored. Raises `CalibrationSetError` where it says nothing or too much."""
    kept = clean_text(text).strip()
    if count_marks(kept) >= len("".join(kept.split())):
        raise CalibrationSetError(missing)
    if len(kept) > longest:
        raise CalibrationSetError(f"That text has at most {longest:,} characters.")
    return kept


def _locked(set_pk: int) -> CalibrationSet:
    return CalibrationSet.objects.select_for_update(of=("self",), no_key=True).get(pk=set_pk)


def _record(
    act: str,
    row: CalibrationSet,
    reason: str,
    by: User,
    now: datetime,
    *,
    after: dict[str, object] | None = None,
    rows: Sequence[RowRef] = (),
) -> None:
    record(
        act,
        system_pk=row.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("calibration_set", str(row.number), f"Set {row.number}: {row.name}"),
        after=after,
        reason=reason,
        rows=rows,
    )


def _note(event: str, row: CalibrationSet, by: User, **more: int) -> None:
    log.info(event, extra={"set": row.pk, "system": row.system_id, "by": by.username, **more})
