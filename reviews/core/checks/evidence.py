"""The facts that conditions see, evidence that is missing, and trials that contradict their task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from reviews.core.checks.results import TrialEvidence
from reviews.core.checks.words import count_words, cut, joined, steps_words, value_words
from traces.core.canonical import equal
from traces.core.contracts.model import Contract, EvidencePart
from traces.core.trajectory import Actor, CallOutcome, ToolCall
from traces.core.values import JsonObject


def effective_facts(contract: Contract, evidence: TrialEvidence) -> JsonObject:
    """What `facts` is in a condition: what the trial recorded, and the task's fixed facts."""
    return {**(evidence.facts or {}), **contract.facts}


def agent_calls(evidence: TrialEvidence) -> Iterator[ToolCall]:
    """The agent's own tool calls, in order."""
    for step in evidence.steps:
        if step.actor is Actor.AGENT:
            yield from (call for call in step.calls if not call.by_user)


def missing_evidence(contract: Contract, evidence: TrialEvidence) -> tuple[str, ...]:
    """What the contract declares and the trial did not record, in words."""
    missing = [_missing(part, evidence) for part in dict.fromkeys(contract.evidence)]
    facts = evidence.facts or {}
    absent = [cut(name) for name in contract.trial_facts if name not in facts]
    if absent and EvidencePart.FACTS in contract.evidence and evidence.facts is None:
        missing = [words for words in missing if words != "facts"]
    if absent:
        missing.append(f"facts: {joined(absent)}")
    return tuple(words for words in missing if words)


def _missing(part: EvidencePart, evidence: TrialEvidence) -> str:
    match part:
        case EvidencePart.INITIAL_STATE:
            return "initial state" if evidence.initial_state is None else ""
        case EvidencePart.FINAL_STATE:
            return "final state" if evidence.final_state is None else ""
        case EvidencePart.TOOL_RESULTS:
            return _missing_results(evidence)
        case EvidencePart.FACTS:
            return "facts" if evidence.facts is None else ""
        case EvidencePart.COST:
            return "cost" if evidence.cost_usd is None else ""
        case EvidencePart.TOKENS:
            return "tokens" if evidence.tokens is None else ""
        case EvidencePart.TIMES:
            return "times" if evidence.seconds is None else ""
        case _:
            assert_never(part)


def _missing_results(evidence: TrialEvidence) -> str:
    if not evidence.messages:
        return "tool results: there is no transcript"
    open_calls = [call for call in agent_calls(evidence) if call.outcome is CallOutcome.UNKNOWN]
    if not open_calls:
        return ""
    steps = tuple(dict.fromkeys(call.step for call in open_calls))
    return f"tool results: of {count_words(len(open_calls), 'call')}, {steps_words(steps)}"


def fixture_faults(contract: Contract, evidence: TrialEvidence) -> tuple[str, ...]:
    """Where the trial contradicts the task's fixed facts."""
    facts = evidence.facts or {}
    return tuple(
        f"The fact {cut(name)} is {value_words(wanted)} in the contract, "
        f"and {value_words(facts[name])} in this trial."
        for name, wanted in contract.facts.items()
        if name in facts and not equal(facts[name], wanted)
    )
