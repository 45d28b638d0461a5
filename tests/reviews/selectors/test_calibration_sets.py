from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.models import (
    Calibration,
    CalibrationItem,
    CalibrationSet,
    Criterion,
    GraderVersion,
    Revelation,
    Seat,
    SetVouch,
)
from reviews.selectors.calibration_exports import label_csv_rows, label_lines
from reviews.selectors.calibration_sets import (
    DueCalibration,
    ItemShow,
    ListedSet,
    PersonProgress,
    SetState,
    due_calibrations,
    items_of,
    left_for,
    listed_sets,
    notes_of,
    people_of,
    set_numbered,
)
from reviews.services.calibration_sets import close_set, withdraw_item
from reviews.services.person_verdicts import give_verdict
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.sets import NOW, a_set, items, labelled, stored
from traces.core.records import VerdictValue
from traces.models import Trial, User

pytestmark = pytest.mark.django_db


def listed(cast: Cast, number: int = 1) -> ListedSet:
    found = set_numbered(cast.system.pk, number)
    assert found is not None
    return found


def seat(item: CalibrationItem, by: User, ending: str = "", reason: str = "") -> None:
    Seat.objects.create(
        item=item,
        by=by,
        taken_at=NOW,
        expires_at=NOW,
        ended_at=NOW if ending else None,
        ending=ending,
        reason=reason,
    )


def reveal(item: CalibrationItem, by: User, where: str = "trial") -> None:
    Revelation.objects.create(
        trial=item.trial, criterion=item.set.criterion, by=by, where=where, at=NOW
    )


def four(cast: Cast) -> list[CalibrationItem]:
    """An open set: agreed, differed, half labelled, withdrawn."""
    stored(cast, 4)
    made = items(a_set(cast))
    labelled(made[0], (cast.reviewer, "pass"), (cast.second_reviewer, "pass"))
    labelled(made[1], (cast.reviewer, "fail"), (cast.second_reviewer, "pass"))
    labelled(made[2], (cast.reviewer, "fail"), is_settled=False)
    withdraw_item(made[3], reason="Cut.", by=cast.reviewer, now=NOW)
    return made


def test_a_set_is_listed_with_its_progress(cast: Cast) -> None:
    made = four(cast)

    found = listed(cast)

    assert (found.state, found.n_items, found.n_settled, found.n_differ, found.n_withdrawn) == (
        SetState.OPEN,
        3,
        2,
        1,
        1,
    )
    assert (found.n_waiting, found.n_labels, found.criterion_key) == (1, 5, ":outcome")
    assert people_of([made[0].set_id]) == {
        made[0].set_id: (PersonProgress("reviewer", 3), PersonProgress("second_reviewer", 2))
    }
    assert set_numbered(cast.other_system.pk, 1) is None
    assert set_numbered(cast.system.pk, 10**18) is None


def test_the_state_of_a_set(cast: Cast) -> None:
    stored(cast, 1)
    made = a_set(cast)
    rows = CalibrationSet.objects.filter(pk=made.pk)

    close_set(made, reason="So.", by=cast.reviewer, now=NOW)
    assert listed(cast).state is SetState.CLOSED
    rows.update(closed_at=None, completed_at=NOW)
    assert listed(cast).state is SetState.COMPLETE
    rows.update(is_imported=True)
    assert listed(cast).state is SetState.IMPORTED
    SetVouch.objects.create(set=made, reason="So.", by=cast.reviewer, vouched_at=NOW)
    assert listed(cast).state is SetState.VOUCHED


def test_sets_are_paged_newest_first(cast: Cast) -> None:
    stored(cast, 5)
    for _ in range(5):
        a_set(cast, n=1)

    def page(**place: int) -> tuple[list[int], int | None, int | None]:
        found = listed_sets(cast.system.pk, n=2, **place)
        return [row.number for row in found.rows], found.previous_before, found.next_after

    assert page() == ([5, 4], None, 4)
    assert page(after=4) == ([3, 2], 3, 2)
    assert page(after=2) == ([1], 1, None)
    assert page(before=1) == ([3, 2], 3, 2)
    assert page(before=3) == ([5, 4], None, 4)


