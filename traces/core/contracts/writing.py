"""Contract documents written as YAML that people like to read and the reader reads back equal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from traces.core.canonical import number_text
from traces.core.contracts.scalars import value_of_plain
from traces.core.contracts.schema import CONTRACT_SCHEMA
from traces.core.text_marks import clean_text
from traces.core.values import Json, JsonObject

MOST_LINE_CHARS: Final = 110

_ORDER: Final = {name: rank for rank, name in enumerate(CONTRACT_SCHEMA["properties"])}  # type: ignore[arg-type]
_ALWAYS_LINES: Final = frozenset(
    (
        "outcome",
        "changes",
        "required",
        "prohibited",
        "semantic",
        "external",
        "variation",
        "grader_tests",
        "steps",
        "messages",
    )
)
"""Fields whose parts always stand on lines of their own."""

_PLAIN = re.compile(r"[^\W\d][\w./*~+-]*(?: [\w./*~+(-][\w./*~+()-]*)*|/[\w./*~+-]*")
_OTHERS_READ_OTHERWISE: Final = frozenset(("yes", "no", "on", "off"))
_ESCAPED = re.compile(
    "[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_MOST_PLAIN_NAME_CHARS: Final = 1_000  # a longer name needs a question mark
_INDENT: Final = "  "


def contract_text(document: JsonObject) -> str:
    """A document as YAML, its fields in the order of the language.

    What no contract can hold (NUL, half a surrogate pair) is replaced by a visible mark.
    Raises ValueError for NaN and Infinity.
    """
    names = sorted(document, key=lambda name: _ORDER.get(name, len(_ORDER)))
    ordered = {name: document[name] for name in names}
    return "".join(f"{line}\n" for line in _member_lines(ordered, 0)) if ordered else "{}\n"


def fragment_text(value: Json) -> str:
    """One part of a document as YAML, without a line break at its end."""
    return "\n".join(_block_lines(value, 0))


def join_documents(texts: Iterable[str]) -> str:
    """Texts of contracts as one text of many documents; each stays as it is.

    A text without a line break at its end gets one.
    """
    ended = (text if text.endswith(("\n", "\r")) else f"{text}\n" for text in texts)
    return "---\n".join(ended)


def _block_lines(value: Json, depth: int) -> Iterator[str]:
    match value:
        case dict() if value:
            return _member_lines(value, depth)
        case list() if value:
            return _item_lines(value, depth)
        case _:
            return iter((_INDENT * depth + _flow(value),))


def _member_lines(members: JsonObject, depth: int) -> Iterator[str]:
    margin = _INDENT * depth
    for name, value in members.items():
        key = _scalar(name)
        if len(key) > _MOST_PLAIN_NAME_CHARS:
            yield f"{margin}? {key}"
            yield f"{margin}: {_flow(value)}"
            continue
        head = f"{margin}{key}:"
        if isinstance(value, dict | list) and value:
            flow = "" if name in _ALWAYS_LINES else _flow(value)
            if flow and len(head) + 1 + len(flow) <= MOST_LINE_CHARS:
                yield f"{head} {flow}"
            else:
                yield head
                yield from _block_lines(value, depth + 1)
        elif isinstance(value, str) and _is_for_lines(value):
            yield f"{head} {'|' if value.endswith(chr(10)) else '|-'}"
            for line in value.removesuffix("\n").split("\n"):
                yield f"{margin}{_INDENT}{line}" if line else ""
        else:
            yield f"{head} {_flow(value)}"


def _item_lines(items: list[Json], depth: int) -> Iterator[str]:
    margin = _INDENT * depth
    for item in items:
        flow = _flow(item)
        is_short = len(margin) + 2 + len(flow) <= MOST_LINE_CHARS
        if (is_short and not _holds_lines(item)) or not isinstance(item, dict | list):
            yield f"{margin}- {flow}"
            continue
        for number, line in enumerate(_block_lines(item, depth + 1)):
            yield line if number else f"{margin}- {line[len(margin) + 2 :]}"


def _holds_lines(value: Json) -> bool:
    return isinstance(value, dict) and not _ALWAYS_LINES.isdisjoint(value)


def _is_for_lines(text: str) -> bool:
    """Whether a text is best written over several lines, and comes back as it was."""
    lines = text.removesuffix("\n").split("\n")
    return (
        len(lines) > 1
        and bool(lines[0])
        and bool(lines[-1])
        and not any(line[:1] == " " or line[-1:] == " " for line in lines)
        and not any(_ESCAPED.search(line) for line in lines)
    )


def _flow(value: Json) -> str:
    match value:
        case dict():
            return "{" + ", ".join(map(_flow_member, value, value.values())) + "}"
        case list():
            return "[" + ", ".join(map(_flow, value)) + "]"
        case _:
            return _scalar(value)


def _flow_member(name: str, value: Json) -> str:
    key = _scalar(name)
    mark = "? " if len(key) > _MOST_PLAIN_NAME_CHARS else ""
    return f"{mark}{key}: {_flow(value)}"


def _scalar(value: bool | float | Decimal | str | None) -> str:  # noqa: FBT001
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _text(clean_text(value))
        case Decimal() if value.is_finite():
            return str(value)
        case _:
            return number_text(value)


def _text(text: str) -> str:
    if _is_plain(text):
        return text
    if _ESCAPED.search(text):
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{_ESCAPED.sub(_escape, escaped)}"'
    if '"' in text or "\\" in text:
        return "'" + text.replace("'", "''") + "'"
    return f'"{text}"'


def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text) or _ESCAPED.search(text):
        return False
    return text.lower() not in _OTHERS_READ_OTHERWISE and value_of_plain(text) == text


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    return short or f"\\u{ord(character):04x}"
