from __future__ import annotations

import uuid
from datetime import datetime, timedelta

import pytest

from reviews.models import CalibrationItem, Revelation, ReviewDraft, Seat
from reviews.permissions.labels import (
    CLOSED_SET,
    DONE_SET,
    IMPORTED_SET,
    LEFT,
    NOT_A_REVIEWER,
    WITHDRAWN,
)
from reviews.selectors.gradable import gradable_criteria
from reviews.services.person_verdicts import give_verdict
from reviews.services.seats import (
    EXTENDED_ENOUGH,
    NO_LONGER,
    NO_REASON,
    NOT_RESERVED,
    RUBRIC_CHANGED,
    SUBMITTED,
    LabelDeniedError,
    LabelError,
    NoSeat,
    NoSeatKind,
    extend_seat,
    hold_seat,
    reveal,
    skip_item,
    take_seat,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.in_effect import contract_in_effect
from tests.support.labels import NOW, blind_set, reviewer_named, seated, stored_set
from traces.core.records import VerdictValue
from traces.models import Member, Role, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def place(seat: Seat) -> int:
    return seat.item.position


def test_an_item_is_reserved_for_a_quarter_of_an_hour_and_stays_the_persons(cast: Cast) -> None:
    of = blind_set(cast)

    seat = seated(of, cast.reviewer)
    again = seated(of, cast.reviewer, NOW + 5 * MINUTE)

    assert (place(seat), seat.taken_at, seat.expires_at) == (1, NOW, NOW + 15 * MINUTE)
    assert (again.pk, again.expires_at) == (seat.pk, seat.expires_at)


def test_two_people_may_have_an_item_in_hand_and_no_third(cast: Cast) -> None:
    of = blind_set(cast)
    third = reviewer_named(cast, "third")

    places = [place(seated(of, by)) for by in (cast.reviewer, cast.second_reviewer, third)]

    assert places == [1, 1, 2]


def test_all_that_is_left_in_the_hands_of_others_is_another_answer_than_done(cast: Cast) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    seated(of, cast.reviewer)
    seated(of, cast.second_reviewer, NOW + MINUTE)

    assert take_seat(of, by=third, now=NOW + 2 * MINUTE) == NoSeat(
        NoSeatKind.RESERVED,
        "All that is left for you is reserved by others, the first until 10:15 UTC. "
        "Come back then.",
        NOW + 15 * MINUTE,
    )
    assert place(seated(of, third, NOW + 15 * MINUTE)) == 1


def test_a_reservation_that_ended_is_taken_up_again_unless_somebody_took_it(cast: Cast) -> None:
    of = blind_set(cast, 1)
    third, fourth = reviewer_named(cast, "third"), reviewer_named(cast, "fourth")
    first = seated(of, cast.reviewer)
    later = NOW + 20 * MINUTE

    again = seated(of, cast.reviewer, later)
    assert (again.pk, again.taken_at, again.expires_at) == (first.pk, later, later + 15 * MINUTE)

    much_later = NOW + 60 * MINUTE
    seated(of, third, much_later)
    seated(of, fourth, much_later)
    found = take_seat(of, by=cast.reviewer, now=much_later)
    assert isinstance(found, NoSeat)
    assert found.kind is NoSeatKind.RESERVED


def leave(cast: Cast, user: User, how: str) -> None:
    if how == "inactive":
        User.objects.filter(pk=user.pk).update(is_active=False)
    elif how == "role":
        set_member(cast.system, user, Role.VIEWER)
    else:
        Member.objects.filter(user=user, system=cast.system).delete()


@pytest.mark.parametrize("how", ["inactive", "role", "member"])
def test_who_is_no_reviewer_any_more_holds_nothing(how: str, cast: Cast) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    seated(of, cast.reviewer)
    seated(of, cast.second_reviewer)

    leave(cast, cast.reviewer, how)

    assert place(seated(of, third)) == 1
    assert take_seat(of, by=cast.reviewer, now=NOW) == NoSeat(NoSeatKind.DENIED, NOT_A_REVIEWER)


def test_a_person_whose_place_was_taken_meanwhile_comes_back_too_late(cast: Cast) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    seat = seated(of, cast.reviewer)
    seated(of, cast.second_reviewer)
    leave(cast, cast.reviewer, "inactive")
    seated(of, third)
    User.objects.filter(pk=cast.reviewer.pk).update(is_active=True)

    with pytest.raises(LabelError, match=NO_LONGER):
        extend_seat(seat.item, by=cast.reviewer, now=NOW)


def test_what_is_begun_is_finished_first(cast: Cast) -> None:
    of = blind_set(cast, 3)
    third = reviewer_named(cast, "third")
    seated(of, cast.reviewer)
    seat = seated(of, cast.second_reviewer)
    skip_item(seat.item, reason="Not mine.", by=cast.second_reviewer, now=NOW)
    assert place(seated(of, cast.second_reviewer)) == 2
    assert place(seated(of, third)) == 1


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"closed_at": NOW}, NoSeatKind.DONE, CLOSED_SET),
        ({"completed_at": NOW}, NoSeatKind.DONE, DONE_SET),
        ({"is_imported": True}, NoSeatKind.DENIED, IMPORTED_SET),
    ],
)
def test_nobody_labels_a_set_that_is_not_open(
    change: dict[str, object], kind: NoSeatKind, sentence: str, cast: Cast
) -> None:
    of = blind_set(cast, 1, **change)
    assert take_seat(of, by=cast.reviewer, now=NOW) == NoSeat(kind, sentence)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ENGINEER, Role.OWNER])
