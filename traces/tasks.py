"""Hints to the workers. A message only says that a row waits; the row is the truth."""

from __future__ import annotations

from django.db import transaction

from evalsite.common.hints import COMPUTE_GATE, send_hint_of

PROCESS_UPLOAD = "evalsite.process_upload"
RECOMPUTE_RULES = "evalsite.recompute_rules"
PREVIEW_RULES = "evalsite.preview_rules"
SUGGEST_RULES = "evalsite.suggest_rules"
REGRADE = "evalsite.regrade"
PREVIEW_CONTRACTS = "evalsite.preview_contracts"
FINISH_HELD = "evalsite.finish_held"
JUDGE_RUN = "evalsite.judge_run"


def hint_upload(upload_id: int) -> None:
    """Tell a worker, once the transaction has committed, that an upload waits to be read.

    Never fails: with the broker away the sweeper finds the row.
    """
    transaction.on_commit(lambda: send_hint(upload_id), robust=True)


def send_hint(upload_id: int) -> bool:
    """Send the hint now. False, with a line in the log, when the broker does not take it."""
    return send_hint_of(PROCESS_UPLOAD, upload_id)


def hint_recompute(rules_id: int) -> None:
    """Tell a worker that path keys are to be worked out for an approved version; never fails."""
    transaction.on_commit(lambda: send_hint_of(RECOMPUTE_RULES, rules_id), robust=True)


def hint_preview(preview_id: int) -> None:
    """Tell a worker that somebody waits to see what a change would do; never fails."""
    transaction.on_commit(lambda: send_hint_of(PREVIEW_RULES, preview_id), robust=True)


def hint_suggestions(rules_id: int) -> None:
    """Tell a worker that suggestions on top of a version are asked for; never fails."""
    transaction.on_commit(lambda: send_hint_of(SUGGEST_RULES, rules_id), robust=True)


def hint_regrade(regrade_id: int) -> None:
    """Tell a worker that stored trials are to be graded again; never fails."""
    transaction.on_commit(lambda: send_hint_of(REGRADE, regrade_id), robust=True)


def hint_contract_preview(preview_id: int) -> None:
    """Tell a worker that somebody waits to see what drafted contracts would do; never fails."""
    transaction.on_commit(lambda: send_hint_of(PREVIEW_CONTRACTS, preview_id), robust=True)


def hint_judge_run(run_id: int) -> None:
    """Tell a worker that a judge is to be asked; never fails."""
    transaction.on_commit(lambda: send_hint_of(JUDGE_RUN, run_id), robust=True)


def hint_held(draft_id: int, *, seconds: float) -> None:
    """Tell a worker to make a submitted decision final once its time has come; never fails."""
    transaction.on_commit(lambda: send_hint_of(FINISH_HELD, draft_id, after=seconds), robust=True)


__all__ = ["COMPUTE_GATE", "send_hint_of"]
