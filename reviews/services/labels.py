"""Blind labels: what people say of an item before they see what anybody else says of it.

The label of a signed-in person is a verdict too. Where the first two people differ, what the third
one says is an adjudication: nobody decides on a verdict of their own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max

from evalsite.common.audit import AuditedObject, record
from reviews.core.consensus import consensus_of
from reviews.core.disposition import AdjudicationRuling
from reviews.models import (
    Adjudication,
    CalibrationItem,
    CalibrationSet,
    DraftPurpose,
    Label,
    Revelation,
    ReviewDraft,
    SeatEnding,
)
from reviews.permissions.labels import (
    LABELLED,
    NOT_A_REVIEWER,
    item_refusal,
    label_refusal,
    labelling_refusal,
)
from reviews.services.adjudications import (
    AdjudicationDeniedError,
    AdjudicationError,
    adjudicate,
)
from reviews.services.person_verdicts import (
    OUTDATED,
    PEOPLE_SAY,
    VerdictDeniedError,
    VerdictError,
    basis_words,
    checked_reason,
    checked_steps,
    contract_in_effect_pk,
    give_verdict,
)
from reviews.services.review_drafts import HOLD, DraftHeldError, DraftPlace, save_draft
from reviews.services.seats import (
    RUBRIC_CHANGED,
    LabelDeniedError,
    LabelError,
    asked_of,
    check_room,
    end_seat,
    hold_seat,
    label_drafts,
    locked_set,
    own_seat,
)
from traces.core.records import VerdictValue
from traces.models import EvidenceAddition, Release, Trial, User

log = logging.getLogger("evalsite.labels")

WHERE_LABELLED = "label"
HOLD_MARGIN = timedelta(minutes=2)  # for a worker that is late
DECIDES_FROM = 3  # the round from which a label is an adjudication
RULINGS = {
    VerdictValue.PASS: AdjudicationRuling.PASS,
    VerdictValue.FAIL: AdjudicationRuling.FAIL,
    VerdictValue.UNKNOWN: AdjudicationRuling.INSUFFICIENT_EVIDENCE,
}


@transaction.atomic
def give_label(
    item: CalibrationItem,
    *,
    value: VerdictValue,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    seen: str = "",
) -> Label:
    """Say blind what the set's criterion of an item comes to. The same again adds nothing.

    The person holds the item, or held it and nobody else took it. `seen` is what they had before
    them (`basis_words`): with it nothing is kept once another contract or more evidence is there.
    Raises `LabelDeniedError` when the person may not label it and `LabelError` for an item that
    wants no label any more, one of which the criterion changed, a second label, and what a
    verdict is refused for.

    The caller decides the trial anew, and reads calibrations when the set is complete.
    """
    stored, given = _opened(item, by)
    if given is not None:
        return _same(given, value, reason, steps)
    of, trial = stored.set, stored.trial
    seat = own_seat(of, stored, by)
    n_labels = check_room(of, stored, by, now).n_labels
    if value not in PEOPLE_SAY:
        raise LabelError("A person says pass, fail or unknown.")
    row = Label(item=stored, by=by, round=n_labels + 1, value=value.value, given_at=now)
    try:
        if row.round < DECIDES_FROM:
            row.verdict = give_verdict(
                trial,
                criterion=of.criterion.name,
                value=value,
                reason=reason,
                steps=steps,
                by=by,
                now=now,
                seen=seen,
                is_blind_label=True,
            )
            row.reason, row.cited_steps = row.verdict.rationale, row.verdict.cited_steps
        else:
            row.reason, row.cited_steps = checked_reason(reason), list(checked_steps(steps, trial))
            row.adjudication = _decided(row, row.cited_steps, seen, now)
    except (VerdictDeniedError, AdjudicationDeniedError) as error:
        raise LabelDeniedError(str(error)) from error
    except (VerdictError, AdjudicationError) as error:
        raise LabelError(str(error)) from error
    row.save()
    end_seat(seat, SeatEnding.LABELLED, "", now)
    Revelation.objects.get_or_create(
        trial=trial, criterion=of.criterion, by=by, defaults={"where": WHERE_LABELLED, "at": now}
    )
    _settle(stored, now)
    label_drafts(trial.pk, of.criterion_id, by).delete()
    # Neither value nor reason: others may have to label the item blind still.
    record(
        "label.given",
        system_pk=of.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("calibration_set", str(of.number), f"Set {of.number}: {of.name}"),
        after={"item": stored.position, "trial": str(trial.uuid)},
        rows=[("reviews_label", row.pk)],
    )
    log.info("blind label", extra={"item": stored.pk, "round": row.round, "by": by.username})
    return row


@transaction.atomic
def submit_label(
    item: CalibrationItem,
    *,
    value: VerdictValue,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    seen: str = "",
) -> ReviewDraft | Label:
    """Submit a label that the person can take back for some seconds before it is final.

    What `give_label` would refuse now is refused at once, and the item stays reserved until then.
    The label itself where the same one is there already.
    """
    stored, given = _opened(item, by)
    cited = tuple(steps)
    if given is not None:
        return _same(given, value, reason, cited)
    if value not in PEOPLE_SAY:
        raise LabelError("A person says pass, fail or unknown.")
    try:
        checked_reason(reason)
        checked_steps(cited, stored.trial)
        _check_basis(stored.trial, seen)
    except VerdictError as error:
        raise LabelError(str(error)) from error
    hold_seat(stored, until=now + HOLD + HOLD_MARGIN, by=by, now=now)
    place = DraftPlace(
        DraftPurpose.LABEL, by, stored.set.system, stored.trial, stored.set.criterion, stored
    )
    try:
        return save_draft(
            place, decision=value.value, reason=reason, steps=cited, seen=seen, now=now, hold=True
        )
    except DraftHeldError as error:
        raise LabelError(str(error)) from error


def _opened(item: CalibrationItem, by: User) -> tuple[CalibrationItem, Label | None]:
    """The item as it is now, locked with its set, and the label that the person gave of it.

    Raises where the person may not label it, or nobody does any more.
    """
    # As every writer of a release's evidence; the set's lock comes after it, always.
    Release.objects.select_for_update(no_key=True).get(pk=item.trial.release_id)
    of = locked_set(item.set)
    stored = CalibrationItem.objects.select_related("trial__task").get(pk=item.pk)
    stored.set = of
    given = Label.objects.filter(item=stored, by=by).first()
    if given is None:
        _check(stored, by)
    return stored, given


def _check_basis(trial: Trial, seen: str) -> None:
    """Raises `VerdictError` where the person saw less evidence, or another contract."""
    order = EvidenceAddition.objects.filter(trial=trial).aggregate(n=Max("order"))["n"] or 0
    if seen and seen != basis_words(contract_in_effect_pk(trial), order):
        raise VerdictError(OUTDATED)


def _same(given: Label, value: VerdictValue, reason: str, steps: Iterable[int]) -> Label:
    """The label that is there, where it is sent once more."""
    try:
        why = checked_reason(reason)
    except VerdictError as error:
        raise LabelError(LABELLED) from error
    if (given.value, given.reason, given.cited_steps) != (value.value, why, sorted(set(steps))):
        raise LabelError(LABELLED)
    return given


def _check(item: CalibrationItem, by: User) -> None:
    """Raises where the person labels the item no more, or nobody does."""
    of, trial = item.set, item.trial
    refusal = labelling_refusal(of, by)
    if refusal == NOT_A_REVIEWER:
        raise LabelDeniedError(refusal)
    if refusal := item_refusal(item) or refusal:
        raise LabelError(refusal)
    if refusal := label_refusal(item, trial, by):
        raise LabelDeniedError(refusal)
    if asked_of(of, trial) is None:
        raise LabelError(RUBRIC_CHANGED)


def _decided(label: Label, steps: Iterable[int], seen: str, now: datetime) -> Adjudication:
    """The third label as the decision between the first two."""
    of, trial, by = label.item.set, label.item.trial, label.by
    assert by is not None
    _check_basis(trial, seen)
    return adjudicate(
        trial,
        criterion=of.criterion.name,
        ruling=RULINGS[VerdictValue(label.value)],
        reason=label.reason,
        steps=steps,
        by=by,
        now=now,
        is_blind_label=True,
    )


def _settle(item: CalibrationItem, now: datetime) -> None:
    """Say what the labels of an item come to; ask for a third one where two differ."""
    values = [
        VerdictValue(value)
        for value in Label.objects.filter(item=item)
        .order_by("round")
        .values_list("value", flat=True)
    ]
    if found := consensus_of(values, n_needed=item.n_needed):
        item.consensus, item.settled_at = found.value, now
    elif len(values) >= item.n_needed:
        item.n_needed = len(values) + 1
    item.save(update_fields=["consensus", "settled_at", "n_needed"])


def wants_labels(of: CalibrationSet) -> bool:
    """Whether an item of a set is neither settled nor withdrawn. One query."""
    return CalibrationItem.objects.filter(set=of, settled_at=None, withdrawn_at=None).exists()
