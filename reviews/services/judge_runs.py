"""Judge runs asked for, stopped and taken up again. Callers send the hint; a worker asks the judge.

Each act locks the system's row and checks again inside the transaction.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from evalsite.common.audit import AuditedObject, record
from reviews.core.judge_prompt import judge_version
from reviews.models import Criterion, JudgeRun, JudgeRunItem, Probe, ProbeBatch
from reviews.permissions.judge_runs import (
    restart_refusal,
    start_refusal,
    stop_refusal,
    unfit_to_restart,
)
from reviews.services.verdicts import grader_versions
from traces.core.records import GraderKind
from traces.core.text_marks import clean_text
from traces.models import System, User, WorkState

log = logging.getLogger("evalsite.judge_runs")

LONGEST_REASON = 4_000  # characters
MOST_ITEMS = 5_000  # of one run
NOTHING_TO_ASK = "There is nothing to ask the judge about."
NO_QUESTION = (
    "Nobody wrote down what this criterion asks. Write its rubric, or the question in the contract."
)


class JudgeRunError(Exception):
    """A refusal, with its sentence for people."""


class JudgeRunDeniedError(JudgeRunError):
    """Somebody who may not do that."""


@dataclass(frozen=True, slots=True)
class AskedJudge:
    """The judge as the operator set it up."""

    name: str
    model: str
    endpoint: str  # host and path, never a secret


@dataclass(frozen=True, slots=True)
class JudgeRunWish:
    """What a judge is to be asked, about which trials; or about a batch of probes."""

    criterion: str
    criterion_digest: uuid.UUID | None
    rubric_version: str
    question: str
    trial_ids: Sequence[int] = ()
    probes: ProbeBatch | None = None


@transaction.atomic
def start_judge_run(
    system: System,
    wish: JudgeRunWish,
    judge: AskedJudge,
    *,
    reason: str,
    by: User,
    now: datetime,
) -> JudgeRun:
    """Have a judge asked about trials or probes, one request each.

    The caller holds the lock under which alone names of graders are made (`ingest_locks`). Raises
    `JudgeRunDeniedError` for who may not, and `JudgeRunError` without a reason, without a question
    for the judge, where there is nothing to ask about, and for more items than one run takes.
    """
    _lock(system)
    if refusal := start_refusal(system, by):
        _refuse(refusal, system, by)
        raise JudgeRunDeniedError(refusal)
    why = _reason(reason)
    if not wish.question.strip():
        raise JudgeRunError(NO_QUESTION)
    things = _things(wish)
    if not things:
        raise JudgeRunError(NOTHING_TO_ASK)
    if len(things) > MOST_ITEMS:
        raise JudgeRunError(f"One run asks about at most {MOST_ITEMS:,} trials or probes.")
    version = judge_version(judge.model, wish.rubric_version)
    named = (GraderKind.MODEL.value, judge.name, version)
    last = JudgeRun.objects.filter(system=system).aggregate(last=Max("number"))["last"]
    run = JudgeRun.objects.create(
        system=system,
        number=(last or 0) + 1,
        criterion=Criterion.objects.get_or_create(system=system, name=wish.criterion)[0],
        criterion_digest=wish.criterion_digest,
        rubric_version=wish.rubric_version,
        question=wish.question,
        probes=wish.probes,
        grader_version_id=grader_versions(system, {named})[named],
        model=judge.model[:200],
        endpoint=judge.endpoint[:300],
        reason=why,
        by=by,
        n_total=len(things),
        asked_at=now,
        touched_at=now,
    )
    JudgeRunItem.objects.bulk_create(
        [
            JudgeRunItem(
                run=run,
                position=position,
                trial_id=None if wish.probes else pk,
                probe_id=pk if wish.probes else None,
            )
            for position, pk in enumerate(things, start=1)
        ]
    )
    _record(
        "judge_run.asked",
        run,
        by,
        now,
        after={"criterion": wish.criterion, "model": run.model, "n_items": len(things)},
        reason=why,
    )
    _note("judge run asked for", run, by, items=len(things))
    return run


def _things(wish: JudgeRunWish) -> list[int]:
    """Rows of what is asked about, in order."""
    if wish.probes is None:
        return list(dict.fromkeys(wish.trial_ids))
    probes = Probe.objects.filter(batch=wish.probes).order_by("position")
    return list(probes.values_list("pk", flat=True))


@transaction.atomic
def stop_judge_run(run: JudgeRun, *, by: User, now: datetime) -> None:
    """Stop a judge run. What was answered stays; a request that is under way is still answered."""
    _lock(run.system)
    row = _locked(run)
    _check(stop_refusal(row, by), row.system, by)
    JudgeRun.objects.filter(pk=row.pk).update(
        state=WorkState.CANCELLED.value, cancelled_by=by, finished_at=now, touched_at=now
    )
    _record("judge_run.stopped", row, by, now, before={"state": row.state})
    _note("judge run stopped", row, by)


@transaction.atomic
def restart_judge_run(run: JudgeRun, *, by: User | None, now: datetime) -> None:
    """Take up a stopped or failed judge run with what is not answered. `by` None: the operator."""
    _lock(run.system)
    row = _locked(run)
    _check(unfit_to_restart(row) if by is None else restart_refusal(row, by), row.system, by)
    JudgeRun.objects.filter(pk=row.pk).update(
        state=WorkState.WAITING.value,
        cancelled_by=None,
        failure="",
        n_tries=0,
        finished_at=None,
        touched_at=now,
    )
    _record("judge_run.restarted", row, by, now, before={"state": row.state})
    _note("judge run taken up again", row, by)


def _record(
    act: str,
    run: JudgeRun,
    by: User | None,
    now: datetime,
    *,
    before: dict[str, object] | None = None,
    after: dict[str, object] | None = None,
    reason: str = "",
) -> None:
    record(
        act,
        system_pk=run.system_id,
        by_pk=by.pk if by else None,
        at=now,
        obj=AuditedObject("judge_run", str(run.number), f"Judge run {run.number}"),
        before=before,
        after=after,
        reason=reason,
    )


def _locked(run: JudgeRun) -> JudgeRun:
    rows = JudgeRun.objects.select_for_update(of=("self",)).select_related("system")
    return rows.get(pk=run.pk)


def _lock(system: System) -> None:
    """The system's row, held until the transaction ends; evidence may still name it."""
    System.objects.select_for_update(no_key=True, of=("self",)).get(pk=system.pk)


def _check(sentence: str, system: System, by: User | None) -> None:
    if sentence:
        _refuse(sentence, system, by)
        raise JudgeRunError(sentence)


def _refuse(sentence: str, system: System, by: User | None) -> None:
    """The log says a refusal in the sentence that the person sees."""
    user = by.pk if by else None
    extra = {"system": system.slug, "user": user, "why": sentence}
    log.info("judge run refused", extra=extra)


def _reason(text: str) -> str:
    reason = clean_text(text).strip()
    if not reason:
        raise JudgeRunError("Say why, in a sentence.")
    if len(reason) > LONGEST_REASON:
        raise JudgeRunError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


def _note(act: str, run: JudgeRun, by: User | None, **ids: object) -> None:
    user = by.pk if by else None  # None: the operator, by command
    log.info(act, extra={"system": run.system.slug, "user": user, "run": run.number, **ids})
