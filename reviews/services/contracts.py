"""Contracts on their way: draft with its preview, proposal, decision.

Each act locks the system's row and checks again inside the transaction. Callers send the hints:
for the preview of a draft, and for the regrade of an approved proposal.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from evalsite.common import blobs
from evalsite.common.audit import MOST_NAMED, AuditedObject, record
from evalsite.common.gate_marks import lock_evidence, releases_of, touch_gates
from evalsite.common.row_digests import RowRef
from reviews.core.contract_drafts import (
    ContractSource,
    DraftedContract,
    DraftFinding,
    contract_of_text,
    grader_tests_of,
    unmet_tests_sentence,
)
from reviews.permissions.contracts import (
    approval_refusal,
    decision_refusal,
    draft_refusal,
    proposal_refusal,
    withdrawal_refusal,
)
from reviews.selectors.contract_checks import checked_contracts, unchanged_tasks
from reviews.services.regrades import start_takeover
from traces.core.canonical import digest_of
from traces.core.contracts.model import Contract
from traces.core.task_order import sort_text
from traces.core.text_marks import clean_text
from traces.models import (
    ContractDecision,
    ContractOutcome,
    ContractPreview,
    ContractProposal,
    ContractVersion,
    System,
    Task,
    TaskVersion,
    User,
)

log = logging.getLogger("evalsite.contracts")

LONGEST_REASON = 4_000  # characters
NOTHING_NEW = (
    "Each of these contracts says the same as the version in effect: there is nothing to propose."
)


class ContractsError(Exception):
    """A refusal, with its sentence for people."""


class ContractFindingsError(ContractsError):
    """Contract texts that are not right; `findings` name each place and reason."""

    def __init__(self, findings: tuple[DraftFinding, ...]) -> None:
        super().__init__(findings[0].sentence)
        self.findings = findings


@transaction.atomic
def draft_contracts(
    system: System, texts: str | Iterable[str | ContractSource], *, by: User, now: datetime
) -> ContractPreview:
    """Drafts of contracts, read and checked as a whole; a worker finds out what they would do.

    Each text holds one or many documents. Contracts that say the same as the version in effect
    are left out. Raises `ContractFindingsError` when anything is wrong with a text, and
    `ContractsError` for who may not, or when nothing is left.
    """
    _lock(system)
    _refuse(draft_refusal(system, by), system, by)
    checked = checked_contracts(system, _sources(texts))
    if checked.findings:
        raise ContractFindingsError(checked.findings)
    same = unchanged_tasks(system, checked.contracts)
    changed = [drafted for drafted in checked.contracts if drafted.contract.task_id not in same]
    if not changed:
        raise ContractsError(NOTHING_NEW)
    preview = ContractPreview.objects.create(
        system=system,
        texts={drafted.contract.task_id: drafted.text for drafted in changed},
        by=by,
        asked_at=now,
        touched_at=now,
    )
    _note("contracts drafted", system, by, preview=str(preview.uuid), contracts=len(changed))
    return preview


def _sources(texts: str | Iterable[str | ContractSource]) -> list[ContractSource]:
    given = [texts] if isinstance(texts, str) else texts
    return [
        each if isinstance(each, ContractSource) else ContractSource("", each) for each in given
    ]


@transaction.atomic
def propose_contracts(
    preview: ContractPreview, *, reason: str, by: User, now: datetime
) -> ContractProposal:
    """Make versions of previewed contracts; they wait, together, for somebody else's decision.

    A task that does not exist yet is made, with the input and facts of its contract as its
    version. Raises `ContractsError` for who may not, without a finished preview, where a contract
    came into effect meanwhile, where a text does not hold any longer, and while a grader test
    fails.
    """
    system = _lock(preview.system)
    preview = (
        ContractPreview.objects.select_for_update(of=("self",))
        .select_related("system", "by")
        .get(pk=preview.pk)
    )
    _refuse(proposal_refusal(preview, by), system, by)
    why = _reason(reason)
    checked = checked_contracts(system, _sources(preview.texts.values()))
    if checked.findings:
        raise ContractFindingsError(checked.findings)
    contracts = [drafted.contract for drafted in checked.contracts]
    _refuse(_unmet(contracts), system, by)
    proposal = ContractProposal.objects.create(
        system=system,
        number=_next(ContractProposal.objects.filter(system=system).aggregate(n=Max("number"))),
        reason=why,
        preview=preview,
        created_at=now,
        created_by=by,
    )
    tasks = _tasks_of(system, contracts)
    numbers = dict(
        ContractVersion.objects.filter(task__in=tasks.values())
        .values_list("task")
        .annotate(n=Max("number"))
    )
    ContractVersion.objects.bulk_create(
        [
            _version(proposal, tasks[drafted.contract.task_id], drafted, numbers)
            for drafted in checked.contracts
        ]
    )
    ContractPreview.objects.filter(pk=preview.pk).update(touched_at=now)
    versions = ContractVersion.objects.filter(proposal=proposal).order_by("pk")
    _record(
        "contract.proposed",
        proposal,
        by,
        now,
        after={
            "n_contracts": len(contracts),
            "tasks": [each.task_id for each in contracts[:MOST_NAMED]],
        },
        reason=why,
        rows=[
            ("traces_contractproposal", proposal.pk),
            *(("traces_contractversion", pk) for pk in versions.values_list("pk", flat=True)),
        ],
    )
    _note(
        "contracts proposed",
        system,
        by,
        proposal=proposal.number,
        contracts=len(contracts),
    )
    return proposal


def _version(
    proposal: ContractProposal, task: Task, drafted: DraftedContract, numbers: Mapping[int, int]
) -> ContractVersion:
    return ContractVersion(
        proposal=proposal,
        task=task,
        number=numbers.get(task.pk, 0) + 1,
        text=drafted.text,
        digest=uuid.UUID(bytes=drafted.contract.digest),
        based_on_id=task.contract_id,
    )


def _tasks_of(system: System, contracts: Iterable[Contract]) -> dict[str, Task]:
    """The tasks of contracts by their ids; those that do not exist are made."""
    wanted = {contract.task_id: contract for contract in contracts}
    found = {task.task_id: task for task in Task.objects.filter(system=system, task_id__in=wanted)}
    for task_id in sorted(wanted.keys() - found.keys()):
        found[task_id] = _new_task(system, wanted[task_id])
    return found


def _new_task(system: System, contract: Contract) -> Task:
    task, is_new = Task.objects.get_or_create(
        system=system,
        task_id=contract.task_id,
        defaults={
            "sort_key": sort_text(contract.task_id),
            "title": contract.title[:500],
            "family": contract.family[:200],
            "split": contract.split or "",
        },
    )
    definition = {"input": contract.input, "facts": contract.facts}
    if is_new and (contract.input is not None or contract.facts):
        TaskVersion.objects.create(
            task=task,
            number=1,
            digest=uuid.UUID(bytes=digest_of(definition)),
            definition=blobs.pack(definition),
        )
    return task


@transaction.atomic
def decide_contracts(
    proposal: ContractProposal, *, outcome: ContractOutcome, reason: str, by: User, now: datetime
) -> ContractDecision:
    """Approve or reject proposed contracts. An approval asks for the regrade that brings them in.

    Grader tests run once more: a check may have changed since they were proposed.
    """
    releases = releases_of(proposal.system_id)
    lock_evidence(proposal.system_id, releases)
    system = _lock(proposal.system)
    match outcome:
        case ContractOutcome.APPROVED:
            _refuse(approval_refusal(proposal, by), system, by)
            _refuse(unfit_sentence(_versions_of(proposal)), system, by)
        case ContractOutcome.REJECTED:
            _refuse(decision_refusal(proposal, by), system, by)
        case ContractOutcome.WITHDRAWN:
            raise ValueError("contracts are withdrawn by `withdraw_contracts`")
    decision = _decide(proposal, outcome, reason, by, now)
    if outcome is ContractOutcome.APPROVED:
        start_takeover(proposal, by=by, now=now)
        touch_gates(releases, now=now)
    _record_decision(decision, by, now)
    _note(f"contracts {outcome}", system, by, proposal=proposal.number)
    return decision


def unfit_sentence(versions: Iterable[ContractVersion]) -> str:
    """Why proposed versions cannot take effect, whoever decides: a grader test fails; else ""."""
    contracts = []
    for version in versions:
        contract = contract_of_text(version.text)
        if contract is None:
            return (
                f"The contract of task {version.task.task_id} cannot be read by this version of "
                "the product; mend it and propose it anew."
            )
        contracts.append(contract)
    return _unmet(contracts)


def _unmet(contracts: Iterable[Contract]) -> str:
    return unmet_tests_sentence(test for one in contracts for test in grader_tests_of(one))


def _versions_of(proposal: ContractProposal) -> Iterable[ContractVersion]:
    rows = ContractVersion.objects.select_related("task").filter(proposal=proposal)
    return rows.order_by("task__sort_key", "pk")


@transaction.atomic
def withdraw_contracts(
    proposal: ContractProposal, *, reason: str, by: User, now: datetime
) -> ContractDecision:
    """Take a proposal of one's own back."""
    system = _lock(proposal.system)
    _refuse(withdrawal_refusal(proposal, by), system, by)
    decision = _decide(proposal, ContractOutcome.WITHDRAWN, reason, by, now)
    _record_decision(decision, by, now)
    _note("contracts withdrawn", system, by, proposal=proposal.number)
    return decision


