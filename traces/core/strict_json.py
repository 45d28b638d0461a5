"""JSON read strictly: what Python's parser lets through in silence is an error that names its place.

Refused: duplicate keys, NaN and Infinity, nesting, keys and integers beyond the limits, and any
encoding but UTF-8. A number that a float cannot hold exactly becomes a Decimal. The fast parser
does the work; only when something is wrong a slower second pass finds out where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, cast

from traces.core.limits import DEFAULT_LIMITS, Limits
from traces.core.values import Json

BOM: Final = b"\xef\xbb\xbf"
MOST_TOKENS: Final = 2_000_000  # that the second pass looks at
MOST_CONSTANTS: Final = 100_000  # that are looked at one by one
WIDE: Final = 1e30
MOST_EXPANSION: Final = 4
MOST_EXPONENT_DIGITS: Final = 2000
MOST_PLACE_CHARS: Final = 120

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}\Z")
_TOKEN = re.compile(
    r"[ \t\n\r]*+(?:"
    r'(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")'
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)"
    r"|(?P<mark>[\[\]{},:])"
    r"|(?P<word>true|false|null)"
    r"|(?P<constant>NaN|-?Infinity)"
    r"|(?P<end>\Z)"
    r")"
)
_EXPONENT = re.compile(r"[eE]\+?([0-9]{1,9})")
_STRING_OR_OPENING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{])', re.DOTALL)
_CUT_TAIL = re.compile(
    r"[ \t\n\r]*+(?:"
    r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+'
    r"(?:\\(?:u[0-9a-fA-F]{0,3})?)?"
    r"|-|\.|\.?[eE][-+]?|tr?u?|fa?l?s?|nu?l?"
    r")\Z"
)


class StrictJsonError(ValueError):
    """The text is not JSON as this project reads it. `sentence` is for people and complete."""

    def __init__(self, code: str, place: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.place = place
        self.sentence = sentence


class _RefusedError(ValueError):
    """The fast parser met something that the second pass must name."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _WideNumberError(ValueError):
    """The fast parser met a number that is long when it is written out."""


class _NonFinite:
    """Stands for NaN or Infinity until its place has been looked at."""


_NON_FINITE: Any = _NonFinite()


