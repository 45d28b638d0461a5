"""Previews and suggestions by a worker: what a preview says is what pages show afterwards."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evalsite import background, rules_reach, sample_loader
from evalsite.common.locks import exclusive
from evalsite.rules_reach import work_out_preview, work_out_suggestions
from evalsite.rules_work import recompute
from evalsite.sample_loader import AIRLINE_RULES, SAMPLES, load_sample
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from traces.core.rule_changes import RuleChange, RulePlace, change_between
from traces.core.rule_effects import CHANGING_LEVELS, RulesEffect, parse_effect
from traces.core.rule_suggestions import RuleSuggestions, parse_suggestions
from traces.core.rules import (
    ArgumentRule,
    Arithmetic,
    Ignore,
    PlainText,
    RuleSet,
    RuleTerms,
    Unordered,
)
from traces.core.trajectory import ToolKind
from traces.models import (
    RulesOutcome,
    RulesPreview,
    RulesVersion,
    System,
    TaskFigures,
    User,
    WorkState,
)
from traces.selectors.paths import KEY_NAMES, key_name
from traces.selectors.rule_reach import Progress, RulesMovedError, rules_effect
from traces.selectors.rule_suggestions import suggested_rules
from traces.selectors.rules import rules_of
from traces.services.rules import ask_suggestions, decide_rules, propose_rules, start_preview

pytestmark = pytest.mark.django_db

AIRLINES = ("tau2-airline", "tau-bench-airline")
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def rule(
    terms: RuleTerms, tool: str = "calculate", argument: str = "expression", task: str | None = None
) -> ArgumentRule:
    return ArgumentRule(tool, argument, terms, "reason", "ada", task)


def calculation(expression: str) -> Call:
    return ("calculate", {"expression": expression})


SUMS = RuleChange(put=(rule(Arithmetic()),))


def previewed(system: System, change: RuleChange, by: User) -> tuple[RulesPreview, RulesEffect]:
    """A draft, worked out."""
    preview = start_preview(system, change, by=by, now=NOW)
    work_out_preview(preview.pk)
    preview.refresh_from_db()
    assert preview.state == WorkState.DONE.value
    assert preview.result is not None
    effect = parse_effect(preview.result)
    assert effect is not None
    return preview, effect


def approved(preview: RulesPreview, proposer: User, reviewer: User) -> RulesVersion:
    version = propose_rules(preview, reason="r", by=proposer, now=NOW)
    decide_rules(version, outcome=RulesOutcome.APPROVED, reason="r", by=reviewer, now=NOW)
    return version


def shown_counts(system: System) -> dict[str, list[int]]:
    """The distinct passing paths that pages show, by task, at the levels that rules change."""
    rows = TaskFigures.objects.filter(task__system=system, release=None, n_pass__gt=0)
    names = [key_name(level, messages=messages) for level, messages in CHANGING_LEVELS]
    return {
        row.task.task_id: [row.n_paths[KEY_NAMES.index(name)] for name in names]
        for row in rows.select_related("task")
    }


def assert_as_previewed(
    effect: RulesEffect, before: dict[str, list[int]], after: dict[str, list[int]]
) -> None:
    """The whole of an effect against figures before and after."""
    assert [count.n_before for count in effect.levels] == sums(before)
    assert [count.n_after for count in effect.levels] == sums(after)
    assert effect.n_tasks == len(before) == len(after)
    named = {task.task_id: task for task in effect.tasks}
    for task_id, counts in before.items():
        if task_id not in named:
            assert after[task_id] == counts
            continue
        levels = named[task_id].levels
        assert [count.n_before for count in levels] == counts
        assert [count.n_after for count in levels] == after[task_id]


def sums(counts: dict[str, list[int]]) -> list[int]:
    return [sum(column) for column in zip(*counts.values(), strict=True)]


def evidence(cast: Cast) -> None:
    """Slots of every sort: releases, versions of attempts, faults, production, odd calls."""
    summary = "The customer {} wants to get a refund for order {}."
    records: list[dict[str, Any]] = []
    for task in ("t1", "t2"):
        paths: list[list[Call]] = [
            [calculation("2"), ("note", {"v": summary.format("A", 1)})],
            [calculation("1 + 1"), ("note", {"v": summary.format("B", 2)})],
            [calculation("1 + 1"), ("note", {"v": summary.format("A", 1)})],
            [("note", {"v": "x"}), calculation("2")],
            [("list", {"ids": ["b", "a"]}), ("book", {"n": 1})],
            [("list", {"ids": ["a", "b"]}), ("book", {"n": 1})],
            [("book", {"n": 1}), ("list", {"ids": ["a", "b"]})],
        ]
        records += [record(task, trial, calls=calls) for trial, calls in enumerate(paths)]
    records += [
        record("t1", 20, calls=[calculation("4 / 2")], verdicts=[verdict("fail")]),
        record("t1", 21, calls=[calculation("5 - 3")], environment="production"),
        record("t1", 22, calls=[calculation("6 - 4")], fault={"kind": "timeout"}),
        record("t1", 23, calls=[calculation("7 - 5")], status="error"),
        record("t1", 23, calls=[calculation("8 - 6")], attempt=2),
        record("t1", 24, calls=[calculation("8 - 6")], result="Error: no"),
        record("t3", 1, calls=[("other", {})]),
    ]
    ingest(cast.system, records)
    ingest(cast.system, [record("t1", calls=[calculation("3 - 1")])], release="2.0")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(SUMS, id="a rule"),
        pytest.param(RuleChange(kinds=(("calculate", ToolKind.READ),)), id="a kind"),
        pytest.param(
            RuleChange(
                put=(rule(Unordered(), "list", "ids"), rule(Ignore(), "note", "v", "t2")),
                kinds=(("note", ToolKind.HANDOFF), ("list", ToolKind.READ)),
            ),
            id="several at once",
        ),
    ],
)
def test_a_preview_says_what_pages_show_afterwards(cast: Cast, change: RuleChange) -> None:
    evidence(cast)
    before = shown_counts(cast.system)

    preview, effect = previewed(cast.system, change, cast.engineer)
    recompute(approved(preview, cast.engineer, cast.reviewer).pk)

    after = shown_counts(cast.system)
    assert after != before
    assert_as_previewed(effect, before, after)


def test_a_preview_on_a_version_that_is_not_shown_yet(cast: Cast) -> None:
    evidence(cast)
    first, _ = previewed(cast.system, SUMS, cast.engineer)
    waiting = approved(first, cast.engineer, cast.reviewer)
    dropped = RuleChange(put=(rule(PlainText()),), kinds=(("calculate", ToolKind.READ),))

    preview, effect = previewed(cast.system, dropped, cast.engineer)

    recompute(waiting.pk)
    before = shown_counts(cast.system)
    recompute(approved(preview, cast.engineer, cast.reviewer).pk)
    assert_as_previewed(effect, before, shown_counts(cast.system))


def test_dropping_a_rule_brings_the_old_counts_back(cast: Cast) -> None:
    evidence(cast)
    at_first = shown_counts(cast.system)
    preview, _ = previewed(cast.system, SUMS, cast.engineer)
    recompute(approved(preview, cast.engineer, cast.reviewer).pk)
    cast.system.refresh_from_db()
    merged = shown_counts(cast.system)

    drop = RuleChange(drop=(RulePlace("calculate", "expression"),))
    preview, effect = previewed(cast.system, drop, cast.engineer)
    recompute(approved(preview, cast.engineer, cast.reviewer).pk)

    assert shown_counts(cast.system) == at_first
    assert_as_previewed(effect, merged, at_first)


@pytest.fixture
def airlines(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The systems of the sample that have rules on arguments."""
    chosen = tuple(sample for sample in SAMPLES if sample.slug in AIRLINES)
    monkeypatch.setattr(sample_loader, "SAMPLES", chosen)
    load_sample(lambda _: None)


