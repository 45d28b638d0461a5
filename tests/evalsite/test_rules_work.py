"""An approved version on its way to the pages: worked out in batches, shown at once."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from evalsite import pipeline, rules_work, sample_loader, stored_keys
from evalsite.pipeline import process_upload
from evalsite.rebuilding import rebuild
from evalsite.rules_work import next_open_rules, recompute
from tests.support.cast import Cast
from tests.support.evidence import ingest, jsonl, receive, record
from tests.support.rules import NOW, approved, in_force
from traces.core.rule_changes import RuleChange, place_of
from traces.core.rules import ArgumentRule, Arithmetic
from traces.core.trajectory import ToolKind
from traces.models import (
    RulesJob,
    RulesSuggestions,
    RulesVersion,
    System,
    TaskFigures,
    Trajectory,
    TrajectoryPaths,
    WorkState,
)
from traces.selectors.paths import KEY_NAMES
from traces.selectors.rules import shown_rules_id
from traces.services.reading import Order
from traces.services.rules import restart_work, stop_work

pytestmark = pytest.mark.django_db

DATA = Path(__file__).resolve().parents[1] / "data"
SUM = ArgumentRule("calculate", "expression", Arithmetic(), "spellings of one sum", "ada")
ADD, DROP = RuleChange(put=(SUM,)), RuleChange(drop=(place_of(SUM),))
READ = RuleChange(kinds=(("get_order", ToolKind.READ),))
SPELLINGS = ("1200", "600*2", "1200.0", "(600+600)")


def article() -> list[dict[str, Any]]:
    """Ten passing trials: four sequences, seven trajectories, four spellings of 1200."""
    order, pay = ("get_order", {"order": "A-1"}), ("pay", {"amount": 1200})
    ways = [
        *([order, ("calculate", {"expression": text}), pay] for text in SPELLINGS),
        [order, pay],
        [pay, order],
        [pay],
    ]
    return [record("t1", n, calls=ways[n % len(ways)]) for n in range(10)]


def other_task() -> list[dict[str, Any]]:
    return [record("t2", n, calls=[("get_order", {"order": f"B-{n % 3}"})]) for n in range(5)]


def n_paths(task_id: str = "t1") -> tuple[int, int, int]:
    """Passing paths without messages that the pages show: sequence, exact, equivalent."""
    shown = TaskFigures.objects.get(task__task_id=task_id, release=None).n_paths
    counts = dict(zip(KEY_NAMES, shown, strict=True))
    return (counts["sequence"], counts["exact"], counts["equivalent"])


def keys(version: RulesVersion, task_id: str | None = None) -> dict[int, tuple[object, ...]]:
    """The keys of each trajectory under a version."""
    rows = TrajectoryPaths.objects.filter(rules=version)
    if task_id is not None:
        rows = rows.filter(trajectory__task__task_id=task_id)
    return {pk: tuple(row) for pk, *row in rows.values_list("trajectory_id", *KEY_NAMES)}


def versions_with_keys() -> set[int]:
    return set(TrajectoryPaths.objects.values_list("rules__number", flat=True))


def check_whole(system: System) -> None:
    """Every trajectory has keys of the shown version, and the figures are counted under it."""
    shown = shown_rules_id(system)
    ours = Trajectory.objects.filter(task__system=system)
    assert not ours.exclude(paths__rules=shown).exists()
    figures = TaskFigures.objects.filter(task__system=system)
    assert set(figures.values_list("rules", flat=True)) == {shown}


def test_a_rule_merges_paths_and_dropping_it_brings_the_old_counts_back(cast: Cast) -> None:
    ingest(cast.system, article() + other_task())
    before = cast.system.shown_rules
    assert Trajectory.objects.filter(task__task_id="t1").count() == 7
    assert n_paths() == (4, 7, 7)

    second = in_force(cast, ADD)

    assert cast.system.shown_rules == second
    assert n_paths() == (4, 7, 4)
    assert n_paths("t2") == (1, 3, 3)
    unchanged = keys(before, "t2")
    assert keys(second, "t2") == unchanged
    check_whole(cast.system)

    third = in_force(cast, DROP)

    assert n_paths() == (4, 7, 7)
    assert versions_with_keys() == {2, 3}
    check_whole(cast.system)
    in_force(cast, ADD)
    assert versions_with_keys() == {3, 4}
    assert keys(third, "t2") == unchanged


def test_pages_show_the_old_version_until_the_new_one_is_whole(cast: Cast) -> None:
    ingest(cast.system, article())
    first = cast.system.shown_rules
    version = approved(cast, ADD)

    cast.system.refresh_from_db()
    assert cast.system.shown_rules == first
    assert n_paths() == (4, 7, 7)

    assert recompute(version.pk)
    cast.system.refresh_from_db()
    assert cast.system.shown_rules == version
    assert not recompute(version.pk)


def test_the_work_says_how_much_it_did(cast: Cast, caplog: pytest.LogCaptureFixture) -> None:
    ingest(cast.system, article())
    version = approved(cast, ADD)
    caplog.set_level(logging.INFO, "evalsite.rules")
    caplog.clear()

    recompute(version.pk)

    (line,) = caplog.records
    assert (line.getMessage(), line.system, line.rules, line.trajectories) == (
        "rules worked out and shown",
        "airline",
        2,
        7,
    )
    assert line.trajectories_a_second > 0
    job = RulesJob.objects.get()
    assert (job.state, job.n_done, job.n_total, job.failure) == (WorkState.DONE.value, 7, 7, "")
    assert job.started_at <= job.finished_at
    assert RulesSuggestions.objects.get(rules=version).state == WorkState.WAITING.value


def test_tool_kinds_change_effects_alone(cast: Cast) -> None:
    ingest(cast.system, article())
    before = keys(cast.system.shown_rules)

    after = keys(in_force(cast, READ))

    changed = {
        name
        for pk, row in after.items()
        for name, old, new in zip(KEY_NAMES, before[pk], row, strict=True)
        if old != new
    }
    assert changed == {"effects"}


def test_writes_and_hand_overs_are_counted_under_the_shown_rules(cast: Cast) -> None:
    pay, ask = ("pay", {"amount": 1}), ("ask_person", {})
    ingest(cast.system, [record("t1", 0, calls=[pay, ask, pay])])
    ingest(cast.system, [record("t1", 1, calls=[pay, ask], result="Error: no")])

    def counts(version: RulesVersion) -> list[tuple[int | None, int | None]]:
        rows = TrajectoryPaths.objects.filter(rules=version).order_by("trajectory")
        return list(rows.values_list("n_writes", "n_handoffs"))

    assert counts(cast.system.shown_rules) == [(3, 0), (0, 0)]
    handed = RuleChange(kinds=(("ask_person", ToolKind.HANDOFF), ("pay", ToolKind.READ)))
    version = in_force(cast, handed)
    assert counts(version) == [(0, 1), (0, 0)]

    TrajectoryPaths.objects.filter(rules=version).update(n_writes=None, n_handoffs=None)
    rebuild(cast.system, say=lambda _: None)
    assert counts(version) == [(0, 1), (0, 0)]


def test_a_call_without_its_arguments_stays_a_path_of_its_own(cast: Cast) -> None:
    records = [record("t1", n) for n in range(2)]
    for one in records:
        del one["messages"][1]["tool_calls"][0]["function"]["arguments"]
    ingest(cast.system, records)
    before = keys(cast.system.shown_rules)
    assert n_paths() == (1, 2, 2)

    after = keys(in_force(cast, ADD))

    assert after == before
    assert n_paths() == (1, 2, 2)


def test_names_of_tools_that_no_column_holds_have_the_same_keys_when_made_anew(
    cast: Cast,
) -> None:
    odd = ["a\x00b", "a\u2400b", "half \ud800", "caf\u00e9"]
    ingest(cast.system, [record("t1", n, calls=[(name, {"n": 1})]) for n, name in enumerate(odd)])
    before = keys(cast.system.shown_rules)
    assert len(before) == 4

    assert keys(in_force(cast, READ)) == before


def test_a_rule_of_one_task_leaves_the_others_alone(cast: Cast) -> None:
    ingest(cast.system, article() + [{**one, "task_id": "t3"} for one in article()])
    rule = ArgumentRule("calculate", "expression", Arithmetic(), "one sum", "ada", "t3")

    in_force(cast, RuleChange(put=(rule,)))

    assert (n_paths("t1"), n_paths("t3")) == ((4, 7, 7), (4, 7, 4))


class KilledError(BaseException):
    """As if the worker was killed here."""


def die_at(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, *, at: int, after: bool
) -> Callable[[], None]:
    """Let the n-th call of a function kill the worker, before or after its work."""
    whole, calls = getattr(owner, name), []

    def dies(*args: Any, **words: Any) -> Any:
        calls.append(name)
        if len(calls) == at and not after:
            raise KilledError
        result = whole(*args, **words)
        if len(calls) == at:
            raise KilledError
        return result

    monkeypatch.setattr(owner, name, dies)
    return lambda: monkeypatch.setattr(owner, name, whole)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("owner", "name", "at"),
    [
        pytest.param(stored_keys.KeyMaker, "write", 1, id="first-batch"),
        pytest.param(stored_keys.KeyMaker, "write", 2, id="second-batch"),
        pytest.param(stored_keys.KeyMaker, "write", 4, id="last-batch"),
        pytest.param(rules_work, "trajectories_without_keys", 1, id="catching-up"),
        pytest.param(rules_work, "ingest_locks", 1, id="locks"),
        pytest.param(rules_work, "refresh_figures", 1, id="figures"),
        pytest.param(rules_work, "ask_suggestions", 1, id="suggestions"),
    ],
)
def test_a_killed_worker_leaves_the_old_version_and_the_next_one_goes_on(
    cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    at: int,
    after: bool,
) -> None:
    monkeypatch.setattr(stored_keys, "BATCH", 2)
    ingest(cast.system, article())
    first, version = cast.system.shown_rules, approved(cast, ADD)
    revive = die_at(monkeypatch, owner, name, at=at, after=after)

    with pytest.raises(KilledError):
        recompute(version.pk)

    assert shown_rules_id(cast.system) == first.pk
    assert n_paths() == (4, 7, 7)
    check_whole(cast.system)
    n_done = RulesJob.objects.get().n_done
    assert n_done == len(keys(version))
    revive()
    assert recompute(version.pk)
    assert n_paths() == (4, 7, 4)
    check_whole(cast.system)
    assert len(keys(version)) == RulesJob.objects.get().n_done == 7


def test_work_that_stops_again_and_again_fails_with_a_sentence(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(cast.system, article())
    version = approved(cast, ADD)
    whole = rules_work.refresh_figures

    def breaks(_: System) -> None:
        raise KilledError

    monkeypatch.setattr(rules_work, "refresh_figures", breaks)
    for _ in range(6):  # the first try has got further than the one before it
        with pytest.raises(KilledError):
            recompute(version.pk)
    assert not recompute(version.pk)

    job = RulesJob.objects.get()
    assert (job.state, job.failure) == (
        WorkState.FAILED.value,
        "This work stopped 5 times in a row behind 7 of 7. The log of the worker names the cause.",
    )
    assert n_paths() == (4, 7, 7)
    monkeypatch.setattr(rules_work, "refresh_figures", whole)
    restart_work(version, by=cast.owner, now=NOW)
    assert recompute(version.pk)
    assert n_paths() == (4, 7, 4)


def test_stopped_work_ends_at_the_next_batch_and_goes_on_when_taken_up(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stored_keys, "BATCH", 2)
    caplog.set_level(logging.INFO, "evalsite.rules")
    ingest(cast.system, article())
    first, version = cast.system.shown_rules, approved(cast, ADD)
    next_batch, batches = rules_work._Recomputation._next_batch, []

    def stop_behind_the_second(self: Any) -> bool:
        found = next_batch(self)
        batches.append(RulesJob.objects.get().n_done)
        if len(batches) == 2:
            stop_work(version, by=cast.engineer, now=NOW)
        return found

    monkeypatch.setattr(rules_work._Recomputation, "_next_batch", stop_behind_the_second)
    recompute(version.pk)

    job = RulesJob.objects.get()
    assert (job.state, job.cancelled_by) == (WorkState.CANCELLED.value, cast.engineer)
    assert shown_rules_id(cast.system) == first.pk
    assert caplog.records[-1].getMessage() == "work on rules gives way to a stop"
    assert not recompute(version.pk)
    assert len(batches) == 2

    restart_work(version, by=cast.engineer, now=NOW)
    assert recompute(version.pk)
    assert n_paths() == (4, 7, 4)
    assert batches == [2, 4, 6, 7, 7]


def test_work_that_was_taken_up_again_at_once_just_goes_on(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_keys, "BATCH", 2)
    ingest(cast.system, article())
    version = approved(cast, ADD)
    next_batch, waited = rules_work._Recomputation._next_batch, []

    def change_one_s_mind(self: Any) -> bool:
        found = next_batch(self)
        stop_work(version, by=cast.engineer, now=NOW)
        restart_work(version, by=cast.owner, now=NOW)
        waited.append(RulesJob.objects.get().state)
        return found

    monkeypatch.setattr(rules_work._Recomputation, "_next_batch", change_one_s_mind)
    assert recompute(version.pk)
    assert set(waited) == {WorkState.WAITING.value}
    assert n_paths() == (4, 7, 4)
    assert RulesJob.objects.get().n_done == 7


def test_a_version_that_a_later_one_overtook_is_given_up(cast: Cast) -> None:
    ingest(cast.system, article())
    second, third = approved(cast, ADD), approved(cast, READ)
    assert next_open_rules(third.pk) == second.pk

    assert recompute(third.pk)
    assert recompute(second.pk)

    job = RulesJob.objects.get(rules=second)
    assert (job.state, job.failure) == (
        WorkState.CANCELLED.value,
        "Version 3, approved later, is shown already.",
    )
    assert shown_rules_id(cast.system) == third.pk
    assert n_paths() == (4, 7, 4)
    assert versions_with_keys() == {1, 3}
    assert next_open_rules(third.pk) is None


def test_half_done_work_starts_anew_behind_that_of_another_version(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_keys, "BATCH", 2)
    ingest(cast.system, article())
    second, third = approved(cast, ADD), approved(cast, READ)
    for version in (second, third):
        with monkeypatch.context() as patch:
            die_at(patch, stored_keys.KeyMaker, "write", at=3, after=False)
            with pytest.raises(KilledError):
                recompute(version.pk)

    job = RulesJob.objects.get(rules=second)
    assert (job.after, job.n_done) == (0, 0)
    assert recompute(second.pk)
    assert (shown_rules_id(cast.system), n_paths()) == (second.pk, (4, 7, 4))
    check_whole(cast.system)
    assert recompute(third.pk)
    assert (shown_rules_id(cast.system), n_paths()) == (third.pk, (4, 7, 4))
    check_whole(cast.system)
    assert versions_with_keys() == {2, 3}


def test_trajectories_that_are_stored_meanwhile_are_caught_up_with(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_keys, "BATCH", 3)
    monkeypatch.setattr(rules_work, "_FEW", 0)
    ingest(cast.system, other_task())
    version = approved(cast, ADD)
    locks, catching = rules_work.ingest_locks, rules_work.trajectories_without_keys
    late = [article()[:4], article()[4:]]

    def stored_before(whole: Any) -> Any:
        def first(*args: Any) -> Any:
            if late:
                ingest(cast.system, late.pop(0))
            return whole(*args)

        return first

    monkeypatch.setattr(rules_work, "trajectories_without_keys", stored_before(catching))
    monkeypatch.setattr(rules_work, "ingest_locks", stored_before(locks))
    assert recompute(version.pk)

    assert late == []
    check_whole(cast.system)
    assert n_paths() == (4, 7, 4)
    job = RulesJob.objects.get()
    assert (job.n_done, job.n_total) == (10, 10)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_upload_reads_on_under_the_rules_that_pages_show(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "evalsite.pipeline")
    monkeypatch.setattr(pipeline, "Order", partial(Order, records=4))
    version = approved(cast, ADD)
    upload = receive(cast.system, jsonl(article()))
    store, batches = pipeline._store, []

    def shown_meanwhile(*args: Any) -> set[int]:
        batches.append(1)
        if len(batches) == at:
            assert recompute(version.pk)
        return store(*args)

    monkeypatch.setattr(pipeline, "_store", shown_meanwhile)
    process_upload(upload.pk)

    assert len(batches) == 4  # three, and one that was read again
    upload.job.refresh_from_db()
    assert (upload.job.n_stored, upload.job.n_received) == (10, 10)
    assert n_paths() == (4, 7, 4)
    check_whole(cast.system)
    assert "upload reads on under other rules" in [r.getMessage() for r in caplog.records]


def test_figures_are_counted_under_the_rules_that_pages_show_by_now(cast: Cast) -> None:
    ingest(cast.system, article())
    old = System.objects.select_related("shown_rules").get(pk=cast.system.pk)
    in_force(cast, ADD)

    pipeline.refresh_figures(old, [TaskFigures.objects.values_list("task", flat=True)[0]])

    assert n_paths() == (4, 7, 4)
    check_whole(cast.system)


def test_an_upload_that_stored_something_asks_for_suggestions(cast: Cast) -> None:
    ingest(cast.system, article())
    row = RulesSuggestions.objects.get()
    assert (row.rules, row.state) == (cast.system.shown_rules, WorkState.WAITING.value)
    RulesSuggestions.objects.update(state=WorkState.DONE.value)

    ingest(cast.system, article())

    assert RulesSuggestions.objects.get().state == WorkState.DONE.value


@pytest.mark.parametrize("change", [ADD, READ], ids=["rule", "kind"])
def test_a_rebuild_makes_the_same_keys(cast: Cast, change: RuleChange) -> None:
    ingest(cast.system, article() + other_task())
    version = in_force(cast, change)
    before, paths = keys(version), n_paths()
    TrajectoryPaths.objects.filter(rules=version).update(equivalent="0" * 32, effects="1" * 32)

    call_command("rebuild", stdout=StringIO())

    assert keys(version) == before
    assert n_paths() == paths
    check_whole(cast.system)


def test_a_batch_is_bounded_by_steps_too(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_keys, "MOST_STEPS", 3)
    monkeypatch.setattr("traces.selectors.stored_keys.MOST_KEPT", 10)
    ingest(cast.system, article())
    assert len(stored_keys.trajectories_after(cast.system.pk, 0)) == 1

    in_force(cast, ADD)

    assert n_paths() == (4, 7, 4)


def test_another_system_is_left_alone(cast: Cast) -> None:
    for system in (cast.system, cast.other_system):
        ingest(system, [{**one, "task_id": system.slug} for one in article()])
    before = keys(cast.other_system.shown_rules)

    in_force(cast, ADD)

    assert keys(cast.other_system.shown_rules) == before
    assert n_paths(cast.other_system.slug) == (4, 7, 7)
    check_whole(cast.other_system)


def in_a_thread(work: Callable[[], Any], failures: list[BaseException]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_one_gives_way(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(cast.system, article())
    version = approved(cast, ADD)
    write, seen, failures = stored_keys.KeyMaker.write, [], list[BaseException]()

    def with_company(self: Any, rows: Any) -> None:
        thread = in_a_thread(lambda: seen.append(recompute(version.pk)), failures)
        thread.join()
        write(self, rows)

    monkeypatch.setattr(stored_keys.KeyMaker, "write", with_company)
    assert recompute(version.pk)

    assert (set(seen), failures) == ({False}, [])
    assert n_paths() == (4, 7, 4)
    assert RulesJob.objects.get().n_done == 7


@pytest.mark.django_db(transaction=True)
def test_uploads_and_rules_at_once_leave_no_trajectory_without_its_keys(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "Order", partial(Order, records=3))
    monkeypatch.setattr(stored_keys, "BATCH", 5)
    texts = [f"{n}+{n}" for n in range(60)]
    uploads = [
        receive(
            cast.system,
            jsonl(
                record(f"t{n % 4}", f"{part}-{n}", calls=[("calculate", {"expression": text})])
                for n, text in enumerate(texts[part::3])
            ),
        )
        for part in range(3)
    ]
    failures: list[BaseException] = []
    threads = [in_a_thread(partial(process_upload, upload.pk), failures) for upload in uploads]
    for change in (ADD, DROP, ADD):
        in_force(cast, change)
        check_whole(cast.system)
    for thread in threads:
        thread.join()

    assert failures == []
    check_whole(cast.system)
    assert Trajectory.objects.count() == 60
    counted = {task: n_paths(task) for task in ("t0", "t1", "t2", "t3")}
    assert counted == dict.fromkeys(counted, (1, 15, 15))
    assert keys(RulesVersion.objects.get(number=4)).keys() == set(
        Trajectory.objects.values_list("pk", flat=True)
    )


def test_the_tau2_sample_merges_and_parts_again(cast: Cast) -> None:
    answers = json.loads((DATA / "expected_tau2_airline_pool_5agents.json").read_text())
    for file in sorted((sample_loader.FOLDER / "tau2_airline").glob("*.json.gz")):
        agent = file.name.removesuffix(".json.gz")
        call_command("ingest", str(file), system=cast.system.slug, release=agent, stdout=StringIO())
    first = cast.system.shown_rules
    before, counts = keys(first), all_paths()
    rules = sample_loader.AIRLINE_RULES

    second = in_force(cast, RuleChange(put=rules.rules, kinds=rules.tool_kinds))

    merged, known = all_paths(), answers["sum_distinct"]
    assert total(counts) == (known["name_sequence"], known["exact"], known["exact"])
    assert total(merged) == (known["name_sequence"], known["exact_ignore"], known["exact"])
    for task_id, paths in merged.items():
        assert paths["exact"] == counts[task_id]["exact"]
        assert paths["sequence"] == counts[task_id]["sequence"]
        assert paths["sequence"] <= paths["equivalent"] <= paths["exact"]
        assert counts[task_id]["equivalent"] == counts[task_id]["exact"]
    concerned = {
        pk
        for pk, names in called_tools().items()
        if names & {"calculate", "transfer_to_human_agents", "think"}
    }
    column = KEY_NAMES.index("equivalent")
    moved = {pk for pk, row in keys(second).items() if row[column] != before[pk][column]}
    assert 0 < len(moved) < len(before)
    assert moved == concerned

    third = in_force(
        cast,
        RuleChange(
            drop=tuple(map(place_of, rules.rules)),
            kinds=tuple((tool, None) for tool, _ in rules.tool_kinds),
        ),
    )
    assert (keys(third), all_paths()) == (before, counts)


def all_paths() -> dict[str, dict[str, int]]:
    rows = TaskFigures.objects.filter(release=None).values_list("task__task_id", "n_paths")
    return {task_id: dict(zip(KEY_NAMES, paths, strict=True)) for task_id, paths in rows}


def total(paths: dict[str, dict[str, int]]) -> tuple[int, ...]:
    """Paths of all tasks together: sequence, equivalent, exact."""
    return tuple(
        sum(row[name] for row in paths.values()) for name in ("sequence", "equivalent", "exact")
    )


def called_tools() -> dict[int, set[str]]:
    from traces.selectors.trajectories import stored_steps, tool_names_of

    steps = stored_steps(Trajectory.objects.values_list("pk", flat=True))
    names = tool_names_of(call for one in steps.values() for call in one.calls)
    return {pk: {names[call] for call in one.calls if call} for pk, one in steps.items()}
