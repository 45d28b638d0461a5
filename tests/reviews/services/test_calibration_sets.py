from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import ProgrammingError, transaction

from reviews.core.sampling import Stratum
from reviews.models import CalibrationItem, CalibrationSet, Label, Sampling, SetVouch
from reviews.permissions.calibration_sets import (
    IMPORTED_IT,
    LABELLED_IT,
    NOT_A_REVIEWER,
    NOT_A_VOUCHER,
)
from reviews.services.calibration_sets import (
    LONGEST_NAME,
    MOST_ITEMS,
    NO_CRITERION,
    NO_TRIAL,
    NOT_IMPORTED,
    OVER,
    SETTLED,
    VOUCHED,
    WITHDRAWN,
    CalibrationSetDeniedError,
    CalibrationSetError,
    close_set,
    complete_if_done,
    make_set,
    vouch_for_set,
    withdraw_item,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.sets import NOW, WISH, a_set, items, judged, labelled, nowhere, stored
from traces.core.contracts.reading import read_contract
from traces.models import Role, Task, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

RUBRIC = """\
task: t1
family: refunds
semantic:
  - {rubric: truthful, version: "2", question: Is what the agent says true?}
"""


def imported_set(cast: Cast, by: User, *labellers: str) -> CalibrationSet:
    stored(cast, 1)
    made = a_set(cast)
    CalibrationSet.objects.filter(pk=made.pk).update(is_imported=True, by=by, completed_at=NOW)
    for number, name in enumerate(labellers, start=1):
        Label.objects.create(
            item=items(made)[0], labeller=name, round=number, value="pass", given_at=NOW
        )
    return CalibrationSet.objects.get(pk=made.pk)


def refused(act: Any, *args: Any, **more: Any) -> str:
    with pytest.raises(CalibrationSetError) as raised:
        act(*args, **more)
    return str(raised.value)


# --- making one


def test_a_random_set_holds_trials_in_a_drawn_order(cast: Cast) -> None:
    stored(cast, 8)

    made = a_set(cast, n=3)

    kept = CalibrationSet.objects.get(pk=made.pk)
    assert (kept.number, kept.name, kept.criterion.name, kept.criterion_digest) == (
        1,
        "First set",
        "outcome",
        None,
    )
    assert (kept.sampling, kept.seed, kept.strata, kept.is_imported, kept.by) == (
        "random",
        4,
        None,
        False,
        cast.reviewer,
    )
    assert [(item.position, item.stratum, item.n_needed) for item in items(kept)] == [
        (1, "", 2),
        (2, "", 2),
        (3, "", 2),
    ]
    assert len({item.trial_id for item in items(kept)}) == 3


def test_a_set_is_of_the_rubric_as_it_stands(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t2", 0)], by=cast.engineer)
    version = contract_in_effect(cast.system, RUBRIC, by=cast.engineer)
    digest = uuid.UUID(bytes=_digest(version.text))

    made = a_set(cast, criterion="truthful", criterion_digest=digest)

    assert (made.criterion_digest, made.rubric_version, made.question) == (
        digest,
        "2",
        "Is what the agent says true?",
    )
    assert [item.trial.task.task_id for item in items(made)] == ["t1"]
    assert refused(a_set, cast, criterion="truthful", criterion_digest=nowhere()) == NO_CRITERION
    assert refused(a_set, cast, criterion="truthful") == NO_CRITERION


def _digest(text: str) -> bytes:
    contract = read_contract(text).contract
    assert contract is not None
    return contract.semantic[0].digest


def test_sets_are_numbered_and_hold_no_trial_of_another_one(cast: Cast) -> None:
    stored(cast, 3)

    first = a_set(cast, n=2)
    second = a_set(cast, n=2)

    assert (first.number, second.number) == (1, 2)
    assert len(items(second)) == 1
    assert {i.trial_id for i in items(first)}.isdisjoint(i.trial_id for i in items(second))
    assert refused(a_set, cast) == NO_TRIAL


def test_what_a_closed_set_left_unsettled_qualifies_again(cast: Cast) -> None:
    stored(cast, 3)
    first = a_set(cast)
    one, other, _ = items(first)
    labelled(one, (cast.reviewer, "pass"), (cast.second_reviewer, "pass"))
    withdraw_item(other, reason="The trace is cut.", by=cast.reviewer, now=NOW)
    close_set(first, reason="Enough.", by=cast.reviewer, now=NOW)

    assert len(items(a_set(cast))) == 2


def test_a_stratified_set_keeps_what_was_wanted_and_found(cast: Cast) -> None:
    stored(cast, 3)
    failing = [record("t1", n, verdicts=[verdict("fail"), judged()]) for n in (7, 8)]
    ingest(cast.system, failing, by=cast.engineer)

    made = a_set(
        cast,
        sampling=Sampling.STRATIFIED,
        wanted={Stratum.CLEAR_PASS: 2, Stratum.CLEAR_FAILURE: 29},
    )

    assert made.strata == [
        {"stratum": "clear pass", "wanted": 2, "found": 3, "drawn": 2},
        {"stratum": "clear failure", "wanted": 29, "found": 2, "drawn": 2},
    ]
    assert sorted(item.stratum for item in items(made)) == [
        "clear failure",
        "clear failure",
        "clear pass",
        "clear pass",
    ]


def test_trials_are_chosen_by_hand(cast: Cast) -> None:
    stored(cast, 4)
    ingest(cast.other_system, [record("t1", 0, verdicts=[verdict(), judged()])], by=cast.outsider)
    chosen = list(Trial.objects.filter(system=cast.system).order_by("pk")[:2])
    foreign = Trial.objects.get(system=cast.other_system)

    made = a_set(cast, sampling=Sampling.CHOSEN, trials=tuple(each.uuid for each in chosen))

    assert {item.trial for item in items(made)} == set(chosen)
    sentence = refused(
        a_set, cast, sampling=Sampling.CHOSEN, trials=(foreign.uuid, chosen[0].uuid, nowhere())
    )
    named = ", ".join(sorted(map(str, (foreign.uuid, chosen[0].uuid, nowhere()))))
    assert sentence == (
        "You chose 3 trials that cannot be labelled on this criterion, or stand in a blind set on "
        f"it already: {named}."
    )


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"name": " "}, "A set has a name."),
        ({"name": "\u200b"}, "A set has a name."),
        ({"name": "x" * (LONGEST_NAME + 1)}, "That text has at most 200 characters."),
        ({"reason": ""}, "Say why these trials are to be labelled."),
        ({"n": 0}, "A set has at least one trial."),
        ({"n": -5}, "A set has at least one trial."),
        ({"family": "none"}, NO_TRIAL),
        ({"criterion": "tone"}, NO_CRITERION),
    ],
)
def test_a_set_is_refused(cast: Cast, changed: dict[str, Any], sentence: str) -> None:
    stored(cast)

    assert refused(a_set, cast, **changed) == sentence
    assert not CalibrationSet.objects.exists()


