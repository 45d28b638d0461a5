"""What a person does to evidence, checks and verdicts, and the trials that it decides anew.

Act and decision are one transaction under the locks that every writer of the evidence takes, so
that no page ever shows the one without the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import written_last
from evalsite.projections import decide_trials, refresh_figures
from reviews.core.disposition import Mark
from reviews.models import CaseEventKind, CheckMark, CheckMarkWithdrawal, Verdict
from reviews.services.cases import note_on_task, note_on_trial
from reviews.services.marks import mark_check, withdraw_mark
from reviews.services.person_verdicts import give_verdict
from traces.core.additions import Addition
from traces.core.records import VerdictValue
from traces.models import ApiKey, EvidenceAddition, Release, System, Task, Trial, User
from traces.services.additions import add_evidence
from traces.services.trials import ingest_locks

BATCH = 2_000


@contextmanager
def evidence_locked(system: System, trial_ids: Iterable[int]) -> Iterator[None]:
    """One transaction that nobody else adds evidence of these trials' releases beside."""
    with transaction.atomic():
        of_trials = Release.objects.filter(
            pk__in=Trial.objects.filter(pk__in=list(trial_ids)).values("release")
        )
        ingest_locks(system, of_trials.order_by("pk"))
        with written_last():
            yield


def decided_again(trial_ids: Iterable[int], system: System, *, now: datetime) -> None:
    """Decide trials anew after what a person did, and count their tasks' figures anew.

    Takes the locks itself: call it in the transaction of the act, after the act.
    """
    wanted = sorted(set(trial_ids))
    with evidence_locked(system, wanted):
        refresh_figures(system, decide_in_portions(wanted, now=now))


def decide_in_portions(trial_ids: Iterable[int], *, now: datetime) -> set[int]:
    """Decide trials (`evalsite.projections.decide_trials`), so many at a time that memory holds them.

    Part of the caller's transaction, which holds the locks. Returns their tasks' ids.
    """
    wanted = sorted(set(trial_ids))
    touched: set[int] = set()
    for first in range(0, len(wanted), BATCH):
        touched |= decide_trials(wanted[first : first + BATCH], now=now)
    return touched


def add_evidence_to(
    trial: Trial,
    addition: Addition,
    *,
    source: str,
    reason: str,
    by: User,
    now: datetime,
    api_key: ApiKey | None = None,
) -> EvidenceAddition:
    """Add evidence (`traces.services.additions.add_evidence`) and decide the trial on it."""
    system = System.objects.get(pk=trial.system_id)
    with evidence_locked(system, [trial.pk]):
        before = EvidenceAddition.objects.filter(trial=trial).count()
        row = add_evidence(
            trial, addition, source=source, reason=reason, by=by, now=now, api_key=api_key
        )
        if row.order > before:
            note_on_trial(
                trial.pk,
                CaseEventKind.EVIDENCE,
                row.reason,
                by=by,
                now=now,
                detail={"parts": row.parts, "order": row.order, "source": row.source},
            )
            decided_again([trial.pk], system, now=now)
    return row


def mark_and_decide(
    trial: Trial,
    *,
    criterion: str,
    mark: Mark,
    reason: str,
    by: User,
    now: datetime,
    seen: str = "",
) -> CheckMark:
    """Mark a criterion (`reviews.services.marks.mark_check`) and decide the task's trials anew."""
    with _task_locked(trial.task) as trial_ids:
        row = mark_check(
            trial, criterion=criterion, mark=mark, reason=reason, by=by, now=now, seen=seen
        )
        decided_again(trial_ids, trial.task.system, now=now)
        # Told when the cases that it opens are there.
        _tell(row, row.reason, by, now, is_held=True)
    return row


def withdraw_and_decide(
    mark: CheckMark, *, reason: str, by: User, now: datetime
) -> CheckMarkWithdrawal:
    """Withdraw a mark (`reviews.services.marks.withdraw_mark`) and decide its task's trials anew."""
    with _task_locked(mark.task) as trial_ids:
        row = withdraw_mark(mark, reason=reason, by=by, now=now)
        _tell(mark, row.reason, by, now, is_held=False)
        decided_again(trial_ids, mark.task.system, now=now)
    return row


def _tell(mark: CheckMark, reason: str, by: User, now: datetime, *, is_held: bool) -> None:
    detail = {"criterion": mark.criterion, "mark": mark.mark, "is_held": is_held}
    note_on_task(mark.task_id, CaseEventKind.MARKED, reason, by=by, now=now, detail=detail)


@contextmanager
def _task_locked(task: Task) -> Iterator[list[int]]:
    """The trials of a task, with the evidence of the whole system kept as it is meanwhile."""
    with transaction.atomic():
        releases = Release.objects.filter(pk__in=Trial.objects.filter(task=task).values("release"))
        ingest_locks(task.system, releases.order_by("pk"))
        # Read under the lock: what came until now is among them.
        with written_last():
            yield list(Trial.objects.filter(task=task).order_by("pk").values_list("pk", flat=True))


def verdict_and_decide(
    trial: Trial,
    *,
    criterion: str,
    value: VerdictValue,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    corrects: Verdict | None = None,
    seen: str = "",
) -> Verdict:
    """Give a verdict (`reviews.services.person_verdicts.give_verdict`) and decide the trial on it."""
    system = System.objects.get(pk=trial.system_id)
    with evidence_locked(system, [trial.pk]):
        row = give_verdict(
            trial,
            criterion=criterion,
            value=value,
            reason=reason,
            steps=steps,
            by=by,
            now=now,
            corrects=corrects,
            seen=seen,
        )
        decided_again([trial.pk], system, now=now)
    return row