def loads(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Json:
    """The JSON value of UTF-8 bytes; a byte order mark is left out. Raises StrictJsonError."""
    return loads_text(decoded(data), limits)


def loads_text(text: str, limits: Limits = DEFAULT_LIMITS) -> Json:
    """The JSON value of a text. Raises StrictJsonError."""
    return _parsed(text, limits, constants_allowed=False)


def loads_tolerant(
    text: str, tolerated: Callable[[str], bool], limits: Limits = DEFAULT_LIMITS
) -> tuple[Json, tuple[str, ...]]:
    """The value, with NaN and Infinity read as null at the tolerated places, and those places.

    Raises StrictJsonError, for NaN and Infinity at any other place too.
    """
    try:
        return _parsed(text, limits, constants_allowed=False), ()
    except StrictJsonError as error:
        if error.code != "not-finite" or _n_constants(text) > MOST_CONSTANTS:
            raise
    return _without_constants(_parsed(text, limits, constants_allowed=True), tolerated)


def decoded(data: bytes) -> str:
    """The text of UTF-8 bytes without its byte order mark. Raises StrictJsonError."""
    try:
        data = data.removeprefix(BOM)
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        if looks_like_utf16(data):
            raise _utf16() from None
        sentence = f"The text is not UTF-8: byte {error.start + 1} cannot be read."
        raise StrictJsonError("not-utf8", "", sentence) from None
    if "\x00" in text[:2]:
        raise _utf16()
    return text


def looks_like_utf16(head: bytes) -> bool:
    """Whether bytes that start a JSON text are UTF-16 or UTF-32."""
    return head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in head[:2]


def member_place(parent: str, key: str) -> str:
    """The place of an object's member: `verdicts[0].verdict`, odd keys in quotes."""
    if not _PLAIN_KEY.match(key):
        return f"{parent}[{json.dumps(key if len(key) <= 100 else key[:99] + '…')}]"
    return f"{parent}.{key}" if parent else key


def _n_constants(text: str) -> int:
    return text.count("NaN") + text.count("Infinity")


def _utf16() -> StrictJsonError:
    return StrictJsonError(
        "utf-16", "", "The text is UTF-16 or UTF-32; only UTF-8 is read. Save it as UTF-8."
    )


def _parsed(text: str, limits: Limits, *, constants_allowed: bool) -> Json:
    if len(text) > limits.containers and _holds_too_many_containers(text, limits):
        sentence = f"Too many objects and lists (max {limits.containers})."
        raise StrictJsonError("too-many-values", "", sentence)
    try:
        try:
            value = _decoder(limits.keys, limits.integer_digits, constants_allowed, False)(text)
        except _WideNumberError:
            if _stands_for_too_many_digits(text):
                raise _first_fault(text, limits, constants_allowed) or _too_wide() from None
            value = _decoder(limits.keys, limits.integer_digits, constants_allowed, True)(text)
    except StrictJsonError:
        raise
    except (RecursionError, ValueError) as error:
        # ValueError also stands for an integer with more digits than Python converts.
        raise _first_fault(text, limits, constants_allowed) or _without_place(
            error, limits
        ) from None
    if _may_be_deep(text, limits.depth) and _is_deep(value, limits.depth):
        raise _first_fault(text, limits, constants_allowed) or _too_deep("", limits)
    if _may_hold_long_integer(text, limits):
        fault = _first_fault(text, limits, constants_allowed)
        if fault is not None:
            raise fault
    return value


def _holds_too_many_containers(text: str, limits: Limits) -> bool:
    if text.count("{") + text.count("[") <= limits.containers:
        return False
    n = sum(1 for match in _STRING_OR_OPENING.finditer(text) if match[1])
    return n > limits.containers


def _stands_for_too_many_digits(text: str) -> bool:
    """Whether exponents would make the text several times as long where numbers are written out."""
    exponents = (int(match[1]) for match in _EXPONENT.finditer(text))
    return sum(exponents) > MOST_EXPANSION * len(text) + MOST_EXPONENT_DIGITS


def _too_wide() -> StrictJsonError:
    sentence = "Number too long: exponents stand for too many digits in a text of this length."
    return StrictJsonError("number-too-long", "", sentence)


def _without_place(error: Exception, limits: Limits) -> StrictJsonError:
    """For a text that the second pass gave up on."""
    if isinstance(error, RecursionError):
        return _too_deep("", limits)
    code = error.code if isinstance(error, _RefusedError) else "not-json"
    sentence = f"The text is not JSON as it must be ({code}); it is too large to say where."
    return StrictJsonError(code, "", sentence)


@lru_cache(maxsize=16)
def _decoder(  # all arguments are one cache key
    most_keys: int,
    most_digits: int,
    constants_allowed: bool,  # noqa: FBT001
    wide_numbers_allowed: bool,  # noqa: FBT001
) -> Callable[[str], Json]:
    def to_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        members = dict(pairs)
        if len(members) == len(pairs) <= most_keys:
            return members
        raise _RefusedError("duplicate-key" if len(pairs) <= most_keys else "too-many-keys")

    def to_number(text: str) -> float | Decimal:
        value = float(text)
        if not (wide_numbers_allowed or -WIDE < value < WIDE):
            raise _WideNumberError
        if repr(value) == text:
            return value
        if _is_out_of_range(text, most_digits):
            raise _RefusedError("number-too-long")
        exact = Decimal(text)
        return value if exact == Decimal(repr(value)) else exact

    def to_constant(_: str) -> Any:
        if constants_allowed:
            return _NON_FINITE
        raise _RefusedError("not-finite")

    decoder: Any = json.JSONDecoder(
        object_pairs_hook=to_object, parse_float=to_number, parse_constant=to_constant
    )
    scan = decoder.scan_once

    def decode(text: str) -> Json:
        try:
            value, end = scan(text, 0)
        except StopIteration:
            return cast("Json", decoder.decode(text))
        return cast("Json", value if end == len(text) else decoder.decode(text))

    return decode


def _is_out_of_range(text: str, most_digits: int) -> bool:
    mantissa, _, exponent = text.lower().partition("e")
    return len(mantissa) > most_digits or (
        # An exponent of this size in a Decimal would make int() of it run for hours.
        bool(exponent) and (len(exponent) > 9 or abs(int(exponent)) > most_digits)
    )


def _may_be_deep(text: str, most: int) -> bool:
    # Counting pays for the many small texts, such as arguments; a large one holds enough anyway.
    return len(text) > 2000 or text.count("{") + text.count("[") > most


def _is_deep(value: Any, most: int) -> bool:
    if value.__class__ not in _CONTAINERS:
        return False
    level: list[Any] = [value]
    for _ in range(most):
        below: list[Any] = []
        for holder in level:
            items = holder.values() if isinstance(holder, dict) else holder
            below += [item for item in items if item.__class__ in _CONTAINERS]
        if not below:
            return False
        level = below
    return True


_CONTAINERS: Final[frozenset[type]] = frozenset((dict, list))


def _may_hold_long_integer(text: str, limits: Limits) -> bool:
    # A run of more digits than the limit covers at least one whole aligned block of half of it.
    if len(text) <= limits.integer_digits:
        return False
    block = max(limits.integer_digits // 2, 1)
    return any(text[at : at + block].isdigit() for at in range(0, len(text), block))


def _without_constants(
    value: Any, tolerated: Callable[[str], bool]
) -> tuple[Json, tuple[str, ...]]:
    """The value with null for each tolerated NaN or Infinity. Raises StrictJsonError."""
    if value is _NON_FINITE:
        raise _not_finite("")
    found: list[str] = []
    waiting: list[tuple[Any, str]] = [(value, "")]
    while waiting:
        holder, place = waiting.pop()
        for key, item in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if item is not _NON_FINITE and item.__class__ not in _CONTAINERS:
                continue
            at = f"{place}[{key}]" if isinstance(key, int) else member_place(place, key)
            if item is not _NON_FINITE:
                waiting.append((item, at))
            elif tolerated(at):
                found.append(at)
                holder[key] = None
            else:
                raise _not_finite(at)
    return value, tuple(sorted(found))


def _not_finite(place: str) -> StrictJsonError:
    return StrictJsonError(
        "not-finite", _short(place), f"NaN or Infinity{_at(place)} is not a JSON number."
    )


def _too_deep(place: str, limits: Limits) -> StrictJsonError:
    return StrictJsonError(
        "too-deep", _short(place), f"Nested too deeply (max {limits.depth}){_at(place)}."
    )


def _short(place: str) -> str:
    if len(place) <= MOST_PLACE_CHARS:
        return place
    return f"{place[: MOST_PLACE_CHARS // 2]}…{place[-MOST_PLACE_CHARS // 2 :]}"


def _at(place: str) -> str:
    return f" at {_short(place)}" if place else ""


class _Frame:
    """An open object or array of the second pass."""

    __slots__ = ("is_object", "key", "keys", "n")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.keys: set[str] = set()
        self.key = ""
        self.n = 0


def _first_fault(text: str, limits: Limits, constants_allowed: bool) -> StrictJsonError | None:  # noqa: FBT001
    """The first thing in the text that is refused. Iterative: no nesting can exhaust the stack."""
    return _SecondPass(text, limits, constants_allowed=constants_allowed).fault()


class _SecondPass:
    def __init__(self, text: str, limits: Limits, *, constants_allowed: bool) -> None:
        self.text = text
        self.limits = limits
        self.constants_allowed = constants_allowed
        self.frames: list[_Frame] = []
        self.expects = "value"  # value | value-or-close | key | key-or-close | colon | next | end

    def fault(self) -> StrictJsonError | None:
        position = 0
        for _ in range(MOST_TOKENS):
            match = _TOKEN.match(self.text, position)
            if match is None:
                return self._no_token(position)
            kind, position = match.lastgroup or "", match.end()
            if kind == "end":
                return None if self.expects == "end" else self._cut_short()
            fault = self._take(kind, match[kind], match.start(kind))
            if fault is not None:
                return fault
        return None

    def place(self) -> str:
        """Where the pass stands: the member or element that it expects or is in."""
        holder = self.holder()
        if not self.frames or self.expects.startswith("key"):
            return holder
        return self._inside(holder, self.frames[-1])

    def holder(self) -> str:
        """The place of the innermost open object or array."""
        place = ""
        for frame in self.frames[:-1]:
            place = self._inside(place, frame)
        return place

    def _inside(self, place: str, frame: _Frame) -> str:
        return member_place(place, frame.key) if frame.is_object else f"{place}[{frame.n}]"

    def _take(self, kind: str, written: str, position: int) -> StrictJsonError | None:
        expects = self.expects
        if expects in ("key", "key-or-close") and kind == "string":
            return self._key(written)
        if expects == "colon" and written == ":":
            self.expects = "value"
        elif expects == "next" and written == ",":
            frame = self.frames[-1]
            frame.n += 1
            self.expects = "key" if frame.is_object else "value"
        elif expects in ("next", "key-or-close", "value-or-close") and written in ("]", "}"):
            return self._close(written, position)
        elif expects in ("value", "value-or-close") and written in ("[", "{"):
            return self._open(written)
        elif expects in ("value", "value-or-close") and kind != "mark":
            return self._scalar(kind, written)
        else:
            return self._unexpected(position)
        return None

    def _key(self, written: str) -> StrictJsonError | None:
        frame = self.frames[-1]
        key = json.loads(written)
        if key in frame.keys:
            place = member_place(self.holder(), key)
            sentence = f"Duplicate key {json.dumps(_short(key))}{_at(self.holder())}."
            return StrictJsonError("duplicate-key", _short(place), sentence)
        frame.keys.add(key)
        frame.key = key
        if len(frame.keys) > self.limits.keys:
            place = self.holder()
            sentence = f"An object has too many keys (max {self.limits.keys}){_at(place)}."
            return StrictJsonError("too-many-keys", _short(place), sentence)
        self.expects = "colon"
        return None

    def _open(self, written: str) -> StrictJsonError | None:
        if len(self.frames) >= self.limits.depth:
            return _too_deep(self.place(), self.limits)
        self.frames.append(_Frame(is_object=written == "{"))
        self.expects = "key-or-close" if written == "{" else "value-or-close"
        return None

    def _close(self, written: str, position: int) -> StrictJsonError | None:
        if self.frames[-1].is_object != (written == "}"):
            return self._unexpected(position)
        self.frames.pop()
        self._value_done()
        return None

    def _scalar(self, kind: str, written: str) -> StrictJsonError | None:
        if kind == "constant" and not self.constants_allowed:
            return _not_finite(self.place())
        if kind == "number":
            most = self.limits.integer_digits
            digits = written.lstrip("-")
            if len(digits) > most if digits.isdigit() else _is_out_of_range(written, most):
                place = self.place()
                sentence = f"Number too long or out of range (max {most} digits){_at(place)}."
                return StrictJsonError("number-too-long", _short(place), sentence)
        self._value_done()
        return None

    def _value_done(self) -> None:
        self.expects = "next" if self.frames else "end"

    def _no_token(self, position: int) -> StrictJsonError:
        if self.expects != "end" and _is_cut(self.text, position):
            return self._cut_short()
        return self._unexpected(position)

    def _cut_short(self) -> StrictJsonError:
        if not self.text.strip(" \t\r\n"):
            return StrictJsonError("empty", "", "The text is empty.")
        place = self.place()
        return StrictJsonError(
            "cut-short", _short(place), f"The text is cut short: it ends{_at(place)}, unfinished."
        )

    def _unexpected(self, position: int) -> StrictJsonError:
        rest = self.text[position:].lstrip(" \t\r\n")
        column = len(self.text) - len(rest) + 1
        place = self.place()
        shown = json.dumps(rest[:1])
        if self.expects == "end":
            sentence = f"Not JSON: there is more after the value, {shown} at character {column}."
            return StrictJsonError("trailing-data", "", sentence)
        sentence = f"Not JSON: unexpected {shown} at character {column}{_at(place)}."
        return StrictJsonError("not-json", _short(place), sentence)


def _is_cut(text: str, position: int) -> bool:
    """Whether what stands at the position could be the beginning of a written that goes on."""
    match = _CUT_TAIL.match(text, position)
    return match is not None
