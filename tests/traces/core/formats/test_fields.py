from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from traces.core.formats.fields import (
    RefusedError,
    amount,
    identifier,
    instant,
    kind_of,
    optional_identifier,
    seconds_between,
    text_or_json,
    token_count,
)
from traces.core.limits import DEFAULT_LIMITS


class Warnings(list[tuple[str, str]]):
    def __call__(self, code: str, place: str, sentence: str) -> None:
        assert sentence.endswith(".")
        self.append((code, place))


def test_kind_of_names_every_kind_of_value() -> None:
    assert [kind_of(value) for value in (None, True, "", {}, [], 1, 1.5, Decimal(1))] == [
        "null", "true or false", "text", "an object", "a list", "a number", "a number", "a number",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (3, "3"), (3.0, "3"), (-1, "-1"), ("cafe\u0301", "café"), ("x" * 512, "x" * 512),
     ("a\nb", "a\nb")],
)  # fmt: skip
def test_identifier_is_text_or_a_whole_number(value: Any, text: str) -> None:
    assert identifier(value, "task_id", DEFAULT_LIMITS) == text
    assert optional_identifier(value, "task_id", DEFAULT_LIMITS) == text


@pytest.mark.parametrize(
    ("value", "code", "sentence"),
    [
        (None, "missing-field", "task_id is missing."),
        ("", "missing-field", "task_id is empty."),
        (True, "wrong-type", "task_id must be text or a whole number, this is true or false."),
        (1.5, "wrong-type", "task_id must be text or a whole number, this is a number."),
        ({}, "wrong-type", "task_id must be text or a whole number, this is an object."),
        ("x" * 513, "identifier-too-long", "task_id too long (max 512)."),
        ("a\x00", "bad-identifier", "task_id holds a NUL character or half of a surrogate pair."),
        ("\ud800", "bad-identifier", "task_id holds a NUL character or half of a surrogate pair."),
    ],
)
def test_identifier_that_names_nothing_is_refused(value: Any, code: str, sentence: str) -> None:
    with pytest.raises(RefusedError) as error:
        identifier(value, "task_id", DEFAULT_LIMITS)
    assert (error.value.finding.code, error.value.finding.sentence) == (code, sentence)


def test_optional_identifier_may_be_missing() -> None:
    assert optional_identifier(None, "run", DEFAULT_LIMITS) is None
    assert optional_identifier("", "run", DEFAULT_LIMITS) is None


def test_text_or_json_keeps_text() -> None:
    assert [text_or_json(v) for v in (None, "a", {"b": 1}, True)] == ["", "a", '{"b":1}', "true"]


@pytest.mark.parametrize(
    ("value", "exact", "warnings"),
    [
        (None, None, []),
        (0.1, Decimal("0.1"), []),
        (3, Decimal(3), []),
        (Decimal("0.10000000000000000001"), Decimal("0.10000000000000000001"), []),
        (-0.01, None, [("out-of-range", "cost")]),
        (10**13, None, [("out-of-range", "cost")]),
        (Decimal("1e999"), None, [("out-of-range", "cost")]),
        (Decimal("1e-999"), None, [("out-of-range", "cost")]),
        (Decimal("1." + "3" * 500), None, [("out-of-range", "cost")]),
        ("0.1", None, [("not-a-number", "cost")]),
        (True, None, [("not-a-number", "cost")]),
    ],
)
def test_amount_is_exact_or_missing(value: Any, exact: Decimal | None, warnings: list[Any]) -> None:
    seen = Warnings()
    assert amount(value, "cost", seen, most=Decimal(10**12)) == exact
    assert seen == warnings


@pytest.mark.parametrize(
    ("value", "count", "codes"),
    [(5, 5, []), (5.0, 5, []), (None, None, []), (5.5, None, ["not-a-number"]),
     (-1, None, ["out-of-range"]), ("5", None, ["not-a-number"]), (10**16, None, ["out-of-range"])],
)  # fmt: skip
def test_token_count_is_whole_or_missing(value: Any, count: int | None, codes: list[str]) -> None:
    seen = Warnings()
    assert token_count(value, "tokens", seen) == count
    assert [code for code, _ in seen] == codes


AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "at", "codes"),
    [
        ("2026-03-02T09:00:00Z", AT, []),
        ("2026-03-02T10:00:00+01:00", AT, []),
        (" 2026-03-02T09:00:00Z ", AT, []),
        ("2026-03-02T09:00:00", AT, ["naive-time"]),
        (1772442000, AT, []),
        (1772442000.0, AT, []),
        ("1772442000", AT, []),
        (1772442000000, AT, []),
        (1772442000000000, AT, []),
        ("1772442000000000000", AT, []),
        (0, datetime(1970, 1, 1, tzinfo=UTC), []),
        (None, None, []),
        ("", None, []),
        ("yesterday", None, ["malformed-time"]),
        ("2026-03-02T23:59:60Z", None, ["malformed-time"]),
        ("0001-01-01T00:00:00+14:00", None, ["malformed-time"]),
        (10**30, None, ["malformed-time"]),
        (Decimal("1e400"), None, ["malformed-time"]),
        (True, None, ["malformed-time"]),
        ({}, None, ["malformed-time"]),
    ],
)
def test_instant_is_in_utc_or_missing(value: Any, at: datetime | None, codes: list[str]) -> None:
    seen = Warnings()
    assert instant(value, "started_at", seen) == at
    assert [code for code, _ in seen] == codes


def test_seconds_between_is_unknown_when_it_would_be_negative() -> None:
    seen = Warnings()
    later = datetime(2026, 3, 2, 9, 0, 41, 500000, tzinfo=UTC)
    assert seconds_between(AT, later, seen) == Decimal("41.5")
    assert seconds_between(None, later, seen) is None
    assert seconds_between(AT, None, seen) is None
    assert seen == []
    assert seconds_between(later, AT, seen) is None
    assert seen == [("negative-duration", "ended_at")]
