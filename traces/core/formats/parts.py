"""From a slice of an upload to its JSON value and item, for readers that translate records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traces.core.formats.options import ReadOptions
from traces.core.formats.scanning import Slice
from traces.core.records import Finding, Item, Source
from traces.core.strict_json import StrictJsonError, decoded, loads_tolerant
from traces.core.values import Json


@dataclass(frozen=True, slots=True)
class Part:
    """One parsed part of a document."""

    source: Source
    data: bytes
    value: Json
    missing: tuple[str, ...]  # measures that were NaN or Infinity


def part_of(
    piece: Slice, member: str, options: ReadOptions, is_measure: Callable[[str], bool]
) -> Part | Item:
    """The parsed part, or the item that says why it is refused."""
    source = Source(piece.number, member, piece.offset, piece.length)
    if piece.refusal is not None:
        return Item(source, None, (piece.refusal,))
    try:
        text = decoded(piece.data)
        value, missing = loads_tolerant(text, is_measure, options.limits)
    except StrictJsonError as error:
        return Item(source, None, (Finding(error.code, error.place, error.sentence),))
    return Part(source, piece.data, value, missing)


def refused(source: Source, code: str, place: str, sentence: str) -> Item:
    """An item for a record that its reader cannot translate."""
    return Item(source, None, (Finding(code, place, sentence),))