def test_a_set_has_its_most(cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", n, calls=()) for n in range(MOST_ITEMS + 1)],
        by=cast.engineer,
    )

    assert refused(a_set, cast, n=MOST_ITEMS + 1) == "A set has at most 1,000 trials."
    assert len(items(a_set(cast, n=MOST_ITEMS))) == MOST_ITEMS


@pytest.mark.parametrize("who", ["engineer", "owner", "viewer", "outsider"])
def test_only_a_reviewer_makes_thins_out_and_closes_sets(cast: Cast, who: str) -> None:
    stored(cast)
    made = a_set(cast)
    person = getattr(cast, who)

    for act in (
        lambda: make_set(cast.system, WISH, by=person, now=NOW),
        lambda: withdraw_item(items(made)[0], reason="So.", by=person, now=NOW),
        lambda: close_set(made, reason="So.", by=person, now=NOW),
    ):
        with pytest.raises(CalibrationSetDeniedError, match=NOT_A_REVIEWER):
            act()


# --- withdrawing, closing, completing


def test_an_item_is_withdrawn_once_while_the_set_is_open(cast: Cast) -> None:
    stored(cast)
    made = a_set(cast)
    one, other, third = items(made)
    labelled(other, (cast.reviewer, "pass"), (cast.second_reviewer, "pass"))

    withdraw_item(one, reason=" The trace is cut. ", by=cast.reviewer, now=NOW)

    one.refresh_from_db()
    assert (one.withdrawn_at, one.withdrawn_by, one.withdrawn_reason) == (
        NOW,
        cast.reviewer,
        "The trace is cut.",
    )
    again = {"reason": "So.", "by": cast.reviewer, "now": NOW}
    assert refused(withdraw_item, one, **again) == WITHDRAWN
    assert refused(withdraw_item, other, **again) == SETTLED
    assert refused(withdraw_item, third, reason="", by=cast.reviewer, now=NOW) == (
        "Say why it is taken out."
    )
    close_set(made, reason="Enough.", by=cast.reviewer, now=NOW)
    assert refused(withdraw_item, third, **again) == OVER


