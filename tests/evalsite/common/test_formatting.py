from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsite.common.formatting import (
    bytes_text,
    count_text,
    counted,
    duration_text,
    limit_text,
    money_text,
    relative_text,
    time_text,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("n", "text"),
    [(0, "0"), (999, "999"), (1000, "1,000"), (-1234567, "-1,234,567")],
)
def test_count_text(n: int, text: str) -> None:
    assert count_text(n) == text


def test_counted_has_its_plural() -> None:
    texts = [counted(n, "trial") for n in (0, 1, 2)]

    assert texts == ["0 trials", "1 trial", "2 trials"]
    assert counted(2, "match", "matches") == "2 matches"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        ("0", "0 s"),
        ("0.44", "0.4 s"),
        ("9.877", "9.9 s"),
        ("10", "10 s"),
        ("59.99", "59 s"),
        ("60", "1 min"),
        ("200", "3 min 20 s"),
        ("3599.9", "59 min 59 s"),
        ("3600", "1 h"),
        ("7500", "2 h 5 min"),
        ("86399", "23 h 59 min"),
        ("273600", "3 d 4 h"),
        ("86400000", "1,000 d"),
        ("-30", "-30 s"),
    ],
)
def test_duration_text(seconds: str | None, text: str) -> None:
    assert duration_text(None if seconds is None else Decimal(seconds)) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "-"),
        ("0", "$0.00"),
        ("1", "$1.00"),
        ("1.0000", "$1.00"),
        ("0.9999999999999999", "$1.00"),
        ("0.94999", "$0.95"),
        ("0.041", "$0.041"),
        ("0.0123", "$0.0123"),
        ("0.19", "$0.19"),
        ("0.5", "$0.50"),
        ("0.00000123", "$0.0000012"),
        ("12345.678", "$12,345.68"),
        ("-2.5", "-$2.50"),
        ("1E-50", "$0.00"),
    ],
)
def test_money_text(amount: str | None, text: str) -> None:
    assert money_text(None if amount is None else Decimal(amount)) == text


def test_money_text_of_an_amount_that_is_too_long_to_round() -> None:
    assert money_text(Decimal("1E+250")).startswith("$1")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9))
def test_money_and_durations_never_raise(value: Decimal) -> None:
    assert money_text(value)
    assert duration_text(value)


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (20_480, "20.5 kB"),
        (999_949, "999.9 kB"),
        (999_999, "1.0 MB"),
        (1_400_000_000, "1.4 GB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_bytes_text(n: int, text: str) -> None:
    assert bytes_text(n) == text


def test_time_text_is_in_utc() -> None:
    oslo = timezone(timedelta(hours=1))

    assert time_text(datetime(2026, 11, 30, 13, tzinfo=oslo)) == "2026-11-30 12:00:00 UTC"
    assert time_text(None) == "-"


@pytest.mark.parametrize(
    ("ago", "text"),
    [
        (timedelta(0), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(seconds=-59), "just now"),
        (timedelta(minutes=5), "5 min ago"),
        (timedelta(hours=23, minutes=59), "23 h ago"),
        (timedelta(days=29), "29 d ago"),
        (timedelta(days=-2), "in 2 d"),
        (timedelta(days=30), "2026-10-31"),
        (timedelta(days=-32), "2027-01-01"),
    ],
)
def test_relative_text(ago: timedelta, text: str) -> None:
    assert relative_text(NOON - ago, now=NOON) == text


def test_relative_text_of_nothing() -> None:
    assert relative_text(None, now=NOON) == "-"


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (512 * 1024 * 1024, "512 MiB"),
        (2 * 1024**3, "2 GiB"),
        (64 * 1024, "64 KiB"),
        (1000, "1.0 kB"),
        (0, "0 B"),
        (1024 * 1024 + 1, "1.0 MB"),
    ],
)
def test_limit_text_is_in_the_units_of_the_setting(n: int, text: str) -> None:
    assert limit_text(n) == text
