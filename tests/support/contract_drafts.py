"""Contracts on their way through the services: drafted, proposed, approved, in effect."""

from __future__ import annotations

from datetime import UTC, datetime

from reviews.core.regrades import PreviewResult, preview_document
from reviews.models import Regrade
from reviews.services.contracts import decide_contracts, draft_contracts, propose_contracts
from tests.support.cast import Cast
from traces.models import ContractOutcome, ContractPreview, ContractProposal, Task, WorkState

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def text_of(task: str = "t1", *, rest: str = "", ident: str = "looked") -> str:
    """A contract that asks for one call of a tool that the records of tests use."""
    return f"task: {task}\nrequired:\n  - {{id: {ident}, call: get_order}}\n{rest}"


def planted(word: str = "pass", *, name: str = "a right one", ident: str = "looked") -> str:
    """A grader test in which the order is looked at, and what is expected of that."""
    return (
        "grader_tests:\n"
        f"  - name: {name}\n"
        "    steps: [{user: Please}, {call: get_order, args: {order: A-1}, result: ok}]\n"
        f"    expect: {{{ident}: {word}}}\n"
    )


def drafted(cast: Cast, *texts: str, result: PreviewResult | None = None) -> ContractPreview:
    """A preview of the engineer's that is worked out, with nothing changed by it."""
    preview = draft_contracts(cast.system, list(texts) or [text_of()], by=cast.engineer, now=NOW)
    ContractPreview.objects.filter(pk=preview.pk).update(
        state=WorkState.DONE.value,
        result=preview_document(result or PreviewResult((), (), ())),
        started_at=NOW,
        finished_at=NOW,
    )
    preview.refresh_from_db()
    return preview


def proposed(cast: Cast, *texts: str) -> ContractProposal:
    """A proposal of the engineer's."""
    return propose_contracts(drafted(cast, *texts), reason="It is so.", by=cast.engineer, now=NOW)


def approved(cast: Cast, *texts: str) -> ContractProposal:
    """A proposal that the reviewer approved; its regrade waits."""
    proposal = proposed(cast, *texts)
    decide_contracts(
        proposal, outcome=ContractOutcome.APPROVED, reason="Agreed.", by=cast.reviewer, now=NOW
    )
    return proposal


def in_effect(cast: Cast, *texts: str) -> ContractProposal:
    """An approved proposal whose versions decide their tasks; no stored trial is graded by it."""
    proposal = approved(cast, *texts)
    for version in proposal.versions.all():
        Task.objects.filter(pk=version.task_id).update(contract=version)
    Regrade.objects.filter(proposal=proposal).update(state=WorkState.DONE.value)
    return proposal