@pytest.mark.usefixtures("airlines")
def test_the_sample_s_rules_do_what_their_preview_says() -> None:
    people = {user.username: user for user in User.objects.all()}
    for system in System.objects.filter(slug__in=AIRLINES).order_by("pk"):
        with_rules = shown_counts(system)
        away = change_between(AIRLINE_RULES, RuleSet())
        preview, effect = previewed(system, away, people["engineer"])
        recompute(approved(preview, people["engineer"], people["reviewer"]).pk)
        bare = shown_counts(system)
        assert_as_previewed(effect, with_rules, bare)

        preview, effect = previewed(
            system, change_between(RuleSet(), AIRLINE_RULES), people["engineer"]
        )
        recompute(approved(preview, people["engineer"], people["reviewer"]).pk)
        assert_as_previewed(effect, bare, with_rules)
        assert shown_counts(system) == with_rules


def suggestions(system: System) -> RuleSuggestions:
    """Asked for and worked out."""
    row = ask_suggestions(system, now=NOW)
    work_out_suggestions(row.pk)
    row.refresh_from_db()
    assert (row.state, row.finished_at is None, row.failure) == (WorkState.DONE.value, False, "")
    assert row.result is not None
    found = parse_suggestions(row.result)
    assert found is not None
    return found


@pytest.mark.usefixtures("airlines")
@pytest.mark.parametrize("kinds", [(), AIRLINE_RULES.tool_kinds], ids=["no kinds", "kinds"])
def test_suggestions_on_the_sample_without_its_rules(
    kinds: tuple[tuple[str, ToolKind], ...],
) -> None:
    people = {user.username: user for user in User.objects.all()}
    named = {}
    for system in System.objects.filter(slug__in=AIRLINES).order_by("pk"):
        away = change_between(AIRLINE_RULES, RuleSet((), kinds))
        preview, _ = previewed(system, away, people["engineer"])
        recompute(approved(preview, people["engineer"], people["reviewer"]).pk)
        system.refresh_from_db()
        named[system.slug] = [
            (one.rule.tool, one.rule.argument, one.rule.terms, one.n_merged)
            for one in suggestions(system).suggestions
        ]

    assert named == {
        "tau2-airline": [
            ("transfer_to_human_agents", "summary", Ignore(), 3),
            ("calculate", "expression", Arithmetic(), 0),
        ],
        "tau-bench-airline": [("transfer_to_human_agents", "summary", Ignore(), 2)],
    }


