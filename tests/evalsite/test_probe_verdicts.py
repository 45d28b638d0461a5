"""Verdicts on probes through the door of all verdicts, and what they never become."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from reviews.core.probes import ProbeKind
from reviews.models import (
    Calibration,
    CalibrationStatus,
    Case,
    Probe,
    ProbeVerdict,
    Verdict,
    WaitingVerdict,
)
from reviews.selectors.exports import ExportSelection, csv_rows, jsonl_lines
from reviews.selectors.figures import system_figures
from reviews.selectors.probes import bundle_lines, probe_results
from tests.support.cast import Cast
from tests.support.evidence import ingest, ledger, record, verdict
from tests.support.probes import MODEL, batch_of, judged, probe_of
from traces.models import Release, Run, Task, Trial, UploadJob, UploadLine

pytestmark = pytest.mark.django_db


@pytest.fixture
def trial(cast: Cast) -> Trial:
    """A passing trial that the judge passed too."""
    said = [verdict(), verdict(grader=MODEL, kind="model", grader_version="1", score=0.9)]
    ingest(cast.system, [record("t1", 1, verdicts=said, calls=[("cancel", {"order": "A-1"})])])
    return Trial.objects.get()


def refusals(job: UploadJob) -> list[tuple[str, str]]:
    rows = UploadLine.objects.filter(upload=job.upload).order_by("pk")
    return list(rows.values_list("outcome", "code"))


def test_verdicts_on_probes_are_kept_apart_and_counted_in_the_ledger(
    cast: Cast, trial: Trial
) -> None:
    batch = batch_of(cast)
    wrong, control = (probe_of(batch, k) for k in (ProbeKind.WRONG_VALUE, ProbeKind.CONTROL))
    lines = [judged(wrong, "fail", score=0.1, evidence=[{"step": 2}]), judged(control, "satisfied")]
    before = Verdict.objects.count()

    job = ingest(cast.system, lines, release=None)

    assert ledger(job) == (2, 2, 0, 0, 0)
    assert (job.n_trials, job.n_verdicts, job.n_waiting) == (0, 2, 0)
    assert Verdict.objects.count() == before
    assert not WaitingVerdict.objects.exists()
    stored = ProbeVerdict.objects.order_by("line")
    assert [(row.probe_id, row.value, row.raw_word, row.line) for row in stored] == [
        (wrong.pk, "fail", "fail", 1),
        (control.pk, "pass", "satisfied", 2),
    ]
    assert json.loads(stored[0].extra) == {"evidence": [{"step": 2}]}
    assert stored[0].upload == job.upload


def test_the_same_again_is_a_duplicate_and_other_content_a_conflict(
    cast: Cast, trial: Trial
) -> None:
    probe = probe_of(batch_of(cast), ProbeKind.CONTROL)
    first = judged(probe, "pass", id="v1")
    ingest(cast.system, [first], release=None)

    again = ingest(cast.system, [first, judged(probe, "fail", id="v1"), first], release="2.0")

    assert ledger(again) == (3, 0, 2, 1, 0)
    assert refusals(again) == [("conflict", "verdict-conflict")]
    assert [row.value for row in ProbeVerdict.objects.all()] == ["pass"]


def test_a_verdict_names_its_probe_by_task_id_too(cast: Cast, trial: Trial) -> None:
    probe = probe_of(batch_of(cast), ProbeKind.CONTROL)
    line = judged(probe) | {"external_id": None, "task_id": str(probe.uuid), "trial": 1}

    assert ledger(ingest(cast.system, [line], release=None)) == (1, 1, 0, 0, 0)
    assert ProbeVerdict.objects.get().probe == probe


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"kind": "code"}, "probe-not-a-judge"),
        ({"kind": "human"}, "probe-not-a-judge"),
        ({"criterion": "tone"}, "probe-other-criterion"),
    ],
)
def test_a_probe_takes_judges_on_its_criterion_alone(
    cast: Cast, trial: Trial, more: dict[str, Any], code: str
) -> None:
    probe = probe_of(batch_of(cast), ProbeKind.CONTROL)

    job = ingest(cast.system, [judged(probe, **more)], release=None)

    assert ledger(job) == (1, 0, 0, 0, 1)
    assert refusals(job) == [("refused", code)]
    assert not ProbeVerdict.objects.exists()
    assert not WaitingVerdict.objects.exists()


def test_a_record_keeps_its_good_verdicts_beside_refused_ones(cast: Cast, trial: Trial) -> None:
    probe = probe_of(batch_of(cast), ProbeKind.CONTROL)
    line = judged(probe)
    line["verdicts"] += [verdict(criterion="tone", grader=MODEL, kind="model"), {"kind": "model"}]

    job = ingest(cast.system, [line], release=None)

    assert ledger(job) == (1, 1, 0, 0, 0)
    assert job.n_verdicts_refused == 2
    assert ProbeVerdict.objects.count() == 1


def test_the_bundle_sent_in_as_trials_is_refused(cast: Cast, trial: Trial) -> None:
    batch = batch_of(cast)
    lines = [json.loads(line) for line in bundle_lines(batch)]
    tasks, releases = Task.objects.count(), Release.objects.count()

    renamed = {**lines[0], "external_id": "mine"}
    unnamed = {**lines[1], "task_id": "mine", "agent": {"version": "9.9"}}
    job = ingest(cast.system, [*lines, renamed, unnamed], release=None)

    n = len(lines) + 2
    assert ledger(job) == (n, 0, 0, 0, n)
    assert set(refusals(job)) >= {("refused", "is-a-probe")}
    given = ingest(cast.system, lines)
    assert ledger(given) == (len(lines), 0, 0, 0, len(lines))
    assert set(refusals(given)) == {("refused", "is-a-probe")}
    assert (Trial.objects.count(), Task.objects.count()) == (1, tasks)
    assert Release.objects.count() == releases


def test_another_systems_probe_is_no_probe_here(cast: Cast, trial: Trial) -> None:
    probe = probe_of(batch_of(cast), ProbeKind.CONTROL)

    job = ingest(cast.other_system, [judged(probe)], release=None)

    assert ledger(job) == (1, 1, 0, 0, 0)
    assert job.n_waiting == 1
    assert not ProbeVerdict.objects.exists()
    unknown = judged(probe) | {"external_id": str(uuid.uuid4())}
    assert ingest(cast.system, [unknown], release=None).n_waiting == 1


def test_probes_enter_no_figure_export_or_queue(cast: Cast, trial: Trial) -> None:
    def shown() -> tuple[object, ...]:
        selection = ExportSelection(cast.system)
        return (
            system_figures(cast.system, []),
            list(csv_rows(selection)),
            list(jsonl_lines(selection)),
            list(Case.objects.values_list("pk", "state")),
            list(Trial.objects.values_list("pk", "disposition__value")),
            list(Run.objects.values_list("name", flat=True)),
        )

    before = shown()
    batch = batch_of(cast)
    assert shown() == before
    ingest(
        cast.system,
        [judged(probe, "fail") for probe in Probe.objects.filter(batch=batch)],
        release=None,
    )
    assert ProbeVerdict.objects.count() > 4
    assert shown() == before


def test_a_wrong_word_on_a_probe_makes_the_judge_failed(cast: Cast, trial: Trial) -> None:
    batch = batch_of(cast)
    ingest(
        cast.system,
        [
            judged(probe_of(batch, ProbeKind.INJECTION), "pass"),
            judged(probe_of(batch, ProbeKind.CONTROL), "pass"),
        ],
        release=None,
    )

    version = ProbeVerdict.objects.all()[0].grader_version_id
    summary = probe_results(version, batch.criterion_id, None)
    assert (summary.n_right, summary.n_wrong, summary.has_failed) == (1, 1, True)
    row = Calibration.objects.get(grader_version=version)
    assert row.status == CalibrationStatus.FAILED.value


def test_a_word_on_the_trial_that_comes_later_decides_what_the_copies_tell(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 1)])
    batch = batch_of(cast)
    probe = probe_of(batch, ProbeKind.VERBOSE)
    ingest(cast.system, [judged(probe, "fail")], release=None)
    assert Calibration.objects.get().status == CalibrationStatus.EXPLORATORY.value

    said = verdict(grader=MODEL, kind="model", grader_version="1")
    ingest(
        cast.system,
        [{"record": "verdicts", "task_id": "t1", "trial": 1, "verdicts": [said]}],
    )

    newest = Calibration.objects.order_by("-pk")[0]
    assert newest.status == CalibrationStatus.FAILED.value
