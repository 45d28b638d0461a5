from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from evalsite.adjudication_effects import (
    BROKEN,
    CODE_FAILS,
    CODE_PASSES,
    NOT_MANDATORY,
    OTHERS_DECIDE,
    SAME_AS_NOW,
    DecisionEffect,
    effect_of,
)
from evalsite.after_adjudication import (
    adjudicate_and_decide,
    check_decision,
    decide_dispute,
    ruling_of,
)
from evalsite.after_review import decided_again
from reviews.core.disposition import AdjudicationRuling, Mark
from reviews.models import Adjudication, Case, CheckMark, Dispute, DisputeState
from reviews.permissions.marks import WROTE_IT
from reviews.selectors.adjudicating import dispute_basis
from reviews.selectors.release_counts import ReleaseCounts
from reviews.services.adjudications import (
    OTHER_CONTRACT,
    AdjudicationConflictError,
    AdjudicationDeniedError,
    AdjudicationError,
)
from reviews.services.marks import OUTDATED
from tests.support.adjudications import CONTRACT, SIDES, disputed_trial, seen_of
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from traces.models import Release, Role, Task, TaskFigures, Trial, TrialDisposition, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 5, 10, 0, tzinfo=UTC)
PASS, FAIL = AdjudicationRuling.PASS, AdjudicationRuling.FAIL
INSUFFICIENT = AdjudicationRuling.INSUFFICIENT_EVIDENCE
UNCLEAR = AdjudicationRuling.RUBRIC_UNCLEAR


def decide(trial: Trial, by: User, ruling: AdjudicationRuling = FAIL, **more: Any) -> Adjudication:
    asked: dict[str, Any] = {"criterion": "truthful", "reason": "Step 2.", "steps": [2]}
    return adjudicate_and_decide(trial, ruling=ruling, by=by, now=NOW, **(asked | more))


def disposition(trial: Trial) -> tuple[str, list[str], list[str]]:
    row = TrialDisposition.objects.get(trial=trial)
    return (row.value, row.failed_classes, row.next_actions)


@pytest.mark.parametrize(
    ("ruling", "wanted"),
    [
        (PASS, ("pass", [], [])),
        (FAIL, ("fail", ["semantic"], [])),
        (INSUFFICIENT, ("unresolved", [], ["repair_evidence"])),
        (UNCLEAR, ("unresolved", [], ["clarify_contract"])),
    ],
)
def test_the_trial_is_decided_on_it_in_one_act(
    cast: Cast, ruling: AdjudicationRuling, wanted: tuple[str, list[str], list[str]]
) -> None:
    trial = disputed_trial(cast)
    assert disposition(trial) == ("unresolved", [], ["calibrate_judge"])

    decide(trial, cast.reviewer, ruling)

    assert disposition(trial) == wanted
    assert Dispute.objects.get(trial=trial).state == DisputeState.ADJUDICATED
    figures = TaskFigures.objects.get(task=trial.task, release=None)
    assert (figures.n_pass, figures.n_fail, figures.n_unresolved) == (
        int(wanted[0] == "pass"),
        int(wanted[0] == "fail"),
        int(wanted[0] == "unresolved"),
    )


def test_the_case_is_closed_by_it_and_says_so(cast: Cast) -> None:
    trial = disputed_trial(cast)

    decide(trial, cast.reviewer, PASS)

    case = Case.objects.get(trial=trial)
    assert case.state == "closed"
    closing = case.events.get(kind="closed")
    assert closing.detail is not None
    assert closing.detail["after"] == {
        "kind": "adjudication",
        "criterion": "truthful",
        "ruling": "pass",
        "is_by_party": False,
        "by": "reviewer",
    }


def effect(trial: Trial, decision: AdjudicationRuling | Mark, criterion: str) -> DecisionEffect:
    return effect_of(trial, dispute_basis(trial, criterion), decision)


@pytest.mark.parametrize("ruling", list(AdjudicationRuling))
def test_an_effect_told_beforehand_is_the_one_that_comes(
    cast: Cast, ruling: AdjudicationRuling
) -> None:
    trial = disputed_trial(cast)
    told = effect(trial, ruling, "truthful")
    before = counts(trial.release)

    decide(trial, cast.reviewer, ruling)

    after = disposition(trial)
    decision = told.after.decision
    assert (
        decision.disposition.value,
        [name.value for name in decision.failed_classes],
        [action.value for action in decision.actions],
    ) == after
    shown = told.counts_after
    assert (told.release.counts.n_pass, told.release.counts.n_graded) == before
    assert (shown.n_pass, shown.n_graded) == counts(trial.release)


def counts(release: Release) -> tuple[int, int]:
    rows = TaskFigures.objects.filter(release=release)
    n_pass = sum(row.n_pass for row in rows)
    return n_pass, n_pass + sum(row.n_fail for row in rows)


