"""Messages packed in stretches that a page can read by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalsite.common import blobs

CHUNK_STEPS = 200
CHUNK_CHARACTERS = 256 * 1024

Chunk = tuple[int, int, bytes]
"""Number of the first step, number of steps, and the packed messages."""


def packed_chunks(messages: Sequence[object]) -> Iterator[Chunk]:
    """The messages of a trial in packed stretches, in order."""
    if len(messages) <= CHUNK_STEPS:
        text = blobs.dumps(list(messages))
        if messages and len(text) <= CHUNK_CHARACTERS:
            yield (1, len(messages), blobs.pack_text(text))
            return
    texts: list[str] = []
    first, size = 1, 0
    for number, message in enumerate(messages, start=1):
        text = blobs.dumps(message)
        if texts and (len(texts) >= CHUNK_STEPS or size + len(text) > CHUNK_CHARACTERS):
            yield _chunk(first, texts)
            texts, first, size = [], number, 0
        texts.append(text)
        size += len(text)
    if texts:
        yield _chunk(first, texts)


def _chunk(first: int, texts: list[str]) -> Chunk:
    return (first, len(texts), blobs.pack_text("[" + ",".join(texts) + "]"))
