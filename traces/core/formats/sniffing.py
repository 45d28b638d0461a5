"""Which format a file has, found out by looking at its content and never at its name."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from traces.core.formats.containers import Member, head_of
from traces.core.records import Finding, UnreadableUploadError
from traces.core.strict_json import BOM, looks_like_utf16

SNIFFED_BYTES: Final = 512 * 1024
MOST_SNIFFED_BYTES: Final = 20 * 1024 * 1024  # behind a first record of the usual limit
MOST_LINES: Final = 50

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"(\s*:)?|[\[\]{}]|"')
_BLANKS: Final = b" \t\r\n"
_UNKNOWN: Final = "unknown-format"


class Shape(StrEnum):
    """What a file holds. A format may come in several shapes."""

    NATIVE_LINES = "native-lines"
    NATIVE_DOCUMENT = "native-document"
    TAU_BENCH = "tau-bench"
    TAU2_RESULTS = "tau2-results"
    TAU2_SIMULATION = "tau2-simulation"
    TAU2_TASKS = "tau2-tasks"
    JUDGE_SUMMARY = "judge-summary"
    JUDGE_LINES = "judge-lines"


def shape_of(member: Member) -> Shape:
    """The shape of a file. Raises UnreadableUploadError, which says what it looks like instead.

    What tells it may stand behind one large field or line, so more is looked at where the
    beginning tells nothing.
    """
    head = _head(member, SNIFFED_BYTES)
    try:
        return shape_of_head(head)
    except UnreadableUploadError as error:
        if len(head) < SNIFFED_BYTES or error.finding.code != _UNKNOWN:
            raise
    return shape_of_head(_head(member, MOST_SNIFFED_BYTES))


def _head(member: Member, size: int) -> bytes:
    head = head_of(member, size)
    is_blank = len(head) == size and not head.strip(_BLANKS)
    return _head_behind_blanks(member, size) if is_blank else head


def _head_behind_blanks(member: Member, size: int) -> bytes:
    head = b""
    with member.open() as stream:
        while len(head) < size and (block := stream.read(SNIFFED_BYTES)):
            head = (head + block).lstrip(_BLANKS)
    return head


def shape_of_head(head: bytes) -> Shape:
    """The shape of a file that begins with these bytes. Raises UnreadableUploadError."""
    if looks_like_utf16(head):
        raise _unreadable("utf-16", "The file is UTF-16 or UTF-32; only UTF-8 is read.")
    text = head.removeprefix(BOM).lstrip(_BLANKS)
    if not text:
        raise _unreadable("empty", "The file is empty.")
    first = text[:1]
    shape = None
    if first == b"{":
        shape = _shape_of_object(frozenset(top_keys(text, 1)), is_one_line=_is_one_line(text))
    elif first == b"[":
        shape = _shape_of_array(frozenset(top_keys(text, 2)))
    shape = shape or _shape_of_lines(text)
    if shape is None and first == b"<":
        raise _unreadable("html", "The file looks like an HTML or XML page, not like trace data.")
    if shape is None:
        raise _unreadable(
            _UNKNOWN,
            "The file is in no known format (native JSON Lines, tau-bench results, tau2-bench "
            "results, tau2 judge verdicts).",
        )
    return shape


def top_keys(text: bytes, depth: int) -> list[str]:
    """The keys at a depth of a JSON text that may be cut, as far as it goes. At most 10,000."""
    keys: list[str] = []
    level = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in (b"{", b"["):
            level += 1
        elif token in (b"}", b"]"):
            level -= 1
            if level <= 0:
                break
        elif token == b'"':
            break  # a string that the text does not hold to its end
        elif match[1] and level == depth:
            keys.append(token[1 : token.rindex(b'"')].decode("utf-8", "replace"))
            if len(keys) >= 10_000:
                break
    return keys


def _is_one_line(text: bytes) -> bool:
    line = text.split(b"\n", 1)[0].rstrip(_BLANKS)
    return line.endswith(b"}") and len(line) > 2


def _shape_of_object(keys: frozenset[str], *, is_one_line: bool) -> Shape | None:
    if "judge_response" in keys:
        return Shape.JUDGE_LINES
    if "entries" in keys and keys & {"total_judged", "agree_count", "disagree_count"}:
        return Shape.JUDGE_SUMMARY
    if "task_id" in keys and keys & {"agent", "verdicts"}:
        # Only native records have these; whatever else they bring is kept.
        return Shape.NATIVE_LINES if is_one_line else None
    if "simulations" in keys or keys >= {"info", "tasks"} or keys >= {"timestamp", "info"}:
        return Shape.TAU2_RESULTS
    if "traj" in keys:
        return Shape.TAU_BENCH
    if keys >= {"id", "task_id"} and keys & {"ticks", "termination_reason", "reward_info"}:
        return Shape.TAU2_SIMULATION
    return Shape.NATIVE_LINES if is_one_line and _is_native(keys) else None


def _is_native(keys: frozenset[str]) -> bool:
    return bool(keys & {"task_id", "record"}) or (
        "messages" in keys and bool(keys & {"trial", "agent"})
    )


def _shape_of_array(keys: frozenset[str]) -> Shape | None:
    if "traj" in keys:
        return Shape.TAU_BENCH
    if keys >= {"id"} and keys & {"user_scenario", "evaluation_criteria"}:
        return Shape.TAU2_TASKS
    return Shape.NATIVE_DOCUMENT if _is_native(keys) else None


def _shape_of_lines(text: bytes) -> Shape | None:
    """Native lines behind lines that cannot be read, or one native record over several lines."""
    lines = [line.strip(_BLANKS) for line in text.split(b"\n", MOST_LINES)]
    keys_by_line = {line: frozenset(top_keys(line, 1)) for line in lines if line[:1] == b"{"}
    if any("judge_response" in keys for keys in keys_by_line.values()):
        return Shape.JUDGE_LINES
    native = [line for line, keys in keys_by_line.items() if _is_native(keys)]
    if len(native) > 1 or any(line.endswith(b"}") for line in native):
        return Shape.NATIVE_LINES
    if not native and not (text[:1] == b"{" and _is_native(frozenset(top_keys(text, 1)))):
        return None
    return Shape.NATIVE_LINES if len(lines) == 1 else Shape.NATIVE_DOCUMENT


def _unreadable(code: str, sentence: str) -> UnreadableUploadError:
    return UnreadableUploadError(Finding(code, "", sentence))
