"""What an upload file is packed in: nothing, gzip, zstd, zip or tar, read by stream.

Nothing is ever written by the name of a member. What is inflated is counted while it is inflated,
so that a bomb is refused before it is held. A name that could lead anywhere, a link, an encrypted
or a damaged member is refused alone; the others are read.
"""

from __future__ import annotations

import gzip
import re
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, Protocol, Self

import zstandard

from traces.core.limits import DEFAULT_LIMITS, Limits
from traces.core.records import Finding, UnreadableUploadError
from traces.core.text_marks import has_lone_surrogate

GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGICS: Final = (
    b"\x28\xb5\x2f\xfd",
    *(bytes((n, 0x2A, 0x4D, 0x18)) for n in range(0x50, 0x60)),
)
ZIP_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
TAR_MAGIC: Final = b"ustar"
TAR_MAGIC_AT: Final = 257
HEAD_BYTES: Final = 512

_BLOCK_BYTES: Final = 256 * 1024
_MOST_WINDOW: Final = 2**27  # bytes of memory that a zstd frame may ask for
_MOST_TAR_HEADER: Final = 2**20
_TAR_HEADERS: Final = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    b"X",
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_CENTRAL_SIGNATURE: Final = b"PK\x01\x02"
_END_SIGNATURE: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LOCATOR_SIGNATURE: Final = b"PK\x06\x07"  # of zip64
_LOCATOR_BYTES: Final = 20
_ZSTD_HEAD_BYTES: Final = 18
_CENTRAL_BYTES: Final = 46
_DRIVE = re.compile(r"[A-Za-z]:")
_JUNK = re.compile(r"(?:^|/)(?:__MACOSX/|\._|\.DS_Store$|Thumbs\.db$)")


class TooLargeError(UnreadableUploadError):
    """More than a limit allows. `limit` is the name of the field of `Limits`."""

    def __init__(self, limit: str, sentence: str) -> None:
        super().__init__(Finding("too-large", "", sentence))
        self.limit = limit


class DamagedError(Exception):
    """A compressed stream or archive member cannot be read to its end."""


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an upload. `open` may be called again and starts from the beginning."""

    name: str  # "" when the upload is one file
    open: Callable[[], ByteStream]


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in an upload file, and what was refused or odd about its members."""

    is_archive: bool
    members: tuple[Member, ...]
    refusals: tuple[tuple[str, Finding], ...] = ()  # by member name
    warnings: tuple[tuple[str, Finding], ...] = ()


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Budget:
    """Bytes that may be inflated in all. What is read again is not counted again."""

    __slots__ = ("limit", "most", "reached", "total")

    def __init__(self, limit: str, most: int) -> None:
        self.limit = limit
        self.most = most
        self.reached: dict[int, int] = {}
        self.total = 0

    def reach(self, part: int, n_bytes: int) -> None:
        """Counts a part as read up to `n_bytes`. Raises TooLargeError."""
        beyond = n_bytes - self.reached.get(part, 0)
        if beyond <= 0:
            return
        self.reached[part] = n_bytes
        self.total += beyond
        if self.total > self.most:
            raise TooLargeError(
                self.limit,
                f"The upload is too large once it is unpacked: more than {self.most} bytes "
                f"({self.limit}).",
            )


class ByteStream:
    """Unpacked bytes, counted while they are read; damage is named in one way."""

    def __init__(
        self,
        source: _Readable,
        budget: _Budget,
        close: Callable[[], object],
        *,
        part: int = 0,
    ) -> None:
        # One step at a time, so that what was good before a damage is not lost with it.
        self._read: Callable[[int], bytes] = getattr(source, "read1", source.read)
        self._budget = budget
        self._part = part
        self._n_bytes = 0
        self.close = close

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes; empty at the end. Raises TooLargeError and DamagedError."""
        with _damage_named():
            data = self._read(size)
        self._n_bytes += len(data)
        self._budget.reach(self._part, self._n_bytes)
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _damage_named() -> Iterator[None]:
    try:
        yield
    except (
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
        NotImplementedError,
        zlib.error,
        zipfile.BadZipFile,
        tarfile.TarError,
        zstandard.ZstdError,
    ) as error:
        raise DamagedError(f"{type(error).__name__}: {error}"[:300]) from error


@contextmanager
def opened_upload(path: Path, limits: Limits = DEFAULT_LIMITS) -> Iterator[Contents]:
    """The members of an upload file, found out by looking at it.

    Raises UnreadableUploadError when it cannot be read at all, TooLargeError when an archive has too many
    members; reading a member raises TooLargeError and DamagedError.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    with ExitStack() as stack:
        if head.startswith(ZIP_MAGICS):
            yield _zip_contents(path, limits, stack)
        elif _is_tar(_unpacked_head(path, head, limits)):
            yield _tar_contents(path, limits, stack)
        else:
            budget = _Budget("inflated_bytes", limits.inflated_bytes)
            yield Contents(is_archive=False, members=(Member("", lambda: _opened(path, budget)),))


