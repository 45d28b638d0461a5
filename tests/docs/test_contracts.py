"""The guide to contracts says what the code does."""

import re
from pathlib import Path

import pytest

from reviews.core.checks.expressions import expression_problem
from reviews.core.checks.planted import grader_test_results
from traces.core.contracts.documents import (
    DEEPEST,
    MOST_DOCUMENT_BYTES,
    MOST_DOCUMENTS,
    MOST_NODES,
    MOST_TEXT_BYTES,
    MOST_TEXT_NODES,
)
from traces.core.contracts.expressions import expressions_of
from traces.core.contracts.model import Contract, EvidencePart
from traces.core.contracts.places import MOST_FINDINGS
from traces.core.contracts.planting import MOST_PLANTED_STEPS
from traces.core.contracts.reading import read_contract
from traces.core.contracts.schema import CONTRACT_SCHEMA, MOST_EXPRESSION_CHARS, SCHEMA_ID
from traces.core.rules import RuleKind

TEXT = (Path(__file__).parents[2] / "docs" / "contracts.md").read_text()
WORDS = " ".join(TEXT.split())
EXAMPLES = re.findall(r"```yaml\n(.+?)```", TEXT, re.DOTALL)
ROWS = re.findall(r"^\| `([^|]+)` \| ([^|]+) \|$", TEXT, re.MULTILINE)


def contract_of(example: str) -> Contract:
    """The contract of an example, a part of one made whole."""
    text = example if "task:" in example else f"task: example\n{example}"
    if not re.search(r"^(outcome|required|prohibited|budget|semantic):", text, re.MULTILINE):
        text += "budget: {turns: 1}\n"
    reading = read_contract(text)
    assert reading.findings == ()
    assert reading.contract is not None
    return reading.contract


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_every_example_is_read(number: int) -> None:
    contract = contract_of(EXAMPLES[number])

    for field, text, names in expressions_of(contract):
        assert expression_problem(text, names) == "", field


def test_the_planted_trials_of_the_examples_come_out_as_they_say() -> None:
    results = [
        result for example in EXAMPLES for result in grader_test_results(contract_of(example))
    ]

    assert len(results) == 5
    for result in results:
        assert result.is_met, result


def test_the_examples_show_every_field() -> None:
    fields = CONTRACT_SCHEMA["properties"]
    assert isinstance(fields, dict)

    for field in fields:
        assert any(re.search(rf"^{field}:", example, re.MULTILINE) for example in EXAMPLES), field


def test_the_examples_show_every_kind_of_rule_and_of_evidence() -> None:
    contracts = [contract_of(example) for example in EXAMPLES]

    assert {rule.kind for contract in contracts for rule in contract.variation} == set(RuleKind)
    assert {part for contract in contracts for part in contract.evidence} == set(EvidencePart)
    assert f"not decided: {', '.join(EvidencePart)}." in WORDS


@pytest.mark.parametrize(("text", "sentence"), ROWS, ids=range(len(ROWS)))
def test_every_mistake_in_the_table_is_said_so(text: str, sentence: str) -> None:
    whole = text if text.startswith("task") else f"{text}\ntask: example\n"
    if not text.startswith("budget"):
        whole += "\nbudget: {turns: 1}\n"

    assert [finding.sentence for finding in read_contract(whole).findings] == [sentence]


def test_the_table_has_rows() -> None:
    assert len(ROWS) == 7


def test_the_bounds_are_those_of_the_code() -> None:
    assert (
        f"A document has at most {MOST_DOCUMENT_BYTES // 1024} kB, {MOST_NODES:,} names and values, "
        f"and a depth of {DEEPEST}; a text at most {MOST_TEXT_BYTES // 1024**2} MB and "
        f"{MOST_DOCUMENTS} documents." in WORDS
    )
    assert f"After {MOST_TEXT_NODES:,} names and values of a text" in WORDS
    assert f"at most {MOST_PLANTED_STEPS:,} steps together" in WORDS
    assert f"mistake (up to {MOST_FINDINGS}) is reported" in WORDS
    assert f"At most {MOST_EXPRESSION_CHARS} characters." in WORDS
    assert f"`{SCHEMA_ID}`" in WORDS
