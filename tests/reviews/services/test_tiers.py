from __future__ import annotations

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from reviews.models import ReleaseGate, RiskTier, TierAssignment, TierRetirement
from reviews.permissions.thresholds import NOT_AN_OWNER
from reviews.selectors.tiers import (
    NO_TIER,
    TierTaskFilter,
    harms_of_tier,
    n_tasks_of,
    tier_moves,
    tier_tasks,
    tiers_of_tasks,
)
from reviews.services.tiers import (
    LONGEST_NAME,
    TierDeniedError,
    TierError,
    assign_tasks,
    assign_tier,
    make_tier,
    retire_tier,
)
from tests.support.cases import LATER, NOW
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.in_effect import contract_in_effect
from traces.models import Role, Task

pytestmark = pytest.mark.django_db

HARMS = """
task: t1
outcome:
  - unchanged: true
prohibited:
  - {id: big, harm: money, call: issue_refund}
  - {id: other, harm: data, call: get_customer}
"""


def tier_of(cast: Cast, name: str = "Payments") -> RiskTier:
    return make_tier(cast.system, name, "Money moves.", "payments", by=cast.owner, now=NOW)


def tasks_of(cast: Cast, *names: str, **more: object) -> list[Task]:
    ingest(cast.system, [record(name, 0, **more) for name in names])
    return list(Task.objects.filter(system=cast.system, task_id__in=names).order_by("pk"))


def test_a_tier_is_made_once_by_an_owner(cast: Cast) -> None:
    made = tier_of(cast, "  Payments \n and refunds ")
    assert (made.name, made.description, made.template, made.made_by, made.made_at) == (
        "Payments and refunds",
        "Money moves.",
        "payments",
        cast.owner,
        NOW,
    )
    with pytest.raises(TierError, match="a tier of that name already"):
        tier_of(cast, "payments AND refunds")
    for role, user in cast.members().items():
        if role is Role.OWNER:
            continue
        with pytest.raises(TierDeniedError) as refused:
            make_tier(cast.system, "Other", "Other.", "", by=user, now=NOW)
        assert str(refused.value) == NOT_AN_OWNER
    with pytest.raises(TierDeniedError):
        make_tier(cast.system, "Other", "Other.", "", by=cast.outsider, now=NOW)
    assert RiskTier.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "description", "sentence"),
    [
        ("\u200b ", "x", "The name of a tier is missing."),
        ("x" * (LONGEST_NAME + 1), "x", "The name of a tier has at most 80 characters."),
        ("x", " ", "What a tier is for is missing."),
    ],
)
def test_a_tier_without_a_name_or_purpose_is_refused(
    cast: Cast, name: str, description: str, sentence: str
) -> None:
    with pytest.raises(TierError) as refused:
        make_tier(cast.system, name, description, "", by=cast.owner, now=NOW)
    assert str(refused.value) == sentence


def test_a_task_goes_into_a_tier_and_back(cast: Cast) -> None:
    first, second = tasks_of(cast, "t1", "t2")
    payments, drafting = tier_of(cast), tier_of(cast, "Drafting")
    assert n_tasks_of(cast.system.pk) == {None: 2}
    assign_tier(cast.system, None, drafting, "All are drafts.", by=cast.owner, now=NOW)
    assign_tier(cast.system, first, payments, "It pays.", by=cast.owner, now=LATER)
    assert n_tasks_of(cast.system.pk) == {drafting.pk: 1, payments.pk: 1}
    found = tiers_of_tasks(cast.system.pk, [first.pk, second.pk])
    assert (found.system_tier, found.own) == (drafting.pk, {first.pk: payments.pk})
    page = tier_tasks(TierTaskFilter(cast.system.pk))
    assert [
        (r.task_id, r.tier_name, r.is_own, r.since, r.reason, r.by_name) for r in page.rows
    ] == [
        ("t1", "Payments", True, LATER, "It pays.", "owner"),
        ("t2", "Drafting", False, NOW, "All are drafts.", "owner"),
    ]
    only = tier_tasks(TierTaskFilter(cast.system.pk, tier=str(payments.uuid)))
    assert ([r.task_id for r in only.rows], only.n_all) == (["t1"], 1)
    assert tier_tasks(TierTaskFilter(cast.system.pk, tier=NO_TIER)).rows == ()
    assign_tier(cast.system, first, None, "As the others.", by=cast.owner, now=LATER)
    assert n_tasks_of(cast.system.pk) == {drafting.pk: 2}
    assert [(m.task_id, m.tier_name, m.reason) for m in tier_moves(cast.system.pk).rows] == [
        ("t1", "", "As the others."),
        ("t1", "Payments", "It pays."),
        ("", "Drafting", "All are drafts."),
    ]


def test_what_changes_nothing_is_refused(cast: Cast) -> None:
    (task,) = tasks_of(cast, "t1")
    payments = tier_of(cast)
    with pytest.raises(TierError, match="The system has no tier of its own already"):
        assign_tier(cast.system, None, None, "Why.", by=cast.owner, now=NOW)
    with pytest.raises(TierError, match="Task t1 is in the system's own tier already"):
        assign_tier(cast.system, task, None, "Why.", by=cast.owner, now=NOW)
    assign_tier(cast.system, None, payments, "Why.", by=cast.owner, now=NOW)
    with pytest.raises(TierError, match="Tier Payments is the system's own already"):
        assign_tier(cast.system, None, payments, "Why.", by=cast.owner, now=NOW)
    assign_tier(cast.system, task, payments, "Why.", by=cast.owner, now=NOW)
    with pytest.raises(TierError, match="Task t1 is in tier Payments already"):
        assign_tier(cast.system, task, payments, "Why.", by=cast.owner, now=NOW)
    assert TierAssignment.objects.count() == 2


