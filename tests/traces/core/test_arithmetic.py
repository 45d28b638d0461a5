from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core.arithmetic import LONGEST_EXPRESSION, fraction_text, value_of_expression


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1200", 1200),
        ("(350 + 250) * 2", 1200),
        ("2*(350+250)", 1200),
        (" 600 × 2 ", 1200),
        ("2400÷2", 1200),
        ("1300 − 100", 1200),
        ("1200.", 1200),
        (".5+.25", Fraction(3, 4)),
        ("0.1+0.2", Fraction(3, 10)),
        ("1/3", Fraction(1, 3)),
        ("-2^2", -4),
        ("(-2)**2", 4),
        ("2**-1", Fraction(1, 2)),
        ("2^3^2", 512),
        ("8/2/2", 2),
        ("8-2-2", 4),
        ("--+-1", -1),
        ("0^0", 1),
        ("0^5", 0),
        ("1**99999999999", 1),
        ("(-1)^99999999999", -1),
        ("(-1)^2", 1),
        ("2\n+\t2", 4),
    ],
)
def test_value_of_expression_of_known_sums(text: str, value: Fraction) -> None:
    assert value_of_expression(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "1,200", "1e3", "10%", "$5", "x", "1 2", "(1", "1)", "()", "1+", "*1", "1..2",
        "１", "2 ^ 0.5", "1/0", "1/(2-2)", "0^-1", "9**9**9", "9^9^9^9", "99999999^9999",
        "__import__('os')", "1;2", "1" * (LONGEST_EXPRESSION + 1), "(" * 200 + "1" + ")" * 200,
        "-" * 400 + "1", "2^4096*2^4096", "(2^4000)^2", "1/2^4000/2^4000", "\x00", "1\u00a0+1",
    ],
)  # fmt: skip
def test_value_of_expression_of_anything_else_is_none(text: str) -> None:
    assert value_of_expression(text) is None


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "(" * 500, "1" * 500, "9*" * 249 + "9", "1/7+" * 124 + "1", "2^2^2^2^2^2"],
)
def test_hostile_expressions_are_answered_quickly(text: str) -> None:
    start = time.perf_counter()
    value_of_expression(text)
    assert time.perf_counter() - start < 5


sums = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(" ".join),
        inner.map("({})".format),
        inner.map("-({})".format),
    ),
    max_leaves=8,
)


@given(sums)
def test_value_of_expression_agrees_with_python(text: str) -> None:
    written = "".join(
        f"Fraction({token})" if token.isdigit() else token
        for token in text.replace("(", " ( ").replace(")", " ) ").split()
    )
    try:
        expected = eval(written, {"Fraction": Fraction})
    except ZeroDivisionError:
        expected = None
    assert value_of_expression(text) == expected


@given(st.text(st.sampled_from("0123456789.+-*/^()×÷− "), max_size=60))
def test_value_of_expression_never_raises(text: str) -> None:
    value_of_expression(text)


@given(st.fractions(), st.fractions())
def test_fraction_text_is_one_text_a_value(left: Fraction, right: Fraction) -> None:
    assert Fraction(fraction_text(left)) == left
    assert (fraction_text(left) == fraction_text(right)) is (left == right)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1200), "1200"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(1, 8), "0.125"),
        (Fraction(1, 50), "0.02"),
        (Fraction(-1, 3), "-1/3"),
        (Fraction(1, 2**31), f"1/{2**31}"),
        (Fraction(0), "0"),
    ],
)
def test_fraction_text_of_known_values(value: Fraction, text: str) -> None:
    assert fraction_text(value) == text