def test_a_set_is_closed_once(cast: Cast) -> None:
    stored(cast)
    made = a_set(cast)

    close_set(made, reason="The rubric is unclear.", by=cast.second_reviewer, now=NOW)

    made.refresh_from_db()
    assert (made.closed_at, made.closed_by, made.closing_reason, made.completed_at) == (
        NOW,
        cast.second_reviewer,
        "The rubric is unclear.",
        None,
    )
    assert refused(close_set, made, reason="Again.", by=cast.reviewer, now=NOW) == OVER
    assert not complete_if_done(made, now=NOW)


def test_a_set_is_complete_once_each_item_is_settled_or_withdrawn(cast: Cast) -> None:
    stored(cast)
    made = a_set(cast)
    one, other, third = items(made)
    labelled(one, (cast.reviewer, "pass"), (cast.second_reviewer, "pass"))
    labelled(other, (cast.reviewer, "fail"), (cast.second_reviewer, "fail"))
    assert not complete_if_done(made, now=NOW)
    withdraw_item(third, reason="The trace is cut.", by=cast.reviewer, now=NOW)

    assert complete_if_done(made, now=NOW)

    later = NOW + timedelta(hours=1)
    assert not complete_if_done(made, now=later)
    made.refresh_from_db()
    assert made.completed_at == NOW
    assert refused(close_set, made, reason="Late.", by=cast.reviewer, now=later) == OVER


# --- vouching


def test_a_reviewer_vouches_once_for_labels_of_others(cast: Cast) -> None:
    made = imported_set(cast, cast.engineer, "rater_1", "rater_2")

    vouch = vouch_for_set(made, reason="I read the paper.", by=cast.reviewer, now=NOW)

    assert SetVouch.objects.get() == vouch
    assert (vouch.set, vouch.reason, vouch.by, vouch.vouched_at) == (
        made,
        "I read the paper.",
        cast.reviewer,
        NOW,
    )
    again = {"reason": "So.", "by": cast.second_reviewer, "now": NOW}
    assert refused(vouch_for_set, made, **again) == VOUCHED
    with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
        SetVouch.objects.update(reason="Other.")


def test_nobody_vouches_for_what_is_theirs(cast: Cast) -> None:
    made = imported_set(cast, cast.reviewer, "second_reviewer")

    given = {"reason": "So.", "now": NOW}
    assert refused(vouch_for_set, made, by=cast.reviewer, **given) == IMPORTED_IT
    assert refused(vouch_for_set, made, by=cast.second_reviewer, **given) == LABELLED_IT
    for person in (cast.engineer, cast.owner, cast.viewer, cast.outsider):
        assert refused(vouch_for_set, made, by=person, **given) == NOT_A_VOUCHER
    assert not SetVouch.objects.exists()


def test_labels_given_here_need_no_vouching(cast: Cast) -> None:
    stored(cast)
    made = a_set(cast)

    sentence = refused(vouch_for_set, made, reason="So.", by=cast.second_reviewer, now=NOW)

    assert sentence == NOT_IMPORTED
    assert refused(vouch_for_set, made, reason="", by=cast.second_reviewer, now=NOW) == (
        "Say what you checked."
    )


def test_labels_are_never_changed(cast: Cast) -> None:
    stored(cast, 1)
    labelled(items(a_set(cast))[0], (cast.reviewer, "pass"))

    with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
        Label.objects.update(value="fail")
    with pytest.raises(ProgrammingError, match="append-only"), transaction.atomic():
        Label.objects.all().delete()


def test_the_numbers_of_two_systems_are_their_own(cast: Cast) -> None:
    stored(cast)
    a_set(cast)
    set_member(cast.other_system, cast.reviewer, Role.REVIEWER)
    ingest(cast.other_system, [record("t1", 0, verdicts=[judged()])], by=cast.outsider)

    made = make_set(cast.other_system, replace(WISH, n=1), by=cast.reviewer, now=NOW)

    assert (made.number, CalibrationItem.objects.filter(set=made).count()) == (1, 1)
    assert Task.objects.filter(system=cast.system).count() == 1
