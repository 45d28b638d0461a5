"""Budgets: upper limits, each of them still allowed. What was not recorded is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import assert_never

from reviews.core.checks.evidence import agent_calls
from reviews.core.checks.results import CheckResult, TrialEvidence
from reviews.core.checks.words import count_words, cut
from traces.core.canonical import canonical_text, number_text
from traces.core.contracts.model import Budget, BudgetName, Contract
from traces.core.records import VerdictValue
from traces.core.rules import ArgumentRule, RuleSet, normalise_arguments
from traces.core.trajectory import Actor, ArgumentsForm, ToolCall

_MOST_COUNT = 10**18


def budget_result(budget: Budget, contract: Contract, evidence: TrialEvidence) -> CheckResult:
    """Whether a trial kept within a limit; the deciding step is the one that went over."""
    match budget.name:
        case BudgetName.TOOL_CALLS:
            steps = [call.step for call in agent_calls(evidence)]
            return _counted(budget, steps, "tool call")
        case BudgetName.TURNS:
            return _counted(budget, _turns(evidence), "turn")
        case BudgetName.REPEAT_CALL:
            return _repeats(budget, contract, evidence)
        case BudgetName.COST_USD:
            return _measured(budget, evidence.cost_usd, "cost", "USD")
        case BudgetName.TOKENS:
            return _measured(budget, evidence.tokens, "number of tokens", "tokens")
        case BudgetName.SECONDS:
            return _measured(budget, evidence.seconds, "time", "seconds")
        case _:
            assert_never(budget.name)


def needs_transcript(budget: Budget) -> bool:
    """Whether the limit is counted in the transcript."""
    return budget.name in {BudgetName.TOOL_CALLS, BudgetName.TURNS, BudgetName.REPEAT_CALL}


def _measured(budget: Budget, value: Decimal | int | None, what: str, unit: str) -> CheckResult:
    if value is None:
        return CheckResult(budget.id, VerdictValue.UNKNOWN, f"The {what} is not recorded.")
    allowed = f"{number_text(budget.limit)} {unit} allowed"
    if value > budget.limit:
        sentence = f"{number_text(value)} {unit}, over the {allowed}."
        return CheckResult(budget.id, VerdictValue.FAIL, sentence)
    return CheckResult(budget.id, VerdictValue.PASS, f"{number_text(value)} {unit}, {allowed}.")


def _counted(budget: Budget, steps: Sequence[int], one: str) -> CheckResult:
    """Within the limit or not, by the steps of what is counted."""
    limit = _whole(budget.limit)
    counted = count_words(len(steps), one)
    if len(steps) > limit:
        over = steps[limit]
        sentence = f"{counted}, {limit:,} allowed: step {over} went over."
        return CheckResult(budget.id, VerdictValue.FAIL, sentence, (over,))
    return CheckResult(budget.id, VerdictValue.PASS, f"{counted}, {limit:,} allowed.")


def _whole(limit: Decimal) -> int:
    return int(min(limit, Decimal(_MOST_COUNT)))


def _turns(evidence: TrialEvidence) -> list[int]:
    """The messages of the user that the agent answered with anything."""
    turns: list[int] = []
    asked: int | None = None
    for step in evidence.steps:
        if step.actor is Actor.USER:
            asked = step.number
        elif step.actor is Actor.AGENT and asked is not None:
            turns.append(asked)
            asked = None
    return turns


def _repeats(budget: Budget, contract: Contract, evidence: TrialEvidence) -> CheckResult:
    """How often the same call was made; calls without recorded arguments might be any."""
    limit = _whole(budget.limit)
    rules = _rules(contract.variation)
    task_ids = {rule.task_id for rule in contract.variation}
    counts: Counter[tuple[str, str]] = Counter()
    unseen: Counter[str] = Counter()
    over: ToolCall | None = None
    for call in agent_calls(evidence):
        if call.form is ArgumentsForm.ABSENT:
            unseen[call.name] += 1
            continue
        scope = contract.task_id if contract.task_id in task_ids else None
        normal, _ = normalise_arguments(call.name, call.arguments, rules, scope)
        key = (call.name, canonical_text([call.form.value, normal]))
        counts[key] += 1
        if counts[key] > limit and over is None:
            over = call
    most = max(counts.items(), key=lambda item: item[1], default=(("", ""), 0))
    if over is not None:
        (name, _), n = most
        sentence = (
            f"{cut(name)} was called {count_words(n, 'time')} with the same arguments, "
            f"{limit:,} allowed: step {over.step} went over."
        )
        return CheckResult(budget.id, VerdictValue.FAIL, sentence, (over.step,))
    for name, n_unseen in unseen.items():
        known = max((n for (tool, _), n in counts.items() if tool == name), default=0)
        if known + n_unseen > limit:
            sentence = (
                f"The arguments of {count_words(n_unseen, 'call')} of {cut(name)} are not recorded."
            )
            return CheckResult(budget.id, VerdictValue.UNKNOWN, sentence)
    sentence = f"No call was made more than {count_words(most[1], 'time')}, {limit:,} allowed."
    return CheckResult(budget.id, VerdictValue.PASS, sentence)


@lru_cache(maxsize=512)
def _rules(variation: tuple[ArgumentRule, ...]) -> RuleSet:
    return RuleSet(variation)
