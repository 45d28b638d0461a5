from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction

from reviews.models import (
    Adjudication,
    CalibrationItem,
    CalibrationSet,
    Label,
    Revelation,
    ReviewDraft,
    Seat,
    Verdict,
)
from reviews.permissions.labels import (
    CLOSED_SET,
    LABELLED,
    NOT_A_REVIEWER,
    OWN_VERDICT,
    SEEN,
    SETTLED,
    WITHDRAWN,
)
from reviews.permissions.verdicts import ADDED_EVIDENCE, UPLOADED_VERDICTS
from reviews.selectors.blinding import hidden_criteria
from reviews.selectors.calibration_sets import left_for
from reviews.services.labels import give_label, wants_labels
from reviews.services.person_verdicts import BLIND_LABEL, OUTDATED, VerdictError, give_verdict
from reviews.services.seats import (
    NO_LONGER,
    NOT_RESERVED,
    RUBRIC_CHANGED,
    LabelDeniedError,
    LabelError,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.labels import NOW, blind_set, reviewer_named, seated
from traces.core.records import VerdictValue
from traces.models import EvidenceAddition, Role, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
PASS, FAIL, UNKNOWN = VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN


def label(
    of: CalibrationSet, by: User, value: VerdictValue = PASS, reason: str = "Step 2 is kind."
) -> Label:
    item = seated(of, by).item
    return give_label(item, value=value, reason=reason, steps=[2], by=by, now=NOW)


def item_state() -> tuple[str, bool, int]:
    item = CalibrationItem.objects.get()
    return item.consensus, item.settled_at == NOW, item.n_needed


def test_a_label_is_a_verdict_of_the_person_and_ends_the_seat(cast: Cast) -> None:
    of = blind_set(cast, 1)
    seat = seated(of, cast.reviewer)
    row = {"by": cast.reviewer, "purpose": "label", "system": of.system, "saved_at": NOW}
    ReviewDraft.objects.create(trial=seat.item.trial, criterion=of.criterion, **row)

    given = label(of, cast.reviewer)

    assert (given.round, given.value, given.reason, given.cited_steps, given.by) == (
        1,
        "pass",
        "Step 2 is kind.",
        [2],
        cast.reviewer,
    )
    verdict = Verdict.objects.get(by=cast.reviewer)
    assert given.verdict == verdict
    assert (verdict.value, verdict.rationale, verdict.criterion) == (
        "pass",
        "Step 2 is kind.",
        of.criterion,
    )
    seat.refresh_from_db()
    assert (seat.ending, seat.ended_at) == ("labelled", NOW)
    seen = Revelation.objects.get()
    assert (seen.trial, seen.by, seen.where, seen.at) == (
        seat.item.trial,
        cast.reviewer,
        "label",
        NOW,
    )
    assert not ReviewDraft.objects.exists()
    assert item_state() == ("", False, 2)
    assert wants_labels(of)


def test_two_alike_settle_an_item(cast: Cast) -> None:
    of = blind_set(cast, 1)
    label(of, cast.reviewer)

    second = label(of, cast.second_reviewer)

    assert second.round == 2
    assert item_state() == ("pass", True, 2)
    assert not wants_labels(of)
    assert not Adjudication.objects.exists()


@pytest.mark.parametrize(
    ("values", "consensus", "ruling"),
    [
        pytest.param((PASS, FAIL, FAIL), "fail", "fail", id="two-of-three"),
        pytest.param((FAIL, PASS, PASS), "pass", "pass", id="pass"),
        pytest.param((PASS, FAIL, UNKNOWN), "split", "insufficient_evidence", id="split"),
        pytest.param((UNKNOWN, FAIL, UNKNOWN), "unknown", "insufficient_evidence", id="unknown"),
    ],
)
def test_where_two_differ_a_third_person_decides(
    values: tuple[VerdictValue, ...], consensus: str, ruling: str, cast: Cast
) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    first, second = label(of, cast.reviewer, values[0]), label(of, cast.second_reviewer, values[1])
    assert item_state() == ("", False, 3)

    given = label(of, third, values[2], "I looked.")

    assert (given.round, given.verdict) == (3, None)
    row = Adjudication.objects.get()
    assert given.adjudication == row
    on_it = set(Verdict.objects.filter(criterion=of.criterion).values_list("pk", flat=True))
    assert {first.verdict_id, second.verdict_id} < on_it
    assert (row.ruling, row.reason, row.cited_steps, set(row.seen)) == (
        ruling,
        "I looked.",
        [2],
        on_it,
    )
    assert (row.by, row.is_by_party, row.replaces, row.decided_at) == (third, False, None, NOW)
    assert item_state() == (consensus, True, 3)
    assert not Verdict.objects.filter(by=third).exists()


def test_the_same_label_sent_twice_is_one_and_another_is_refused(cast: Cast) -> None:
    of = blind_set(cast, 1)
    given = label(of, cast.reviewer)
    item = given.item

    def again(value: VerdictValue, reason: str) -> Label:
        return give_label(item, value=value, reason=reason, steps=[2], by=cast.reviewer, now=NOW)

    assert again(PASS, " Step 2 is kind. ") == given
    for value, reason in ((FAIL, "Step 2 is kind."), (PASS, "Otherwise."), (PASS, "")):
        with pytest.raises(LabelError, match=LABELLED):
            again(value, reason)
    assert Label.objects.count() == 1


def test_a_label_is_never_corrected_and_never_changed(cast: Cast) -> None:
    of = blind_set(cast, 1)
    given = label(of, cast.reviewer)

    with pytest.raises(VerdictError, match=BLIND_LABEL):
        give_verdict(
            given.item.trial,
            criterion="tone",
            value=FAIL,
            reason="On second thoughts.",
            steps=(),
            by=cast.reviewer,
            now=NOW,
            corrects=given.verdict,
        )
    with pytest.raises(DatabaseError, match="a label"), transaction.atomic():
        Label.objects.update(value="fail")


def test_a_seat_that_ended_still_labels_what_nobody_else_took(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item
    later = NOW + 40 * MINUTE

    given = give_label(item, value=PASS, reason="Late.", steps=(), by=cast.reviewer, now=later)

    assert given.round == 1


def test_a_seat_that_ended_gives_way_to_whoever_took_its_place(cast: Cast) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    item = seated(of, cast.reviewer).item
    later = NOW + 40 * MINUTE
    for by in (cast.second_reviewer, third):
        seated(of, by, later)

    with pytest.raises(LabelError, match=NO_LONGER):
        give_label(item, value=PASS, reason="Late.", steps=(), by=cast.reviewer, now=later)
    for by in (cast.second_reviewer, third):
        give_label(item, value=PASS, reason="Kind.", steps=(), by=by, now=later)
    with pytest.raises(LabelError, match="Others were faster"):
        give_label(item, value=PASS, reason="Late.", steps=(), by=cast.reviewer, now=later)
    assert SETTLED.startswith("Others were faster")
    assert Label.objects.count() == 2


def refused(item: CalibrationItem, by: User, **more: object) -> str:
    values: dict[str, object] = {"value": PASS, "reason": "Kind.", "steps": (), **more}
    with pytest.raises(LabelError) as caught:
        give_label(item, by=by, now=NOW, **values)
    return str(caught.value)


def test_nobody_labels_what_is_not_reserved_for_them(cast: Cast) -> None:
    blind_set(cast, 1)
    item = CalibrationItem.objects.get()
    assert refused(item, cast.reviewer) == NOT_RESERVED
    assert refused(item, cast.viewer) == NOT_A_REVIEWER
    assert refused(item, cast.outsider) == NOT_A_REVIEWER


def test_what_happened_since_the_item_was_opened_refuses_a_label(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item

    CalibrationSet.objects.update(closed_at=NOW)
    assert refused(item, cast.reviewer) == CLOSED_SET
    CalibrationItem.objects.update(withdrawn_at=NOW)
    assert refused(item, cast.reviewer) == WITHDRAWN
    CalibrationSet.objects.update(closed_at=None)
    CalibrationItem.objects.update(withdrawn_at=None)
    Revelation.objects.create(
        trial=item.trial, criterion=of.criterion, by=cast.reviewer, where="trial", at=NOW
    )
    assert refused(item, cast.reviewer) == SEEN


def test_who_lost_the_right_meanwhile_labels_nothing(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item
    EvidenceAddition.objects.create(
        trial=item.trial,
        order=1,
        parts=["cost_usd"],
        content=b"",
        source="x",
        reason="x",
        by=cast.reviewer,
        digest="00000000-0000-0000-0000-000000000000",
        added_at=NOW,
    )
    with pytest.raises(LabelDeniedError, match=ADDED_EVIDENCE):
        give_label(item, value=PASS, reason="x", steps=(), by=cast.reviewer, now=NOW)
    set_member(cast.system, cast.reviewer, Role.VIEWER)
    with pytest.raises(LabelDeniedError, match=NOT_A_REVIEWER):
        give_label(item, value=PASS, reason="x", steps=(), by=cast.reviewer, now=NOW)


def test_a_verdict_given_meanwhile_keeps_the_person_out(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item
    give_verdict(
        item.trial, criterion="tone", value=PASS, reason="x", steps=(), by=cast.reviewer, now=NOW
    )
    assert refused(item, cast.reviewer) == OWN_VERDICT


def test_a_changed_contract_or_rubric_keeps_nothing(cast: Cast) -> None:
    of = blind_set(cast, 1)
    item = seated(of, cast.reviewer).item
    assert refused(item, cast.reviewer, seen="7.0") == OUTDATED
    contract_in_effect(
        cast.system,
        "task: t1\nsemantic: [{rubric: tone, question: Kind?}]\n",
        by=cast.engineer,
    )
    assert refused(item, cast.reviewer) == RUBRIC_CHANGED
    assert Trial.objects.get().verdicts.filter(by=cast.reviewer).count() == 0
    assert Seat.objects.get().ended_at is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"value": VerdictValue.ERROR}, "A person says pass, fail or unknown."),
        ({"reason": " "}, "Say why: the reason is what the next person reads."),
        ({"reason": "x" * 4001}, "A reason has at most 4,000 characters."),
        ({"steps": [99]}, "There is no step 99; the transcript has 4 steps."),
    ],
)
def test_what_a_verdict_is_refused_for_refuses_a_label(
    wrong: dict[str, object], sentence: str, cast: Cast
) -> None:
    of = blind_set(cast, 1)
    third = reviewer_named(cast, "third")
    assert refused(seated(of, cast.reviewer).item, cast.reviewer, **wrong) == sentence
    label(of, cast.reviewer, PASS)
    label(of, cast.second_reviewer, FAIL)
    assert refused(seated(of, third).item, third, **wrong) == sentence
    assert refused(CalibrationItem.objects.get(), third, seen="7.0") == OUTDATED
    assert Label.objects.count() == 2


def test_who_decided_on_a_trial_before_is_not_asked_for_a_label_of_it(cast: Cast) -> None:
    of = blind_set(cast, 2)
    held = seated(of, cast.reviewer)
    Adjudication.objects.create(
        system=cast.system,
        trial=held.item.trial,
        criterion=of.criterion,
        ruling="fail",
        reason="Step 2.",
        cited_steps=[],
        seen=[],
        evidence_order=0,
        evidence_digest=held.item.trial.digest,
        is_by_party=False,
        by=cast.reviewer,
        decided_at=NOW,
    )

    assert refused(held.item, cast.reviewer) == SEEN
    assert seated(of, cast.reviewer).item != held.item
    assert left_for(cast.reviewer, cast.system.pk, [of.pk]) == {of.pk: 1}
    trials = [held.item.trial_id]
    people = (cast.reviewer, cast.second_reviewer)
    hidden = [hidden_criteria(who.pk, Role.REVIEWER, trials) for who in people]
    assert hidden == [{}, {held.item.trial_id: frozenset({"tone"})}]


def test_who_uploaded_verdicts_on_a_trial_is_not_asked_for_a_label_of_it(cast: Cast) -> None:
    of = blind_set(cast, 2)
    held = seated(of, cast.reviewer)
    judged = verdict(criterion="style", grader="j3", kind="model")
    label = held.item.trial.label
    alone = {"record": "verdicts", "task_id": "t1", "trial": label, "verdicts": [judged]}
    ingest(cast.system, [alone], release=None, by=cast.reviewer)

    assert refused(held.item, cast.reviewer) == UPLOADED_VERDICTS
    assert seated(of, cast.reviewer).item != held.item
    people = (cast.reviewer, cast.second_reviewer)
    assert [left_for(who, cast.system.pk, [of.pk]) for who in people] == [{of.pk: 1}, {of.pk: 2}]
