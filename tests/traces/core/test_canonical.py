from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.strategies import json_values, numbers
from traces.core import canonical
from traces.core.canonical import (
    canonical_text,
    decimal_of,
    digest_of,
    equal,
    natural_key,
    nfc,
    number_text,
    value_of_text,
)
from traces.core.values import Json


def oracle(value: Json) -> object:
    """The one equality as plain Python equality, by another way than text."""
    if value is None or isinstance(value, bool | str):
        return (type(value).__name__, value)
    if isinstance(value, dict):
        return ("object", frozenset((key, oracle(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(oracle(item) for item in value))
    return ("number", Fraction(repr(value) if isinstance(value, float) else value))


@given(json_values, json_values)
def test_texts_are_equal_exactly_when_values_are(left: Json, right: Json) -> None:
    same = oracle(left) == oracle(right)
    assert (canonical_text(left) == canonical_text(right)) is same
    assert equal(left, right) is same


@given(numbers, numbers)
def test_numbers_have_one_text_each(left: float, right: float) -> None:
    assert (number_text(left) == number_text(right)) is (oracle(left) == oracle(right))
    assert canonical_text(left) == number_text(left)


@given(json_values)
def test_canonical_text_is_ascii_json_of_the_same_value(value: Json) -> None:
    text = canonical_text(value)
    assert text.isascii()
    assert oracle(value_of_text(text)) == oracle(value)
    assert canonical_text(value_of_text(text)) == text


@given(json_values)
def test_quick_way_and_plain_writer_agree(value: Json) -> None:
    assert canonical_text(value) == canonical._write(value)


@given(st.recursive(numbers, lambda inner: st.dictionaries(st.text(), inner), max_leaves=6))
def test_members_with_odd_names_keep_their_numbers(value: Json) -> None:
    assert canonical_text({"a": value, "b": '":1.0,'}) == canonical._write(
        {"a": value, "b": '":1.0,'}
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (Decimal("-0.00"), "0"),
        (True, "true"),
        (None, "null"),
        (1e22, "1" + "0" * 22),
        (1e15, "1" + "0" * 15),
        (Decimal("1.50"), "1.5"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.12345678901234567890"), "0.1234567890123456789"),
        (0.0001, "0.0001"),
        (0.00001, "1e-5"),
        (Decimal("0.000012"), "12e-6"),
        (9007199254740993, "9007199254740993"),
        ({"b": 1, "a": [2.0, "2.0"]}, '{"a":[2,"2.0"],"b":1}'),
        ({"cost": 0.0, "tiny": 1.5e-07, "q": "x"}, '{"cost":0,"q":"x","tiny":15e-8}'),
        ({'say "': 2.0}, '{"say \\"":2}'),
        ("\ud800\x00é", '"\\ud800\\u0000\\u00e9"'),
        ({"\udfff": 1, "\x00": 2}, '{"\\u0000":2,"\\udfff":1}'),
        (['{"a":1.0}', "e-07,"], '["{\\"a\\":1.0}","e-07,"]'),
    ],
)
def test_canonical_text_of_known_values(value: Json, text: str) -> None:
    assert canonical_text(value) == text


def test_numbers_of_many_digits_have_one_text_too() -> None:
    assert canonical_text(10**4300) == canonical_text(Decimal("1e4300")) == "1e4300"
    assert canonical_text(10**4299) == canonical_text(Decimal("1e4299")) == "1" + "0" * 4299
    assert canonical_text(-(10**4300) - 1) == "-1" + "0" * 4299 + "1e0"
    assert canonical_text({"a": Decimal("1e999999")}) == '{"a":1e999999}'


@pytest.mark.parametrize("value", [math.nan, math.inf, Decimal("NaN"), Decimal("-Infinity")])
def test_numbers_outside_json_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="NaN"):
        canonical_text([value])


def test_a_value_outside_json_is_refused() -> None:
    with pytest.raises(TypeError, match="set is not a JSON value"):
        canonical_text({1, 2})  # type: ignore[arg-type]


def test_nesting_of_64_levels_is_read() -> None:
    deep: Json = Decimal("1e-9")
    for _ in range(64):
        deep = [{"a": deep}]
    assert json.loads(canonical_text(deep)) is not None


def test_digest_has_16_bytes_and_follows_equality() -> None:
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2.0, "a": Decimal("1.0")})
    assert digest_of(1) != digest_of(True)
    assert len(digest_of(None)) == 16


def test_natural_key_sorts_numbers_by_value_and_before_text() -> None:
    names = ["b10", "10", "b2", "2", "01", "1", "a", "", "²", "1a", "9" * 5000, "x-1:10", "x-1:9"]
    assert sorted(names, key=natural_key) == [
        "01", "1", "2", "10", "9" * 5000, "", "1a", "a", "b2", "b10", "x-1:9", "x-1:10", "²",
    ]  # fmt: skip


@given(st.lists(st.text(st.sampled_from("a1٣0-"), max_size=4)))
def test_natural_key_is_total(names: list[str]) -> None:
    backwards = names[::-1]
    assert sorted(names, key=natural_key) == sorted(backwards, key=natural_key)


def test_nfc_merges_spellings_and_no_look_alikes() -> None:
    assert nfc("cafe\u0301") == nfc("caf\u00e9") == "caf\u00e9"
    assert nfc("renew\u200b") != nfc("renew")
    assert nfc("plain") == "plain"


def test_a_float_counts_as_its_shortest_spelling() -> None:
    assert decimal_of(0.1) == Decimal("0.1")
    assert decimal_of(2**53) == Decimal(2**53)
