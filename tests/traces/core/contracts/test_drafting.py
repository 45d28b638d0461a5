"""First contracts: from tau2 task definitions, from trials, and from nothing."""

import gzip
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.traces.core.formats.reading import CASES, DATA, SAMPLE, member_of
from traces.core.contracts.drafting import HINTS, draft_from_trial, draft_of, draft_of_tau2
from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contract
from traces.core.contracts.writing import contract_text
from traces.core.formats.tau2 import read_tau2
from traces.core.records import ParsedTask, ParsedTrial
from traces.core.values import Json, JsonObject

FILES = [
    *sorted((SAMPLE / "tau2_airline").glob("*.json.gz")),
    *sorted((DATA / "02_tau2_results").glob("*.json.gz")),
]


def contract_of(document: JsonObject) -> Contract:
    reading = read_contract(contract_text(document))
    assert reading.findings == ()
    assert reading.contract is not None
    return reading.contract


def definition(**criteria: Json) -> JsonObject:
    return {"id": "7", "evaluation_criteria": criteria}


def expressions_for(*infos: str) -> list[str]:
    draft = draft_of_tau2("7", definition(communicate_info=[*infos]))
    required: Any = draft["required"]
    return [entry["where"] for entry in required]


# tau2


def test_a_definition_becomes_a_contract() -> None:
    task: JsonObject = {
        "id": "7",
        "description": {"purpose": "Change  a\nflight"},
        "user_scenario": {"instructions": {"reason_for_call": " You want to change a flight. "}},
        "evaluation_criteria": {
            "actions": [{"name": "update_flight", "arguments": {"id": 1}}],
            "communicate_info": ["1628", "44"],
            "nl_assertions": ["The agent is polite."],
            "env_assertions": [{"func_name": "f"}],
            "reward_basis": ["DB", "COMMUNICATE", "ENV_ASSERTION", "ACTION", "DB"],
        },
    }

    assert draft_of_tau2("7", task) == {
        "task": "7",
        "title": "Change a flight",
        "input": "You want to change a flight.",
        "required": [
            {
                "id": "told-1628",
                "message": "agent",
                "where": 'text.contains("1628") || text.contains("1,628")',
                "mandatory": True,
            },
            {
                "id": "told-44",
                "message": "agent",
                "where": 'text.contains("44")',
                "mandatory": True,
            },
        ],
        "semantic": [
            {
                "rubric": "nl:The agent is polite.",
                "question": "The agent is polite.",
                "mandatory": False,
            }
        ],
        "external": [
            {"id": part, "class": "outcome", "mandatory": True, "graders": ["tau2"]}
            for part in ("db", "env_assertion", "action")
        ],
    }
    contract = contract_of(draft_of_tau2("7", task))
    assert "update_flight" not in contract_text(draft_of_tau2("7", task))
    assert contract.tool_names == ()


def test_what_the_basis_leaves_out_is_a_preference() -> None:
    draft = draft_of_tau2(
        "7",
        definition(communicate_info=["a"], nl_assertions=["b"], reward_basis=["NL_ASSERTION"]),
    )
    contract = contract_of(draft)

    assert [entry.mandatory for entry in contract.required] == [False]
    assert [(rubric.id, rubric.mandatory) for rubric in contract.semantic] == [("nl:b", True)]
    assert contract.external == ()


@pytest.mark.parametrize(
    ("criteria", "outside"),
    [
        ({}, ["db"]),  # the standard basis, with nothing to communicate
        ({"reward_basis": []}, ["db"]),
        ({"reward_basis": "DB"}, ["db"]),
        ({"reward_basis": ["COMMUNICATE"]}, ["communicate"]),
        ({"reward_basis": ["NL_ASSERTION", "COMMUNICATE"]}, ["nl_assertion", "communicate"]),
        ({"reward_basis": ["COMMUNICATE"], "communicate_info": ["x"]}, []),
        ({"reward_basis": ["COMMUNICATE", "NEW", 5], "communicate_info": ["x", "", 4]}, ["new"]),
    ],
    ids=range(7),
)
def test_parts_of_the_basis_are_decided_outside(criteria: JsonObject, outside: list[str]) -> None:
    contract = contract_of(draft_of_tau2("7", definition(**criteria)))

    assert [entry.id for entry in contract.external] == outside


def test_what_must_be_told_is_looked_for_as_the_benchmark_does() -> None:
    assert expressions_for("1000", "327", "$1.5", "23553", "a\\b(c)", "0123") == [
        'text.contains("1000") || text.contains("1,000")',
        'text.contains("327")',
        'text.contains("$1.5")',
        'text.contains("23553") || text.contains("23,553")',
        'text.matches("(?i)a\\\\\\\\b\\\\(c\\\\)")',
        'text.contains("0123")',
    ]


def test_texts_with_the_same_name_are_told_apart() -> None:
    draft = draft_of_tau2("7", definition(communicate_info=["a b", "A-B", "A  b!", "一", "a b"]))
    required: Any = draft["required"]

    assert [entry["id"] for entry in required] == [
        "told-a-b",
        "told-a-b-2",
        "told-a-b-3",
        "told-text",
    ]
    contract_of(draft)


def test_a_text_too_long_for_an_expression_is_a_question() -> None:
    contract = contract_of(draft_of_tau2("7", definition(communicate_info=["word " * 500])))

    assert contract.required == ()
    (rubric,) = contract.semantic
    assert rubric.id.startswith("communicate:word word")
    assert rubric.mandatory


