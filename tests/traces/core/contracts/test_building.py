"""Digests of criteria cover what their checks depend on, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.contracts.whole import BASE, WHOLE, spoiled_documents
from tests.traces.core.strategies import json_values
from traces.core.contracts.changes import criterion_digests
from traces.core.contracts.expressions import CALL_NAMES, FACT_NAMES, MESSAGE_NAMES, expressions_of
from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contract
from traces.core.contracts.writing import contract_text
from traces.core.values import JsonObject

CHECKS_ON_FACTS = {"outcome", "r", "s", "p"}
ALL = CHECKS_ON_FACTS | {"budget.turns", "budget.repeat_call", "q", "e"}


def contract_of(text: str) -> Contract:
    reading = read_contract(text)
    assert reading.findings == ()
    assert reading.contract is not None
    return reading.contract


def changed_by(*replacements: tuple[str, str]) -> set[str]:
    """The criteria whose digests differ after the replacements."""
    text = BASE
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    before, after = criterion_digests(contract_of(BASE)), criterion_digests(contract_of(text))
    assert before.keys() == after.keys() == ALL
    return {name for name in ALL if before[name] != after[name]}


SAME_MEANING = {
    "comments": ("task: t\n", "# c\ntask: t  # d\n"),
    "order-of-facts": ("{a: 1, b: x}", "{b: 'x', a: 1.0}"),
    "order-of-trial-facts": ("[c, d]", "[d, c]"),
    "decimals": ("84.00", "84"),
    "order-of-changes": ("{/x/-: {n: 84.00}, /y: 1}", "[{/y: 1.0}, {/x/-: {n: 84}}]"),
    "order-of-pointers": ("[/i, /j]", "[/j, /i]"),
    "order-of-absent": ("[/k, /l]", "[/l, /k]"),
    "anchor-in-full": ("before: y", "before: {call: y, counts: attempted}"),
    "one-of-one": ("call: x, where: args.a", "any_of: [{where: args.a, call: x}]"),
    "blanks": ("where: args.a", "where: ' args.a '"),
    "order-of-any": ("[{call: x}, {message: user}]", "[{message: user}, {call: x}]"),
    "attempted": ("call: z, where: args.b", "counts: attempted, call: z, where: args.b"),
    "mandatory": ("id: p, ", "id: p, mandatory: true, "),
    "preference": ("id: r, ", "id: r, mandatory: false, "),
    "limit": ("turns: 3", "turns: {max: 3.0, mandatory: false}"),
    "graders": ("[g]", "[{name: h, kind: model}]"),
    "grader-of-rubric": ("rubric: q,", "rubric: q, graders: [j], mandatory: false,"),
    "evidence": ("[final_state]", "[initial_state]"),
    "reasons": ("step: 0.01", "step: '0.010', reason: cents, author: ada"),
    "title": ("task: t\n", "task: t\ntitle: T\nfamily: f\nsplit: tuning\ninput: i\ntrials: 4\n"),
}


@pytest.mark.parametrize("name", SAME_MEANING)
def test_the_same_meaning_has_the_same_digests(name: str) -> None:
    assert changed_by(SAME_MEANING[name]) == set()


OTHER_MEANING = {
    "fact": (("a: 1", "a: 2"), CHECKS_ON_FACTS),
    "fact-of-another-type": (("a: 1", "a: true"), CHECKS_ON_FACTS),
    "trial-fact": (("[c, d]", "[c, e]"), CHECKS_ON_FACTS),
    "when": (("when: facts.c", "when: facts.d"), {"outcome"}),
    "change": (("84.00", "84.01"), {"outcome"}),
    "ignore": (("[/i, /j]", "[/i]"), {"outcome"}),
    "absent": (("[/k, /l]", "[/k]"), {"outcome"}),
    "unchanged": (("- unchanged: true", "- absent: [/m]"), {"outcome"}),
    "expectation": ((BASE[BASE.index("outcome:") : BASE.index("required:")],
                     "outcome: recorded_expectation\n"), {"outcome"}),
    "where": (("where: args.a", "where: args.aa"), {"r"}),
    "before": (("before: y", "before: yy"), {"r"}),
    "committed": (("before: y", "before: {call: y, counts: committed}"), {"r"}),
    "after-for-before": (("before: y", "after: y"), {"r"}),
    "any": (("{message: user}", "{message: agent}"), {"s"}),
    "harm": (("harm: data", "harm: money"), {"p"}),
    "counts": (("harm: data", "harm: data, counts: committed"), {"p"}),
    "limit": (("turns: 3", "turns: 4"), {"budget.turns"}),
    "repeat": (("repeat_call: 2", "repeat_call: 3"), {"budget.repeat_call"}),
    "rule": (("step: 0.01", "step: 0.02"), {"budget.repeat_call"}),
    "rule-gone": (("kind: text", "kind: ignore"), {"budget.repeat_call"}),
    "version": (('version: "1"', 'version: "2"'), {"q"}),
    "question": (("How?", "Why?"), {"q"}),
    "class": (("class: outcome", "class: semantic"), {"e"}),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_MEANING)
def test_another_meaning_has_another_digest(name: str) -> None:
    replacement, changed = OTHER_MEANING[name]

    assert changed_by(replacement) == changed


def test_an_order_of_rules_is_no_meaning() -> None:
    first = "{tool: x, argument: a, kind: round_to, step: 0.01}"
    second = "{tool: x, argument: b, kind: text}"

    assert changed_by((f"[{first}, {second}]", f"[{second}, {first}]")) == set()


def test_the_digest_of_a_contract_covers_all_of_it_but_its_spelling() -> None:
    one = contract_of(BASE)

    assert one.digest == contract_of(BASE.replace("84.00", "84").replace("{a: 1", "{a: 1.0")).digest
    assert one.digest != contract_of(BASE.replace("[final_state]", "[facts]")).digest
    assert all(len(digest) == 16 for digest in criterion_digests(one).values())


def test_expressions_are_named_with_what_they_may_use() -> None:
    text = BASE.replace("before: y", "before: {call: y, where: error}")

    expressions = expressions_of(contract_of(text))

    assert [tuple(expression) for expression in expressions] == [
        ("outcome[0].when", "facts.c", FACT_NAMES),
        ("required[0].where", "args.a", CALL_NAMES),
        ("required[0].before.where", "error", CALL_NAMES),
        ("required[1].after.where", "text", MESSAGE_NAMES),
        ("prohibited[0].where", "args.b", CALL_NAMES),
    ]


def test_expressions_of_several_targets_and_of_none() -> None:
    several = contract_of(
        "task: t\nrequired: [{id: a, any_of: [{call: x, where: args.b}, {message: user, where: text}]}]"
    )

    assert [(e.field, e.names) for e in expressions_of(several)] == [
        ("required[0].any_of[0].where", CALL_NAMES),
        ("required[0].any_of[1].where", MESSAGE_NAMES),
    ]
    assert expressions_of(contract_of("task: t\nbudget: {turns: 1}")) == ()


# Whatever stands in a document, reading it ends in a contract or in findings


@given(spoiled_documents())
def test_a_document_with_anything_in_it_is_answered(document: JsonObject) -> None:
    reading = read_contract(contract_text(document))

    assert (reading.contract is None) == bool(reading.findings)
    for finding in reading.findings:
        assert finding.line >= 1
        assert finding.column >= 1


@given(st.dictionaries(st.sampled_from([*WHOLE, "x"]), json_values, max_size=4))  # type: ignore[misc]
def test_a_document_of_anything_is_answered(document: JsonObject) -> None:
    reading = read_contract(contract_text(document))

    assert (reading.contract is None) == bool(reading.findings)
