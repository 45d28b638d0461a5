"""Results of previews and regrades: counted by transition, stored and read back."""

from __future__ import annotations

import json

import pytest

from reviews.core.regrades import (
    MOST_CRITERIA,
    MOST_EXAMPLES,
    CriterionCount,
    EffectCounter,
    GraderTest,
    PlantedCheck,
    PreviewResult,
    RegradeResult,
    TaskEffect,
    Transition,
    UnknownTool,
    parse_preview,
    parse_regrade,
    preview_document,
    regrade_document,
)
from traces.core.values import Json


def counted() -> EffectCounter:
    counter = EffectCounter()
    plain = {"failed_before": (), "failed": (), "is_open": ()}
    for n in range(3):
        counter.add(f"p{n}", before="pass", after="pass", **plain)
    for n in range(2):
        counter.add(
            f"f{n}",
            before="pass",
            after="fail",
            failed_before=("a",),
            failed=("a", "b"),
            is_open=("c",),
        )
    counter.add("u", before="", after="unresolved", failed_before=(), failed=(), is_open=("c",))
    counter.add("e", before="pass", after="harness_error", **plain)
    counter.add("x", before="fail", after="fail", failed_before=(), failed=("d",), is_open=())
    return counter


EFFECT = TaskEffect(
    "t1",
    2,
    8,
    (
        Transition(
            "pass", "fail", 2, (CriterionCount("a", 2), CriterionCount("b", 2)), ("f0", "f1")
        ),
        Transition("", "unresolved", 1, (CriterionCount("c", 1),), ("u",)),
        Transition("pass", "harness_error", 1, (), ("e",)),
        Transition("pass", "pass", 3, (), ()),
        Transition("fail", "fail", 1, (), ()),
    ),
    (CriterionCount("b", 2), CriterionCount("d", 1)),
)


def test_transitions_are_counted_with_reasons_and_examples() -> None:
    assert counted().effect("t1", version=2) == EFFECT
    assert EFFECT.n_changed == 4
    assert EffectCounter().effect("t2", note="Why.") == TaskEffect("t2", None, 0, (), (), "Why.")


def test_examples_and_criteria_are_bounded() -> None:
    counter = EffectCounter()
    names = tuple(f"c{n:02}" for n in range(MOST_CRITERIA + 5))
    for n in range(MOST_EXAMPLES + 5):
        counter.add(str(n), before="pass", after="fail", failed_before=(), failed=names, is_open=())
    (transition,) = counter.effect("t").transitions
    assert transition.n_trials == MOST_EXAMPLES + 5
    assert transition.examples == tuple(map(str, range(MOST_EXAMPLES)))
    assert [c.criterion for c in transition.reasons] == list(names[:MOST_CRITERIA])


PREVIEW = PreviewResult(
    (EFFECT, TaskEffect("t2", None, 0, (), ())),
    (
        GraderTest("t1", "other path", True, ()),
        GraderTest("t1", "wrong", False, (PlantedCheck("a", "fail", "pass", "Step 2."),)),
    ),
    (UnknownTool("zap", ("t1", "t2")),),
)


def test_a_preview_is_read_as_it_was_stored() -> None:
    document = json.loads(json.dumps(preview_document(PREVIEW)))
    assert parse_preview(document) == PREVIEW
    assert (PREVIEW.n_trials, PREVIEW.n_changed) == (8, 4)
    assert [test.name for test in PREVIEW.unmet] == ["wrong"]


def test_a_regrade_grows_task_by_task() -> None:
    result = RegradeResult().with_task(EFFECT).with_task(EFFECT)
    document = json.loads(json.dumps(regrade_document(result)))
    assert parse_regrade(document) == result
    assert (result.n_trials, result.n_changed) == (16, 8)
    assert parse_regrade(None) == RegradeResult()


@pytest.mark.parametrize(
    "document",
    [
        [],
        "x",
        {"tasks": [1], "grader_tests": [None], "unknown_tools": ["zap"]},
        {"tasks": {"transitions": 1}, "grader_tests": 7, "unknown_tools": None},
    ],
    ids=["list", "text", "odd", "odder"],
)
def test_documents_of_another_shape_are_read_as_far_as_they_go(document: Json) -> None:
    found = parse_preview(document)
    assert (found.n_trials, found.n_changed) == (0, 0)
    assert parse_regrade(document).n_trials == 0