def test_an_effect_counts_the_release_and_other_disputes_under_the_rubric(cast: Cast) -> None:
    trial = disputed_trial(cast)
    disputed_trial(cast, 1)
    third = disputed_trial(cast, 2)
    decide(third, cast.reviewer, PASS)

    told = effect(trial, FAIL, "truthful")

    assert told.release.counts == ReleaseCounts(n_pass=1, n_graded=1, n_run=3)
    assert told.counts_after == ReleaseCounts(n_pass=1, n_graded=2, n_run=3)
    assert (told.n_alike, told.n_trials, told.why_nothing) == (1, 0, "")
    assert told.changes_disposition


CODE_SIDES = (
    verdict("pass", criterion="outcome", grader="state check"),
    verdict("fail", criterion="outcome", grader="Judge 1", kind="model"),
)


@pytest.mark.parametrize(
    ("word", "other", "sentence"), [("pass", "fail", CODE_PASSES), ("fail", "pass", CODE_FAILS)]
)
def test_where_code_decides_an_effect_says_that_nothing_changes_and_why(
    cast: Cast, word: str, other: str, sentence: str
) -> None:
    sides = (
        verdict(word, criterion="outcome", grader="state check"),
        verdict(other, criterion="outcome", grader="Judge 1", kind="model"),
    )
    trial = disputed_trial(cast, contract="", sides=sides)

    for ruling in AdjudicationRuling:
        told = effect(trial, ruling, "outcome")
        assert (told.why_nothing, told.changes_disposition) == (sentence, False)
        assert told.counts_after == told.release.counts
    was = disposition(trial)
    decide(trial, cast.reviewer, criterion="outcome", ruling=FAIL if word == "pass" else PASS)
    assert disposition(trial) == was


def test_an_effect_says_what_else_decides(cast: Cast) -> None:
    sides = (*SIDES, verdict("fail", criterion="db", grader="tau2", **{"class": "outcome"}))
    contract = CONTRACT + "external:\n  - {id: db, class: outcome}\n"
    trial = disputed_trial(cast, contract=contract, sides=sides)

    told = effect(trial, PASS, "truthful")

    assert told.why_nothing == OTHERS_DECIDE
    decide(trial, cast.reviewer, FAIL)
    assert effect(trial, FAIL, "truthful").why_nothing == SAME_AS_NOW


def test_an_effect_on_what_is_not_mandatory_or_broken_is_none(cast: Cast) -> None:
    contract = CONTRACT.replace("question:", "mandatory: false, question:")
    contract += "  - {rubric: tone}\n"
    optional = disputed_trial(cast, contract=contract)
    broken = disputed_trial(cast, 1, status="error", error="It broke.")

    assert effect(optional, FAIL, "truthful").why_nothing == NOT_MANDATORY
    assert effect(broken, FAIL, "truthful").why_nothing == BROKEN


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("tuning", "The figures of a release leave split tuning out, and this task is of it."),
        (
            "production",
            "The figures of a release leave production traces out, and this is one.",
        ),
        (
            "fault",
            "The figures of a release leave trials with an injected fault out, and this is one.",
        ),
    ],
)
def test_an_effect_says_why_figures_leave_the_trial_out(cast: Cast, how: str, words: str) -> None:
    more: dict[str, Any] = {
        "tuning": {},
        "production": {"environment": "production"},
        "fault": {"fault": {"kind": "timeout", "step": 2}},
    }[how]
    trial = disputed_trial(cast, **more)
    if how == "tuning":
        Task.objects.update(split="tuning")

    told = effect(trial, FAIL, "truthful")

    assert told.release.left_out == words
    assert told.counts_after == told.release.counts
    assert told.changes_disposition


def test_an_effect_of_a_mark_is_on_all_trials_of_the_task(cast: Cast) -> None:
    trial = disputed_trial(cast)
    disputed_trial(cast, 1)

    told = effect(trial, Mark.DEFECTIVE, "truthful")

    assert told.n_trials == 2
    assert [action.value for action in told.after.decision.actions] == ["fix_fixture"]


def mark(trial: Trial, by: User, decision: Mark = Mark.DEFECTIVE, **more: Any) -> Any:
    asked: dict[str, Any] = {
        "criterion": "truthful",
        "reason": "It asks the wrong thing.",
        "steps": [],
        "seen": seen_of(trial),
    }
    return decide_dispute(trial, decision=decision, by=by, now=NOW, **(asked | more))


def test_a_check_is_marked_from_the_same_form(cast: Cast) -> None:
    trial = disputed_trial(cast)

    row = mark(trial, cast.reviewer, Mark.AMBIGUOUS)

    assert CheckMark.objects.get() == row
    assert disposition(trial) == ("unresolved", [], ["clarify_contract"])
    assert not Adjudication.objects.exists()


