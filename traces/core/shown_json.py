"""JSON values as people read them."""

from __future__ import annotations

import json
from decimal import Decimal

from traces.core.values import Json


def shown_json(value: Json) -> str:
    """A value as JSON text for reading: letters of every script as they are, each digit kept.

    Not for comparing: `traces.core.canonical.canonical_text` is for that. What cannot be seen, or
    cannot stand in a page, is still in it; pages mark it.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    except TypeError:  # a Decimal: the encoder has no way to write one
        return _exact(value)


def _exact(value: Json) -> str:
    match value:
        case Decimal():
            return str(value)
        case dict():
            inner = ", ".join(f"{shown_json(name)}: {_exact(item)}" for name, item in value.items())
            return "{" + inner + "}"
        case list():
            return "[" + ", ".join(_exact(item) for item in value) + "]"
        case _:
            return shown_json(value)
