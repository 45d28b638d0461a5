from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from reviews.core.seating import (
    Bar,
    QueuedItem,
    clock_text,
    extended,
    next_item,
    reserved_until,
    why_nothing,
)

NOW = datetime(2026, 12, 5, 10, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def queued(position: int, n_labels: int = 0, **more: object) -> QueuedItem:
    return QueuedItem(pk=position, position=position, n_needed=2, n_labels=n_labels, **more)


@pytest.mark.parametrize(
    ("items", "position"),
    [
        pytest.param([], None, id="none"),
        pytest.param([queued(2), queued(1)], 1, id="in-order"),
        pytest.param([queued(1), queued(2, n_labels=1)], 2, id="begun-first"),
        pytest.param(
            [queued(1, n_labels=1), queued(2, own_until=NOW + MINUTE)], 2, id="own-before-begun"
        ),
        pytest.param(
            [queued(1, n_labels=1), queued(2, own_until=NOW)], 1, id="own-that-ended-is-begun"
        ),
        pytest.param([queued(1), queued(2, own_until=NOW)], 2, id="own-that-ended-before-new"),
        pytest.param([queued(1, n_held=2), queued(2)], 2, id="all-held"),
        pytest.param([queued(1, n_labels=1, n_held=1), queued(2)], 2, id="rest-held"),
        pytest.param([queued(1, bar=Bar.SKIPPED)], None, id="barred"),
        pytest.param([queued(1, n_labels=2)], None, id="full"),
    ],
)
def test_the_next_item(items: list[QueuedItem], position: int | None) -> None:
    found = next_item(items, NOW)
    assert (found.position if found else None) == position


def test_when_an_item_comes_free() -> None:
    later, soon = NOW + 9 * MINUTE, NOW + 4 * MINUTE
    items = [
        queued(1, n_held=2, held_until=later),
        queued(2, n_labels=1, n_held=1, held_until=soon),
        queued(3, n_held=1, held_until=NOW, bar=Bar.LABELLED),
        queued(4, n_labels=2, held_until=NOW),
    ]
    assert reserved_until(items) == soon
    assert reserved_until(items[2:]) is None


def test_why_nothing_is_left() -> None:
    assert why_nothing([]) == ""
    assert why_nothing([queued(1)]) == ""
    assert why_nothing([queued(1, bar=Bar.LABELLED)]) == (
        "Nothing is left for you here. 1 item is for others to label: 1 labelled by you."
    )
    assert why_nothing([queued(n, bar=bar) for n, bar in enumerate((Bar.SEEN, Bar.SEEN))]) == (
        "Nothing is left for you here. 2 items are for others to label: "
        "2 seen by you with what others say."
    )


def test_an_extension_ends_with_the_hour() -> None:
    assert extended(NOW, NOW + 10 * MINUTE) == NOW + 25 * MINUTE
    assert extended(NOW, NOW + 50 * MINUTE) == NOW + 60 * MINUTE


def test_a_clock_shows_utc() -> None:
    assert (
        clock_text(datetime(2026, 1, 1, 0, 5, tzinfo=timezone(timedelta(hours=2)))) == "22:05 UTC"
    )
