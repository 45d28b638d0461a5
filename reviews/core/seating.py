"""Which item of a blind set a person is given to label next, and why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

RESERVED_FOR = timedelta(minutes=15)
RESERVED_AT_MOST = timedelta(minutes=60)  # with all extensions


class Bar(StrEnum):
    """Why a person is never asked to label an item."""

    LABELLED = "labelled"
    SUBMITTED = "submitted"  # a label of theirs becomes final in some seconds
    SKIPPED = "skipped"
    GIVEN_UP = "given_up"
    SEEN = "seen"
    OWN_VERDICT = "own_verdict"
    BROUGHT_EVIDENCE = "brought_evidence"
    OWN_CONTRACT = "own_contract"
    ADDED_EVIDENCE = "added_evidence"


@dataclass(frozen=True, slots=True)
class QueuedItem:
    """An item that is neither settled nor withdrawn, as one person finds it."""

    pk: int
    position: int
    n_needed: int
    n_labels: int
    n_held: int = 0  # reservations of others that last
    held_until: datetime | None = None  # the first of them to end
    bar: Bar | None = None
    own_until: datetime | None = None  # the person's reservation, which may have ended

    @property
    def has_room(self) -> bool:
        """Whether a label is missing that nobody else has in hand."""
        return self.n_labels + self.n_held < self.n_needed

    @property
    def is_wanting(self) -> bool:
        """Whether a label is missing, in somebody's hand or not."""
        return self.n_labels < self.n_needed


def next_item(items: Sequence[QueuedItem], now: datetime) -> QueuedItem | None:
    """The item to reserve for the person: their own first, then what is begun, then the next."""
    free = [item for item in items if item.bar is None and item.has_room]
    return min(free, key=lambda item: _place(item, now), default=None)


def _place(item: QueuedItem, now: datetime) -> tuple[bool, bool, int]:
    holds = item.own_until is not None and item.own_until > now
    is_begun = item.own_until is not None or item.n_labels > 0
    return (not holds, not is_begun, item.position)


def reserved_until(items: Sequence[QueuedItem]) -> datetime | None:
    """When the first item comes free that the person may label and others hold now."""
    ends = [
        item.held_until
        for item in items
        if item.bar is None and item.is_wanting and item.held_until is not None
    ]
    return min(ends, default=None)


def extended(taken_at: datetime, now: datetime) -> datetime:
    """Until when a reservation lasts that is extended now."""
    return min(now + RESERVED_FOR, taken_at + RESERVED_AT_MOST)


def clock_text(at: datetime) -> str:
    """A time of today, as people look it up on a clock."""
    return f"{at.astimezone(UTC):%H:%M} UTC"


_LEFT = (
    (Bar.LABELLED, "labelled by you"),
    (Bar.SUBMITTED, "submitted by you"),
    (Bar.SKIPPED, "skipped by you"),
    (Bar.GIVEN_UP, "given up by you"),
    (Bar.SEEN, "seen by you with what others say"),
    (Bar.OWN_VERDICT, "with a verdict of yours"),
    (Bar.BROUGHT_EVIDENCE, "of a release that you brought evidence of"),
    (Bar.OWN_CONTRACT, "under a contract that you proposed"),
    (Bar.ADDED_EVIDENCE, "with evidence that you added"),
)


def why_nothing(items: Sequence[QueuedItem]) -> str:
    """Why none of the items that are left is for the person, in a sentence; "" with none left."""
    counts = [(sum(item.bar is bar for item in items), words) for bar, words in _LEFT]
    said = [f"{n} {words}" for n, words in counts if n]
    if not said:
        return ""
    left = "item is" if len(items) == 1 else "items are"
    return (
        f"Nothing is left for you here. {len(items)} {left} for others to label: {', '.join(said)}."
    )
