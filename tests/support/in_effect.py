"""Contracts in effect without their way there, for tests of what they decide."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from traces.core.contracts.reading import read_contract
from traces.models import ContractProposal, ContractVersion, System, Task, User

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)


def contract_in_effect(system: System, text: str, *, by: User) -> ContractVersion:
    """The contract of a text as a version that pages decide its task by from now on.

    Stored trials are not graded: the caller decides them.
    """
    reading = read_contract(text)
    assert reading.contract is not None, reading.findings
    task = Task.objects.get(system=system, task_id=reading.contract.task_id)
    number = ContractProposal.objects.filter(system=system).count() + 1
    proposal = ContractProposal.objects.create(
        system=system, number=number, reason="A test.", created_at=NOW, created_by=by
    )
    version = ContractVersion.objects.create(
        proposal=proposal,
        task=task,
        number=ContractVersion.objects.filter(task=task).count() + 1,
        text=text,
        digest=uuid.UUID(bytes=reading.contract.digest),
        based_on_id=task.contract_id,
    )
    Task.objects.filter(pk=task.pk).update(contract=version)
    return version
