"""Plain scalars by the core schema of YAML 1.2, numbers exact.

Only `true` and `false` are booleans (each with its capital forms), so `yes`, `no`, `on` and `off`
are texts, as are dates. A number with a point or an exponent is the decimal that it is written as.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from traces.core.values import Json

MOST_DIGITS: Final = 1_000
MOST_EXPONENT: Final = 400

_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE]([-+]?[0-9]+))?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class BadScalarError(ValueError):
    """A scalar that no contract may hold. `code` and the message say why."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def value_of_plain(text: str) -> Json:
    """The value of a scalar without quotes. Raises BadScalarError."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in "+-.0123456789":
        return text
    return _number_of(text)


def _number_of(text: str) -> Json:
    for pattern, base in ((_INTEGER, 10), (_OCTAL, 8), (_HEXADECIMAL, 16)):
        if pattern.fullmatch(text):
            if len(text) > MOST_DIGITS:
                raise _too_long()
            return int(text if base == 10 else text[2:], base)
    match = _DECIMAL.fullmatch(text)
    if match is not None:
        exponent = match[1] or "0"
        if len(text) > MOST_DIGITS or len(exponent) > 5 or abs(int(exponent)) > MOST_EXPONENT:
            raise _too_long()
        return Decimal(text)
    if _NOT_FINITE.fullmatch(text):
        raise BadScalarError("not-finite", "A number must be finite: .inf and .nan are not taken.")
    return text


def _too_long() -> BadScalarError:
    sentence = f"A number has at most {MOST_DIGITS} digits and an exponent to {MOST_EXPONENT}."
    return BadScalarError("number-too-long", sentence)
