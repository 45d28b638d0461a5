from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsite.projections import decide_trials
from evalsite.rebuilding import rebuild
from reviews.core.disposition import Adjudication as GivenAdjudication
from reviews.core.disposition import (
    AdjudicationRuling,
    GivenVerdict,
    TrialFacts,
    disposition_of,
    requirements_without_contract,
)
from reviews.models import Adjudication, Criterion, Dispute
from reviews.selectors.votes import given_verdicts
from reviews.services.dispute_rows import (
    LONGEST_GRADER,
    LONGEST_VERSION,
    MOST_JUDGES,
    MOST_SIDES,
    DecidedDisputes,
    follow_disputes,
    follow_standing,
    judge_key,
)
from tests.support.cases import LATER, NOW
from tests.support.cast import Cast
from tests.support.disputes import disputed, judged
from tests.support.evidence import ingest, record, verdict
from traces.models import EvidenceAddition, Trial

pytestmark = pytest.mark.django_db

_FACTS = (
    "criterion",
    "criterion_class",
    "class_rank",
    "criterion_digest",
    "rubric_version",
    "kinds",
    "judges",
    "says",
    "is_counting",
    "decides",
    "stands",
    "state",
)


def facts(dispute: Dispute) -> dict[str, Any]:
    found: dict[str, Any] = Dispute.objects.filter(pk=dispute.pk).values(*_FACTS).get()
    return found


def decide(trial: Trial) -> None:
    decide_trials([trial.pk], now=timezone.now())


def rule(dispute: Dispute, cast: Cast, ruling: str, **facts: Any) -> Adjudication:
    """An adjudication as it is stored; nothing is decided anew."""
    trial = dispute.trial
    return Adjudication.objects.create(
        system=cast.system,
        trial=trial,
        criterion=Criterion.objects.get(system=cast.system, name=dispute.criterion),
        ruling=ruling,
        reason="Step 3 says it.",
        cited_steps=[3],
        seen=[],
        evidence_order=0,
        evidence_digest=trial.digest,
        is_by_party=False,
        by=cast.reviewer,
        decided_at=NOW,
        **facts,
    )


def test_a_judge_against_code_is_a_dispute(cast: Cast) -> None:
    (dispute,) = disputed(cast, judged(terse="pass", long="unknown"))

    assert facts(dispute) == {
        "criterion": "outcome",
        "criterion_class": "outcome",
        "class_rank": 0,
        "criterion_digest": None,
        "rubric_version": "",
        "kinds": ["code_judge", "judge_judge"],
        "judges": [judge_key("long", "1"), judge_key("terse", "1")],
        "says": {
            "why": "code_decides",
            "ruling": "",
            "judges": "up",
            "code": "f",
            "people": "",
            "sides": [
                _side("code", "state check", "", "fail", counts=True),
                _side("model", "long", "1", "unknown"),
                _side("model", "terse", "1", "pass"),
            ],
            "n_more": 0,
        },
        "is_counting": False,
        "decides": False,
        "stands": True,
        "state": "open",
    }
    assert dispute.closed_at is None
    assert (dispute.trial.task_id, dispute.trial.release_id) == (
        dispute.task_id,
        dispute.release_id,
    )


def _side(
    kind: str, grader: str, version: str, value: str, *, counts: bool = False, n: int = 1
) -> dict[str, Any]:
    return {
        "kind": kind,
        "grader": grader,
        "version": version,
        "values": [value],
        "counts": counts,
        "imported": True,
        "n": n,
    }


def test_trials_without_disagreement_have_none(cast: Cast) -> None:
    assert disputed(cast, judged(code="pass", terse="pass"), judged("t2", terse="fail")) == []


def test_the_same_again_changes_nothing(cast: Cast) -> None:
    (dispute,) = disputed(cast)
    before = Dispute.objects.filter(pk=dispute.pk).values().get()

    decide(dispute.trial)
    rebuild(cast.system, say=lambda _: None)

    assert Dispute.objects.values().get() == before


