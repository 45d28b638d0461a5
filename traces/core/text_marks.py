"""Text from a trace made safe to look at: what cannot be seen gets a mark, nothing is dropped.

Control, bidirectional, zero-width, tag and line separator characters, ANSI escapes, NUL and lone
surrogates change what a reader sees, or the order in which it is seen, without being seen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

NUL_MARK: Final = "\u2400"  # the picture of NUL
REPLACEMENT: Final = "\ufffd"

_UNSEEN: Final = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls but tab, line feed and carriage return
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff"
)
# A joiner inside an emoji sequence is what the reader expects to see; a carriage return alone
# overwrites a line on a terminal.
_MARKED = re.compile(f"[{_UNSEEN}]|(?<![\U0001f000-\U0001faff\ufe0f\u2600-\u27bf])\u200d|\r(?!\n)")
_MAY_BE_MARKED = re.compile(f"[{_UNSEEN}\u200d\r]")  # a single class is searched for faster
_UNSEEN_YET_PRINTABLE: Final = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
# The same characters in the bytes of a JSON text, as an escape or raw.
_ESCAPED_MARK = re.compile(
    rb"\\(?:[bf]|r(?!\\n)"
    rb"|u(?:00(?:[01][0-9a-fA-F]|7[fF]|[89][0-9a-fA-F]|[aA][dD])|034[fF]|061[cC]|115[fF]|1160"
    rb"|17[bB][45]|180[b-fB-F]|200[b-fB-F]|202[89a-eA-E]|206|3164|[fF][eE][fF][fF]|[fF][fF][aAfF]"
    rb"|[dD][bB]4|[dD]834\\u[dD][dD]7"
    rb"|[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"  # half of a pair
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u)[dD][c-fC-F]))"
)
_RAW_MARK = re.compile(
    rb"\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c"
    rb"|\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])|\xe3\x85\xa4"
    rb"|\xef(?:\xbb\xbf|\xbe\xa0|\xbf[\xb9-\xbb\xbe\xbf])|\xf0\x9d\x85[\xb3-\xba]|\xf3\xa0"
)
_ASCII: Final = bytes(range(0x80))
_ESCAPES_AS_ONE: Final = bytes.maketrans(b"bfr", b"uuu")
_PLANE_14: Final = b"\xf3\xa0"  # starts tag characters and variation selectors in UTF-8
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FORMULA = re.compile("[\\s\x00-\x20\u200b\ufeff]*[=+\\-@\uff1d\uff0b\uff0d\uff20\u2212]|[\t\r\n]")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text, or one unseen character with its mark such as `U+202E`.

    `text` can be written into a page: where HTML cannot hold the original character (NUL, half
    an emoji) it is its replacement, else the original, so that copying gives the original.
    """

    text: str
    mark: str | None = None


def visible(text: str) -> tuple[Segment, ...]:
    """The text in segments; joined, they are the text with NUL and lone surrogates replaced."""
    if not has_marks(text):
        return (Segment(text),) if text else ()
    segments: list[Segment] = []
    position = 0
    for match in _MARKED.finditer(text):
        if match.start() > position:
            segments.append(Segment(text[position : match.start()]))
        segments.append(Segment(clean_text(match[0]), mark_of(match[0])))
        position = match.end()
    if position < len(text):
        segments.append(Segment(text[position:]))
    return tuple(segments)


def mark_of(character: str) -> str:
    """The visible mark of one character: `U+202E`."""
    return f"U+{ord(character):04X}"


def marked_text(text: str) -> str:
    """The text with `[U+202E]` in place of each unseen character, for plain-text output."""
    return _MARKED.sub(lambda match: f"[{mark_of(match[0])}]", text)


def has_marks(text: str) -> bool:
    """Whether anything in the text would get a mark."""
    if text.isprintable() and (text.isascii() or not _has_printable_mark(text)):
        return False
    return _MAY_BE_MARKED.search(text) is not None and _MARKED.search(text) is not None


def _has_printable_mark(text: str) -> bool:
    # What Python calls printable includes combining marks and letters that show nothing.
    if any(map(text.__contains__, _UNSEEN_YET_PRINTABLE)):
        return True
    return _PLANE_14 in text.encode()


def may_hold_marks(data: bytes) -> bool:
    """Whether a JSON text in UTF-8 can hold a text that gets marks. Quick, and never wrong on no."""
    if b"\x7f" in data:
        return True
    # One search for the four escapes that matter; most texts have none of them.
    if b"\\u" in data.translate(_ESCAPES_AS_ONE) and _ESCAPED_MARK.search(data) is not None:
        return True
    return not data.isascii() and _RAW_MARK.search(data.translate(None, _ASCII)) is not None


def count_marks(text: str) -> int:
    """How many characters of the text get a mark."""
    return sum(1 for _ in _MARKED.finditer(text)) if has_marks(text) else 0


def says_nothing(text: str) -> bool:
    """Whether a text has no character that anybody sees."""
    return count_marks(text) >= len("".join(text.split()))


def clean_text(text: str) -> str:
    """The text as a database column and a page can hold it: NUL and lone surrogates replaced."""
    if text.isascii() and "\x00" not in text:
        return text
    return _NOT_STORABLE.sub(_replacement, text)


def has_lone_surrogate(text: str) -> bool:
    """Whether the text holds half of a surrogate pair, which no UTF-8 text can."""
    return not text.isascii() and _SURROGATE.search(text) is not None


def _replacement(match: re.Match[str]) -> str:
    return NUL_MARK if match[0] == "\x00" else REPLACEMENT


def csv_safe(cell: str | float | Decimal | None) -> str:
    """One CSV cell. A text that a spreadsheet may read as a formula gets an apostrophe in front.

    Numbers are left alone, negative ones too: only the type says that a cell is a number.
    """
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return str(cell)
    text = clean_text(cell)
    return f"'{text}" if _FORMULA.match(text) else text
