from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from evalsite import tasks
from evalsite.after_adjudication import adjudicate_and_decide
from evalsite.held_decisions import finish_draft, finish_due
from reviews.core.disposition import AdjudicationRuling
from reviews.models import (
    Adjudication,
    CheckMark,
    Criterion,
    DraftPurpose,
    ReviewDraft,
)
from reviews.permissions.adjudications import NOT_A_REVIEWER
from reviews.selectors.review_drafts import due_drafts, held_drafts, refused_drafts
from reviews.services.adjudications import NO_REASON, OTHER_VERDICTS
from reviews.services.review_drafts import (
    HELD,
    HOLD,
    DraftHeldError,
    DraftPlace,
    drop_draft,
    save_draft,
    undo_hold,
)
from tests.support.adjudications import disputed_trial, seen_of
from tests.support.cast import Cast
from tests.support.evidence import ingest, verdict
from traces.models import Member, Trial, User
from traces.tasks import FINISH_HELD, hint_held

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
LATER = NOW + HOLD
ADJUDICATE = DraftPurpose.ADJUDICATE


def place(cast: Cast, trial: Trial, by: User) -> DraftPlace:
    criterion = Criterion.objects.get(system=cast.system, name="truthful")
    return DraftPlace(ADJUDICATE, by, cast.system, trial, criterion)


def held(cast: Cast, trial: Trial, by: User, **changed: Any) -> ReviewDraft:
    asked: dict[str, Any] = {
        "decision": "fail",
        "reason": "Step 2.",
        "steps": [2],
        "seen": seen_of(trial),
        "hold": True,
    }
    return save_draft(place(cast, trial, by), now=NOW, **(asked | changed))


def test_a_draft_keeps_what_is_written_and_is_one(cast: Cast) -> None:
    trial = disputed_trial(cast)

    save_draft(place(cast, trial, cast.reviewer), reason="I", now=NOW)
    row = save_draft(
        place(cast, trial, cast.reviewer),
        decision="pass",
        reason="I think so",
        steps=[5, 2, 2, 0, 2**40],
        seen="1.0.2-ab.0",
        now=LATER,
    )

    stored = ReviewDraft.objects.get()
    assert stored == row
    assert (stored.decision, stored.reason, stored.steps, stored.seen, stored.saved_at) == (
        "pass",
        "I think so",
        [2, 5],
        "1.0.2-ab.0",
        LATER,
    )
    assert (stored.held_until, stored.refusal, stored.purpose) == (None, "", "adjudicate")


def test_a_held_draft_waits_and_then_decides_once(cast: Cast) -> None:
    trial = disputed_trial(cast)
    draft = held(cast, trial, cast.reviewer)
    assert draft.held_until == LATER
    assert held_drafts(ADJUDICATE, system_pk=cast.system.pk, by=cast.reviewer) == [draft]

    assert finish_due(LATER - timedelta(seconds=1)) == 0
    assert not Adjudication.objects.exists()
    assert finish_due(LATER, cast.second_reviewer) == 0
    assert finish_due(LATER, cast.reviewer) == 1
    assert finish_due(LATER) == 0

    made = Adjudication.objects.get()
    assert (made.by, made.ruling, made.reason, made.cited_steps, made.decided_at) == (
        cast.reviewer,
        "fail",
        "Step 2.",
        [2],
        LATER,
    )
    assert not ReviewDraft.objects.exists()


def test_a_held_mark_is_made_as_well(cast: Cast) -> None:
    trial = disputed_trial(cast)
    held(cast, trial, cast.reviewer, decision="defective")

    assert finish_due(LATER) == 1

    assert CheckMark.objects.get().mark == "defective"


def test_what_is_held_can_be_taken_back_until_its_time(cast: Cast) -> None:
    trial = disputed_trial(cast)
    held(cast, trial, cast.reviewer)
    where = place(cast, trial, cast.reviewer)

    with pytest.raises(DraftHeldError, match=HELD):
        save_draft(where, reason="other", now=NOW)
    row = undo_hold(where, now=LATER - timedelta(seconds=1))

    assert row is not None
    assert (row.held_until, row.reason) == (None, "Step 2.")
    assert undo_hold(where, now=LATER) == row
    assert (finish_due(LATER), Adjudication.objects.count()) == (0, 0)
    held(cast, trial, cast.reviewer)
    assert undo_hold(where, now=LATER) is None
    assert finish_due(LATER) == 1
    assert undo_hold(where, now=LATER) is None


