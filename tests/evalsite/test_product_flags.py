"""The product's own flags, from uploads to `manage.py rebuild`."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsite.projections import decide_trials
from evalsite.rebuilding import rebuild
from reviews.models import Flag, FlagCode
from reviews.selectors.flags import flagged_trajectories
from reviews.services.flags import LONGEST_REASON, close_flag
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.models import Task, Trial, TrialDisposition

pytestmark = pytest.mark.django_db

OUTSIDE = verdict(
    "fail", criterion="action-1", grader="actions", mandatory=False, evidence=[{"step": 2}]
)
MISSING_STEP = verdict(evidence=[{"step": 99}])
AGAINST_SCORE = verdict("pass", score=0)
HUMAN = verdict("pass", grader="Ann", kind="human", criterion="tone", mandatory=False)
UNREADABLE = verdict("well, maybe", mandatory=False, criterion="odd")


def flags() -> list[tuple[str, str, str]]:
    return sorted(Flag.objects.values_list("trial__label", "code", "criterion"))


def verdicts_alone(*given: dict[str, Any], trial: int = 0) -> dict[str, Any]:
    return {"record": "verdicts", "task_id": "t1", "trial": trial, "verdicts": list(given)}


CASES = {
    "failed-check-outside-basis": (
        record(verdicts=[verdict(), OUTSIDE]),
        "action-1",
        "The outcome passes, but check action-1 failed; it is not mandatory.",
    ),
    "cited-step-missing": (
        record(verdicts=[MISSING_STEP]),
        "outcome",
        "state check cites step 99; the transcript has 4 steps.",
    ),
    "verdict-against-score": (
        record(verdicts=[AGAINST_SCORE]),
        "outcome",
        "state check says pass with a score of 0.",
    ),
    "pass-on-empty-trajectory": (
        record() | {"messages": [{"role": "user", "content": "Hello?"}]},
        "",
        "A verdict says pass, but the agent took no step.",
    ),
    "error-status-with-pass": (
        record(error="container died"),
        "",
        "A verdict says pass, but the harness broke.",
    ),
    "imported-human-verdict": (
        record(verdicts=[verdict(), HUMAN]),
        "tone",
        "The verdict of Ann came in a file; it does not count until a reviewer vouches for it.",
    ),
}


ELSEWHERE = {FlagCode.PERSON, FlagCode.UNKNOWN_CRITERION}  # which needs a contract


@pytest.mark.parametrize("code", [code.value for code in FlagCode if code not in ELSEWHERE])
def test_each_reason_flags_the_trial_once(code: str, cast: Cast) -> None:
    one, criterion, reason = CASES[code]
    ingest(cast.system, [record(trial="plain"), one])
    flag = Flag.objects.get()
    assert (flag.code, flag.criterion, flag.reason, flag.by, flag.system, flag.trial.label) == (
        code,
        criterion,
        reason,
        None,
        cast.system,
        "0",
    )

    ingest(cast.system, [one, verdicts_alone(*one["verdicts"])])
    rebuild(cast.system, say=lambda _: None)
    assert list(Flag.objects.all()) == [flag]


def test_a_message_without_a_call_is_a_step(cast: Cast) -> None:
    ingest(cast.system, [record(calls=())])

    assert flags() == []


def test_what_cannot_be_read_stays_on_the_page_of_the_trial(cast: Cast) -> None:
    ingest(cast.system, [record(verdicts=[verdict(), UNREADABLE])])

    assert flags() == []


def test_several_reasons_are_several_flags(cast: Cast) -> None:
    ingest(cast.system, [record(verdicts=[MISSING_STEP, OUTSIDE, HUMAN])])

    assert flags() == [
        ("0", "cited-step-missing", "outcome"),
        ("0", "failed-check-outside-basis", "action-1"),
        ("0", "imported-human-verdict", "tone"),
    ]


def test_verdicts_that_waited_flag_their_trial(cast: Cast) -> None:
    ingest(cast.system, [verdicts_alone(HUMAN, MISSING_STEP)])
    assert flags() == []

    ingest(cast.system, [record(verdicts=[])])

    assert flags() == [
        ("0", "cited-step-missing", "outcome"),
        ("0", "imported-human-verdict", "tone"),
    ]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_the_order_of_arrival_changes_no_flag(order: tuple[int, ...], cast: Cast) -> None:
    parts = [
        record(verdicts=[]),
        verdicts_alone(verdict(evidence=[{"step": 99}])),
        verdicts_alone(OUTSIDE),
        verdicts_alone(HUMAN),
    ]
    for at in order:
        ingest(cast.system, [parts[at]])

    assert flags() == [
        ("0", "cited-step-missing", "outcome"),
        ("0", "failed-check-outside-basis", "action-1"),
        ("0", "imported-human-verdict", "tone"),
    ]


def test_a_flag_whose_reason_went_away_stays(cast: Cast) -> None:
    """The only reason that a later verdict can take away: the outcome passes no longer."""
    second = verdict("fail", grader="second check", criterion="outcome 2")
    outside = [("0", "failed-check-outside-basis", "action-1")]

    ingest(cast.system, [record(verdicts=[verdict(), OUTSIDE])])
    ingest(cast.system, [verdicts_alone(second)])
    rebuild(cast.system, say=lambda _: None)
    assert flags() == outside

    ingest(cast.system, [record(trial=1, verdicts=[verdict(), second])])
    ingest(cast.system, [verdicts_alone(OUTSIDE, trial=1)])
    assert flags() == outside


def test_a_closed_flag_is_not_raised_again(cast: Cast) -> None:
    ingest(cast.system, [record(verdicts=[MISSING_STEP])])
    flag, task = Flag.objects.get(), Task.objects.get()
    assert flagged_trajectories(task.pk) == {flag.trial.trajectory_id}
    close_flag(flag, reason="The judge miscounted.", by=cast.reviewer, now=timezone.now())

    ingest(cast.system, [verdicts_alone(MISSING_STEP, HUMAN | {"grader": "Bob"})])
    rebuild(cast.system, say=lambda _: None)

    assert flags() == [
        ("0", "cited-step-missing", "outcome"),
        ("0", "imported-human-verdict", "tone"),
    ]
    Flag.objects.get(code="cited-step-missing", closing__isnull=False)


def test_rebuild_flags_trials_that_were_stored_before(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr("evalsite.projections.raise_product_flags", lambda trials, *, now: 0)
        ingest(cast.system, [record(verdicts=[MISSING_STEP]), record(trial=1)])
    assert flags() == []

    rebuild(cast.system, say=lambda _: None)

    assert flags() == [("0", "cited-step-missing", "outcome")]


def test_flags_change_no_disposition(cast: Cast) -> None:
    verdicts = [verdict(score=0, evidence=[{"step": 99}]), OUTSIDE, HUMAN]
    ingest(cast.system, [record(), record(trial=1, verdicts=verdicts)])

    assert set(TrialDisposition.objects.values_list("value", "next_actions__len")) == {("pass", 0)}


def test_hostile_text_is_kept_as_text_of_bounded_length(cast: Cast) -> None:
    name = "<script>alert(1)</script>\u202e"
    steps = [{"step": n} for n in range(1_000, 2_000)]
    ingest(cast.system, [record(verdicts=[verdict(grader=name, evidence=steps)])])

    reason = Flag.objects.get().reason
    assert reason.startswith("<script>alert(1)</script>\u202e cites step 1000, 1001, ")
    assert len(reason) == LONGEST_REASON
    assert reason.endswith("…")


@pytest.mark.parametrize("odd", [False, True])
def test_the_number_of_queries_does_not_depend_on_the_number_of_trials(
    odd: bool, cast: Cast
) -> None:
    given = [MISSING_STEP, HUMAN] if odd else [verdict()]
    ingest(cast.system, [record(trial=n, verdicts=given) for n in range(7)])
    trials = list(Trial.objects.values_list("pk", flat=True))
    counts = []
    for some in (trials[:1], trials):
        with CaptureQueriesContext(connection) as captured:
            decide_trials(some, now=timezone.now())
        counts.append(sum("reviews_flag" in query["sql"] for query in captured))

    assert counts == ([1, 1] if odd else [0, 0])
    assert Flag.objects.count() == (14 if odd else 0)


def test_flags_of_systems_with_the_same_trials_are_apart(cast: Cast) -> None:
    for system in (cast.system, cast.other_system):
        ingest(system, [record(verdicts=[MISSING_STEP])])

    assert set(Flag.objects.values_list("system", "trial__system")) == {
        (cast.system.pk, cast.system.pk),
        (cast.other_system.pk, cast.other_system.pk),
    }
    keys: set[uuid.UUID] = set(Flag.objects.values_list("key", flat=True))
    assert len(keys) == 1