def _decide(
    proposal: ContractProposal, outcome: ContractOutcome, reason: str, by: User, now: datetime
) -> ContractDecision:
    return ContractDecision.objects.create(
        proposal=proposal, outcome=outcome.value, reason=_reason(reason), by=by, decided_at=now
    )


def _record_decision(decision: ContractDecision, by: User, now: datetime) -> None:
    _record(
        f"contract.{decision.outcome}",
        decision.proposal,
        by,
        now,
        before={"state": "proposed"},
        after={"state": decision.outcome},
        reason=decision.reason,
        rows=[("traces_contractdecision", decision.proposal_id)],
    )


def _record(
    act: str,
    proposal: ContractProposal,
    by: User,
    now: datetime,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    reason: str,
    rows: Iterable[RowRef],
) -> None:
    record(
        act,
        system_pk=proposal.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject(
            "contract_proposal", str(proposal.number), f"Proposal {proposal.number} of contracts"
        ),
        before=before,
        after=after,
        reason=reason,
        rows=rows,
    )


def _lock(system: System) -> System:
    """The system's row, held until the transaction ends; evidence may still name it."""
    return System.objects.select_for_update(no_key=True, of=("self",)).get(pk=system.pk)


def _next(found: Mapping[str, int | None]) -> int:
    return (found["n"] or 0) + 1


def _refuse(sentence: str, system: System, by: User) -> None:
    """Refuse an act that a person may not do; the log names the act's people, never a text."""
    if sentence:
        log.info("contracts act refused", extra={"system": system.slug, "user": by.pk})
        raise ContractsError(sentence)


def _reason(text: str) -> str:
    reason = clean_text(text).strip()
    if not reason:
        raise ContractsError("Say why, in a sentence.")
    if len(reason) > LONGEST_REASON:
        raise ContractsError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


def _note(act: str, system: System, by: User, **ids: object) -> None:
    log.info(act, extra={"system": system.slug, "user": by.pk, **ids})