def test_a_draft_is_dropped_with_its_decision(cast: Cast) -> None:
    trial = disputed_trial(cast)
    where = place(cast, trial, cast.reviewer)

    assert drop_draft(where) is False
    save_draft(where, reason="x", now=NOW)
    assert drop_draft(where) is True
    assert not ReviewDraft.objects.exists()


def test_somebody_faster_leaves_the_draft_with_both_told(cast: Cast) -> None:
    trial = disputed_trial(cast)
    held(cast, trial, cast.reviewer, decision="pass", reason="It is true.")
    adjudicate_and_decide(
        trial,
        criterion="truthful",
        ruling=AdjudicationRuling.FAIL,
        reason="It is not.",
        steps=[],
        by=cast.second_reviewer,
        now=NOW,
    )

    assert finish_due(LATER) == 0

    draft = ReviewDraft.objects.get()
    assert (draft.decision, draft.reason, draft.held_until, draft.saved_at) == (
        "pass",
        "It is true.",
        None,
        LATER,
    )
    assert draft.refusal.startswith("second_reviewer decided this at 2026-12-01 10:00:00 UTC: fail")
    assert refused_drafts(ADJUDICATE, system_pk=cast.system.pk, by=cast.reviewer) == [draft]
    assert Adjudication.objects.get().reason == "It is not."


@pytest.mark.parametrize("how", ["verdicts", "removed", "reason", "nothing"])
def test_what_cannot_be_kept_when_its_time_comes_says_why(cast: Cast, how: str) -> None:
    trial = disputed_trial(cast)
    changed = {"reason": {"reason": " "}, "nothing": {"decision": ""}}.get(how, {})
    held(cast, trial, cast.reviewer, **changed)
    match how:
        case "verdicts":
            late = verdict("fail", criterion="truthful", grader="Judge 3", kind="model")
            more = {"record": "verdicts", "task_id": "t1", "trial": 0, "verdicts": [late]}
            ingest(cast.system, [more])
        case "removed":
            Member.objects.filter(user=cast.reviewer).delete()

    assert finish_due(LATER) == 0

    wanted = {
        "verdicts": OTHER_VERDICTS,
        "removed": NOT_A_REVIEWER,
        "reason": NO_REASON,
        "nothing": "Choose what it comes to.",
    }[how]
    assert ReviewDraft.objects.get().refusal == wanted
    assert not Adjudication.objects.exists()


def test_a_worker_does_it_by_a_hint_and_the_sweeper_sends_lost_ones(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    sent: list[tuple[str, list[int], float | None]] = []

    def send_task(_: Any, name: str, args: list[int], countdown: float | None, **__: Any) -> None:
        sent.append((name, args, countdown))

    monkeypatch.setattr("celery.app.base.Celery.send_task", send_task)
    trial = disputed_trial(cast)
    draft = held(cast, trial, cast.reviewer)
    sent.clear()

    with django_capture_on_commit_callbacks(execute=True):
        hint_held(draft.pk, seconds=8.5)
    assert sent == [(FINISH_HELD, [draft.pk], 8.5)]
    assert due_drafts(now=NOW) == []
    tasks.sweep()  # its clock is past that time
    assert sent[1:] == [(FINISH_HELD, [draft.pk], None)]
    tasks.finish_held_by_hint(draft.pk)
    tasks.finish_held_by_hint(draft.pk)
    assert Adjudication.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_worker_page_and_undo_at_once_do_it_once_or_not_at_all(cast: Cast) -> None:
    trial = disputed_trial(cast)
    draft = held(cast, trial, cast.reviewer)
    where = place(cast, trial, cast.reviewer)
    start = threading.Barrier(4)
    done: list[object] = []

    def act(what: int) -> None:
        try:
            start.wait(timeout=20)
            if what == 0:
                done.append(undo_hold(where, now=LATER - timedelta(milliseconds=1)) is not None)
            else:
                done.append(finish_draft(draft.pk, now=LATER))
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    # Taken back, or final: one of them, and once.
    assert sorted(map(bool, done)) == [False, False, False, True]
    assert Adjudication.objects.count() + ReviewDraft.objects.filter(held_until=None).count() == 1
