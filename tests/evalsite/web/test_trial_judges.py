"""What a trial's page says of its judges, of vouched verdicts and of what reviewers decided."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_adjudication import adjudicate_and_decide
from evalsite.after_label import label_and_decide
from evalsite.after_vouching import vouch_and_decide
from evalsite.web.judge_words import state_words, why_not_counting
from reviews.core.calibration import CalibrationStatus
from reviews.core.disposition import AdjudicationRuling
from reviews.models import Dispute, Verdict
from reviews.selectors.judge_states import JudgeState
from tests.support.adjudications import disputed_trial, seen_of
from tests.support.calibrated import asked, judged_trials, labelled_set, read_of, twice
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.labels import blind_set, seated
from tests.support.visits import root, visit
from traces.core.records import VerdictValue
from traces.models import System, Trial
from traces.web.pages.standings import RequirementRow

NOW = timezone.now()
SAY = ["pass"] * 30 + ["fail"] * 30


def path(system: System, trial: Trial) -> str:
    return f"{root(system)}trials/{trial.uuid}/"


def row_of(page: Any, name: str) -> RequirementRow:
    found: RequirementRow = next(
        row for group in page.standings.groups for row in group.rows if row.name == name
    )
    return found


def state(status: CalibrationStatus, why: str = "A reason.", **more: Any) -> JudgeState:
    values: dict[str, Any] = {"read_at": NOW, "valid_until": None, "document": {}, **more}
    return JudgeState(status, why, **values)


@pytest.mark.parametrize(
    ("found", "words", "why_not"),
    [
        (
            None,
            "not calibrated: no label holds it against people yet",
            "the judge is not calibrated for this criterion",
        ),
        (
            state(CalibrationStatus.EXPLORATORY, "Too few to tell: 3 items."),
            "not calibrated: too few to tell: 3 items",
            "the judge is not calibrated for this criterion",
        ),
        (
            state(CalibrationStatus.FAILED, "It passed 3 of 9."),
            "failed: it passed 3 of 9",
            "the judge failed its calibration for this criterion",
        ),
        (
            state(CalibrationStatus.STALE, "A newer version."),
            "stale: a newer version",
            "the judge's calibration is stale",
        ),
        (
            state(CalibrationStatus.CALIBRATED, valid_until=NOW - timedelta(days=1)),
            f"stale: its calibration ended on {NOW - timedelta(days=1):%Y-%m-%d}",
            "it was given after the judge's calibration ended",
        ),
        (
            state(CalibrationStatus.CALIBRATED, valid_until=NOW + timedelta(days=1)),
            f"calibrated until {NOW + timedelta(days=1):%Y-%m-%d}, false-pass bound - on 0 items",
            "it was given after the judge's calibration ended",
        ),
    ],
)
def test_each_state_of_a_judge_has_its_words(
    found: JudgeState | None, words: str, why_not: str
) -> None:
    assert state_words(found, now=NOW) == words
    assert why_not_counting(found) == why_not


@pytest.mark.django_db
def test_a_judges_verdict_leads_to_its_card(client: Client, cast: Cast) -> None:
    trials = judged_trials(cast, SAY)
    digest = asked(cast)
    (before,) = visit(client, cast.viewer, path(cast.system, trials[0])).verdicts
    made = labelled_set(
        cast.system,
        trials,
        twice(SAY),
        people=[cast.reviewer, cast.second_reviewer],
        digest=digest,
        by=cast.reviewer,
        now=timezone.now(),
    )
    read_of(made, now=timezone.now())

    (after,) = visit(client, cast.viewer, path(cast.system, trials[0])).verdicts

    until = f"{made.completed_at + timedelta(days=90):%Y-%m-%d}"
    assert (before.counts, before.calibration.label) == (
        False,
        "not calibrated: no label holds it against people yet",
    )
    assert (after.counts, after.why_not) == (True, "")
    assert after.calibration.label == (
        f"calibrated until {until}, false-pass bound 9.5% on 60 items"
    )
    assert client.get(after.calibration.href).status_code == 200


@pytest.mark.django_db
def test_who_vouched_for_a_verdict_is_said(client: Client, cast: Cast) -> None:
    human = verdict("pass", criterion="tone", grader="Ann", kind="human")
    ingest(cast.system, [record("t1", 0, verdicts=[human])])
    given = Verdict.objects.get()
    trial = Trial.objects.get()
    (before,) = visit(client, cast.viewer, path(cast.system, trial)).verdicts
    group = (given.grader_version_id, given.criterion_id, given.upload_id or 0)
    vouch_and_decide(cast.system, group, reason="I asked <b>Ann</b>.", by=cast.reviewer, now=NOW)

    (after,) = visit(client, cast.viewer, path(cast.system, trial)).verdicts

    assert (before.counts, before.vouched) == (False, "")
    assert (after.counts, after.calibration) == (True, None)
    assert after.vouched.startswith("reviewer, ")
    assert after.vouched.endswith(": I asked <b>Ann</b>.")
    assert "<b>Ann</b>" not in client.get(path(cast.system, trial)).content.decode()


@pytest.mark.django_db
def test_a_blind_label_says_so(client: Client, cast: Cast) -> None:
    item = seated(blind_set(cast, 1), cast.reviewer, NOW).item
    label_and_decide(
        item, value=VerdictValue.PASS, reason="Polite.", steps=[], by=cast.reviewer, now=NOW
    )

    page = visit(client, cast.viewer, path(cast.system, item.trial))

    assert [row.grader for row in page.verdicts if row.is_blind] == ["reviewer"]
    assert (
        "without sight of other verdicts"
        in client.get(path(cast.system, item.trial)).content.decode()
    )
    own = visit(client, cast.reviewer, path(cast.system, item.trial))
    assert [row.correct_url for row in own.verdicts] == [""] * len(own.verdicts)


@pytest.mark.django_db
def test_what_a_reviewer_decided_stands_with_its_requirement(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)

    def decide(ruling: AdjudicationRuling, reason: str) -> None:
        adjudicate_and_decide(
            trial,
            criterion="truthful",
            ruling=ruling,
            reason=reason,
            steps=[2],
            by=cast.reviewer,
            now=timezone.now(),
            seen=seen_of(trial),
        )

    decide(AdjudicationRuling.PASS, "It did look up the order.")
    decide(AdjudicationRuling.INSUFFICIENT_EVIDENCE, "<b>No</b> result was recorded.")

    page = visit(client, cast.viewer, path(cast.system, trial))
    row = row_of(page, "truthful")

    assert row.rule == "A reviewer found the evidence insufficient, and none was added since."
    assert [(r.word, r.by, r.reason, r.notes, r.is_replaced) for r in row.rulings] == [
        (
            "insufficient evidence",
            "reviewer",
            "<b>No</b> result was recorded.",
            ("corrects an earlier decision",),
            False,
        ),
        (
            "pass",
            "reviewer",
            "It did look up the order.",
            ("corrected since: it decides no more",),
            True,
        ),
    ]
    assert [step.label for step in row.rulings[0].steps] == ["step 2"]
    dispute = Dispute.objects.get(trial=trial, criterion="truthful")
    assert row.rulings[0].href == f"{root(cast.system)}disputes/{dispute.uuid}/"
    html = client.get(path(cast.system, trial)).content.decode()
    assert "<b>No</b>" not in html
    assert "adjudicated by" in html
