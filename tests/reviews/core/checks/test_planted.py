"""Grader tests: planted trials and what the checks must say of them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from reviews.core.checks import grader_test_results, planted_evidence
from reviews.core.checks.planted import PlantedCheck, PlantedResult
from tests.reviews.core.checks.cases import Talk, contract
from traces.core.contracts.model import PlantedTrial
from traces.core.records import TrialStatus
from traces.core.rules import RejectionSettings
from traces.core.trajectory import CallOutcome

TEXT = """
required:
  - {id: known, call: check, where: 'result.ok'}
prohibited:
  - {id: paid, harm: money, call: pay}
"""


def test_each_check_of_a_planted_trial_is_compared_with_what_is_expected() -> None:
    good = Talk().user("x").call("check", {}, {"ok": True})
    made = replace(
        contract(TEXT),
        grader_tests=(
            PlantedTrial(
                "good", {"messages": good.messages}, (("known", "pass"), ("paid", "pass"))
            ),
            PlantedTrial(
                "bad",
                {"messages": Talk().user("x").call("pay", {}, "ok").messages},
                (("known", "pass"), ("paid", "fail"), ("gone", "pass")),
            ),
        ),
    )
    first, second = grader_test_results(made)
    assert (first.name, first.is_met) == ("good", True)
    assert not second.is_met
    assert second == PlantedResult(
        "bad",
        (
            PlantedCheck(
                "known", "pass", "fail", "Required, and it did not happen: check where result.ok."
            ),
            PlantedCheck("paid", "fail", "fail", "Prohibited, and it happened: pay, at step 2."),
            PlantedCheck("gone", "pass", "nothing", "The contract has no such check."),
        ),
    )


def test_a_contract_without_grader_tests_has_no_results() -> None:
    assert grader_test_results(contract(TEXT)) == ()


def test_a_planted_record_that_cannot_be_read_is_not_met() -> None:
    broken = PlantedTrial("broken", {"messages": 5}, (("known", "error"), ("paid", "pass")))
    (result,) = grader_test_results(replace(contract(TEXT), grader_tests=(broken,)))
    assert not result.is_met
    assert result.checks[0] == PlantedCheck(
        "known", "error", "nothing", "messages must be a list, this is a number."
    )


def test_planted_evidence_holds_all_that_the_record_says() -> None:
    talk = Talk().user("x").call("check", {}, "NO: closed")
    evidence = planted_evidence(
        {
            "messages": talk.messages,
            "status": "error",
            "facts": {"a": 1},
            "initial_state": {"b": 1},
            "final_state": {"b": 2},
            "expected_state": {"b": 3},
            "usage": {"cost_usd": 0.5, "input_tokens": 3, "output_tokens": 4},
            "started_at": "2024-01-01T00:00:00Z",
            "ended_at": "2024-01-01T00:00:02Z",
        },
        RejectionSettings(prefixes=("NO",)),
    )
    assert evidence.status is TrialStatus.ERROR
    assert evidence.messages == tuple(talk.messages)
    assert evidence.steps[1].calls[0].outcome is CallOutcome.REJECTED
    assert (evidence.facts, evidence.initial_state, evidence.final_state) == (
        {"a": 1},
        {"b": 1},
        {"b": 2},
    )
    assert (evidence.expected_state, evidence.cost_usd) == ({"b": 3}, Decimal("0.5"))
    assert (evidence.tokens, evidence.seconds) == (7, Decimal(2))


def test_planted_evidence_keeps_what_is_missing_missing() -> None:
    evidence = planted_evidence({"messages": [], "facts": [1], "usage": {"output_tokens": 4}})
    assert (evidence.facts, evidence.tokens, evidence.cost_usd, evidence.seconds) == (None,) * 4


def test_a_record_of_another_kind_is_no_planted_trial() -> None:
    with pytest.raises(ValueError, match="record"):
        planted_evidence({"record": "other", "messages": []})
    with pytest.raises(ValueError, match="no trial"):
        planted_evidence({"record": "verdicts", "verdicts": [], "messages": []})
