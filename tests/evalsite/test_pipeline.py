"""Uploads on their way to trials, verdicts, dispositions and figures."""

import threading
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from evalsite import pipeline
from evalsite.pipeline import process_upload
from reviews.models import Verdict, WaitingVerdict
from tests.support.cast import Cast
from tests.support.evidence import ingest, jsonl, ledger, receive, record, verdict
from traces.models import (
    LineOutcome,
    Release,
    Run,
    TaskFigures,
    Trajectory,
    TranscriptChunk,
    Trial,
    TrialDisposition,
    UploadJob,
    UploadLine,
    UploadState,
)
from traces.services.reading import Order

pytestmark = pytest.mark.django_db


def dispositions() -> dict[tuple[str, str, int], str]:
    rows = TrialDisposition.objects.values_list(
        "trial__task__task_id", "trial__label", "trial__attempt", "value"
    )
    return {(task, label, attempt): value for task, label, attempt, value in rows}


def figures(task_id: str, release: str | None = None) -> tuple[int, int, int, int, int]:
    row = TaskFigures.objects.get(task__task_id=task_id, release__name=release)
    return (row.n_pass, row.n_fail, row.n_unresolved, row.n_error, row.n_run)


def test_trials_are_stored_decided_and_counted(cast: Cast) -> None:
    job = ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, verdicts=[verdict("fail")]),
            record("t1", 2, verdicts=[]),
            record("t1", 3, error="sandbox lost"),
            record("t2", 0, calls=[("cancel_order", {"order": "A-1"})]),
        ],
    )

    assert ledger(job) == (5, 5, 0, 0, 0)
    assert dispositions() == {
        ("t1", "0", 1): "pass",
        ("t1", "1", 1): "fail",
        ("t1", "2", 1): "unresolved",
        ("t1", "3", 1): "harness_error",
        ("t2", "0", 1): "pass",
    }
    assert figures("t1", "1.0") == (1, 1, 1, 1, 4)
    assert figures("t1") == (1, 1, 1, 1, 4)
    assert figures("t2", "1.0") == (1, 0, 0, 0, 1)


def test_the_same_again_changes_nothing(cast: Cast) -> None:
    records = [record("t1", n) for n in range(3)]
    ingest(cast.system, records)

    again = ingest(cast.system, records)

    assert ledger(again) == (3, 0, 3, 0, 0)
    assert Trial.objects.count() == 3
    assert Verdict.objects.count() == 3


def test_other_content_under_the_same_identity_is_refused_and_the_first_stays(
    cast: Cast,
) -> None:
    ingest(cast.system, [record("t1", 0)])
    before = Trial.objects.get().digest

    job = ingest(cast.system, [record("t1", 0, calls=[("other_tool", {})])])

    assert ledger(job) == (1, 0, 0, 1, 0)
    assert Trial.objects.get().digest == before
    line = UploadLine.objects.get(upload=job.upload)
    assert (line.outcome, line.number, line.code) == (
        LineOutcome.CONFLICT.value,
        1,
        "trial-conflict",
    )
    assert "trial '0'" in line.sentence


def test_a_resent_trial_cannot_turn_a_fail_into_a_pass(cast: Cast) -> None:
    job = ingest(
        cast.system,
        [record("t1", 0, verdicts=[verdict("fail")]), record("t1", 0, verdicts=[verdict("pass")])],
    )

    assert ledger(job) == (2, 1, 0, 1, 0)
    assert list(Verdict.objects.values_list("value", flat=True)) == ["fail"]
    assert dispositions() == {("t1", "0", 1): "fail"}


def test_a_verdict_with_an_id_of_its_own_is_added_to_a_stored_trial(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("pass")])])

    job = ingest(cast.system, [record("t1", 0, verdicts=[verdict("fail", id="second look")])])

    assert ledger(job) == (1, 1, 0, 0, 0)
    assert dispositions() == {("t1", "0", 1): "fail"}


def test_a_further_attempt_follows_a_harness_error_only(cast: Cast) -> None:
    job = ingest(
        cast.system,
        [
            record("t1", 0, error="time-out"),
            record("t1", 0, attempt=2),
            record("t1", 0, attempt=3),
        ],
    )

    assert ledger(job) == (3, 2, 0, 1, 0)
    assert figures("t1") == (1, 0, 0, 0, 1)
    stands = TrialDisposition.objects.order_by("trial__attempt").values_list("stands", flat=True)
    assert list(stands) == [False, True]


def test_an_earlier_attempt_that_comes_late_must_be_a_harness_error(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, attempt=2)])

    job = ingest(
        cast.system, [record("t1", 0, attempt=1), record("t1", 0, attempt=1, error="lost")]
    )

    assert ledger(job) == (2, 1, 0, 1, 0)
    assert dispositions() == {("t1", "0", 1): "harness_error", ("t1", "0", 2): "pass"}
    assert figures("t1") == (1, 0, 0, 0, 1)


