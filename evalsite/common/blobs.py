"""JSON kept as compressed bytes.

ASCII JSON keeps what PostgreSQL's text and jsonb refuse: NUL, lone surrogates, integers of any
length. The value that comes out equals the value that went in.
"""

from __future__ import annotations

import json
import threading
from decimal import Decimal
from typing import Any

import zstandard

LEVEL = 3

_local = threading.local()
_encode = json.JSONEncoder(separators=(",", ":")).encode


def dumps(value: Any) -> str:
    """ASCII JSON text of a value, compact, with every digit of a `Decimal`."""
    try:
        return _encode(value)
    except TypeError:  # a Decimal: the C encoder has no way to write one
        return _dumps_exact(value)


def _dumps_exact(value: Any) -> str:
    match value:
        case Decimal():
            return str(value)
        case dict():
            inner = ",".join(f"{json.dumps(k)}:{_dumps_exact(v)}" for k, v in value.items())
            return "{" + inner + "}"
        case list() | tuple():
            return "[" + ",".join(_dumps_exact(v) for v in value) + "]"
        case _:
            return json.dumps(value)


def _exact_number(text: str) -> float | Decimal:
    number = float(text)
    exact = Decimal(text)
    return number if Decimal(repr(number)) == exact else exact


def loads(text: str | bytes) -> Any:
    """The value of JSON text that `dumps` wrote."""
    return json.loads(text, parse_float=_exact_number)


def pack(value: Any) -> bytes:
    """A value as zstd-compressed ASCII JSON."""
    return pack_text(dumps(value))


def pack_text(text: str) -> bytes:
    """ASCII JSON text as zstd-compressed bytes."""
    compressor = getattr(_local, "compressor", None)
    if compressor is None:
        compressor = _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
    packed: bytes = compressor.compress(text.encode("ascii"))
    return packed


def unpack(packed: bytes | memoryview) -> Any:
    """The value that `pack` compressed."""
    decompressor = getattr(_local, "decompressor", None)
    if decompressor is None:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    return loads(decompressor.decompress(bytes(packed)))
