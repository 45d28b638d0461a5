from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from django.db import connection

from evalsite.after_review import (
    add_evidence_to,
    decided_again,
    mark_and_decide,
    withdraw_and_decide,
)
from reviews.core.disposition import Mark
from reviews.models import Case, CaseEvent, CheckMark
from reviews.services.marks import MarkError
from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record, verdict
from traces.core.additions import Addition
from traces.models import (
    EvidenceAddition,
    Role,
    System,
    TaskFigures,
    Trial,
    TrialDisposition,
    TrialRecord,
    User,
)
from traces.services.additions import AdditionError
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 5, 10, 0, tzinfo=UTC)


def trials(system: System) -> list[Trial]:
    return list(Trial.objects.filter(system=system).order_by("pk"))


def dispositions() -> list[tuple[str, list[str]]]:
    rows = TrialDisposition.objects.order_by("trial")
    return list(rows.values_list("value", "next_actions"))


def test_a_mark_opens_all_trials_of_its_task_and_a_withdrawal_closes_them(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1), record("t2", 0)])
    first, second, _ = trials(cast.system)

    mark = mark_and_decide(
        first, criterion="outcome", mark=Mark.DEFECTIVE, reason="Wrong.", by=cast.reviewer, now=NOW
    )

    assert dispositions() == [
        ("unresolved", ["fix_fixture"]),
        ("unresolved", ["fix_fixture"]),
        ("pass", []),
    ]
    assert list(Case.objects.order_by("pk").values_list("trial", "state", "action")) == [
        (first.pk, "open", "fix_fixture"),
        (second.pk, "open", "fix_fixture"),
    ]
    assert TaskFigures.objects.get(task=first.task, release=None).n_unresolved == 2

    withdraw_and_decide(mark, reason="It was right.", by=cast.reviewer, now=NOW)

    assert [value for value, _ in dispositions()] == ["pass", "pass", "pass"]
    case = Case.objects.get(trial=first)
    assert (case.state, case.disposition) == ("closed", "pass")
    told = CaseEvent.objects.filter(case=case).order_by("pk").values_list("kind", "text")
    assert list(told) == [
        ("marked", "Wrong."),
        ("marked", "It was right."),
        ("closed", "The trial passes: every requirement passes."),
    ]
    details = CaseEvent.objects.filter(case=case, kind="marked").order_by("pk")
    assert list(details.values_list("detail", flat=True)) == [
        {"criterion": "outcome", "mark": "defective", "is_held": True},
        {"criterion": "outcome", "mark": "defective", "is_held": False},
    ]
    assert TaskFigures.objects.get(task=first.task, release=None).n_unresolved == 0


def test_what_is_refused_changes_nothing(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    (trial,) = trials(cast.system)
    before = TrialDisposition.objects.values().get()

    with pytest.raises(MarkError):
        mark_and_decide(
            trial, criterion="tone", mark=Mark.DEFECTIVE, reason="x", by=cast.reviewer, now=NOW
        )
    with pytest.raises(AdditionError):
        add_evidence_to(trial, Addition(), source="x", reason="x", by=cast.reviewer, now=NOW)

    assert TrialDisposition.objects.values().get() == before
    assert not CheckMark.objects.exists()


def test_added_evidence_stands_in_the_history_and_the_trial_stays(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("unknown")])])
    (trial,) = trials(cast.system)
    stored = TrialRecord.objects.values().get()

    row = add_evidence_to(
        trial,
        Addition(final_state={"orders": {}}),
        source="inspection api",
        reason="It was not recorded.",
        by=cast.engineer,
        now=NOW,
    )
    again = add_evidence_to(
        trial,
        Addition(final_state={"orders": {}}),
        source="elsewhere",
        reason="Again.",
        by=cast.engineer,
        now=NOW,
    )

    assert again == row
    assert EvidenceAddition.objects.count() == 1
    (event,) = CaseEvent.objects.all()
    assert (event.kind, event.text, event.detail, event.by) == (
        "evidence",
        "It was not recorded.",
        {"order": 1, "parts": ["final_state"], "source": "inspection api"},
        cast.engineer,
    )
    fresh = Trial.objects.get(pk=trial.pk)
    assert (fresh.digest, TrialRecord.objects.values().get()) == (trial.digest, stored)


def test_deciding_nothing_is_no_error(cast: Cast) -> None:
    decided_again([], cast.system, now=NOW)


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_mark_the_same_check_once(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    (trial,) = trials(cast.system)
    start = threading.Barrier(2)
    refusals: list[str] = []

    def act(by: User) -> None:
        try:
            mine = Trial.objects.select_related("task__system").get(pk=trial.pk)
            start.wait(timeout=20)
            mark_and_decide(
                mine, criterion="outcome", mark=Mark.AMBIGUOUS, reason="x", by=by, now=NOW
            )
        except MarkError as error:
            refusals.append(str(error))
        finally:
            connection.close()

    people = (cast.reviewer, cast.second_reviewer)
    threads = [threading.Thread(target=act, args=(by,)) for by in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    mark = CheckMark.objects.get()
    when = "2026-12-05 10:00:00 UTC"
    assert refusals == [
        f"{mark.by.username} marked outcome as ambiguous at {when}; it is marked once."
    ]
    assert dispositions() == [("unresolved", ["clarify_contract"])]


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_fill_a_part_once(cast: Cast) -> None:
    other = person("other_engineer")
    set_member(cast.system, other, Role.ENGINEER)
    ingest(cast.system, [record("t1", 0)])
    (trial,) = trials(cast.system)
    start = threading.Barrier(2)
    refusals: list[str] = []

    def act(by: User, tokens: int) -> None:
        try:
            mine = Trial.objects.get(pk=trial.pk)
            start.wait(timeout=20)
            add_evidence_to(
                mine, Addition(tokens=tokens), source="log", reason="Lost.", by=by, now=NOW
            )
        except AdditionError as error:
            refusals.append(str(error))
        finally:
            connection.close()

    people = ((cast.engineer, 3), (other, 4))
    threads = [threading.Thread(target=act, args=each) for each in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert refusals == ["The trial has tokens already; evidence never changes."]
    assert EvidenceAddition.objects.get().order == 1
