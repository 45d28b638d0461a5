"""A judge's answer stored: as a verdict on its trial, which is decided anew, or on its probe.

One item is one transaction under the locks that every writer of the evidence takes. An item that
is stored already is left as it is, so that a worker that was killed in between does no harm.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import F

from evalsite.after_review import decided_again, evidence_locked
from evalsite.common import blobs
from evalsite.judge_runner.client import Asked
from evalsite.judge_runner.evidence import TrialBasis
from reviews.core.judge_answers import JudgeAnswer
from reviews.core.judge_prompt import PROMPT_VERSION, JudgePrompt
from reviews.models import JudgeRun, JudgeRunItem, Verdict
from reviews.services.probes import IncomingProbeVerdict, store_probe_verdicts
from traces.core.canonical import digest_of
from traces.core.records import CriterionClass, GraderKind, ParsedVerdict, VerdictValue
from traces.core.text_marks import clean_text
from traces.core.values import JsonObject
from traces.models import Trial, WorkState
from traces.services.trials import ingest_locks

_OPEN = (WorkState.WAITING.value, WorkState.WORKING.value)


def store_on_trial(
    run: JudgeRun,
    item: JudgeRunItem,
    trial: Trial,
    basis: TrialBasis,
    prompt: JudgePrompt,
    asked: Asked,
    *,
    now: datetime,
) -> None:
    """Keep what the judge said of a trial, and decide the trial on it."""
    with evidence_locked(run.system, [trial.pk]):
        if _is_done(item):
            return
        answer = answer_of_asked(asked)
        verdict = _verdict(run, item, trial, basis, prompt, asked, answer)
        verdict.save(force_insert=True)
        _finish(run, item, asked, answer, now=now, verdict=verdict)
        decided_again([trial.pk], run.system, now=now)


def store_on_probe(
    run: JudgeRun, item: JudgeRunItem, prompt: JudgePrompt, asked: Asked, *, now: datetime
) -> None:
    """Keep what the judge said of a probe. It is no verdict on any trial."""
    assert item.probe_id is not None
    with transaction.atomic():
        ingest_locks(run.system, ())
        if _is_done(item):
            return
        answer = answer_of_asked(asked)
        parsed = _parsed(run, item, prompt, asked, answer)
        incoming = IncomingProbeVerdict(item.probe_id, parsed, run=run)
        store_probe_verdicts(run.system, [incoming], now=now)
        _finish(run, item, asked, answer, now=now)


def store_unasked(run: JudgeRun, item: JudgeRunItem, why: str, *, now: datetime) -> None:
    """Note why the judge was not asked about an item. Nothing is said of its trial."""
    with transaction.atomic():
        if _is_done(item):
            return
        JudgeRunItem.objects.filter(pk=item.pk).update(failure=why, done_at=now)
        _count(run, n_errors=1, cost=None, now=now)


def answer_of_asked(asked: Asked) -> JudgeAnswer:
    """The answer; an error where none came."""
    if asked.completion is None:
        return JudgeAnswer(VerdictValue.ERROR, problem=asked.failure)
    return asked.completion.answer


def _is_done(item: JudgeRunItem) -> bool:
    row = JudgeRunItem.objects.select_for_update(of=("self",)).get(pk=item.pk)
    return row.done_at is not None


def _finish(
    run: JudgeRun,
    item: JudgeRunItem,
    asked: Asked,
    answer: JudgeAnswer,
    *,
    now: datetime,
    verdict: Verdict | None = None,
) -> None:
    JudgeRunItem.objects.filter(pk=item.pk).update(
        verdict=verdict,
        n_tries=F("n_tries") + asked.n_tries,
        value=answer.value.value,
        failure=clean_text(answer.problem),
        cost_usd=asked.cost_usd,
        seconds=asked.seconds,
        done_at=now,
        tokens=_tokens(asked),
    )
    is_error = answer.value is VerdictValue.ERROR
    _count(run, n_errors=int(is_error), cost=asked.cost_usd, now=now)


def _tokens(asked: Asked) -> list[int]:
    found = asked.completion
    if found is None or found.input_tokens is None or found.output_tokens is None:
        return []
    return [found.input_tokens, found.output_tokens]


def _count(run: JudgeRun, *, n_errors: int, cost: Decimal | None, now: datetime) -> None:
    """Count one more item. A run that was stopped meanwhile stays stopped."""
    rows = JudgeRun.objects.filter(pk=run.pk)
    rows.update(
        n_done=F("n_done") + 1,
        n_errors=F("n_errors") + n_errors,
        cost_usd=F("cost_usd") + (cost or Decimal(0)),
        touched_at=now,
    )
    rows.filter(state__in=_OPEN).update(state=WorkState.WORKING.value, n_tries=0)


def _extra(run: JudgeRun, prompt: JudgePrompt, asked: Asked, answer: JudgeAnswer) -> JsonObject:
    """All else that an answer came with, as it is kept beside the verdict."""
    said: JsonObject = {
        "judge_run": run.number,
        "model": run.model,
        "prompt_version": PROMPT_VERSION,
        "tries": asked.n_tries,
    }
    if run.rubric_version:
        said["rubric_version"] = run.rubric_version
    if answer.raw:
        said["raw_answer"] = answer.raw
    if answer.problem:
        said["problem"] = answer.problem
    if prompt.left_out:
        said["left_out"] = list(prompt.left_out)
    if asked.completion is not None and asked.completion.model:
        said["answered_by"] = asked.completion.model
    if tokens := _tokens(asked):
        said["tokens"] = list(tokens)
    if asked.cost_usd is not None:
        said["cost_usd"] = asked.cost_usd
    return said


def _rationale(answer: JudgeAnswer) -> str:
    return clean_text(answer.rationale or answer.problem)


def _verdict(
    run: JudgeRun,
    item: JudgeRunItem,
    trial: Trial,
    basis: TrialBasis,
    prompt: JudgePrompt,
    asked: Asked,
    answer: JudgeAnswer,
) -> Verdict:
    extra = _extra(run, prompt, asked, answer)
    return Verdict(
        trial=trial,
        grader_version_id=run.grader_version_id,
        criterion_id=run.criterion_id,
        criterion_class=basis.gradable.criterion_class.value,
        is_mandatory=basis.gradable.mandatory,
        value=answer.value.value,
        raw_word=clean_text(answer.raw_word),
        key=_key(run, item),
        rationale=_rationale(answer),
        cited_steps=list(answer.steps),
        extra=clean_text(blobs.dumps(extra)),
        digest=uuid.UUID(bytes=_digest(answer, extra)),
        evidence_digest=basis.evidence_digest,
        contract_id=basis.gradable.contract_pk,
        criterion_digest=basis.gradable.stored_digest,
        evidence_order=basis.evidence_order,
    )


def _parsed(
    run: JudgeRun, item: JudgeRunItem, prompt: JudgePrompt, asked: Asked, answer: JudgeAnswer
) -> ParsedVerdict:
    extra = _extra(run, prompt, asked, answer)
    return ParsedVerdict(
        grader=run.grader_version.grader.name,
        grader_version=run.grader_version.version,
        kind=GraderKind.MODEL,
        criterion=run.criterion.name,
        criterion_class=CriterionClass.SEMANTIC,
        mandatory=True,
        value=answer.value,
        raw_word=answer.raw_word,
        key=_key(run, item),
        rationale=_rationale(answer),
        cited_steps=answer.steps,
        extra=extra,
        digest=_digest(answer, extra),
    )


def _key(run: JudgeRun, item: JudgeRunItem) -> str:
    """What names the verdict for ever: a run says one thing of an item."""
    return f"{run.uuid.hex}.{item.position}"


def _digest(answer: JudgeAnswer, extra: JsonObject) -> bytes:
    return digest_of([answer.value.value, answer.rationale, list(answer.steps), extra])