@pytest.mark.usefixtures("airlines")
def test_the_sample_s_rules_leave_nothing_to_suggest_and_one_never_applied() -> None:
    system = System.objects.get(slug="tau2-airline")

    found = suggestions(system)

    assert found.suggestions == ()
    assert [
        (one.tool, n > 0) for one, n in zip(rules_of(system).rules, found.n_calls, strict=True)
    ] == [("calculate", True), ("transfer_to_human_agents", True), ("think", False)]


def test_a_suggestion_merges_as_many_paths_as_it_says(cast: Cast) -> None:
    evidence(cast)
    before = shown_counts(cast.system)
    best = suggestions(cast.system).suggestions[0]

    preview, _ = previewed(cast.system, RuleChange(put=(best.rule,)), cast.engineer)
    recompute(approved(preview, cast.engineer, cast.reviewer).pk)

    after = shown_counts(cast.system)
    assert best.n_merged == sum(n[3] for n in before.values()) - sum(n[3] for n in after.values())
    assert best.n_merged_with_messages == sum(n[4] for n in before.values()) - sum(
        n[4] for n in after.values()
    )


def test_a_preview_is_worked_out_once_and_notes_how_far_it_is(cast: Cast) -> None:
    evidence(cast)
    preview, _ = previewed(cast.system, SUMS, cast.engineer)

    assert (preview.n_done, preview.n_total, preview.n_tries) == (18, 18, 1)
    assert preview.finished_at is not None
    work_out_preview(preview.pk)
    preview.refresh_from_db()
    assert preview.n_tries == 1


def test_a_preview_gives_way_to_another_worker(cast: Cast) -> None:
    preview = start_preview(cast.system, SUMS, by=cast.engineer, now=NOW)

    with held_elsewhere("evalsite.preview", preview.pk):
        work_out_preview(preview.pk)

    preview.refresh_from_db()
    assert (preview.state, preview.n_tries) == (WorkState.WAITING.value, 0)


def held_elsewhere(purpose: str, key: int) -> Any:
    """The lock, held by another connection."""
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import contextmanager
    from threading import Event

    from django.db import connection

    @contextmanager
    def held() -> Any:
        taken, done = Event(), Event()

        def hold() -> None:
            with exclusive(purpose, key) as is_mine:
                assert is_mine
                taken.set()
                done.wait(30)
            connection.close()

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(hold)
            assert taken.wait(30)
            try:
                yield
            finally:
                done.set()
                waiting.result(30)

    return held()


def test_a_preview_that_always_breaks_off_fails_with_a_sentence(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    preview = start_preview(cast.system, SUMS, by=cast.engineer, now=NOW)

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rules_reach, "rules_effect", broken)
    for _ in range(background.MOST_TRIES):
        with pytest.raises(ZeroDivisionError):
            work_out_preview(preview.pk)
    work_out_preview(preview.pk)

    preview.refresh_from_db()
    assert (preview.state, preview.result) == (WorkState.FAILED.value, None)
    assert "stopped 5 times" in preview.failure


