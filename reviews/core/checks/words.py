"""How checks speak of steps, targets and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from traces.core.canonical import canonical_text
from traces.core.contracts.model import CallTarget, MessageBy, MessageTarget, Target
from traces.core.values import Json

MOST_CHARS: Final = 200  # of a value or condition that a sentence quotes
_MOST_STEPS: Final = 8  # that a sentence names


def cut(text: str) -> str:
    """A text, shortened."""
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 1]}…"


def value_words(value: Json) -> str:
    """A value as JSON text, shortened; what is not ASCII stays readable."""
    if isinstance(value, str):
        plain = cut(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return cut(f'"{plain}"')
    return cut(canonical_text(value))


def steps_words(steps: Sequence[int]) -> str:
    """Steps as they are named: "step 4", "steps 4 and 6"."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    named = [str(step) for step in steps[:_MOST_STEPS]]
    rest = len(steps) - len(named)
    named = [*named, f"{rest} more"] if rest else named
    return f"steps {joined(named)}"


def joined(words: Iterable[str], last: str = "and") -> str:
    """Words in a row: "a", "a and b", "a, b and c"."""
    *first, end = words
    return f"{', '.join(first)} {last} {end}" if first else end


def target_words(target: Target) -> str:
    """What a target means, with its condition."""
    match target:
        case CallTarget():
            what = cut(target.call)
        case MessageTarget():
            what = f"a message of the {'user' if target.by is MessageBy.USER else 'agent'}"
        case _:
            assert_never(target)
    where = " ".join(target.where.split())
    return f"{what} where {cut(where)}" if where else what


def any_words(targets: Iterable[Target]) -> str:
    """What any of some targets means."""
    return joined([target_words(target) for target in targets], "or")


def count_words(n: int, one: str, many: str = "") -> str:
    """A number of things: "1 call", "3 calls"."""
    return f"{n:,} {one}" if n == 1 else f"{n:,} {many or one + 's'}"
