"""Stored trials graded under other contract versions, which then take effect task by task.

Safe to run twice, at once or days later, and to be killed anywhere. First the trials of all tasks
get the verdicts that they lack, a batch a transaction with its checkpoint; nothing takes effect by
that. Then each task is one transaction under the locks that uploads take: trials that came
meanwhile are graded, the task's pointer moves, and its trials are decided anew. An upload comes
before or after it, and never beside it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from evalsite.after_calibration import read_after_contract
from evalsite.background import begun
from evalsite.common.gate_marks import releases_of, releases_of_tasks, touch_gates
from evalsite.common.locks import exclusive
from evalsite.grading import grade_under, remake_fixtures
from evalsite.projections import decide_trials, refresh_figures
from reviews.core.contract_drafts import grader_tests_of, unmet_tests_sentence
from reviews.core.regrades import (
    NOT_DECIDED,
    EffectCounter,
    TaskEffect,
    parse_regrade,
    regrade_document,
)
from reviews.models import Regrade
from reviews.services.verdicts import checks_version
from traces.models import (
    ContractOutcome,
    ContractVersion,
    Release,
    SplitChange,
    System,
    Task,
    Trial,
    WorkState,
)
from traces.selectors.contracts import VersionedContract, contracts_in_effect, contracts_named
from traces.services.trials import ingest_locks

log = logging.getLogger("evalsite.regrades")

BATCH = 200  # trials graded in one transaction
DECIDED_TOGETHER = 2_000

_OPEN = (WorkState.WAITING.value, WorkState.WORKING.value)


class _StoppedError(Exception):
    """Somebody stopped the work."""


class _UnfitError(Exception):
    """Nothing may take effect; the text is a sentence for people."""


def work_out_regrade(regrade_id: int) -> bool:
    """Work a regrade out from its checkpoint on.

    False when there was nothing to do, or another worker is at a regrade of the same system: this
    one gives way, and the sweeper sends it again. Raises what the database raises.
    """
    regrade = Regrade.objects.select_related("system__shown_rules", "proposal").get(pk=regrade_id)
    with exclusive("evalsite.regrade", regrade.system_id) as is_mine:
        if not is_mine or begun(Regrade.objects.all(), regrade_id, now=timezone.now()) is None:
            return False
        try:
            _Regrading(regrade).run()
        except _StoppedError:
            log.info("regrade gives way to a stop", extra=_ids(regrade))
        except _UnfitError as error:
            _fail(regrade, str(error))
        return True


def next_open_regrade(regrade_id: int) -> int | None:
    """The regrade of the same system that waits to be worked out after this one."""
    regrade = Regrade.objects.get(pk=regrade_id)
    others = Regrade.objects.filter(system=regrade.system_id, state__in=_OPEN)
    return others.exclude(pk=regrade_id).order_by("pk").values_list("pk", flat=True).first()


@transaction.atomic
def _fail(regrade: Regrade, why: str) -> None:
    now = timezone.now()
    if regrade.proposal_id is not None:
        # Versions that never take effect are not in force for runs that began since.
        ingest_locks(regrade.system, regrade.system.releases.only("pk"))
        touch_gates(releases_of(regrade.system_id), now=now)
    Regrade.objects.filter(pk=regrade.pk, state__in=_OPEN).update(
        state=WorkState.FAILED.value, failure=why, touched_at=now, finished_at=now
    )
    log.info("regrade failed", extra={**_ids(regrade), "why": why})


def _ids(regrade: Regrade) -> dict[str, object]:
    return {"system": regrade.system.slug, "regrade": regrade.number}


class _Regrading:
    """One worker's stretch of a regrade."""

    def __init__(self, regrade: Regrade) -> None:
        self.regrade, self.system = regrade, regrade.system
        self.tasks: Sequence[int] = regrade.tasks
        self.versions = _versions_of(regrade)
        self.began = time.monotonic()

    def run(self) -> None:
        self._prepare()
        while self._next_batch():
            pass
        while self._next_task():
            pass
        row = Regrade.objects.get(pk=self.regrade.pk)
        log.info(
            "regrade worked out",
            extra={
                **_ids(row),
                "trials": row.n_done,
                "verdicts": row.n_verdicts,
                "seconds": round(time.monotonic() - self.began, 2),
            },
        )

    @transaction.atomic
    def _prepare(self) -> None:
        """Run the grader tests again, count what is to do, and make the names of the checks."""
        for one in self.versions.values():
            if not one.is_readable:
                task_id = Task.objects.values_list("task_id", flat=True).get(pk=one.task_pk)
                raise _UnfitError(
                    f"The contract of task {task_id} cannot be read by this version of the "
                    "product; mend it and propose it anew."
                )
        tests = [test for one in self.versions.values() for test in grader_tests_of(one.contract)]
        if why := unmet_tests_sentence(tests):
            raise _UnfitError(why)
        ingest_locks(self.system, ())  # under which alone names of graders are made
        checks_version(self.system)
        row = self._row()
        row.n_total = Trial.objects.filter(task__in=self.versions).count()
        row.save(update_fields=["n_total"])

    @transaction.atomic
    def _next_batch(self) -> bool:
        """Grade the next trials behind the checkpoint; False when there are none."""
        row = self._row()
        trials = Trial.objects.filter(task__in=self.versions, pk__gt=row.after)
        ids = list(trials.order_by("pk").values_list("pk", flat=True)[:BATCH])
        if not ids:
            return False
        report = grade_under(ids, self.versions, now=timezone.now())
        row.after = ids[-1]
        row.n_done += len(ids)
        row.n_total = max(row.n_total or 0, row.n_done)
        row.n_verdicts += report.n_verdicts
        self._save(row)
        return True

    @transaction.atomic
    def _next_task(self) -> bool:
        """Let the next task take effect; False when all have."""
        n_done = Regrade.objects.values_list("n_tasks_done", flat=True).get(pk=self.regrade.pk)
        if n_done >= len(self.tasks):
            self._finish()
            return False
        task_pk = self.tasks[n_done]
        releases = Release.objects.filter(
            pk__in=Trial.objects.filter(task=task_pk).values("release")
        )
        ingest_locks(self.system, releases.order_by("pk"))
        row = self._row()
        takeover = _Takeover(row, self.system, task_pk, self.versions[task_pk])
        effect = takeover.run()
        row.n_tasks_done += 1
        row.n_verdicts += takeover.n_verdicts
        row.result = regrade_document(parse_regrade(row.result).with_task(effect))
        self._save(row)
        return True

    def _finish(self) -> None:
        row = self._row()
        row.state = WorkState.DONE.value
        row.n_total = row.n_done
        row.touched_at = row.finished_at = timezone.now()
        row.save()

    def _row(self) -> Regrade:
        """The row, locked: whoever stops the work waits for the batch, or the batch sees it."""
        row = (
            Regrade.objects.select_for_update(of=("self",))
            .select_related("system", "proposal")
            .get(pk=self.regrade.pk)
        )
        if not row.is_open:
            raise _StoppedError
        return row

    def _save(self, row: Regrade) -> None:
        row.state, row.n_tries, row.touched_at = WorkState.WORKING.value, 0, timezone.now()
        row.save()


