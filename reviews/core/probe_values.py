"""Wrong values of the same type, and the places of a result or state that follow them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Final

from traces.core.canonical import equal
from traces.core.pointers import pointer_of
from traces.core.values import Json

MOST_LEAVES: Final = 1_000  # of the arguments of one call that are looked at
LONGEST_TEXT: Final = 80  # characters of a text that is a value and no prose
LONGEST_NUMBER: Final = 30  # digits
_MOST_WORDS: Final = 3
_DISTINCT: Final = 3  # characters that a text needs to be told from others wherever it stands
_DISTINCT_NUMBER: Final = 2  # digits that a number needs

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-([0-9]{2})(?![0-9])")
_NUMBER = re.compile(r"(?<![\w.])-?[0-9]+(?:\.[0-9]+)?(?!\w)(?!\.[0-9])")

Path = tuple[str | int, ...]
IsKnown = Callable[[str], bool]
"""Whether a text stands in the transcript already, so that it may be a right value too."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value inside arguments that can be set to a wrong one. `rank` 0 is the best choice."""

    path: Path
    value: bool | int | float | Decimal | str
    rank: int

    @property
    def pointer(self) -> str:
        """The JSON Pointer of its place."""
        return pointer_of(map(str, self.path))

    @property
    def name(self) -> str:
        """The name of the member that holds it; "" for an element of a list of lists."""
        return next((one for one in reversed(self.path) if isinstance(one, str)), "")


def leaves_of(arguments: Json) -> Iterator[Leaf]:
    """The values of arguments that a wrong one can be told of: no prose, nothing empty."""
    waiting: list[tuple[Path, Json]] = [((), arguments)]
    n_seen = 0
    while waiting and n_seen < MOST_LEAVES:
        path, value = waiting.pop()
        n_seen += 1
        match value:
            case dict():
                waiting += [((*path, name), item) for name, item in reversed(value.items())]
            case list():
                waiting += [((*path, i), item) for i, item in reversed(list(enumerate(value)))]
            case bool():
                yield Leaf(path, value, 1)
            case int() | float() | Decimal() if _is_plain_number(value):
                yield Leaf(path, value, 0)
            case str() if _is_value(value):
                yield Leaf(path, value, 0 if any(map(_is_digit, value)) else 2)
            case _:
                pass


def _is_plain_number(value: float | Decimal) -> bool:
    if isinstance(value, int) and value.bit_length() > 3 * LONGEST_NUMBER:
        return False
    text = str(value)
    return len(text) <= LONGEST_NUMBER and not {"e", "E", "n"} & set(text)


def _is_value(text: str) -> bool:
    if not text.strip() or len(text) > LONGEST_TEXT or "\n" in text:
        return False
    if len(text.split()) > _MOST_WORDS:
        return False
    return any(map(_is_digit, text)) or _shifted(text, 1) != text


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9"


def wrong_value(
    leaf: Leaf, rng: Random, *, others: Sequence[str], is_known: IsKnown
) -> bool | int | float | Decimal | str:
    """Another value of the same type that the transcript does not hold, as far as there is one.

    A truth value is turned round, a number gets another first digit, a date another day, an
    identifier another last digit; a word becomes another word that the same argument had
    (`others`), else a made-up one.
    """
    match leaf.value:
        case bool(value):
            return not value
        case int(value):
            return int(_first_unknown(_other_numbers(str(value), rng), is_known))
        case Decimal() as value:
            return Decimal(_first_unknown(_other_numbers(str(value), rng), is_known))
        case float(value):
            return float(_first_unknown(_other_numbers(str(value), rng), is_known))
        case text:
            return _other_text(text, rng, others, is_known)


def _first_unknown(candidates: Sequence[str], is_known: IsKnown) -> str:
    return next((one for one in candidates if not is_known(one)), candidates[0])


def _other_numbers(text: str, rng: Random) -> list[str]:
    at = next(
        (i for i, one in enumerate(text) if "1" <= one <= "9"),
        next(i for i, one in enumerate(text) if _is_digit(one)),
    )
    return _other_digits(text, at, rng, "123456789")


def _other_digits(text: str, at: int, rng: Random, digits: str) -> list[str]:
    drawn = [digit for digit in digits if digit != text[at]]
    rng.shuffle(drawn)
    return [f"{text[:at]}{digit}{text[at + 1 :]}" for digit in drawn]