def test_a_preview_begins_anew_when_pages_show_other_rules(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence(cast)
    preview = start_preview(cast.system, SUMS, by=cast.engineer, now=NOW)
    tries: list[int] = []

    def moving(*args: Any, **more: Any) -> RulesEffect:
        tries.append(1)
        if len(tries) < 3:
            raise RulesMovedError
        return rules_effect(*args, **more)

    monkeypatch.setattr(rules_reach, "rules_effect", moving)
    work_out_preview(preview.pk)

    preview.refresh_from_db()
    assert (preview.state, len(tries)) == (WorkState.DONE.value, 3)


def test_a_preview_gives_up_where_pages_show_other_rules_again_and_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    preview = start_preview(cast.system, SUMS, by=cast.engineer, now=NOW)

    def moving(*_: object, **__: object) -> None:
        raise RulesMovedError

    monkeypatch.setattr(rules_reach, "rules_effect", moving)
    with pytest.raises(RulesMovedError):
        work_out_preview(preview.pk)

    preview.refresh_from_db()
    assert preview.state == WorkState.WORKING.value  # the sweeper sends it again


def test_progress_is_noted_now_and_then(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    preview = start_preview(cast.system, SUMS, by=cast.engineer, now=NOW)
    rows = RulesPreview.objects.filter(pk=preview.pk)
    noted: list[int] = []

    def telling(*_: object, progress: Progress, **__: object) -> RulesEffect:
        for n_done, seconds in ((1, 0), (2, 1e9), (3, 1e9)):
            monkeypatch.setattr(rules_reach, "NOTED_EVERY_SECONDS", seconds)
            progress(n_done, 3)
            noted.append(rows.get().n_done)
        return rules_effect(cast.system, RuleSet(), RuleSet(), progress=lambda *_: None)

    monkeypatch.setattr(rules_reach, "rules_effect", telling)
    work_out_preview(preview.pk)

    assert noted == [1, 1, 3]


def test_a_preview_whose_document_is_not_whole_is_not_worked_out(cast: Cast) -> None:
    preview = start_preview(cast.system, SUMS, by=cast.engineer, now=NOW)
    RulesPreview.objects.filter(pk=preview.pk).update(document={"rules": 1})

    with pytest.raises(ValueError, match="not whole"):
        work_out_preview(preview.pk)


def test_suggestions_asked_for_meanwhile_are_looked_for_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence(cast)
    row = ask_suggestions(cast.system, now=NOW)
    searched: list[RuleSuggestions] = []

    def search(*args: Any, **more: Any) -> RuleSuggestions:
        found = suggested_rules(*args, **more)
        if not searched:
            ask_suggestions(cast.system, now=NOW)
        searched.append(found)
        return found

    monkeypatch.setattr(rules_reach, "suggested_rules", search)
    work_out_suggestions(row.pk)

    row.refresh_from_db()
    assert (row.state, len(searched)) == (WorkState.DONE.value, 2)
    assert (row.n_done, row.n_total) == (36, 36)


def test_suggestions_on_rules_that_pages_do_not_show_are_put_aside(cast: Cast) -> None:
    evidence(cast)
    row = ask_suggestions(cast.system, now=NOW)
    preview, _ = previewed(cast.system, SUMS, cast.engineer)
    recompute(approved(preview, cast.engineer, cast.reviewer).pk)

    work_out_suggestions(row.pk)

    row.refresh_from_db()
    assert (row.state, row.result) == (WorkState.CANCELLED.value, None)


def test_suggestions_are_put_aside_when_pages_show_other_rules_meanwhile(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ask_suggestions(cast.system, now=NOW)

    def moved(*_: object, **__: object) -> None:
        raise RulesMovedError

    monkeypatch.setattr(rules_reach, "suggested_rules", moved)
    work_out_suggestions(row.pk)

    row.refresh_from_db()
    assert row.state == WorkState.CANCELLED.value


def test_suggestions_give_way_to_another_worker(cast: Cast) -> None:
    row = ask_suggestions(cast.system, now=NOW)

    with held_elsewhere("evalsite.suggestions", row.pk):
        work_out_suggestions(row.pk)

    row.refresh_from_db()
    assert (row.state, row.n_tries) == (WorkState.WAITING.value, 0)
