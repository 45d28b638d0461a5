"""The body of an upload: multipart or raw, as pieces of bytes that nobody holds at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import TemporaryFileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError

from traces.core.formats.containers import GZIP_MAGIC, ZSTD_MAGICS
from traces.core.formats.scanning import Stream
from traces.services.acceptance import Refusal

MULTIPART = "multipart/form-data"
RAW_TYPES = frozenset(
    {
        "",
        "application/gzip",
        "application/json",
        "application/json-lines",
        "application/jsonl",
        "application/jsonlines",
        "application/ndjson",
        "application/octet-stream",
        "application/x-compressed-tar",
        "application/x-gtar",
        "application/x-gzip",
        "application/x-json-lines",
        "application/x-jsonlines",
        "application/x-ndjson",
        "application/x-tar",
        "application/x-zip-compressed",
        "application/x-zstd",
        "application/zip",
        "application/zstd",
        "text/plain",
    }
)
ENCODINGS = {"gzip": (GZIP_MAGIC,), "x-gzip": (GZIP_MAGIC,), "zstd": ZSTD_MAGICS}
ENVELOPE_BYTES = 64 * 1024
BLOCK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Body:
    """An upload's bytes, still to be read, and the fields that came with them."""

    chunks: Iterator[bytes]
    file_name: str
    fields: dict[str, str]


def body_of(request: HttpRequest) -> Body | Refusal:
    """The body, before or while it is read; or why it cannot be one."""
    kind = (request.content_type or "").lower()
    if kind != MULTIPART and kind not in RAW_TYPES:
        return Refusal(
            415,
            "unknown-type",
            f"Content-Type {kind[:100]!r} is not read; send multipart/form-data with a field "
            "`file`, or the file itself as application/octet-stream.",
        )
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in ("", "identity", *ENCODINGS):
        return Refusal(
            415,
            "unknown-encoding",
            f"Content-Encoding {encoding[:100]!r} is not read; send gzip, zstd or none.",
        )
    most = settings.EVALSITE_API_MAX_BYTES
    size = _declared_size(request)
    if size is None and not (kind != MULTIPART and request.META.get("wsgi.input_terminated")):
        return Refusal(411, "length-missing", "Send a Content-Length; the body is not read else.")
    if size is not None and size > most + (ENVELOPE_BYTES if kind == MULTIPART else 0):
        return Refusal(
            413, "too-large", f"The body is larger than this door takes ({most:,} bytes)."
        )
    if kind == MULTIPART:
        if encoding in ENCODINGS:
            return Refusal(
                415, "unknown-encoding", "A multipart body is not encoded; compress the file in it."
            )
        return _multipart(request)
    # Django reads as far as the Content-Length says; the server itself ends a body without one.
    stream: Stream = request.META["wsgi.input"] if size is None else request
    return Body(_raw(stream, ENCODINGS.get(encoding, ())), _file_name(request), {})


def _declared_size(request: HttpRequest) -> int | None:
    """The Content-Length; 0 without a body, None for a body of unknown length."""
    if "chunked" in request.META.get("HTTP_TRANSFER_ENCODING", "").lower():
        return None
    text = request.META.get("CONTENT_LENGTH") or "0"
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


class WrongEncodingError(ValueError):
    """The body is not in the encoding that its header names."""


def _raw(stream: Stream, magics: tuple[bytes, ...]) -> Iterator[bytes]:
    # An encoded body is kept as it came: the reader finds out by itself how it is packed.
    first = True
    while block := stream.read(BLOCK):
        if first and magics and not block.startswith(magics):
            raise WrongEncodingError
        first = False
        yield block


def _multipart(request: HttpRequest) -> Body | Refusal:
    request.upload_handlers = [TemporaryFileUploadHandler(request)]
    try:
        fields = {name: request.POST.get(name, "") for name in request.POST}
        file = request.FILES.get("file")
    except (MultiPartParserError, UnreadablePostError):
        return Refusal(400, "bad-multipart", "The multipart body is broken or was cut short.")
    except (RequestDataTooBig, SuspiciousOperation):
        return Refusal(413, "too-large", "The multipart body has too many or too large fields.")
    if file is None:
        return Refusal(400, "file-missing", "The multipart body has no file in a field `file`.")
    return Body(iter(file.chunks(BLOCK)), file.name or "", fields)


def _file_name(request: HttpRequest) -> str:
    return request.GET.get("file_name", "")[:255]
