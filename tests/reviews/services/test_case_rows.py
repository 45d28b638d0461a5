from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reviews.core.cases import DecidedCase
from reviews.models import Case, CaseEvent, CheckMark, CheckMarkWithdrawal
from reviews.services.case_rows import LONGEST_WHY, follow_dispositions, is_case
from reviews.services.cases import set_aside
from tests.support.cases import (
    LATER,
    NOW,
    broken,
    case_of_trial,
    decided,
    failed,
    passed,
    stored_trials,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.models import EvidenceAddition, Trial

pytestmark = pytest.mark.django_db


def row(case: Case) -> dict[str, Any]:
    """What a case says, but for its identity."""
    names = [
        "state",
        "disposition",
        "next_actions",
        "action",
        "worked_by",
        "why",
        "n_opened",
        "opened_at",
        "closed_at",
        "due_on",
    ]
    found: dict[str, Any] = Case.objects.filter(pk=case.pk).values(*names).get()
    return found


def history(case: Case) -> list[tuple[str, str, Any]]:
    events = CaseEvent.objects.filter(case=case).order_by("pk")
    return list(events.values_list("kind", "text", "detail"))


@pytest.mark.parametrize(
    ("disposition", "stands", "waits"),
    [
        pytest.param("unresolved", True, True, id="unresolved"),
        pytest.param("unresolved", False, True, id="unresolved, earlier"),
        pytest.param("harness_error", True, True, id="harness error"),
        pytest.param("harness_error", False, False, id="harness error, earlier"),
        pytest.param("pass", True, False, id="pass"),
        pytest.param("fail", True, False, id="fail"),
    ],
)
def test_what_is_not_decided_is_a_case(disposition: str, stands: bool, waits: bool) -> None:
    one = DecidedCase(1, 1, 1, 1, disposition, ("rerun_trial",), (), stands)

    assert is_case(one) is waits


def test_an_unresolved_trial_opens_a_case_once(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    one = decided(trial, actions=("fix_fixture", "grade"), why=("outcome", "tone"))

    assert follow_dispositions([one], now=NOW) == 1
    assert follow_dispositions([one], now=LATER) == 0

    case = Case.objects.get()
    assert (case.system_id, case.trial_id, case.task_id, case.release_id) == (
        cast.system.pk,
        trial.pk,
        trial.task_id,
        trial.release_id,
    )
    assert row(case) == {
        "state": "open",
        "disposition": "unresolved",
        "next_actions": ["fix_fixture", "grade"],
        "action": "fix_fixture",
        "worked_by": "engineer",
        "why": ["outcome", "tone"],
        "n_opened": 1,
        "opened_at": NOW,
        "closed_at": None,
        "due_on": None,
    }
    assert history(case) == []


def test_a_decided_trial_opens_none(cast: Cast) -> None:
    first, second = stored_trials(cast, 2)

    assert follow_dispositions([passed(first), failed(second)], now=NOW) == 0
    assert follow_dispositions([], now=NOW) == 0

    assert not Case.objects.exists()


def test_an_open_case_shows_the_newest_next_actions(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    case = case_of_trial(trial)

    follow_dispositions([decided(trial, actions=("grade",), why=("tone",))], now=LATER)

    shown = row(case)
    assert (shown["action"], shown["worked_by"], shown["why"]) == ("grade", "reviewer", ["tone"])
    assert (shown["state"], shown["n_opened"], shown["opened_at"]) == ("open", 1, NOW)
    assert history(case) == []


@pytest.mark.parametrize(
    ("one", "text"),
    [
        pytest.param(passed, "The trial passes: every requirement passes.", id="pass"),
        pytest.param(failed, "The trial fails: a requirement of it failed.", id="fail"),
    ],
)
def test_a_case_closes_by_itself_and_opens_again(one: Any, text: str, cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    case = case_of_trial(trial)
    Case.objects.update(due_on=LATER.date(), assignee=cast.engineer)

    assert follow_dispositions([one(trial)], now=LATER) == 1
    assert follow_dispositions([one(trial)], now=LATER) == 0

    assert row(case) == {
        "state": "closed",
        "disposition": one(trial).disposition,
        "next_actions": [],
        "action": "repair_evidence",
        "worked_by": "engineer",
        "why": [],
        "n_opened": 1,
        "opened_at": NOW,
        "closed_at": LATER,
        "due_on": LATER.date(),
    }
    ((kind, said, detail),) = history(case)
    assert (kind, said, detail["disposition"]) == ("closed", text, one(trial).disposition)

    again = LATER + timedelta(days=1)
    follow_dispositions([decided(trial, actions=("adjudicate",), why=("tone",))], now=again)

    shown = row(case)
    assert (shown["state"], shown["n_opened"], shown["opened_at"], shown["closed_at"]) == (
        "open",
        2,
        again,
        None,
    )
    assert shown["due_on"] is None
    assert Case.objects.get().assignee == cast.engineer
    kind, said, detail = history(case)[-1]
    assert (kind, said) == ("opened", "The evidence does not decide the trial any more.")
    assert detail["actions"] == ["adjudicate"]


def test_a_closed_case_keeps_up_with_its_disposition_in_silence(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    case = case_of_trial(trial)
    follow_dispositions([passed(trial)], now=NOW)

    follow_dispositions([failed(trial)], now=LATER)

    assert (row(case)["disposition"], row(case)["closed_at"]) == ("fail", NOW)
    assert len(history(case)) == 1


def test_a_case_set_aside_stays_so_until_its_next_actions_change(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    case = case_of_trial(trial)
    set_aside(case, reason="Known.", by=cast.engineer, now=NOW)

    follow_dispositions([decided(trial, why=("outcome", "tone"))], now=LATER)
    assert (row(case)["state"], row(case)["why"]) == ("set_aside", ["outcome", "tone"])

    follow_dispositions([decided(trial, actions=("grade",))], now=LATER)
    assert (row(case)["state"], row(case)["n_opened"], row(case)["closed_at"]) == ("open", 2, None)
    assert [(kind, text) for kind, text, _ in history(case)] == [
        ("set_aside", "Known."),
        ("opened", "It was set aside, and its next actions are others now."),
    ]


def test_a_case_set_aside_closes_when_its_trial_is_decided(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    case = case_of_trial(trial)
    set_aside(case, reason="Known.", by=cast.engineer, now=NOW)

    follow_dispositions([passed(trial)], now=LATER)

    assert (row(case)["state"], row(case)["closed_at"]) == ("closed", LATER)


def test_a_further_attempt_closes_the_case_of_the_earlier_one(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, status="error", error="timeout", verdicts=[])])
    first = Trial.objects.get()
    follow_dispositions([broken(first)], now=NOW)
    case = Case.objects.get()
    assert (row(case)["state"], row(case)["action"]) == ("open", "rerun_trial")

    ingest(cast.system, [record("t1", 0, attempt=2)])
    second = Trial.objects.get(attempt=2)
    follow_dispositions([passed(second)], now=LATER)

    assert row(case)["state"] == "closed"
    assert history(case)[-1][:2] == ("closed", "A later attempt stands for its slot.")
    assert follow_dispositions([broken(first, stands=False), passed(second)], now=LATER) == 0
    assert len(history(case)) == 1


def test_a_slot_that_breaks_again_opens_its_case_again(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    follow_dispositions([broken(trial)], now=NOW)
    follow_dispositions([passed(trial)], now=NOW)

    follow_dispositions([broken(trial)], now=LATER)

    assert history(Case.objects.get())[-1][:2] == (
        "opened",
        "The harness broke, and no later attempt stands for the slot.",
    )


def test_what_is_open_of_a_broken_trial_is_void(cast: Cast) -> None:
    (trial,) = stored_trials(cast)

    follow_dispositions([decided(trial, "harness_error", ("rerun_trial",), ("tone",))], now=NOW)

    assert row(Case.objects.get())["why"] == []


def test_long_and_odd_criteria_fit(cast: Cast) -> None:
    (trial,) = stored_trials(cast)

    case = case_of_trial(trial, why=("x" * 700, "a\x00b"))

    assert row(case)["why"] == ["x" * LONGEST_WHY, "a\u2400b"]


def test_the_state_does_not_depend_on_the_order(cast: Cast) -> None:
    trials = stored_trials(cast, 4)
    ends = [passed(trials[0]), decided(trials[1]), failed(trials[2]), broken(trials[3])]
    ways = [decided(trials[0], actions=("grade",)), passed(trials[1]), decided(trials[2])]
    seen = set()
    for seed in range(4):
        earlier = random.Random(seed).sample(ways, len(ways))
        for one in [*earlier, *random.Random(seed).sample(ends, len(ends))]:
            follow_dispositions([one], now=NOW)
        seen.add(tuple(Case.objects.order_by("trial").values_list("trial", "state", "disposition")))
    assert len(seen) == 1
    assert [state for _, state, _ in seen.pop()] == ["closed", "open", "closed", "open"]


# ---- what may have closed it ----


def after_of(case: Case) -> Any:
    return history(case)[-1][2].get("after")


def test_a_closing_names_the_verdict_that_came_before(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("unknown")])])
    trial = Trial.objects.get()
    case = case_of_trial(trial, now=timezone.now())
    later = {"record": "verdicts", "task_id": "t1", "trial": 0}
    ingest(cast.system, [{**later, "verdicts": [verdict("pass", grader="second look")]}])

    follow_dispositions([passed(trial)], now=timezone.now())
    follow_dispositions([decided(trial)], now=timezone.now())
    follow_dispositions([passed(trial)], now=timezone.now())

    closed = [d for kind, _, d in history(case) if kind == "closed"]
    assert closed[0]["after"] == {
        "kind": "verdict",
        "criterion": "outcome",
        "value": "pass",
        "grader": "second look",
    }
    assert "after" not in closed[-1]  # nothing came since


def test_a_closing_names_added_evidence_and_marks(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    base = timezone.now()
    times = [base + timedelta(hours=n) for n in range(1, 9)]
    case = case_of_trial(trial, now=times[0])
    EvidenceAddition.objects.create(
        trial=trial,
        order=1,
        parts=["final_state"],
        content=b"",
        source="api",
        reason="r",
        digest=trial.digest,
        by=cast.engineer,
        added_at=times[1],
    )
    follow_dispositions([passed(trial)], now=times[2])
    assert after_of(case) == {"kind": "evidence", "order": 1, "parts": ["final_state"]}

    mark = CheckMark.objects.create(
        system=cast.system,
        task=trial.task,
        criterion="outcome",
        mark="defective",
        reason="r",
        by=cast.reviewer,
        marked_at=times[3],
    )
    follow_dispositions([decided(trial, actions=("fix_fixture",))], now=times[4])
    assert after_of(case) == {"kind": "mark", "criterion": "outcome", "mark": "defective"}

    CheckMarkWithdrawal.objects.create(
        mark=mark, reason="r", by=cast.reviewer, withdrawn_at=times[5]
    )
    follow_dispositions([passed(trial)], now=times[6])
    assert after_of(case) == {"kind": "withdrawal", "criterion": "outcome", "mark": "defective"}


# ---- how much work it is ----


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_the_number_of_statements_does_not_grow(n: int, cast: Cast) -> None:
    trials = stored_trials(cast, 3)
    follow_dispositions([decided(trial) for trial in trials[:n]], now=NOW)

    with CaptureQueriesContext(connection) as captured:
        follow_dispositions([passed(trial) for trial in trials[:n]], now=LATER)

    assert len(captured) == 4
