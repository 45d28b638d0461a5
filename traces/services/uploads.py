"""Taking an upload in: safe on disk and in the database before it is acknowledged."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction

from evalsite.common.audit import AuditedObject, record
from traces.core.text_marks import clean_text
from traces.models import ApiKey, Door, Release, System, Upload, UploadJob, User


@dataclass(frozen=True, slots=True)
class StagedFile:
    """Bytes on disk that no row names yet."""

    path: Path
    size: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class UploadRequest:
    """What the sender asked for. `release` None: each record names its own."""

    system: System
    release: Release | None
    run_name: str
    file_name: str
    format_asked: str
    door: Door
    by: User | None
    api_key: ApiKey | None = None
    idempotency_key: str | None = None


class UploadTooLargeError(Exception):
    """More bytes than the door takes. The sentence names the limit."""


class IdempotencyConflictError(Exception):
    """The same idempotency key came with another body."""


def uploads_root() -> Path:
    """The folder that holds the bytes of every upload."""
    root = Path(settings.EVALSITE_UPLOADS)
    root.mkdir(parents=True, exist_ok=True)
    return root


@contextlib.contextmanager
def staged(chunks: Iterable[bytes], *, max_bytes: int | None) -> Iterator[StagedFile]:
    """Write a body to disk, counted and hashed; the file is gone afterwards unless kept.

    Raises `UploadTooLargeError` as soon as the body passes `max_bytes`, and `OSError` when the disk
    does not take it.
    """
    digest, size = hashlib.sha256(), 0
    handle, name = tempfile.mkstemp(prefix="staged-", dir=uploads_root())
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            for chunk in chunks:
                size += len(chunk)
                if max_bytes is not None and size > max_bytes:
                    raise UploadTooLargeError(
                        f"The upload is larger than this door takes ({max_bytes:,} bytes)."
                    )
                digest.update(chunk)
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        yield StagedFile(path=path, size=size, sha256=digest.digest())
    finally:
        path.unlink(missing_ok=True)


def receive_upload(file: StagedFile, request: UploadRequest, *, now: datetime) -> Upload:
    """Keep a staged file for good and record it: from here on it is acknowledged.

    The same idempotency key with the same body gives the first upload again; with another body
    it raises `IdempotencyConflictError`.
    """
    with transaction.atomic():
        if earlier := _earlier(request):
            if bytes(earlier.sha256) != file.sha256:
                raise IdempotencyConflictError(
                    "This Idempotency-Key was used before with another body; use a new key."
                )
            return earlier
        identity = uuid.uuid4()
        stored_as = f"{identity.hex[:2]}/{identity.hex}"
        final = uploads_root() / stored_as
        _keep(file.path, final)
        try:
            upload = _record(file, request, identity=identity, stored_as=stored_as, now=now)
        except BaseException:
            # Nothing is committed yet, so no row can name the file.
            final.unlink(missing_ok=True)
            raise
    return upload


def _record(
    file: StagedFile, request: UploadRequest, *, identity: uuid.UUID, stored_as: str, now: datetime
) -> Upload:
    upload = Upload.objects.create(
        uuid=identity,
        system=request.system,
        release=request.release,
        run_name=request.run_name,
        format_asked=request.format_asked,
        file_name=clean_text(request.file_name)[-255:] or "upload",
        size=file.size,
        sha256=file.sha256,
        stored_as=stored_as,
        door=request.door.value,
        idempotency_key=request.idempotency_key,
        received_at=now,
        by=request.by,
        api_key=request.api_key,
    )
    UploadJob.objects.create(upload=upload, touched_at=now)
    record(
        "upload.accepted",
        system_pk=upload.system_id,
        by_pk=upload.by_id,
        at=now,
        obj=AuditedObject("upload", str(upload.uuid), upload.file_name),
        after={
            "sha256": upload.sha256.hex(),
            "bytes": upload.size,
            "release": request.release.name if request.release else "",
            "run": upload.run_name,
            "format": upload.format_asked,
        },
        rows=[("traces_upload", upload.pk)],
    )
    return upload


def _earlier(request: UploadRequest) -> Upload | None:
    if request.idempotency_key is None:
        return None
    return Upload.objects.filter(
        system=request.system, idempotency_key=request.idempotency_key
    ).first()


def _keep(staged_path: Path, final: Path) -> None:
    """Move a file to its final name and make the name durable too."""
    final.parent.mkdir(exist_ok=True)
    os.link(staged_path, final)
    for folder in (final.parent, final.parent.parent):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def stored_path(upload: Upload) -> Path:
    """Where the bytes of an upload are."""
    return uploads_root() / upload.stored_as
