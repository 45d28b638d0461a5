"""Contracts brought into effect in few words: proposed, approved, regraded."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from django.db.models import Max

from evalsite.regrading import work_out_regrade
from reviews.models import Regrade
from reviews.services.regrades import start_takeover
from tests.support.cast import Cast
from traces.core.contracts.reading import read_contracts
from traces.models import (
    ContractDecision,
    ContractOutcome,
    ContractProposal,
    ContractVersion,
    Task,
)
from traces.services.work import tasks_named

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def proposed(cast: Cast, text: str, *, now: datetime = NOW) -> ContractProposal:
    """Contract versions of the documents of a text, proposed by the engineer."""
    last = ContractProposal.objects.filter(system=cast.system).aggregate(last=Max("number"))
    proposal = ContractProposal.objects.create(
        system=cast.system,
        number=(last["last"] or 0) + 1,
        reason="as agreed",
        created_at=now,
        created_by=cast.engineer,
    )
    for reading in read_contracts(text):
        assert reading.contract is not None, reading.findings
        (task,) = tasks_named(cast.system, [reading.contract.task_id]).values()
        ContractVersion.objects.create(
            proposal=proposal,
            task=task,
            number=task.contract_versions.count() + 1,
            text=reading.text,
            digest=uuid.UUID(bytes=reading.contract.digest),
            based_on=task.contract,
        )
    return proposal


def approved(cast: Cast, proposal: ContractProposal | str, *, now: datetime = NOW) -> Regrade:
    """A proposal that the reviewer approved; its regrade waits."""
    if isinstance(proposal, str):
        proposal = proposed(cast, proposal, now=now)
    ContractDecision.objects.create(
        proposal=proposal,
        outcome=ContractOutcome.APPROVED.value,
        reason="right",
        by=cast.reviewer,
        decided_at=now,
    )
    return start_takeover(proposal, by=cast.reviewer, now=now)


def in_effect(cast: Cast, text: str, *, now: datetime = NOW) -> Regrade:
    """Contracts that are in effect, with the regrade that brought them there."""
    regrade = approved(cast, text, now=now)
    assert work_out_regrade(regrade.pk)
    regrade.refresh_from_db()
    return regrade


def contract_number(task_id: str) -> int | None:
    """The number of the version by which a task is decided."""
    return Task.objects.values_list("contract__number", flat=True).get(task_id=task_id)
