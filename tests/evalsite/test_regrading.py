"""Contracts on their way into effect: graded in batches, shown task by task, previewed before."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from evalsite import contract_previews, regrading
from evalsite.background import MOST_TRIES
from evalsite.contract_previews import work_out_contract_preview
from evalsite.grading import ContractGrader
from evalsite.pipeline import process_upload
from evalsite.regrading import next_open_regrade, work_out_regrade
from reviews.core.regrades import (
    CriterionCount,
    GraderTest,
    TaskEffect,
    parse_preview,
    parse_regrade,
)
from reviews.models import CheckMark, Regrade, Verdict
from reviews.services.regrades import (
    RegradeError,
    restart_regrade,
    start_regrade,
    stop_regrade,
)
from tests.evalsite.test_grading import BEFORE, REFUND, everything, good
from tests.support.cast import Cast
from tests.support.evidence import ingest, jsonl, receive
from tests.support.regrades import NOW, approved, contract_number, in_effect
from traces.models import (
    ContractPreview,
    SplitChange,
    Task,
    TaskFigures,
    Trial,
    TrialDisposition,
    WorkState,
)

pytestmark = pytest.mark.django_db

STRICT = REFUND.replace("tool_calls: 3", "tool_calls: 1")
LATER = NOW + timedelta(hours=1)


def other(text: str = REFUND) -> str:
    return text.replace("task: t1", "task: t2")


def of_t2(trial: int, **more: Any) -> dict[str, Any]:
    return {**good(trial, **more), "task_id": "t2"}


def two_tasks(cast: Cast) -> None:
    calls = [("get_order", {})] * 2
    ingest(cast.system, [good(n, calls=calls) for n in range(3)] + [of_t2(n) for n in range(2)])


def passing(task_id: str) -> int:
    return TaskFigures.objects.get(task__task_id=task_id, release=None).n_pass


def test_a_regrade_says_what_it_changed(cast: Cast) -> None:
    two_tasks(cast)
    in_effect(cast, f"{REFUND}---\n{other()}")
    assert (passing("t1"), passing("t2")) == (3, 2)

    regrade = in_effect(cast, f"{STRICT}---\n{other(STRICT)}", now=LATER)

    assert (regrade.state, regrade.n_done, regrade.n_total) == ("done", 5, 5)
    assert (regrade.n_tasks_done, regrade.n_verdicts) == (2, 25)
    assert (contract_number("t1"), contract_number("t2")) == (2, 2)
    assert (passing("t1"), passing("t2")) == (0, 2)
    one, two = parse_regrade(regrade.result).tasks
    assert (one.task_id, one.version, one.n_trials, one.n_changed) == ("t1", 2, 3, 3)
    assert one.newly_failing == (CriterionCount("budget.tool_calls", 3),)
    (transition,) = one.transitions
    assert (transition.before, transition.after, transition.n_trials) == ("pass", "fail", 3)
    trials = Trial.objects.filter(task__task_id="t1").order_by("pk")
    assert transition.examples == tuple(map(str, trials.values_list("uuid", flat=True)))
    assert (two.n_changed, [(t.before, t.after, t.n_trials) for t in two.transitions]) == (
        0,
        [("pass", "pass", 2)],
    )


def test_nothing_takes_effect_before_all_trials_are_graded(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_tasks(cast)
    in_effect(cast, REFUND)
    before = everything()
    monkeypatch.setattr(regrading, "BATCH", 1)
    grade, seen = regrading.grade_under, []

    def watched(*given: Any, **more: Any) -> Any:
        seen.append((everything() == before, contract_number("t1")))
        return grade(*given, **more)

    monkeypatch.setattr(regrading, "grade_under", watched)
    in_effect(cast, STRICT, now=LATER)

    assert seen == [(True, 1)] * 4  # three trials one by one, and the look at what came since
    assert contract_number("t1") == 2


class _KilledError(Exception):
    """Stands for a process that dies."""


@pytest.mark.parametrize("at", range(6))
def test_a_killed_regrade_goes_on_behind_its_checkpoint(
    cast: Cast, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_tasks(cast)
    in_effect(cast, f"{REFUND}---\n{other()}")
    monkeypatch.setattr(regrading, "BATCH", 2)
    regrade = approved(cast, f"{STRICT}---\n{other(STRICT)}", now=LATER)
    save, n_saves = regrading._Regrading._save, 0

    def dying(self: Any, row: Regrade) -> None:
        nonlocal n_saves
        n_saves += 1
        if n_saves == at + 1:
            raise _KilledError
        save(self, row)

    monkeypatch.setattr(regrading._Regrading, "_save", dying)
    if at < 5:  # three batches and two tasks are saved
        with pytest.raises(_KilledError):
            work_out_regrade(regrade.pk)
    assert work_out_regrade(regrade.pk)

    regrade.refresh_from_db()
    assert (regrade.state, regrade.n_done, regrade.n_verdicts) == ("done", 5, 25)
    assert [task.task_id for task in parse_regrade(regrade.result).tasks] == ["t1", "t2"]
    assert (passing("t1"), passing("t2")) == (0, 2)
    assert not work_out_regrade(regrade.pk)


def test_a_regrade_that_never_gets_further_fails(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(cast.system, [good()])
    regrade = approved(cast, REFUND)

    def dies(*_: object, **__: object) -> None:
        raise _KilledError

    monkeypatch.setattr(regrading, "grade_under", dies)
    for _ in range(MOST_TRIES):
        with pytest.raises(_KilledError):
            work_out_regrade(regrade.pk)
    assert not work_out_regrade(regrade.pk)
    regrade.refresh_from_db()
    assert (regrade.state, contract_number("t1")) == ("failed", None)
    assert regrade.failure.startswith("This work stopped 5 times in a row")


def test_a_stop_ends_the_work_between_batches(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    two_tasks(cast)
    monkeypatch.setattr(regrading, "BATCH", 1)
    regrade = approved(cast, f"{REFUND}---\n{other()}")
    next_batch, n_batches = regrading._Regrading._next_batch, 0

    def stopping(self: Any) -> bool:
        nonlocal n_batches
        n_batches += 1
        if n_batches == 3:
            stop_regrade(Regrade.objects.get(pk=regrade.pk), by=cast.engineer, now=NOW)
        return next_batch(self)

    monkeypatch.setattr(regrading._Regrading, "_next_batch", stopping)
    assert work_out_regrade(regrade.pk)

    regrade.refresh_from_db()
    assert (regrade.n_done, n_batches) == (2, 3)
    assert (regrade.state, regrade.cancelled_by) == ("cancelled", cast.engineer)
    assert contract_number("t1") is None
    restart_regrade(regrade, by=cast.owner, now=NOW)
    assert work_out_regrade(regrade.pk)
    regrade.refresh_from_db()
    assert (regrade.state, contract_number("t1"), contract_number("t2")) == ("done", 1, 1)


def test_grader_tests_that_fail_let_nothing_take_effect(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(cast.system, [good()])
    regrade = approved(cast, REFUND)
    failing = (GraderTest("t1", "wrong identifier", False, ()),)
    monkeypatch.setattr(regrading, "grader_tests_of", lambda _: failing)

    assert work_out_regrade(regrade.pk)

    regrade.refresh_from_db()
    assert (regrade.state, contract_number("t1")) == ("failed", None)
    assert "wrong identifier" in regrade.failure
    assert not Verdict.objects.filter(contract__isnull=False).exists()


@pytest.mark.parametrize("first", [0, 1], ids=["older-first", "newer-first"])
def test_what_is_approved_later_stays_in_effect(cast: Cast, first: int) -> None:
    two_tasks(cast)
    both = [approved(cast, f"{REFUND}---\n{other()}"), approved(cast, STRICT, now=LATER)]
    assert next_open_regrade(both[0].pk) == both[1].pk
    for regrade in (both[first], both[1 - first]):
        work_out_regrade(regrade.pk)

    assert (contract_number("t1"), contract_number("t2")) == (2, 1)
    assert (passing("t1"), passing("t2")) == (0, 2)
    both[0].refresh_from_db()
    passed_over, taken = parse_regrade(both[0].result).tasks
    assert passed_over == TaskEffect(
        "t1", 1, 0, (), (), "Version 2 was approved later and takes its place."
    )
    assert taken.n_trials == 2
    assert next_open_regrade(both[0].pk) is None


def test_only_one_worker_is_at_the_regrades_of_a_system(cast: Cast) -> None:
    ingest(cast.system, [good()])
    regrade = approved(cast, REFUND)
    with regrading.exclusive("evalsite.regrade", cast.system.pk):
        connection_of_another = _in_another_connection(lambda: work_out_regrade(regrade.pk))
    assert connection_of_another is False


def _in_another_connection(act: Any) -> Any:
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(act())
        except Regrade.DoesNotExist:  # this test's rows are not committed
            found.append(False)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_the_contract_s_own_words_are_taken_over(cast: Cast) -> None:
    ingest(cast.system, [good()])
    in_effect(cast, REFUND)
    change = SplitChange.objects.get()
    assert (change.family, change.task, change.old, change.new) == (
        "refunds",
        None,
        "",
        "regression",
    )
    assert change.reason == "Proposal 1 of contracts: as agreed"

    in_effect(cast, "task: t1\nrequired: [{id: looked, call: get_order}]", now=LATER)
    task = Task.objects.get()
    assert (task.title, task.family, task.split) == ("Refund", "refunds", "regression")
    assert SplitChange.objects.count() == 1

    Task.objects.update(split="tuning")
    SplitChange.objects.create(
        system=cast.system, family="refunds", old="regression", new="tuning", reason="moved",
        by=cast.engineer, changed_at=LATER,
    )  # fmt: skip
    in_effect(cast, f"{STRICT}---\n{other(STRICT)}", now=LATER + timedelta(hours=1))
    assert list(SplitChange.objects.order_by("pk").values_list("new", flat=True)) == [
        "regression", "tuning", "regression",
    ]  # fmt: skip

    alone = "task: t9\nsplit: tuning\nrequired: [{id: looked, call: get_order}]"
    in_effect(cast, alone, now=LATER)
    assert SplitChange.objects.filter(task__task_id="t9", family="", new="tuning").count() == 1


def test_on_demand_trials_are_graded_again_under_what_is_in_effect(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_tasks(cast)
    in_effect(cast, REFUND)
    n_verdicts, before = Verdict.objects.count(), everything()
    tasks = list(Task.objects.all())
    regrade = start_regrade(cast.system, tasks=tasks, reason="checks", by=cast.engineer, now=NOW)
    assert regrade.tasks == [Task.objects.get(task_id="t1").pk]
    with pytest.raises(RegradeError, match="Regrade 2 grades trials of these tasks already"):
        start_regrade(cast.system, tasks=tasks, reason="again", by=cast.reviewer, now=NOW)
    for module in ("reviews.services.verdicts", "reviews.selectors.votes"):
        monkeypatch.setattr(f"{module}.CHECKS_VERSION", "next")

    assert work_out_regrade(regrade.pk)

    regrade.refresh_from_db()
    assert (regrade.state, regrade.n_verdicts) == ("done", 15)
    assert Verdict.objects.count() == n_verdicts + 18
    assert everything() == before


def test_an_on_demand_regrade_gives_way_to_another_contract(cast: Cast) -> None:
    two_tasks(cast)
    in_effect(cast, REFUND)
    regrade = start_regrade(
        cast.system, tasks=Task.objects.all(), reason="checks", by=cast.engineer, now=NOW
    )
    work = regrading._Regrading(Regrade.objects.get(pk=regrade.pk))
    in_effect(cast, STRICT, now=LATER)
    work.run()

    regrade.refresh_from_db()
    (task,) = parse_regrade(regrade.result).tasks
    assert (task.note, contract_number("t1")) == ("Another contract came into effect meanwhile.", 2)


def drafted(cast: Cast, *texts: str) -> ContractPreview:
    named = {text.split("task: ")[1].split("\n")[0]: text for text in texts}
    return ContractPreview.objects.create(
        system=cast.system, texts=named, by=cast.engineer, asked_at=NOW, touched_at=NOW
    )


def previewed(cast: Cast, *texts: str) -> Any:
    preview = drafted(cast, *texts)
    work_out_contract_preview(preview.pk)
    preview.refresh_from_db()
    assert preview.state == WorkState.DONE.value, preview.failure
    return parse_preview(preview.result)


def test_a_preview_says_what_a_regrade_will_change(cast: Cast) -> None:
    two_tasks(cast)
    ingest(cast.system, [good(7, initial_state={"odd": 1}), good(8, facts={"order": "B"})])
    ingest(cast.system, [good(9, final_state=None, calls=[])])
    in_effect(cast, REFUND)
    before, n_verdicts = everything(), Verdict.objects.count()

    found = previewed(cast, STRICT, other())

    assert everything() == before
    assert Verdict.objects.count() == n_verdicts
    regrade = in_effect(cast, f"{STRICT}---\n{other()}", now=LATER)
    done = parse_regrade(regrade.result)
    assert [
        (task.task_id, task.n_trials, task.transitions, task.newly_failing) for task in found.tasks
    ] == [
        (task.task_id, task.n_trials, task.transitions, task.newly_failing) for task in done.tasks
    ]
    assert found.n_changed > 0


def test_a_preview_of_a_task_without_trials(cast: Cast) -> None:
    text = "task: new\nrequired: [{id: a, call: zap}, {id: b, call: get_order}]"
    ingest(cast.system, [good()])
    found = previewed(cast, text)
    assert found.tasks == (TaskEffect("new", None, 0, (), ()),)
    assert [(tool.name, tool.task_ids) for tool in found.unknown_tools] == [("zap", ("new",))]


def test_marks_that_would_still_hold_count_in_a_preview(cast: Cast) -> None:
    ingest(cast.system, [good(0, final_state=BEFORE)])
    in_effect(cast, REFUND)
    digest = Verdict.objects.get(criterion__name="outcome").criterion_digest
    CheckMark.objects.create(
        system=cast.system, task=Task.objects.get(), criterion="outcome", criterion_digest=digest,
        mark="defective", reason="wrong", by=cast.reviewer, marked_at=NOW,
    )  # fmt: skip
    (same,) = previewed(cast, STRICT).tasks
    assert [(t.before, t.after) for t in same.transitions] == [("fail", "unresolved")]
    mended = STRICT.replace("/refunds/0: done", "/refunds/0: other")
    (changed,) = previewed(cast, mended).tasks
    assert [(t.before, t.after) for t in changed.transitions][0][0] == "fail"


def test_a_stopped_preview_gives_way(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    two_tasks(cast)
    preview = drafted(cast, REFUND)
    monkeypatch.setattr(contract_previews, "BATCH", 1)
    monkeypatch.setattr(contract_previews, "NOTED_EVERY_SECONDS", 0.0)
    graded, n_graded = ContractGrader.graded, 0

    def stopping(*given: Any) -> Any:
        nonlocal n_graded
        n_graded += 1
        ContractPreview.objects.update(state=WorkState.CANCELLED.value)
        return graded(*given)

    monkeypatch.setattr(ContractGrader, "graded", stopping)
    work_out_contract_preview(preview.pk)

    preview.refresh_from_db()
    assert (preview.state, preview.result, n_graded) == ("cancelled", None, 1)
    work_out_contract_preview(preview.pk)


@pytest.mark.django_db(transaction=True)
def test_an_upload_beside_a_regrade_is_never_missed(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uploads and a takeover at once: every trial is decided by the contract in the end."""
    ingest(cast.system, [good(n) for n in range(4)])
    regrade = approved(cast, REFUND)
    uploads = [
        receive(cast.system, jsonl([good(n)]), file_name=f"{n}.jsonl") for n in range(10, 18)
    ]
    monkeypatch.setattr(regrading, "BATCH", 1)

    def uploading() -> None:
        try:
            for upload in uploads:
                process_upload(upload.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=uploading)
    thread.start()
    assert work_out_regrade(regrade.pk)
    thread.join()

    rows = TrialDisposition.objects.values_list("value", "contract__number")
    assert list(rows) == [("pass", 1)] * 12
    assert Verdict.objects.filter(criterion__name="outcome").count() == 12
    assert passing("t1") == 12


@pytest.mark.django_db(transaction=True)
def test_two_regrades_of_the_same_trials_grade_each_once(cast: Cast) -> None:
    ingest(cast.system, [good(n) for n in range(20)])
    in_effect(cast, REFUND)
    with connection.cursor() as cursor:
        cursor.execute("set session_replication_role = replica")
        cursor.execute("DELETE FROM reviews_verdict")
        cursor.execute("reset session_replication_role")
    ids = list(Trial.objects.values_list("pk", flat=True))
    versions = regrading.contracts_in_effect([Task.objects.get().pk])
    errors: list[BaseException] = []

    def grading() -> None:
        from django.db import transaction

        try:
            with transaction.atomic():
                regrading.grade_under(ids, versions, now=timezone.now())
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=grading) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert Verdict.objects.filter(criterion__name="outcome").count() == 20
