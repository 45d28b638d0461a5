"""Single fields of a record: identifiers, amounts, times. What cannot be read is named.

A field without which a record has no identity is refused; an optional measure that cannot be
read is missing, with a warning, and never 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from traces.core.canonical import canonical_text, nfc
from traces.core.limits import Limits
from traces.core.records import Finding
from traces.core.text_marks import has_lone_surrogate
from traces.core.values import Json

Warn = Callable[[str, str, str], None]  # code, place, sentence

MOST_COST: Final = Decimal(10) ** 12  # USD
MOST_SCORE: Final = Decimal(10) ** 30
MOST_TOKENS: Final = 10**15
MOST_DECIMALS: Final = 400

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_TEXT = re.compile(r"-?[0-9]{9,20}(?:\.[0-9]{1,9})?\Z")
_EPOCH_UNITS: Final = ((10**17, 10**9), (10**14, 10**6), (10**11, 10**3), (0, 1))


class RefusedError(Exception):
    """The record cannot be taken. `finding` says why, for people."""

    def __init__(self, code: str, place: str, sentence: str) -> None:
        super().__init__(sentence)
        self.finding = Finding(code, place, sentence)


def kind_of(value: Json) -> str:
    """What a JSON value is, in words: `an object`, `a number`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return "a number"


def identifier(value: Json, place: str, limits: Limits) -> str:
    """An identifier as text in NFC. Whole numbers are read as their text. Raises RefusedError."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        if value is None:
            raise RefusedError("missing-field", place, f"{place} is missing.")
        sentence = f"{place} must be text or a whole number, this is {kind_of(value)}."
        raise RefusedError("wrong-type", place, sentence)
    if not value:
        raise RefusedError("missing-field", place, f"{place} is empty.")
    if len(value) > limits.identifier_chars:
        sentence = f"{place} too long (max {limits.identifier_chars})."
        raise RefusedError("identifier-too-long", place, sentence)
    if "\x00" in value or has_lone_surrogate(value):
        sentence = f"{place} holds a NUL character or half of a surrogate pair."
        raise RefusedError("bad-identifier", place, sentence)
    return nfc(value)


def optional_identifier(value: Json, place: str, limits: Limits) -> str | None:
    """As `identifier`, with None for null and the empty text. Raises RefusedError."""
    return None if value is None or value == "" else identifier(value, place, limits)


def text_or_json(value: Json) -> str:
    """Text as it is, null as the empty text, anything else as its JSON text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_text(value)


def amount(
    value: Json, place: str, warn: Warn, *, most: Decimal, least: Decimal = Decimal(0)
) -> Decimal | None:
    """A number as the decimal that it was written as; None with a warning when it is none."""
    if value is None:
        return None
    if isinstance(value, bool | str | list | dict):
        warn("not-a-number", place, f"{place} is not a number: read as missing.")
        return None
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not least <= exact <= most:
        warn("out-of-range", place, f"{place} is out of range: read as missing.")
        return None
    if exact.adjusted() < -MOST_DECIMALS or len(exact.as_tuple().digits) > MOST_DECIMALS:
        warn("out-of-range", place, f"{place} has too many decimals: read as missing.")
        return None
    return exact


def token_count(value: Json, place: str, warn: Warn) -> int | None:
    """A count of tokens; None with a warning when it is not a whole number of at least 0."""
    exact = amount(value, place, warn, most=Decimal(MOST_TOKENS))
    if exact is None:
        return None
    if exact != int(exact):
        warn("not-a-number", place, f"{place} is not a whole number: read as missing.")
        return None
    return int(exact)


def instant(value: Json, place: str, warn: Warn) -> datetime | None:
    """A time in UTC: ISO 8601, or seconds, milli-, micro- or nanoseconds since 1970.

    A time without a zone is read as UTC, with a warning. None with a warning when malformed.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and not _EPOCH_TEXT.match(value):
            return _iso_instant(value, place, warn)
        if isinstance(value, bool | list | dict):
            raise _not_a_time()
        return _epoch_instant(Decimal(str(value)))
    except (ValueError, OverflowError, ArithmeticError):
        warn("malformed-time", place, f"{place} is not a time: read as missing.")
        return None


def _not_a_time() -> ValueError:
    return ValueError("not a time")


def _iso_instant(text: str, place: str, warn: Warn) -> datetime:
    at = datetime.fromisoformat(text.strip())
    if at.tzinfo is None:
        warn("naive-time", place, f"{place} has no time zone: read as UTC.")
        return at.replace(tzinfo=UTC)
    return at.astimezone(UTC)


def _epoch_instant(number: Decimal) -> datetime:
    if abs(number) > 10**20:
        raise OverflowError
    per_second = next(unit for least, unit in _EPOCH_UNITS if abs(number) >= least)
    return _EPOCH + timedelta(microseconds=int(number * 1_000_000 / per_second))


def seconds_between(started: datetime | None, ended: datetime | None, warn: Warn) -> Decimal | None:
    """The seconds from start to end; None when either is missing, or with a warning reversed."""
    if started is None or ended is None:
        return None
    if ended < started:
        sentence = "ended_at lies before started_at: the duration is unknown."
        warn("negative-duration", "ended_at", sentence)
        return None
    return Decimal((ended - started) // timedelta(microseconds=1)) / 1_000_000
