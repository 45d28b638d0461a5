"""The sizes that a reader accepts. Callers pass them on; nothing here reads settings."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, each of them still allowed."""

    record_bytes: int = 16 * MIB
    depth: int = 64  # of nested objects and arrays
    keys: int = 10_000  # per object
    containers: int = 500_000  # objects and lists in a record: each costs memory beyond its bytes
    steps: int = 200_000  # per trial
    identifier_chars: int = 512
    integer_digits: int = 4_000
    inflated_bytes: int = 512 * MIB  # of an upload that is one file
    archive_members: int = 10_000
    archive_bytes: int = 2 * GIB  # of all members together


DEFAULT_LIMITS = Limits()
