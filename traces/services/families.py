"""Splits of families, and exposures of held-out tasks."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import MOST_NAMED, AuditedObject, record
from evalsite.common.formatting import counted
from evalsite.common.gate_marks import releases_of_tasks, touch_gates
from traces.core.text_marks import clean_text, count_marks
from traces.models import HeldOutExposure, Split, SplitChange, System, Task, Trial, User
from traces.permissions.families import tasks_refusal
from traces.services.trials import ingest_locks

log = logging.getLogger("evalsite.families")

LONGEST_REASON = 2_000  # characters
SPLIT_WORDS = {
    "": "no split",
    Split.TUNING.value: "tuning",
    Split.HELD_OUT.value: "held out",
    Split.REGRESSION.value: "regression",
}


class FamilyError(Exception):
    """A refusal, with its sentence for people."""


class FamilyDeniedError(FamilyError):
    """Somebody who may not do that."""


def reason_of(text: str) -> str:
    """A reason as it is stored. Raises `FamilyError` without one or with one that is too long."""
    reason = clean_text(text).strip()
    if count_marks(reason) >= len("".join(reason.split())):
        raise FamilyError("Say why: the reason is what the next person reads.")
    if len(reason) > LONGEST_REASON:
        raise FamilyError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


@transaction.atomic
def change_split(
    system: System,
    *,
    split: str,
    reason: str,
    by: User,
    now: datetime,
    family: str = "",
    task: Task | None = None,
) -> tuple[int, ...]:
    """Put a whole family, or a task without one, into another split. Returns the moved tasks' ids.

    Empty when all of it is there already: the same again changes nothing. Raises
    `FamilyDeniedError` when the person may not, and `FamilyError` for a split that is none, a
    family without tasks, a task that belongs to a family, and without a reason.
    """
    if refusal := tasks_refusal(system.pk, by):
        raise FamilyDeniedError(refusal)
    if split not in SPLIT_WORDS or not split:
        raise FamilyError("A split is tuning, held out or regression.")
    why = reason_of(reason)
    # Evidence that arrives may write families and splits too, and no gate counts half of a move.
    ingest_locks(system, system.releases.only("pk"))
    tasks = Task.objects.filter(system=system).order_by("pk").select_for_update(no_key=True)
    chosen = list(tasks.filter(pk=task.pk) if task else tasks.filter(family=family))
    if not chosen or not (task or family):
        raise FamilyError(f"There is no task of family {family!r} in this system.")
    if task and chosen[0].family:
        raise FamilyError(
            f"Task {chosen[0].task_id!r} is of family {chosen[0].family!r}, which stays together: "
            "change the split of the family."
        )
    moved = [each for each in chosen if each.split != split]
    if not moved:
        return ()
    olds = {each.split for each in moved}
    change = SplitChange.objects.create(
        system=system,
        family="" if task else family,
        task=chosen[0] if task else None,
        old=olds.pop() if len(olds) == 1 else "",
        new=split,
        reason=why,
        by=by,
        changed_at=now,
    )
    ids = tuple(each.pk for each in moved)
    Task.objects.filter(pk__in=ids).update(split=split)
    touch_gates(releases_of_tasks(ids), now=now)
    record(
        "task.split_changed",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("task", str(chosen[0].uuid), chosen[0].task_id)
        if task
        else AuditedObject("family", str(change.pk), family),
        before={"split": change.old},
        after={
            "split": split,
            "n_tasks": len(moved),
            "tasks": [each.task_id for each in moved[:MOST_NAMED]],
        },
        reason=why,
        rows=[("traces_splitchange", change.pk)],
    )
    log.info(
        "split changed",
        extra={"system": system.slug, "n_tasks": len(ids), "split": split, "by": by.username},
    )
    return ids


@transaction.atomic
def note_exposure(
    task: Task, *, reason: str, by: User, now: datetime, trial: Trial | None = None
) -> HeldOutExposure:
    """Note that a held-out failure was used to change the agent. The same again is noted once.

    Raises `FamilyDeniedError` when the person may not, and `FamilyError` for a task that is not
    held out, a trial of another task, and without a reason.
    """
    if refusal := tasks_refusal(task.system_id, by):
        raise FamilyDeniedError(refusal)
    why = reason_of(reason)
    locked = Task.objects.select_for_update(no_key=True).get(pk=task.pk)
    if locked.split != Split.HELD_OUT.value:
        words = SPLIT_WORDS[locked.split]
        raise FamilyError(
            f"Task {locked.task_id!r} is in {words if not locked.split else f'split {words}'}; "
            "only a held-out task can be exposed."
        )
    if trial is not None and trial.task_id != locked.pk:
        raise FamilyError("That trial is of another task.")
    same = HeldOutExposure.objects.filter(task=locked, trial=trial, by=by, reason=why)
    if found := same.order_by("pk").first():
        return found
    exposure = HeldOutExposure.objects.create(
        system_id=locked.system_id, task=locked, trial=trial, reason=why, by=by, noted_at=now
    )
    record(
        "task.exposed",
        system_pk=locked.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("task", str(locked.uuid), locked.task_id),
        after={"trial": str(trial.uuid)} if trial else None,
        reason=why,
        rows=[("traces_heldoutexposure", exposure.pk)],
    )
    log.info("exposure noted", extra={"task": str(locked.uuid), "by": by.username})
    return exposure


def moved_words(name: str, split: str, n_tasks: int) -> str:
    """What became of a change of split, for people."""
    if not n_tasks:
        return f"All of {name} is in split {SPLIT_WORDS[split]} already."
    return f"{counted(n_tasks, 'task')} of {name} moved to split {SPLIT_WORDS[split]}."