def test_a_family_moves_in_one_act_and_what_is_there_stays(cast: Cast) -> None:
    tasks = tasks_of(cast, "t1", "t2", "t3")
    payments = tier_of(cast)
    assign_tier(cast.system, tasks[0], payments, "First.", by=cast.owner, now=NOW)
    moved = assign_tasks(
        cast.system, tasks, payments, "All.", by=cast.owner, now=LATER, family="refunds"
    )
    assert [row.task_id for row in moved] == [tasks[1].pk, tasks[2].pk]
    with pytest.raises(TierError, match="All of family refunds is in tier Payments already"):
        assign_tasks(
            cast.system, tasks, payments, "All.", by=cast.owner, now=LATER, family="refunds"
        )


def test_only_an_owner_moves_tasks_and_only_with_a_reason_within_the_system(cast: Cast) -> None:
    (task,) = tasks_of(cast, "t1")
    payments = tier_of(cast)
    for user in (cast.engineer, cast.reviewer, cast.viewer, cast.outsider):
        with pytest.raises(TierDeniedError) as refused:
            assign_tier(cast.system, task, payments, "Why.", by=user, now=NOW)
        assert str(refused.value) == NOT_AN_OWNER
        with pytest.raises(TierDeniedError):
            retire_tier(payments, reason="Why.", by=user, now=NOW)
    with pytest.raises(TierError, match=r"A reason is missing\."):
        assign_tier(cast.system, task, payments, " \u202e", by=cast.owner, now=NOW)
    foreign = make_tier(cast.other_system, "T", "T.", "", by=cast.outsider, now=NOW)
    with pytest.raises(TierError, match="That tier is of another system"):
        assign_tier(cast.system, task, foreign, "Why.", by=cast.owner, now=NOW)
    with pytest.raises(TierError, match="That task is of another system"):
        assign_tier(cast.other_system, task, foreign, "Why.", by=cast.outsider, now=NOW)
    assert TierAssignment.objects.count() == 0


def test_a_tier_is_retired_when_no_task_is_in_it(cast: Cast) -> None:
    (task,) = tasks_of(cast, "t1")
    payments = tier_of(cast)
    assign_tier(cast.system, task, payments, "It pays.", by=cast.owner, now=NOW)
    with pytest.raises(TierError, match="1 task is in this tier: put them into another one first"):
        retire_tier(payments, reason="Not needed.", by=cast.owner, now=LATER)
    assign_tier(cast.system, task, None, "Back.", by=cast.owner, now=NOW)
    retired = retire_tier(payments, reason="Not needed.", by=cast.owner, now=LATER)
    assert (retired.by, retired.reason, retired.retired_at) == (cast.owner, "Not needed.", LATER)
    with pytest.raises(TierError, match="Tier Payments was retired at"):
        retire_tier(payments, reason="Again.", by=cast.owner, now=LATER)
    with pytest.raises(TierError, match="Tier Payments was retired at"):
        assign_tier(cast.system, task, payments, "Again.", by=cast.owner, now=LATER)


def test_the_system_s_own_tier_is_not_retired_without_tasks_in_it(cast: Cast) -> None:
    payments = tier_of(cast)
    assign_tier(cast.system, None, payments, "All pay.", by=cast.owner, now=NOW)
    with pytest.raises(TierError, match="It is the system's own tier: choose another one first"):
        retire_tier(payments, reason="Not needed.", by=cast.owner, now=LATER)


def test_each_change_of_tiers_touches_the_gates_of_the_system(cast: Cast) -> None:
    (task,) = tasks_of(cast, "t1")
    ingest(cast.other_system, [record("t1", 0)], by=cast.outsider)
    payments = tier_of(cast)
    at = timezone.now()
    mine = ReleaseGate.objects.get(release__system=cast.system)
    other = ReleaseGate.objects.get(release__system=cast.other_system)
    assign_tier(cast.system, task, payments, "It pays.", by=cast.owner, now=at)
    assign_tier(cast.system, task, None, "Back.", by=cast.owner, now=at)
    retire_tier(payments, reason="Not needed.", by=cast.owner, now=at)
    after = ReleaseGate.objects.get(pk=mine.pk)
    assert (after.revision, after.touched_at) == (mine.revision + 3, at)
    assert ReleaseGate.objects.get(pk=other.pk).revision == other.revision


def test_the_harms_of_a_tier_are_those_that_its_contracts_name(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    contract_in_effect(cast.system, HARMS, by=cast.engineer)
    payments, drafting = tier_of(cast), tier_of(cast, "Drafting")
    assign_tier(cast.system, None, payments, "All pay.", by=cast.owner, now=NOW)
    assert harms_of_tier(cast.system.pk, payments.pk) == ("data", "money")
    assert harms_of_tier(cast.system.pk, drafting.pk) == ()


def test_the_database_keeps_tiers_and_their_tasks(cast: Cast) -> None:
    payments = tier_of(cast)
    with pytest.raises(IntegrityError, match="risk_tier_name_once"), transaction.atomic():
        RiskTier.objects.create(system=cast.system, name=payments.name, made_at=NOW)
    assign_tier(cast.system, None, payments, "All pay.", by=cast.owner, now=NOW)
    TierRetirement.objects.create(tier=payments, reason="x", by=cast.owner, retired_at=NOW)
    for model in (RiskTier, TierAssignment, TierRetirement):
        for act in (
            lambda model=model: model.objects.update(**{_text_of(model): "other"}),
            lambda model=model: model.objects.all().delete(),
        ):
            with pytest.raises(DatabaseError, match="append-only|protected"), transaction.atomic():
                act()


def _text_of(model: type) -> str:
    return "description" if model is RiskTier else "reason"