def test_only_reviewers_label(role: Role, cast: Cast) -> None:
    of = blind_set(cast, 1)
    expected = NoSeat(NoSeatKind.DENIED, NOT_A_REVIEWER)
    assert take_seat(of, by=cast.members()[role], now=NOW) == expected
    assert take_seat(of, by=cast.outsider, now=NOW) == expected


def test_what_is_left_and_not_for_a_person_is_told_by_its_reasons(cast: Cast) -> None:
    of = blind_set(cast, 4)
    items = list(CalibrationItem.objects.filter(set=of).select_related("trial").order_by("pk"))
    me = cast.reviewer
    skip_item(seated(of, me).item, reason="Too long.", by=me, now=NOW)
    reveal(items[1].trial, of.criterion_id, where="trial", by=me, now=NOW)
    give_verdict(
        items[2].trial,
        criterion="tone",
        value=VerdictValue.PASS,
        reason="Kind.",
        steps=(),
        by=me,
        now=NOW,
    )
    place = {"by": me, "purpose": "label", "system": of.system, "criterion": of.criterion}
    ReviewDraft.objects.create(trial=items[3].trial, held_until=NOW, saved_at=NOW, **place)

    assert take_seat(of, by=me, now=NOW) == NoSeat(
        NoSeatKind.NOT_FOR_YOU,
        "Nothing is left for you here. 4 items are for others to label: 1 submitted by you, "
        "1 skipped by you, 1 seen by you with what others say, 1 with a verdict of yours.",
    )


def test_nobody_labels_trials_of_evidence_or_contracts_of_their_own(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], by=cast.engineer, release="1.0")
    ingest(cast.system, [record("t2", 0)], by=cast.owner, release="2.0")
    ingest(cast.system, [record("t3", 0)], by=cast.owner, release="2.0")
    text = "task: {}\nsemantic: [{{rubric: tone, question: Kind?}}]\n"
    for task, by in (("t1", cast.owner), ("t2", cast.engineer), ("t3", cast.owner)):
        contract_in_effect(cast.system, text.format(task), by=by)
    trials = list(Trial.objects.order_by("pk"))
    of = stored_set(cast.system, trials, by=cast.owner, criterion_digest=tone_digest(trials[0]))
    set_member(cast.system, cast.engineer, Role.REVIEWER)

    seat = seated(of, cast.engineer)
    skip_item(seat.item, reason="x", by=cast.engineer, now=NOW)
    found = take_seat(of, by=cast.engineer, now=NOW)

    assert place(seat) == 3
    assert isinstance(found, NoSeat)
    assert found.reason == (
        "Nothing is left for you here. 3 items are for others to label: 1 skipped by you, "
        "1 of a release that you brought evidence of, 1 under a contract that you proposed."
    )


def tone_digest(trial: Trial) -> uuid.UUID | None:
    return gradable_criteria(trial)["tone"].stored_digest


