"""The sample: loaded once, finished after a kill, and under its rules from the first trial on."""

from __future__ import annotations

import pytest

from evalsite import sample_loader
from evalsite.sample_loader import SAMPLES, load_sample
from reviews.models import Verdict, WaitingVerdict
from traces.models import (
    Member,
    Release,
    RulesVersion,
    Run,
    RunTask,
    System,
    Task,
    TrajectoryPaths,
    Trial,
    Upload,
    UploadJob,
    User,
)

pytestmark = pytest.mark.django_db


def counts() -> dict[str, int]:
    models = (System, Release, Run, Task, Trial, Verdict, Upload, User, Member, RulesVersion)
    return {model.__name__: model._default_manager.count() for model in models}


def test_the_sample_is_loaded_once_and_a_second_load_changes_nothing() -> None:
    said: list[str] = []
    load_sample(said.append)

    assert len(said) == 12
    ledgers = UploadJob.objects.values_list("state", "n_conflict", "n_refused", "n_waiting")
    assert set(ledgers) == {("done", 0, 0, 0)}
    loaded = counts()
    assert (loaded["System"], loaded["Release"], loaded["Trial"]) == (3, 8, 514)
    judged = Verdict.objects.filter(
        trial__system__slug="tau2-airline",
        grader_version__grader__kind="model",
        criterion__name="outcome",
    )
    assert judged.count() == 200
    assert judged.values("grader_version__grader__name").distinct().count() == 4
    assert not WaitingVerdict.objects.filter(attached_at=None).exists()
    assert set(TrajectoryPaths.objects.values_list("rules__number", flat=True)) == {2}
    assert not any(user.has_usable_password() for user in User.objects.all())
    for system in System.objects.all():
        is_made_up = system.slug == "refund-desk"
        assert ("Made up" if is_made_up else "MIT") in system.source_note
        assert ("made up" in system.name.lower()) == is_made_up
        roles = {m.user.username: m.role for m in system.members.all()}
        assert roles == {role: role for role in ("engineer", "reviewer", "owner", "viewer")}

    said.clear()
    load_sample(said.append)

    assert said == []
    assert counts() == loaded


def test_a_killed_load_is_finished_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    original = sample_loader.process_upload
    calls = 0

    def killed(upload_id: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        original(upload_id)

    monkeypatch.setattr(sample_loader, "process_upload", killed)
    with pytest.raises(KeyboardInterrupt):
        load_sample(lambda _: None)
    monkeypatch.setattr(sample_loader, "process_upload", original)
    said: list[str] = []
    load_sample(said.append)

    assert len(said) == 10
    assert Trial.objects.count() == 514
    assert set(UploadJob.objects.values_list("state", flat=True)) == {"done"}


def test_the_made_up_system_stands_second_with_tasks_named_and_runs_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert [sample.slug for sample in SAMPLES] == [
        "tau2-airline",
        "refund-desk",
        "tau-bench-airline",
    ]
    monkeypatch.setattr(sample_loader, "SAMPLES", SAMPLES[1:2])

    load_sample(lambda _: None)

    tasks = Task.objects.filter(system__slug="refund-desk")
    named = {task.task_id: (task.title, task.family, task.split) for task in tasks}
    assert len(named) == 13
    assert named["refund_damaged_item"] == ("Refund a damaged item", "refunds", "regression")
    assert all(all(words) for words in named.values())
    assert {task.versions.count() for task in tasks} == {1}
    runs = {
        (run.release.name, run.name): (run.declared_trials, RunTask.objects.filter(run=run).count())
        for run in Run.objects.select_related("release")
    }
    assert runs == {
        ("desk-1.0", "nightly"): (5, 13),
        ("desk-1.0", "balance"): (10, 1),
        ("desk-1.0", "gradings"): (None, 0),
        ("desk-1.1", "nightly"): (5, 13),
    }
    declared = Run.objects.filter(declared_at__isnull=False)
    assert {run.declared_by.username for run in declared if run.declared_by} == {"engineer"}
    assert all(run.begun_at == run.declared_at for run in declared)
    assert not RulesVersion.objects.get(number=2).document["rules"]


def test_a_load_killed_while_the_made_up_system_is_set_up_leaves_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def killed(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sample_loader, "SAMPLES", SAMPLES[1:2])
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sample_loader, "declare_run", killed)
        load_sample(lambda _: None)
    assert not System.objects.exists()

    load_sample(lambda _: None)

    assert Trial.objects.count() == 164
    assert Run.objects.filter(declared_trials__isnull=False).count() == 3
