from __future__ import annotations

import uuid

import pytest
from django.utils import timezone

from reviews.models import Flag, FlagClosing
from reviews.selectors.flags import (
    flag_with_trial,
    flagged_trajectories,
    n_open_flags,
    open_flags_beside,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.models import Task, Trial, User

pytestmark = pytest.mark.django_db

HARMLESS = {"order": "A-1"}
OTHER = {"order": "A-2"}


def flag_on(trial: Trial, by: User, reason: str = "It looks odd.") -> Flag:
    return Flag.objects.create(
        system_id=trial.system_id,
        trial=trial,
        code="person",
        key=uuid.uuid4(),
        reason=reason,
        by=by,
        raised_at=timezone.now(),
    )


def close(flag: Flag, by: User) -> None:
    FlagClosing.objects.create(flag=flag, reason="Looked.", by=by, closed_at=timezone.now())


def test_flagged_trajectories_are_those_of_passing_standing_trials(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, calls=(("get_order", OTHER),)),
            record("t1", 2, calls=(("a", {}),), verdicts=[verdict("fail")]),
            record("t1", 3, calls=(("b", {}),), status="error", error="broke", verdicts=[]),
            record("t2", 0),
        ],
    )
    trials = {(t.task.task_id, t.label): t for t in Trial.objects.select_related("task")}
    task = Task.objects.get(task_id="t1")
    assert flagged_trajectories(task.pk) == frozenset()

    for trial in trials.values():
        flag_on(trial, cast.viewer)
    second = flag_on(trials["t1", "0"], cast.viewer)
    assert flagged_trajectories(task.pk) == {
        trials["t1", "0"].trajectory_id,
        trials["t1", "1"].trajectory_id,
    }
    assert n_open_flags(cast.system.pk) == 6

    close(second, cast.reviewer)
    close(Flag.objects.get(trial=trials["t1", "1"]), cast.reviewer)
    assert flagged_trajectories(task.pk) == {trials["t1", "0"].trajectory_id}
    assert (n_open_flags(cast.system.pk), n_open_flags(cast.other_system.pk)) == (4, 0)


def test_open_flags_beside_a_flag_are_those_of_its_trial(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1)])
    trial, other = Trial.objects.order_by("label")
    flags = [flag_on(trial, by) for by in (cast.viewer, cast.engineer) * 3]
    flag_on(other, cast.viewer)
    close(flags[1], cast.reviewer)
    found = flag_with_trial(cast.system.pk, flags[2].uuid)
    assert found is not None
    assert found.release_pk == trial.release_id

    def beside(*, by_pk: int | None = None, n: int = 50) -> tuple[list[int], int]:
        some = open_flags_beside(found, by_pk=by_pk, n=n)
        return [flag.pk for flag in some.rows], some.n_more

    assert beside() == ([flags[i].pk for i in (0, 3, 4, 5)], 0)
    assert beside(n=3) == ([flags[i].pk for i in (0, 3, 4)], 1)
    assert beside(by_pk=cast.viewer.pk) == ([flags[i].pk for i in (0, 4)], 0)
    assert beside(by_pk=cast.engineer.pk, n=1) == ([flags[3].pk], 1)
    assert beside(by_pk=cast.owner.pk) == ([], 0)