def early(word: str = "fail", **more: Any) -> dict[str, Any]:
    return {"record": "verdicts", "task_id": "t1", "trial": 0, "verdicts": [verdict(word, **more)]}


def test_verdicts_wait_for_their_trial_and_attach_when_it_comes(cast: Cast) -> None:
    first = ingest(cast.system, [early(), early(), early("pass", criterion="tone", kind="judge")])
    assert (ledger(first), first.n_waiting) == ((3, 2, 1, 0, 0), 2)

    ingest(cast.system, [record("t1", 0, verdicts=[])])

    assert WaitingVerdict.objects.filter(attached_at=None).count() == 0
    assert Verdict.objects.count() == 2
    assert dispositions() == {("t1", "0", 1): "fail"}


def agent(version: str) -> dict[str, Any]:
    return {"agent": {"name": "a", "version": version}}


@pytest.mark.parametrize("versions", [("1.0", "2.0"), ("2.0", "1.0")])
def test_waiting_verdicts_find_the_trial_of_their_release(
    versions: tuple[str, str], cast: Cast
) -> None:
    named = {"external_id": "sim-1"}
    ingest(
        cast.system,
        [
            early("fail") | agent("1.0"),
            early("pass") | agent("2.0"),
            early("fail", criterion="tone") | named | agent("1.0"),
            early("pass", criterion="tone") | named | agent("2.0"),
        ],
        release=None,
    )

    trials = [record("t1", 0, verdicts=[], **named) | agent(version) for version in versions]
    ingest(cast.system, trials, release=None)

    assert WaitingVerdict.objects.filter(attached_at=None).count() == 0
    found = Verdict.objects.values_list("trial__release__name", "criterion__name", "value")
    assert set(found) == {
        ("1.0", "outcome", "fail"),
        ("2.0", "outcome", "pass"),
        ("1.0", "tone", "fail"),
        ("2.0", "tone", "pass"),
    }


def test_a_verdict_that_names_several_trials_that_come_at_once_waits(cast: Cast) -> None:
    ingest(cast.system, [early("fail")], release=None)

    trials = [record("t1", 0, verdicts=[]) | agent(version) for version in ("1.0", "2.0")]
    ingest(cast.system, trials, release=None)

    assert (WaitingVerdict.objects.filter(attached_at=None).count(), Verdict.objects.count()) == (
        1,
        0,
    )


def test_verdicts_for_a_stored_trial_decide_it_anew(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=[])])
    assert dispositions() == {("t1", "0", 1): "unresolved"}

    job = ingest(cast.system, [early("pass")])

    assert (ledger(job), job.n_waiting) == ((1, 1, 0, 0, 0), 0)
    assert dispositions() == {("t1", "0", 1): "pass"}
    assert figures("t1") == (1, 0, 0, 0, 1)


def test_one_bad_line_takes_no_good_one_with_it(cast: Cast) -> None:
    body = jsonl([record("t1", 0)]) + b'{"task_id": "t1", "trial": \n' + jsonl([record("t1", 1)])

    job = ingest(cast.system, body)

    assert ledger(job) == (3, 2, 0, 0, 1)
    line = UploadLine.objects.get(upload=job.upload)
    assert (line.outcome, line.number) == (LineOutcome.REFUSED.value, 2)


def test_a_record_of_another_release_is_refused_by_name(cast: Cast) -> None:
    job = ingest(cast.system, [record("t1", 0, agent={"name": "a", "version": "2.0"})])

    assert ledger(job) == (1, 0, 0, 0, 1)
    line = UploadLine.objects.get(upload=job.upload)
    assert (line.place, line.code) == ("agent.version", "other-release")


def test_records_name_their_own_releases_when_the_upload_names_none(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, agent={"name": "a", "version": "2.0"}),
            record("t1", 0, agent={"name": "a", "version": "2.1"}),
            record("t1", 1, agent={"name": "a"}),
        ],
        release=None,
    )

    assert set(Trial.objects.values_list("release__name", "label")) == {
        ("2.0", "0"),
        ("2.1", "0"),
        ("", "1"),
    }
    assert Release.objects.get(name="").is_unversioned


def test_runs_come_from_the_upload_else_the_record_else_the_default(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, run="nightly"), record("t1", 1)])
    ingest(cast.system, [record("t1", 2, run="nightly")], run="manual")

    assert set(Run.objects.values_list("name", flat=True)) == {"nightly", "default", "manual"}


