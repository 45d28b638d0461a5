"""The audit log as the services of people write to it."""

from __future__ import annotations

try:
    from evalsite.common.audit import AuditedObject, record
except ImportError:
    from dataclasses import dataclass
    from typing import Any

    @dataclass(frozen=True, slots=True)
    class AuditedObject:  # type: ignore[no-redef]
        """What an act is about."""

        kind: str
        id: str
        label: str

    def record(act: str, **values: Any) -> None:  # type: ignore[misc]
        """Nothing yet."""


__all__ = ["AuditedObject", "record"]
