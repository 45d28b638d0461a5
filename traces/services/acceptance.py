"""Taking an upload in at any door: staged, measured, looked at, kept; or refused in a sentence.

What is accepted is safe on disk and in the database. Nothing is acknowledged before.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction

from traces.core.canonical import nfc
from traces.core.formats import (
    AUTO,
    FORMATS,
    ReadOptions,
    TooLargeError,
    inflated_size,
    read_upload,
)
from traces.core.records import Finding, UnreadableUploadError
from traces.core.text_marks import clean_text, has_marks
from traces.models import ApiKey, Door, System, Upload, UploadJob, UploadState, User
from traces.selectors.reading_limits import reading_limits
from traces.services.uploads import (
    IdempotencyConflictError,
    StagedFile,
    UploadRequest,
    UploadTooLargeError,
    receive_upload,
    staged,
    uploads_root,
)
from traces.services.work import release_named

log = logging.getLogger("evalsite.uploads")

LONGEST_KEY = 255
RETRY_SECONDS = 10
LOOKED_AT_RECORDS = 20
NOT_JSON_CODES = frozenset({"not-json", "cut-short", "not-utf8", "utf-16"})


@dataclass(frozen=True, slots=True)
class Offer:
    """What somebody wants to upload. "" leaves release, run and format to the records.

    `max_bytes` bounds the bytes as sent, `max_inflated_bytes` what they unpack to; None leaves
    that to the reader's own limits.
    """

    system: System
    door: Door
    by: User | None
    file_name: str = ""
    release: str = ""
    run: str = ""
    format: str = AUTO
    api_key: ApiKey | None = None
    idempotency_key: str | None = None
    max_bytes: int | None = None
    max_inflated_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an upload was not taken. `status` is the HTTP code of docs/doors.md."""

    status: int
    code: str
    sentence: str
    retry_after: int | None = None  # seconds; None: the same again is refused again


def accept_upload(chunks: Iterable[bytes], offer: Offer, *, now: datetime) -> Upload | Refusal:
    """Keep an upload for good, or say why not. The caller then sends the hint.

    The same idempotency key with the same body and the same names gives the first upload again.
    Raises what the database raises.
    """
    if refusal := refusal_of_names(offer) or refusal_of_backlog():
        return refusal
    try:
        with staged(chunks, max_bytes=offer.max_bytes) as file:
            return _look_at(file, offer) or _keep(file, offer, now)
    except UploadTooLargeError as error:
        return Refusal(413, "too-large", str(error))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
            raise
        log.warning("disk refuses uploads", extra={"cause": errno.errorcode[error.errno]})
        return Refusal(
            503, "disk-full", "The disk takes no more uploads; send it again later.", RETRY_SECONDS
        )


def refusal_of_backlog() -> Refusal | None:
    """A refusal while too many uploads wait to be read."""
    waiting = UploadJob.objects.filter(
        state__in=[UploadState.RECEIVED.value, UploadState.PROCESSING.value]
    ).count()
    if waiting < settings.EVALSITE_MAX_WAITING_UPLOADS:
        return None
    return Refusal(
        503,
        "backlog-full",
        f"{waiting:,} uploads wait to be read already; send it again later.",
        RETRY_SECONDS,
    )


def refusal_of_names(offer: Offer) -> Refusal | None:
    """A refusal of a release, run, format or idempotency key that cannot be one."""
    longest = settings.EVALSITE_LIMITS.identifier_chars
    for what, name in (("release", offer.release), ("run", offer.run)):
        if len(name) > longest:
            return _bad_name(f"The name of the {what} is too long (at most {longest} characters).")
        if name != name.strip() or has_marks(name) or clean_text(name) != name or "\n" in name:
            return _bad_name(
                f"The name of the {what} starts or ends with a blank, or holds characters that "
                "cannot be seen."
            )
    if offer.format not in (AUTO, *FORMATS):
        known = ", ".join((AUTO, *FORMATS))
        return Refusal(400, "unknown-format", f"Unknown format; known are {known}.")
    key = offer.idempotency_key
    if key is not None and not (1 <= len(key) <= LONGEST_KEY and key.isprintable()):
        return _bad_name(f"An Idempotency-Key has 1 to {LONGEST_KEY} printable characters.")
    return None


def _bad_name(sentence: str) -> Refusal:
    return Refusal(400, "bad-name", sentence)


def _look_at(file: StagedFile, offer: Offer) -> Refusal | None:
    """Whether it is too large unpacked, or nothing that a reader knows."""
    limits = reading_limits(offer.door)
    most = offer.max_inflated_bytes
    if most is not None:
        limits = replace(limits, inflated_bytes=most, archive_bytes=most)
    options = ReadOptions(format=offer.format, release=offer.release or None, limits=limits)
    try:
        if most is not None:
            inflated_size(file.path, limits)
        return _refusal_of_content(file.path, options)
    except TooLargeError as error:
        return Refusal(413, "too-large", error.finding.sentence)
    except UnreadableUploadError as error:
        return _unreadable(error.finding)


def _refusal_of_content(path: Path, options: ReadOptions) -> Refusal | None:
    """A refusal when the upload has few records and none of them is JSON."""
    first = list(itertools.islice(read_upload(path, options), LOOKED_AT_RECORDS))
    faults = [item.refusals[0] for item in first if item.content is None and item.refusals]
    is_hopeless = first and len(faults) == len(first) and len(first) < LOOKED_AT_RECORDS
    if is_hopeless and all(fault.code in NOT_JSON_CODES for fault in faults):
        return _unreadable(faults[0])
    return None


def _unreadable(finding: Finding) -> Refusal:
    return Refusal(400, finding.code, finding.sentence)


def _keep(file: StagedFile, offer: Offer, now: datetime) -> Upload | Refusal:
    try:
        try:
            upload = _receive(file, offer, now)
        except IntegrityError:
            # The same key came twice at once: the other one is stored by now.
            upload = _receive(file, offer, now)
    except IdempotencyConflictError as error:
        return Refusal(409, "idempotency-key-reused", str(error))
    if offer.idempotency_key and not _is_same_offer(upload, offer):
        return Refusal(
            409,
            "idempotency-key-reused",
            "This Idempotency-Key was used before for another release, run or format; "
            "use a new key.",
        )
    return upload


@transaction.atomic
def _receive(file: StagedFile, offer: Offer, now: datetime) -> Upload:
    release = (
        release_named(offer.system, nfc(offer.release), by=offer.by) if offer.release else None
    )
    return receive_upload(
        file,
        UploadRequest(
            system=offer.system,
            release=release,
            run_name=nfc(offer.run),
            file_name=offer.file_name,
            format_asked=offer.format,
            door=offer.door,
            by=offer.by,
            api_key=offer.api_key,
            idempotency_key=offer.idempotency_key,
        ),
        now=now,
    )


def _is_same_offer(upload: Upload, offer: Offer) -> bool:
    release = upload.release.name if upload.release else ""
    return (release, upload.run_name, upload.format_asked) == (
        nfc(offer.release),
        nfc(offer.run),
        offer.format,
    )


def remove_abandoned_files(*, older_than: datetime) -> int:
    """Remove what uploads that were broken off left on disk. Returns how many files."""
    n_removed = 0
    for path in uploads_root().glob("staged-*"):
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < older_than.timestamp():
                path.unlink()
                n_removed += 1
    return n_removed


def file_chunks(path: Path, *, size: int = 256 * 1024) -> Iterator[bytes]:
    """The bytes of a file, a piece at a time."""
    with path.open("rb") as file:
        while block := file.read(size):
            yield block
