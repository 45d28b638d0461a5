from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.core.strategies import arguments, rule_sets, tools
from traces.core.canonical import canonical_text, equal
from traces.core.rules import (
    Alias,
    ArgumentRule,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RejectionSettings,
    RoundTo,
    RuleKind,
    RuleSet,
    RuleTerms,
    RuleUse,
    SameTime,
    Time,
    Unordered,
    compiled,
    normal_value,
    normalise_arguments,
    path_tokens,
)
from traces.core.trajectory import ToolKind
from traces.core.values import Json

CENT = RoundTo(Decimal("0.01"))
BERLIN_DAY = Time(SameTime.DAY, "Europe/Berlin")
INSTANT = Time(SameTime.INSTANT)
AIRPORTS = Alias((('"SFO"', '"San Francisco"'), ("1", '"one"')))


def same(terms: RuleTerms, left: Json, right: Json) -> bool:
    return equal(normal_value(terms, left), normal_value(terms, right))


@pytest.mark.parametrize(
    ("terms", "left", "right"),
    [
        (Ignore(), "anything", {"else": 1}),
        (CENT, "1200.0", 1200),
        (CENT, 1200.004, Decimal("1199.996")),
        (CENT, " +1.2e3 ", 1200.0),
        (CENT, ".5", 0.5),
        (CENT, "5.", 5),
        (RoundTo(Decimal(10)), 5, 0),  # a tie goes to the even multiple
        (RoundTo(Decimal(10)), 15, 24),
        (RoundTo(Decimal(10)), -5, 0),
        (Arithmetic(), "(350 + 250) * 2", "600 * 2"),
        (Arithmetic(), "1200.00", 1200),
        (Arithmetic(), Decimal("0.5"), "1/2"),
        (PlainText(), "  Hello\tWorld ", "hello world"),
        (PlainText(), "ﬁne", "FINE"),
        (PlainText(), "STRASSE", "straße"),
        (INSTANT, "2024-05-20T10:00:00Z", "2024-05-20T12:00:00+02:00"),
        (INSTANT, "2024-05-20 10:00", "2024-05-20T10:00:00.000z"),
        (INSTANT, "2024-05-20T10:00:00.1234567890", "2024-05-20T05:00:00.123456789-0500"),
        (INSTANT, "2024-05-20T10:00:00+02", "2024-05-20T08:00Z"),
        (BERLIN_DAY, "2024-05-20", "2024-05-19T22:00:00Z"),
        (BERLIN_DAY, "2024-05-20T23:30:00+02:00", "2024-05-20 00:00 +02:00"),
        (Time(SameTime.DAY), "2024-05-20", "2024-05-21T01:59:00+02:00"),
        (Unordered(), [1, 2, 2.0, "a"], ["a", 2, 1.0, 2]),
        (Unordered(), [{"a": 1}, []], [[], {"a": 1.0}]),
        (AIRPORTS, "SFO", "San Francisco"),
        (AIRPORTS, 1.0, "one"),
    ],
)
def test_values_that_a_rule_makes_the_same(terms: RuleTerms, left: Json, right: Json) -> None:
    assert same(terms, left, right)


@pytest.mark.parametrize(
    ("terms", "left", "right"),
    [
        (CENT, 1200.006, 1200),
        (CENT, "1,200", 1200),
        (CENT, "１２", 12),
        (CENT, True, 1),
        (CENT, None, 0),
        (CENT, "1e999", "1e998"),
        (CENT, Decimal("1e9999"), Decimal("1e9998")),
        (CENT, Decimal("1e-9999"), 0),
        (CENT, 10**2000, 10**2000 + 1),
        (Arithmetic(), "1,200", 1200),
        (Arithmetic(), "1/0", "2/0"),
        (Arithmetic(), ["1"], 1),
        (Arithmetic(), False, 0),
        (PlainText(), "a b", "ab"),
        (PlainText(), "1", 1),
        (INSTANT, "2024-05-20", "2024-05-20T00:00:00Z"),
        (INSTANT, "2024-02-30T00:00:00Z", "2024-03-01T00:00:00Z"),
        (INSTANT, "2024-05-20T10:00:60Z", "2024-05-20T10:01:00Z"),
        (INSTANT, "2024-05-20T10:00:00+24:00", "2024-05-19T10:00:00Z"),
        (INSTANT, "2024-05-20T10:00:00+00:60", "2024-05-20T09:00:00Z"),
        (INSTANT, "0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+02:00"),
        (INSTANT, 1716199200, "2024-05-20T10:00:00Z"),
        (INSTANT, "2024-05-20T10:00:00.1Z", "2024-05-20T10:00:00.2Z"),
        (BERLIN_DAY, "2024-05-20", "2024-05-20T22:00:00Z"),
        (BERLIN_DAY, "2024-13-20", "2024-12-20"),
        (Unordered(), [1, 1, 2], [1, 2, 2]),
        (Unordered(), [1], [True]),
        (Unordered(), "ab", "ba"),
        (AIRPORTS, "SFO", 1),
        (AIRPORTS, "LAX", "SFO"),
        (AIRPORTS, True, 1),
    ],
)
def test_values_that_a_rule_keeps_apart(terms: RuleTerms, left: Json, right: Json) -> None:
    assert not same(terms, left, right)


