"""What a caller tells the readers about an upload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from traces.core.limits import DEFAULT_LIMITS, Limits
from traces.core.rules import RejectionSettings
from traces.core.transcript import DEFAULT_REJECTION

AUTO: Final = "auto"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read an upload."""

    format: str = AUTO  # a name of the table of formats; `auto` looks at the content
    release: str | None = None  # the version that the caller names; records may then name none
    limits: Limits = DEFAULT_LIMITS
    rejection: RejectionSettings = DEFAULT_REJECTION


DEFAULT_OPTIONS: Final = ReadOptions()
