"""Gates of releases computed from stored evidence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reviews.core.gate.model import Gate


@dataclass(frozen=True, slots=True)
class OtherGate:
    """The gate under other thresholds, tiers or contracts than those that count.

    `is_later` True: as it would be if an owner re-evaluated it now. False: an owner did, and this
    is what it was when its runs began. `sentence` names what differs.
    """

    gate: Gate
    sentence: str
    is_later: bool


@dataclass(frozen=True, slots=True)
class ComputedGate:
    """A gate with what it rests on. `digest` is the SHA-256 of the canonical manifest, in hex."""

    gate: Gate
    other: OtherGate | None
    manifest: dict[str, Any]
    digest: str
    revision: int  # of the release's gate row when it was computed; 0: it has none yet


def compute_gate(release_pk: int, *, now: datetime) -> ComputedGate:
    """The gate of a release on the evidence as it is.

    Inside a transaction it reads what that one sees; whoever signs holds `ingest_locks` of the
    system and the release. Adds check verdicts where a contract version that the gate applies is
    not the one that pages decide by.
    """
    raise NotImplementedError


def refresh_gate(release_pk: int, *, now: datetime) -> bool:
    """Compute the gate of a release and keep it, if it is out of date. Raises alerts."""
    raise NotImplementedError