def test_a_rebuild_makes_lost_rows_again(cast: Cast) -> None:
    (dispute,) = disputed(cast)
    before = facts(dispute)
    Dispute.objects.all().delete()

    rebuild(cast.system, say=lambda _: None)

    assert facts(Dispute.objects.get()) == before


def test_an_adjudication_closes_it_and_added_evidence_opens_it_again(cast: Cast) -> None:
    (dispute,) = disputed(cast, judged(code=None, criterion="tone", terse="pass", long="fail"))
    assert dispute.decides
    rule(dispute, cast, "insufficient_evidence")

    decide(dispute.trial)

    closed = Dispute.objects.get()
    assert (closed.state, closed.says["ruling"]) == ("adjudicated", "insufficient_evidence")
    assert closed.closed_at is not None
    assert (closed.uuid, closed.opened_at) == (dispute.uuid, dispute.opened_at)

    EvidenceAddition.objects.create(
        trial=dispute.trial,
        order=1,
        parts=["final_state"],
        content=b"",
        source="the log",
        reason="It was missing.",
        digest=dispute.uuid,
        by=cast.engineer,
        added_at=LATER,
    )
    decide(dispute.trial)

    again = Dispute.objects.get()
    assert (again.state, again.says["ruling"], again.closed_at) == ("open", "", None)
    assert (again.uuid, again.opened_at) == (dispute.uuid, dispute.opened_at)


def test_it_is_over_once_its_verdicts_agree(cast: Cast) -> None:
    (dispute,) = disputed(cast, judged(code=None, criterion="tone", terse="pass", long="fail"))
    trial = dispute.trial
    kept = [v for v in given_verdicts([trial.pk])[trial.pk] if v.value == "pass"]

    assert _follow(trial, kept) == 1
    assert _follow(trial, kept) == 0

    over = Dispute.objects.get()
    assert (over.state, over.decides, over.closed_at) == ("over", False, NOW)
    assert (over.uuid, over.opened_at) == (dispute.uuid, dispute.opened_at)

    decide(trial)

    again = Dispute.objects.get()
    assert (again.state, again.decides, again.closed_at) == ("open", True, None)


def _follow(trial: Trial, verdicts: list[GivenVerdict], **facts: Any) -> int:
    one = replace(_decided(trial, verdicts), **facts)
    return follow_disputes([one], now=NOW)


def test_a_second_closing_keeps_the_time_of_the_first(cast: Cast) -> None:
    (dispute,) = disputed(cast, judged(code=None, criterion="tone", terse="pass", long="fail"))
    trial = dispute.trial
    verdicts = list(given_verdicts([trial.pk])[trial.pk])
    first = GivenAdjudication("1", "tone", AdjudicationRuling.PASS)
    second = GivenAdjudication("2", "tone", AdjudicationRuling.FAIL, replaces="1")

    _follow(trial, verdicts, adjudications=(first,))
    _follow(trial, verdicts, adjudications=(first, second))

    found = Dispute.objects.get()
    assert (found.says["ruling"], found.state, found.closed_at) == ("fail", "adjudicated", NOW)


def test_a_broken_attempt_that_was_run_again_stands_no_more(cast: Cast) -> None:
    broken = {
        **judged("t1", 0, code=None, criterion="tone", terse="pass", long="fail"),
        "error": "The tool server went away.",
    }
    (dispute,) = disputed(cast, broken)
    assert (dispute.stands, dispute.decides, dispute.says["why"]) == (True, False, "broken")

    ingest(cast.system, [record("t1", 0, attempt=2)])

    assert facts(dispute) == {
        **facts(dispute),
        "stands": False,
        "decides": False,
        "state": "open",
    }
    decide(dispute.trial)
    assert facts(dispute)["says"]["why"] == "replaced"


