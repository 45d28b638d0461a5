"""The sample: loaded once, finished after a kill, and under its rules from the first trial on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from evalsite import sample_contracts, sample_loader
from evalsite.demo_password import stored_password
from evalsite.refund_desk import contract_texts, people_said
from evalsite.sample_loader import SAMPLES, load_sample
from reviews.models import Case, Regrade, Verdict, WaitingVerdict
from reviews.services.contracts import decide_contracts
from traces.models import (
    ContractOutcome,
    ContractPreview,
    ContractProposal,
    ContractVersion,
    Member,
    Release,
    RulesVersion,
    Run,
    RunTask,
    System,
    Task,
    TrajectoryPaths,
    Trial,
    TrialDisposition,
    Upload,
    UploadJob,
    User,
)

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def without_reviews_and_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reviewers and owners do in the sample has tests of its own."""
    monkeypatch.setattr(sample_loader, "load_reviews", lambda *_: None)
    monkeypatch.setattr(sample_loader, "load_gates", lambda *_, **__: None)


@pytest.fixture(autouse=True)
def data_folder(settings: Settings, tmp_path: Path) -> Path:
    """Where the password of the demo's owner is kept."""
    settings.EVALSITE_DATA = tmp_path
    return tmp_path


def counts() -> dict[str, int]:
    models = (System, Release, Run, Task, Trial, Verdict, Upload, User, Member, RulesVersion)
    models += (ContractPreview, ContractProposal, ContractVersion, Regrade, Case)
    return {model.__name__: model._default_manager.count() for model in models}


