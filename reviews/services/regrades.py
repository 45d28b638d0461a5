"""Regrades asked for, stopped and taken up again. Callers send the hint; a worker does the work.

Each act locks the system's row and checks again inside the transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from evalsite.common.audit import AuditedObject, record
from evalsite.common.gate_marks import lock_evidence, releases_of, touch_gates
from reviews.models import Regrade
from reviews.permissions.regrades import (
    NOTHING_TO_GRADE,
    busy_sentence,
    restart_refusal,
    start_refusal,
    stop_refusal,
    unfit_to_restart,
)
from traces.core.text_marks import clean_text
from traces.models import ContractProposal, ContractVersion, System, Task, User, WorkState

log = logging.getLogger("evalsite.regrades")

LONGEST_REASON = 4_000  # characters


class RegradeError(Exception):
    """A refusal, with its sentence for people."""


@transaction.atomic
def start_regrade(
    system: System, *, tasks: Iterable[Task], reason: str, by: User | None, now: datetime
) -> Regrade:
    """Have the trials of some tasks graded again under the contracts in effect.

    Tasks without a contract are left out. `by` None: the operator. Raises `RegradeError` for who
    may not, without a reason, where no task is left, and while a regrade of one of them goes on.
    """
    _lock(system)
    if by is not None:
        _refuse(start_refusal(system, by), system, by)
    wanted = {task.pk for task in tasks}
    chosen = list(
        Task.objects.filter(system=system, pk__in=wanted, contract__isnull=False)
        .order_by("sort_key", "pk")
        .values_list("pk", flat=True)
    )
    _refuse("" if chosen else NOTHING_TO_GRADE, system, by)
    _refuse(busy_sentence(system, chosen), system, by)
    regrade = _made(system, chosen, reason=_reason(reason), proposal=None, by=by, now=now)
    _record(
        "regrade.asked", regrade, by, now, after={"n_tasks": len(chosen)}, reason=regrade.reason
    )
    _note("regrade asked for", regrade, by, tasks=len(chosen))
    return regrade


def start_takeover(proposal: ContractProposal, *, by: User, now: datetime) -> Regrade:
    """Ask for the regrade that brings an approved proposal into effect.

    Part of the transaction of the approval, which has locked the system and asked who may.
    """
    tasks = list(
        ContractVersion.objects.filter(proposal=proposal)
        .order_by("task__sort_key", "task_id")
        .values_list("task_id", flat=True)
    )
    regrade = _made(proposal.system, tasks, reason="", proposal=proposal, by=by, now=now)
    _note("regrade of a proposal asked for", regrade, by, proposal=proposal.number)
    return regrade


def _made(
    system: System,
    tasks: list[int],
    *,
    reason: str,
    proposal: ContractProposal | None,
    by: User | None,
    now: datetime,
) -> Regrade:
    last = Regrade.objects.filter(system=system).aggregate(last=Max("number"))["last"]
    return Regrade.objects.create(
        system=system,
        number=(last or 0) + 1,
        proposal=proposal,
        tasks=tasks,
        reason=reason,
        by=by,
        asked_at=now,
        touched_at=now,
    )


@transaction.atomic
def stop_regrade(regrade: Regrade, *, by: User, now: datetime) -> None:
    """Stop a regrade. What it added stays, tasks that took effect too; the others stay as they are.

    A worker that is at it ends at its next batch.
    """
    releases = _lock_gates(regrade)
    _lock(regrade.system)
    row = _locked(regrade)
    _refuse(stop_refusal(row, by), row.system, by)
    Regrade.objects.filter(pk=row.pk).update(
        state=WorkState.CANCELLED.value, cancelled_by=by, finished_at=now, touched_at=now
    )
    touch_gates(releases, now=now)
    _record("regrade.stopped", row, by, now, before={"state": row.state})
    _note("regrade stopped", row, by)


@transaction.atomic
def restart_regrade(regrade: Regrade, *, by: User | None = None, now: datetime) -> None:
    """Take up a stopped or failed regrade behind its checkpoint. `by` None: the operator."""
    releases = _lock_gates(regrade)
    _lock(regrade.system)
    row = _locked(regrade)
    refusal = unfit_to_restart(row) if by is None else restart_refusal(row, by)
    _refuse(refusal, row.system, by)
    Regrade.objects.filter(pk=row.pk).update(
        state=WorkState.WAITING.value,
        cancelled_by=None,
        failure="",
        n_tries=0,
        finished_at=None,
        touched_at=now,
    )
    touch_gates(releases, now=now)
    _record("regrade.restarted", row, by, now, before={"state": row.state})
    _note("regrade taken up again", row, by)


def _record(
    act: str,
    regrade: Regrade,
    by: User | None,
    now: datetime,
    *,
    before: dict[str, object] | None = None,
    after: dict[str, object] | None = None,
    reason: str = "",
) -> None:
    record(
        act,
        system_pk=regrade.system_id,
        by_pk=by.pk if by else None,
        at=now,
        obj=AuditedObject("regrade", str(regrade.number), f"Regrade {regrade.number}"),
        before=before,
        after=after,
        reason=reason,
    )


def _locked(regrade: Regrade) -> Regrade:
    rows = Regrade.objects.select_for_update(of=("self",)).select_related("system")
    return rows.get(pk=regrade.pk)


def _lock_gates(regrade: Regrade) -> tuple[int, ...]:
    """The locks of all evidence: whether a version is in force depends on its regrade.

    Taken before any other. Without a proposal nothing comes into force, and nothing is locked.
    """
    if regrade.proposal_id is None:
        return ()
    releases = releases_of(regrade.system_id)
    lock_evidence(regrade.system_id, releases)
    return releases


def _lock(system: System) -> None:
    """The system's row, held until the transaction ends; evidence may still name it."""
    System.objects.select_for_update(no_key=True, of=("self",)).get(pk=system.pk)


def _refuse(sentence: str, system: System, by: User | None) -> None:
    """Refuse an act that a person may not do; the log says it in the sentence that they see."""
    if sentence:
        user = by.pk if by else None
        extra = {"system": system.slug, "user": user, "why": sentence}
        log.info("regrade act refused", extra=extra)
        raise RegradeError(sentence)


def _reason(text: str) -> str:
    reason = clean_text(text).strip()
    if not reason:
        raise RegradeError("Say why, in a sentence.")
    if len(reason) > LONGEST_REASON:
        raise RegradeError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


def _note(act: str, regrade: Regrade, by: User | None, **ids: object) -> None:
    user = by.pk if by else None  # None: the operator, by command
    log.info(
        act,
        extra={"system": regrade.system.slug, "user": user, "regrade": regrade.number, **ids},
    )
