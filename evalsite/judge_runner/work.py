"""Judge runs worked off: one item after the other, each stored before the next is asked.

Safe to run twice, at once or days later, and to be killed anywhere: what was answered is stored,
and a run is taken up with what is not. A worker that dies between the answer and its storing has
asked for nothing; that item is asked again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.conf import settings
from django.utils import timezone

from evalsite.background import begun
from evalsite.common.locks import exclusive
from evalsite.judge_runner.client import EndpointRefusedError, JudgeClient
from evalsite.judge_runner.evidence import (
    basis_refusal,
    evidence_of_probe,
    evidence_of_trial,
    gradable_now,
)
from evalsite.judge_runner.storing import store_on_probe, store_on_trial, store_unasked
from evalsite.probe_verdicts import follow_criteria
from reviews.core.judge_prompt import JudgeEvidence, JudgePrompt, JudgeQuestion, judge_prompt
from reviews.models import JudgeRun, JudgeRunItem, Probe
from traces.models import Trial, WorkState

log = logging.getLogger("evalsite.judge_runs")

STRETCH_SECONDS: Final = 240.0  # after which other work gets its turn
MOST_FAILURES: Final = 5  # requests in a row without a reply
NOT_CONFIGURED: Final = (
    "The operator has given no endpoint of judges: EVALSITE_JUDGE_URL and EVALSITE_JUDGE_MODEL."
)
OTHER_MODEL: Final = (
    "The operator has set up another model since. This run asks for {asked}; start another one."
)
_OPEN = (WorkState.WAITING.value, WorkState.WORKING.value)


class _UnfitError(Exception):
    """No item can be asked; the text is a sentence for people."""


def work_out_judge_run(
    run_id: int, *, client: JudgeClient | None = None, seconds: float = STRETCH_SECONDS
) -> int | None:
    """Ask about the items of a run for a while. Returns the run of the system to go on with.

    That is this one while it needs another turn. None where all is done, and where another worker
    is at a run of the same system: this one gives way, and the sweeper sends it again. Raises what
    the database raises.
    """
    run = JudgeRun.objects.select_related(
        "system__shown_rules", "criterion", "grader_version__grader"
    ).get(pk=run_id)
    with exclusive("evalsite.judge_run", run.system_id) as is_mine:
        if not is_mine or begun(JudgeRun.objects.all(), run_id, now=timezone.now()) is None:
            return None
        stretch = _Stretch(run, time.monotonic() + seconds)
        try:
            stretch.run_with(client or configured_client(run))
        except (_UnfitError, EndpointRefusedError) as error:
            _fail(run, str(error))
        finally:
            stretch.follow()
        return _next_open(run)


def _next_open(run: JudgeRun) -> int | None:
    """The earliest run of the system that is not done."""
    still = JudgeRun.objects.filter(system=run.system_id, state__in=_OPEN)
    return still.order_by("pk").values_list("pk", flat=True).first()


def configured_client(run: JudgeRun) -> JudgeClient:
    """The client of the operator's endpoint. Raises where it would be another judge than asked."""
    endpoint = settings.EVALSITE_JUDGE
    if endpoint is None:
        raise _UnfitError(NOT_CONFIGURED)
    if (endpoint.model, endpoint.name) != (run.model, run.grader_version.grader.name):
        raise _UnfitError(OTHER_MODEL.format(asked=run.model))
    return JudgeClient(endpoint)


def _fail(run: JudgeRun, why: str) -> None:
    now = timezone.now()
    JudgeRun.objects.filter(pk=run.pk, state__in=_OPEN).update(
        state=WorkState.FAILED.value, failure=why, touched_at=now, finished_at=now
    )
    log.info("judge run failed", extra={**_ids(run), "why": why})


def _ids(run: JudgeRun) -> dict[str, object]:
    return {"system": run.system.slug, "run": run.number}


@dataclass(slots=True)
class _Stretch:
    """One worker's turn at a run."""

    run: JudgeRun
    until: float  # on the monotonic clock
    n_stored: int = 0
    n_failed: int = 0  # in a row

    def run_with(self, client: JudgeClient) -> None:
        while time.monotonic() < self.until and self._is_open():
            item = (
                JudgeRunItem.objects.select_related("trial", "probe")
                .filter(run=self.run, done_at=None)
                .order_by("position")
                .first()
            )
            if item is None:
                self._finish()
                return
            self._item(client, item)
            self.n_stored += 1

    def follow(self) -> None:
        """Read the judge's calibration anew, where it said something since that was done."""
        if self.n_stored:
            self._read_calibrations()

    def _read_calibrations(self) -> None:
        key = (self.run.criterion_id, self.run.criterion_digest)
        follow_criteria(self.run.system, [key], now=_now())
        self.n_stored = 0

    def _is_open(self) -> bool:
        return JudgeRun.objects.filter(pk=self.run.pk, state__in=_OPEN).exists()

    def _item(self, client: JudgeClient, item: JudgeRunItem) -> None:
        if item.trial is not None:
            self._trial(client, item, item.trial)
        elif item.probe is not None:
            self._probe(client, item, item.probe)

    def _trial(self, client: JudgeClient, item: JudgeRunItem, trial: Trial) -> None:
        gradable = gradable_now(self.run, trial)
        if (why := basis_refusal(self.run, gradable)) or gradable is None:
            store_unasked(self.run, item, why, now=_now())
            return
        evidence, basis = evidence_of_trial(self.run.system, trial, gradable)
        prompt = self._prompt(client, evidence)
        asked = client.ask(prompt)
        store_on_trial(self.run, item, trial, basis, prompt, asked, now=_now())
        self._count_failures(asked.failure)

    def _probe(self, client: JudgeClient, item: JudgeRunItem, probe: Probe) -> None:
        prompt = self._prompt(client, evidence_of_probe(self.run.system, probe))
        asked = client.ask(prompt)
        store_on_probe(self.run, item, prompt, asked, now=_now())
        self._count_failures(asked.failure)

    def _prompt(self, client: JudgeClient, evidence: JudgeEvidence) -> JudgePrompt:
        question = JudgeQuestion(
            self.run.criterion.name, self.run.question, self.run.rubric_version
        )
        return judge_prompt(question, evidence, most_characters=client.endpoint.max_characters)

    def _count_failures(self, failure: str) -> None:
        self.n_failed = self.n_failed + 1 if failure else 0
        if self.n_failed >= MOST_FAILURES:
            self.n_stored += 1
            raise _UnfitError(
                f"{MOST_FAILURES} requests in a row brought no reply. The last one: {failure}"
            )

    def _finish(self) -> None:
        # Before the run is done: a worker that was killed in between comes here again.
        self._read_calibrations()
        now = _now()
        JudgeRun.objects.filter(pk=self.run.pk, state__in=_OPEN).update(
            state=WorkState.DONE.value, touched_at=now, finished_at=now
        )
        log.info("judge run done", extra=_ids(self.run))


def _now() -> datetime:
    return timezone.now()
