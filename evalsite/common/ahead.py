"""Working out the next values of an iterator while its reader is busy with the last one."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

_LOOK_SECONDS = 0.2


def read_ahead(values: Iterable[T], *, depth: int = 1) -> Iterator[T]:
    """The same values in the same order, up to `depth` of them computed ahead in a thread.

    Worth it where the reader waits for something else than the interpreter, such as a database.
    What the source raises comes out at its place; a reader that stops early ends the thread. The
    source must not use what belongs to the reader's thread, such as a database connection.
    """
    ready: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(maxsize=depth)
    abandoned = threading.Event()

    def hand_over(value: tuple[T] | BaseException | None) -> None:
        while not abandoned.is_set():
            try:
                ready.put(value, timeout=_LOOK_SECONDS)
            except queue.Full:
                continue
            return

    def work() -> None:
        try:
            for value in values:
                hand_over((value,))
                if abandoned.is_set():
                    return
            hand_over(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the values are read
            hand_over(error)

    thread = threading.Thread(target=work, name="read-ahead", daemon=True)
    thread.start()
    try:
        while (value := ready.get()) is not None:
            if isinstance(value, BaseException):
                raise value
            yield value[0]
    finally:
        abandoned.set()
        thread.join()
