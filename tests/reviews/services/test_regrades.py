"""Regrades asked for, stopped and taken up again: who may, and what a refusal says."""

from __future__ import annotations

import pytest

from reviews.models import Regrade
from reviews.services.regrades import (
    RegradeError,
    restart_regrade,
    start_regrade,
    stop_regrade,
)
from tests.support.cast import Cast
from tests.support.regrades import NOW, approved, proposed
from traces.models import ContractVersion, Task, User, WorkState

pytestmark = pytest.mark.django_db

TEXT = "task: t{}\nrequired: [{{id: looked, call: look}}]\n"


def with_contract(cast: Cast, *names: int) -> list[Task]:
    """Tasks by a contract in effect, without the work that it takes."""
    proposed(cast, "---\n".join(TEXT.format(name) for name in names))
    for version in ContractVersion.objects.all():
        Task.objects.filter(pk=version.task_id).update(contract=version)
    return list(Task.objects.order_by("sort_key"))


def started(cast: Cast, tasks: list[Task], by: User | None = None) -> Regrade:
    return start_regrade(
        cast.system, tasks=tasks, reason=" new checks ", by=by or cast.engineer, now=NOW
    )


def test_tasks_are_worked_in_their_natural_order(cast: Cast) -> None:
    tasks = with_contract(cast, 10, 9, 2)
    extra = Task.objects.create(system=cast.system, task_id="none", sort_key="0")
    regrade = started(cast, [*tasks, extra])
    assert [Task.objects.get(pk=pk).task_id for pk in regrade.tasks] == ["t2", "t9", "t10"]
    assert (regrade.number, regrade.reason, regrade.by, regrade.proposal, regrade.state) == (
        1, "new checks", cast.engineer, None, "waiting",
    )  # fmt: skip


@pytest.mark.parametrize("role", ["engineer", "reviewer", "owner"])
def test_who_works_on_a_system_has_trials_graded_again(cast: Cast, role: str) -> None:
    assert started(cast, with_contract(cast, 1), getattr(cast, role)).number == 1


@pytest.mark.parametrize("role", ["viewer", "outsider"])
def test_others_start_stop_and_restart_nothing(cast: Cast, role: str) -> None:
    tasks, person = with_contract(cast, 1), getattr(cast, role)
    regrade = started(cast, tasks)
    for act in (
        lambda: started(cast, tasks, person),
        lambda: stop_regrade(regrade, by=person, now=NOW),
        lambda: restart_regrade(regrade, by=person, now=NOW),
    ):
        with pytest.raises(RegradeError, match="A viewer does not start, stop or restart"):
            act()
    assert Regrade.objects.count() == 1


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [("  ", "Say why, in a sentence."), ("x" * 4_001, "A reason has at most 4,000 characters.")],
    ids=["none", "long"],
)
def test_a_regrade_says_why(cast: Cast, reason: str, sentence: str) -> None:
    tasks = with_contract(cast, 1)
    with pytest.raises(RegradeError, match=sentence):
        start_regrade(cast.system, tasks=tasks, reason=reason, by=cast.engineer, now=NOW)


def test_without_a_contract_there_is_nothing_to_grade_by(cast: Cast) -> None:
    task = Task.objects.create(system=cast.system, task_id="none", sort_key="0")
    with pytest.raises(RegradeError, match="None of these tasks has a contract in effect"):
        started(cast, [task])


def test_a_task_of_another_system_is_left_out(cast: Cast) -> None:
    tasks = with_contract(cast, 1)
    with pytest.raises(RegradeError, match="None of these tasks"):
        start_regrade(cast.other_system, tasks=tasks, reason="x", by=cast.outsider, now=NOW)


def test_the_operator_starts_by_command(cast: Cast) -> None:
    tasks = with_contract(cast, 1)
    regrade = start_regrade(cast.system, tasks=tasks, reason="upgrade", by=None, now=NOW)
    assert regrade.by is None
    with pytest.raises(RegradeError, match="Regrade 1 grades trials of these tasks already"):
        start_regrade(cast.system, tasks=tasks, reason="upgrade", by=None, now=NOW)


def test_an_approved_proposal_is_numbered_with_the_others(cast: Cast) -> None:
    started(cast, with_contract(cast, 1))
    regrade = approved(cast, TEXT.format(2) + "---\n" + TEXT.format(1))
    assert (regrade.number, regrade.by) == (2, cast.reviewer)
    assert [Task.objects.get(pk=pk).task_id for pk in regrade.tasks] == ["t1", "t2"]


def test_stopped_work_is_taken_up_again(cast: Cast) -> None:
    regrade = started(cast, with_contract(cast, 1))
    with pytest.raises(RegradeError, match="Regrade 1 has not stopped"):
        restart_regrade(regrade, by=cast.owner, now=NOW)

    stop_regrade(regrade, by=cast.owner, now=NOW)
    regrade.refresh_from_db()
    assert (regrade.state, regrade.cancelled_by, regrade.finished_at) == (
        "cancelled", cast.owner, NOW,
    )  # fmt: skip
    with pytest.raises(RegradeError, match="Nobody works on regrade 1"):
        stop_regrade(regrade, by=cast.owner, now=NOW)

    restart_regrade(regrade, by=cast.engineer, now=NOW)
    regrade.refresh_from_db()
    assert (regrade.state, regrade.cancelled_by, regrade.finished_at) == ("waiting", None, None)


def test_failed_work_is_taken_up_by_the_operator(cast: Cast) -> None:
    regrade = started(cast, with_contract(cast, 1))
    Regrade.objects.update(state=WorkState.FAILED.value, failure="why", n_tries=5)
    restart_regrade(regrade, now=NOW)
    regrade.refresh_from_db()
    assert (regrade.state, regrade.failure, regrade.n_tries) == ("waiting", "", 0)
