"""The JSON values that traces are made of."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

Json: TypeAlias = bool | int | float | Decimal | str | list["Json"] | dict[str, "Json"] | None
"""Any JSON value. `Decimal` stands for a number that a float cannot hold exactly."""

JsonObject: TypeAlias = dict[str, Json]
