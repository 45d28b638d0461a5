"""Records cut out of a stream, with memory bounded by the largest record and not by the file.

Lines end at the byte 0x0A and nowhere else, so that U+2028 inside a text ends no record. The
parts of one JSON document are found by counting brackets outside strings; whether a part is valid
is for its reader to say, so that one bad element takes no good one with it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from traces.core.limits import DEFAULT_LIMITS, Limits
from traces.core.records import Finding
from traces.core.strict_json import BOM, StrictJsonError, loads
from traces.core.text_marks import marked_text

BLOCK_BYTES: Final = 256 * 1024

_BLANKS = b" \t\r\n"
_BLANK_RUN = re.compile(rb"[ \t\r\n]*+")
_STRING_REST = re.compile(rb'[^"\\]*+(?:\\[\s\S][^"\\]*+)*+')
_STRING = rb'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"'
_TO_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:' + _STRING + rb'[^"\[\]{}]*+)*+')
_TO_MARK = re.compile(rb'[^"\[\]{},:]*+(?:' + _STRING + rb'[^"\[\]{},:]*+)*+')
_INSIDE = re.compile(_TO_BRACKET.pattern + rb"(?:([\[{])|[\]}])")
_QUOTE, _COMMA, _COLON = b'",:'
_OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = b"[]{}"


class Stream(Protocol):
    """What the scanner reads from."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes; empty at the end."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One record as bytes, or why it was not held. Offset and length count decompressed bytes."""

    number: int  # from 1: the line, or the element of an array; 0 for a whole member value
    offset: int
    length: int
    data: bytes
    key: str | None = None  # of the top-level member that the part belongs to
    refusal: Finding | None = None


def json_lines(stream: Stream, limits: Limits = DEFAULT_LIMITS) -> Iterator[Slice]:
    """The lines of a JSON Lines stream that are not blank, without BOM and line end."""
    pending: list[bytes] = []
    size = offset = 0
    number = 1
    while block := stream.read(BLOCK_BYTES):
        *ended, rest = block.split(b"\n")
        for piece in ended:
            if not piece and not size:
                offset, number = offset + 1, number + 1
                continue
            size += len(piece)
            if size <= limits.record_bytes + 2:
                pending.append(piece)
            yield from _line(b"".join(pending), number, offset, size, limits)
            offset += size + 1
            number += 1
            pending.clear()
            size = 0
        size += len(rest)
        if size <= limits.record_bytes + 2:
            pending.append(rest)
        else:
            pending.clear()
    yield from _line(b"".join(pending), number, offset, size, limits)


def _line(line: bytes, number: int, offset: int, size: int, limits: Limits) -> Iterator[Slice]:
    if size > limits.record_bytes + 2:
        yield Slice(number, offset, size, b"", refusal=_too_large(f"Line {number}", size, limits))
        return
    if number == 1 and line.startswith(BOM):
        line, offset = line[len(BOM) :], offset + len(BOM)
    data = line.rstrip(_BLANKS)
    if len(data) > limits.record_bytes:
        refusal = _too_large(f"Line {number}", len(data), limits)
        yield Slice(number, offset, len(data), b"", refusal=refusal)
    elif data:
        yield Slice(number, offset, len(data), data)


def _too_large(what: str, size: int, limits: Limits) -> Finding:
    return Finding(
        "record-too-large",
        "",
        f"{what} is too large: {size} bytes (record limit {limits.record_bytes} bytes).",
    )


def document_parts(
    stream: Stream, split: Collection[str] = (), limits: Limits = DEFAULT_LIMITS
) -> Iterator[Slice]:
    """The parts of one JSON document.

    Of a top-level array, its elements. Of a top-level object, each member's value with its key;
    where the key is in `split` and the value is an array, the elements of that array one by one.
    A document that ends early or is broken at the top gives its good parts and one refusal.
    """
    yield from _Document(stream, frozenset(split), limits).parts()


def record_slices(stream: Stream, limits: Limits = DEFAULT_LIMITS) -> Iterator[Slice]:
    """The elements of an array of records; a single object is the one record of its file."""
    first = _First(stream)
    if first.byte != b"{":
        yield from document_parts(first, (), limits)
        return
    data = b""
    most = limits.record_bytes
    while len(data) <= most and (block := first.read(most + 1 - len(data))):
        data += block
    if len(data) > most:
        yield Slice(1, 0, len(data), b"", refusal=_too_large("The record", len(data), limits))
    else:
        yield Slice(1, 0, len(data), data)


class _First:
    """A stream whose first byte that is not blank can be seen before it is read."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ahead = b""
        while not self._ahead.strip(b" \t\r\n\xef\xbb\xbf") and (block := stream.read(4096)):
            self._ahead += block
        self.byte = self._ahead.lstrip(b" \t\r\n\xef\xbb\xbf")[:1]

    def read(self, size: int = -1, /) -> bytes:
        """What was looked at ahead, then the rest."""
        ahead, self._ahead = self._ahead, b""
        return ahead or self._stream.read(size)