def test_labels_of_what_people_still_label_are_not_told(cast: Cast) -> None:
    made = four(cast)

    rows = items_of(listed(cast)).rows

    assert [(row.position, row.consensus, len(row.labels), row.stratum) for row in rows] == [
        (1, "pass", 2, ""),
        (2, "split", 2, ""),
        (3, "", 0, ""),
        (4, "", 0, ""),
    ]
    close_set(made[0].set, reason="So.", by=cast.reviewer, now=NOW)
    assert [len(row.labels) for row in items_of(listed(cast)).rows] == [2, 2, 1, 0]


def test_items_are_shown_by_what_became_of_them(cast: Cast) -> None:
    four(cast)
    found = listed(cast)

    def shown(show: ItemShow, **place: int) -> list[int]:
        return [row.position for row in items_of(found, show=show, n=2, **place).rows]

    assert shown(ItemShow.ALL) == [1, 2]
    assert shown(ItemShow.ALL, after=2) == [3, 4]
    assert shown(ItemShow.ALL, before=3) == [1, 2]
    assert shown(ItemShow.ALL, after=10**18) == []
    assert shown(ItemShow.SETTLED) == [1, 2]
    assert shown(ItemShow.DIFFER) == [2]
    assert shown(ItemShow.WAITING) == [3]
    assert shown(ItemShow.WITHDRAWN) == [4]
    assert items_of(found, show=ItemShow.WITHDRAWN).rows[0].withdrawn_by == "reviewer"


def test_what_is_left_for_a_person(cast: Cast) -> None:
    stored(cast, 8)
    made = items(a_set(cast))
    pk = made[0].set_id
    second = cast.second_reviewer
    labelled(made[0], (second, "pass"), is_settled=False)
    labelled(made[1], (cast.reviewer, "pass"), (second, "pass"))
    seat(made[2], second, "skipped")
    seat(made[3], second)
    reveal(made[4], second)
    give_verdict(
        made[5].trial, criterion="outcome", value=VerdictValue.PASS, reason="So.", steps=[],
        by=second, now=NOW,
    )  # fmt: skip
    withdraw_item(made[6], reason="Cut.", by=cast.reviewer, now=NOW)

    assert left_for(second, cast.system.pk, [pk]) == {pk: 2}
    assert left_for(cast.reviewer, cast.system.pk, [pk]) == {pk: 6}
    assert left_for(cast.engineer, cast.system.pk, [pk]) == {}
    close_set(made[0].set, reason="So.", by=cast.reviewer, now=NOW)
    assert left_for(second, cast.system.pk, [pk]) == {}


def test_skips_and_revelations_are_told_without_reasons_that_tell(cast: Cast) -> None:
    made = four(cast)
    seat(made[2], cast.second_reviewer, "skipped", "It clearly fails.")
    seat(made[0], cast.second_reviewer, "given_up", "I know it.")
    seat(made[1], cast.second_reviewer, "labelled")
    reveal(made[1], cast.second_reviewer)
    reveal(made[0], cast.reviewer, where="label")

    def told() -> list[tuple[int, str, str, str, str]]:
        notes = notes_of(listed(cast))
        return [(note.position, note.who, note.what, note.where, note.reason) for note in notes]

    assert told() == [
        (3, "second_reviewer", "skipped", "", ""),
        (2, "second_reviewer", "saw what others say", "trial", ""),
        (1, "second_reviewer", "gave up", "", "I know it."),
    ]
    close_set(made[0].set, reason="So.", by=cast.reviewer, now=NOW)
    assert told()[0][4] == "It clearly fails."


