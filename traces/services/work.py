"""Releases, runs and tasks: made when evidence names them, or declared before."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from evalsite.common import blobs
from evalsite.common.audit import MOST_NAMED, AuditedObject, record
from evalsite.common.gate_marks import lock_evidence, releases_of_tasks, touch_gates
from traces.core.canonical import digest_of, nfc
from traces.core.records import ParsedTask, ParsedTrial
from traces.core.task_order import sort_text
from traces.models import Release, Run, RunTask, System, Task, TaskVersion, User

DEFAULT_RUN = "default"
EMPTY_DEFINITION = uuid.UUID(bytes=digest_of({}))


class WorkError(Exception):
    """A refusal, with its sentence for people."""


def release_named(system: System, name: str, *, by: User | None) -> Release:
    """The release of that name, made when it does not exist. "" is the unversioned release."""
    release, _ = Release.objects.get_or_create(
        system=system, name=name, defaults={"is_unversioned": name == "", "created_by": by}
    )
    return release


def lock_releases(release_ids: Iterable[int]) -> None:
    """Take the lock of each release until the transaction ends.

    Every writer of a release's evidence takes it, and so will a sign-off: under READ COMMITTED
    and REPEATABLE READ alone a new failing trial could slip past a signature.
    """
    list(
        Release.objects.filter(pk__in=sorted(set(release_ids)))
        .order_by("pk")
        .select_for_update(no_key=True)
        .values_list("pk", flat=True)
    )


def run_named(release: Release, name: str, *, now: datetime) -> Run:
    """The run of that name, begun now when it does not exist."""
    run, _ = Run.objects.get_or_create(release=release, name=name, defaults={"begun_at": now})
    return run


@transaction.atomic
def declare_run(
    release: Release,
    name: str,
    *,
    trials: int,
    task_ids: Iterable[str] = (),
    by: User | None,
    now: datetime,
) -> Run:
    """Declare a run before its trials, so that missing ones are seen.

    Without `task_ids` the declaration covers the tasks that its trials name. Raises `WorkError`
    when the run exists already: a declaration is made once, before the results.
    """
    if trials < 1:
        raise WorkError("A run has at least one trial for each task.")
    lock_evidence(release.system_id, [release.pk])
    if Run.objects.filter(release=release, name=name).exists():
        raise WorkError(
            f"The run {name!r} of release {release.label!r} exists already; "
            "further trials are a declared run of their own."
        )
    run = Run.objects.create(
        release=release,
        name=name,
        begun_at=now,
        declared_at=now,
        declared_by=by,
        declared_trials=trials,
    )
    tasks = tasks_named(release.system, task_ids)
    RunTask.objects.bulk_create([RunTask(run=run, task=task) for task in tasks.values()])
    touch_gates([release.pk], now=now)
    record(
        "run.declared",
        system_pk=release.system_id,
        by_pk=by.pk if by else None,
        at=now,
        obj=AuditedObject("run", str(run.uuid), name),
        after={
            "release": release.name,
            "trials": trials,
            "n_tasks": len(tasks),
            "tasks": sorted(tasks)[:MOST_NAMED],
        },
        rows=[("traces_run", run.pk)],
    )
    return run


def tasks_named(system: System, task_ids: Iterable[str]) -> dict[str, Task]:
    """The tasks of those ids, made when they do not exist."""
    wanted = {nfc(task_id) for task_id in task_ids}
    if not wanted:
        return {}
    found = {t.task_id: t for t in Task.objects.filter(system=system, task_id__in=wanted)}
    missing = sorted(wanted - found.keys())
    if missing:
        Task.objects.bulk_create(
            [
                Task(system=system, task_id=task_id, sort_key=sort_text(task_id))
                for task_id in missing
            ],
            ignore_conflicts=True,
        )
        found |= {t.task_id: t for t in Task.objects.filter(system=system, task_id__in=missing)}
    return found


def task_versions(
    tasks: Mapping[str, Task], wanted: Iterable[tuple[str, uuid.UUID | None]]
) -> dict[tuple[str, uuid.UUID], TaskVersion]:
    """The versions of tasks by (task id, definition digest); None asks for the empty one.

    An empty version is made when it does not exist; any other must have been stored before.
    """
    pairs = {(task_id, digest or EMPTY_DEFINITION) for task_id, digest in wanted}
    rows = TaskVersion.objects.filter(
        task__in=[tasks[task_id] for task_id, _ in pairs],
        digest__in={digest for _, digest in pairs},
    )
    names = {task.pk: task_id for task_id, task in tasks.items()}
    found = {(names[row.task_id], row.digest): row for row in rows}
    for task_id, digest in sorted(pairs - found.keys()):
        if digest != EMPTY_DEFINITION:
            raise LookupError(f"version {digest} of task {task_id!r} was never stored")
        found[task_id, digest] = _add_version(tasks[task_id], digest, {})
    return found


def store_task(system: System, parsed: ParsedTask) -> Task:
    """Store a task definition that came with evidence; a new digest is a new version."""
    task = tasks_named(system, [parsed.task_id])[nfc(parsed.task_id)]
    digest = uuid.UUID(bytes=parsed.digest)
    if not TaskVersion.objects.filter(task=task, digest=digest).exists():
        _add_version(task, digest, parsed.definition)
        before = (task.family, task.split)
        task.title = parsed.title[:500]
        task.family = parsed.family[:200]
        task.split = parsed.split or task.split
        task.save(update_fields=["title", "family", "split"])
        if (task.family, task.split) != before:
            touch_gates(releases_of_tasks([task.pk]), now=timezone.now())
    return task


def _add_version(task: Task, digest: uuid.UUID, definition: object) -> TaskVersion:
    last = TaskVersion.objects.filter(task=task).order_by("-number").first()
    return TaskVersion.objects.create(
        task=task,
        number=last.number + 1 if last else 1,
        digest=digest,
        definition=blobs.pack(definition),
    )


def note_agent(release: Release, trial: ParsedTrial) -> None:
    """Make the agent that a trial names the release's version record, where it has none."""
    if release.details or not (trial.agent_name or trial.agent_model):
        return
    agent = {"name": trial.agent_name, "version": trial.agent_version, "model": trial.agent_model}
    release.details = json.dumps({"agent": agent})
    Release.objects.filter(pk=release.pk, details="").update(details=release.details)


def note_details(run: Run, details: object) -> None:
    """Keep what a file says of its run, and make it the release's version record if it has none."""
    text = json.dumps(details)
    if not run.details:
        Run.objects.filter(pk=run.pk, details="").update(details=text)
    Release.objects.filter(pk=run.release_id, details="").update(details=text)
