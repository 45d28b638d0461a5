"""Peak memory of this process, and where the time of a run goes."""

from __future__ import annotations

import contextlib
import functools
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def reset_peak_memory() -> None:
    """Forget the peak so far, where the system can; elsewhere the peak is that of the process."""
    with contextlib.suppress(OSError):
        _CLEAR.write_text("5")


def peak_memory() -> int:
    """The most bytes of memory this process held at once since `reset_peak_memory`."""
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class Stages:
    """Seconds spent in some functions, by name. They must not call one another."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def watching(self, functions: Iterable[tuple[str, object, str]]) -> Iterator[None]:
        """Time functions while this lasts, each given as name, owner and the attribute on it.

        A function that gives an iterator is timed while it is asked for its next element.
        """
        with contextlib.ExitStack() as stack:
            for name, owner, attribute in functions:
                timed = self._timed(name, getattr(owner, attribute))
                stack.enter_context(patch.object(owner, attribute, timed))
            yield

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._counting(name):
                result = function(*args, **kwargs)
            return self._stepping(name, result) if isinstance(result, Iterator) else result

        return wrapper

    def _stepping(self, name: str, iterator: Iterator[Any]) -> Iterator[Any]:
        nothing = object()
        while True:
            with self._counting(name):
                element = next(iterator, nothing)
            if element is nothing:
                return
            yield element

    @contextlib.contextmanager
    def _counting(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - began
            self.seconds[name] = self.seconds.get(name, 0.0) + took