def test_a_mark_is_refused_in_its_own_sentences(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)
    set_member(cast.system, cast.engineer, Role.REVIEWER)

    for act in (mark, checked):
        with pytest.raises(AdjudicationDeniedError, match=WROTE_IT):
            act(trial, cast.engineer)
        with pytest.raises(AdjudicationError, match="the reason is what the next person reads"):
            act(trial, cast.reviewer, reason=" ")
    contract_in_effect(cast.system, CONTRACT + "# as before\n", by=cast.engineer)
    with pytest.raises(AdjudicationConflictError, match=OUTDATED):
        mark(trial, cast.reviewer, seen=seen)
    with pytest.raises(AdjudicationConflictError, match=OTHER_CONTRACT):
        decide_dispute(
            trial,
            criterion="truthful",
            decision=FAIL,
            reason="x",
            steps=[],
            by=cast.reviewer,
            now=NOW,
            seen=seen,
        )
    assert not CheckMark.objects.exists()


def checked(trial: Trial, by: User, **more: Any) -> None:
    asked: dict[str, Any] = {
        "criterion": "truthful",
        "decision": Mark.DEFECTIVE,
        "reason": "It asks the wrong thing.",
        "steps": [],
        "seen": seen_of(trial),
    }
    check_decision(trial, by=by, now=NOW, **(asked | more))


def test_a_decision_is_checked_without_being_made(cast: Cast) -> None:
    trial = disputed_trial(cast)

    checked(trial, cast.reviewer)
    checked(trial, cast.reviewer, decision=FAIL)

    with pytest.raises(AdjudicationError, match="There is no step 9"):
        checked(trial, cast.reviewer, decision=FAIL, steps=[9])
    assert not Adjudication.objects.exists()
    assert not CheckMark.objects.exists()


def test_what_a_form_decides_is_known_or_nothing() -> None:
    assert [ruling_of(word) for word in ("pass", "defective", "ambiguous", "", "x")] == [
        PASS,
        Mark.DEFECTIVE,
        Mark.AMBIGUOUS,
        None,
        None,
    ]


def at_once(*acts: Callable[[], object]) -> list[str]:
    """Do all of these at the same time, each in a thread; what is refused, in words."""
    start = threading.Barrier(len(acts))
    refusals: list[str] = []

    def run(act: Callable[[], object]) -> None:
        try:
            start.wait(timeout=20)
            act()
        except AdjudicationError as error:
            refusals.append(type(error).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return refusals


@pytest.mark.django_db(transaction=True)
def test_of_two_reviewers_at_once_one_decides(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)

    refusals = at_once(
        lambda: decide(trial, cast.reviewer, FAIL, seen=seen),
        lambda: decide(trial, cast.second_reviewer, PASS, seen=seen),
    )

    made = Adjudication.objects.get()
    assert refusals == ["AdjudicationConflictError"]
    assert disposition(trial)[0] == made.ruling


@pytest.mark.django_db(transaction=True)
def test_one_who_submits_twice_at_once_decides_once(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)

    refusals = at_once(*[lambda: decide(trial, cast.reviewer, FAIL, seen=seen)] * 3)

    assert refusals == []
    assert Adjudication.objects.get().ruling == "fail"


@pytest.mark.django_db(transaction=True)
def test_of_two_corrections_at_once_one_is_kept(cast: Cast) -> None:
    trial = disputed_trial(cast)
    first = decide(trial, cast.reviewer, FAIL)
    seen = seen_of(trial)

    refusals = at_once(
        lambda: decide(trial, cast.reviewer, PASS, seen=seen),
        lambda: decide(trial, cast.second_reviewer, INSUFFICIENT, seen=seen),
    )

    assert refusals == ["AdjudicationConflictError"]
    assert Adjudication.objects.get(replaces=first).replaces == first
    assert Adjudication.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_verdict_that_comes_at_once_is_seen_or_refuses(cast: Cast) -> None:
    trial = disputed_trial(cast)
    seen = seen_of(trial)
    late = verdict("fail", criterion="truthful", grader="Judge 3", kind="model")
    more = {"record": "verdicts", "task_id": "t1", "trial": 0, "verdicts": [late]}

    refusals = at_once(
        lambda: decide(trial, cast.reviewer, FAIL, seen=seen),
        lambda: ingest(cast.system, [more]),
    )

    made = list(Adjudication.objects.all())
    assert (len(made), refusals) in ((1, []), (0, ["AdjudicationConflictError"]))
    wanted = "fail" if made else "unresolved"
    assert disposition(trial)[0] == wanted
    decided_again([trial.pk], cast.system, now=NOW)
    assert disposition(trial)[0] == wanted


def test_a_trial_of_a_second_attempt_is_decided_on_its_own(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, status="error", error="x", verdicts=[])])
    trial = disputed_trial(cast, 1)
    decide(trial, cast.reviewer, PASS)
    rows = TrialDisposition.objects.order_by("trial").values_list("value", flat=True)
    assert list(rows) == ["harness_error", "pass"]


def test_an_effect_that_only_moves_the_next_action_is_one(cast: Cast) -> None:
    trial = disputed_trial(cast)

    told = effect(trial, INSUFFICIENT, "truthful")

    assert (told.why_nothing, told.changes_disposition) == ("", False)