def inflated_size(path: Path, limits: Limits = DEFAULT_LIMITS) -> int:
    """The bytes that an upload has once unpacked, for a door that must refuse a bomb at once.

    Raises TooLargeError and UnreadableUploadError; a damaged member counts up to its damage.
    """
    total = 0
    with opened_upload(path, limits) as contents:
        for member in contents.members:
            try:
                with member.open() as stream:
                    while block := stream.read(_BLOCK_BYTES):
                        total += len(block)
            except DamagedError:
                continue
    return total


def head_of(member: Member, size: int) -> bytes:
    """Up to `size` bytes from a member's beginning, as far as it can be read.

    Raises TooLargeError, and UnreadableUploadError when it is damaged from its first byte on.
    """
    data = b""
    try:
        with member.open() as stream:
            while len(data) < size and (block := stream.read(size - len(data))):
                data += block
    except DamagedError as error:
        if not data:
            sentence = f"The compressed file is damaged from its beginning on ({error})."
            raise UnreadableUploadError(Finding("damaged", "", sentence)) from error
    return data


def _opened(path: Path, budget: _Budget) -> ByteStream:
    """The unpacked stream of a file."""
    file = path.open("rb")
    head = file.read(HEAD_BYTES)
    file.seek(0)
    return ByteStream(_decompressor(file, head), budget, file.close)


def _decompressor(file: IO[bytes], head: bytes) -> _Readable:
    if head.startswith(GZIP_MAGIC):
        return gzip.GzipFile(fileobj=file)
    if head.startswith(ZSTD_MAGICS):
        return _ZstdFile(file)
    return file


class _ZstdFile:
    """Unpacks zstd frames. The library's own reader takes a cut frame for the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._is_whole = _ends_with_whole_frame(file)
        file.seek(0)
        decompressor = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW)
        self._reader = decompressor.stream_reader(file, read_across_frames=True, closefd=False)

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes. Raises EOFError where the last frame is cut."""
        data = self._reader.read1(size)
        if not data and size and not self._is_whole:
            raise EOFError("the last zstd frame is cut short")
        return data


def _ends_with_whole_frame(file: IO[bytes]) -> bool:
    """Walks the headers of frames and blocks (RFC 8878, section 3) to the end of the file."""
    size = file.seek(0, 2)
    position = 0
    while position < size:
        file.seek(position)
        head = file.read(_ZSTD_HEAD_BYTES)
        if head[:4] in ZSTD_MAGICS[1:]:
            position += 8 + int.from_bytes(head[4:8], "little")
            continue
        try:
            parameters = zstandard.get_frame_parameters(head)
            position += zstandard.frame_header_size(head)
        except zstandard.ZstdError:
            return not ZSTD_MAGICS[0].startswith(head[:4])  # else the reader names what it is
        is_last = False
        while not is_last:
            file.seek(position)
            block = int.from_bytes(file.read(3), "little")
            is_run = block >> 1 & 3 == 1
            is_last = bool(block & 1)
            position += 3 + (1 if is_run else block >> 3)
            if position > size or (block == 0 and position >= size):
                return False
        position += 4 * parameters.has_checksum
    return position == size


def _unpacked_head(path: Path, head: bytes, limits: Limits) -> bytes:
    if not head.startswith((GZIP_MAGIC, *ZSTD_MAGICS)):
        return head
    budget = _Budget("inflated_bytes", limits.inflated_bytes)
    return head_of(Member("", lambda: _opened(path, budget)), HEAD_BYTES)


