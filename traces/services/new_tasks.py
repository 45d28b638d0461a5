"""A task made from a trial that failed or that nothing decides."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import AuditedObject, record
from traces.core.canonical import digest_of, nfc
from traces.core.records import Disposition, ParsedTask
from traces.core.text_marks import clean_text, count_marks, has_lone_surrogate
from traces.core.values import Json, JsonObject
from traces.models import (
    System,
    Task,
    TaskOrigin,
    Trial,
    TrialDisposition,
    User,
)
from traces.permissions.families import tasks_refusal
from traces.selectors.families import splits_of_family
from traces.services.families import (
    SPLIT_WORDS,
    FamilyDeniedError,
    FamilyError,
    reason_of,
)
from traces.services.trials import ingest_locks
from traces.services.work import store_task

log = logging.getLogger("evalsite.tasks")

LONGEST_ID = 512  # characters
LONGEST_TITLE = 500
LONGEST_FAMILY = 200
NOT_OPEN = "A task is made of a trial that failed or that nothing decides; this one is neither."


@transaction.atomic
def make_task(
    trial: Trial,
    *,
    task_id: str,
    title: str,
    family: str,
    split: str,
    input: Json,  # noqa: A002 - the contract's own word
    facts: JsonObject,
    reason: str,
    by: User,
    now: datetime,
) -> tuple[Task, bool]:
    """Make a task with the input and facts of a trial. Returns it and whether it is new.

    The same again gives the task that it made. Raises `FamilyDeniedError` when the person may
    not, and `FamilyError` for a trial that passed or whose harness broke, an id that is taken or
    none, a family that stays in another split, and without a reason.
    """
    if refusal := tasks_refusal(trial.system_id, by):
        raise FamilyDeniedError(refusal)
    why, name = reason_of(reason), _id(task_id)
    words, group = clean_text(title).strip(), clean_text(family).strip()
    if len(words) > LONGEST_TITLE or len(group) > LONGEST_FAMILY:
        raise FamilyError(
            f"A title has at most {LONGEST_TITLE} characters, a family at most {LONGEST_FAMILY}."
        )
    system = System.objects.get(pk=trial.system_id)
    # Evidence that arrives may make the task, too.
    ingest_locks(system, ())
    decided = TrialDisposition.objects.filter(pk=trial.pk).values_list("value", flat=True).first()
    if decided not in (Disposition.FAIL.value, Disposition.UNRESOLVED.value):
        raise FamilyError(NOT_OPEN)
    if existing := Task.objects.filter(system=system, task_id=name).first():
        if TaskOrigin.objects.filter(task=existing, trial=trial, by=by).exists():
            return existing, False
        raise FamilyError(f"This system has a task {name!r} already; choose another id.")
    if refusal := split_refusal(system.pk, group, split):
        raise FamilyError(refusal)
    definition: JsonObject = {"input": input, "facts": facts}
    task = store_task(
        system,
        ParsedTask(name, words, group, split or None, definition, digest_of(definition)),
    )
    TaskOrigin.objects.create(task=task, trial=trial, reason=why, by=by, made_at=now)
    record(
        "task.made_from_trial",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("task", str(task.uuid), task.task_id),
        after={"trial": str(trial.uuid), "family": group, "split": split},
        reason=why,
        rows=[("traces_taskorigin", task.pk)],
    )
    log.info(
        "task made from a trial",
        extra={"task": str(task.uuid), "trial": str(trial.uuid), "by": by.username},
    )
    return task, True


def split_refusal(system_pk: int, family: str, split: str) -> str:
    """Why a new task of a family may not be in a split: a family stays together. "" when it may."""
    if split not in SPLIT_WORDS:
        return "A split is tuning, held out or regression."
    taken = [each for each in splits_of_family(system_pk, family) if each]
    if len(taken) > 1:
        return f"Family {family!r} is in several splits; put it into one of them first."
    if taken and taken[0] != split:
        return f"Family {family!r} is in split {SPLIT_WORDS[taken[0]]}, and stays together."
    return ""


def _id(text: str) -> str:
    if has_lone_surrogate(text) or count_marks(text):
        raise FamilyError("A task id has no characters that cannot be seen.")
    name = nfc(text.strip())
    if not name:
        raise FamilyError("A task needs an id.")
    if len(name) > LONGEST_ID:
        raise FamilyError(f"A task id has at most {LONGEST_ID} characters.")
    return name
