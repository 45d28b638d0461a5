"""The JSON values that traces are made of."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

Json: TypeAlias = bool | int | float | Decimal | str | list["Json"] | dict[str, "Json"] | None
"""Any JSON value. `Decimal` stands for a number that a float cannot hold exactly."""

JsonObject: TypeAlias = dict[str, Json]


def object_in(value: Json) -> JsonObject:
    """The object that a stored document holds here; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def list_in(value: Json) -> list[Json]:
    """The list that a stored document holds here; an empty one for anything else."""
    return value if isinstance(value, list) else []


def text_in(value: Json) -> str:
    """The text that a stored document holds here; "" for anything else."""
    return value if isinstance(value, str) else ""
