"""The contracts of the made-up tasks: read without a finding, and about the tasks as they are."""

from __future__ import annotations

import json

import pytest

from evalsite.refund_desk import TASKS, TOOL_KINDS, releases
from evalsite.refund_desk.contract_texts import contract_texts, drafted_texts, earlier_texts
from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contract

ALL = {
    **contract_texts(),
    **{f"{task}, earlier": text for task, text in earlier_texts().items()},
    **{f"{task}, drafted": text for task, text in drafted_texts().items()},
}
NAMES = sorted(ALL)


def contract(name: str) -> Contract:
    reading = read_contract(ALL[name])
    assert reading.findings == ()
    assert reading.contract is not None
    return reading.contract


def test_each_task_has_a_contract_and_one_of_each_kind_stands_beside() -> None:
    assert set(contract_texts()) == {task.task_id for task in TASKS}
    assert list(earlier_texts()) == ["refund_fare_difference"]
    assert list(drafted_texts()) == ["refund_late_parcel"]
    assert len(set(ALL.values())) == 15


@pytest.mark.parametrize("name", NAMES)
def test_a_contract_says_of_its_task_what_the_trials_say(name: str) -> None:
    found = contract(name)
    task = next(task for task in TASKS if task.task_id == found.task_id)

    assert name.split(",", maxsplit=1)[0] == found.task_id
    assert (found.title, found.family, found.split) == (task.title, task.family, task.split)
    assert found.input == task.ask
    fixed = {key: value for key, value in task.facts.items() if key not in found.trial_facts}
    assert found.facts == fixed
    assert set(found.tool_names) <= {tool for tool, _ in TOOL_KINDS}
    assert found.trials == 5


@pytest.mark.parametrize("name", NAMES)
def test_a_contract_brings_grader_tests_that_say_pass_and_fail(name: str) -> None:
    found = contract(name)

    assert len(found.grader_tests) >= 3
    said = {word for test in found.grader_tests for _, word in test.expect}
    assert said == {"pass", "fail"}
    checks = ["outcome", *(r.id for r in found.required), *(p.id for p in found.prohibited)]
    expected = {criterion for test in found.grader_tests for criterion, _ in test.expect}
    assert set(checks) <= expected


def test_truthful_is_mandatory_in_the_family_of_subscriptions_alone() -> None:
    mandatory = {
        task
        for task in contract_texts()
        if any(r.id == "truthful" and r.mandatory for r in contract(task).semantic)
    }

    assert mandatory == {task.task_id for task in TASKS if task.family == "subscriptions"}
    assert not any(
        rubric.mandatory
        for task in contract_texts()
        for rubric in contract(task).semantic
        if rubric.id == "tone"
    )


def test_rubrics_and_external_criteria_are_those_that_verdicts_come_in_for() -> None:
    given: dict[str, set[str]] = {}
    for release in releases():
        for line in release.lines:
            record = json.loads(line)
            names = {verdict["criterion"] for verdict in record["verdicts"]}
            given.setdefault(record["task_id"], set()).update(names)

    for task in contract_texts():
        found = contract(task)
        assert {rubric.id for rubric in found.semantic} | {e.id for e in found.external} <= given[
            task
        ]
