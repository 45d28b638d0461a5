"""Judge runs started: the judge is the one that the operator set up, else there is none."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import transaction

from evalsite.judge_runner.endpoint import JudgeEndpoint
from evalsite.judge_runner.work import NOT_CONFIGURED
from reviews.models import JudgeRun
from reviews.services.judge_runs import (
    AskedJudge,
    JudgeRunError,
    JudgeRunWish,
    start_judge_run,
)
from traces.models import System, User
from traces.services.trials import ingest_locks


def configured_judge() -> AskedJudge | None:
    """The judge that can be asked from here; None where the operator has set up none."""
    endpoint: JudgeEndpoint | None = settings.EVALSITE_JUDGE
    return AskedJudge(endpoint.name, endpoint.model, endpoint.shown) if endpoint else None


def start_configured(
    system: System, wish: JudgeRunWish, *, reason: str, by: User, now: datetime
) -> JudgeRun:
    """Have the operator's judge asked (`reviews.services.judge_runs.start_judge_run`)."""
    judge = configured_judge()
    if judge is None:
        raise JudgeRunError(NOT_CONFIGURED)
    with transaction.atomic():
        ingest_locks(system, ())  # under which alone names of graders are made
        return start_judge_run(system, wish, judge, reason=reason, by=by, now=now)
