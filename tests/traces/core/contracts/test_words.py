"""A contract in words."""

from __future__ import annotations

import pytest

from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contract
from traces.core.contracts.words import (
    LONGEST_VALUE,
    CaseWords,
    EntryWords,
    HarmWords,
    Words,
    budget_words,
    evidence_words,
    external_words,
    outcome_words,
    prohibited_words,
    required_words,
    semantic_words,
    variation_words,
)


def contract(rest: str) -> Contract:
    reading = read_contract(f"task: t\n{rest}\n")
    assert reading.contract is not None, reading.findings
    return reading.contract


ASKED = "required: [{id: r, call: look}]"


def test_a_contract_without_outcome_has_no_cases() -> None:
    assert outcome_words(contract(ASKED)) == ()


def test_a_recorded_expectation_is_one_case() -> None:
    assert outcome_words(contract("outcome: recorded_expectation")) == (
        CaseWords("Always", "", (Words("the state is the one that the trial's record expects"),)),
    )


def test_cases_are_tried_in_order() -> None:
    text = """\
outcome:
  - when: facts.a
    changes: {/x/-: 1.50, /y: null}
    ignore: [/x/*/id]
    absent: [/z]
  - when: facts.b
    unchanged: true
  - absent: [/q]
"""
    rest = Words("everything else stays as it was")
    assert outcome_words(contract(f"trial_facts: [a, b]\n{text}")) == (
        CaseWords(
            "Where",
            "facts.a",
            (
                Words("gets the new entry", "/x", "1.50"),
                Words("becomes", "/y", "null"),
                Words("is absent", "/z"),
                Words("is not compared", "/x/*/id"),
                rest,
            ),
        ),
        CaseWords("Otherwise, where", "facts.b", (Words("nothing changes"),)),
        CaseWords("Otherwise", "", (Words("is absent", "/q"), Words("nothing changes"))),
    )


def test_a_case_without_condition_always_holds() -> None:
    assert outcome_words(contract("outcome: [{unchanged: true}]"))[0].lead == "Always"


def test_a_long_value_is_cut() -> None:
    long = "x" * LONGEST_VALUE
    ((line, _),) = (
        case.lines for case in outcome_words(contract(f"outcome: [{{changes: {{/a: {long}}}}}]"))
    )
    assert line.where == f'"{long[:-2]}…'
    assert len(line.where) == LONGEST_VALUE


def test_required_entries_name_targets_and_anchors() -> None:
    text = """\
required:
  - {id: one, call: look, where: 'args.a == 1', before: pay}
  - {id: two, any_of: [{call: a}, {message: user, where: 'text == "yes"'}], before: {call: pay, where: 'args.b == 2', counts: committed}}
  - {id: three, message: agent, after: pay, mandatory: false}
  - {id: four, call: a, after: {message: user, where: 'text == "go"'}}
"""
    assert required_words(contract(text)) == (
        EntryWords(
            "one",
            (Words("call of", "look", "args.a == 1"), Words("before the first attempt of", "pay")),
        ),
        EntryWords(
            "two",
            (
                Words("call of", "a"),
                Words("or message of the user", "", 'text == "yes"'),
                Words("before the first committed call of", "pay", "args.b == 2"),
            ),
        ),
        EntryWords(
            "three",
            (Words("message of the agent"), Words("after the last attempt of", "pay")),
            is_mandatory=False,
        ),
        EntryWords(
            "four",
            (
                Words("call of", "a"),
                Words("after the last message of the user", "", 'text == "go"'),
            ),
        ),
    )


def test_prohibited_entries_stand_by_harm() -> None:
    text = """\
prohibited:
  - {id: a, harm: data, call: x}
  - {id: b, harm: money, call: y, counts: committed}
  - {id: c, harm: data, message: agent, mandatory: false}
"""
    attempt = "an attempt already violates it"
    assert prohibited_words(contract(text)) == (
        HarmWords(
            "data",
            (
                EntryWords("a", (Words("call of", "x"),), attempt),
                EntryWords("c", (Words("message of the agent"),), attempt, is_mandatory=False),
            ),
        ),
        HarmWords("money", (EntryWords("b", (Words("call of", "y"),), "committed calls only"),)),
    )


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("tool_calls: 1", "at most 1 tool call"),
        ("tool_calls: 1000", "at most 1,000 tool calls"),
        ("turns: 3", "at most 3 answered messages of the user"),
        ("cost_usd: 0.40", "at most 0.40 US dollars"),
        ("tokens: 20000", "at most 20,000 tokens"),
        ("seconds: 1.5", "at most 1.5 seconds"),
        ("repeat_call: 3", "at most 3 calls of one tool with the same arguments"),
    ],
)
def test_a_budget_names_its_limit(entry: str, words: str) -> None:
    name = entry.partition(":")[0]
    assert budget_words(contract(f"budget: {{{entry}}}")) == (
        EntryWords(f"budget.{name}", (Words(words),)),
    )


def test_rubrics_and_external_criteria_name_who_must_vote() -> None:
    text = """\
semantic:
  - {rubric: tone, mandatory: false}
  - {rubric: true, version: "2", question: Is it so?, graders: [{name: judge, kind: model}]}
external:
  - {id: db, class: outcome, graders: [tau2]}
""".replace("rubric: true", "rubric: truth")
    assert semantic_words(contract(text)) == (
        EntryWords("tone", (Words("decided by people and calibrated judges"),), is_mandatory=False),
        EntryWords("truth", (Words("Is it so?"),), "version 2, must vote: judge (model)"),
    )
    assert external_words(contract(text)) == (
        EntryWords("db", (Words("decided outside, as outcome"),), "must vote: tau2 (code)"),
    )


def test_evidence_and_variation_are_said() -> None:
    text = f"""{ASKED}
evidence: [initial_state, final_state, tool_results, facts, cost, tokens, times]
variation: [{{tool: look, argument: a, kind: arithmetic}}]
"""
    assert evidence_words(contract(text)) == (
        "initial state",
        "final state",
        "the result of every tool call",
        "facts",
        "cost",
        "tokens",
        "start and end",
    )
    assert variation_words(contract(text)) == (
        "look.a: expressions with the same value are equal.",
    )