def test_the_input_is_the_ticket_or_what_the_user_wants() -> None:
    plain: JsonObject = {**definition(), "user_scenario": {"instructions": "Ask for a refund."}}

    assert draft_of_tau2("7", plain)["input"] == "Ask for a refund."
    assert draft_of_tau2("7", {**plain, "ticket": "No signal."})["input"] == "No signal."
    assert "input" not in draft_of_tau2("7", {**plain, "user_scenario": 5})
    assert len(str(draft_of_tau2("7", {**plain, "ticket": "x" * 9_000})["input"])) == 4_000


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_verdicts_of_a_results_file_answer_its_drafts(path: Path) -> None:
    criteria: dict[str, set[str]] = defaultdict(set)
    contracts: dict[str, Contract] = {}
    for item in read_tau2(member_of(gzip.decompress(path.read_bytes()))):
        if isinstance(item.content, ParsedTask):
            task_id = item.content.task_id
            reading = read_contract(draft_of(task_id, item.content.definition))
            assert reading.findings == ()
            assert reading.contract is not None
            contracts[task_id] = reading.contract
        elif isinstance(item.content, ParsedTrial):
            criteria[item.content.key.task_id] |= {v.criterion for v in item.content.verdicts}

    assert contracts
    assert any(criteria.values())
    for task_id, contract in contracts.items():
        assert contract.task_id == task_id
        named = criteria[task_id] - {"outcome"}  # a file may give the reward alone
        assert not named or {entry.id for entry in contract.external} <= named


# Nothing to go by


def test_a_draft_of_nothing_says_that_nothing_is_required() -> None:
    text = draft_of("12", None)
    reading = read_contract(text)

    assert text == f'task: "12"\n{HINTS}'
    assert [finding.code for finding in reading.findings] == ["nothing-required"]


def test_the_hints_are_a_contract_when_they_are_uncommented() -> None:
    _, *hints = HINTS.splitlines()
    text = "task: t\n" + "".join(f"{line.removeprefix('# ')}\n" for line in hints)

    assert read_contract(text).findings == ()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"input": "Hi", "facts": {"a": 1}}, "task: t\ninput: Hi\nfacts: {a: 1}\n"),
        ({"instruction": " Hi "}, "task: t\ninput: Hi\n"),
        ({"input": 5, "facts": []}, "task: t\n"),
        ({"evaluation_criteria": None}, "task: t\n"),
    ],
    ids=range(4),
)
def test_a_draft_takes_what_a_definition_says(given: JsonObject, text: str) -> None:
    assert draft_of("t", given) == text + HINTS


# From a trial


ORIGIN: JsonObject = {
    "task": "origin",
    "title": "T",
    "family": "f",
    "split": "regression",
    "input": "I",
    "facts": {"a": 1},
    "trial_facts": ["b", "c"],
    "budget": {"turns": 3},
    "evidence": ["facts"],
    "grader_tests": [{"name": "n", "steps": [], "expect": {"budget.turns": "pass"}}],
}


def from_trial(
    contract: JsonObject | None,
    facts: JsonObject,
    given: Json = "J",
    state: Json = None,
    split: str | None = "held_out",
) -> JsonObject:
    return draft_from_trial(
        "new",
        input=given,
        facts=facts,
        initial_state=state,
        family="g",
        split=split,
        contract=contract,
    )


def test_a_task_from_a_trial_fixes_the_facts_of_the_trial() -> None:
    draft = from_trial(ORIGIN, {"b": 2})

    assert draft == {
        "task": "new",
        "title": "T",
        "family": "g",
        "split": "held_out",
        "input": "J",
        "facts": {"a": 1, "b": 2},
        "trial_facts": ["c"],
        "budget": {"turns": 3},
        "evidence": ["facts"],
    }
    contract_of(draft)
    assert ORIGIN["trial_facts"] == ["b", "c"]


def test_planted_trials_stay_where_the_facts_stay() -> None:
    draft = from_trial(ORIGIN, {"a": 1}, given=None, split="other")

    assert draft == {
        **{name: value for name, value in ORIGIN.items() if name != "split"},
        "task": "new",
        "family": "g",
    }
    contract_of(draft)


def test_a_task_from_a_trial_without_a_contract() -> None:
    assert from_trial(None, {"a": 1}, state={"s": 1}) == {
        "task": "new",
        "family": "g",
        "split": "held_out",
        "input": "J",
        "facts": {"a": 1},
        "evidence": ["initial_state", "final_state"],
    }
    assert from_trial(None, {}, given=None, split=None) == {"task": "new", "family": "g"}


# The cases that came with the project


CASE_CODES = {
    "contract-expression-dos--powers.yaml": {"missing-field", "unknown-field"},
    "contract-regex-dos--nested-plus.yaml": {"missing-field", "unknown-field"},
    "contract-unsafe-yaml--python-tag.yaml": {"tag", "missing-field", "unknown-field"},
    "contract-yaml-bomb--aliases.yaml": {"alias", "anchor"},
}


def test_every_contract_among_the_cases_is_known() -> None:
    assert {path.name for path in CASES.glob("contract-*.yaml")} == set(CASE_CODES)


@pytest.mark.parametrize("name", CASE_CODES)
def test_a_case_is_refused_with_its_lines(name: str) -> None:
    reading = read_contract((CASES / name).read_bytes())

    assert reading.contract is None
    assert {finding.code for finding in reading.findings} == CASE_CODES[name]
    assert all(finding.line for finding in reading.findings)
    assert not Path("/tmp/pwned_by_contract").exists()
