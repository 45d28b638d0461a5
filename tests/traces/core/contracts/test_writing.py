"""Contracts written as YAML come back as they were."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.traces.core.strategies import trees
from traces.core.canonical import canonical_text
from traces.core.contracts.documents import (
    DEEPEST,
    FAST_LOADER,
    PURE_LOADER,
    chunks_of,
    document_of,
)
from traces.core.contracts.reading import read_contract, read_contracts
from traces.core.contracts.writing import contract_text, fragment_text, join_documents
from traces.core.values import Json, JsonObject

DESIGN = (Path(__file__).parents[4] / "docs" / "design.md").read_text()

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12),
    st.text(alphabet=" \n:#-'\"\\{}[],&*!|>%@`~/.\r\t\x85\u2028\ufeffab1", max_size=12),
    st.sampled_from(["null", "~", "yes", "No", "1", "1.0", "0x1", "2024-01-01", "- a", "a: b"]),
)
numbers = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**9), 10**9, allow_nan=False),
)
values = trees(st.one_of(st.none(), st.booleans(), numbers, texts), texts)


def read_back(text: str, loader: type = FAST_LOADER) -> Json:
    (chunk,) = chunks_of(text)
    document = document_of(chunk, loader)
    assert document.findings.items == []
    assert document.is_whole
    return document.value


@given(st.dictionaries(texts, values, min_size=1, max_size=4))
@example({"a": "x\ny", "b": "x\n\ny\n", "c": "x\n\n", "d": " x\ny", "e": "x \ny", "f": "\nx"})
@example({"a" * 1_500: {"b" * 1_500: 1}, "c": [{"b" * 1_500: [1]}]})
@example({"required": [{"id": "a", "where": 'x == "y"'}], "outcome": [{"changes": {"/a/-": {}}}]})
@example({"a": {"changes": {}, "steps": []}, "b": [[], {}, [[1], [{"a": []}]]]})
@example({"a": [["x" * 120, {"b": "y" * 120, "c": ["z" * 120]}]], "k": "x\n" * 3 + "y" * 200})
def test_a_document_comes_back_equal(document: JsonObject) -> None:
    text = contract_text(document)

    for loader in (FAST_LOADER, PURE_LOADER):
        assert canonical_text(read_back(text, loader)) == canonical_text(document)


@given(values)
def test_a_fragment_comes_back_equal(value: Json) -> None:
    text = f"a:\n{_indented(fragment_text(value))}\n"

    assert canonical_text(read_back(text)) == canonical_text({"a": value})


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" if line else "" for line in text.split("\n"))


def test_the_example_of_the_design_is_written_as_it_stands_there() -> None:
    (example_text,) = re.findall(r"```yaml\n(task:.*?)```", DESIGN, re.DOTALL)
    document = read_back(example_text)
    assert isinstance(document, dict)

    shuffled = {name: document[name] for name in sorted(document)}
    written = contract_text(shuffled)

    assert list(read_back(written)) == list(document)  # type: ignore[call-overload]
    assert read_contract(written).contract == read_contract(example_text).contract
    assert "  - {rubric: truthful, mandatory: true}\n" in written
    assert "facts: {customer_id: C-17, order: A-2291}\n" in written
    assert "      /refunds/-: {order: A-2291, amount: 84.00, method: original_card}\n" in written


def test_what_no_contract_can_hold_gets_a_mark() -> None:
    assert read_back(contract_text({"a": "x\x00y\ud800"})) == {"a": "x␀y�"}


def test_an_empty_document_is_an_empty_mapping() -> None:
    assert contract_text({}) == "{}\n"
    assert fragment_text([]) == "[]"


@pytest.mark.parametrize("number", [Decimal("NaN"), float("inf")], ids=["nan", "inf"])
def test_numbers_that_are_none_are_an_error(number: Json) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        contract_text({"a": number})


def test_numbers_keep_the_digits_they_were_written_with() -> None:
    document: JsonObject = {"a": Decimal("84.00"), "b": 10**30, "c": 0.5, "d": 10**5_000}

    assert contract_text(document) == f"a: 84.00\nb: {10**30}\nc: 0.5\nd: 1e5000\n"


def test_documents_are_joined_and_parted_again() -> None:
    texts = ["task: a\nbudget: {turns: 1}\n", "# b\ntask: b\nbudget: {turns: 1}\n\n", "task: c\r\n"]

    joined = join_documents(texts)

    assert [reading.text for reading in read_contracts(joined)] == texts
    assert [reading.line for reading in read_contracts(joined)] == [1, 4, 9]


def test_a_text_without_its_last_line_break_gets_one() -> None:
    assert join_documents(["a: 1", "b: 2"]) == "a: 1\n---\nb: 2\n"


def test_a_deep_value_is_written_to_the_depth_that_is_read() -> None:
    value: Json = 1
    for _ in range(DEEPEST - 1):
        value = [value]

    assert read_back(contract_text({"a": value})) == {"a": value}
