"""Stored trials as checks see them: whole, with additions, a few at a time."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.common import blobs
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.rules import NOW
from traces.core.additions import Addition, StoredEvidence
from traces.core.records import TrialStatus
from traces.core.transcript import transcript_of
from traces.models import EvidenceAddition, Trial
from traces.selectors import trial_evidence as selector
from traces.selectors.trial_evidence import trial_evidence
from traces.services.additions import add_evidence

pytestmark = pytest.mark.django_db


def ids() -> list[int]:
    return list(Trial.objects.order_by("label").values_list("pk", flat=True))


def test_a_trial_is_read_as_it_was_recorded(cast: Cast) -> None:
    one = record(
        facts={"order": "A-1"},
        initial_state={"n": 1},
        final_state={"n": 2.5},
        expected_state={"n": 3},
        usage={"cost_usd": 0.1, "input_tokens": 3, "output_tokens": 4},
        started_at="2026-11-30T10:00:00Z",
        ended_at="2026-11-30T10:00:01.5Z",
    )
    ingest(cast.system, [one])
    (found,) = trial_evidence(ids())

    messages = tuple(one["messages"])
    assert found.recorded == StoredEvidence(
        TrialStatus.COMPLETED,
        messages,
        transcript_of(messages),
        {"order": "A-1"},
        {"n": 1},
        {"n": 2.5},
        {"n": 3},
        Decimal("0.1"),
        7,
        Decimal("1.5"),
    )
    trial = Trial.objects.get()
    assert (found.trial_pk, found.task_pk, found.digest) == (trial.pk, trial.task_id, trial.digest)
    assert (found.evidence_order, found.evidence(0)) == (0, found.recorded)
    assert found.evidence_digest(0) == trial.digest


def test_what_was_not_recorded_is_none(cast: Cast) -> None:
    ingest(cast.system, [record(facts=["odd"], usage={"input_tokens": 3}, error="died")])
    (found,) = trial_evidence(ids())
    assert found.recorded == StoredEvidence(
        TrialStatus.ERROR, found.recorded.messages, found.recorded.steps
    )


def test_evidence_grows_by_its_additions(cast: Cast) -> None:
    ingest(cast.system, [record()])
    trial = Trial.objects.get()
    for addition in (Addition(final_state={"n": 1}), Addition(tokens=5)):
        add_evidence(trial, addition, source="api", reason="lost", by=cast.engineer, now=NOW)
    (found,) = trial_evidence(ids())

    assert found.evidence_order == 2
    assert [(found.evidence(n).final_state, found.evidence(n).tokens) for n in range(3)] == [
        (None, None),
        ({"n": 1}, None),
        ({"n": 1}, 5),
    ]
    assert len({found.evidence_digest(n) for n in range(3)}) == 3


def test_stored_evidence_that_is_not_whole_is_an_error_of_ours(cast: Cast) -> None:
    ingest(cast.system, [record()])
    trial = Trial.objects.get()
    EvidenceAddition.objects.create(
        trial=trial, order=1, parts=[], content=blobs.pack({}), source="s", reason="r",
        digest=trial.digest, by=cast.engineer, added_at=NOW,
    )  # fmt: skip
    with pytest.raises(ValueError, match="not whole: It adds nothing"):
        list(trial_evidence(ids()))


def test_trials_come_in_the_order_asked_in_few_queries(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(cast.system, [record(trial=n) for n in range(5)])
    wanted = ids()[::-1]
    with CaptureQueriesContext(connection) as seen:
        assert [one.trial_pk for one in trial_evidence([*wanted, wanted[0], -1])] == wanted
    assert len(seen) == 4

    for name, value, n_queries in (("MOST_TRIALS", 2, 10), ("MOST_BYTES", 1, 16)):
        with monkeypatch.context() as patch, CaptureQueriesContext(connection) as seen:
            patch.setattr(selector, name, value)
            assert [one.trial_pk for one in trial_evidence(wanted)] == wanted
        assert len(seen) == n_queries
    assert list(trial_evidence([])) == []
