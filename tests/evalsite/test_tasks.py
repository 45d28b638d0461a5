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
from evalsite.pipeline import process_upload
from reviews.models import Regrade
from tests.support.cast import Cast
from tests.support.evidence import jsonl, receive, record
from tests.support.regrades import approved as approved_contracts
from tests.support.rules import approved
from traces.core.rule_changes import RuleChange
from traces.core.trajectory import ToolKind
from traces.models import (
    ContractPreview,
    RulesJob,
    RulesOutcome,
    RulesPreview,
    RulesSuggestions,
    UploadJob,
    UploadState,
    WorkState,
)
from traces.services.rules import ask_suggestions, decide_rules, propose_rules, start_preview
from traces.services.uploads import uploads_root
from traces.tasks import (
    PREVIEW_CONTRACTS,
    PREVIEW_RULES,
    PROCESS_UPLOAD,
    RECOMPUTE_RULES,
    REGRADE,
    SUGGEST_RULES,
    hint_contract_preview,
    hint_preview,
    hint_recompute,
    hint_regrade,
    hint_suggestions,
    hint_upload,
    send_hint,
)

pytestmark = pytest.mark.django_db


RULES, MORE_RULES, LAST_RULES = (
    RuleChange(kinds=((tool, ToolKind.READ),)) for tool in ("get_order", "pay", "wait")
)


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


def test_hints_of_work_go_out_when_the_transaction_has_committed(
    sent: list[tuple[str, list[int]]], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        hint_recompute(1)
        hint_preview(2)
        hint_suggestions(3)
        hint_regrade(4)
        hint_contract_preview(5)
        assert sent == []
    assert sent == [
        (RECOMPUTE_RULES, [1]),
        (PREVIEW_RULES, [2]),
        (SUGGEST_RULES, [3]),
        (REGRADE, [4]),
        (PREVIEW_CONTRACTS, [5]),
    ]


def test_the_sweeper_sends_hints_again_for_work_on_rules(
    cast: Cast, sent: list[tuple[str, list[int]]]
) -> None:
    version, other = approved(cast, RULES), approved(cast, MORE_RULES)
    fresh = start_preview(cast.system, LAST_RULES, by=cast.engineer, now=timezone.now())
    stale = start_preview(cast.system, LAST_RULES, by=cast.engineer, now=timezone.now())
    asked = ask_suggestions(cast.system, now=timezone.now())
    long_ago = timezone.now() - timedelta(seconds=tasks.STALE_SECONDS + 1)
    RulesJob.objects.update(touched_at=long_ago, state=WorkState.WORKING.value)
    RulesJob.objects.filter(rules=other).update(state=WorkState.CANCELLED.value)
    RulesPreview.objects.exclude(pk=fresh.pk).update(touched_at=long_ago)
    RulesSuggestions.objects.update(touched_at=long_ago)

    tasks.sweep()

    assert sent == [
        (RECOMPUTE_RULES, [version.pk]),
        (PREVIEW_RULES, [stale.pk]),
        (SUGGEST_RULES, [asked.pk]),
    ]


def test_hints_make_a_worker_do_the_work_on_rules(
    cast: Cast, sent: list[tuple[str, list[int]]]
) -> None:
    process_upload(receive(cast.system, jsonl([record("t1", 0)])).pk)
    preview = start_preview(cast.system, RULES, by=cast.engineer, now=timezone.now())
    app.tasks[PREVIEW_RULES].apply(args=[preview.pk], throw=True)
    version = propose_rules(
        RulesPreview.objects.get(), reason="why", by=cast.engineer, now=timezone.now()
    )
    decide_rules(
        version,
        outcome=RulesOutcome.APPROVED,
        reason="why",
        by=cast.owner,
        now=timezone.now(),
    )
    later = approved(cast, MORE_RULES)

    for rules in (version, later):
        app.tasks[RECOMPUTE_RULES].apply(args=[rules.pk], throw=True)
        app.tasks[SUGGEST_RULES].apply(args=[rules.pk], throw=True)

    assert sent == [(RECOMPUTE_RULES, [later.pk])]
    states = {row.rules_id: row.state for row in RulesJob.objects.all()}
    assert states == {version.pk: "done", later.pk: "done"}
    cast.system.refresh_from_db()
    assert cast.system.shown_rules == later
    assert RulesSuggestions.objects.get(rules=later).state == "done"


CONTRACT = "task: t1\nrequired: [{id: looked, call: get_order}]"


def drafted(cast: Cast) -> ContractPreview:
    return ContractPreview.objects.create(
        system=cast.system,
        texts={"t1": CONTRACT},
        by=cast.engineer,
        asked_at=timezone.now(),
        touched_at=timezone.now(),
    )


def test_the_sweeper_sends_hints_again_for_work_on_contracts(
    cast: Cast, sent: list[tuple[str, list[int]]]
) -> None:
    preview, regrade = drafted(cast), approved_contracts(cast, CONTRACT)
    long_ago = timezone.now() - timedelta(seconds=tasks.STALE_SECONDS + 1)
    Regrade.objects.update(touched_at=long_ago)
    ContractPreview.objects.update(touched_at=long_ago)
    drafted(cast)

    tasks.sweep()

    assert sent == [(REGRADE, [regrade.pk]), (PREVIEW_CONTRACTS, [preview.pk])]


def test_hints_make_a_worker_do_the_work_on_contracts(
    cast: Cast, sent: list[tuple[str, list[int]]]
) -> None:
    process_upload(receive(cast.system, jsonl([record("t1", 0)])).pk)
    preview = drafted(cast)
    first, second = approved_contracts(cast, CONTRACT), approved_contracts(cast, CONTRACT)

    app.tasks[PREVIEW_CONTRACTS].apply(args=[preview.pk], throw=True)
    for regrade in (first, second):
        app.tasks[REGRADE].apply(args=[regrade.pk], throw=True)

    assert sent == [(REGRADE, [second.pk])]
    assert ContractPreview.objects.get().state == "done"
    assert {row.state for row in Regrade.objects.all()} == {"done"}


@pytest.mark.parametrize(
    ("task", "work"),
    [
        (RECOMPUTE_RULES, "recompute"),
        (PREVIEW_RULES, "work_out_preview"),
        (SUGGEST_RULES, "work_out_suggestions"),
        (REGRADE, "work_out_regrade"),
        (PREVIEW_CONTRACTS, "work_out_contract_preview"),
    ],
)
def test_a_database_that_goes_away_leaves_work_on_rules_to_the_sweeper(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, task: str, work: str
) -> None:
    def away(_: int) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr(tasks, work, away)

    app.tasks[task].apply(args=[7], throw=True)

    (line,) = caplog.records
    assert (line.getMessage(), line.task, line.row) == ("work waits for the database", task, 7)


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
