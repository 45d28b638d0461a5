from collections.abc import Iterator

import pytest

from evalsite.benchmarks import measuring
from evalsite.benchmarks.measuring import Stages, peak_memory, reset_peak_memory


class _Work:
    def add(self, a: int, b: int) -> int:
        return a + b

    def count(self, n: int) -> Iterator[int]:
        yield from range(n)


def test_peak_memory_sees_what_was_held_and_let_go() -> None:
    reset_peak_memory()
    before = peak_memory()
    held = bytearray(64_000_000)
    held[::4096] = b"x" * len(held[::4096])
    del held

    assert peak_memory() - before > 50_000_000


def test_peak_memory_where_the_system_tells_less(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(measuring, "_STATUS", measuring.Path("/nowhere"))
    monkeypatch.setattr(measuring, "_CLEAR", measuring.Path("/nowhere/else"))

    reset_peak_memory()

    assert peak_memory() > 1_000_000


def test_stages_time_calls_and_iterators_and_change_nothing() -> None:
    work, stages = _Work(), Stages()

    with stages.watching([("a", work, "add"), ("b", work, "count"), ("a", work, "add")]):
        assert work.add(1, 2) == 3
        assert list(work.count(3)) == [0, 1, 2]

    assert set(stages.seconds) == {"a", "b"}
    assert all(seconds > 0 for seconds in stages.seconds.values())
    stages.seconds.clear()
    work.add(1, 2)
    assert stages.seconds == {}
