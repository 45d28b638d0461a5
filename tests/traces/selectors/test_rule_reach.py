from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from traces.core.paths import PathLevel
from traces.core.rule_effects import RulesEffect
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, RuleSet, RuleTerms
from traces.core.trajectory import ToolKind
from traces.models import System, Task
from traces.selectors import rule_reach, stored_keys
from traces.selectors.rule_reach import RulesMovedError, rules_effect

pytestmark = pytest.mark.django_db

NONE = RuleSet()
SPELLINGS = ("1200", "1000 + 200", "600 * 2", "1500 - 300")


def rule(terms: RuleTerms, task: str | None = None) -> ArgumentRule:
    return ArgumentRule("calculate", "expression", terms, "reason", "ada", task)


SUMS = RuleSet((rule(Arithmetic()),))


def calculation(expression: str) -> Call:
    return ("calculate", {"expression": expression})


def load(cast: Cast, *paths: list[Call], task_id: str = "t1") -> None:
    ingest(
        cast.system,
        [record(task_id, trial, calls=calls) for trial, calls in enumerate(paths)],
        run=f"of {task_id}",
    )


def effect_of(cast: Cast, changed: RuleSet, base: RuleSet = NONE) -> RulesEffect:
    system = System.objects.get(pk=cast.system.pk)
    return rules_effect(system, base, changed, progress=lambda *_: None)


def counts(effect: RulesEffect) -> dict[str, tuple[int, int]]:
    """Paths before and after at the levels without agent messages."""
    return {
        count.level.value: (count.n_before, count.n_after)
        for count in effect.levels
        if not count.messages
    }


def article(cast: Cast) -> None:
    """Ten passing trials: four sequences, seven trajectories, four spellings of one sum."""
    sums = [[calculation(text)] for text in (*SPELLINGS, SPELLINGS[0], SPELLINGS[0])]
    others: list[list[Call]] = [[("a", {})], [("a", {}), ("b", {})], [("b", {})], [("b", {})]]
    load(cast, *sums, *others)


def test_effect_of_the_article_s_rule(cast: Cast) -> None:
    article(cast)

    effect = effect_of(cast, SUMS)

    assert (effect.n_trials, effect.n_tasks, effect.n_tasks_changed) == (10, 1, 1)
    assert counts(effect) == {"effects": (7, 4), "reads_any_order": (4, 4), "equivalent": (7, 4)}
    (task,) = effect.tasks
    assert (task.task_id, task.uuid) == ("t1", Task.objects.get(task_id="t1").uuid)
    assert [(one.before, one.after, one.sentences) for one in task.examples] == [
        ((3, 1, 1, 1), (6,), ("calculate.expression: 4 spellings, all 1200",))
    ] * 2


def test_effect_of_no_change(cast: Cast) -> None:
    article(cast)

    effect = effect_of(cast, NONE)

    assert (effect.n_tasks_changed, effect.tasks) == (0, ())
    assert counts(effect) == {"effects": (7, 7), "reads_any_order": (4, 4), "equivalent": (7, 7)}


def test_effect_on_a_base_that_pages_do_not_show_yet(cast: Cast) -> None:
    article(cast)
    widened = RuleSet(SUMS.rules, (("calculate", ToolKind.READ),))

    effect = effect_of(cast, widened, base=SUMS)

    assert counts(effect) == {"effects": (4, 4), "reads_any_order": (4, 4), "equivalent": (4, 4)}
    assert effect.n_tasks_changed == 0
    back = effect_of(cast, NONE, base=SUMS)
    assert counts(back) == {"effects": (4, 7), "reads_any_order": (4, 4), "equivalent": (4, 7)}
    assert back.tasks[0].examples[0].sentences == (
        "No longer equal: calculate.expression: 4 spellings, all 1200",
    )


def test_effect_of_a_rule_of_one_task(cast: Cast) -> None:
    load(cast, [calculation("2")], [calculation("1 + 1")])
    load(cast, [calculation("2")], [calculation("1 + 1")], task_id="t2")

    effect = effect_of(
        cast, RuleSet((rule(Arithmetic(), "t2"), rule(Ignore(), "t9"), rule(Ignore(), "t\0")))
    )

    assert [task.task_id for task in effect.tasks] == ["t2"]
    assert counts(effect)["equivalent"] == (4, 3)


