"""Accepting a path of a task, and withdrawing it. Both are new rows; neither is ever edited."""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from evalsite.access import Access, Act
from evalsite.common.audit import AuditedObject, record
from evalsite.common.row_digests import RowRef
from reviews.core.accepted_paths import refusal_of_path, refusal_of_reason
from reviews.models import AcceptedPath, AcceptedPathWithdrawal
from reviews.selectors.accepted import candidate_of
from traces.core.paths import PathLevel
from traces.core.text_marks import clean_text
from traces.models import Member, Role, System, Task, User
from traces.selectors.paths import key_name
from traces.selectors.rules import shown_rules

log = logging.getLogger("evalsite.accepted_paths")


class AcceptanceError(Exception):
    """A refusal, with its sentence for people."""


@transaction.atomic
def accept_path(
    task: Task,
    *,
    trial: UUID,
    level: PathLevel,
    messages: bool,
    reason: str,
    by: User,
    now: datetime,
) -> AcceptedPath:
    """Accept the path that a passing trial of the task took, at a level, with the reason.

    Raises `AcceptanceError` where `by` is no engineer of the system, without a reason, without
    such a trial, and as `reviews.core.accepted_paths.refusal_of_path` says.
    """
    system = _checked_system(task, by)
    kept = _checked_reason(reason)
    _lock(task)
    candidate = candidate_of(task, system, trial)
    if candidate is None:
        raise AcceptanceError("There is no such trial of this task.")
    if refusal := refusal_of_path(candidate.path(level, messages=messages).facts):
        raise AcceptanceError(refusal.sentence)
    column = key_name(level, messages=messages)
    numbers = AcceptedPath.objects.filter(task=task).aggregate(last=Max("number"))
    path = AcceptedPath.objects.create(
        task=task,
        number=(numbers["last"] or 0) + 1,
        level=level.value,
        messages=column.endswith("_msg"),
        trajectory_id=candidate.trajectory,
        trial_id=candidate.trial_pk,
        rules=shown_rules(system),
        key=candidate.keys[column],
        reason=kept,
        by=by,
        accepted_at=now,
    )
    _record("accepted_path.accepted", path, kept, by, now, ("reviews_acceptedpath", path.pk))
    _note("path accepted", path, by)
    return path


@transaction.atomic
def withdraw_path(
    path: AcceptedPath, *, reason: str, by: User, now: datetime
) -> AcceptedPathWithdrawal:
    """Withdraw an accepted path, with the reason; it stays in the history.

    Raises `AcceptanceError` where `by` is no engineer of the system, without a reason, and where
    the path is withdrawn already.
    """
    _checked_system(path.task, by)
    kept = _checked_reason(reason)
    _lock(path.task)
    if AcceptedPathWithdrawal.objects.filter(path=path).exists():
        raise AcceptanceError(f"Accepted {path.number} is withdrawn already.")
    withdrawal = AcceptedPathWithdrawal.objects.create(
        path=path, reason=kept, by=by, withdrawn_at=now
    )
    row = ("reviews_acceptedpathwithdrawal", path.pk)
    _record("accepted_path.withdrawn", path, kept, by, now, row)
    _note("accepted path withdrawn", path, by)
    return withdrawal


def _checked_system(task: Task, by: User) -> System:
    """The task's system, in which `by` may accept paths."""
    member = Member.objects.select_related("system").filter(system=task.system_id, user=by).first()
    if member is None:
        raise AcceptanceError("Only a member of the system accepts and withdraws its paths.")
    if refusal := Access(by, member.system, Role(member.role)).refusal(Act.CONTRIBUTE):
        raise AcceptanceError(refusal)
    return member.system


def _checked_reason(reason: str) -> str:
    """The reason as it is stored."""
    kept = clean_text(reason).strip()
    if refusal := refusal_of_reason(kept):
        raise AcceptanceError(refusal.sentence)
    return kept


def _lock(task: Task) -> None:
    """Acceptances and withdrawals of a task come one after another; its trials need not wait."""
    Task.objects.select_for_update(no_key=True).get(pk=task.pk)


def _record(
    act: str, path: AcceptedPath, reason: str, by: User, now: datetime, row: RowRef
) -> None:
    record(
        act,
        system_pk=path.task.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject(
            "accepted_path", str(path.uuid), f"Accepted {path.number} of {path.task.task_id}"
        ),
        after={"task": str(path.task.uuid), "level": path.level, "messages": path.messages},
        reason=reason,
        rows=[row],
    )


def _note(act: str, path: AcceptedPath, by: User) -> None:
    ids = {"path": str(path.uuid), "task": str(path.task.uuid), "level": path.level}
    log.info(act, extra={"by": by.username, **ids})