def _is_tar(head: bytes) -> bool:
    return head[TAR_MAGIC_AT : TAR_MAGIC_AT + len(TAR_MAGIC)] == TAR_MAGIC


def fault_of_name(name: str) -> str | None:
    """Why a member name is refused, else None."""
    if "\x00" in name or has_lone_surrogate(name) or len(name) > 1024:
        return "its name is not usable text"
    if "\\" in name:
        return "its name holds a backslash"
    if name.startswith("/") or _DRIVE.match(name):
        return "its name is absolute"
    if ".." in name.split("/"):
        return "its name leads out of the archive"
    return None


class _Listing:
    """Members by name while an archive is listed: refused ones apart, of repeated ones the last."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.n_entries = 0
        self.refusals: list[tuple[str, Finding]] = []
        self.warnings: dict[str, Finding] = {}
        self.positions: dict[str, int] = {}

    def count(self) -> int:
        self.n_entries += 1
        if self.n_entries > self.limits.archive_members:
            raise _too_many_members(self.limits)
        return self.n_entries - 1

    def add(self, name: str, position: int, fault: str | None) -> None:
        fault = fault_of_name(name) or fault
        if fault is not None:
            sentence = f"The archive member is refused: {fault}."
            self.refusals.append((name, Finding("refused-member", "", sentence)))
        elif not _JUNK.search(name):
            if name in self.positions:
                sentence = "The archive holds this name more than once; the last entry counts."
                self.warnings[name] = Finding("superseded-member", "", sentence)
            self.positions[name] = position

    def contents(self, opener: Callable[[int], Callable[[], ByteStream]]) -> Contents:
        return Contents(
            is_archive=True,
            members=tuple(Member(name, opener(at)) for name, at in self.positions.items()),
            refusals=tuple(self.refusals),
            warnings=tuple(self.warnings.items()),
        )


def _zip_contents(path: Path, limits: Limits, stack: ExitStack) -> Contents:
    _check_zip_size(path, limits)
    budget = _Budget("archive_bytes", limits.archive_bytes)
    listing = _Listing(limits)
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        sentence = f"The zip archive is damaged ({error})."
        raise UnreadableUploadError(Finding("damaged", "", sentence)) from error
    infos = archive.infolist()
    for info in infos:
        position = listing.count()
        if not info.is_dir():
            listing.add(info.orig_filename, position, _zip_fault(info))

    def opener(at: int) -> Callable[[], ByteStream]:
        return lambda: _opened_in_zip(archive, infos[at], budget, at)

    return listing.contents(opener)


def _zip_fault(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        return "it is a link"
    if info.flag_bits & 0x1:
        return "it is encrypted"
    # Python's reader unpacks what bzip2 and LZMA hold without a bound: a few hundred bytes can
    # take gigabytes.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"its compression (method {info.compress_type}) cannot be read"
    return None


def _opened_in_zip(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: _Budget, part: int
) -> ByteStream:
    with _damage_named():
        file = archive.open(info)
        head = file.read(len(GZIP_MAGIC))
        file.seek(0)
    plain = ByteStream(file, budget, file.close, part=part)
    return _nested(plain, budget, part) if head == GZIP_MAGIC else plain


def _nested(packed: ByteStream, budget: _Budget, part: int) -> ByteStream:
    """One level of gzip inside an archive; what comes out is counted and not unpacked again."""
    inner: Any = gzip.GzipFile(fileobj=packed)  # type: ignore[call-overload]
    return ByteStream(inner, budget, packed.close, part=-1 - part)


def _check_zip_size(path: Path, limits: Limits) -> None:
    """Refuses too many members before Python's reader makes an object of each."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _END_BYTES - 0xFFFF, 0))
        tail = file.read()
        at = tail.rfind(_END_SIGNATURE)
        if at < 0:
            return  # Python's reader says that it is damaged
        end = size - len(tail) + at
        central_bytes = int.from_bytes(tail[at + 12 : at + 16], "little")
        file.seek(max(end - _LOCATOR_BYTES, 0))
        locator = file.read(_LOCATOR_BYTES)
        if locator.startswith(_LOCATOR_SIGNATURE):
            end = int.from_bytes(locator[8:16], "little")
            file.seek(min(end, size))
            central_bytes = int.from_bytes(file.read(56)[40:48], "little")
        file.seek(min(max(end - central_bytes, 0), size))
        counted = 0
        while _next_central(file):
            counted += 1
            if counted > limits.archive_members:
                raise _too_many_members(limits)


