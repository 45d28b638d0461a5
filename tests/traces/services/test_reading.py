"""Batches of an upload are the same, whichever process reads them."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evalsite.common import blobs
from tests.support.evidence import jsonl, record
from traces.core.formats import ReadOptions
from traces.core.records import UnreadableUploadError
from traces.core.rules import RuleSet
from traces.services import reading
from traces.services.packing import PackedTrial
from traces.services.reading import Order, ReaderDiedError, batches_in_place, batches_of

PROJECT = Path(__file__).resolve().parents[3]


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every upload is large enough for a process of its own."""
    monkeypatch.setattr(reading, "SMALL_BYTES", -1)


def order(folder: Path, body: bytes, **more: Any) -> Order:
    path = folder / "upload"
    path.write_bytes(body)
    return Order(path, ReadOptions(release="1.0"), RuleSet(), **more)


def test_a_batch_holds_its_trials_packed(tmp_path: Path) -> None:
    one = record("t1", 7, calls=[("get", {"a": 1}), ("put", {"b": [2, 1.0]})], facts={"x": 1})

    ((item,),) = batches_in_place(order(tmp_path, jsonl([one])))

    assert isinstance(item.content, PackedTrial)
    packed = item.content
    assert packed.n_messages == 6
    ((first, n, content),) = packed.chunks
    assert (first, n, blobs.unpack(content)) == (1, 6, one["messages"])
    assert blobs.unpack(packed.record)["rest"]["facts"] == {"x": 1}
    assert packed.trajectory.calls == (
        ("get", "json", '{"a":1}'),
        ("put", "json", '{"b":[2,1]}'),
        None,
    )
    assert (packed.trajectory.outcomes, packed.trajectory.groups) == ("ccm", (0, 1, 2))
    assert packed.trajectory.whole is None


def test_a_call_without_arguments_keeps_its_trajectory_whole(tmp_path: Path) -> None:
    one = record("t1", 0)
    del one["messages"][1]["tool_calls"][0]["function"]["arguments"]

    ((item,),) = batches_in_place(order(tmp_path, jsonl([one])))

    assert isinstance(item.content, PackedTrial)
    assert item.content.trajectory.keys is None
    assert item.content.trajectory.whole is not None


@pytest.mark.usefixtures("beside")
def test_batches_from_beside_equal_those_read_in_place(tmp_path: Path) -> None:
    body = jsonl(record("t1", n) for n in range(11)) + b"no JSON\n"
    asked = order(tmp_path, body, skip=2, records=4)

    batches = list(batches_of(asked, folder=PROJECT))

    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert batches == list(batches_in_place(asked))
    assert batches[-1][-1].content is None


def test_batches_are_bounded_by_bytes_too(tmp_path: Path) -> None:
    body = jsonl(record("t1", n) for n in range(4))
    batches = batches_in_place(order(tmp_path, body, n_bytes=len(body) // 2 - 8))
    assert [len(batch) for batch in batches] == [2, 2]


@pytest.mark.usefixtures("beside")
def test_an_unreadable_upload_says_so_from_beside(tmp_path: Path) -> None:
    with pytest.raises(UnreadableUploadError, match="HTML"):
        list(batches_of(order(tmp_path, b"<html>"), folder=PROJECT))


@pytest.mark.usefixtures("beside")
def test_a_killed_reader_is_an_error_and_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    real = subprocess.Popen

    def note(*args: Any, **more: Any) -> "subprocess.Popen[bytes]":
        started.append(real(*args, **more))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", note)
    body = jsonl(record("t1", n, result="x" * 20_000) for n in range(200))
    batches = batches_of(order(tmp_path, body, records=1), folder=PROJECT)
    assert len(next(batches)) == 1
    os.kill(started[0].pid, signal.SIGKILL)

    with pytest.raises(ReaderDiedError):
        list(batches)
    assert started[0].returncode == -signal.SIGKILL


@pytest.mark.usefixtures("beside")
def test_a_reader_that_is_no_longer_wanted_ends(tmp_path: Path) -> None:
    body = jsonl(record("t1", n) for n in range(50))
    batches = batches_of(order(tmp_path, body, records=1), folder=PROJECT)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert list(batches) == []