def stretch(stream: Stream, offset: int, length: int) -> bytes:
    """The bytes of a stream from an offset on, fewer where it ends."""
    while offset > 0 and (passed := stream.read(min(offset, BLOCK_BYTES))):
        offset -= len(passed)
    data = bytearray()
    while len(data) < length and (block := stream.read(length - len(data))):
        data += block
    return bytes(data)


class _BrokenError(Exception):
    """The document itself cannot be followed any further."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.finding = Finding(code, "", sentence)


class _Document:
    def __init__(self, stream: Stream, split: frozenset[str], limits: Limits) -> None:
        self.stream = stream
        self.split = split
        self.limits = limits
        self.buffer = b""
        self.position = 0
        self.base = 0  # offset of the buffer's first byte
        self.start: int | None = None  # where in the buffer the part being held starts
        self.held: list[bytes] = []
        self.held_bytes = 0
        self.number = 0  # of the last element begun
        self.n_whole = 0  # of the elements passed whole

    def parts(self) -> Iterator[Slice]:
        try:
            while len(self.buffer) < len(BOM) and self.more():
                pass
            if self.buffer.startswith(BOM):
                self.position = len(BOM)
            first = self.next_byte()
            if first == _OPEN_LIST:
                yield from self.elements(None)
            elif first == _OPEN_OBJECT:
                yield from self.members()
            else:
                raise _BrokenError(
                    "not-json", "The file is neither a JSON object nor a JSON array."
                )
            if self.next_byte() is not None:
                raise _BrokenError(
                    "trailing-data",
                    f"There is more after the end of the document, at byte {self.offset() + 1}.",
                )
        except _BrokenError as broken:
            yield Slice(self.n_whole + 1, self.offset(), 0, b"", refusal=broken.finding)

    def members(self) -> Iterator[Slice]:
        self.position += 1
        seen: set[str] = set()
        if self.next_byte() == _CLOSE_OBJECT:
            self.position += 1
            return
        while True:
            key = self.key()
            if key in seen:
                raise _BrokenError(
                    "duplicate-key", f'Duplicate key "{marked_text(key[:200])}" at the top.'
                )
            seen.add(key)
            if len(seen) > self.limits.keys:
                raise _BrokenError("too-many-keys", f"Too many keys (max {self.limits.keys}).")
            if self.next_byte() == _OPEN_LIST and key in self.split:
                yield from self.elements(key)
            else:
                yield self.value(key, 0)
            if self.comma_or(_CLOSE_OBJECT):
                return

    def elements(self, key: str | None) -> Iterator[Slice]:
        self.position += 1
        self.number = 0
        if self.next_byte() == _CLOSE_LIST:
            self.position += 1
            return
        while True:
            self.number += 1
            yield self.value(key, self.number)
            if self.comma_or(_CLOSE_LIST):
                return

    def comma_or(self, close: int) -> bool:
        """Whether the array or object ends here; if not, a comma was passed."""
        byte = self.next_byte()
        if byte is None:
            raise self.cut_short()
        self.position += 1
        if byte not in (_COMMA, close):
            raise _BrokenError(
                "not-json",
                f"Not JSON: unexpected {chr(byte)!r} at byte {self.offset()} "
                f"after {self.number} records.",
            )
        return byte == close

    def key(self) -> str:
        if self.next_byte() != _QUOTE:
            raise self.cut_short() if self.next_byte() is None else self.no_key()
        self.hold()
        if not self.pass_string():
            raise self.cut_short()
        text = self.held_part()
        try:
            key = loads(text or b"", self.limits)
        except StrictJsonError:
            raise self.no_key() from None
        if self.next_byte() != _COLON:
            raise self.cut_short() if self.next_byte() is None else self.no_key()
        self.position += 1
        return str(key)

    def value(self, key: str | None, number: int) -> Slice:
        first = self.next_byte()
        offset = self.offset()
        self.hold()
        ended = (
            self.pass_brackets()
            if first in (_OPEN_LIST, _OPEN_OBJECT)
            else self.pass_to_mark() is not None
        )
        if not ended:
            raise self.cut_short()
        self.n_whole = number
        length = self.offset() - offset
        data = self.held_part()
        if data is None:
            what = (
                f"Record {number}" if number else f'The value of "{marked_text((key or "")[:200])}"'
            )
            refusal = _too_large(what, length, self.limits)
            return Slice(number, offset, length, b"", key, refusal)
        return Slice(number, offset, length, data, key)

    def pass_brackets(self) -> bool:
        """Passes an object or array, or says that the file ends inside it."""
        depth = 0
        inside = _INSIDE.match
        while True:
            match = inside(self.buffer, self.position)
            while match is not None:
                depth += 1 if match[1] else -1
                if depth == 0:
                    self.position = match.end()
                    return True
                self.position = match.end()
                match = inside(self.buffer, self.position)
            self.position = _end_of(_TO_BRACKET, self.buffer, self.position)
            if self.position < len(self.buffer):
                if not self.pass_string():
                    return False
            elif not self.more():
                return False

    def pass_to_mark(self) -> int | None:
        """Passes text and strings up to a bracket, comma or colon: that byte, None at the end."""
        while True:
            self.position = _end_of(_TO_MARK, self.buffer, self.position)
            if self.position == len(self.buffer):
                if not self.more():
                    return None
            elif self.buffer[self.position] != _QUOTE:
                return self.buffer[self.position]
            elif not self.pass_string():
                return None

    def pass_string(self) -> bool:
        """Passes the string that starts here, or says that the file ends inside it."""
        self.position += 1
        while True:
            self.position = _end_of(_STRING_REST, self.buffer, self.position)
            if self.buffer[self.position : self.position + 1] == b'"':
                self.position += 1
                return True
            if not self.more():
                return False

    def next_byte(self) -> int | None:
        """The next byte that is not blank, not passed; None at the end of the file."""
        while True:
            self.position = _end_of(_BLANK_RUN, self.buffer, self.position)
            if self.position < len(self.buffer):
                return self.buffer[self.position]
            if not self.more():
                return None

    def more(self) -> bool:
        """Reads on. What was passed is let go, or set aside when it belongs to the held part."""
        block = self.stream.read(BLOCK_BYTES)
        if not block:
            return False
        if self.start is not None:
            self.set_aside(self.buffer[self.start : self.position])
            self.start = 0
        self.base += self.position
        self.buffer = self.buffer[self.position :] + block
        self.position = 0
        return True

    def set_aside(self, passed: bytes) -> None:
        self.held_bytes += len(passed)
        if self.held_bytes <= self.limits.record_bytes:
            self.held.append(passed)
        else:
            self.held.clear()

    def hold(self) -> None:
        self.start = self.position
        self.held.clear()
        self.held_bytes = 0

    def held_part(self) -> bytes | None:
        """What was passed since `hold`; None when it is more than a record may be."""
        self.set_aside(self.buffer[self.start : self.position])
        self.start = None
        data = b"".join(self.held).rstrip(_BLANKS)
        self.held.clear()
        return data if self.held_bytes <= self.limits.record_bytes else None

    def offset(self) -> int:
        return self.base + self.position

    def cut_short(self) -> _BrokenError:
        self.position = len(self.buffer)
        return _BrokenError(
            "cut-short",
            f"The file is cut short: it ends at byte {self.offset()}, inside or after record "
            f"{self.number}.",
        )

    def no_key(self) -> _BrokenError:
        return _BrokenError("not-json", f"Not JSON: a key is expected at byte {self.offset() + 1}.")


def _end_of(pattern: re.Pattern[bytes], buffer: bytes, position: int) -> int:
    match = pattern.match(buffer, position)
    assert match is not None  # each of the patterns matches the empty text
    return match.end()
