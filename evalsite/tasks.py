"""Jobs of the site itself. Each is safe to run twice, at once or days later."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from datetime import timedelta

from celery import shared_task
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from evalsite.background import stale_work
from evalsite.contract_previews import work_out_contract_preview
from evalsite.gates import (
    EVERY_SECONDS,
    Refreshed,
    is_outdated,
    refresh_gate,
    seconds_to_wait,
    stale_gates,
)
from evalsite.health import note_worker_alive
from evalsite.held_decisions import finish_draft
from evalsite.judge_runner.work import work_out_judge_run
from evalsite.pipeline import process_upload, stale_uploads
from evalsite.regrading import next_open_regrade, work_out_regrade
from evalsite.rules_reach import work_out_preview, work_out_suggestions
from evalsite.rules_work import next_open_rules, recompute
from reviews.models import JudgeRun, Regrade
from reviews.selectors.review_drafts import due_drafts
from traces.models import ContractPreview, RulesJob, RulesPreview, RulesSuggestions
from traces.services.acceptance import remove_abandoned_files
from traces.tasks import (
    COMPUTE_GATE,
    FINISH_HELD,
    JUDGE_RUN,
    PREVIEW_CONTRACTS,
    PREVIEW_RULES,
    PROCESS_UPLOAD,
    RECOMPUTE_RULES,
    REGRADE,
    SUGGEST_RULES,
    send_hint,
    send_hint_of,
)

log = logging.getLogger("evalsite.jobs")

STALE_SECONDS = 30.0
STALE_GATE_SECONDS = 15.0
ABANDONED_AFTER = timedelta(days=1)


@shared_task(name="evalsite.tasks.heartbeat", ignore_result=True, expires=30)
def heartbeat() -> None:
    """Note that a worker takes messages, for /health."""
    note_worker_alive()


@shared_task(name=PROCESS_UPLOAD, ignore_result=True)
def process_upload_by_hint(upload_id: int) -> None:
    """Read an upload that a hint named. What fails is left to the sweeper, which tries again."""
    try:
        process_upload(upload_id)
    except (OperationalError, InterfaceError) as error:
        log.warning(
            "upload waits for the database",
            extra={"upload_id": upload_id, "cause": type(error).__name__},
        )


@shared_task(name=RECOMPUTE_RULES, ignore_result=True)
def recompute_rules_by_hint(rules_id: int) -> None:
    """Work out an approved rules version, and send the next one of its system on its way."""
    with _left_to_the_sweeper(RECOMPUTE_RULES, rules_id):
        if recompute(rules_id) and (later := next_open_rules(rules_id)) is not None:
            send_hint_of(RECOMPUTE_RULES, later)


@shared_task(name=PREVIEW_RULES, ignore_result=True)
def preview_rules_by_hint(preview_id: int) -> None:
    """Find out what a drafted change of rules would do."""
    with _left_to_the_sweeper(PREVIEW_RULES, preview_id):
        work_out_preview(preview_id)


@shared_task(name=SUGGEST_RULES, ignore_result=True)
def suggest_rules_by_hint(rules_id: int) -> None:
    """Look for rules that the stored paths suggest."""
    with _left_to_the_sweeper(SUGGEST_RULES, rules_id):
        work_out_suggestions(rules_id)


@shared_task(name=REGRADE, ignore_result=True)
def regrade_by_hint(regrade_id: int) -> None:
    """Work out a regrade, and send the next one of its system on its way."""
    with _left_to_the_sweeper(REGRADE, regrade_id):
        if work_out_regrade(regrade_id) and (later := next_open_regrade(regrade_id)) is not None:
            send_hint_of(REGRADE, later)


@shared_task(name=PREVIEW_CONTRACTS, ignore_result=True)
def preview_contracts_by_hint(preview_id: int) -> None:
    """Find out what drafted contracts would do."""
    with _left_to_the_sweeper(PREVIEW_CONTRACTS, preview_id):
        work_out_contract_preview(preview_id)


@shared_task(name=JUDGE_RUN, ignore_result=True)
def judge_run_by_hint(run_id: int) -> None:
    """Ask a judge for a while, and send what is left of the system's runs on its way."""
    with _left_to_the_sweeper(JUDGE_RUN, run_id):
        if (later := work_out_judge_run(run_id)) is not None:
            send_hint_of(JUDGE_RUN, later)


@shared_task(name=FINISH_HELD, ignore_result=True)
def finish_held_by_hint(draft_id: int) -> None:
    """Make a submitted decision final, if nobody took it back and nobody else did so."""
    with _left_to_the_sweeper(FINISH_HELD, draft_id):
        finish_draft(draft_id, now=timezone.now())


@shared_task(name=COMPUTE_GATE, ignore_result=True)
def compute_gate_by_hint(release_pk: int) -> None:
    """Bring a release's gate up to date.

    One hint is on its way while a gate is out of date. A gate that was computed a moment ago waits
    while evidence arrives, and one that was touched while it was computed is computed again.
    """
    with _left_to_the_sweeper(COMPUTE_GATE, release_pk):
        now = timezone.now()
        if wait := seconds_to_wait(release_pk, now=now):
            send_hint_of(COMPUTE_GATE, release_pk, after=wait)
        elif refresh_gate(release_pk, now=now) is Refreshed.DONE and is_outdated(release_pk):
            send_hint_of(COMPUTE_GATE, release_pk, after=EVERY_SECONDS)


@contextlib.contextmanager
def _left_to_the_sweeper(task: str, row: int) -> Iterator[None]:
    """A database that goes away is no error of the work: its row stays open."""
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        extra = {"task": task, "row": row, "cause": type(error).__name__}
        log.warning("work waits for the database", extra=extra)


@shared_task(name="evalsite.sweep", ignore_result=True, expires=60)
def sweep() -> None:
    """Send hints again for rows that wait too long, and remove what broken-off uploads left."""
    now = timezone.now()
    stale = stale_uploads(now=now, older_than_seconds=STALE_SECONDS)
    n_stale, n_sent = len(stale), sum(map(send_hint, stale))
    for task, rows in (
        (RECOMPUTE_RULES, RulesJob.objects.all()),
        (PREVIEW_RULES, RulesPreview.objects.all()),
        (SUGGEST_RULES, RulesSuggestions.objects.all()),
        (REGRADE, Regrade.objects.all()),
        (PREVIEW_CONTRACTS, ContractPreview.objects.all()),
        (JUDGE_RUN, JudgeRun.objects.all()),
    ):
        waiting = stale_work(rows, now=now, older_than_seconds=STALE_SECONDS)
        n_stale += len(waiting)
        n_sent += sum(send_hint_of(task, pk) for pk in waiting)
    held = due_drafts(now=now)
    n_stale += len(held)
    n_sent += sum(send_hint_of(FINISH_HELD, pk) for pk in held)
    gates = stale_gates(now=now, older_than_seconds=STALE_GATE_SECONDS)
    n_stale += len(gates)
    n_sent += sum(send_hint_of(COMPUTE_GATE, pk) for pk in gates)
    n_removed = remove_abandoned_files(older_than=now - ABANDONED_AFTER)
    if n_stale or n_removed:
        log.info("swept", extra={"stale": n_stale, "hints": n_sent, "files": n_removed})
