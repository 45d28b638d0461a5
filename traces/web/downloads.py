"""Bytes from traces, always as a file to keep and never as something that a browser shows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from django.http import HttpResponseBase, StreamingHttpResponse

_ODD = re.compile(r"[^A-Za-z0-9._-]+")


def attachment(
    chunks: Iterable[bytes], *, file_name: str, content_type: str = "application/octet-stream"
) -> HttpResponseBase:
    """An answer that a browser saves under a harmless name."""
    name = _ODD.sub("-", file_name).strip("-.")[-100:] or "file"
    answer = StreamingHttpResponse(chunks, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return answer
