from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.rebuilding import rebuild
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from traces.core.rule_documents import rule_set_document
from traces.core.rule_suggestions import RuleSuggestions
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, PlainText, RuleSet, RuleTerms
from traces.models import RulesVersion, System
from traces.selectors import rule_reach, rule_suggestions
from traces.selectors.rule_reach import RulesMovedError
from traces.selectors.rule_suggestions import suggested_rules
from traces.selectors.rules import shown_rules

pytestmark = pytest.mark.django_db


def calculation(expression: object) -> Call:
    return ("calculate", {"expression": expression})


def load(cast: Cast, *paths: list[Call], task_id: str = "t1") -> None:
    ingest(
        cast.system,
        [record(task_id, trial, calls=calls) for trial, calls in enumerate(paths)],
        run=f"of {task_id}",
    )


def show(cast: Cast, *rules: ArgumentRule) -> None:
    """Put rules into force at once."""
    cast.system.shown_rules = RulesVersion.objects.create(
        system=cast.system, number=9, document=rule_set_document(RuleSet(rules)), reason="r"
    )
    cast.system.save()
    rebuild(cast.system, say=lambda _: None)


def found(cast: Cast) -> RuleSuggestions:
    system = System.objects.get(pk=cast.system.pk)
    return suggested_rules(system, shown_rules(system), progress=lambda *_: None)


def brief(result: RuleSuggestions) -> list[tuple[str, RuleTerms, int, int]]:
    return [
        (one.rule.argument, one.rule.terms, one.n_merged, one.n_tasks) for one in result.suggestions
    ]


def rule(terms: RuleTerms, argument: str = "expression", task: str | None = None) -> ArgumentRule:
    return ArgumentRule("calculate", argument, terms, "reason", "ada", task)


def test_suggestions_with_what_they_would_merge(cast: Cast) -> None:
    spelled = [[calculation(text)] for text in ("1200", "1000 + 200", "600 * 2")]
    load(cast, *spelled, [calculation("7")], [("other", {})])
    load(cast, *spelled[:2], task_id="t2")
    load(cast, [calculation("5")], task_id="t3")

    result = found(cast)

    assert brief(result) == [("expression", Arithmetic(), 3, 2)]
    assert (result.n_tasks, result.n_paths, result.n_calls, result.is_cut) == (3, 6, (), False)
    assert result.suggestions[0].examples == (
        "calculate.expression: 3 spellings, all 1200",
        "calculate.expression: 2 spellings, all 1200",
    )


def test_only_slots_that_count_and_pass_suggest(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record(trial=0, calls=[calculation("2")]),
            record(trial=1, calls=[calculation("1 + 1")], verdicts=[verdict("fail")]),
            record(trial=2, calls=[calculation("4 / 2")], environment="production"),
            record(trial=3, calls=[calculation("3 - 1")], fault={"kind": "timeout"}),
        ],
    )
    ingest(cast.other_system, [record(calls=[calculation("1 + 1")])])

    assert found(cast).suggestions == ()


def test_forms_in_paths_that_differ_otherwise_are_named(cast: Cast) -> None:
    load(cast, [calculation("725 - 503"), ("end", {})], [calculation("111 * 2")])

    assert brief(found(cast)) == [("expression", Arithmetic(), 0, 0)]


def test_suggestions_stand_on_the_rules_in_force(cast: Cast) -> None:
    load(cast, [calculation("2")], [calculation("1 + 1")], [calculation("1  + 1")])
    show(cast, rule(PlainText()))

    assert found(cast).suggestions == ()


def test_rules_count_the_distinct_calls_that_they_applied_to(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_suggestions, "_CALLS_AT_ONCE", 2)
    load(cast, *[[calculation(text)] for text in ("2", "1 + 1", "2", "three")])
    load(cast, [calculation("7")], [calculation(7), calculation("8")], task_id="t2")
    show(
        cast,
        rule(Arithmetic()),
        rule(Ignore(), "note"),
        rule(PlainText(), task="t2"),
        rule(Arithmetic(), task="absent"),
        ArgumentRule("unknown", "x", Ignore(), "r", "a"),
    )

    assert found(cast).n_calls == (5, 0, 2, 0, 0)


def test_work_in_small_batches_gives_the_same(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        load(
            cast,
            *[[calculation(text)] for text in ("2", "1 + 1", "7")],
            *[[calculation(text), ("end", {})] for text in ("3", "1 + 2")],
            task_id=f"t{number}",
        )
    whole = found(cast)
    monkeypatch.setattr(rule_reach, "BATCH", 1)
    monkeypatch.setattr(rule_suggestions, "BATCH", 2)

    assert found(cast) == whole
    assert brief(whole) == [("expression", Arithmetic(), 6, 3)]


def test_progress_counts_both_looks(cast: Cast) -> None:
    load(cast, [calculation("2")], [calculation("1 + 1")])
    told: list[tuple[int, int]] = []

    suggested_rules(cast.system, shown_rules(cast.system), progress=lambda *n: told.append(n))

    assert told == [(2, 4), (4, 4)]


def test_rules_that_are_not_shown_are_told(cast: Cast) -> None:
    load(cast, [calculation("2")], [calculation("1 + 1")])
    other = cast.other_system.shown_rules
    assert other is not None

    with pytest.raises(RulesMovedError):
        suggested_rules(cast.system, other, progress=lambda *_: None)


def test_a_system_without_evidence(cast: Cast) -> None:
    assert found(cast) == RuleSuggestions((), (), n_tasks=0, n_paths=0, is_cut=False)


@pytest.mark.parametrize("n_tasks", [1, 3])
def test_the_number_of_queries_follows_batches_not_tasks(cast: Cast, n_tasks: int) -> None:
    for number in range(n_tasks):
        load(cast, *[[calculation(text)] for text in ("2", "1 + 1", "7")], task_id=f"t{number}")
    version = shown_rules(cast.system)

    with CaptureQueriesContext(connection) as queries:
        suggested_rules(cast.system, version, progress=lambda *_: None)

    # Tasks; calls seen; twice the paths of a batch, the pointer, steps and calls.
    assert len(queries) == 10
