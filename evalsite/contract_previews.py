"""What drafted contracts would do to the stored trials of their tasks; by a worker.

It reads only, grades in memory, holds nothing back, and is safe to run twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import connection
from django.utils import timezone

from evalsite.background import begun
from evalsite.common.locks import exclusive
from evalsite.grading import ContractGrader
from evalsite.regrading import StoredDisposition, stored_dispositions
from reviews.core.check_verdicts import Fixture, given_checks
from reviews.core.contract_drafts import grader_tests_of
from reviews.core.deciding import DecidedBy, TaskRequirements
from reviews.core.disposition import Adjudication, GivenVerdict, TrialFacts
from reviews.core.regrades import (
    EffectCounter,
    PreviewResult,
    TaskEffect,
    UnknownTool,
    preview_document,
)
from reviews.core.requirements import CheckNotes
from reviews.selectors.votes import TrialVotes, calibrations_in, marks_on, trial_votes
from traces.models import ContractPreview, System, Task, Tool, Trial, WorkState
from traces.selectors.contracts import VersionedContract, contract_of_stored
from traces.selectors.rules import rules_of
from traces.selectors.trial_evidence import TrialEvidenceRows, trial_evidence

log = logging.getLogger("evalsite.contracts")

NOTED_EVERY_SECONDS = 0.5
BATCH = 500  # trials whose verdicts are read together
DRAFT = 0  # the id of a version that is not stored


class _StoppedError(Exception):
    """Somebody stopped the work, or it was done by somebody else."""


def work_out_contract_preview(preview_id: int) -> None:
    """Find out what drafted contracts would do to the dispositions of stored trials.

    Nothing happens where that is known, or another worker is at it. Raises what the database
    raises; the sweeper tries again.
    """
    with exclusive("evalsite.contract_preview", preview_id) as is_mine:
        rows = ContractPreview.objects.filter(pk=preview_id)
        preview = begun(rows, preview_id, now=timezone.now()) if is_mine else None
        if preview is None:
            return
        began = time.monotonic()
        try:
            result = _Preview(preview).result()
        except _StoppedError:
            log.info("preview of contracts gives way", extra={"preview": str(preview.uuid)})
            return
        now = timezone.now()
        rows.filter(state=WorkState.WORKING.value).update(
            result=preview_document(result),
            state=WorkState.DONE.value,
            n_done=result.n_trials,
            n_total=result.n_trials,
            touched_at=now,
            finished_at=now,
        )
        log.info(
            "preview of contracts worked out",
            extra={
                "preview": str(preview.uuid),
                "trials": result.n_trials,
                "changed": result.n_changed,
                "seconds": round(time.monotonic() - began, 2),
            },
        )


class _Preview:
    """One worker's way through the trials of the drafted tasks."""

    def __init__(self, preview: ContractPreview) -> None:
        self.preview = preview
        self.system = System.objects.select_related("shown_rules").get(pk=preview.system_id)
        self.rules = rules_of(self.system)
        self.contracts = {
            task_id: contract_of_stored(text) for task_id, text in preview.texts.items()
        }
        self.tasks = {
            task.task_id: task
            for task in Task.objects.filter(system=self.system, task_id__in=self.contracts)
        }
        self.n_done, self.n_total = 0, 0
        self._noted_at = 0.0

    def result(self) -> PreviewResult:
        tests = tuple(
            test for contract in self.contracts.values() for test in grader_tests_of(contract)
        )
        self.n_total = Trial.objects.filter(task__in=self.tasks.values()).count()
        return PreviewResult(
            tasks=tuple(self._effect(task_id) for task_id in self.contracts),
            grader_tests=tests,
            unknown_tools=self._unknown_tools(),
        )

    def _effect(self, task_id: str) -> TaskEffect:
        counter = EffectCounter()
        task = self.tasks.get(task_id)
        if task is None:
            return counter.effect(task_id)
        version = VersionedContract(DRAFT, self.preview.uuid, 0, task.pk, self.contracts[task_id])
        grader, outcomes = ContractGrader(version), _Outcomes()
        requirements = TaskRequirements(
            version.contract,
            contract_key=version.key,
            marks=marks_on([task.pk]).get(task.pk, ()),
            calibrations=calibrations_in([task.system_id])[task.system_id],
        )
        for few in self._trials_of(task):
            votes = trial_votes(few)
            before = stored_dispositions(few)
            places = _places(few)
            for rows in trial_evidence(few, self.rules.rejection):
                pk = rows.trial_pk
                given = votes.get(pk, TrialVotes())
                outcomes.add(before[pk], places[pk], _graded(rows, grader, given), requirements)
            self._note(len(few))
        outcomes.count_into(counter)
        return counter.effect(task_id)

    def _trials_of(self, task: Task) -> Iterator[list[int]]:
        after = 0
        trials = Trial.objects.filter(task=task).order_by("pk").values_list("pk", flat=True)
        while few := list(trials.filter(pk__gt=after)[:BATCH]):
            after = few[-1]
            yield few

    def _note(self, n: int) -> None:
        """Note how far it is, now and then; and give way where nobody waits any more."""
        self.n_done += n
        if time.monotonic() - self._noted_at < NOTED_EVERY_SECONDS:
            return
        self._noted_at = time.monotonic()
        working = ContractPreview.objects.filter(
            pk=self.preview.pk, state=WorkState.WORKING.value
        ).update(
            n_done=self.n_done,
            n_total=max(self.n_total, self.n_done),
            n_tries=0,
            touched_at=timezone.now(),
        )
        if not working:
            raise _StoppedError

    def _unknown_tools(self) -> tuple[UnknownTool, ...]:
        """Tools that contracts name, and neither the tool kinds nor any stored trace."""
        named: dict[str, list[str]] = {}
        for task_id, contract in self.contracts.items():
            for name in contract.tool_names:
                named.setdefault(name, []).append(task_id)
        known = {name for name, _ in self.rules.tool_kinds}
        stored = Tool.objects.filter(system=self.system, name__in=list(named))
        known |= set(stored.values_list("name", flat=True))
        return tuple(
            UnknownTool(name, tuple(tasks))
            for name, tasks in sorted(named.items())
            if name not in known
        )


