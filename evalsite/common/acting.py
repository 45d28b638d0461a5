"""By which way somebody acts: a page, the API, a command, a worker, or the loader of samples.

It belongs to the thread's context. Requests, tasks and the sample loader say so; what says nothing
is a command.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from enum import StrEnum


class Source(StrEnum):
    """The kinds of ways."""

    PAGE = "page"
    COMMAND = "command"
    API = "api"
    WORKER = "worker"
    SAMPLE = "sample"


@dataclass(frozen=True, slots=True)
class Acting:
    """A way: its kind, the command's name, the API key's name and the request's id, or ""."""

    source: Source = Source.COMMAND
    command: str = ""
    key_name: str = ""
    request_id: str = ""

    @property
    def source_text(self) -> str:
        """The kind, and for a command its name."""
        return f"{self.source.value} {self.command}".strip()


_process = Acting()
_acting: ContextVar[Acting | None] = ContextVar("acting", default=None)


def acting_now() -> Acting:
    """The way of whoever acts now."""
    return _acting.get() or _process


def set_command(name: str) -> None:
    """Say which command this process is."""
    global _process  # noqa: PLW0603 - a fact about the process
    _process = Acting(command=name[:40])


@contextlib.contextmanager
def acting_as(acting: Acting) -> Iterator[Acting]:
    """Whoever acts inside does it by this way."""
    token = begin_acting(acting)
    try:
        yield acting
    finally:
        end_acting(token)


def begin_acting(acting: Acting) -> Token[Acting | None]:
    """Begin to act by a way, until `end_acting`."""
    return _acting.set(acting)


def end_acting(token: Token[Acting | None]) -> None:
    """Go back to the way before."""
    _acting.reset(token)


def note_key(name: str) -> None:
    """Say that the request is made with an API key."""
    _acting.set(replace(acting_now(), source=Source.API, command="", key_name=name[:200]))
