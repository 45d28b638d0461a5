"""Remembering what was read of rows that never change.

A key names rows by their ids, which no database gives out twice. A process that sees another
database under the same address, as tests do and as after a restore, must forget first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import _lru_cache_wrapper, lru_cache
from typing import Any, TypeVar

T = TypeVar("T")

_REMEMBERING: list[_lru_cache_wrapper[Any]] = []


def remembered(maxsize: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """As `functools.lru_cache`, for reads of append-only rows, and known to `forget_rows`."""

    def decorate(read: Callable[..., T]) -> _lru_cache_wrapper[T]:
        wrapped = lru_cache(maxsize=maxsize)(read)
        _REMEMBERING.append(wrapped)
        return wrapped

    return decorate


def forget_rows() -> None:
    """Forget every row: the next read asks the database."""
    for wrapped in _REMEMBERING:
        wrapped.cache_clear()