def test_only_slots_that_count_and_pass_are_looked_at(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record(trial=0, calls=[calculation("2")]),
            record(trial=1, calls=[calculation("1 + 1")], verdicts=[verdict("fail")]),
            record(trial=2, calls=[calculation("4 / 2")], environment="production"),
            record(trial=3, calls=[calculation("3 - 1")], fault={"kind": "timeout"}),
            record(trial=4, calls=[calculation("2 * 1")], status="error"),
            record(trial=4, attempt=2, calls=[calculation("2 + 0")]),
            record(task_id="t2", verdicts=[verdict("fail")]),
        ],
    )
    ingest(cast.system, [record(calls=[calculation("1 * 2")])], release="2.0")

    effect = effect_of(cast, SUMS)

    assert (effect.n_trials, effect.n_tasks) == (3, 1)
    assert counts(effect)["equivalent"] == (3, 1)


def test_trajectories_that_cannot_be_compared_stay_apart(cast: Cast) -> None:
    def with_absent(trial: int) -> dict[str, object]:
        one = record(trial=trial, calls=[calculation("2")])
        one["messages"].insert(
            1,
            {
                "role": "assistant",
                "tool_calls": [{"id": "x", "type": "function", "function": {"name": "calculate"}}],
            },
        )
        return one

    ingest(cast.system, [with_absent(0), with_absent(1)])

    assert counts(effect_of(cast, SUMS)) == {
        "effects": (2, 2),
        "reads_any_order": (1, 1),
        "equivalent": (2, 2),
    }


def test_effect_of_kinds_reaches_paths_that_do_not_use_the_tool(cast: Cast) -> None:
    load(cast, [calculation("2"), ("book", {"n": 1})], [("book", {"n": 1})])

    effect = effect_of(cast, RuleSet((), (("calculate", ToolKind.READ),)))

    assert counts(effect)["effects"] == (2, 1)
    assert effect.tasks[0].examples[0].level is PathLevel.EFFECTS


def test_work_in_small_batches_gives_the_same(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    article(cast)
    for number in range(3):
        load(cast, [calculation("2")], [calculation("1 + 1")], task_id=f"x{number}")
    whole = effect_of(cast, SUMS)
    monkeypatch.setattr(rule_reach, "BATCH", 2)
    monkeypatch.setattr(rule_reach, "_WORDED_TASKS", 1)
    monkeypatch.setattr(stored_keys, "MOST_KEPT", 0)

    assert effect_of(cast, SUMS) == whole


def test_progress_is_told_in_passing_trials(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    article(cast)
    load(cast, [calculation("2")], task_id="t2")
    monkeypatch.setattr(rule_reach, "BATCH", 10)
    told: list[tuple[int, int]] = []

    rules_effect(cast.system, NONE, SUMS, progress=lambda *n: told.append(n))

    assert told == [(10, 11), (11, 11)]


def test_a_system_without_passing_trials(cast: Cast) -> None:
    effect = effect_of(cast, SUMS)

    assert (effect.n_trials, effect.n_tasks, effect.tasks) == (0, 0, ())


def test_another_system_s_trials_do_not_count(cast: Cast) -> None:
    ingest(cast.other_system, [record(calls=[calculation("2")])])

    assert effect_of(cast, SUMS).n_trials == 0


def test_rules_that_begin_to_be_shown_meanwhile_are_told(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    article(cast)
    system = System.objects.get(pk=cast.system.pk)
    other = cast.other_system.shown_rules
    System.objects.filter(pk=system.pk).update(shown_rules=other)

    with pytest.raises(RulesMovedError):
        rules_effect(system, NONE, SUMS, progress=lambda *_: None)


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_the_number_of_queries_follows_batches_not_tasks(cast: Cast, n_tasks: int) -> None:
    for number in range(n_tasks):
        load(cast, [calculation("2")], [calculation("1 + 1")], task_id=f"t{number}")
    system = System.objects.select_related("shown_rules").get(pk=cast.system.pk)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        rules_effect(system, NONE, SUMS, progress=lambda *_: None)

    # Tools and tasks; paths, the pointer, steps and calls of a batch; steps and calls of examples.
    assert len(queries) == 8
