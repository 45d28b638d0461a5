"""Records as they came, read out of the stored upload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from traces.core.formats.containers import ByteStream, DamagedError, opened_upload
from traces.core.records import UnreadableUploadError
from traces.core.text_marks import clean_text
from traces.models import Door
from traces.selectors.reading_limits import reading_limits

_BLOCK = 256 * 1024


def raw_record(path: Path, *, member: str, offset: int, length: int) -> Iterator[bytes]:
    """The bytes of one record, a block at a time; what is damaged or gone gives fewer bytes.

    `member` is the name as a ledger or a trial's record keeps it, "" in an upload of one file.
    The record has been read under the limits of its door, so its offset is within them.
    """
    try:
        with opened_upload(path, reading_limits(Door.COMMAND)) as contents:
            for found in contents.members:
                if clean_text(found.name)[-512:] == member:
                    with found.open() as stream:
                        yield from _stretch(stream, offset, length)
                    return
    except (DamagedError, UnreadableUploadError):
        return


def _stretch(stream: ByteStream, offset: int, length: int) -> Iterator[bytes]:
    while offset > 0:
        skipped = stream.read(min(offset, _BLOCK))
        if not skipped:
            return
        offset -= len(skipped)
    while length > 0:
        block = stream.read(min(length, _BLOCK))
        if not block:
            return
        length -= len(block)
        yield block