def test_an_unreadable_upload_fails_with_a_sentence(cast: Cast) -> None:
    job = ingest(cast.system, b"<html><body>502 Bad Gateway</body></html>")

    assert job.state == UploadState.FAILED.value
    assert "HTML" in job.failure
    assert Trial.objects.count() == 0


def test_production_traces_and_faults_stand_outside_the_figures(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, environment="production"),
            record("t1", 2, fault={"kind": "timeout", "step": 2}),
        ],
    )

    row = TaskFigures.objects.get(task__task_id="t1", release=None)
    assert (row.n_run, row.n_pass, row.n_left_out) == (1, 1, 2)


def test_equal_trajectories_are_stored_once(cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", n, calls=[("calc", {"x": n % 2}), ("act", {})]) for n in range(6)],
    )

    assert Trial.objects.count() == 6
    assert Trajectory.objects.count() == 2


def test_a_long_transcript_is_kept_in_stretches(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=[("get", {"n": n}) for n in range(300)])])

    chunks = TranscriptChunk.objects.order_by("first_step").values_list("first_step", "n_steps")
    assert list(chunks) == [(1, 200), (201, 200), (401, 200), (601, 2)]


def test_a_killed_job_goes_on_behind_its_checkpoint(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "Order", partial(Order, records=4))
    upload = receive(cast.system, jsonl(record("t1", n) for n in range(10)))
    store, calls = pipeline._store, []

    def dies_at_the_second_batch(*args: Any) -> set[int]:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return store(*args)

    monkeypatch.setattr(pipeline, "_store", dies_at_the_second_batch)
    with pytest.raises(KeyboardInterrupt):
        process_upload(upload.pk)
    assert UploadJob.objects.get(upload=upload).n_read == 4

    process_upload(upload.pk)

    job = UploadJob.objects.get(upload=upload)
    assert (ledger(job), job.state) == ((10, 10, 0, 0, 0), UploadState.DONE.value)
    assert Trial.objects.count() == 10


def test_a_job_that_stops_again_and_again_is_parked_with_a_reason(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = receive(cast.system, jsonl([record("t1", 0)]))

    def breaks(*_: Any) -> set[int]:
        raise RuntimeError

    monkeypatch.setattr(pipeline, "_store", breaks)
    for _ in range(pipeline.MOST_TRIES):
        with pytest.raises(RuntimeError):
            process_upload(upload.pk)

    process_upload(upload.pk)

    job = UploadJob.objects.get(upload=upload)
    assert job.state == UploadState.FAILED.value
    assert "stopped 5 times" in job.failure


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_store_everything_once(cast: Cast) -> None:
    upload = receive(cast.system, jsonl(record("t1", n) for n in range(40)))

    def work() -> None:
        try:
            process_upload(upload.pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    process_upload(upload.pk)

    job = UploadJob.objects.get(upload=upload)
    assert (ledger(job), job.state) == ((40, 40, 0, 0, 0), UploadState.DONE.value)
    assert Trial.objects.count() == 40
    assert figures("t1") == (40, 0, 0, 0, 40)


def test_declared_trials_that_never_came_are_seen(cast: Cast) -> None:
    release = Release.objects.create(system=cast.system, name="1.0")
    pipeline.declare_run(
        release, "nightly", trials=3, task_ids=["t1", "t2"], by=cast.engineer, now=timezone.now()
    )
    assert TaskFigures.objects.get(task__task_id="t2", release=release).n_missing == 3

    ingest(cast.system, [record("t1", 0), record("t1", 1)], run="nightly")

    missing = TaskFigures.objects.filter(release=release).values_list("task__task_id", "n_missing")
    assert dict(missing) == {"t1": 1, "t2": 3}
    assert figures("t1") == (2, 0, 0, 0, 2)


def test_a_declaration_without_tasks_covers_those_that_its_trials_name(cast: Cast) -> None:
    release = Release.objects.create(system=cast.system, name="1.0")
    pipeline.declare_run(release, "nightly", trials=5, by=None, now=timezone.now())

    ingest(cast.system, [record("t1", 0), record("t9", 0)], run="nightly")

    missing = TaskFigures.objects.filter(release=None).values_list("task__task_id", "n_missing")
    assert dict(missing) == {"t1": 4, "t9": 4}


def test_a_waiting_verdict_that_contradicts_its_trial_is_noted(cast: Cast) -> None:
    ingest(cast.system, [early("fail", id="v1")])

    job = ingest(cast.system, [record("t1", 0, verdicts=[verdict("pass", id="v1")])])

    assert list(Verdict.objects.values_list("value", flat=True)) == ["pass"]
    line = UploadLine.objects.get(upload=job.upload)
    assert (line.outcome, line.code) == (LineOutcome.NOTE.value, "verdict-conflict")