def test_which_attempt_stands_is_written_in_one_statement(cast: Cast) -> None:
    first, second = disputed(cast, judged(terse="pass"), judged("t2", terse="pass"))

    with CaptureQueriesContext(connection) as captured:
        follow_standing([(first.trial_id, False), (second.trial_id, True)])
    assert len(captured) == 1
    with CaptureQueriesContext(connection) as captured:
        follow_standing([])
    assert len(captured) == 0
    rows = Dispute.objects.order_by("pk").values_list("stands", flat=True)
    assert list(rows) == [False, True]


def test_many_graders_are_bounded_and_counted(cast: Cast) -> None:
    judges: dict[str, Any] = {f"judge {n:02}": "pass" for n in range(60)}

    (dispute,) = disputed(cast, judged(**judges))

    assert len(dispute.judges) == len(dispute.says["judges"]) == MOST_JUDGES
    assert len(dispute.says["sides"]) == MOST_SIDES
    assert dispute.says["n_more"] == 61 - MOST_SIDES


def test_hostile_names_are_cut_and_stored(cast: Cast) -> None:
    name, criterion = "=HYPERLINK(1)\u202e" + "x" * 490, "<b>\u202e" + "c" * 500
    given = [
        verdict("pass", criterion=criterion, grader=name, kind="model", grader_version="v" * 500),
        verdict("fail", criterion=criterion, grader="other", kind="model"),
    ]

    (dispute,) = disputed(cast, record("t1", 0, verdicts=given))

    assert dispute.criterion == criterion
    assert dispute.judges == [judge_key(name, "v" * 500), judge_key("other", "")]
    assert dispute.says["sides"][0]["grader"] == name[:LONGEST_GRADER]
    assert dispute.says["sides"][0]["version"] == "v" * LONGEST_GRADER
    assert json.loads(dispute.judges[0]) == [name, "v" * 500]


def test_a_long_rubric_version_is_cut(cast: Cast) -> None:
    (dispute,) = disputed(cast, judged(code=None, criterion="tone", terse="pass", long="fail"))
    trial = dispute.trial
    verdicts = list(given_verdicts([trial.pk])[trial.pk])
    (asked,) = requirements_without_contract(verdicts)
    named = replace(asked, rubric_version="r" * 300)
    one = replace(
        _decided(trial, verdicts), decision=disposition_of(TrialFacts(), (named,), verdicts)
    )

    follow_disputes([one], now=NOW)

    assert facts(dispute)["rubric_version"] == "r" * LONGEST_VERSION


@pytest.mark.parametrize("n", [1, 3])
def test_statements_are_few_however_many_trials(cast: Cast, n: int) -> None:
    ingest(cast.system, [judged(f"t{k}", terse="pass") for k in range(n)])
    trials = list(Trial.objects.filter(system=cast.system))
    Dispute.objects.all().delete()
    decided = [_decided(trial) for trial in trials]

    with CaptureQueriesContext(connection) as captured:
        assert follow_disputes(decided, now=NOW) == n
    assert len(captured) == 1  # and one COPY
    Dispute.objects.update(state="over")
    with CaptureQueriesContext(connection) as captured:
        assert follow_disputes(decided, now=NOW) == n
    assert len(captured) == 2
    with CaptureQueriesContext(connection) as captured:
        assert follow_disputes([], now=NOW) == 0
    assert len(captured) == 0


def _decided(trial: Trial, given: list[GivenVerdict] | None = None) -> DecidedDisputes:
    verdicts = list(given_verdicts([trial.pk])[trial.pk]) if given is None else given
    return DecidedDisputes(
        trial_id=trial.pk,
        system_id=trial.system_id,
        task_id=trial.task_id,
        release_id=trial.release_id,
        stands=True,
        decision=disposition_of(TrialFacts(), requirements_without_contract(verdicts), verdicts),
        verdicts=verdicts,
        adjudications=(),
        evidence_order=0,
    )
