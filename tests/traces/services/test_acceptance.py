"""What is taken in at any door, and what is refused with which sentence."""

from __future__ import annotations

import errno
import gzip
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from tests.support.cast import Cast
from tests.support.evidence import jsonl, record
from traces.models import Door, Release, Upload, UploadJob, UploadState
from traces.services.acceptance import (
    Offer,
    Refusal,
    accept_upload,
    file_chunks,
    refusal_of_names,
)
from traces.services.uploads import stored_path, uploads_root

GOOD = jsonl([record("t1", 0)])


def offer(cast: Cast, **more: Any) -> Offer:
    return Offer(system=cast.system, door=Door.PAGE, by=cast.engineer, **more)


def accept(cast: Cast, body: bytes = GOOD, **more: Any) -> Upload | Refusal:
    return accept_upload([body], offer(cast, **more), now=timezone.now())


def stored_files() -> set[Path]:
    return {path for path in uploads_root().rglob("*") if path.is_file()}


@pytest.mark.django_db
def test_an_accepted_upload_is_on_disk_with_its_job(cast: Cast) -> None:
    upload = accept(cast, release="cafe\u0301", run="night", file_name="a.jsonl")

    assert isinstance(upload, Upload)
    assert stored_path(upload).read_bytes() == GOOD
    assert upload.release == Release.objects.get(name="caf\u00e9")
    assert UploadJob.objects.get(upload=upload).state == UploadState.RECEIVED.value


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"<html>", "html"),
        (gzip.compress(b"<html>", mtime=0), "html"),
        (gzip.compress(GOOD, mtime=0)[:12], "damaged"),
        (b'{"task_id": "t1", "trial": 1,', "cut-short"),
        (b'{"task_id": "t1" "trial": 1}', "not-json"),
        (b"PK\x03\x04broken", "damaged"),
        ("{}".encode("utf-16"), "utf-16"),
    ],
)
def test_what_no_reader_knows_is_refused_and_leaves_nothing(
    cast: Cast, body: bytes, code: str
) -> None:
    before = stored_files()

    refusal = accept(cast, body)

    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code, refusal.retry_after) == (400, code, None)
    assert refusal.sentence.endswith(".")
    assert stored_files() == before
    assert Upload.objects.count() == 0


@pytest.mark.django_db
def test_one_readable_record_is_enough(cast: Cast) -> None:
    assert isinstance(accept(cast, b"{broken\n" + GOOD), Upload)
    # A record that is JSON is refused by name in the ledger, not at the door.
    assert isinstance(accept(cast, b'{"task_id": "t1"}\n'), Upload)


@pytest.mark.django_db
def test_another_format_than_asked_for_is_refused(cast: Cast) -> None:
    refusal = accept(cast, format="tau2")
    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (400, "other-format")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "names",
    [
        {"release": "a\x00b"},
        {"release": " a"},
        {"run": "a\u202eb"},
        {"run": "r" * 513},
        {"release": "\ud800"},
        {"format": "inspect"},
        {"idempotency_key": ""},
        {"idempotency_key": "k" * 256},
        {"idempotency_key": "a\nb"},
    ],
)
def test_names_that_cannot_be_names_are_refused(cast: Cast, names: dict[str, str]) -> None:
    refusal = refusal_of_names(offer(cast, **names))
    assert refusal is not None
    assert refusal.status == 400
    assert refusal_of_names(offer(cast, release="1.0-rc/ä", run="n 1")) is None


@pytest.mark.django_db
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_disk_that_takes_no_more_is_said_with_a_time(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def full(*_: Any) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr("traces.services.uploads.os.fsync", full)

    refusal = accept(cast)

    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.code) == (503, "disk-full")
    assert refusal.retry_after


@pytest.mark.django_db
def test_a_file_that_cannot_be_read_is_the_callers_error(cast: Cast, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        accept_upload(file_chunks(tmp_path / "none"), offer(cast), now=timezone.now())


@pytest.mark.django_db
def test_a_row_that_cannot_be_written_leaves_no_file(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = stored_files()

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("traces.services.uploads.UploadJob.objects.create", broken)
    with pytest.raises(RuntimeError):
        accept(cast)

    assert stored_files() == before


@pytest.mark.django_db
def test_bytes_are_counted_as_sent_and_as_unpacked(cast: Cast) -> None:
    packed = gzip.compress(GOOD * 1_000, mtime=0)
    assert isinstance(accept(cast, packed, max_bytes=len(packed)), Upload)
    for more in ({"max_bytes": len(packed) - 1}, {"max_inflated_bytes": len(GOOD) * 1_000 - 1}):
        refusal = accept(cast, packed, **more)
        assert isinstance(refusal, Refusal)
        assert (refusal.status, refusal.code) == (413, "too-large")


@pytest.mark.django_db(transaction=True)
def test_the_same_key_at_once_is_one_upload(cast: Cast) -> None:
    files = stored_files()
    same = replace(offer(cast), idempotency_key="once", release="1.0")
    outcomes: list[Upload | Refusal] = []
    barrier = threading.Barrier(6)

    def slow() -> Iterator[bytes]:
        yield GOOD
        barrier.wait(timeout=30)

    def send() -> None:
        try:
            outcomes.append(accept_upload(slow(), same, now=timezone.now()))
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    upload = Upload.objects.get()
    assert outcomes == [upload] * 6
    assert stored_files() - files == {stored_path(upload)}
