from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.core.disposition import NextAction
from reviews.models import Case, CaseState
from reviews.selectors.cases import (
    CaseFilter,
    Place,
    case_of,
    case_totals,
    case_workers,
    listed_cases,
    neighbours_of,
    task_families,
)
from reviews.services.case_rows import follow_dispositions
from reviews.services.cases import ask_rerun, set_aside
from tests.support.cases import NOW, broken, case_of_trial, passed, stored_trials
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Task, Trial

pytestmark = pytest.mark.django_db


def queue(cast: Cast, n: int = 5) -> list[Case]:
    """Open cases, an hour apart, the oldest first."""
    return [
        case_of_trial(trial, now=NOW + timedelta(hours=hour))
        for hour, trial in enumerate(stored_trials(cast, n))
    ]


def listed(cast: Cast, **chosen: Any) -> list[int]:
    return [row.pk for row in listed_cases(CaseFilter(cast.system.pk, **chosen)).rows]


def test_pages_follow_each_other_in_both_directions(cast: Cast) -> None:
    cases = [case.pk for case in queue(cast)]
    chosen = CaseFilter(cast.system.pk)

    first = listed_cases(chosen, n=2)
    second = listed_cases(chosen, after=first.next_after, n=2)
    third = listed_cases(chosen, after=second.next_after, n=2)
    back = listed_cases(chosen, before=third.previous_before, n=2)

    assert [[row.pk for row in page.rows] for page in (first, second, third, back)] == [
        cases[:2],
        cases[2:4],
        cases[4:],
        cases[2:4],
    ]
    assert (first.previous_before, third.next_after) == (None, None)
    assert listed_cases(chosen, before=back.previous_before, n=2).previous_before is None


def test_a_place_stays_where_its_case_was(cast: Cast) -> None:
    cases = queue(cast, 3)
    first = listed_cases(CaseFilter(cast.system.pk), n=1)
    follow_dispositions([passed(cases[0].trial)], now=NOW)

    rest = listed_cases(CaseFilter(cast.system.pk), after=first.next_after, n=5)

    assert [row.pk for row in rest.rows] == [cases[1].pk, cases[2].pk]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param("12.3", Place(12, 3), id="place"),
        pytest.param("12", None, id="no dot"),
        pytest.param("a.3", None, id="word"),
        pytest.param(".", None, id="nothing"),
        pytest.param("-1.3", None, id="negative"),
        pytest.param("9" * 17 + ".1", None, id="too long"),
        pytest.param("²3.1", None, id="odd digits"),
    ],
)
def test_a_place_is_read_from_an_address(text: str, place: Place | None) -> None:
    assert Place.of(text) == place
    assert place is None or str(place) == text


def test_a_place_keeps_microseconds(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    at = NOW.replace(microsecond=123_457)
    case_of_trial(trial, now=at)
    (row,) = listed_cases(CaseFilter(cast.system.pk)).rows

    assert Place.of(str(row.place)) == row.place
    assert row.place.opened_at == at
    assert Place(9_999_999_999_999_999, 1).opened_at.year > 2200


def test_every_filter_narrows_the_queue(cast: Cast) -> None:
    ingest(cast.system, [record("refund_1", 0)], release="2.0")
    first, second = stored_trials(cast, 2)
    third = Trial.objects.get(task__task_id="refund_1")
    Task.objects.filter(pk=third.task_id).update(
        family="refunds", split="held_out", title="Money back"
    )
    a, b, c = (
        case_of_trial(first),
        case_of_trial(second, actions=("grade", "repair_evidence")),
        case_of_trial(third),
    )
    Case.objects.filter(pk=a.pk).update(assignee=cast.engineer, due_on=date(2026, 11, 30))

    assert listed(cast) == [a.pk, b.pk, c.pk]
    assert listed(cast, action=NextAction.GRADE) == [b.pk]
    assert listed(cast, worked_by="engineer") == [a.pk, c.pk]
    assert listed(cast, assignee_pk=cast.engineer.pk) == [a.pk]
    assert listed(cast, assignee_pk=0) == [b.pk, c.pk]
    assert listed(cast, release_pk=third.release_id) == [c.pk]
    assert listed(cast, family="refunds") == [c.pk]
    assert listed(cast, family="") == [a.pk, b.pk]
    assert listed(cast, split="held_out") == [c.pk]
    assert listed(cast, split="") == [a.pk, b.pk]
    assert listed(cast, due_before=date(2026, 12, 1)) == [a.pk]
    assert listed(cast, words="MONEY") == [c.pk]
    assert listed(cast, words="%") == []
    assert listed(cast, task_pk=first.task_id) == [a.pk, b.pk]
    assert listed(cast, words="refund", worked_by="engineer", family="refunds") == [c.pk]
    assert task_families(cast.system.pk) == ("", "refunds")


def test_states_part_the_cases(cast: Cast) -> None:
    a, b, c = queue(cast, 3)
    set_aside(b, reason="x", by=cast.engineer, now=NOW)
    follow_dispositions([passed(c.trial)], now=NOW)

    assert listed(cast) == [a.pk]
    assert listed(cast, state=CaseState.SET_ASIDE) == [b.pk]
    assert listed(cast, state=CaseState.CLOSED) == [c.pk]
    assert listed(cast, state=None) == [a.pk, b.pk, c.pk]


def test_closed_cases_come_newest_first(cast: Cast) -> None:
    cases = queue(cast, 3)
    follow_dispositions([passed(case.trial) for case in cases], now=NOW + timedelta(days=1))
    chosen = CaseFilter(cast.system.pk, state=CaseState.CLOSED)

    first = listed_cases(chosen, n=2)
    second = listed_cases(chosen, after=first.next_after, n=2)
    back = listed_cases(chosen, before=second.previous_before, n=2)

    wanted = [case.pk for case in reversed(cases)]
    assert [[row.pk for row in page.rows] for page in (first, second, back)] == [
        wanted[:2],
        wanted[2:],
        wanted[:2],
    ]
    middle = case_of(cast.system.pk, cases[1].uuid)
    assert middle is not None
    assert neighbours_of(middle, chosen) == (cases[2].uuid, cases[0].uuid)


def test_reruns_are_listed_while_they_wait(cast: Cast) -> None:
    first, second = stored_trials(cast, 2)
    follow_dispositions([broken(first), broken(second)], now=NOW)
    case = Case.objects.get(trial=first)
    ask_rerun(case, reason="x", by=cast.engineer, now=NOW)
    assert listed(cast, rerun_asked=True) == [case.pk]

    follow_dispositions([passed(first)], now=NOW + timedelta(hours=1))
    follow_dispositions([broken(first)], now=NOW + timedelta(hours=2))

    assert listed(cast, rerun_asked=True) == []


def test_a_case_has_its_neighbours_in_the_queue_as_filtered(cast: Cast) -> None:
    cases = queue(cast, 3)
    Case.objects.filter(pk=cases[1].pk).update(assignee=cast.engineer)
    rows = [case_of(cast.system.pk, case.uuid) for case in cases]
    first, middle, last = [row for row in rows if row is not None]
    chosen = CaseFilter(cast.system.pk)

    assert neighbours_of(first, chosen) == (None, cases[1].uuid)
    assert neighbours_of(middle, chosen) == (cases[0].uuid, cases[2].uuid)
    unassigned = CaseFilter(cast.system.pk, assignee_pk=0, words="t1")
    assert neighbours_of(last, unassigned) == (cases[0].uuid, None)


def test_totals_say_what_waits_in_the_system_too(cast: Cast) -> None:
    first, second, third = stored_trials(cast, 3)
    mine = case_of_trial(first)
    case_of_trial(second, actions=("grade",))
    follow_dispositions([passed(case_of_trial(third).trial)], now=NOW)
    Case.objects.filter(pk=mine.pk).update(assignee=cast.engineer)
    chosen = CaseFilter(cast.system.pk, action=NextAction.GRADE, worked_by="engineer")

    totals = case_totals(chosen, person_pk=cast.engineer.pk)

    assert (totals.n_open, totals.n_mine, totals.n) == (2, 1, 1)
    assert {action: n for action, n in totals.by_action.items() if n} == {
        NextAction.REPAIR_EVIDENCE: 1
    }


def test_another_systems_cases_are_not_there(cast: Cast) -> None:
    (case,) = queue(cast, 1)

    assert case_of(cast.other_system.pk, case.uuid) is None
    assert listed_cases(CaseFilter(cast.other_system.pk)).rows == ()
    assert case_totals(CaseFilter(cast.other_system.pk), person_pk=cast.outsider.pk).n_open == 0


def test_cases_go_to_engineers_and_reviewers(cast: Cast) -> None:
    cast.second_reviewer.is_active = False
    cast.second_reviewer.save()

    assert [(w.name, w.role.value) for w in case_workers(cast.system.pk)] == [
        ("engineer", "engineer"),
        ("reviewer", "reviewer"),
    ]


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_a_page_is_one_query(n: int, cast: Cast) -> None:
    queue(cast, n)
    with CaptureQueriesContext(connection) as captured:
        assert len(listed_cases(CaseFilter(cast.system.pk)).rows) == n
    assert len(captured) == 1
