"""Reading ahead gives the same values, the same errors, and no thread that stays."""

import threading
from collections.abc import Iterator

import pytest

from evalsite.common.ahead import read_ahead


def threads_of_reading() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "read-ahead"]


@pytest.mark.parametrize("depth", [1, 3])
def test_read_ahead_gives_the_same_values_in_order(depth: int) -> None:
    assert list(read_ahead(range(50), depth=depth)) == list(range(50))
    assert list(read_ahead([], depth=depth)) == []
    assert list(read_ahead([None, ValueError("a value")], depth=depth))[0] is None
    assert threads_of_reading() == []


def test_read_ahead_raises_at_its_place_what_the_source_raises() -> None:
    def breaks() -> Iterator[int]:
        yield 1
        yield 2
        raise LookupError("three")

    seen = []
    with pytest.raises(LookupError, match="three"):
        for value in read_ahead(breaks()):
            seen.append(value)  # noqa: PERF402 - what came before the error counts
    assert seen == [1, 2]
    assert threads_of_reading() == []


def test_read_ahead_ends_its_thread_when_the_reader_stops_early() -> None:
    endless = read_ahead(iter(int, 1))
    assert next(endless) == 0
    endless.close()  # type: ignore[attr-defined]
    assert threads_of_reading() == []