@dataclass(frozen=True, slots=True)
class _Graded:
    """A trial with everything that it is decided from."""

    facts: TrialFacts
    verdicts: Sequence[GivenVerdict]
    notes: Mapping[str, CheckNotes]
    adjudications: Sequence[Adjudication]
    is_faulty: bool
    fixture: Fixture | None


def _graded(rows: TrialEvidenceRows, grader: ContractGrader, votes: TrialVotes) -> _Graded:
    verdicts, notes = list(votes.verdicts), dict(votes.notes)
    for order in range(rows.evidence_order + 1):
        grading = grader.graded(rows, order).grading
        given, own = given_checks(
            grading.verdicts, contract_key=grader.version.key, evidence_order=order
        )
        verdicts += given
        notes |= own
    return _Graded(
        TrialFacts(rows.recorded.status, grading.missing_evidence, rows.evidence_order),
        verdicts,
        notes,
        votes.adjudications,
        bool(grading.fixture_faults),
        grading.fixture,
    )


_Place = tuple[int, bytes]
"""Task version and digest of the trial's facts: trials there start from one state."""

_End = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Disposition, failed and open criteria."""


class _Outcomes:
    """How the trials of one task come out, with and without a fault of the fixture.

    Whether trials of a group started alike is known at the end only; what is kept of each until
    then is small, as most of them come out the same.
    """

    def __init__(self) -> None:
        self._states: dict[_Place, set[bytes]] = {}
        self._ends: dict[_End, _End] = {}
        self._trials: list[tuple[StoredDisposition, _End, _End, _Place | None]] = []

    def add(
        self,
        before: StoredDisposition,
        task_version: int,
        trial: _Graded,
        requirements: TaskRequirements,
    ) -> None:
        end = self._end(trial, requirements, is_faulty=trial.is_faulty)
        if trial.fixture is None:
            self._trials.append((before, end, end, None))
            return
        place = (task_version, trial.fixture.facts)
        self._states.setdefault(place, set()).add(trial.fixture.state)
        self._trials.append((before, end, self._end(trial, requirements, is_faulty=True), place))

    def _end(self, trial: _Graded, requirements: TaskRequirements, *, is_faulty: bool) -> _End:
        decided: DecidedBy = requirements.decided(
            trial.facts,
            trial.verdicts,
            trial.notes,
            adjudications=trial.adjudications,
            has_faulty_fixture=is_faulty,
        )
        figures = decided.figures
        end = (decided.decision.disposition.value, figures.failed, figures.open)
        return self._ends.setdefault(end, end)

    def count_into(self, counter: EffectCounter) -> None:
        mixed = {place for place, states in self._states.items() if len(states) > 1}
        for before, sound, faulty, place in self._trials:
            after, failed, is_open = faulty if place in mixed else sound
            counter.add(
                before.uuid,
                before=before.value,
                after=after,
                failed_before=before.failed,
                failed=failed,
                is_open=is_open,
            )


def _places(trial_ids: Sequence[int]) -> dict[int, int]:
    """The task version of each trial."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, task_version_id FROM traces_trial WHERE id = ANY(%s)", [list(trial_ids)]
        )
        return dict(cursor.fetchall())