def test_the_sample_is_loaded_once_and_a_second_load_changes_nothing(data_folder: Path) -> None:
    said: list[str] = []
    load_sample(said.append)

    assert len(said) == 17
    ledgers = UploadJob.objects.values_list("state", "n_conflict", "n_refused", "n_waiting")
    assert set(ledgers) == {("done", 0, 0, 0)}
    loaded = counts()
    assert (loaded["System"], loaded["Release"], loaded["Trial"]) == (3, 8, 574)
    judged = Verdict.objects.filter(
        trial__system__slug="tau2-airline",
        grader_version__grader__kind="model",
        criterion__name="outcome",
    )
    assert judged.count() == 200
    assert judged.values("grader_version__grader__name").distinct().count() == 4
    assert not WaitingVerdict.objects.filter(attached_at=None).exists()
    assert set(TrajectoryPaths.objects.values_list("rules__number", flat=True)) == {2}
    with_password = [user for user in User.objects.all() if user.has_usable_password()]
    assert [user.username for user in with_password] == ["owner"]
    assert with_password[0].check_password(stored_password(data_folder))
    for system in System.objects.all():
        is_made_up = system.slug == "refund-desk"
        assert ("Made up" if is_made_up else "MIT") in system.source_note
        assert ("made up" in system.name.lower()) == is_made_up
        roles = {m.user.username: m.role for m in system.members.all()}
        further = dict.fromkeys(("reviewer-2", "reviewer-3"), "reviewer")
        assert roles == further | {r: r for r in ("engineer", "reviewer", "owner", "viewer")}

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

    assert len(said) == 15
    assert Trial.objects.count() == 574
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
        ("desk-1.0", "production-november"): (None, 0),
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

    assert Trial.objects.count() == 224
    assert Run.objects.filter(declared_trials__isnull=False).count() == 3


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the made-up system is loaded."""
    monkeypatch.setattr(sample_loader, "SAMPLES", SAMPLES[1:2])


@pytest.mark.usefixtures("made_up")
def test_the_made_up_contracts_come_into_effect_by_proposal_and_approval() -> None:
    load_sample(lambda _: None)

    proposals = ContractProposal.objects.order_by("number")
    found = [
        (
            proposal.created_by.username,
            proposal.versions.count(),
            (decision.by.username, decision.outcome) if decision else None,
            (regrade.state, regrade.n_done) if regrade else None,
        )
        for proposal in proposals
        for decision in [getattr(proposal, "decision", None)]
        for regrade in [Regrade.objects.filter(proposal=proposal).first()]
    ]
    assert found == [
        ("engineer", 13, ("reviewer", "approved"), ("done", 224)),
        ("engineer", 1, ("reviewer", "approved"), ("done", 20)),
        ("engineer", 1, None, None),
    ]
    in_effect = Task.objects.values_list("task_id", "contract__number", "contract__text")
    assert {task: text for task, _, text in in_effect} == contract_texts()
    assert {task for task, number, _ in in_effect if number == 2} == {"refund_fare_difference"}
    waiting = ContractPreview.objects.get(proposed_as__decision=None)
    assert sum(task["n_trials"] for task in waiting.result["tasks"]) == 10


@pytest.mark.usefixtures("made_up")
def test_first_start_shows_every_disposition_class_harm_and_most_next_actions() -> None:
    load_sample(lambda _: None)

    rows = TrialDisposition.objects.filter(stands=True, trial__environment="test")
    values = Counter(rows.values_list("value", flat=True))
    assert values == {"pass": 116, "fail": 23, "unresolved": 22, "harness_error": 1}
    failed = Counter(name for row in rows for name in row.failed_classes)
    assert set(failed) == {"outcome", "constraint", "semantic"}
    assert Counter(tuple(row.next_actions) for row in rows if row.next_actions) == {
        ("adjudicate",): 1,
        ("calibrate_judge",): 15,
        ("clarify_contract",): 1,
        ("fix_fixture",): 1,
        ("grade",): 2,
        ("repair_evidence",): 2,
        ("rerun_trial",): 1,
    }
    attempted = Counter(harm for row in rows for harm in row.harms_attempted)
    committed = Counter(harm for row in rows for harm in row.harms_committed)
    assert attempted == {"data": 6, "service": 2, "money": 2}
    assert committed == {"data": 3, "service": 2, "money": 1}
    assert Case.objects.filter(state="open", trial__environment="test").count() == 22 + 1
    recovered = rows.filter(trial__has_fault=True).values_list("trial__task__task_id", "rule_clean")
    assert Counter(recovered) == {
        ("refund_over_limit", "pass"): 2,
        ("refund_over_limit", "fail"): 1,
        ("add_bags", "pass"): 1,
    }


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize("act", ["propose_contracts", "work_out_regrade", "decided_again"])
def test_a_load_killed_among_the_contracts_is_finished_by_the_next(
    monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    def killed(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sample_contracts, act, killed)
        load_sample(lambda _: None)

    load_sample(lambda _: None)

    assert list(Regrade.objects.order_by("number").values_list("state", "n_done")) == [
        ("done", 224),
        ("done", 20),
    ]
    assert (ContractPreview.objects.count(), ContractProposal.objects.count()) == (3, 3)
    given = Verdict.objects.filter(by__username="reviewer")
    assert given.count() == len(list(people_said()))


@pytest.mark.usefixtures("made_up")
def test_what_people_decided_since_is_left_alone() -> None:
    load_sample(lambda _: None)
    waiting = ContractProposal.objects.get(decision=None)
    decide_contracts(
        waiting,
        outcome=ContractOutcome.REJECTED,
        reason="Not now.",
        by=User.objects.get(username="owner"),
        now=timezone.now(),
    )
    before = counts()
    said: list[str] = []

    load_sample(said.append)

    assert (said, counts()) == ([], before)


@pytest.mark.usefixtures("made_up")
def test_contracts_are_left_out_where_the_demo_people_have_other_roles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sample_loader, "load_contracts", lambda *args, **more: None)
        load_sample(lambda _: None)
    Member.objects.filter(user__username="engineer").update(role="viewer")
    said: list[str] = []

    load_sample(said.append)

    assert said[-1].startswith("Refund desk (made up): the rest of the contracts is left out. Only")
    assert not ContractProposal.objects.exists()
    assert Trial.objects.count() == 224