@pytest.mark.parametrize("terms", [CENT, Arithmetic(), PlainText(), INSTANT, Unordered(), AIRPORTS])
def test_a_value_that_a_rule_cannot_apply_to_stays_exact(terms: RuleTerms) -> None:
    value: Json = {"left": ["as", "it", 1.0]}
    assert normal_value(terms, value) == ["exact", value]


def rules_of(*rules: ArgumentRule) -> RuleSet:
    return RuleSet(rules)


def test_normalise_arguments_names_each_rule_and_place() -> None:
    dates = ArgumentRule("book", "/flights/*/date", BERLIN_DAY)
    flights = ArgumentRule("book", "flights", Unordered())
    note = ArgumentRule("book", "note", Ignore())
    cabin = ArgumentRule("book", "cabin", Default('"economy"'))
    given_arguments: Json = {
        "flights": [{"date": "2024-05-21"}, {"date": "2024-05-20T10:00:00Z"}],
        "note": "please",
        "cabin": "economy",
        "paid": 3,
    }
    flights_normal: Json = [
        "unordered",
        [{"date": ["datetime", "2024-05-20"]}, {"date": ["datetime", "2024-05-21"]}],
    ]

    normal, uses = normalise_arguments(
        "book", given_arguments, rules_of(dates, flights, note, cabin)
    )

    assert normal == {"flights": flights_normal, "paid": 3}
    assert uses == (
        RuleUse(dates, "/flights/0/date", "2024-05-21", ["datetime", "2024-05-21"]),
        RuleUse(dates, "/flights/1/date", "2024-05-20T10:00:00Z", ["datetime", "2024-05-20"]),
        RuleUse(flights, "/flights", given_arguments["flights"], flights_normal),
        RuleUse(note, "/note", "please", ["ignore"]),
        RuleUse(cabin, "/cabin", "economy", ["ignore"]),
    )


def test_normalise_arguments_of_a_tool_without_rules_is_exact() -> None:
    rules = rules_of(ArgumentRule("other", "a", Ignore()))
    assert normalise_arguments("book", {"a": 1.0}, rules) == ({"a": 1.0}, ())


def test_arguments_that_are_no_object_are_left_alone() -> None:
    rules = rules_of(ArgumentRule("book", "a", Ignore()))
    for value in (None, "text", 7, True, [1, 2]):
        assert normalise_arguments("book", value, rules) == (value, ())


def test_a_rule_on_the_whole_arguments_applies_to_them() -> None:
    assert normalise_arguments("t", [2, 1], rules_of(ArgumentRule("t", "", Unordered())))[0] == [
        "unordered",
        [1, 2],
    ]
    assert normalise_arguments("t", {"a": 1}, rules_of(ArgumentRule("t", "", Ignore())))[0] == [
        "ignore"
    ]


def test_ignored_elements_still_count() -> None:
    rules = rules_of(ArgumentRule("t", "/a/*", Ignore()))
    assert normalise_arguments("t", {"a": [1, 2]}, rules)[0] == {"a": [["ignore"], ["ignore"]]}
    assert normalise_arguments("t", {"a": {"b": 1, "c": 2}}, rules)[0] == {"a": {}}


def test_a_default_equals_absence_and_null_does_not() -> None:
    rules = rules_of(ArgumentRule("t", "n", Default("1")))
    forms = [normalise_arguments("t", value, rules)[0] for value in ({}, {"n": 1.0}, {"n": None})]
    assert forms == [{}, {}, {"n": None}]


def test_a_rule_of_the_task_comes_before_one_of_the_system() -> None:
    rules = rules_of(
        ArgumentRule("t", "a", PlainText()),
        ArgumentRule("t", "/a", Ignore(), task_id="7"),
        ArgumentRule("t", "/*", Arithmetic(), task_id="8"),
    )
    assert normalise_arguments("t", {"a": "X"}, rules)[0] == {"a": ["text", "x"]}
    assert normalise_arguments("t", {"a": "X"}, rules, "6")[0] == {"a": ["text", "x"]}
    assert normalise_arguments("t", {"a": "X"}, rules, "7")[0] == {}
    assert normalise_arguments("t", {"a": "1"}, rules, "8")[0] == {"a": ["arithmetic", "1"]}


def test_a_literal_name_comes_before_a_wildcard() -> None:
    rules = rules_of(
        ArgumentRule("t", "/*/b", Ignore()),
        ArgumentRule("t", "/a/*", PlainText()),
        ArgumentRule("t", "/*", Unordered()),
    )
    assert normalise_arguments("t", {"a": {"b": "X"}}, rules)[0] == {
        "a": ["exact", {"b": ["text", "x"]}]
    }
    assert normalise_arguments("t", {"c": {"b": "X"}}, rules)[0] == {"c": ["exact", {}]}


