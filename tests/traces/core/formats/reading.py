"""What the tests of the readers share: members in memory, and small native records."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Self

from traces.core.formats.containers import Member
from traces.core.formats.options import DEFAULT_OPTIONS, ReadOptions
from traces.core.formats.scanning import Slice
from traces.core.records import Item, ParsedTrial

DATA = Path(__file__).parents[3] / "data"
CASES = DATA / "cases"
SAMPLE = Path(__file__).parents[4] / "evalsite" / "sample"


class MemoryStream(io.BytesIO):
    """A stream that gives at most `step` bytes at a time."""

    def __init__(self, data: bytes, step: int = 2**30) -> None:
        super().__init__(data)
        self.step = step

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.step if size is None or size < 0 else min(size, self.step))

    def __enter__(self) -> Self:
        return self


def member_of(content: Any, name: str = "") -> Member:
    """A member that holds bytes, or a value as JSON."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Member(name, lambda: MemoryStream(data))  # type: ignore[arg-type, return-value]


def record(**fields: Any) -> dict[str, Any]:
    """A small native record."""
    return {
        "task_id": "12",
        "trial": 3,
        "agent": {"name": "airline", "version": "2.4.0", "model": "m-1"},
        "messages": [{"role": "user", "content": "hi"}],
    } | fields


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in names}


def sliced(content: Any) -> Slice:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Slice(1, 0, len(data), data)


def read(content: Any, options: ReadOptions = DEFAULT_OPTIONS) -> Item:
    """The item of one native record."""
    from traces.core.formats.native import item_of_slice

    return item_of_slice(sliced(content), "", options)


def trial(content: Any, options: ReadOptions = DEFAULT_OPTIONS) -> ParsedTrial:
    item = read(content, options)
    assert isinstance(item.content, ParsedTrial), item.refusals
    return item.content


def refusal(content: Any, options: ReadOptions = DEFAULT_OPTIONS) -> tuple[str, str, str]:
    item = read(content, options)
    assert item.content is None
    (finding,) = item.refusals
    return finding.code, finding.place, finding.sentence


def warned(content: Any, options: ReadOptions = DEFAULT_OPTIONS) -> list[tuple[str, str]]:
    return [(finding.code, finding.place) for finding in read(content, options).warnings]
