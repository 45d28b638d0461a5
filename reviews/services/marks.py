"""Marks: a reviewer says that a check, a rubric or the fixture is itself at fault.

A mark opens what it is on, for all trials of the task, until the contract is mended or the mark is
withdrawn. The caller decides the trials anew.
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import time_text
from reviews.core.disposition import Mark
from reviews.core.requirements import FIXTURE
from reviews.models import CheckMark, CheckMarkWithdrawal
from reviews.permissions.flags import role_in
from reviews.permissions.marks import mark_withdrawal_refusal, marking_refusal
from reviews.selectors.marks import held_marks, markable_of, written_by
from traces.core.text_marks import clean_text, count_marks
from traces.models import Task, Trial, User

log = logging.getLogger("evalsite.marks")

LONGEST_REASON = 2_000  # characters
OUTDATED = (
    "Another contract came into effect since you opened this form. Look at what it asks; nothing "
    "is marked yet."
)
NO_REASON = "Say why: the reason is what the next person reads."


class MarkError(Exception):
    """A refusal, with its sentence for people."""


class MarkDeniedError(MarkError):
    """Somebody who may not do that."""


def name_of(criterion: str) -> str:
    """A criterion as people name it; the fixture has no name of its own."""
    return "the fixture" if criterion == FIXTURE else criterion


def contract_word(contract_pk: int | None) -> str:
    """Which contract version is marked, as a form sends it back."""
    return str(contract_pk or 0)


@transaction.atomic
def mark_check(
    trial: Trial,
    *,
    criterion: str,
    mark: Mark,
    reason: str,
    by: User,
    now: datetime,
    seen: str = "",
) -> CheckMark:
    """Mark a criterion of a trial's task, or its fixture (""), as it stands now.

    `seen` is the contract that the person had before them (`contract_word`); with it nothing is
    marked once another one is in effect. Raises `MarkDeniedError` unless `by` is a reviewer who did not write it, and `MarkError` for a
    criterion that the trial is not decided by, one that is marked so already, and without a reason
    or with one that is too long.
    """
    # The lock keeps two marks apart: the later one sees the earlier one below.
    Task.objects.select_for_update(no_key=True).get(pk=trial.task_id)
    why, digest = check_mark(trial, criterion=criterion, mark=mark, reason=reason, by=by, seen=seen)
    row = CheckMark.objects.create(
        system_id=trial.system_id,
        task_id=trial.task_id,
        criterion=criterion,
        criterion_digest=digest,
        mark=mark.value,
        reason=why,
        trial=trial,
        by=by,
        marked_at=now,
    )
    record(
        "mark.made",
        system_pk=row.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("mark", str(row.uuid), f"{name_of(criterion)} of {trial.task.task_id}"),
        after={"mark": row.mark, "criterion": criterion, "trial": str(trial.uuid)},
        reason=why,
        rows=[("reviews_checkmark", row.pk)],
    )
    log.info("check marked", extra={"mark": str(row.uuid), "by": by.username})
    return row


def check_mark(
    trial: Trial, *, criterion: str, mark: Mark, reason: str, by: User, seen: str = ""
) -> tuple[str, uuid.UUID | None]:
    """The reason and the digest that a mark would be stored with now.

    Raises as `mark_check` does, and writes nothing.
    """
    task = Task.objects.get(pk=trial.task_id)
    role = role_in(trial.system_id, by)
    if refusal := marking_refusal(role):
        raise MarkDeniedError(refusal)
    if seen and seen != contract_word(task.contract_id):
        raise MarkError(OUTDATED)
    found = markable_of(trial).named(criterion)
    if found is None:
        raise MarkError(f"This trial is not decided by a criterion {clean_text(criterion)!r}.")
    has_written = (criterion, found.digest) in written_by(trial.task_id, by)
    if refusal := marking_refusal(role, has_written=has_written):
        raise MarkDeniedError(refusal)
    for each in held_marks(trial.task_id):
        if (each.criterion, each.criterion_digest, each.mark) == (criterion, found.digest, mark):
            raise MarkError(
                f"{each.by_name} marked {name_of(criterion)} as {mark.value} at "
                f"{time_text(each.marked_at)}; it is marked once."
            )
    return _reason(reason), found.digest


@transaction.atomic
def withdraw_mark(mark: CheckMark, *, reason: str, by: User, now: datetime) -> CheckMarkWithdrawal:
    """Say why a mark no longer holds: whoever made it, or another reviewer who did not write that.

    Raises `MarkDeniedError` when the person may not, and `MarkError` when it is withdrawn already,
    and without a reason or with one that is too long.
    """
    Task.objects.select_for_update(no_key=True).get(pk=mark.task_id)
    refusal = mark_withdrawal_refusal(
        role_in(mark.system_id, by),
        is_own=mark.by_id == by.pk,
        has_written=(mark.criterion, mark.criterion_digest) in written_by(mark.task_id, by),
    )
    if refusal:
        raise MarkDeniedError(refusal)
    earlier = CheckMarkWithdrawal.objects.select_related("by").filter(mark=mark).first()
    if earlier is not None:
        raise MarkError(
            f"{earlier.by.printed_name} withdrew this mark at {time_text(earlier.withdrawn_at)}."
        )
    why = _reason(reason)
    row = CheckMarkWithdrawal.objects.create(mark=mark, reason=why, by=by, withdrawn_at=now)
    record(
        "mark.withdrawn",
        system_pk=mark.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject(
            "mark", str(mark.uuid), f"{name_of(mark.criterion)} of {mark.task.task_id}"
        ),
        before={"mark": mark.mark},
        reason=why,
        rows=[("reviews_checkmarkwithdrawal", mark.pk)],
    )
    log.info("mark withdrawn", extra={"mark": str(mark.uuid), "by": by.username})
    return row


def _reason(text: str) -> str:
    reason = clean_text(text).strip()
    if count_marks(reason) >= len("".join(reason.split())):
        raise MarkError(NO_REASON)
    if len(reason) > LONGEST_REASON:
        raise MarkError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason
