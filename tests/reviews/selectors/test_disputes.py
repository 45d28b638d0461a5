from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.models import Dispute, DisputeState
from reviews.selectors.disputes import (
    NO_JUDGE,
    DisputeFilter,
    DisputePlace,
    dispute_groups,
    dispute_of,
    dispute_totals,
    disputed_criteria_names,
    judge_choices,
    listed_disputes,
    names_of_judge,
    next_dispute_after,
    previous_dispute_before,
    printed_names,
    skipped_disputes,
)
from reviews.services.dispute_rows import judge_key
from tests.support.cast import Cast
from tests.support.disputes import judged
from tests.support.evidence import ingest

pytestmark = pytest.mark.django_db


def in_order(cast: Cast) -> list[Dispute]:
    """Two that decide something and two that do not, the second ones older than the first."""
    ingest(cast.system, [judged("idle 1", terse="pass"), judged("idle 2", terse="pass")])
    for name in ("deciding 1", "deciding 2"):
        words: dict[str, Any] = {"terse": "pass", "long": "fail"}
        ingest(cast.system, [judged(name, code=None, criterion="tone", **words)])
    found = {d.task.task_id: d for d in Dispute.objects.select_related("task")}
    for number, name in enumerate(("deciding 2", "deciding 1", "idle 2", "idle 1")):
        at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(microseconds=number)
        Dispute.objects.filter(pk=found[name].pk).update(opened_at=at)
    return [found[name] for name in ("deciding 2", "deciding 1", "idle 2", "idle 1")]


def test_previous_and_next_follow_the_list(cast: Cast) -> None:
    rows = in_order(cast)
    chosen = DisputeFilter(cast.system.pk)
    listed = listed_disputes(chosen).rows

    assert [each.uuid for each in listed] == [row.uuid for row in rows]
    places = [each.place for each in listed]
    uuids = [row.uuid for row in rows]
    assert [next_dispute_after(chosen, place) for place in places] == [*uuids[1:], None]
    assert [previous_dispute_before(chosen, place) for place in places] == [None, *uuids[:-1]]
    deciding = DisputeFilter(cast.system.pk, deciding=True)
    assert next_dispute_after(deciding, places[1]) is None
    assert previous_dispute_before(deciding, places[3]) == uuids[1]


def test_the_next_one_is_found_though_the_last_one_was_decided(cast: Cast) -> None:
    rows = in_order(cast)
    chosen = DisputeFilter(cast.system.pk)
    place = listed_disputes(chosen).rows[0].place
    Dispute.objects.filter(pk=rows[0].pk).update(state="adjudicated")

    with CaptureQueriesContext(connection) as captured:
        assert next_dispute_after(chosen, place) == rows[1].uuid
    assert len(captured) == 1


def test_a_place_is_read_as_it_is_written() -> None:
    place = DisputePlace(decides=True, class_rank=2, opened_us=1_764_540_000_000_001, pk=7)

    assert str(place) == "1.2.1764540000000001.7"
    assert DisputePlace.of(str(place)) == place
    assert place.opened_at.microsecond == 1
    for text in ("", "1.2.3", "1.2.3.x", "2.0.0.1", "1.100.0.1", "1.1.1.1.1", f"0.0.0.{'9' * 20}"):
        assert DisputePlace.of(text) is None


def test_a_dispute_is_found_in_its_own_system_alone(cast: Cast) -> None:
    (row, *_) = in_order(cast)

    found = dispute_of(cast.system.pk, row.uuid)

    assert found is not None
    assert (found.uuid, found.criterion, found.decides) == (row.uuid, "tone", True)
    assert dispute_of(cast.other_system.pk, row.uuid) is None
    assert dispute_totals(DisputeFilter(cast.other_system.pk)).n == 0
    assert dispute_groups(DisputeFilter(cast.other_system.pk)).causes == ()


def test_left_out_disputes_are_in_no_count(cast: Cast) -> None:
    rows = in_order(cast)
    chosen = DisputeFilter(cast.system.pk, without=((rows[0].trial_id, "tone"),))

    assert [each.uuid for each in listed_disputes(chosen).rows] == [r.uuid for r in rows[1:]]
    totals = dispute_totals(chosen)
    assert (totals.n_deciding, totals.n_idle, totals.idle_criterion) == (1, 2, "outcome")


def test_criteria_of_the_menu_are_each_named_once(cast: Cast) -> None:
    in_order(cast)

    with CaptureQueriesContext(connection) as captured:
        assert disputed_criteria_names(cast.system.pk) == ("outcome", "tone")
    assert len(captured) == 1
    assert disputed_criteria_names(cast.other_system.pk) == ()


def test_disputes_that_are_alike_are_counted_together_and_others_apart(cast: Cast) -> None:
    rows = in_order(cast)
    Dispute.objects.filter(pk=rows[1].pk).update(decides=False)

    causes = dispute_groups(DisputeFilter(cast.system.pk)).causes

    assert [(c.criterion, c.n, c.n_deciding, c.opened_at.microsecond) for c in causes] == [
        ("tone", 2, 1, 0),
        ("outcome", 2, 0, 2),
    ]
    assert [[(g.names[0], g.n, g.n_deciding) for g in c.judges] for c in causes] == [
        [("long", 2, 1), ("terse", 2, 1)],
        [("terse", 2, 0)],
    ]


def test_filters_of_programs(cast: Cast) -> None:
    rows = in_order(cast)
    Dispute.objects.filter(pk=rows[0].pk).update(is_counting=True, state="over")

    counting = DisputeFilter(cast.system.pk, state=DisputeState.OVER, counting=True)
    assert [each.uuid for each in listed_disputes(counting).rows] == [rows[0].uuid]
    of_trial = DisputeFilter(cast.system.pk, trial_pk=rows[2].trial_id)
    assert [each.uuid for each in listed_disputes(of_trial).rows] == [rows[2].uuid]
    assert listed_disputes(DisputeFilter(cast.system.pk, judge=NO_JUDGE)).rows == ()


def test_judges_and_people_by_their_names(cast: Cast) -> None:
    in_order(cast)

    assert [(each.key, each.name, each.version) for each in judge_choices(cast.system.pk)] == [
        (judge_key("long", "1"), "long", "1"),
        (judge_key("terse", "1"), "terse", "1"),
    ]
    assert names_of_judge(judge_key("a", "")) == ("a", "")
    assert names_of_judge(NO_JUDGE) == ("", "")
    assert printed_names(["reviewer", "nobody"]) == {"reviewer": "reviewer"}
    assert printed_names([]) == {}
    assert skipped_disputes(cast.reviewer.pk, []) == {}