def _versions_of(regrade: Regrade) -> dict[int, VersionedContract]:
    """The contract version of each task that the regrade grades under."""
    if regrade.proposal_id is None:
        return contracts_in_effect(regrade.tasks)
    rows = ContractVersion.objects.filter(proposal=regrade.proposal_id)
    versions = contracts_named(rows.values_list("pk", flat=True))
    return {version.task_pk: version for version in versions.values()}


@dataclass(slots=True)
class _Takeover:
    """One task that takes effect, in one transaction under `ingest_locks`."""

    regrade: Regrade
    system: System
    task_pk: int
    version: VersionedContract
    n_verdicts: int = 0

    def run(self) -> TaskEffect:
        task = Task.objects.select_for_update(no_key=True, of=("self",)).get(pk=self.task_pk)
        number = self.version.number
        if why := self._passed_over(task, self.version):
            return EffectCounter().effect(task.task_id, version=number, note=why)
        trials = Trial.objects.filter(task=task).order_by("pk")
        ids = list(trials.values_list("pk", flat=True))
        now = timezone.now()
        for few in _portions(ids):
            self.n_verdicts += grade_under(few, {task.pk: self.version}, now=now).n_verdicts
        if self.regrade.proposal is not None:
            earlier = contracts_in_effect([task.pk]).get(task.pk)
            self._move(task, self.version)
            read_after_contract(
                self.system, earlier.contract if earlier else None, self.version.contract, now=now
            )
        remake_fixtures(self.system, task.pk)
        counter = EffectCounter()
        for few in _portions(ids):
            before = stored_dispositions(few)
            decide_trials(few, now=now)
            _count(counter, before, stored_dispositions(few))
        refresh_figures(self.system, [task.pk])
        return counter.effect(task.task_id, version=number)

    def _passed_over(self, task: Task, version: VersionedContract) -> str:
        """Why the version does not take effect: another one was approved later; else ""."""
        if self.regrade.proposal is None:
            if task.contract_id == version.pk:
                return ""
            return "Another contract came into effect meanwhile."
        later = _approved_later(version.pk)
        if later is None:
            return ""
        return f"Version {later} was approved later and takes its place."

    def _move(self, task: Task, version: VersionedContract) -> None:
        """Decide the task by the version from now on, and take over what it says of the task."""
        contract = version.contract
        old, new = task.split, contract.split or task.split
        task.contract_id = version.pk
        task.title = contract.title[:500] or task.title
        task.family = contract.family[:200] or task.family
        task.split = new
        task.save(update_fields=["contract", "title", "family", "split"])
        touch_gates(releases_of_tasks([task.pk]), now=timezone.now())
        if old != new:
            self._note_split(task, old, new)

    def _note_split(self, task: Task, old: str, new: str) -> None:
        proposal = self.regrade.proposal
        assert proposal is not None
        moved: dict[str, Any] = {
            "system": self.system,
            "family": task.family,
            "task": None if task.family else task,
        }
        newest = SplitChange.objects.filter(**moved).order_by("-pk").first()
        if newest is not None and newest.new == new:
            return  # another task of the family moved it there
        SplitChange.objects.create(
            **moved,
            old=old,
            new=new,
            reason=f"Proposal {proposal.number} of contracts: {proposal.reason}",
            by=self.regrade.by,
            changed_at=timezone.now(),
        )


