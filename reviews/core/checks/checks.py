"""All checks of a contract on one trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from reviews.core.checks.budgets import budget_result, needs_transcript
from reviews.core.checks.calls import prohibited_result, required_result
from reviews.core.checks.events import Events
from reviews.core.checks.evidence import effective_facts, fixture_faults, missing_evidence
from reviews.core.checks.outcomes import outcome_result
from reviews.core.checks.results import CheckResult, ContractChecks, TrialEvidence
from traces.core.contracts.model import OUTCOME, Contract
from traces.core.records import VerdictValue

NO_TRANSCRIPT = "No transcript is recorded."


def checks_of(contract: Contract, evidence: TrialEvidence) -> ContractChecks:
    """What code says of a trial: outcome, required, prohibited, budget, in this order.

    A check that cannot be worked out ends in an error of its own; the others go on. Of a trial
    whose harness broke all are worked out too: what they count for is for the disposition.
    """
    facts = effective_facts(contract, evidence)
    events = Events(evidence.messages, evidence.steps, facts)
    has_transcript = bool(evidence.messages)
    results: list[CheckResult] = []
    if contract.outcome is not None:
        outcome = partial(outcome_result, contract.outcome, evidence, facts)
        results.append(_guarded(OUTCOME, outcome))
    for required in contract.required:
        check = partial(required_result, required, events)
        results.append(_guarded(required.id, check, can_tell=has_transcript))
    for prohibited in contract.prohibited:
        check = partial(prohibited_result, prohibited, events)
        results.append(_guarded(prohibited.id, check, can_tell=has_transcript))
    for budget in contract.budget:
        check = partial(budget_result, budget, contract, evidence)
        can_tell = has_transcript or not needs_transcript(budget)
        results.append(_guarded(budget.id, check, can_tell=can_tell))
    return ContractChecks(
        tuple(results), missing_evidence(contract, evidence), fixture_faults(contract, evidence)
    )


def _guarded(
    criterion: str, check: Callable[[], CheckResult], *, can_tell: bool = True
) -> CheckResult:
    if not can_tell:
        return CheckResult(criterion, VerdictValue.UNKNOWN, NO_TRANSCRIPT)
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - one check that fails must not take the others along
        kind = type(error).__name__
        sentence = f"The check could not be worked out on this trial ({kind})."
        return CheckResult(criterion, VerdictValue.ERROR, sentence)


def first_wrong(results: Iterable[CheckResult], contract: Contract) -> int | None:
    """The step at which a trial first went wrong: the earliest deciding one of a failed,
    mandatory check. None where no such check failed, or none names a step.
    """
    mandatory = {OUTCOME}
    mandatory |= {entry.id for entry in contract.required if entry.mandatory}
    mandatory |= {entry.id for entry in contract.prohibited if entry.mandatory}
    mandatory |= {entry.id for entry in contract.budget if entry.mandatory}
    return min(
        (
            result.steps[0]
            for result in results
            if result.criterion in mandatory and result.value is VerdictValue.FAIL and result.steps
        ),
        default=None,
    )
