"""Plain scalars by the core schema of YAML 1.2."""

from decimal import Decimal

import pytest

from traces.core.contracts.scalars import MOST_DIGITS, BadScalarError, value_of_plain
from traces.core.values import Json

VALUES: list[tuple[str, Json]] = [
    ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None), ("nULL", "nULL"),
    ("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False),
    ("FALSE", False), ("tRUE", "tRUE"), ("yes", "yes"), ("No", "No"), ("on", "on"), ("off", "off"),
    ("y", "y"), ("n", "n"),
    ("0", 0), ("-0", 0), ("+12", 12), ("-7", -7), ("007", 7), ("0o17", 15), ("0x1F", 31),
    ("0b1", "0b1"), ("1_000", "1_000"), ("0o8", "0o8"), ("0xg", "0xg"), ("-0x1", "-0x1"),
    ("12:30", "12:30"), ("1,000", "1,000"),
    ("84.00", Decimal("84.00")), (".5", Decimal("0.5")), ("5.", Decimal(5)), ("1e3", Decimal(1000)),
    ("-1.5E-2", Decimal("-0.015")), ("1e400", Decimal("1e400")), ("-", "-"), (".", "."), ("+", "+"),
    ("1e", "1e"), ("1.2.3", "1.2.3"), ("2024-01-01", "2024-01-01"),
    ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"), ("inf", "inf"), ("nan", "nan"), ("=", "="),
    ("<<", "<<"), ("9" * MOST_DIGITS, int("9" * MOST_DIGITS)), ("١", "١"), ("1²", "1²"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"), VALUES, ids=[text[:24] or "empty" for text, _ in VALUES]
)
def test_a_plain_scalar_has_one_value(text: str, value: Json) -> None:
    found = value_of_plain(text)

    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (".inf", "not-finite"),
        ("-.INF", "not-finite"),
        (".NaN", "not-finite"),
        ("9" * (MOST_DIGITS + 1), "number-too-long"),
        ("0x" + "f" * MOST_DIGITS, "number-too-long"),
        ("." + "1" * MOST_DIGITS, "number-too-long"),
        ("1e401", "number-too-long"),
        ("1e-401", "number-too-long"),
        ("1e" + "9" * 10_000, "number-too-long"),
    ],
    ids=lambda value: value[:12],
)
def test_a_number_that_is_none_or_too_long_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadScalarError) as caught:
        value_of_plain(text)

    assert caught.value.code == code


def test_a_decimal_keeps_its_digits() -> None:
    assert str(value_of_plain("84.00")) == "84.00"
