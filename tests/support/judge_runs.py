"""A system whose trials a judge can be asked about, and runs of the judge."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from evalsite.judge_runner.client import JudgeClient
from evalsite.judge_runner.work import work_out_judge_run
from reviews.models import JudgeRun, ProbeBatch
from reviews.selectors.calibration_candidates import LabelCriterion
from reviews.selectors.judge_runs import criteria_to_judge, trials_to_judge
from reviews.services.judge_runs import AskedJudge, JudgeRunWish, start_judge_run
from tests.support.cast import Cast
from tests.support.endpoint import Endpoint
from tests.support.evidence import ingest, record
from tests.support.regrades import in_effect

QUESTION = "Is all that the agent says true?"
CONTRACT = f"""
task: t1
title: One
family: refunds
split: regression
outcome: [{{unchanged: true}}]
semantic: [{{rubric: truthful, version: "2", question: "{QUESTION}"}}]
"""
JUDGE = AskedJudge("site judge", "m-1", "127.0.0.1/v1/chat/completions")
STATES: dict[str, Any] = {"initial_state": {}, "final_state": {}}


def asked_trials(cast: Cast, n: int = 3) -> None:
    """Some trials of a task whose contract asks for a rubric."""
    ingest(cast.system, [record("t1", label, verdicts=[], **STATES) for label in range(n)])
    in_effect(cast, CONTRACT)


def criterion(cast: Cast, name: str = "truthful") -> LabelCriterion:
    """A criterion that the judge can be asked."""
    return next(each for each in criteria_to_judge(cast.system.pk) if each.name == name)


def started(cast: Cast, *, probes: ProbeBatch | None = None, **more: Any) -> JudgeRun:
    """A run that the engineer asks for, about all trials or a batch of probes."""
    found = criterion(cast)
    trials = [] if probes else trials_to_judge(cast.system, found, most=100)
    wish = JudgeRunWish(
        criterion=found.name,
        criterion_digest=found.digest,
        rubric_version=found.rubric_version,
        question=found.question,
        trial_ids=more.pop("trial_ids", trials),
        probes=probes,
    )
    given: dict[str, Any] = {"reason": "to see", "by": cast.engineer, "now": timezone.now()}
    return start_judge_run(cast.system, wish, more.pop("judge", JUDGE), **(given | more))


def worked(run: JudgeRun, server: Endpoint, *, seconds: float = 60, **more: Any) -> JudgeRun:
    """The run after a worker's turn with the server."""
    client = JudgeClient(server.settings(**more), sleep=lambda _: None)
    work_out_judge_run(run.pk, client=client, seconds=seconds)
    run.refresh_from_db()
    return run
