"""Rows of background work: begun, tried again, given up, found again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from evalsite.background import MOST_TRIES, begun, stale_work
from evalsite.common.locks import exclusive
from tests.support.cast import Cast
from tests.support.rules import NOW
from traces.models import RulesSuggestions, WorkState
from traces.services.rules import ask_suggestions

pytestmark = pytest.mark.django_db

ROWS = RulesSuggestions.objects.all()


@pytest.fixture
def row(cast: Cast) -> RulesSuggestions:
    return ask_suggestions(cast.system, now=NOW)


def test_work_is_begun_and_counted_as_tried(row: RulesSuggestions) -> None:
    later = NOW + timedelta(minutes=1)
    assert begun(ROWS.all(), row.pk, now=NOW) is not None

    again = begun(ROWS.all(), row.pk, now=later)

    assert again is not None
    row.refresh_from_db()
    assert (row.state, row.n_tries, row.started_at, row.touched_at) == (
        WorkState.WORKING.value,
        2,
        NOW,
        later,
    )


@pytest.mark.parametrize("state", [WorkState.DONE, WorkState.CANCELLED, WorkState.FAILED])
def test_work_that_ended_is_not_begun(row: RulesSuggestions, state: WorkState) -> None:
    ROWS.update(state=state.value)
    assert begun(ROWS.all(), row.pk, now=NOW) is None
    assert ROWS.get().n_tries == 0


def test_work_that_nobody_asked_for_is_not_begun(row: RulesSuggestions) -> None:
    assert begun(ROWS.all(), row.pk + 1, now=NOW) is None


@pytest.mark.parametrize(
    ("n_total", "place"), [(2000, " behind 1,200 of 2,000"), (None, "")], ids=["counted", "not"]
)
def test_work_that_gets_no_further_fails_with_a_sentence(
    row: RulesSuggestions, n_total: int | None, place: str
) -> None:
    ROWS.update(n_tries=MOST_TRIES, n_done=1200, n_total=n_total)

    assert begun(ROWS.all(), row.pk, now=NOW) is None

    row.refresh_from_db()
    assert (row.state, row.finished_at, row.failure) == (
        WorkState.FAILED.value,
        NOW,
        f"This work stopped 5 times in a row{place}. The log of the worker names the cause.",
    )


@pytest.mark.parametrize(
    ("state", "seconds", "is_stale"),
    [
        (WorkState.WAITING, 31, True),
        (WorkState.WORKING, 31, True),
        (WorkState.WORKING, 30, False),
        (WorkState.DONE, 31, False),
        (WorkState.FAILED, 31, False),
        (WorkState.CANCELLED, 31, False),
    ],
)
def test_open_work_that_nobody_touches_is_stale(
    row: RulesSuggestions, state: WorkState, seconds: int, is_stale: bool
) -> None:
    ROWS.update(state=state.value)
    now = NOW + timedelta(seconds=seconds)
    found = stale_work(ROWS.all(), now=now, older_than_seconds=30)
    assert found == ([row.pk] if is_stale else [])


def test_a_lock_is_free_again_behind_its_block(db: None) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError), exclusive("tests", 7) as is_mine:
            assert is_mine
            raise RuntimeError