def calibration(cast: Cast, days: int, status: str = "calibrated", **more: Any) -> None:
    version = GraderVersion.objects.get(grader__name="referee", grader__system=cast.system)
    Calibration.objects.create(
        system=cast.system,
        grader_version=version,
        criterion=Criterion.objects.get(system=cast.system, name="outcome"),
        status=status,
        why="So.",
        figures={},
        read_at=NOW,
        valid_until=NOW + timedelta(days=days),
        **more,
    )


def test_judges_are_due_two_weeks_before_their_date(cast: Cast) -> None:
    stored(cast, 2)
    calibration(cast, 1)
    calibration(cast, 15)
    assert due_calibrations(cast.system.pk, now=NOW) == ()

    calibration(cast, 14)
    version = GraderVersion.objects.get(grader__name="referee")
    criterion = Criterion.objects.get(name="outcome")
    assert due_calibrations(cast.system.pk, now=NOW) == (
        DueCalibration(
            "referee", "", version.pk, "outcome", criterion.pk, None, NOW + timedelta(days=14), None
        ),
    )
    a_set(cast)
    assert due_calibrations(cast.system.pk, now=NOW)[0].open_set == 1
    assert due_calibrations(cast.other_system.pk, now=NOW) == ()
    calibration(cast, -3)
    assert len(due_calibrations(cast.system.pk, now=NOW)) == 1
    calibration(cast, 3, "stale")
    assert due_calibrations(cast.system.pk, now=NOW) == ()


def test_the_export_holds_labels_and_no_word_of_a_judge(cast: Cast) -> None:
    made = four(cast)
    trial = Trial.objects.get(pk=made[0].trial_id)

    lines = [json.loads(line) for line in label_lines(listed(cast))]

    assert lines[0] == {
        "set": 1,
        "criterion": "outcome",
        "rubric_version": "",
        "item": 1,
        "task_id": "t1",
        "trial": trial.label,
        "attempt": 1,
        "run": trial.run.name,
        "release": "1.0",
        "trial_id": str(trial.uuid),
        "family": "",
        "consensus": "pass",
        "withdrawn": None,
        "labels": [
            {
                "labeller": who,
                "round": number,
                "value": "pass",
                "reason": "pass, they say.",
                "steps": [2],
                "given_at": "2026-12-01T10:00:00+00:00",
            }
            for number, who in enumerate(("reviewer", "second_reviewer"), start=1)
        ],
    }
    assert [(line["item"], len(line["labels"]), line["withdrawn"]) for line in lines[1:]] == [
        (2, 2, None),
        (3, 0, None),
        (4, 0, "Cut."),
    ]
    rows = list(label_csv_rows(listed(cast)))
    assert len(rows) == 1 + 2 + 2 + 1 + 1
    assert "referee" not in "".join(rows)


def test_a_spreadsheet_reads_no_formula(cast: Cast) -> None:
    ingest(cast.system, [record("=1+1", "@x")], by=cast.engineer)
    a_set(cast)

    row = list(label_csv_rows(listed(cast)))[1].split(",")

    assert (row[4], row[5]) == ("'=1+1", "'@x")


@pytest.mark.parametrize("n", [1, 3])
def test_each_list_takes_few_queries(cast: Cast, n: int) -> None:
    stored(cast, 3 * n)
    for _ in range(n):
        for item in items(a_set(cast, n=3)):
            labelled(item, (cast.reviewer, "pass"), (cast.second_reviewer, "fail"))
            seat(item, cast.second_reviewer, "skipped")
            reveal(item, cast.second_reviewer)
    found = listed(cast)
    counts = []
    for read in (
        lambda: listed_sets(cast.system.pk),
        lambda: people_of([found.pk]),
        lambda: left_for(cast.reviewer, cast.system.pk, [found.pk]),
        lambda: items_of(found),
        lambda: notes_of(found),
        lambda: due_calibrations(cast.system.pk, now=NOW),
    ):
        with CaptureQueriesContext(connection) as captured:
            read()
        counts.append(len(captured))

    assert counts == [1, 1, 2, 2, 3, 1]
