"""File locks that the kernel drops when their holder ends, however it ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Take a lock without waiting; the file descriptor that holds it, or None if it is taken."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def wait_for_lock(path: Path, *, shared: bool = False) -> int:
    """Take a lock, waiting for it; the file descriptor that holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
    return descriptor


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock for the length of a `with` block, waiting for it first."""
    descriptor = wait_for_lock(path)
    try:
        yield
    finally:
        os.close(descriptor)