def _too_many_members(limits: Limits) -> TooLargeError:
    sentence = f"The archive has too many members (max {limits.archive_members})."
    return TooLargeError("archive_members", sentence)


def _next_central(file: IO[bytes]) -> bool:
    header = file.read(_CENTRAL_BYTES)
    if len(header) < _CENTRAL_BYTES or not header.startswith(_CENTRAL_SIGNATURE):
        return False
    lengths = (int.from_bytes(header[at : at + 2], "little") for at in (28, 30, 32))
    file.seek(sum(lengths), 1)
    return True


class _BoundedTarInfo(tarfile.TarInfo):
    """A tar header. Python's reader would hold a name of any declared size in memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        if info.type in _TAR_HEADERS and info.size > _MOST_TAR_HEADER:
            raise tarfile.ReadError("a header is too large")
        return info


def _tar_contents(path: Path, limits: Limits, stack: ExitStack) -> Contents:
    listing = _Listing(limits)
    budget = _Budget("archive_bytes", limits.archive_bytes)
    damage: list[tuple[str, Finding]] = []
    try:
        with closing(_tar_walk(path, budget)) as walk:
            for _, info in walk:
                position = listing.count()
                if not info.isdir():
                    listing.add(info.name, position, _tar_fault(info))
    except DamagedError as error:
        if not listing.positions:
            sentence = f"The tar archive is damaged ({error})."
            raise UnreadableUploadError(Finding("damaged", "", sentence)) from error
        sentence = f"The archive is damaged or cut short after this member ({error})."
        damage.append((next(reversed(listing.positions)), Finding("damaged", "", sentence)))
    reader = _TarReader(path, limits)
    stack.callback(reader.close)

    def opener(at: int) -> Callable[[], ByteStream]:
        return lambda: reader.opened(at)

    found = listing.contents(opener)
    return replace(found, refusals=(*found.refusals, *damage))


def _tar_fault(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return "it is a link"
    if not info.isreg() or info.sparse is not None:
        return "it is not a plain file"
    return None


_TarWalk = Generator[tuple[tarfile.TarFile, tarfile.TarInfo]]


def _tar_walk(path: Path, budget: _Budget) -> _TarWalk:
    """The members of a tar archive in order, each to be read before the next is asked for."""
    with _opened(path, budget) as source:
        with _damage_named():
            archive = tarfile.open(  # noqa: SIM115 - it holds nothing but the source
                fileobj=source,  # type: ignore[call-overload]
                mode="r|",
                tarinfo=_BoundedTarInfo,
            )
        while True:
            with _damage_named():
                info = archive.next()
            if info is None:
                return
            archive.members.clear()  # a stream needs none of the past
            yield archive, info


class _TarReader:
    """Opens members of a tar archive. In archive order that is one pass, else it starts again."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.at = -1
        self.walk: _TarWalk | None = None

    def opened(self, position: int) -> ByteStream:
        budget = _Budget("archive_bytes", self.limits.archive_bytes)
        if self.walk is None or position <= self.at:
            self.close()
            self.walk = _tar_walk(self.path, budget)
        for archive, info in self.walk:
            self.at += 1
            if self.at == position:
                return self._stream(archive, info, budget)
        raise DamagedError("the archive ends before this member")

    def _stream(
        self, archive: tarfile.TarFile, info: tarfile.TarInfo, budget: _Budget
    ) -> ByteStream:
        with _damage_named():
            file: Any = archive.extractfile(info)
            head = file.peek(len(GZIP_MAGIC))[: len(GZIP_MAGIC)]
        # The walk counts the archive's own bytes; only what is packed once more is new.
        counted = _Budget("archive_bytes", self.limits.archive_bytes)
        plain = ByteStream(file, counted, _nothing)
        return _nested(plain, budget, self.at) if head == GZIP_MAGIC else plain

    def close(self) -> None:
        if self.walk is not None:
            self.walk.close()
        self.walk, self.at = None, -1


def _nothing() -> None:
    """A tar member is a stretch of its archive's stream, which its reader closes."""
