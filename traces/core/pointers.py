"""JSON Pointers (RFC 6901): how a place inside a JSON value is written."""

from __future__ import annotations

from collections.abc import Iterable


def pointer_of(names: Iterable[str]) -> str:
    """The pointer to a place; an element of a list is named by its index."""
    return "".join(f"/{escaped(name)}" for name in names)


def escaped(name: str) -> str:
    """One name as it stands inside a pointer."""
    return name.replace("~", "~0").replace("/", "~1")
