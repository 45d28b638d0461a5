from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.traces.core.formats.reading import CASES, record
from tests.traces.core.formats.test_tau2 import INFO, TASK, simulation
from traces.core.formats import (
    FORMATS,
    ReadOptions,
    TooLargeError,
    format_of,
    read_upload,
    record_bytes,
)
from traces.core.limits import MIB, Limits
from traces.core.records import Item, ParsedTrial, RunFacts, Source, UnreadableUploadError

NATIVE = json.dumps(record()).encode()
RESULTS = {"timestamp": "t", "info": INFO, "tasks": [TASK]}


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def zipped(path: Path, *members: tuple[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def tarred(path: Path, *members: tuple[str, Any]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def seen(items: list[Item]) -> list[tuple[int, str, str]]:
    return [(i.source.number, i.source.member, type(i.content).__name__) for i in items]


def trial_of(item: Item) -> ParsedTrial:
    assert isinstance(item.content, ParsedTrial), item.refusals
    return item.content


def test_formats_are_named() -> None:
    assert FORMATS == ("native", "tau-bench", "tau2", "tau2-judges")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_read_upload_one_file(tmp_path: Path, pack: Any) -> None:
    path = written(tmp_path / "f", pack(NATIVE + b"\n" + NATIVE))
    assert seen(list(read_upload(path))) == [(1, "", "ParsedTrial"), (2, "", "ParsedTrial")]
    assert format_of(path) == "native"


def test_read_upload_is_the_same_every_time(tmp_path: Path) -> None:
    path = written(tmp_path / "f", json.dumps(RESULTS | {"simulations": [simulation()]}).encode())
    assert list(read_upload(path)) == list(read_upload(path))


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_read_upload_tau2_directory(tmp_path: Path, pack: Any) -> None:
    path = pack(
        tmp_path / "f",
        ("x/simulations/b.json", simulation(trial=1)),
        ("x/results.json", RESULTS | {"simulations": []}),
        ("x/simulations/a.json", simulation()),
    )
    items = list(read_upload(path))
    assert seen(items) == [
        (1, "x/results.json", "ParsedTask"),
        (2, "x/results.json", "RunFacts"),
        (3, "x/simulations/b.json", "ParsedTrial"),
        (4, "x/simulations/a.json", "ParsedTrial"),
    ]
    assert {(trial_of(i).agent_name, trial_of(i).task_digest) for i in items[2:]} == {
        ("llm_agent", items[0].content.digest)  # type: ignore[union-attr]
    }
    assert format_of(path) == "tau2"


def test_read_upload_simulations_belong_to_the_results_of_their_folder(tmp_path: Path) -> None:
    other = RESULTS | {"info": INFO | {"agent_info": {"implementation": "other"}}}
    members = (
        ("a/results.json", RESULTS), ("b/results.json", other),
        ("a/simulations/1.json", simulation()), ("b/deep/er/1.json", simulation()),
        ("c/1.json", simulation()),
    )  # fmt: skip
    trials = [
        i
        for i in read_upload(zipped(tmp_path / "f", *members))
        if isinstance(i.content, ParsedTrial)
    ]
    assert [trial_of(i).agent_name for i in trials] == ["llm_agent", "other", ""]
    alone = zipped(tmp_path / "g", ("r/results.json", RESULTS), ("s/1.json", simulation()))
    (*_, last) = read_upload(alone)
    assert trial_of(last).agent_name == "llm_agent"


def test_read_upload_archive_of_several_formats(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "f",
        ("README.md", b"# text"),
        ("a.jsonl", NATIVE + b"\nbad"),
        ("empty.jsonl", b""),
        ("b.jsonl.gz", gzip.compress(NATIVE, mtime=0)),
    )
    items = list(read_upload(path))
    assert [(n, m, [f.code for f in i.refusals]) for (n, m, _), i in zip(seen(items), items, strict=True)] == [
        (1, "README.md", ["unknown-format"]), (2, "empty.jsonl", ["empty"]), (3, "a.jsonl", []),
        (4, "a.jsonl", ["not-json"]), (5, "b.jsonl.gz", []),
    ]  # fmt: skip
    assert format_of(path) == "native"


def test_read_upload_case_of_bad_names() -> None:
    items = list(read_upload(CASES / "archive-path-traversal--dotdot.zip"))
    assert [[f.code for f in i.refusals] for i in items] == [
        ["refused-member"],
        ["refused-member"],
        [],
    ]


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_read_upload_superseded_member_is_noted(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "f", ("a.jsonl", NATIVE), ("a.jsonl", json.dumps(record(trial=9)).encode())
    )
    (item,) = read_upload(path)
    assert trial_of(item).key.trial == "9"
    assert [f.code for f in item.warnings] == ["superseded-member"]


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_read_upload_archive_with_nothing_readable_is_unreadable(tmp_path: Path) -> None:
    for path in (
        CASES / "zip-duplicate-members--superseded-sample.eval",
        zipped(tmp_path / "f", ("a.txt", b"x")),
        zipped(tmp_path / "g"),
    ):
        with pytest.raises(UnreadableUploadError, match="nothing in a known format"):
            list(read_upload(path))
        with pytest.raises(UnreadableUploadError, match="nothing in a known format"):
            format_of(path)


def test_read_upload_format_may_be_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path / "f", NATIVE)
    assert len(list(read_upload(path, ReadOptions(format="native")))) == 1
    with pytest.raises(UnreadableUploadError, match="in the format native, not tau2"):
        list(read_upload(path, ReadOptions(format="tau2")))


def test_read_upload_damaged_file_gives_its_good_records(tmp_path: Path) -> None:
    lines = b"\n".join(json.dumps(record(trial=n)).encode() for n in range(20_000))
    packed = gzip.compress(lines)
    items = list(read_upload(written(tmp_path / "f", packed[: len(packed) // 2])))
    *good, last = items
    assert len(good) > 100
    assert all(isinstance(item.content, ParsedTrial) for item in good)
    assert [f.code for f in last.refusals] == ["damaged"]
    assert last.source.number == good[-1].source.number + 1


def test_read_upload_over_a_limit_is_unreadable(tmp_path: Path) -> None:
    bomb = written(tmp_path / "f", gzip.compress(NATIVE + b"\n" + b" " * (3 * MIB)))
    with pytest.raises(TooLargeError):
        list(read_upload(bomb, ReadOptions(limits=Limits(inflated_bytes=MIB))))
    packed = zipped(tmp_path / "g", ("a", b" " * (3 * MIB)), ("b", NATIVE))
    limits = ReadOptions(limits=Limits(archive_bytes=MIB))
    with pytest.raises(TooLargeError):
        list(read_upload(packed, limits))
    with pytest.raises(TooLargeError):
        format_of(packed, limits)


def test_record_bytes_gives_the_record_as_it_stands(tmp_path: Path) -> None:
    spaced = json.dumps(record(trial=2), indent=None, separators=(" , ", " : ")).encode()
    packed = zipped(
        tmp_path / "f", ("x.jsonl", NATIVE), ("d/y.jsonl", b"\n" + NATIVE + b"\r\n" + spaced)
    )
    *_, last = read_upload(packed)
    assert record_bytes(packed, last.source) == spaced
    array = written(tmp_path / "g", gzip.compress(b"[ " + NATIVE + b",\n " + spaced + b"\n]"))
    first, second = read_upload(array)
    assert record_bytes(array, first.source) == NATIVE
    assert record_bytes(array, second.source) == spaced


def test_record_bytes_that_are_not_there_are_unreadable(tmp_path: Path) -> None:
    path = written(tmp_path / "f", gzip.compress(NATIVE * 100)[:-9])
    with pytest.raises(UnreadableUploadError, match="no such member"):
        record_bytes(path, Source(1, "x"))
    with pytest.raises(UnreadableUploadError, match="damaged"):
        record_bytes(path, Source(1, "", 10**6, 10))


def test_read_upload_facts_come_before_the_trials(tmp_path: Path) -> None:
    document = {"simulations": [simulation()], **RESULTS}
    items = list(read_upload(written(tmp_path / "f", json.dumps(document).encode())))
    assert isinstance(items[1].content, RunFacts)
    assert isinstance(items[2].content, ParsedTrial)