def test_items_whose_criterion_changed_are_withdrawn_when_somebody_comes(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    text = "task: {}\nsemantic: [{{rubric: tone, question: {}}}]\n"
    for task in ("t1", "t2"):
        contract_in_effect(cast.system, text.format(task, "Kind?"), by=cast.engineer)
    trials = list(Trial.objects.order_by("pk"))
    of = stored_set(cast.system, trials, by=cast.owner, criterion_digest=tone_digest(trials[0]))
    contract_in_effect(cast.system, text.format("t1", "Polite?"), by=cast.engineer)

    assert place(seated(of, cast.reviewer)) == 2
    rows = CalibrationItem.objects.filter(set=of).order_by("position")
    assert list(rows.values_list("withdrawn_at", "withdrawn_by", "withdrawn_reason")) == [
        (NOW, None, RUBRIC_CHANGED),
        (None, None, ""),
    ]


def test_a_reservation_is_extended_to_an_hour_at_most(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item

    def until(minutes: int) -> datetime:
        return extend_seat(item, by=cast.reviewer, now=NOW + minutes * MINUTE).expires_at

    assert until(10) == NOW + 25 * MINUTE
    assert until(50) == NOW + 60 * MINUTE
    with pytest.raises(LabelError, match=EXTENDED_ENOUGH):
        until(55)


def test_only_what_is_reserved_is_extended_held_or_skipped(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = CalibrationItem.objects.get()
    with pytest.raises(LabelError, match=NOT_RESERVED):
        extend_seat(item, by=cast.reviewer, now=NOW)
    with pytest.raises(LabelError, match=NOT_RESERVED):
        skip_item(item, reason="x", by=cast.reviewer, now=NOW)
    with pytest.raises(LabelDeniedError, match=NOT_A_REVIEWER):
        skip_item(item, reason="x", by=cast.viewer, now=NOW)
    seated(of, cast.reviewer)
    CalibrationItem.objects.update(withdrawn_at=NOW)
    with pytest.raises(LabelError, match=WITHDRAWN):
        extend_seat(item, by=cast.reviewer, now=NOW)


def test_a_hold_keeps_the_item_until_it_is_final(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item
    now = NOW + 14 * MINUTE

    hold_seat(item, until=now + 2 * MINUTE, by=cast.reviewer, now=now)
    hold_seat(item, until=now, by=cast.reviewer, now=now)

    assert Seat.objects.get().expires_at == now + 2 * MINUTE


def test_a_skipped_item_is_never_offered_again(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item
    with pytest.raises(LabelError, match=NO_REASON):
        skip_item(item, reason=" \u200b", by=cast.reviewer, now=NOW)
    with pytest.raises(LabelError, match="A reason has at most 2,000 characters"):
        skip_item(item, reason="x" * 2001, by=cast.reviewer, now=NOW)

    first = skip_item(item, reason=" I know the customer. ", by=cast.reviewer, now=NOW)
    again = skip_item(item, reason="Something else.", by=cast.reviewer, now=NOW + MINUTE)

    assert (again.pk, again.reason, again.ended_at) == (first.pk, "I know the customer.", NOW)
    with pytest.raises(LabelError, match=LEFT):
        extend_seat(item, by=cast.reviewer, now=NOW)
    found = take_seat(of, by=cast.reviewer, now=NOW + MINUTE)
    assert isinstance(found, NoSeat)
    assert found.kind is NoSeatKind.NOT_FOR_YOU


def test_who_asks_to_see_what_others_say_leaves_the_item(cast: Cast) -> None:
    of = blind_set(cast, 1)
    seat = seated(of, cast.reviewer)
    trial = seat.item.trial
    row = {"by": cast.reviewer, "purpose": "label", "system": of.system, "trial": trial}
    draft = ReviewDraft.objects.create(criterion=of.criterion, saved_at=NOW, held_until=NOW, **row)
    with pytest.raises(LabelError, match=SUBMITTED):
        reveal(trial, of.criterion_id, where="trial", by=cast.reviewer, now=NOW)
    draft.held_until = None
    draft.save()

    for _ in range(2):
        reveal(trial, of.criterion_id, where="trial", by=cast.reviewer, now=NOW)

    seen = Revelation.objects.get()
    assert (seen.trial, seen.by, seen.where, seen.at) == (trial, cast.reviewer, "trial", NOW)
    seat.refresh_from_db()
    assert (seat.ending, seat.ended_at) == ("given_up", NOW)
    assert not ReviewDraft.objects.exists()
    found = take_seat(of, by=cast.reviewer, now=NOW)
    assert isinstance(found, NoSeat)
    assert found.kind is NoSeatKind.NOT_FOR_YOU
