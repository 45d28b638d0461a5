"""One equality of JSON values, as a text: two values are equal exactly when their texts are.

The rule (docs/design.md section 3): objects unordered, lists ordered, 1 = 1.0 = 1e0 and -0.0 = 0, true
is not 1, null is not absent, text exact. A number means the decimal that it is written as, so the
float 0.1 is Decimal("0.1"), and integers keep every digit. Grouping, state differences, argument
checks and digests all use it.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from hashlib import blake2b
from json.encoder import encode_basestring_ascii
from unicodedata import normalize

from traces.core.values import Json

CANONICAL_VERSION = 1
"""Changes when any value's canonical text changes: every stored digest depends on it."""

MOST_PLAIN_DIGITS = 4300
"""A whole number with more digits is written as coefficient and exponent, as Python bounds int()."""

NaturalKey = tuple[bool, tuple[tuple[int, int, str], ...], str]

_PLAIN_POINT_EXPONENT = -4  # below it a fraction is written with an exponent, as repr(float) does
_WHOLE_FLOAT = re.compile(r"\.0(?:[,\]}]|\Z)")
_EXPONENTS = tuple(  # repr(float) writes a sign and two digits or more; a sign is found quickest
    re.compile(rf"{sign}(?<=e{sign})[0-9]{{2,3}}(?:[,\]}}]|\Z)") for sign in ("-", r"\+")
)
_NUMBER_HEAD = re.compile(r"(?:\A|[:,\[])-?[0-9.]+e?\Z")
_LONGEST_FLOAT = 30  # characters that repr(float) may need
# A member's float after a key that ends in a letter, digit or underscore. It cannot stand inside a
# string: there a quote is escaped, and an opening quote follows punctuation.
_MEMBER_FLOAT = re.compile(
    r'":(?<=[A-Za-z0-9_]":)(?:(-?[1-9][0-9]*|0)\.0|(-?[0-9.]+e[-+][0-9]+))(?=[,}])'
)
_RUNS = re.compile(r"([0-9]+)")


class _NeedsWriterError(Exception):
    """The value holds a number whose canonical text the C encoder cannot produce."""


def canonical_text(value: Json) -> str:
    """ASCII JSON text that is the same for equal values and for no others.

    Raises ValueError for NaN and Infinity, which no parser lets through.
    """
    try:
        text = _encode(value)
        if not _may_hold_other_spelling(text):
            return text
        text = _MEMBER_FLOAT.sub(_plain_member, text)
        if not _may_hold_other_spelling(text):
            return text
        return _encode(_with_plain_numbers(value))
    except (_NeedsWriterError, ValueError):
        return _write(value)


def digest_of(value: Json) -> bytes:
    """16 bytes of BLAKE2b over the canonical text."""
    return digest_of_text(canonical_text(value))


def digest_of_text(text: str) -> bytes:
    """16 bytes of BLAKE2b over an ASCII text."""
    return blake2b(text.encode("ascii"), digest_size=16).digest()


def value_of_text(text: str) -> Json:
    """The value of a canonical text; numbers with a point or an exponent are Decimal."""
    value: Json = json.loads(text, parse_float=Decimal)
    return value


def equal(left: Json, right: Json) -> bool:
    """Whether two values are the same JSON value."""
    return left is right or canonical_text(left) == canonical_text(right)


def nfc(name: str) -> str:
    """A tool name or identifier as it is compared. Look-alikes are never merged."""
    return name if name.isascii() else normalize("NFC", name)


def natural_key(text: str) -> NaturalKey:
    """Sort key: whole numbers first and by value, then text with its digit runs by value.

    Total: the text itself breaks ties such as "1" and "01".
    """
    runs = tuple(_run_key(run) for run in _RUNS.split(text) if run)
    return (not (text.isascii() and text.isdigit()), runs, text)


def number_text(value: float | Decimal) -> str:
    """The canonical text of a number; every number has exactly one. Raises ValueError for NaN."""
    if isinstance(value, int) and abs(value) < 10**18:
        return str(int(value))
    exact = decimal_of(value)
    if not exact.is_finite():
        raise ValueError("NaN and Infinity are not JSON")
    if not exact:
        return "0"
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits)).lstrip("0")
    coefficient = written.rstrip("0")
    exponent += len(written) - len(coefficient)
    return ("-" if sign else "") + _digits_text(coefficient, exponent)


def decimal_of(value: float | Decimal) -> Decimal:
    """The decimal that a number is written as; a float counts as its shortest spelling."""
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def _digits_text(coefficient: str, exponent: int) -> str:
    if exponent >= 0:
        if len(coefficient) + exponent <= MOST_PLAIN_DIGITS:
            return coefficient + "0" * exponent
        return f"{coefficient}e{exponent}"
    point = len(coefficient) + exponent
    if point > 0:
        return f"{coefficient[:point]}.{coefficient[point:]}"
    if point - 1 >= _PLAIN_POINT_EXPONENT:
        return f"0.{'0' * -point}{coefficient}"
    return f"{coefficient}e{exponent}"


def _may_hold_other_spelling(text: str) -> bool:
    # A string that holds JSON text may look the same: that costs a walk, never a wrong text.
    if ".0" in text and any(_ends_number(text, at) for at in _WHOLE_FLOAT.finditer(text)):
        return True
    return any(_ends_number(text, at) for exponent in _EXPONENTS for at in exponent.finditer(text))


def _ends_number(text: str, tail: re.Match[str]) -> bool:
    start = tail.start()
    return _NUMBER_HEAD.search(text, max(0, start - _LONGEST_FLOAT), start) is not None


def _plain_member(match: re.Match[str]) -> str:
    whole, written = match.groups()
    return f'":{whole or number_text(Decimal(written))}'


def _plain_number(value: float | Decimal) -> int | float:
    """The same number as the C encoder writes canonically, else _NeedsWriterError."""
    if isinstance(value, float):
        if value.is_integer():
            return int(value) if abs(value) < 1e15 else int(Decimal(repr(value)))
        if abs(value) < 1e-4:
            raise _NeedsWriterError
        return value
    text = number_text(value)
    if "e" in text:
        raise _NeedsWriterError
    if "." not in text:
        return int(text)
    near = float(text)
    if repr(near) != text:
        raise _NeedsWriterError
    return near


def _decimal_for_encoder(value: object) -> int | float:
    if isinstance(value, Decimal):
        return _plain_number(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


_encode = json.JSONEncoder(
    sort_keys=True,
    separators=(",", ":"),
    ensure_ascii=True,
    allow_nan=False,
    check_circular=False,
    default=_decimal_for_encoder,
).encode


def _with_plain_numbers(value: Json) -> Json:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return {key: _with_plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_plain_numbers(item) for item in value]
    if isinstance(value, float | Decimal):
        return _plain_number(value)
    return value


def _write(value: Json) -> str:
    """The canonical text without the C encoder: slow, and right for every number."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        items = (f"{encode_basestring_ascii(key)}:{_write(value[key])}" for key in sorted(value))
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return number_text(value)


def _run_key(run: str) -> tuple[int, int, str]:
    if run.isascii() and run.isdigit():
        digits = run.lstrip("0")
        return (0, len(digits), digits)
    return (1, 0, run)
