from __future__ import annotations

import gzip
import io
import random
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.traces.core.formats.reading import CASES
from traces.core.formats import containers
from traces.core.formats.containers import (
    Contents,
    DamagedError,
    TooLargeError,
    fault_of_name,
    head_of,
    inflated_size,
    opened_upload,
)
from traces.core.limits import MIB, Limits
from traces.core.records import UnreadableUploadError

PAYLOAD = b'{"a":1}\n' * 50_000


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def zipped(path: Path, *members: tuple[str, bytes], **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data, **options)
    return path


def tarred(path: Path, *members: tuple[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def everything(path: Path, limits: Limits = Limits()) -> dict[str, bytes]:  # noqa: B008
    with opened_upload(path, limits) as contents:
        return {member.name: whole(member) for member in contents.members}


def whole(member: containers.Member) -> bytes:
    with member.open() as stream:
        return b"".join(iter(lambda: stream.read(1000), b""))


def listed(path: Path, limits: Limits = Limits()) -> Contents:  # noqa: B008
    with opened_upload(path, limits) as contents:
        return contents


@pytest.mark.parametrize(
    "pack",
    [
        bytes,
        gzip.compress,
        lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:]) + b"\0" * 8,
        zstandard.compress,
        lambda data: zstandard.compress(data[:1000]) + zstandard.compress(data[1000:]),
    ],
)
def test_opened_upload_one_file_is_unpacked(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = written(tmp_path / "f", pack(PAYLOAD))
    assert everything(path) == {"": PAYLOAD}
    assert inflated_size(path) == len(PAYLOAD)
    assert not listed(path).is_archive


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, bytes])
def test_opened_upload_bomb_is_refused_while_inflating(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = written(tmp_path / "bomb", pack(b" " * (3 * MIB)))
    for read in (everything, inflated_size):
        with pytest.raises(TooLargeError) as error:
            read(path, Limits(inflated_bytes=MIB))
        assert error.value.limit == "inflated_bytes"
        assert str(error.value) == (
            "The upload is too large once it is unpacked: more than 1048576 bytes (inflated_bytes)."
        )


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_opened_upload_cut_stream_gives_what_is_good_first(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    noise = random.Random(1).randbytes(400_000)  # noqa: S311
    packed = pack(noise)
    path = written(tmp_path / "cut", packed[: len(packed) // 2])
    with opened_upload(path) as contents, contents.members[0].open() as stream:
        good = b""
        with pytest.raises(DamagedError):
            while block := stream.read(4096):
                good += block
    assert noise.startswith(good)
    assert len(good) > 50_000
    assert 0 < inflated_size(path) < len(noise)


@pytest.mark.parametrize(
    "damaged", [b"\x1f\x8b\x08\x00broken", b"\x28\xb5\x2f\xfd\xff\xff", b"\x1f\x8b"]
)
def test_opened_upload_damaged_from_the_beginning_is_unreadable(
    tmp_path: Path, damaged: bytes
) -> None:
    with pytest.raises(UnreadableUploadError, match="damaged from its beginning") as error:
        listed(written(tmp_path / "f", damaged))
    assert error.value.finding.code == "damaged"


def test_opened_upload_zstd_that_asks_for_much_memory_is_refused(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    frame = compressor.compressobj()
    data = frame.compress(b"x" * 1000) + frame.flush()
    with pytest.raises(UnreadableUploadError, match="damaged"):
        listed(written(tmp_path / "f", data))


def archives(tmp_path: Path, *members: tuple[str, bytes]) -> list[Path]:
    return [
        zipped(tmp_path / "a.zip", *members),
        tarred(tmp_path / "a.tar.gz", *members),
        tarred(tmp_path / "a.tar", *members, mode="w"),
        written(tmp_path / "a.tar.zst", zstandard.compress((tmp_path / "a.tar").read_bytes())),
    ]


def test_opened_upload_archive_members_are_read_by_stream(tmp_path: Path) -> None:
    for path in archives(tmp_path, ("b.jsonl", PAYLOAD), ("d/a.jsonl", b"2"), ("e", b"")):
        assert listed(path).is_archive
        assert everything(path) == {"b.jsonl": PAYLOAD, "d/a.jsonl": b"2", "e": b""}
        assert inflated_size(path) == len(PAYLOAD) + 1


def test_opened_upload_members_may_be_opened_again_in_any_order(tmp_path: Path) -> None:
    for path in archives(tmp_path, ("a", b"1"), ("b", PAYLOAD), ("c", b"3")):
        with opened_upload(path) as contents:
            a, b, c = contents.members
            assert [whole(m) for m in (c, a, b, b, a)] == [b"3", b"1", PAYLOAD, PAYLOAD, b"1"]
            with b.open() as unfinished:
                assert unfinished.read(5) == PAYLOAD[:5]
            assert whole(c) == b"3"


def test_opened_upload_gzip_inside_an_archive_is_unpacked_once(tmp_path: Path) -> None:
    once, twice = gzip.compress(b"x"), gzip.compress(gzip.compress(b"x"))
    for path in archives(tmp_path, ("a.gz", once), ("b.gz.gz", twice)):
        assert everything(path) == {"a.gz": b"x", "b.gz.gz": once}


def test_opened_upload_bad_names_are_refused_and_the_others_read(tmp_path: Path) -> None:
    names = ("../x", "/etc/x", "a/../../x", "C:/x", "a\\b", "__MACOSX/x", "d/.DS_Store")
    for path in archives(tmp_path, ("good", b"1"), *((name, b"2") for name in names)):
        contents = listed(path)
        assert [member.name for member in contents.members] == ["good"]
        assert [(name, finding.code) for name, finding in contents.refusals] == [
            (name, "refused-member") for name in ("../x", "/etc/x", "a/../../x", "C:/x", "a\\b")
        ]
        assert contents.refusals[0][1].sentence == (
            "The archive member is refused: its name leads out of the archive."
        )


def test_opened_upload_case_with_traversal_names_writes_nothing() -> None:
    contents = listed(CASES / "archive-path-traversal--dotdot.zip")
    assert [member.name for member in contents.members] == ["good.jsonl"]
    assert len(contents.refusals) == 2
    assert not Path("/tmp/owned.jsonl").exists()  # noqa: S108


def test_fault_of_name_other_reasons() -> None:
    assert fault_of_name("a\x00b") == "its name is not usable text"
    assert fault_of_name("a\ud800") == "its name is not usable text"
    assert fault_of_name("a" * 2000) == "its name is not usable text"
    assert fault_of_name("a..b/c.jsonl") is None


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_opened_upload_repeated_name_the_last_counts(tmp_path: Path) -> None:
    for path in archives(tmp_path, ("a", b"old"), ("b", b"2"), ("a", b"new")):
        assert everything(path) == {"a": b"new", "b": b"2"}
        ((name, finding),) = listed(path).warnings
        assert (name, finding.code) == ("a", "superseded-member")


def test_opened_upload_links_and_devices_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.mkdir("folder")
        archive.writestr("good", b"1")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, kind in (
            ("link", tarfile.SYMTYPE),
            ("hard", tarfile.LNKTYPE),
            ("pipe", tarfile.FIFOTYPE),
            ("folder", tarfile.DIRTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        good = tarfile.TarInfo("good")
        good.size = 1
        tar.addfile(good, io.BytesIO(b"1"))
    assert [n for n, _ in listed(tmp_path / "a.zip").refusals] == ["link"]
    assert [n for n, _ in listed(tmp_path / "a.tar").refusals] == ["link", "hard", "pipe"]
    assert everything(tmp_path / "a.zip") == everything(tmp_path / "a.tar") == {"good": b"1"}


def test_opened_upload_encrypted_or_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", ("a", b"1"), ("b", b"2"), ("c", b"3"))
    data = bytearray(path.read_bytes())
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    data[first + 8] |= 1
    data[second + 10 : second + 12] = struct.pack("<H", 93)
    contents = listed(written(tmp_path / "b.zip", bytes(data)))
    assert [finding.sentence for _, finding in contents.refusals] == [
        "The archive member is refused: it is encrypted.",
        "The archive member is refused: its compression (method 93) cannot be read.",
    ]
    assert [member.name for member in contents.members] == ["c"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_opened_upload_compression_that_unpacks_without_a_bound_is_refused(
    method: int, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", method) as archive:
        archive.writestr("a", b"1")
    contents = listed(tmp_path / "a.zip")
    assert [finding.sentence for _, finding in contents.refusals] == [
        f"The archive member is refused: its compression (method {method}) cannot be read."
    ]
    assert contents.members == ()


def test_opened_upload_damaged_zip_member_is_named_while_reading(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", ("a", PAYLOAD), ("b", b"2"), compress_type=zipfile.ZIP_STORED)
    data = path.read_bytes().replace(b'{"a":1}', b'{"a":2}', 1)
    path.write_bytes(data)
    with opened_upload(path) as contents:
        a, b = contents.members
        with pytest.raises(DamagedError, match="CRC"):
            whole(a)
        assert whole(b) == b"2"
    assert inflated_size(path) >= 1


@pytest.mark.parametrize("data", [b"PK\x03\x04rubbish", b"PK\x05\x06" + b"\xff" * 18])
def test_opened_upload_damaged_zip_is_unreadable(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableUploadError, match="damaged"):
        listed(written(tmp_path / "a.zip", data))


def test_opened_upload_too_many_members_is_refused_before_they_are_listed(tmp_path: Path) -> None:
    for path in archives(tmp_path, *((f"f{n}", b"1") for n in range(6))):
        assert len(listed(path, Limits(archive_members=6)).members) == 6
        with pytest.raises(TooLargeError, match=r"too many members \(max 5\)") as error:
            listed(path, Limits(archive_members=5))
        assert error.value.limit == "archive_members"


def test_opened_upload_lying_member_count_is_not_believed(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", *((f"f{n}", b"1") for n in range(6)))
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    data[end + 8 : end + 12] = struct.pack("<HH", 1, 1)
    path.write_bytes(data)
    with pytest.raises(TooLargeError):
        listed(path, Limits(archive_members=5))
    data[end + 8 : end + 12] = struct.pack("<HH", 0xFFFF, 0xFFFF)
    path.write_bytes(data)
    with pytest.raises(TooLargeError):
        listed(path, Limits(archive_members=5))


def test_opened_upload_large_zip_form_is_counted_too(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(6):
            archive.writestr(f"f{n}", b"1")
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    size, offset = struct.unpack("<II", data[end + 12 : end + 20])
    large = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, 6, 6, size, offset)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, end, 1)
    plain = b"PK\x05\x06" + b"\0" * 4 + b"\xff" * 12 + b"\0\0"
    path.write_bytes(data[:end] + large + locator + plain)
    assert len(everything(path)) == 6
    with pytest.raises(TooLargeError):
        listed(path, Limits(archive_members=5))


@pytest.mark.parametrize("n_bytes", range(1, 40))
def test_opened_upload_zstd_cut_anywhere_is_noticed(tmp_path: Path, n_bytes: int) -> None:
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    skippable = b"\x50\x2a\x4d\x18\x02\x00\x00\x00ab"
    packed = skippable + compressor.compress(b"a" * 1000) + compressor.compress(b"b" * 300_000)
    path = written(tmp_path / "f", packed)
    assert inflated_size(path) == 301_000
    first = len(skippable + compressor.compress(b"a" * 1000))
    path.write_bytes(packed[:-n_bytes])
    if len(packed) - n_bytes == first:
        assert inflated_size(path) == 1000  # a whole frame: no cut to be seen
        return
    with pytest.raises((DamagedError, UnreadableUploadError)):
        everything(path)


def test_opened_upload_archive_bomb_counts_all_members_together(tmp_path: Path) -> None:
    for path in archives(tmp_path, *((f"f{n}", b" " * MIB) for n in range(3))):
        with pytest.raises(TooLargeError) as error:
            everything(path, Limits(archive_bytes=2 * MIB, inflated_bytes=10 * MIB))
        assert error.value.limit == "archive_bytes"


def test_opened_upload_nested_bomb_is_counted_too(tmp_path: Path) -> None:
    for path in archives(tmp_path, ("a.gz", gzip.compress(b" " * (3 * MIB)))):
        with pytest.raises(TooLargeError):
            everything(path, Limits(archive_bytes=2 * MIB))


def test_opened_upload_cut_tar_gives_the_members_before(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tar", ("a", b"1"), ("b", b"x" * 9000), mode="w")
    whole_tar = path.read_bytes()
    contents = listed(written(tmp_path / "b.tar", whole_tar[:4000]))
    assert [member.name for member in contents.members] == ["a", "b"]
    ((name, finding),) = contents.refusals
    assert (name, finding.code) == ("b", "damaged")
    with opened_upload(tmp_path / "b.tar") as again:
        assert whole(again.members[0]) == b"1"
        with pytest.raises(DamagedError):
            whole(again.members[1])


def test_opened_upload_tar_damaged_at_once_is_unreadable(tmp_path: Path) -> None:
    header = bytearray(tarfile.TarInfo("a").tobuf())
    header[100:108] = b"99999999"
    with pytest.raises(UnreadableUploadError, match="tar archive is damaged"):
        listed(written(tmp_path / "a.tar", bytes(header)))


def test_opened_upload_tar_with_a_huge_name_header_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("name")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 2**30
    path = written(tmp_path / "a.tar", info.tobuf() + b"\0" * 4096)
    with pytest.raises(UnreadableUploadError, match="a header is too large"):
        listed(path)


def test_opened_upload_archive_that_changes_is_named(tmp_path: Path) -> None:
    path = tarred(tmp_path / "a.tar", ("a", b"1"), ("b", b"2"), mode="w")
    with opened_upload(path) as contents:
        tarred(path, ("a", b"1"), mode="w")
        with pytest.raises(DamagedError, match="ends before this member"):
            contents.members[1].open()


def test_head_of_damaged_stream_gives_what_is_good(tmp_path: Path) -> None:
    packed = gzip.compress(PAYLOAD)
    with opened_upload(written(tmp_path / "f", packed[:-20])) as contents:
        assert 0 < len(head_of(contents.members[0], 10**9)) < len(PAYLOAD)


def test_head_of_stops_at_its_size(tmp_path: Path) -> None:
    with opened_upload(written(tmp_path / "f", PAYLOAD)) as contents:
        assert head_of(contents.members[0], 10) == PAYLOAD[:10]
