"""Manifests: the same evidence gives the same bytes, and a difference names what changed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from reviews.core.estimators import Counts
from reviews.core.gate.manifest import (
    MOST_DIFFERENCES,
    ManifestParts,
    difference_of,
    exact,
    manifest_digest,
    manifest_of,
)
from reviews.core.gate.model import Check, CheckKind, Gate, Section, Threshold
from reviews.core.gate.states import CheckResult, GateState
from traces.core.values import JsonObject


def _trial(n: int, **more: Any) -> JsonObject:
    return {
        "uuid": f"trial-{n}",
        "task": "t1",
        "label": str(n),
        "disposition": "pass",
        "contract": 1,
        "additions": [],
        "record": "aa",
        "rows": "bb",
        "task_version": 1,
        **more,
    }


def _verdict(n: int, **more: Any) -> JsonObject:
    return {
        "verdict": str(n),
        "trial": "trial-1",
        "grader": "state check",
        "criterion": "outcome",
        "value": "pass",
        "row": "cc",
        **more,
    }


PARTS = ManifestParts(
    release={"name": "1.0", "uuid": "r", "details": "dd"},
    reevaluation=None,
    runs=({"uuid": "run", "name": "night", "declared": 2, "left_out": None},),
    tasks=({"task": "t1", "family": "", "split": "", "tier": "tier"},),
    trials=(_trial(1), _trial(2)),
    verdicts=(_verdict(2), _verdict(10)),
    adjudications=(),
    marks=(),
    calibrations=(),
    contracts=({"task": "t1", "number": 1, "text": "ee"},),
    thresholds=({"tier": "tier", "name": "payments", "number": 7, "digest": "ff"},),
    baseline=None,
)


def _gate(
    result: CheckResult = CheckResult.MET, passed: int = 2, state: GateState = GateState.READY
) -> Gate:
    threshold = Threshold(CheckKind.PASS_HAT_K, Fraction(1, 2), k=5)
    check = Check(threshold, result, Fraction(passed, 2), "Said.", Counts(passed, 2, 2))
    open_check = Check(Threshold(CheckKind.DECLARED), CheckResult.DOES_NOT_APPLY, None, "None.")
    section = Section("payments", "tier", None, state, "Said.", (check, open_check), 2, 1)
    return Gate(state, "Said.", (section,))


def _said(parts: ManifestParts = PARTS, gate: Gate | None = None) -> list[str]:
    old, new = manifest_of(PARTS, _gate()), manifest_of(parts, gate or _gate())
    return [each.sentence for each in difference_of(old, new)]


def test_the_order_of_rows_changes_no_byte() -> None:
    turned = replace(PARTS, trials=PARTS.trials[::-1], verdicts=PARTS.verdicts[::-1])
    one, two = manifest_of(PARTS, _gate()), manifest_of(turned, _gate())
    assert manifest_digest(one) == manifest_digest(two)
    assert one["verdicts"] == [_verdict(2), _verdict(10)]
    assert difference_of(one, two) == ()
    assert len(manifest_digest(one)) == 64


def test_values_are_exact_and_sentences_stay_out() -> None:
    said = manifest_of(PARTS, _gate(passed=1))
    assert said["checks"] == [
        {
            "tier": "tier",
            "tier_name": "payments",
            "kind": "declared",
            "k": 0,
            "limit": None,
            "by_harm": [],
            "decided_by": "estimate",
            "counts": None,
            "value": None,
            "result": "does_not_apply",
        },
        {
            "tier": "tier",
            "tier_name": "payments",
            "kind": "pass_hat_k",
            "k": 5,
            "limit": "1/2",
            "by_harm": [],
            "decided_by": "estimate",
            "counts": {"passed": 1, "graded": 2, "run": 2, "missing": 0},
            "value": "1/2",
            "result": "met",
        },
    ]
    assert exact(None) is None


@pytest.mark.parametrize(
    ("parts", "sentences"),
    [
        pytest.param(
            replace(PARTS, trials=(*PARTS.trials, _trial(3))),
            ["Trial 3 of task t1: new."],
            id="new trial",
        ),
        pytest.param(
            replace(PARTS, trials=PARTS.trials[:1]), ["Trial 2 of task t1: gone."], id="gone trial"
        ),
        pytest.param(
            replace(PARTS, trials=(_trial(1), _trial(2, disposition="fail"))),
            ["Trial 2 of task t1: pass before, fail now."],
            id="decided otherwise",
        ),
        pytest.param(
            replace(PARTS, trials=(_trial(1), _trial(2, rows="xx", additions=["a"], contract=2))),
            [
                "Trial 2 of task t1: decided by another contract version.",
                "Trial 2 of task t1: evidence was added.",
                "Trial 2 of task t1: its stored rows were altered.",
            ],
            id="altered rows",
        ),
        pytest.param(
            replace(PARTS, verdicts=(_verdict(2, value="fail"), _verdict(10, row="xx"))),
            [
                "Pass of state check on outcome of trial 1 of task t1 reads fail now.",
                "Pass of state check on outcome of trial 1 of task t1: its stored row was altered.",
            ],
            id="altered verdicts",
        ),
        pytest.param(
            replace(PARTS, verdicts=(_verdict(11), *PARTS.verdicts[:1])),
            [
                "Pass of state check on outcome of trial 1 of task t1: new.",
                "Pass of state check on outcome of trial 1 of task t1: decides no more.",
            ],
            id="other verdicts",
        ),
        pytest.param(
            replace(
                PARTS,
                adjudications=(
                    {"uuid": "a", "trial": "none", "criterion": "tone", "ruling": "fail"},
                ),
            ),
            ["Fail on tone of a trial: new."],
            id="adjudication",
        ),
        pytest.param(
            replace(PARTS, runs=({**PARTS.runs[0], "left_out": {"reason": "x"}},)),
            ["Run night was left out."],
            id="left out",
        ),
        pytest.param(
            replace(PARTS, runs=({**PARTS.runs[0], "declared": 3}, {"uuid": "n", "name": "new"})),
            ["Run new: new.", "Run night is declared or begun otherwise than before."],
            id="runs",
        ),
        pytest.param(
            replace(PARTS, thresholds=({**PARTS.thresholds[0], "number": 8},)),
            ["Thresholds of tier payments: version 7 before, version 8 now."],
            id="thresholds",
        ),
        pytest.param(
            replace(PARTS, thresholds=({**PARTS.thresholds[0], "digest": "xx"},)),
            ["Thresholds version 7 of tier payments were altered."],
            id="altered thresholds",
        ),
        pytest.param(
            replace(PARTS, tasks=({**PARTS.tasks[0], "tier": None, "split": "tuning"},)),
            ["Task t1: in another tier.", "Task t1: in another split."],
            id="tasks",
        ),
        pytest.param(
            replace(PARTS, contracts=({"task": "t1", "number": 2, "text": "ee"},)),
            ["Contract 2 of task t1: new.", "Contract 1 of task t1: decides no more."],
            id="contracts",
        ),
        pytest.param(
            replace(
                PARTS,
                marks=(
                    {"uuid": "m", "task": "t1", "criterion": "", "mark": "defective"},
                    {"uuid": "n", "task": "t1", "criterion": "tone", "mark": "ambiguous"},
                ),
            ),
            [("2 marks: new (defective on the fixture of task t1; ambiguous on tone of task t1).")],
            id="marks",
        ),
        pytest.param(
            replace(PARTS, calibrations=({"judge": "j", "version": "1", "criterion": "tone"},)),
            ["Judge j 1 on tone: new."],
            id="calibrations",
        ),
        pytest.param(
            replace(PARTS, baseline={"release": "0.9", "digest": "abcdefabcdefabc"}),
            [
                (
                    "It was compared with no signed release and is compared with "
                    "release 0.9 as signed over abcdefabcdef now."
                )
            ],
            id="baseline",
        ),
        pytest.param(
            replace(PARTS, reevaluation="x", release={**PARTS.release, "details": "xx"}),
            [
                "An owner re-evaluated the gate.",
                "The release's name or version record is another.",
            ],
            id="release",
        ),
    ],
)
def test_a_difference_names_what_changed(parts: ManifestParts, sentences: list[str]) -> None:
    assert _said(parts) == sentences


def test_results_come_first() -> None:
    assert _said(gate=_gate(CheckResult.NOT_MET, 0, GateState.BLOCKED)) == [
        "The gate was ready and is blocked now.",
        "Pass^5 of tier payments: met before, not met now.",
    ]
    assert _said(gate=_gate(passed=1)) == [
        "Pass^5 of tier payments: figures differ, the result is the same."
    ]


def test_a_check_that_is_asked_for_anew_is_named() -> None:
    gate = _gate()
    section = gate.sections[0]
    without = replace(gate, sections=(replace(section, checks=section.checks[:1]),))
    new, old = manifest_of(PARTS, gate), manifest_of(PARTS, without)
    assert [d.sentence for d in difference_of(old, new)] == [
        "Declared of tier payments: asked for now."
    ]
    assert [d.sentence for d in difference_of(new, old)] == [
        "Declared of tier payments: not asked for any more."
    ]


def test_a_run_counts_again() -> None:
    left = manifest_of(
        replace(PARTS, runs=({**PARTS.runs[0], "left_out": {"confirmed_by": None}},)), _gate()
    )
    confirmed = manifest_of(
        replace(PARTS, runs=({**PARTS.runs[0], "left_out": {"confirmed_by": "x"}},)), _gate()
    )
    whole = manifest_of(PARTS, _gate())
    assert [d.sentence for d in difference_of(left, whole)] == ["Run night counts again."]
    assert [d.sentence for d in difference_of(left, confirmed)] == [
        "What is noted of leaving out run night changed."
    ]


def test_many_differences_are_grouped_and_bounded() -> None:
    many = replace(PARTS, trials=tuple(_trial(n) for n in range(1, 40)))
    assert _said(many) == [
        (
            "37 trials: new (trial 10 of task t1; trial 11 of task t1; trial 12 of task t1; "
            "trial 13 of task t1; trial 14 of task t1 and 32 more)."
        )
    ]
    runs = tuple({"uuid": str(n), "name": str(n), "left_out": None} for n in range(100))
    left = tuple({**run, "left_out": {"reason": "x"}} for run in runs)
    one = manifest_of(replace(PARTS, runs=runs), _gate())
    two = manifest_of(replace(PARTS, runs=left), _gate())
    found = difference_of(one, two)
    assert len(found) == MOST_DIFFERENCES
    assert found[-1].sentence == "There are 41 more differences."


def test_what_nobody_named_is_a_difference_all_the_same() -> None:
    old = manifest_of(PARTS, _gate())
    assert [d.sentence for d in difference_of(old, {**old, "manifest": 2})] == [
        "The manifests differ in how they are written."
    ]
    assert difference_of(old, {**old, "trials": "none"}) != ()


def test_long_names_are_cut() -> None:
    parts = replace(PARTS, trials=(*PARTS.trials, _trial(3, task="x" * 500)))
    assert _said(parts) == [f"Trial 3 of task {'x' * 120}…: new."]
