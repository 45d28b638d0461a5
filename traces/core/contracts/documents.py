"""YAML texts as JSON values with places, bounded, and never more than that.

Of YAML only what a contract needs is taken: mappings with text keys, lists and scalars. Anchors,
aliases, tags, merge keys, directives and duplicate keys are findings. PyYAML only finds out where
things begin and end (events); it never builds a value, so nothing of a text can be executed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import yaml

from traces.core.contracts.places import Findings, Path, Place, TooManyFindingsError, quoted
from traces.core.contracts.scalars import BadScalarError, value_of_plain
from traces.core.limits import KIB, MIB
from traces.core.text_marks import has_lone_surrogate, mark_of
from traces.core.values import Json, JsonObject

MOST_TEXT_BYTES: Final = 4 * MIB
MOST_DOCUMENT_BYTES: Final = 256 * KIB
MOST_DOCUMENTS: Final = 500
MOST_NODES: Final = 20_000  # names, scalars, lists and mappings of a document
MOST_TEXT_NODES: Final = 100_000  # of all documents of a text: what follows is not read
DEEPEST: Final = 32  # lists and mappings inside each other

Loader: TypeAlias = type[yaml.SafeLoader] | type[yaml.CSafeLoader]
PURE_LOADER: Final[Loader] = yaml.SafeLoader
FAST_LOADER: Final[Loader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_MARKER = re.compile(r"(?:---|\.\.\.)(?=[ \t\r\n]|\Z)")
_NOTHING = re.compile(r"[ \t]*(?:#.*)?|%YAML 1\.[0-9][ \t]*(?:#.*)?")
_BAD_CHARACTER = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\t"
)
_TIGHT_COMMENT = re.compile(r"(?:[&!]\S*\s+)*[|>][-+0-9]*#")  # one of the parsers takes it
_BREAK = re.compile(r"\r\n|\r|\n")
_MOST_BAD_CHARACTERS = 10


@dataclass(frozen=True, slots=True)
class Chunk:
    """One document of a text: where it begins, and its own text."""

    line: int  # from 1
    text: str  # ends with a line break
    beside_marker: Place | None = None  # something stands beside the marker before it


@dataclass(slots=True)
class Document:
    """A document as a value, with what is wrong with its YAML."""

    value: Json = None
    is_whole: bool = False  # read to its end
    n_nodes: int = 0  # that were read
    findings: Findings = field(default_factory=Findings)
    untold: set[Path] = field(default_factory=set)  # values that are stand-ins


class UnreadableTextError(Exception):
    """A text as a whole cannot be read: `code`, the place and the sentence say why."""

    def __init__(self, code: str, place: Place, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.place = place


def decoded(text: str | bytes) -> str:
    """The text, without a byte order mark. Raises UnreadableTextError."""
    if len(text) > MOST_TEXT_BYTES:
        sentence = f"The text is too large: at most {MOST_TEXT_BYTES // MIB} MB are read."
        raise UnreadableTextError("text-too-large", (0, 0), sentence)
    if isinstance(text, bytes):
        text = _utf8(text)
    return text.removeprefix("\ufeff")


def _utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        sentence = "The text is not UTF-8 from here on: save it as UTF-8."
        raise UnreadableTextError("not-utf-8", _end_of(before), sentence) from None


def chunks_of(text: str) -> list[Chunk]:
    """The documents of a text, parted by `---` lines; stretches of comments only are none."""
    chunks: list[Chunk] = []
    lines: list[str] = []
    start, beside = 1, None
    for number, match in enumerate(_LINE.finditer(text), 1):
        line = match[0]
        marker = _MARKER.match(line)
        if marker is None:
            lines.append(line)
            continue
        _close(chunks, start, lines, beside)
        rest = line[marker.end() :]
        content = rest.lstrip(" \t")
        column = len(line) - len(content) + 1
        beside = (number, column) if content.rstrip("\r\n") and content[0] != "#" else None
        start, lines = number + 1, []
    _close(chunks, start, lines, beside)
    if len(chunks) > MOST_DOCUMENTS:
        sentence = f"The text holds more than {MOST_DOCUMENTS} contracts: split it."
        raise UnreadableTextError("too-many-documents", (0, 0), sentence)
    return chunks


def _close(chunks: list[Chunk], start: int, lines: list[str], beside: Place | None) -> None:
    if beside is None and all(_NOTHING.fullmatch(line.rstrip("\r\n")) for line in lines):
        return
    text = "".join(lines)
    if not text.endswith(("\n", "\r")):
        text += "\n"
    chunks.append(Chunk(start, text, beside))


def document_of(chunk: Chunk, loader: Loader = FAST_LOADER) -> Document:
    """The value of a document and what is wrong with it. Never raises for any text."""
    document = Document()
    try:
        if _is_readable(chunk, document.findings):
            _Builder(chunk, document).build(loader)
    except TooManyFindingsError:
        document.is_whole = False
    return document


def _is_readable(chunk: Chunk, findings: Findings) -> bool:
    if chunk.beside_marker is not None:
        sentence = "The document begins on the line after its marker: move this there."
        findings.add_at("beside-marker", chunk.beside_marker, (), sentence)
        return False
    if len(chunk.text.encode("utf-8", "surrogatepass")) > MOST_DOCUMENT_BYTES:
        sentence = f"The contract is too large: at most {MOST_DOCUMENT_BYTES // KIB} kB are read."
        findings.add_at("document-too-large", (chunk.line, 1), (), sentence)
        return False
    bad = _BAD_CHARACTER.search(chunk.text)
    n_bad = 0
    while bad is not None and n_bad < _MOST_BAD_CHARACTERS:
        line, column = _end_of(chunk.text[: bad.start()])
        sentence = (
            "A tab stands here: write spaces, or \\t inside double quotes."
            if bad[0] == "\t"
            else f"A character that cannot be seen stands here ({mark_of(bad[0])}): remove it."
        )
        place = (chunk.line + line - 1, column)
        findings.add_at("bad-character", place, (), sentence)
        n_bad += 1
        bad = _BAD_CHARACTER.search(chunk.text, bad.end())
    return not n_bad


def _end_of(text: str) -> Place:
    """The place right after a text."""
    breaks = list(_BREAK.finditer(text))
    last = breaks[-1].end() if breaks else 0
    return len(breaks) + 1, len(text) - last + 1


class _StoppedError(Exception):
    """The document is not read on; the finding is noted."""


class _Mark(Protocol):
    """A place in the text, both counted from 0."""

    line: int
    column: int


class _Builder:
    """Makes one value of the events of a document."""

    def __init__(self, chunk: Chunk, document: Document) -> None:
        self._chunk = chunk
        self._document = document
        self._findings = document.findings
        self._places = document.findings.places

    def build(self, loader: Loader) -> None:
        """Fill the document."""
        events = yaml.parse(self._chunk.text, Loader=loader)
        try:
            value = self._root(events)
        except yaml.MarkedYAMLError as error:
            code, sentence, mark = _fault_of(error)
            self._findings.add_at(code, self._place(mark), (), sentence)
        except (ValueError, OverflowError):  # an escape that stands for no character
            sentence = "The document holds an escape that stands for no character."
            self._findings.add_at("bad-character", (self._chunk.line, 1), (), sentence)
        except _StoppedError:
            pass
        else:
            self._document.value = value
            self._document.is_whole = True

    def _place(self, mark: _Mark | None) -> Place:
        assert mark is not None  # both parsers give each event and fault its mark
        return self._chunk.line + mark.line, mark.column + 1

    def _root(self, events: Iterator[yaml.Event]) -> Json:
        next(events)  # of the stream
        next(events)  # of the document
        value = self._value(next(events), events, (), 0)
        for _ in events:  # the ends of both; what follows the value is a fault
            pass
        return value

    def _value(
        self, event: yaml.Event, events: Iterator[yaml.Event], path: Path, depth: int
    ) -> Json:
        place = self._places.values[path] = self._place(event.start_mark)
        self._count(event, path)
        if isinstance(event, yaml.AliasEvent):
            sentence = "Aliases are not taken: write the value out here."
            self._findings.add_at("alias", place, path, sentence)
            self._document.untold.add(path)
            return None
        self._refuse_properties(event, place, path)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, place, path)
        if depth == DEEPEST:
            sentence = f"Lists and mappings stand more than {DEEPEST} deep in each other."
            self._stop("too-deep", event, path, sentence)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(events, path, depth + 1)
        return self._members(events, path, depth + 1)

    def _items(self, events: Iterator[yaml.Event], path: Path, depth: int) -> Json:
        items: list[Json] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self._value(event, events, (*path, len(items)), depth))
        return items

    def _members(self, events: Iterator[yaml.Event], path: Path, depth: int) -> Json:
        members: JsonObject = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            self._count(event, path)
            name = self._name(event, events, path)
            if name is None:
                self._document.untold.add(path)
                self._skip(next(events), events, path)
                continue
            inner = (*path, name)
            if name in members:
                first = self._places.names[inner][0]
                sentence = f"{quoted(name)} stands here a second time, first on line {first}."
                self._findings.add_at(
                    "duplicate-key", self._place(event.start_mark), inner, sentence
                )
                self._skip(next(events), events, path)
                continue
            self._places.names[inner] = self._place(event.start_mark)
            members[name] = self._value(next(events), events, inner, depth)
        return members

    def _name(self, event: yaml.Event, events: Iterator[yaml.Event], path: Path) -> str | None:
        """The text of a key; None after a finding."""
        place = self._place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            sentence = "Aliases are not taken: write the name out."
            self._findings.add_at("alias", place, path, sentence)
            return None
        self._refuse_properties(event, place, path)
        if not isinstance(event, yaml.ScalarEvent):
            sentence = "A name must be a text, not a list or a mapping."
            self._findings.add_at("name-not-text", place, path, sentence)
            self._skip_inside(events, path)
            return None
        name = self._scalar(event, place, path)
        if name == "<<" and event.style in _PLAIN:
            sentence = "Merge keys are not taken: write the fields out here."
            self._findings.add_at("merge-key", place, path, sentence)
            return None
        if not isinstance(name, str):
            sentence = f"A name must be a text: put {quoted(event.value)} in quotes."
            self._findings.add_at("name-not-text", place, path, sentence)
            return None
        return name

    def _skip(self, event: yaml.Event, events: Iterator[yaml.Event], path: Path) -> None:
        """Read over a value that has no place, with the bounds of any other."""
        self._count(event, path)
        if not isinstance(event, yaml.AliasEvent | yaml.ScalarEvent):
            self._skip_inside(events, path)

    def _skip_inside(self, events: Iterator[yaml.Event], path: Path) -> None:
        open_now = 1
        while open_now:
            event = next(events)
            self._count(event, path)
            if isinstance(event, yaml.CollectionStartEvent):
                open_now += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                open_now -= 1

    def _scalar(self, event: yaml.ScalarEvent, place: Place, path: Path) -> Json:
        text: str = event.value
        if event.style in _PLAIN:
            try:
                return value_of_plain(text)
            except BadScalarError as error:
                self._findings.add_at(error.code, place, path, str(error))
                self._document.untold.add(path)
                return None
        mark = event.start_mark
        if mark is not None and _TIGHT_COMMENT.match(self._chunk.text, mark.index):
            self._stop("stray-character", event, path, "A blank must stand before this comment.")
        if "\x00" in text or has_lone_surrogate(text):
            sentence = "A text may not hold NUL or half of a surrogate pair."
            self._findings.add_at("bad-character", place, path, sentence)
        return text

    def _refuse_properties(self, event: yaml.Event, place: Place, path: Path) -> None:
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        if event.anchor is not None:
            sentence = "Anchors are not taken: write the value out where it is needed."
            self._findings.add_at("anchor", place, path, sentence)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!", 1)
            sentence = f"Tags are not taken: remove {quoted(tag)}."
            self._findings.add_at("tag", place, path, sentence)

    def _count(self, event: yaml.Event, path: Path) -> None:
        self._document.n_nodes += 1
        if self._document.n_nodes > MOST_NODES:
            sentence = f"The contract holds more than {MOST_NODES} names and values."
            self._stop("too-many-nodes", event, path, sentence)

    def _stop(self, code: str, event: yaml.Event, path: Path, sentence: str) -> None:
        self._findings.add_at(code, self._place(event.start_mark), path, sentence)
        raise _StoppedError


_PLAIN: Final = (None, "")

_UNCLOSED: Final = "The quoted text that begins here is not closed."
_FAULTS: Final = (
    # What the parser's problem or context says, code, sentence, whether the place is the context's.
    ("escape code", "bad-character", "An escape in this text stands for no character.", True),
    ("unknown escape", "bad-escape", "There is no such escape: use single quotes, or \\\\.", True),
    ("decimal number", "bad-escape", "An escape in this text is not complete.", True),
    ("unexpected end of stream", "not-closed", _UNCLOSED, True),
    ("simple key", "missing-colon", "This line needs a name, a colon and a space.", True),
    ("undefined tag", "tag", "Tags are not taken.", False),
    ("depth", "too-deep", f"Lists and mappings stand more than {DEEPEST} deep.", False),
    ("directive", "directive", "Directives are not taken: remove this line.", False),
    (
        "mapping values are not allowed",
        "stray-colon",
        "A colon with a space cannot stand here: check the indentation, or use quotes.",
        False,
    ),
    (
        "entries are not allowed",
        "stray-dash",
        "A list cannot begin here: write its first dash on the next line, indented.",
        False,
    ),
    (
        "cannot start any token",
        "stray-character",
        "No value can begin with this character: put the text in quotes.",
        False,
    ),
    (
        "flow",
        "open-bracket",
        "A comma or a closing bracket is missing before this.",
        False,
    ),
    (
        "block",
        "indentation",
        "This does not line up with what stands before it: check the indentation and the quotes.",
        False,
    ),
    (
        "document start",
        "indentation",
        "This stands outside the contract: check the indentation and the brackets.",
        False,
    ),
)


def _fault_of(error: yaml.MarkedYAMLError) -> tuple[str, str, _Mark | None]:
    """Code, sentence and mark for what the parser says."""
    said = f"{error.problem} {error.context}"
    for words, code, sentence, is_at_context in _FAULTS:
        if words in said:
            return (
                code,
                sentence,
                (error.context_mark if is_at_context else None) or error.problem_mark,
            )
    return "not-yaml", "This cannot be read as YAML.", error.problem_mark
