"""The sample: loaded once, finished after a kill, and under its rules from the first trial on."""

from __future__ import annotations

import time

import pytest

from evalsite import sample_loader
from evalsite.sample_loader import load_sample
from reviews.models import Verdict, WaitingVerdict
from traces.models import (
    Member,
    Release,
    RulesVersion,
    System,
    TrajectoryPaths,
    Trial,
    Upload,
    UploadJob,
    User,
)

pytestmark = pytest.mark.django_db


def counts() -> dict[str, int]:
    models = (System, Release, Trial, Verdict, Upload, User, Member, RulesVersion)
    return {model.__name__: model._default_manager.count() for model in models}


def test_the_sample_is_loaded_once_and_a_second_load_changes_nothing() -> None:
    said: list[str] = []
    begun = time.monotonic()
    load_sample(said.append)
    taken = time.monotonic() - begun

    assert len(said) == 10
    assert taken < 15
    ledgers = UploadJob.objects.values_list("state", "n_conflict", "n_refused", "n_waiting")
    assert set(ledgers) == {("done", 0, 0, 0)}
    loaded = counts()
    assert (loaded["System"], loaded["Release"], loaded["Trial"]) == (2, 6, 350)
    judged = Verdict.objects.filter(grader_version__grader__kind="model", criterion__name="outcome")
    assert judged.count() == 200
    assert judged.values("grader_version__grader__name").distinct().count() == 4
    assert not WaitingVerdict.objects.filter(attached_at=None).exists()
    assert set(TrajectoryPaths.objects.values_list("rules__number", flat=True)) == {2}
    assert not any(user.has_usable_password() for user in User.objects.all())
    for system in System.objects.all():
        assert "MIT" in system.source_note
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

    assert len(said) == 8
    assert Trial.objects.count() == 350
    assert set(UploadJob.objects.values_list("state", flat=True)) == {"done"}