def _approved_later(version_pk: int) -> int | None:
    """The number of a version of the same task that was approved after this one."""
    mine = ContractVersion.objects.select_related("proposal__decision").get(pk=version_pk)
    decided_at = mine.proposal.decision.decided_at
    later = Q(proposal__decision__decided_at__gt=decided_at) | Q(
        proposal__decision__decided_at=decided_at, proposal__gt=mine.proposal_id
    )
    return (
        ContractVersion.objects.filter(
            later,
            task=mine.task_id,
            proposal__decision__outcome=ContractOutcome.APPROVED.value,
        )
        .order_by("-number")
        .values_list("number", flat=True)
        .first()
    )


def _portions(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(ids), DECIDED_TOGETHER):
        yield ids[first : first + DECIDED_TOGETHER]


@dataclass(frozen=True, slots=True)
class StoredDisposition:
    """What a trial came to, as its row says."""

    uuid: str
    value: str
    failed: tuple[str, ...]
    open: tuple[str, ...]


def stored_dispositions(trial_ids: Iterable[int]) -> Mapping[int, StoredDisposition]:
    """What trials come to now; those without a disposition are not decided."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.id, t.uuid, coalesce(d.value, ''), d.failed, d.open FROM traces_trial t"
            " LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id WHERE t.id = ANY(%s)"
            " ORDER BY t.id",
            [list(trial_ids)],
        )
        return {
            pk: StoredDisposition(
                str(identity), value or NOT_DECIDED, tuple(failed or ()), tuple(is_open or ())
            )
            for pk, identity, value, failed, is_open in cursor.fetchall()
        }


def _count(
    counter: EffectCounter,
    before: Mapping[int, StoredDisposition],
    after: Mapping[int, StoredDisposition],
) -> None:
    for pk, now in after.items():
        was = before[pk]
        counter.add(
            now.uuid,
            before=was.value,
            after=now.value,
            failed_before=was.failed,
            failed=now.failed,
            is_open=now.open,
        )
