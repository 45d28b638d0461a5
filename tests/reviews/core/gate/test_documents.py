"""Gates as JSON, there and back, and documents that lack something."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from reviews.core.estimators import Counts, Interval, Range
from reviews.core.gate.deciding import decide_gate
from reviews.core.gate.documents import (
    check_document,
    fraction_text,
    gate_document,
    parse_fraction,
    parse_gate,
)
from reviews.core.gate.model import (
    Check,
    CheckDetail,
    CheckKind,
    DecidedBy,
    Gate,
    Section,
    Threshold,
    Thresholds,
    ThresholdSetInForce,
    TierEvidence,
)
from reviews.core.gate.states import CheckResult, GateState
from reviews.core.gate.thresholds import TEMPLATES, Template
from tests.reviews.core.gate.builders import ALWAYS, passing, random_tier, tier
from traces.core.values import Json


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.key)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_gate_is_read_back_from_its_document(template: Template, first: int) -> None:
    for seed in range(first, first + 20):
        found = ThresholdSetInForce(3, "d", "Owner", "2026", "2026", template.thresholds)
        evidence = replace(random_tier(seed), threshold_set=found)
        gate = decide_gate("2.4.0", [evidence, tier(passing(3), *ALWAYS)])
        assert parse_gate(json.loads(json.dumps(gate_document(gate)))) == gate


def test_gate_without_thresholds_is_read_back() -> None:
    gate = decide_gate("2.4.0", [TierEvidence("", "", None, (), ())])
    assert parse_gate(json.loads(json.dumps(gate_document(gate)))) == gate


def test_check_document_says_all_of_it() -> None:
    check = Check(
        Threshold(CheckKind.OUTCOME_RATE, Fraction("0.95"), DecidedBy.BOUND),
        CheckResult.CANNOT_TELL,
        Fraction(2, 3),
        "2 of 3.",
        Counts(2, 3, 5, 1),
        Range(Fraction(2, 5), Fraction(4, 5)),
        Interval(0.1, 0.9),
        "More.",
        7,
        (CheckDetail("a", "b"), CheckDetail("c", "d", CheckResult.MET)),
        ("trial-1",),
    )
    assert check_document(check) == {
        "kind": "outcome_rate",
        "name": "Outcome rate, 95 % lower bound",
        "threshold": {"kind": "outcome_rate", "limit": "0.95", "decided_by": "bound"},
        "threshold_text": "≥ 95 %",
        "threshold_sentence": (
            "At least 95 % of trials must reach the required outcome. The lower bound decides: with "
            "95 % confidence the true rate has to be that high, so a few trials are not enough."
        ),
        "decided_by": "bound",
        "result": "cannot_tell",
        "measured": "2/3",
        "measured_number": 0.666666667,
        "sentence": "2 of 3.",
        "counts": {"passed": 2, "graded": 3, "run": 5, "missing": 1},
        "range": {"low": "2/5", "high": "4/5", "low_number": 0.4, "high_number": 0.8},
        "interval": {"low": 0.1, "high": 0.9},
        "settles": "More.",
        "more_trials": 7,
        "details": [
            {"label": "a", "text": "b", "result": None},
            {"label": "c", "text": "d", "result": "met"},
        ],
        "trials": ["trial-1"],
    }


@pytest.mark.parametrize("document", [None, [], "x", {}, {"sections": "x", "state": 3}])
def test_document_of_nothing_is_a_gate_that_waits(document: Json) -> None:
    assert parse_gate(document) == Gate(GateState.WAITING, "", ())


def test_document_that_lacks_things_is_read_as_far_as_it_goes() -> None:
    read = parse_gate(
        {
            "state": "blocked",
            "sentence": "Blocked.",
            "sections": [
                3,
                {
                    "tier": "Payments",
                    "slots": "many",
                    "threshold_set": {"number": 7, "thresholds": {"checks": 3}},
                    "checks": [
                        "x",
                        {"kind": "luck"},
                        {"kind": 3},
                        {"kind": "declared", "result": "unheard of"},
                        {
                            "kind": "outcome_rate",
                            "decided_by": "bound",
                            "threshold": {"kind": "outcome_rate", "limit": "ninety"},
                            "result": "met",
                            "measured": "1/0",
                            "counts": {"passed": 3, "graded": 1, "run": 1},
                            "range": {"low": "1/2"},
                            "interval": {"low": 0.5, "high": None},
                            "more_trials": "x",
                            "details": [{"result": "unheard of"}],
                            "trials": ["t", 3],
                        },
                    ],
                },
            ],
        }
    )
    empty = Section("", "", None, GateState.WAITING, "", (), 0, 0)
    found_set = ThresholdSetInForce(7, "", "", "", "", Thresholds(()))
    checks = (
        Check(Threshold(CheckKind.DECLARED), CheckResult.CANNOT_TELL, None, ""),
        Check(
            Threshold(CheckKind.OUTCOME_RATE, decided_by=DecidedBy.BOUND),
            CheckResult.MET,
            None,
            "",
            n_more=0,
            details=(CheckDetail("", "", CheckResult.CANNOT_TELL),),
            trials=("t", ""),
        ),
    )
    section = Section("Payments", "", found_set, GateState.WAITING, "", checks, 0, 0)
    assert read == Gate(GateState.BLOCKED, "Blocked.", (empty, section))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("19/20", Fraction(19, 20)),
        ("3", Fraction(3)),
        ("-1/2", Fraction(-1, 2)),
        ("1/0", None),
        ("a/b", None),
        ("", None),
        (0.5, None),
        (None, None),
    ],
)
def test_fraction_is_read_from_its_text(text: Json, value: Fraction | None) -> None:
    assert parse_fraction(text) == value


def test_fraction_is_written_as_numerator_and_denominator() -> None:
    assert [fraction_text(Fraction(0)), fraction_text(Fraction("0.95")), fraction_text(None)] == [
        "0/1",
        "19/20",
        None,
    ]
