"""What reviewers do in the sample: judges are held against their labels, and a dispute is decided."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pytest_django import Settings

from evalsite import sample_loader, sample_reviews
from evalsite.sample_loader import SAMPLES, load_sample
from reviews.models import (
    Adjudication,
    Calibration,
    CalibrationItem,
    Case,
    GateAlert,
    Label,
    ProbeVerdict,
    ReleaseGate,
    RubricVersion,
    ThresholdSet,
)
from traces.models import Member, Run, TrialDisposition

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refund desk alone."""
    monkeypatch.setattr(sample_loader, "SAMPLES", SAMPLES[1:2])


@pytest.fixture(autouse=True)
def data_folder(settings: Settings, tmp_path: Path) -> Path:
    """Where the password of the demo's owner is kept."""
    settings.EVALSITE_DATA = tmp_path
    return tmp_path


def counts() -> tuple[int, ...]:
    models = (RubricVersion, Label, ProbeVerdict, Adjudication, Calibration, CalibrationItem)
    return tuple(model._default_manager.count() for model in models)


def check_gates() -> None:
    """One release is blocked, one waits for evidence, and the owner may sign the third."""
    rows = ReleaseGate.objects.exclude(state="").order_by("pk")
    gates = {row.release.name: (row.state, row.is_current) for row in rows}
    found = {name: gates[name] for name in ("desk-2.0", "desk-2.1", "desk-2.2")}
    assert found == {
        "desk-2.0": ("blocked", True),
        "desk-2.1": ("waiting", True),
        "desk-2.2": ("ready", True),
    }
    assert [alert.harm for alert in GateAlert.objects.all()] == ["data"]
    for name in found:
        runs = Run.objects.filter(release__name=name)
        made = ThresholdSet.objects.order_by("-made_at")[0].in_force_from
        assert min(run.begun_at for run in runs) > made
        assert runs.filter(declared_at=None).count() == 0


def test_one_judge_is_calibrated_and_votes_and_the_other_one_failed() -> None:
    said: list[str] = []
    load_sample(said.append)

    newest: dict[str, str] = {}
    for row in Calibration.objects.select_related("grader_version__grader").order_by("pk"):
        newest[row.grader_version.grader.name] = row.status
    assert newest == {"judge lark": "calibrated", "judge wren": "failed"}
    labelled = CalibrationItem.objects.values_list("set__number", "consensus")
    assert Counter(labelled) == {(1, "pass"): 30, (1, "fail"): 30, (2, ""): 16}
    assert Label.objects.filter(item__set__number=2, by__username="reviewer-2").count() == 5
    rows = TrialDisposition.objects.filter(stands=True)
    assert not rows.filter(next_actions__contains=["calibrate_judge"]).exists()
    assert rows.filter(trial__environment="production").count() == 60
    assert Adjudication.objects.filter(label=None, by__username="reviewer-2").count() == 1
    assert Case.objects.filter(state="open", action="adjudicate").exists()
    assert said[-9:] == [
        "Refund desk (made up): rubrics",
        "Refund desk (made up): blind labels",
        "Refund desk (made up): labels that wait",
        "Refund desk (made up): probes of judges",
        "Refund desk (made up): a decided dispute",
        "Refund desk (made up): risk tiers and thresholds",
        "Refund desk (made up): desk-2.0.jsonl",
        "Refund desk (made up): desk-2.1.jsonl",
        "Refund desk (made up): desk-2.2.jsonl",
    ]
    check_gates()

    said.clear()
    before = counts()
    load_sample(said.append)

    assert (said, counts()) == ([], before)


@pytest.fixture
def without_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after the reviewers takes its time."""
    monkeypatch.setattr(sample_loader, "load_gates", lambda *_, **__: None)


@pytest.mark.usefixtures("without_gates")
def test_a_load_killed_among_the_labels_is_finished_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sample_reviews, "complete_set", killed)
        load_sample(lambda _: None)
    between = counts()
    load_sample(lambda _: None)

    assert between[:2] == (2, 0)
    assert counts()[:2] == (2, 123 + 5)


@pytest.mark.usefixtures("without_gates")
def test_reviews_are_left_out_where_the_demo_people_have_other_roles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sample_loader, "load_reviews", lambda *_: None)
        load_sample(lambda _: None)
    Member.objects.filter(user__username="reviewer").update(role="viewer")
    said: list[str] = []

    load_sample(said.append)

    assert said[-1].startswith("Refund desk (made up): blind labels are left out. Only a reviewer")
    assert not Label.objects.exists()
