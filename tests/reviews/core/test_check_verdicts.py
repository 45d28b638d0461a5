"""Results of checks as verdicts: what is kept, and what is noted beside it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from reviews.core.check_verdicts import (
    CheckVerdict,
    Fixture,
    evidence_of,
    fixture_of,
    given_checks,
    grading_of,
    notes_of,
)
from reviews.core.checks import checks_of
from reviews.core.checks.results import CHECKS_VERSION, CheckResult, ContractChecks, StateFinding
from reviews.core.requirements import EVIDENCE, CheckNotes
from traces.core.additions import AddedResult, Addition, StoredEvidence, filled
from traces.core.canonical import digest_of
from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contract
from traces.core.records import CriterionClass, GraderKind, TrialStatus, VerdictValue
from traces.core.transcript import transcript_of
from traces.core.values import Json, JsonObject

PASS, FAIL, UNKNOWN, _ = VerdictValue

TEXT = """
task: t
facts: {order: A-1}
trial_facts: [customer, tier]
outcome: [{unchanged: true}]
required: [{id: looked, call: look}]
prohibited: [{id: foreign, harm: data, call: peek, mandatory: false}]
semantic: [{rubric: truthful}]
"""
STORED = StoredEvidence(
    TrialStatus.COMPLETED,
    ({"role": "user"},),
    (),
    facts={"order": "A-1", "customer": "C-1", "note": "any"},
    initial_state={"a": 1},
    final_state={"a": 2},
    expected_state={"a": 3},
    cost_usd=Decimal("0.1"),
    tokens=5,
    seconds=Decimal(2),
)


def contract() -> Contract:
    reading = read_contract(TEXT)
    assert reading.contract is not None, reading.findings
    return reading.contract


RESULTS = (
    CheckResult(
        "outcome", FAIL, "It differs.", differences=(StateFinding("/a", "1", "2"),), n_differences=1
    ),
    CheckResult("looked", PASS, "Step 2.", (2,), reached=(2,)),
    CheckResult("foreign", FAIL, "Step 4.", (4,), attempted=(4, 6), committed=(6,)),
)


def test_evidence_is_handed_on_as_it_is() -> None:
    found = evidence_of(STORED)
    for name in found.__slots__:
        assert getattr(found, name) == getattr(STORED, name), name


def test_results_become_verdicts_of_the_contract_s_checks() -> None:
    grading = grading_of(contract(), evidence_of(STORED), ContractChecks(RESULTS, (), ()))

    assert [(v.criterion, v.criterion_class, v.mandatory, v.value) for v in grading.verdicts] == [
        ("outcome", CriterionClass.OUTCOME, True, FAIL),
        ("looked", CriterionClass.CONSTRAINT, True, PASS),
        ("foreign", CriterionClass.CONSTRAINT, False, FAIL),
    ]
    assert grading.verdicts[0].extra == {
        "check": {
            "differences": [["/a", "1", "2"]],
            "n_differences": 1,
            "reached": [],
            "attempted": [],
            "committed": [],
        }
    }
    assert all(v.criterion_digest for v in grading.verdicts)
    assert grading.fixture == Fixture(digest_of({"customer": "C-1"}), digest_of({"a": 1}))


def test_a_check_without_result_gives_no_verdict() -> None:
    grading = grading_of(contract(), evidence_of(STORED), ContractChecks(RESULTS[:1], (), ()))
    assert [v.criterion for v in grading.verdicts] == ["outcome"]


def test_the_note_says_what_was_seen() -> None:
    whole = grading_of(contract(), evidence_of(STORED), ContractChecks((), (), ())).note
    assert (whole.criterion, whole.value, whole.sentence) == (EVIDENCE, PASS, "")
    assert whole.extra["evidence"] == {
        "missing": [],
        "faults": [],
        "fixture": [digest_of({"customer": "C-1"}).hex(), digest_of({"a": 1}).hex()],
    }

    checks = ContractChecks((), ("final_state",), ("The order is another one.",))
    note = grading_of(contract(), evidence_of(STORED), checks).note
    assert (note.value, note.sentence) == (
        UNKNOWN,
        "Not recorded: final_state. The order is another one.",
    )
    assert note.extra == {
        "evidence": {"missing": ["final_state"], "faults": ["The order is another one."]}
    }


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(StoredEvidence(TrialStatus.COMPLETED, (), ()), id="no-state"),
        pytest.param(StoredEvidence(TrialStatus.ERROR, (), (), initial_state={}), id="broken"),
    ],
)
def test_some_trials_say_nothing_of_how_trials_start(stored: StoredEvidence) -> None:
    assert fixture_of(contract(), evidence_of(stored)) is None


def test_a_trial_without_facts_brings_none() -> None:
    stored = StoredEvidence(TrialStatus.COMPLETED, (), (), initial_state=[])
    assert fixture_of(contract(), evidence_of(stored)) == Fixture(digest_of({}), digest_of([]))


def test_verdicts_are_given_without_being_stored() -> None:
    kept = grading_of(contract(), evidence_of(STORED), ContractChecks(RESULTS, (), ())).verdicts
    plain = CheckVerdict("x", CriterionClass.CONSTRAINT, True, None, PASS, "s", (), {})
    given, notes = given_checks((*kept, plain), contract_key="draft", evidence_order=2)

    assert [(v.criterion, v.value, v.contract, v.evidence_order) for v in given] == [
        ("outcome", FAIL, "draft", 2),
        ("looked", PASS, "draft", 2),
        ("foreign", FAIL, "draft", 2),
        ("x", PASS, "draft", 2),
    ]
    assert {(v.kind, v.grader_version, v.is_imported, v.counts) for v in given} == {
        (GraderKind.CODE, CHECKS_VERSION, False, True)
    }
    assert notes == {
        given[0].id: CheckNotes(),
        given[1].id: CheckNotes(has_reached=True),
        given[2].id: CheckNotes(has_attempted=True, has_committed=True),
    }


@pytest.mark.parametrize("extra", [None, [], {}, {"check": None}, {"check": []}], ids=str)
def test_an_extra_without_check_says_nothing(extra: Json) -> None:
    assert notes_of(extra) == CheckNotes()


def test_an_added_result_counts_as_arrived_right_after_its_call() -> None:
    reading = read_contract(
        "task: t\nrequired: [{id: known, call: look, where: 'result == \"yes\"', before: pay}]"
    )
    assert reading.contract is not None, reading.findings
    names = ("look", "pay")
    messages: list[JsonObject] = [
        {"role": "assistant", "tool_calls": [{"id": name, "function": {"name": name}}]}
        for name in names
    ]
    stored = StoredEvidence(TrialStatus.COMPLETED, tuple(messages), transcript_of(messages))
    together = [{"role": "assistant", "tool_calls": [m["tool_calls"][0] for m in messages]}]  # type: ignore[index, dict-item]
    at_once = replace(stored, messages=tuple(together), steps=transcript_of(together))

    def said(evidence: StoredEvidence, content: str) -> tuple[VerdictValue, tuple[int, ...]]:
        added = filled(evidence, [Addition(results=(AddedResult(1, 0, content),))])
        (result,) = checks_of(reading.contract, evidence_of(added)).results  # type: ignore[arg-type]
        return (result.value, result.steps)

    assert checks_of(reading.contract, evidence_of(stored)).results[0].value is UNKNOWN
    assert said(stored, "yes") == (PASS, (1,))
    assert said(stored, "no")[0] is FAIL
    assert said(at_once, "yes")[0] is FAIL