def _other_text(text: str, rng: Random, others: Sequence[str], is_known: IsKnown) -> str:
    if date := _DATE.match(text):
        days = [f"{day:02}" for day in range(1, 29) if f"{day:02}" != date[1]]
        rng.shuffle(days)
        start, end = date.span(1)
        return _first_unknown([f"{text[:start]}{day}{text[end:]}" for day in days], is_known)
    last = max((i for i, one in enumerate(text) if _is_digit(one)), default=None)
    if last is not None:
        return _first_unknown(_other_digits(text, last, rng, "0123456789"), is_known)
    different = [other for other in others if other != text]
    if different:
        return rng.choice(different)
    return _shifted(text, rng.randint(1, 25))


def _shifted(text: str, by: int) -> str:
    """ASCII letters moved on in the alphabet; all else as it is."""
    return "".join(
        chr((ord(one) - first + by) % 26 + first)
        if one.isascii() and one.isalpha() and (first := ord("A" if one.isupper() else "a"))
        else one
        for one in text
    )


def with_value(arguments: Json, path: Path, value: Json) -> Json:
    """The arguments with another value at a place."""
    if not path:
        return value
    name, *rest = path
    if isinstance(arguments, dict) and isinstance(name, str):
        return {
            key: with_value(item, tuple(rest), value) if key == name else item
            for key, item in arguments.items()
        }
    assert isinstance(arguments, list)
    return [
        with_value(item, tuple(rest), value) if index == name else item
        for index, item in enumerate(arguments)
    ]


def followed_in_text(text: str, name: str, old: Json, new: Json) -> str:
    """A result's text with the wrong value where it tells the right one of that call.

    A value that is short, and any truth value, is followed only where the text is JSON and a
    member of the argument's name holds it.
    """
    match old, new:
        case bool(), bool():
            return _member(name, str(old).lower()).sub(rf"\g<1>{str(new).lower()}", text)
        case str(), str():
            escaped = re.escape(old)
            if len(old) >= _DISTINCT:
                return re.sub(rf"(?<!\w){escaped}(?!\w)", lambda _: new, text)
            return _member(name, f'"{escaped}"').sub(lambda m: f'{m[1]}"{new}"', text)
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            return _number_followed(text, name, Decimal(str(old)), Decimal(str(new)))
        case _:
            return text


def _member(name: str, value: str) -> re.Pattern[str]:
    return re.compile(rf'("{re.escape(name)}"\s*:\s*){value}(?!\w)')


def _number_followed(text: str, name: str, old: Decimal, new: Decimal) -> str:
    is_distinct = len(str(old).removesuffix(".0").strip("-")) >= _DISTINCT_NUMBER
    member = re.compile(rf'"{re.escape(name)}"\s*:\s*\Z')

    def follow(match: re.Match[str]) -> str:
        if len(match[0]) > 2 * LONGEST_NUMBER or Decimal(match[0]) != old:
            return match[0]
        if not is_distinct and not member.search(text, max(match.start() - 200, 0), match.start()):
            return match[0]
        n_places = len(match[0].partition(".")[2])
        places = max(n_places, -int(new.as_tuple().exponent) if new % 1 else 0)
        return f"{new:.{places}f}"

    return _NUMBER.sub(follow, text)


def followed_in_state(
    final: Json, initial: Json, name: str, old: Json, new: Json
) -> tuple[Json, tuple[str, ...]]:
    """The final state with the wrong value where the trial left the right one, and these places.

    Only what differs from the initial state is looked at. A short value and a truth value are
    followed only under the argument's name.
    """
    places: list[str] = []
    is_distinct = not isinstance(old, bool) and len(str(old).removesuffix(".0")) >= _DISTINCT

    def walk(value: Json, before: Json, path: Path) -> Json:
        match value:
            case dict():
                was = before if isinstance(before, dict) else {}
                return {key: walk(item, was.get(key), (*path, key)) for key, item in value.items()}
            case list():
                had = before if isinstance(before, list) else []
                return [
                    walk(item, had[i] if i < len(had) else None, (*path, i))
                    for i, item in enumerate(value)
                ]
            case _:
                is_named = bool(path) and path[-1] == name
                if (is_distinct or is_named) and equal(value, old) and not equal(value, before):
                    places.append(pointer_of(map(str, path)))
                    return new
                return value

    if initial is None:
        return final, ()
    return walk(final, initial, ()), tuple(places)
