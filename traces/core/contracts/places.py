"""Places in a contract's text: the path of a field, how it is written, and where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from traces.core.contracts.model import ContractFinding
from traces.core.text_marks import marked_text

Path: TypeAlias = tuple[str | int, ...]
"""Names and list indices from the document down."""

Place: TypeAlias = tuple[int, int]
"""Line and column, both from 1."""

MOST_FINDINGS: Final = 50
"""Of one document; more are not looked for."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_PART = re.compile(r"([A-Za-z_]+)|\[([0-9]+)\]")
_MOST_SHOWN_CHARS = 80


def field_of(path: Iterable[str | int]) -> str:
    """A path as it is written: `required[1].where`, `outcome[0].changes["/refunds/-"]`."""
    written = ""
    for part in path:
        if isinstance(part, int):
            written += f"[{part}]"
        elif _PLAIN_NAME.match(part):
            written += f".{part}" if written else part
        else:
            written += f"[{quoted(part)}]"
    return written


def path_of(place: str) -> Path:
    """The path of a finding's place, such as `messages[0].role` or `.step`."""
    return tuple(name or int(index) for name, index in _PART.findall(place))


def quoted(text: str) -> str:
    """A text of the document inside a sentence: marked, cut, in double quotes."""
    shown = text if len(text) <= _MOST_SHOWN_CHARS else f"{text[: _MOST_SHOWN_CHARS - 1]}…"
    line = marked_text(shown).replace("\n", "⏎").replace('"', "'")
    return f'"{line}"'


class TooManyFindingsError(Exception):
    """As many findings as one reading gives are collected."""


@dataclass(slots=True)
class Places:
    """Where the fields of one document stand: the names of a mapping, and every value."""

    names: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)

    def of(self, path: Path, *, name: bool = False) -> Place:
        """The place of a value, or of its name; of the nearest one above where it is missing."""
        while path:
            place = self.names.get(path) if name else None
            place = place or self.values.get(path)
            if place is not None:
                return place
            path, name = path[:-1], True
        return self.values.get((), (1, 1))

    def by_field(self) -> dict[str, Place]:
        """The place of each value by its written path."""
        return {field_of(path): place for path, place in self.values.items()}


@dataclass(slots=True)
class Findings:
    """The findings of one document, bounded, with the paths that they spoil."""

    places: Places = field(default_factory=Places)
    items: list[ContractFinding] = field(default_factory=list)
    spoiled: set[Path] = field(default_factory=set)

    def add(self, code: str, path: Path, sentence: str, *, name: bool = False) -> None:
        """Note a finding at a field, once. Raises TooManyFindingsError when that was the last one."""
        self.add_at(code, self.places.of(path, name=name), path, sentence)

    def add_at(self, code: str, place: Place, path: Path, sentence: str) -> None:
        """As `add`, with the place given."""
        line, column = place
        finding = ContractFinding(code, line, column, field_of(path), sentence)
        if finding not in self.items:
            self.items.append(finding)
        self.spoiled.update(path[:depth] for depth in range(len(path) + 1))
        if len(self.items) >= MOST_FINDINGS:
            raise TooManyFindingsError

    def is_sound(self, *path: str | int) -> bool:
        """Whether there is no finding at the path or below it."""
        return path not in self.spoiled

    def in_order(self) -> Iterator[ContractFinding]:
        """Every finding, in the order of the text."""
        return iter(sorted(self.items, key=lambda finding: (finding.line, finding.column)))
