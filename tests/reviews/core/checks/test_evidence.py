"""Evidence that is missing, and trials that contradict their task."""

from __future__ import annotations

from reviews.core.checks import checks_of
from tests.reviews.core.checks.cases import Talk, contract, words

ALL = """
facts: {order: A, amount: 84.00}
trial_facts: [eligible, kind]
evidence: [initial_state, final_state, tool_results, facts, cost, tokens, times]
required:
  - {id: a, message: agent}
"""
RECORD = {
    "facts": {"eligible": True, "kind": "x", "order": "A", "amount": 84},
    "initial_state": {},
    "final_state": {},
    "usage": {"cost_usd": 0, "input_tokens": 1, "output_tokens": 1},
    "started_at": "2024-01-01T00:00:00Z",
    "ended_at": "2024-01-01T00:00:01Z",
}


def test_everything_declared_is_there() -> None:
    checks = checks_of(contract(ALL), Talk().user("x").call("a", {}, "ok").evidence(**RECORD))
    assert (checks.missing_evidence, checks.fixture_faults) == ((), ())


def test_everything_declared_is_missing() -> None:
    talk = Talk().user("x").ask(("a", {}), ("b", {})).ask(("a", {}))
    checks = checks_of(contract(ALL), talk.evidence())
    assert checks.missing_evidence == (
        "initial state",
        "final state",
        "tool results: of 3 calls, steps 2 and 3",
        "cost",
        "tokens",
        "times",
        "facts: eligible and kind",
    )


def test_tool_results_are_missing_without_a_transcript() -> None:
    checks = checks_of(contract(ALL), Talk().evidence(**RECORD))
    assert checks.missing_evidence == ("tool results: there is no transcript",)


def test_one_call_without_its_result_is_named() -> None:
    checks = checks_of(contract(ALL), Talk().ask(("a", {})).evidence(**RECORD))
    assert checks.missing_evidence == ("tool results: of 1 call, step 1",)


def test_facts_that_a_trial_must_bring_are_missing_though_not_declared() -> None:
    text = """
trial_facts: [eligible]
outcome:
  - {when: facts.eligible, unchanged: true}
"""
    evidence = Talk().user("x").evidence(facts={"x": 1}, initial_state={}, final_state={})
    checks = checks_of(contract(text), evidence)
    assert checks.missing_evidence == ("facts: eligible",)
    assert words(contract(text), evidence) == {"outcome": "unknown"}


def test_declared_facts_are_missing_where_none_are_recorded() -> None:
    text = "evidence: [facts]\nrequired:\n  - {id: a, message: agent}\n"
    assert checks_of(contract(text), Talk().evidence()).missing_evidence == ("facts",)


def test_a_recorded_fact_that_contradicts_a_fixed_one_is_a_fault_of_the_fixture() -> None:
    record = {**RECORD, "facts": {"order": "B", "amount": 84.5, "eligible": True, "kind": 1}}
    checks = checks_of(contract(ALL), Talk().user("x").evidence(**record))
    assert checks.fixture_faults == (
        'The fact order is "A" in the contract, and "B" in this trial.',
        "The fact amount is 84 in the contract, and 84.5 in this trial.",
    )


def test_fixed_facts_stand_in_conditions_whatever_a_trial_says() -> None:
    text = """
facts: {order: A}
prohibited:
  - {id: a, harm: x, message: agent, where: 'facts.order == "A" && facts.kind == "x"'}
"""
    evidence = Talk().agent("hi").evidence(facts={"order": "B", "kind": "x"})
    assert words(contract(text), evidence) == {"a": "fail"}
