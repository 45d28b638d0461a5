"""The natural order of task ids as the plain order of texts."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"[0-9]+")
_MOST_CHARS = 1200


def sort_text(task_id: str) -> str:
    """A text whose plain order is the natural order: whole numbers first, runs by value."""
    padded = _DIGITS.sub(lambda run: _ordered_number(run.group()), task_id)
    return (("0" if task_id.isascii() and task_id.isdigit() else "1") + padded)[:_MOST_CHARS]


def _ordered_number(digits: str) -> str:
    value = digits.lstrip("0") or "0"
    return f"{len(value):04d}{value}"
