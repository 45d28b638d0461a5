"""Hints, the sweeper, and what it finds."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError
from django.utils import timezone

from evalsite import tasks
from evalsite.celery import app
from tests.support.cast import Cast
from tests.support.evidence import jsonl, receive, record
from traces.models import UploadJob, UploadState
from traces.services.uploads import uploads_root
from traces.tasks import PROCESS_UPLOAD, hint_upload, send_hint

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[int]]]:
    messages: list[tuple[str, list[int]]] = []

    def send_task(_: Any, name: str, args: list[int], **__: Any) -> None:
        messages.append((name, args))

    monkeypatch.setattr("celery.app.base.Celery.send_task", send_task)
    return messages


def test_a_hint_goes_out_when_the_transaction_has_committed(
    sent: list[tuple[str, list[int]]], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        hint_upload(7)
        assert sent == []
    assert sent == [(PROCESS_UPLOAD, [7])]


def test_a_broker_that_is_away_fails_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise ConnectionError("refused")

    monkeypatch.setattr("celery.app.base.Celery.send_task", away)

    assert send_hint(7) is False
    assert [line.getMessage() for line in caplog.records] == ["hint not sent"]


def test_a_hint_makes_a_worker_read_the_upload(cast: Cast) -> None:
    upload = receive(cast.system, jsonl([record("t1", 0)]))
    for _ in range(2):
        app.tasks[PROCESS_UPLOAD].apply(args=[upload.pk], throw=True)
    job = UploadJob.objects.get(upload=upload)
    assert (job.state, job.n_stored) == (UploadState.DONE.value, 1)


def test_a_database_that_goes_away_leaves_the_upload_to_the_sweeper(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away(_: int) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(tasks, "process_upload", away)

    app.tasks[PROCESS_UPLOAD].apply(args=[7], throw=True)

    assert [line.getMessage() for line in caplog.records] == ["upload waits for the database"]


def test_the_sweeper_sends_hints_again_for_what_waits(
    cast: Cast, sent: list[tuple[str, list[int]]]
) -> None:
    waiting, fresh, done = (
        receive(cast.system, jsonl([record("t1", n)]), file_name=f"{n}") for n in range(3)
    )
    long_ago = timezone.now() - timedelta(seconds=tasks.STALE_SECONDS + 1)
    UploadJob.objects.filter(upload__in=[waiting, done]).update(touched_at=long_ago)
    UploadJob.objects.filter(upload=done).update(state=UploadState.DONE.value)

    tasks.sweep()

    assert sent == [(PROCESS_UPLOAD, [waiting.pk])]
    assert fresh.pk != waiting.pk


def test_the_sweeper_removes_what_broken_off_uploads_left(
    cast: Cast, sent: list[tuple[str, list[int]]]
) -> None:
    kept = receive(cast.system, jsonl([record("t1", 0)]))
    old, young = uploads_root() / "staged-old", uploads_root() / "staged-young"
    for path in (old, young):
        path.write_bytes(b"x")
    yesterday = (timezone.now() - timedelta(days=1, seconds=1)).timestamp()
    os.utime(old, (yesterday, yesterday))

    tasks.sweep()

    assert not old.exists()
    assert young.exists()
    assert (uploads_root() / kept.stored_as).exists()
    young.unlink()


def test_every_scheduled_job_is_known() -> None:
    scheduled = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    app.loader.import_default_modules()
    assert scheduled == {"evalsite.tasks.heartbeat", "evalsite.sweep"}
    assert scheduled <= set(app.tasks)
