from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from reviews.core.disposition import Mark
from reviews.models import CheckMark, CheckMarkWithdrawal
from reviews.permissions.marks import NOT_A_REVIEWER, WROTE_IT
from reviews.selectors.marks import held_marks, markable_of
from reviews.services.marks import (
    LONGEST_REASON,
    NO_REASON,
    MarkDeniedError,
    MarkError,
    mark_check,
    withdraw_mark,
)
from tests.support.cases import LATER, NOW
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.core.contracts.reading import read_contract
from traces.models import ContractProposal, ContractVersion, Role, Task, Trial, User

pytestmark = pytest.mark.django_db

TEXT = """
task: t1
outcome:
  - unchanged: true
required:
  - {id: looked, call: get_order}
semantic:
  - {rubric: tone, mandatory: false}
"""


def stored_trial(cast: Cast) -> Trial:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict(), verdict(criterion="tone")])])
    return Trial.objects.select_related("task").get(system=cast.system)


def contract(task: Task, by: User, text: str = TEXT) -> ContractVersion:
    """A contract in effect, whoever approved it."""
    found = read_contract(text).contract
    assert found is not None
    number = ContractProposal.objects.count() + 1
    proposal = ContractProposal.objects.create(
        system=task.system, number=number, reason="r", created_at=NOW, created_by=by
    )
    version = ContractVersion.objects.create(
        proposal=proposal,
        task=task,
        number=number,
        text=text,
        digest=found.digest.hex(),
    )
    Task.objects.filter(pk=task.pk).update(contract=version)
    return version


def mark(trial: Trial, by: User, criterion: str = "outcome", **more: object) -> CheckMark:
    asked = {"mark": Mark.DEFECTIVE, "reason": " It is wrong. ", "now": NOW, **more}
    return mark_check(trial, criterion=criterion, by=by, **asked)  # type: ignore[arg-type]


def test_what_can_be_marked_without_a_contract_are_imported_criteria(cast: Cast) -> None:
    found = markable_of(stored_trial(cast))

    assert found.contract is None
    assert [(each.criterion, each.digest, each.kind) for each in found.entries] == [
        ("outcome", None, "imported"),
        ("tone", None, "imported"),
        ("", None, "fixture"),
    ]


def test_what_can_be_marked_under_a_contract_has_its_digests(cast: Cast) -> None:
    trial = stored_trial(cast)
    version = contract(trial.task, cast.engineer)

    found = markable_of(trial)

    assert found.contract is not None
    assert found.contract.pk == version.pk
    assert [(each.criterion, each.kind, each.is_mandatory) for each in found.entries] == [
        ("outcome", "check", True),
        ("looked", "check", True),
        ("tone", "rubric", False),
        ("", "fixture", True),
    ]
    assert all(each.digest is not None for each in found.entries)


@pytest.mark.parametrize("role", Role)
def test_only_reviewers_mark_and_withdraw(role: Role, cast: Cast) -> None:
    trial = stored_trial(cast)
    person = cast.members()[role]
    kept = mark(trial, cast.second_reviewer, "tone")

    if role is Role.REVIEWER:
        row = mark(trial, person)
        withdraw_mark(kept, reason=" I asked again. ", by=person, now=LATER)
        assert (row.system, row.task, row.criterion, row.criterion_digest, row.mark) == (
            cast.system,
            trial.task,
            "outcome",
            None,
            "defective",
        )
        assert (row.reason, row.trial, row.by, row.marked_at) == (
            "It is wrong.",
            trial,
            person,
            NOW,
        )
        assert [each.criterion for each in held_marks(trial.task_id)] == ["outcome"]
        return
    for act in (
        lambda: mark(trial, person),
        lambda: withdraw_mark(kept, reason="x", by=person, now=NOW),
    ):
        with pytest.raises(MarkDeniedError) as refused:
            act()
        assert str(refused.value) == NOT_A_REVIEWER
    assert CheckMark.objects.count() == 1


def test_who_wrote_it_does_not_mark_it(cast: Cast) -> None:
    trial = stored_trial(cast)
    contract(trial.task, cast.reviewer)
    changed = TEXT.replace("get_order", "list_orders")
    contract(trial.task, cast.engineer, changed)

    for criterion in ("outcome", "tone"):  # as the earlier version has them
        with pytest.raises(MarkDeniedError) as refused:
            mark(trial, cast.reviewer, criterion)
        assert str(refused.value) == WROTE_IT
    mark(trial, cast.reviewer, "looked")  # somebody else changed it
    mark(trial, cast.reviewer, "")  # the fixture is that of the other version
    row = mark(trial, cast.second_reviewer)
    with pytest.raises(MarkDeniedError) as refused:
        withdraw_mark(row, reason="x", by=cast.reviewer, now=NOW)
    assert str(refused.value) == WROTE_IT
    withdraw_mark(row, reason="I was wrong.", by=cast.second_reviewer, now=NOW)


def test_the_same_is_marked_once(cast: Cast) -> None:
    trial = stored_trial(cast)
    row = mark(trial, cast.reviewer)

    with pytest.raises(MarkError) as refused:
        mark(trial, cast.second_reviewer)
    assert str(refused.value) == (
        "reviewer marked outcome as defective at 2026-12-01 10:00:00 UTC; it is marked once."
    )
    mark(trial, cast.second_reviewer, mark=Mark.AMBIGUOUS)
    withdraw_mark(row, reason="x", by=cast.reviewer, now=LATER)
    with pytest.raises(MarkError) as refused:
        withdraw_mark(row, reason="x", by=cast.second_reviewer, now=LATER)
    assert str(refused.value) == "reviewer withdrew this mark at 2026-12-02 11:30:00 UTC."
    mark(trial, cast.second_reviewer)


def test_a_criterion_that_decides_nothing_is_not_marked(cast: Cast) -> None:
    with pytest.raises(MarkError) as refused:
        mark(stored_trial(cast), cast.reviewer, "nothing")

    assert str(refused.value) == "This trial is not decided by a criterion 'nothing'."


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        pytest.param("", NO_REASON, id="empty"),
        pytest.param("\u200b \u202e", NO_REASON, id="unseen"),
        pytest.param(
            "x" * (LONGEST_REASON + 1), "A reason has at most 2,000 characters.", id="long"
        ),
    ],
)
def test_marks_and_withdrawals_need_a_reason(reason: str, sentence: str, cast: Cast) -> None:
    trial = stored_trial(cast)
    row = mark(trial, cast.reviewer, "tone")

    with pytest.raises(MarkError) as refused:
        mark(trial, cast.reviewer, reason=reason)
    assert str(refused.value) == sentence
    with pytest.raises(MarkError) as refused:
        withdraw_mark(row, reason=reason, by=cast.reviewer, now=NOW)
    assert str(refused.value) == sentence


def test_marks_and_withdrawals_never_change(cast: Cast) -> None:
    row = mark(stored_trial(cast), cast.reviewer)
    withdraw_mark(row, reason="x", by=cast.reviewer, now=NOW)

    for rows in (CheckMark.objects.all(), CheckMarkWithdrawal.objects.all()):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(reason="y")
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.delete()
