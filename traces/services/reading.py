"""The records of an upload in batches, read beside the process that stores them.

Reading is the interpreter's work, storing is mostly the database's: in two processes neither waits
for the other. A small upload is read in place, since a process costs more than it saves.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from traces.core.formats import ReadOptions, read_upload
from traces.core.records import Finding, Item, UnreadableUploadError
from traces.core.rules import RuleSet
from traces.services.packing import PackedItem, packed

BATCH_RECORDS = 250
BATCH_BYTES = 4 * 1024 * 1024
SMALL_BYTES = 1024 * 1024

Batch = list[PackedItem]


@dataclass(frozen=True, slots=True)
class Order:
    """What to read: `skip` items are settled already."""

    path: Path
    options: ReadOptions
    rules: RuleSet
    skip: int = 0
    records: int = BATCH_RECORDS
    n_bytes: int = BATCH_BYTES


class ReaderDiedError(Exception):
    """The reading process ended before its work was done."""


def batches_of(order: Order, *, folder: Path) -> Iterator[Batch]:
    """The packed records of an upload behind the settled ones, in batches.

    `folder` is where the project's packages are. Raises `UnreadableUploadError` when the upload
    cannot be read, and `ReaderDiedError` when the reading process was killed.
    """
    if order.path.stat().st_size <= SMALL_BYTES:
        return batches_in_place(order)
    return _batches_from_beside(order, folder)


def batches_in_place(order: Order) -> Iterator[Batch]:
    """The batches, read in this process."""
    return _batches(read_upload(order.path, order.options), order)


def _batches(items: Iterable[Item], order: Order) -> Iterator[Batch]:
    """Batches bounded by number and by bytes."""
    batch: Batch = []
    size = 0
    for number, item in enumerate(items):
        if number < order.skip:
            continue
        batch.append(packed(item, order.rules))
        size += item.source.length
        if len(batch) >= order.records or size >= order.n_bytes:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _batches_from_beside(order: Order, folder: Path) -> Iterator[Batch]:
    reader = subprocess.Popen(
        [sys.executable, "-c", "from traces.services.reading import serve; serve()"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert reader.stdin is not None
        assert reader.stdout is not None
        with reader.stdin as orders:
            pickle.dump(order, orders)
        while (answer := _answer(reader.stdout)) is not None:
            if isinstance(answer, Finding):
                raise UnreadableUploadError(answer)
            yield answer
    finally:
        reader.kill()
        reader.wait()
        if reader.stdout is not None:
            reader.stdout.close()


def _answer(answers: IO[bytes]) -> Batch | Finding | None:
    """The next answer of the reading process, which is our own program: pickle is safe here."""
    try:
        answer: Batch | Finding | None = pickle.load(answers)  # noqa: S301
    except (EOFError, pickle.UnpicklingError) as error:
        raise ReaderDiedError("the reading process ended before its work was done") from error
    return answer


def serve() -> None:
    """Read as standard input orders, answer on standard output. For the reading process.

    One whose parent is gone ends at its next answer.
    """
    order: Order = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started it
    answers = sys.stdout.buffer
    try:
        for batch in batches_in_place(order):
            pickle.dump(batch, answers, protocol=pickle.HIGHEST_PROTOCOL)
            answers.flush()
        pickle.dump(None, answers)
    except UnreadableUploadError as error:
        pickle.dump(error.finding, answers)
    answers.flush()