@pytest.mark.parametrize(
    ("argument", "tokens"),
    [
        ("", ()),
        ("expression", ("expression",)),
        ("a.b", ("a.b",)),
        ("*", ("*",)),
        ("/flights/*/date", ("flights", None, "date")),
        ("/a~1b/~0~02/~2", ("a/b", "~~2", "*")),
        ("/", ("",)),
    ],
)
def test_path_tokens_of_names_and_pointers(argument: str, tokens: tuple[str | None, ...]) -> None:
    assert path_tokens(argument) == tokens


def test_elements_of_a_list_are_not_reached_by_index() -> None:
    rules = rules_of(ArgumentRule("t", "/a/0", PlainText()))
    assert normalise_arguments("t", {"a": ["X"]}, rules) == ({"a": ["X"]}, ())
    assert normalise_arguments("t", {"a": {"0": "X"}}, rules)[0] == {"a": {"0": ["text", "x"]}}


@settings(max_examples=400)
@given(rule_sets, tools, st.lists(arguments, min_size=2, max_size=5), st.sampled_from([None, "7"]))
def test_rules_only_merge_and_never_split(
    rules: RuleSet, tool: str, values: list[Json], task_id: str | None
) -> None:
    for left in values:
        for right in values:
            forms = [normalise_arguments(tool, value, rules, task_id)[0] for value in (left, right)]
            if equal(left, right):
                assert equal(*forms)


def merged_by_hand(terms: RuleTerms, left: Json, right: Json) -> bool:
    """Whether two present values are the same under terms, without normal forms."""
    if equal(left, right) or isinstance(terms, Ignore):
        return True
    tagged = [normal_value(terms, value) for value in (left, right)]
    return tagged[0][0] != "exact" and equal(*tagged)  # type: ignore[index]


@settings(max_examples=400)
@given(rule_sets, tools, arguments, arguments)
def test_arguments_become_the_same_only_by_a_rule_at_each_difference(
    rules: RuleSet, tool: str, left: dict[str, Json], right: dict[str, Json]
) -> None:
    """No normal form of one value equals another value for want of a mark."""
    flat = RuleSet(tuple(rule for rule in rules.rules if rule.tokens in (("a",), ("b",))))
    rule_at = {
        rule.argument.lstrip("/"): rule
        for rule in flat.rules
        if rule.tool == tool and rule.task_id is None
    }
    expected = True
    for name in {*left, *right}:
        rule = rule_at.get(name)
        if name in left and name in right:
            terms = rule.terms if rule else Default("never")
            same_here = (
                equal(left[name], right[name])
                if isinstance(terms, Default)
                else merged_by_hand(terms, left[name], right[name])
            )
        else:
            present = left.get(name, right.get(name))
            terms = rule.terms if rule else Default("never")
            same_here = isinstance(terms, Ignore) or (
                isinstance(terms, Default) and canonical_text(present) == terms.value
            )
        expected = expected and same_here
    forms = [normalise_arguments(tool, value, flat)[0] for value in (left, right)]
    assert equal(*forms) is expected


def test_kinds_of_rules_are_the_eight_of_the_design() -> None:
    kinds = [
        ArgumentRule("t", "a", terms).kind
        for terms in (
            Ignore(), CENT, Arithmetic(), PlainText(), INSTANT, Unordered(), Default("1"), AIRPORTS,
        )
    ]  # fmt: skip
    assert kinds == list(RuleKind)


def test_a_tool_without_a_kind_counts_as_a_write() -> None:
    rules = RuleSet(tool_kinds=(("get", ToolKind.READ), ("send", ToolKind.HANDOFF)))
    assert [rules.kind_of(tool) for tool in ("get", "send", "put")] == [
        ToolKind.READ,
        ToolKind.HANDOFF,
        ToolKind.WRITE,
    ]
    assert [rules.is_declared(tool) for tool in ("get", "put")] == [True, False]


def test_equal_rule_sets_share_their_compiled_form() -> None:
    left, right = (RuleSet((ArgumentRule("t", "a", Ignore(), task_id="7"),)) for _ in range(2))
    assert left == right
    assert hash(left) == hash(right)
    assert compiled(left, "7") is compiled(right, "7")
    assert compiled(left, "other") is compiled(left, None)
    assert left.has_rules_for("7")


@pytest.mark.parametrize(
    ("settings_", "text", "flag", "rejected"),
    [
        (RejectionSettings(), "Error: no such user", None, True),
        (RejectionSettings(), "error: timeout", None, True),
        (RejectionSettings(), "all fine", None, False),
        (RejectionSettings(), "Error: no such user", False, False),
        (RejectionSettings(), "all fine", True, True),
        (RejectionSettings(use_flag=False), "all fine", True, False),
        (RejectionSettings(prefixes=()), "Error", None, False),
    ],
)
def test_is_rejection_by_flag_or_text(
    settings_: RejectionSettings, text: str, flag: bool | None, rejected: bool
) -> None:
    assert settings_.is_rejection(text, flag=flag) is rejected
