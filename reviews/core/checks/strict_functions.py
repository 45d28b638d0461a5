"""What operators of an expression become: functions that say *unknown* instead of guessing.

CEL knows integers of 64 bits and doubles. A number that is neither comes in as the bytes of its
decimal text, and what CEL cannot hold at all as UNKNOWN; JSON has no bytes, so both are told from
any recorded value. Numbers compare and add as the decimals they are written as, so 0.1 + 0.2 is 0.3.
None of these functions raises: the library would print the values to the log.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache, wraps
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, core_schema

from traces.core.canonical import decimal_of, equal, number_text
from traces.core.values import Json

UNKNOWN: Final = b"\xff"
MOST_DIGITS: Final = 1_000  # of a number that is calculated or compared

_EXACT = Context(prec=60)
_INTEGERS = range(-(2**63), 2**63)
_MOST_DOUBLE = Decimal(10) ** 300


class _UnknownError(Exception):
    """The operands do not tell."""


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def answer(*operands: Any) -> Any:
        try:
            return function(*operands)
        except Exception:  # noqa: BLE001 - whatever the operands are, they do not tell
            return UNKNOWN

    return answer


def held_number(value: Any) -> Any:
    """A number as CEL holds it exactly, else the bytes of its text; UNKNOWN for absurd sizes."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and value in _INTEGERS:
        return value
    exact = Decimal(value)
    if abs(exact.adjusted()) > MOST_DIGITS or len(exact.as_tuple().digits) > MOST_DIGITS:
        return UNKNOWN
    if isinstance(value, Decimal) and _MOST_DOUBLE > exact > -_MOST_DOUBLE:
        near = float(exact)
        if Decimal(repr(near)) == exact:
            return near
    return str(exact).encode()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | bytes) and not isinstance(value, bool)


def _exact(value: Any) -> int | Decimal:
    if isinstance(value, bytes):
        if value == UNKNOWN:
            raise _UnknownError
        return Decimal(value.decode())
    if isinstance(value, int):
        return value
    exact = decimal_of(value)
    if not exact.is_finite():
        raise _UnknownError
    return exact


def _plain(value: Any) -> Json:
    """A value of the library as JSON again."""
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise _UnknownError
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return _exact(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise _UnknownError


def _same(left: Any, right: Any) -> bool:
    """Whether two values that can be compared are the same. Raises where they cannot."""
    if _is_number(left) and _is_number(right):
        return _exact(left) == _exact(right)
    if left is None or type(left) is not type(right):
        raise _UnknownError
    if isinstance(left, list | dict):
        return equal(_plain(left), _plain(right))
    return bool(left == right)


def _is_null(value: Any) -> bool:
    if value == UNKNOWN:
        raise _UnknownError
    return value is None


def _is_in(value: Any, holder: Any) -> bool:
    if isinstance(holder, dict):
        if not isinstance(value, str):
            raise _UnknownError
        return value in holder
    if not isinstance(holder, list):
        raise _UnknownError
    is_open = False
    for item in holder:
        try:
            if _same(value, item):
                return True
        except _UnknownError:
            is_open = True
    if is_open:
        raise _UnknownError
    return False


def _is_in_with_null(value: Any, holder: Any) -> bool:
    """Membership in a written list that names null: what is of none of its types is not in it."""
    if value == UNKNOWN:
        raise _UnknownError
    for item in holder:
        try:
            if value is item is None or _same(value, item):
                return True
        except _UnknownError:
            continue
    return False


def _order(left: Any, right: Any) -> int:
    one, other = left, right
    if _is_number(left) and _is_number(right):
        one, other = _exact(left), _exact(right)
    elif type(left) is not type(right) or not isinstance(left, str | bool | datetime | timedelta):
        raise _UnknownError
    return int(one > other) - int(one < other)


def _size(value: Any) -> int:
    if isinstance(value, str | list | dict):
        return len(value)
    raise _UnknownError


@lru_cache(maxsize=1024)
def search_of(pattern: str) -> Callable[[str], bool]:
    """Whether a text holds a pattern. Raises ValueError where it is none, or too large.

    The engine is the one inside the library, Rust's, which takes time in proportion to the text.
    The library compiles a pattern for each text, which costs a hundred times the search.
    """
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True)
    try:
        return SchemaValidator(schema).isinstance_python
    except SchemaError:
        raise ValueError(pattern) from None


def _matches(value: Any, pattern: str) -> bool:
    if not isinstance(value, str):
        raise _UnknownError
    return search_of(pattern)(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if _is_number(value):
        return number_text(_exact(value))
    raise _UnknownError


def _calculated(value: int | Decimal) -> Any:
    return held_number(value)


def _sum(left: Any, right: Any, sign: int) -> Any:
    if _is_number(left) and _is_number(right):
        one, other = _exact(left), _exact(right)
        if isinstance(one, int) and isinstance(other, int):
            return _calculated(one + sign * other)
        return _calculated(_EXACT.add(Decimal(one), sign * Decimal(other)))
    if isinstance(left, datetime | timedelta) and isinstance(right, datetime | timedelta):
        joined: Any = left
        return joined + right if sign > 0 else joined - right
    if sign > 0 and type(left) is type(right) and isinstance(left, str | list):
        added: Any = left
        return added + right
    raise _UnknownError


def _times(left: Any, right: Any) -> Any:
    if not (_is_number(left) and _is_number(right)):
        raise _UnknownError
    one, other = _exact(left), _exact(right)
    if isinstance(one, int) and isinstance(other, int):
        return _calculated(one * other)
    return _calculated(_EXACT.multiply(Decimal(one), Decimal(other)))


def _divided(left: Any, right: Any) -> Any:
    if not (_is_number(left) and _is_number(right)):
        raise _UnknownError
    one, other = _exact(left), _exact(right)
    if isinstance(one, int) and isinstance(other, int):
        whole = abs(one) // abs(other)
        return _calculated(whole if (one < 0) == (other < 0) else -whole)
    return _calculated(_EXACT.divide(Decimal(one), Decimal(other)))


def _remainder(left: Any, right: Any) -> Any:
    if not (_is_number(left) and _is_number(right)):
        raise _UnknownError
    one, other = _exact(left), _exact(right)
    if not (isinstance(one, int) and isinstance(other, int)):
        raise _UnknownError
    rest = abs(one) % abs(other)
    return _calculated(-rest if one < 0 else rest)


def _negative(value: Any) -> Any:
    if isinstance(value, timedelta):
        return -value
    if not _is_number(value):
        raise _UnknownError
    return _calculated(-_exact(value))


STRICT_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "eq_": _strict(_same),
    "is_null_": _strict(_is_null),
    "in_": _strict(_is_in),
    "in_null_": _strict(_is_in_with_null),
    "lt_": _strict(lambda left, right: _order(left, right) < 0),
    "le_": _strict(lambda left, right: _order(left, right) <= 0),
    "gt_": _strict(lambda left, right: _order(left, right) > 0),
    "ge_": _strict(lambda left, right: _order(left, right) >= 0),
    "size_": _strict(_size),
    "matches_": _strict(_matches),
    "string_": _strict(_text),
    "add_": _strict(lambda left, right: _sum(left, right, 1)),
    "sub_": _strict(lambda left, right: _sum(left, right, -1)),
    "mul_": _strict(_times),
    "div_": _strict(_divided),
    "mod_": _strict(_remainder),
    "neg_": _strict(_negative),
}
