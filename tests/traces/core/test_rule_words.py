from __future__ import annotations

from decimal import Decimal

import pytest

from traces.core.rule_words import (
    Merge,
    argument_name,
    merge_sentence,
    merges_of,
    rule_name,
    rule_sentence,
)
from traces.core.rules import (
    Alias,
    ArgumentRule,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RoundTo,
    RuleSet,
    RuleTerms,
    SameTime,
    Time,
    Unordered,
)
from traces.core.values import Json


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("", "book"),
        ("cabin", "book.cabin"),
        ("/flights/*/date", "book.flights[*].date"),
        ("a.b", 'book["a.b"]'),
        ("/~2/0", 'book["*"]["0"]'),
    ],
)
def test_rule_name_shows_the_argument(argument: str, name: str) -> None:
    assert rule_name(ArgumentRule("book", argument, Ignore())) == name
    assert argument_name("book", ()) == "book"


CASES: list[tuple[RuleTerms, str, list[Json], str]] = [
    (Ignore(), "not compared.", ["a", "b", "a"], "2 values, not compared"),
    (
        RoundTo(Decimal("0.01")),
        "numbers with the same nearest multiple of 0.01 are equal.",
        ["1200.0", 1200],
        "2 numbers, all 1200 to 0.01",
    ),
    (
        Arithmetic(),
        "expressions with the same value are equal.",
        ["(350 + 250) * 2", "600 * 2", "1200"],
        "3 spellings, all 1200",
    ),
    (
        PlainText(),
        "texts that differ in case, white space or Unicode form alone are equal.",
        ["A  b", "a b"],
        "2 spellings of one text, all a b",
    ),
    (
        Time(SameTime.INSTANT),
        "times of the same instant are equal.",
        ["2024-05-20T10:00Z", "2024-05-20T12:00+02:00"],
        "2 spellings of 2024-05-20T10:00:00Z",
    ),
    (
        Time(SameTime.DAY, "Europe/Berlin"),
        "times on the same day in Europe/Berlin are equal.",
        ["2024-05-20T10:00Z", "2024-05-20"],
        "2 times, all on 2024-05-20 in Europe/Berlin",
    ),
    (
        Unordered(),
        "lists with the same elements in any order are equal.",
        [[1, 2], [2, 1]],
        "2 orders of one list",
    ),
    (Default('"economy"'), 'absent is the same as "economy".', ["economy"], '"economy"'),
    (
        Alias((('"SFO"', '"San Francisco"'), ("1", "2"))),
        'these values are equal: "SFO" = "San Francisco"; 1 = 2.',
        ["SFO", "San Francisco"],
        '"SFO" = "San Francisco", declared equal',
    ),
]


@pytest.mark.parametrize(("terms", "says", "values", "merged"), CASES)
def test_each_kind_has_its_words(
    terms: RuleTerms, says: str, values: list[Json], merged: str
) -> None:
    rule = ArgumentRule("calculate", "expression", terms)
    assert rule_sentence(rule) == f"calculate.expression: {says}"
    assert merge_sentence(rule, values) == f"calculate.expression: {merged}"


def test_merge_sentence_of_values_without_a_common_form_says_equal() -> None:
    rule = ArgumentRule("calculate", "expression", Arithmetic())
    assert merge_sentence(rule, ["1", "2"]) == "calculate.expression: 2 spellings, all equal"
    assert merge_sentence(rule, ["x"]) == 'calculate.expression: 1 spelling, all "x"'


def test_merge_sentence_cuts_long_values() -> None:
    rule = ArgumentRule("t", "a", Alias((("1", f'"{"x" * 100}"'),)))
    assert merge_sentence(rule, ["x" * 100]) == f't.a: "{"x" * 58}…, declared equal'


SUMS = ArgumentRule("calculate", "expression", Arithmetic())
NOTE = ArgumentRule("calculate", "note", Ignore())
UNIT = ArgumentRule("calculate", "unit", Default('"usd"'))


def test_merges_of_names_what_each_rule_made_the_same() -> None:
    calls: list[Json] = [
        {"expression": "600 * 2", "note": "first", "unit": "usd"},
        {"expression": "1200", "unit": "usd"},
        {"expression": "600 * 2", "note": "second"},
    ]
    assert merges_of("calculate", calls, RuleSet((SUMS, NOTE, UNIT))) == (
        Merge(
            SUMS,
            ('"600 * 2"', '"1200"'),
            False,
            "calculate.expression: 2 spellings, all 1200",
        ),
        Merge(
            NOTE,
            ('"first"', '"second"'),
            True,
            "calculate.note: 2 values or none, not compared",
        ),
        Merge(UNIT, ('"usd"',), True, 'calculate.unit: "usd" or none'),
    )


def test_merges_of_equal_calls_are_none() -> None:
    calls: list[Json] = [{"expression": "1+1"}, {"expression": "1+1"}]
    assert merges_of("calculate", calls, RuleSet((SUMS, NOTE, UNIT))) == ()
    assert merges_of("other", calls, RuleSet((SUMS,))) == ()


def test_merges_of_follow_the_rules_of_the_task() -> None:
    rules = RuleSet((ArgumentRule("calculate", "expression", Ignore(), task_id="7"),))
    calls: list[Json] = [{"expression": "1"}, {"expression": "2"}]
    assert merges_of("calculate", calls, rules) == ()
    (merge,) = merges_of("calculate", calls, rules, "7")
    assert merge.sentence == "calculate.expression: 2 values, not compared"
