from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection

from evalsite.after_label import complete_set, finish_label, label_and_decide, seat_of
from reviews.models import (
    Adjudication,
    CalibrationItem,
    CalibrationSet,
    DraftPurpose,
    Label,
    ReviewDraft,
)
from reviews.services.review_drafts import DraftRefusedError
from reviews.services.seats import NO_LONGER, LabelError, NoSeat, NoSeatKind
from tests.support.cast import Cast
from tests.support.labels import NOW, blind_set, reviewer_named, seated
from traces.core.records import VerdictValue
from traces.models import TrialDisposition, User

pytestmark = pytest.mark.django_db

PASS, FAIL, UNKNOWN = VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN


def label(of: CalibrationSet, by: User, value: VerdictValue) -> Label:
    item = seated(of, by).item
    return label_and_decide(item, value=value, reason="I looked.", steps=(), by=by, now=NOW)


def decided() -> tuple[str, list[str]]:
    row = TrialDisposition.objects.get()
    return row.value, row.next_actions


def test_two_people_differ_and_a_third_decides_the_trial(cast: Cast) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    assert decided() == ("unresolved", ["calibrate_judge"])

    label(of, cast.reviewer, PASS)
    assert decided() == ("pass", [])
    label(of, cast.second_reviewer, FAIL)
    assert decided() == ("unresolved", ["adjudicate"])
    of.refresh_from_db()
    assert of.completed_at is None

    label(of, third, FAIL)

    assert decided() == ("fail", [])
    assert Adjudication.objects.get().by == third
    of.refresh_from_db()
    assert of.completed_at == NOW
    assert seat_of(of, by=cast.reviewer, now=NOW) == NoSeat(
        NoSeatKind.DONE, "This set is done: every item has the labels that it needs."
    )


def test_what_is_refused_leaves_all_as_it_was(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item
    before = TrialDisposition.objects.values().get()

    with pytest.raises(LabelError):
        label_and_decide(item, value=PASS, reason=" ", steps=(), by=cast.reviewer, now=NOW)

    assert TrialDisposition.objects.values().get() == before
    assert not Label.objects.exists()


def test_whoever_comes_to_a_set_without_open_items_completes_it(cast: Cast) -> None:
    of = blind_set(cast, 1)
    assert not complete_set(of, now=NOW)
    CalibrationItem.objects.update(withdrawn_at=NOW)

    found = seat_of(of, by=cast.reviewer, now=NOW)

    assert isinstance(found, NoSeat)
    of.refresh_from_db()
    assert (found.kind, of.completed_at) == (NoSeatKind.DONE, NOW)
    assert not complete_set(of, now=NOW)


def draft(of: CalibrationSet, by: User, **more: object) -> ReviewDraft:
    item = CalibrationItem.objects.get(set=of)
    values = {"item": item, "decision": "pass", "reason": "Kind.", **more}
    return ReviewDraft.objects.create(
        by=by,
        purpose=DraftPurpose.LABEL.value,
        system=of.system,
        trial=item.trial,
        criterion=of.criterion,
        saved_at=NOW,
        **values,
    )


def test_a_held_draft_becomes_a_label_or_says_why_not(cast: Cast) -> None:
    of = blind_set(cast, 1)
    with pytest.raises(DraftRefusedError, match="not reserved for you"):
        finish_label(draft(of, cast.reviewer), NOW)
    seated(of, cast.second_reviewer)
    finish_label(draft(of, cast.second_reviewer), NOW)
    assert Label.objects.get().by == cast.second_reviewer


@pytest.mark.parametrize("wrong", [{"decision": "nonsense"}, {"decision": ""}, {"item": None}])
def test_a_held_draft_that_says_nothing_is_refused(wrong: dict[str, object], cast: Cast) -> None:
    of = blind_set(cast, 1)
    seated(of, cast.reviewer)
    with pytest.raises(DraftRefusedError, match="Say pass, fail or cannot tell"):
        finish_label(draft(of, cast.reviewer, **wrong), NOW)


@pytest.mark.django_db(transaction=True)
def test_of_three_people_with_the_last_item_at_once_two_label_it(cast: Cast) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    people = (cast.reviewer, cast.second_reviewer, third)
    later = NOW
    for by in people:  # each found it free: the reservation of the one before had ended
        item = seated(of, by, later).item
        later += timedelta(minutes=16)
    start = threading.Barrier(len(people))
    refusals: list[str] = []

    def act(by: User) -> None:
        try:
            start.wait(timeout=20)
            label_and_decide(item, value=PASS, reason="Kind.", steps=(), by=by, now=later)
        except LabelError as error:
            refusals.append(str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(by,)) for by in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert sorted(Label.objects.values_list("round", flat=True)) == [1, 2]
    assert len(refusals) == 1
    assert refusals[0].startswith("Others were faster")
    assert NO_LONGER not in refusals
    of.refresh_from_db()
    assert of.completed_at == later


@pytest.mark.django_db(transaction=True)
def test_of_two_people_who_want_the_last_place_one_gets_it(cast: Cast) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    label(of, cast.reviewer, PASS)
    start = threading.Barrier(2)
    found: dict[str, NoSeatKind | int] = {}

    def act(by: User) -> None:
        try:
            start.wait(timeout=20)
            seat = seat_of(of, by=by, now=NOW)
            found[by.username] = seat.kind if isinstance(seat, NoSeat) else seat.item.position
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(by,)) for by in (cast.second_reviewer, third)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert sorted(map(str, found.values())) == ["1", "reserved"]
