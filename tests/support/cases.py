"""Cases in few words: trials that are decided as a test says."""

from __future__ import annotations

from datetime import UTC, datetime

from reviews.core.cases import DecidedCase
from reviews.models import Case
from reviews.services.case_rows import follow_dispositions
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Trial

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
LATER = datetime(2026, 12, 2, 11, 30, tzinfo=UTC)


def decided(
    trial: Trial,
    disposition: str = "unresolved",
    actions: tuple[str, ...] = ("repair_evidence",),
    why: tuple[str, ...] = ("outcome",),
    *,
    stands: bool = True,
) -> DecidedCase:
    """A trial as it was decided."""
    return DecidedCase(
        trial_id=trial.pk,
        system_id=trial.system_id,
        task_id=trial.task_id,
        release_id=trial.release_id,
        disposition=disposition,
        actions=actions,
        open_criteria=why,
        stands=stands,
    )


def passed(trial: Trial) -> DecidedCase:
    """A trial that passes."""
    return decided(trial, "pass", (), ())


def failed(trial: Trial) -> DecidedCase:
    """A trial that fails."""
    return decided(trial, "fail", (), ())


def broken(trial: Trial, *, stands: bool = True) -> DecidedCase:
    """A trial in which the harness broke."""
    return decided(trial, "harness_error", ("rerun_trial",), (), stands=stands)


def stored_trials(cast: Cast, n: int = 1, task_id: str = "t1") -> list[Trial]:
    """Trials of one task that pass, and so have no case."""
    ingest(cast.system, [record(task_id, label) for label in range(n)])
    found = Trial.objects.filter(system=cast.system, task__task_id=task_id)
    return list(found.order_by("pk"))


def case_of_trial(
    trial: Trial,
    actions: tuple[str, ...] = ("repair_evidence",),
    why: tuple[str, ...] = ("outcome",),
    *,
    now: datetime = NOW,
) -> Case:
    """The open case of a trial that the evidence does not decide."""
    follow_dispositions([decided(trial, actions=actions, why=why)], now=now)
    return Case.objects.get(trial=trial)
