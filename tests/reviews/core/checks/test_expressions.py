"""Conditions in three values, and their bounds."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import cel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviews.core.checks import expressions
from reviews.core.checks.expressions import (
    MOST_VALUES,
    TOO_LARGE,
    WHEN_NAMES,
    WHERE_NAMES,
    Answer,
    Bindings,
    ExpressionError,
    Ready,
    compiled,
    evaluate,
    expression_problem,
)

BIG_REFUND = 'args.amount > 100.0 && (!has(args.approval_id) || args.approval_id in [null, ""])'
LISTED = "result.items.exists(o, o.order == facts.order)"


def truth(text: str, values: dict[str, Any]) -> str:
    return evaluate(compiled(text, WHERE_NAMES), Bindings(values)).answer.value


def deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


TRUTHS: list[tuple[str, dict[str, Any], str]] = [
    ('result.status == "verified"', {"result": {"status": "verified"}}, "true"),
    ('result.status == "verified"', {"result": {"status": "refused"}}, "false"),
    ('result.status == "verified"', {"result": {"status": None}}, "unknown"),
    ('result.status == "verified"', {"result": {"status": 5}}, "unknown"),
    ('result.status == "verified"', {"result": {}}, "unknown"),
    ('result.status == "verified"', {"result": "verified"}, "unknown"),
    ('result.status == "verified"', {"result": None}, "unknown"),
    ('result.status == "verified"', {}, "unknown"),
    ('result.status != "verified"', {"result": {"status": 5}}, "unknown"),
    ('result.status != "verified"', {"result": {"status": "x"}}, "true"),
    ('!(result.status == "verified")', {"result": {}}, "unknown"),
    # Asked for in so many words.
    (BIG_REFUND, {"args": {"amount": 150}}, "true"),
    (BIG_REFUND, {"args": {"amount": 150, "approval_id": None}}, "true"),
    (BIG_REFUND, {"args": {"amount": 150, "approval_id": ""}}, "true"),
    (BIG_REFUND, {"args": {"amount": 150, "approval_id": "a"}}, "false"),
    (BIG_REFUND, {"args": {"amount": 150, "approval_id": 7}}, "false"),
    (BIG_REFUND, {"args": {"amount": 100, "approval_id": None}}, "false"),
    (BIG_REFUND, {"args": {"amount": None}}, "unknown"),
    (BIG_REFUND, {"args": {}}, "unknown"),
    (BIG_REFUND, {"args": {"approval_id": "a"}}, "false"),
    (BIG_REFUND, {"args": "not JSON"}, "unknown"),
    (BIG_REFUND, {"args": {"amount": True}}, "unknown"),
    ("has(args.a)", {"args": {"a": None}}, "true"),
    ("has(args.a)", {"args": {}}, "false"),
    ("has(args.a.b)", {"args": {}}, "unknown"),
    ("has(args.a)", {"args": None}, "unknown"),
    ("has(args.a)", {}, "unknown"),
    ("args.a == null", {"args": {"a": None}}, "true"),
    ("null == args.a", {"args": {"a": 1}}, "false"),
    ("args.a != null", {"args": {"a": 1}}, "true"),
    ("args.a == null", {"args": {}}, "unknown"),
    ("args.a == null", {"args": {"a": 10**4000}}, "unknown"),
    ("null == null", {}, "true"),
    ("error == null", {"error": None}, "true"),
    ("error == null", {}, "unknown"),
    # Membership.
    ('args.a in ["x", "y"]', {"args": {"a": "y"}}, "true"),
    ('args.a in ["x", "y"]', {"args": {"a": "z"}}, "false"),
    ('args.a in ["x", "y"]', {"args": {"a": 5}}, "unknown"),
    ('args.a in ["x", "y"]', {"args": {"a": None}}, "unknown"),
    ('args.a in [null, "x"]', {"args": {}}, "unknown"),
    ('args.a in [null, "x"]', {"args": {"a": 10**4000}}, "unknown"),
    ("args.a in args.b", {"args": {"a": "x", "b": [None, "x"]}}, "true"),
    ("args.a in args.b", {"args": {"a": "x", "b": [None, "y"]}}, "unknown"),
    ("args.a in args.b", {"args": {"a": "x", "b": []}}, "false"),
    ("args.a in args.b", {"args": {"a": "x", "b": {"x": 1}}}, "true"),
    ("args.a in args.b", {"args": {"a": 1, "b": {"x": 1}}}, "unknown"),
    ("args.a in args.b", {"args": {"a": "x", "b": "xy"}}, "unknown"),
    # What is open is taken up, on either side.
    ("args.no && false", {"args": {}}, "false"),
    ("false && args.no", {"args": {}}, "false"),
    ("args.no || true", {"args": {}}, "true"),
    ("true || args.no", {"args": {}}, "true"),
    ("args.no && true", {"args": {}}, "unknown"),
    ("true && args.no == 1", {"args": {"no": None}}, "unknown"),
    ("args.no == 1 || false", {"args": {"no": "x"}}, "unknown"),
    ("args.a == 1 && args.b == 1", {"args": {"a": None, "b": 2}}, "false"),
    ("args.a == 1 || args.b == 1", {"args": {"a": None, "b": 1}}, "true"),
    ("args.a ? true : false", {"args": {"a": True}}, "true"),
    ("args.a ? true : false", {"args": {}}, "unknown"),
    # exists and all decide by any element that decides.
    (LISTED, {"result": {"items": [{}, {"order": "A"}]}, "facts": {"order": "A"}}, "true"),
    (LISTED, {"result": {"items": [{}, {"order": "B"}]}, "facts": {"order": "A"}}, "unknown"),
    (LISTED, {"result": {"items": [{"order": "B"}]}, "facts": {"order": "A"}}, "false"),
    (LISTED, {"result": {"items": []}, "facts": {"order": "A"}}, "false"),
    (LISTED, {"result": {"items": None}, "facts": {"order": "A"}}, "unknown"),
    (LISTED, {"result": {}, "facts": {"order": "A"}}, "unknown"),
    (LISTED, {"result": {"items": [None, 5]}, "facts": {"order": "A"}}, "unknown"),
    (f"!{LISTED}", {"result": {"items": [{}, {"order": "A"}]}, "facts": {"order": "A"}}, "false"),
    (f"!{LISTED}", {"result": {"items": [{"order": "B"}]}, "facts": {"order": "A"}}, "true"),
    (f"!({LISTED} || step == 2)", {"result": {"items": [{}]}, "facts": {}, "step": 1}, "unknown"),
    (f"!({LISTED} && step == 2)", {"result": {"items": [{}]}, "facts": {}, "step": 1}, "true"),
    ("args.l.all(x, x.a == 1)", {"args": {"l": [{}, {"a": 2}]}}, "false"),
    ("args.l.all(x, x.a == 1)", {"args": {"l": [{}, {"a": 1}]}}, "unknown"),
    ("args.l.all(x, x.a == 1) || step == 1", {"args": {"l": [{}]}, "step": 1}, "true"),
    ("args.l.all(x, x.a == 1) && step == 1", {"args": {"l": [{}]}, "step": 2}, "false"),
    (
        "args.no ? args.l.all(x, true) : true",
        {"args": {"l": [{}], "no": 1}},
        "unknown",
    ),
    (
        "step == 1 ? args.l.exists(x, x.a == 1) : false",
        {"args": {"l": [{}, {"a": 1}]}, "step": 1},
        "true",
    ),
    (
        "step == 1 ? false : args.l.exists(x, x.a == 1)",
        {"args": {"l": [{}, {"a": 1}]}, "step": 2},
        "true",
    ),
    ("args.no.exists(x, true) || true", {"args": {}}, "true"),
    ('args.m.exists(k, k == "a")', {"args": {"m": {"b": 1, "a": 2}}}, "true"),
    (
        "args.r.exists(r, r.l.exists(i, i.n == args.n))",
        {"args": {"r": [{}, {"l": [{}, {"n": 3}]}], "n": 3}},
        "true",
    ),
    ("args.l.exists_one(x, x == 1)", {"args": {"l": [1, 2.0]}}, "true"),
    ("args.l.filter(x, x > 1).size() == 1", {"args": {"l": [1, 2]}}, "true"),
    ("args.l.map(x, x * 2) == [2, 4]", {"args": {"l": [1, 2.0]}}, "true"),
    ("args.l.map(x, x > 1, x) == [2]", {"args": {"l": [1, 2]}}, "true"),
    (f"{LISTED} && step == 1", {"result": {"items": [{}]}, "facts": {}, "step": 1}, "unknown"),
    (
        "args.l.exists(x, x.a == 1) && step == 1",
        {"args": {"l": [{}, {"a": 1}]}, "step": 1},
        "true",
    ),
    (
        "args.l.exists(x, x.a == 1 && x.b == 1)",
        {"args": {"l": [{"a": 1}, {"a": 1, "b": 1}]}},
        "true",
    ),
    # Values that are no truth.
    ("args.ok", {"args": {"ok": True}}, "true"),
    ("args.ok", {"args": {"ok": False}}, "false"),
    ("args.ok", {"args": {"ok": "yes"}}, "unknown"),
    ("args.ok", {"args": {"ok": None}}, "unknown"),
    ("args.ok", {"args": {"ok": 10**30}}, "unknown"),
    # Numbers are the decimals they are written as.
    ("args.a == 84", {"args": {"a": 84.0}}, "true"),
    ("args.a == 1", {"args": {"a": True}}, "unknown"),
    ("args.a + 0.1 == 0.3", {"args": {"a": 0.2}}, "true"),
    ("args.a - 1 == 83.5", {"args": {"a": 84.5}}, "true"),
    ("args.a + 1.0 == 85", {"args": {"a": 84}}, "true"),
    ("args.a + 1 == 85", {"args": {"a": 84}}, "true"),
    ("args.a * 1.1 == 2.2", {"args": {"a": 2}}, "true"),
    ("args.a / 2 == 2", {"args": {"a": 5}}, "true"),
    ("args.a / 2 == -2", {"args": {"a": -5}}, "true"),
    ("args.a / 2 == 2.5", {"args": {"a": 5.0}}, "true"),
    ("args.a % 3 == -2", {"args": {"a": -5}}, "true"),
    ("args.a % 3 == 2", {"args": {"a": 5}}, "true"),
    ("args.a % 3 == 2", {"args": {"a": 5.0}}, "unknown"),
    ("args.a / 0 == 1", {"args": {"a": 5}}, "unknown"),
    ("args.a % 0 == 1", {"args": {"a": 5}}, "unknown"),
    ("-args.a == -5", {"args": {"a": 5}}, "true"),
    ("args.a == -.5", {"args": {"a": -0.5}}, "true"),
    ("args.a == .5", {"args": {"a": 0.5}}, "true"),
    ("args.a == 0x1F && args.a == 31u && args.a == 3.1e1", {"args": {"a": 31}}, "true"),
    ("args.a == -0x1F", {"args": {"a": -31}}, "true"),
    ("args.a == 9007199254740993", {"args": {"a": 9007199254740992.0}}, "false"),
    ("args.a > 100.0", {"args": {"a": 10**30}}, "true"),
    ("args.a > 100.0", {"args": {"a": Decimal("100.00000000000000000001")}}, "true"),
    ("args.a == args.b", {"args": {"a": Decimal("1e400"), "b": 10**400}}, "true"),
    ("args.a == 0.5", {"args": {"a": Decimal("0.50")}}, "true"),
    ("args.a == args.a", {"args": {"a": 10**4000}}, "unknown"),
    ("args.a > 0", {"args": {"a": Decimal("1e99999999")}}, "unknown"),
    ("has(args.a)", {"args": {"a": 10**4000}}, "true"),
    ("has(args.a.b)", {"args": {"a": 10**30}}, "unknown"),
    ("args.a < args.b", {"args": {"a": 1, "b": 2}}, "true"),
    ("args.a <= args.b", {"args": {"a": "a", "b": "a"}}, "true"),
    ("args.a >= args.b", {"args": {"a": "a", "b": "b"}}, "false"),
    ("args.a < args.b", {"args": {"a": "1", "b": 2}}, "unknown"),
    ("args.a < args.b", {"args": {"a": [1], "b": [2]}}, "unknown"),
    ("args.a + args.b == 3", {"args": {"a": "1", "b": 2}}, "unknown"),
    ("args.a - args.b == 3", {"args": {"a": "1", "b": "2"}}, "unknown"),
    ("args.a * args.b == 3", {"args": {"a": "1", "b": 2}}, "unknown"),
    ("args.a / args.b == 3", {"args": {"a": 1, "b": "2"}}, "unknown"),
    ("args.a % args.b == 3", {"args": {"a": 1, "b": "2"}}, "unknown"),
    ("-args.a == 3", {"args": {"a": "1"}}, "unknown"),
    ("args.a + 1 == 2", {"args": {"a": True}}, "unknown"),
    # Texts, lists, objects, times.
    ('args.a + "b" == "ab"', {"args": {"a": "a"}}, "true"),
    ("args.a + [2] == [1, 2]", {"args": {"a": [1]}}, "true"),
    (
        "args.a == args.b",
        {"args": {"a": [1, None, {"x": 1.0}], "b": [1.0, None, {"x": 1}]}},
        "true",
    ),
    ("args.a == args.b", {"args": {"a": [True], "b": [1]}}, "false"),
    ("args.a == args.b", {"args": {"a": [10**30], "b": [1e30]}}, "true"),
    ("args.a == args.b", {"args": {"a": ["\ud800"], "b": [1]}}, "unknown"),
    ("args.a == [timestamp(args.t)]", {"args": {"a": [1], "t": "2024-01-01T00:00:00Z"}}, "unknown"),
    ("args.a == {1: 2}", {"args": {"a": {}}}, "unknown"),
    ('{"a": 1, }.a == 1', {}, "true"),
    ('{"a": 1, "b": 2}.b == 2', {}, "true"),
    ("[1, ].size() == 1", {}, "true"),
    ('text.contains("84") && text.startsWith("a") && text.endsWith("z")', {"text": "a84z"}, "true"),
    ('text.contains("84")', {"text": None}, "unknown"),
    ('args.a.contains("84")', {"args": {"a": ["84"]}}, "unknown"),
    ("size(text) == 3 && text.size() == 3", {"text": "é€😀"}, "true"),
    ("size(args) == 1", {"args": {"a": 1}}, "true"),
    ("size(args.a) == 1", {"args": {"a": 1}}, "unknown"),
    ('args["a b"] == 1', {"args": {"a b": 1}}, "true"),
    ("args.l[0].y == 1", {"args": {"l": [{"y": 1}]}}, "true"),
    ("args.l[5] == 1", {"args": {"l": [1]}}, "unknown"),
    ('args.a == r"\\d"', {"args": {"a": "\\d"}}, "true"),
    ("args.a == '''x\ny'''", {"args": {"a": "x\ny"}}, "true"),
    ('args.a == "\\u0000"', {"args": {"a": "\0"}}, "true"),
    ('int("5") == 5 && double("0.5") == 0.5 && uint(5) == 5', {}, "true"),
    ("int(args.a) == 5", {"args": {"a": "five"}}, "unknown"),
    ("double(args.a) < 1.0", {"args": {"a": "inf"}}, "unknown"),
    ("double(args.a) == 1.0", {"args": {"a": "nan"}}, "unknown"),
    ('duration(args.a) == duration("1h")', {"args": {"a": "99999999999999h"}}, "false"),
    (
        "timestamp(args.a) + duration(args.b) == timestamp(args.a)",
        {"args": {"a": "9999-12-31T23:59:59Z", "b": "2000000h"}},
        "unknown",
    ),
    ('string(args.a) == "5"', {"args": {"a": 5.0}}, "true"),
    ('string(args.a) == "true"', {"args": {"a": True}}, "true"),
    ('string(args.a) == "false"', {"args": {"a": False}}, "true"),
    ('string(args.a) == "x"', {"args": {"a": "x"}}, "true"),
    ('string(args.a) == "x"', {"args": {"a": None}}, "unknown"),
    ('string(args.a) == "x"', {"args": {"a": "\ud800"}}, "unknown"),
    (
        'timestamp(args.t) > timestamp("2024-01-01T00:00:00Z") + duration("1h")',
        {"args": {"t": "2025-01-01T00:00:00Z"}},
        "true",
    ),
    (
        'timestamp(args.t) - timestamp("2024-01-01T00:00:00Z") == -duration("-60m")',
        {"args": {"t": "2024-01-01T01:00:00Z"}},
        "true",
    ),
    ("timestamp(args.t).getFullYear() == 2024", {"args": {"t": "2024-01-01T01:00:00Z"}}, "true"),
    ("timestamp(args.t).getFullYear() == 2024", {"args": {"t": "soon"}}, "unknown"),
    ("step == 1 // the first one", {"step": 1}, "true"),
    ("(!args.a).b == 1", {"args": {"a": {"b": True}}}, "unknown"),
    # Patterns: a linear engine.
    ('text.matches("(?i)\\\\b(yes|confirm)\\\\b")', {"text": "Yes, please"}, "true"),
    ('text.matches("(?i)\\\\b(yes|confirm)\\\\b")', {"text": "yesterday"}, "false"),
    ('text.matches("^(a+)+$")', {"text": "a" * 40 + "!"}, "false"),
    ('text.matches("^(a|aa)+$")', {"text": "a" * 100_000 + "!"}, "false"),
    ('text.matches("a")', {"text": None}, "unknown"),
    ('text.matches("a")', {"text": "\ud800"}, "unknown"),
    ('args.n.matches("1")', {"args": {"n": 10}}, "unknown"),
    ('args.n.matches("1")', {"args": {"n": 10**30}}, "unknown"),
    ('args.n.matches("1") || step == 1', {"args": {"n": 10}, "step": 1}, "true"),
]


@pytest.mark.parametrize(
    ("text", "values", "wanted"), TRUTHS, ids=[str(n) for n in range(len(TRUTHS))]
)
def test_a_condition_is_true_false_or_unknown(
    text: str, values: dict[str, Any], wanted: str
) -> None:
    assert truth(text, values) == wanted


def test_a_value_remembers_what_conditions_say_of_it() -> None:
    ready = Ready({"n": 1})
    said = {
        text: evaluate(compiled(text, WHERE_NAMES), Bindings({name: ready})).answer.value
        for name in ("args", "result")
        for text in (f"{name}.n == {n}" for n in range(40))
        for _ in range(2)
    }
    assert [text for text, answer in said.items() if answer == "true"] == [
        "args.n == 1",
        "result.n == 1",
    ]
    assert set(said.values()) == {"true", "false"}


PATTERNS = (
    r"(?i)\\b(yes|confirm)\\b",
    r"^straße$",
    r"(?i)STRASSE|\\pL{3}",
    r"(?m)^b",
    r"(?s)a.b",
    r"[[:alpha:]&&[^a-k]]+\\d",
    r"(?x) a  b # both",
    r"\\Aab\\z",
    r"(?-u:\\w)\\W",
    "",
)
TEXTS = ("", "ab", "a\nb", "Yes.", "yesterday", "straße", "STRAẞE", "\u212a", "z٣", "é\n", "é1 b")


@pytest.mark.parametrize("pattern", PATTERNS, ids=[str(n) for n in range(len(PATTERNS))])
def test_a_pattern_finds_what_the_library_finds(pattern: str) -> None:
    text = f'text.matches("{pattern}")'
    program = cel.compile(text)
    assert [truth(text, {"text": each}) for each in TEXTS] == [
        str(program.execute({"text": each})).lower() for each in TEXTS
    ]


PROBLEMS: list[tuple[str, str]] = [
    ("", "The expression is empty."),
    (" // nothing", "The expression is empty."),
    ("a" * 2001, "The expression is too long: 2,001 characters (max 2,000)."),
    ("9**9**9 > 0", "Not an expression: `*` stands where a value is wanted (column 3)."),
    (
        "(1).__class__.__bases__[0].__subclasses__()",
        "There is no function `__subclasses__` (column 28).",
    ),
    ('"a" * 10**10 == ""', "Not an expression: `*` stands where a value is wanted (column 10)."),
    (
        "cost_usd <= 0.05",
        (
            "Unknown name `cost_usd`: only args, error, facts, result, step, text may stand here "
            "(column 1)."
        ),
    ),
    ("args.x == ", "Not an expression: the expression ends where a value is wanted (column 11)."),
    ("args.x = 1", "`=` cannot stand here (column 8)."),
    ("args.x == 'a", "`'` cannot stand here (column 11)."),
    ("args.x == 1 1", "Not an expression: `1` stands where nothing more can follow (column 13)."),
    ("args.x\n  ==\x00 1", "'\\x00' cannot stand here (column 12)."),
    ("args.", "Not an expression: the expression ends where a field's name is wanted (column 6)."),
    ("args.in == 1", 'Write ["in"] for this field (column 6).'),
    ("(args.x", "Not an expression: the expression ends where `)` is wanted (column 8)."),
    ("args[1", "Not an expression: the expression ends where `]` is wanted (column 7)."),
    ("size(args 1)", "Not an expression: `1` stands where `,` is wanted (column 11)."),
    ("(" * 33 + "true" + ")" * 33, "The expression is too deep (max 32) (column 33)."),
    ("!" * 33 + "true", "The expression is too deep (max 32) (column 32)."),
    ("args" + ".a" * 40, "The expression is too deep (max 32) (column 69)."),
    ("1" + "+1" * 40 + " == 1", "The expression is too deep (max 32) (column 66)."),
    ("true ? 1 : 2", "The expression is never true or false: it must ask something."),
    ("args.x + 1", "The expression is never true or false: it must ask something."),
    ("args.l.map(x, true)", "The expression is never true or false: it must ask something."),
    ("1 && true", "Not an expression: this is never true or false (column 1)."),
    ("true && true && 1", "Not an expression: this is never true or false (column 17)."),
    ("!1", "Not an expression: this is never true or false (column 2)."),
    ("1 ? true : false", "Not an expression: this is never true or false (column 1)."),
    ("args.l.exists(x, 1)", "Not an expression: this is never true or false (column 8)."),
    (
        "args.a.exists(x, x.exists(y, y.exists(z, true)))",
        "`exists` stands inside too many others (max 2) (column 8).",
    ),
    ("args.a.exists(args, true)", "The name `args` is taken already (column 15)."),
    (
        "args.a.exists(x, x.exists(x, true))",
        "The name `x` is taken already (column 27).",
    ),
    (
        "args.a.exists(1, true)",
        "Not an expression: `1` stands where the name of a variable is wanted (column 15).",
    ),
    (
        "args.a.exists(null, true)",
        "Not an expression: `null` stands where the name of a variable is wanted (column 15).",
    ),
    (
        "args.a.exists(x, true) && x",
        "Unknown name `x`: only args, error, facts, result, step, text may stand here (column 27).",
    ),
    ("eq_(1, 1)", "There is no function `eq_` (column 1)."),
    ("args.x.foo()", "There is no function `foo` (column 8)."),
    ("size()", "`size` takes one value, not 0 (column 1)."),
    ("text.size(1) == 1", "`size` takes nothing, not 1 (column 6)."),
    ('text.contains("a", "b")', "`contains` takes one value, not 2 (column 6)."),
    ("args.t.getHours(1, 2) == 1", "`getHours` takes one time zone or none (column 8)."),
    ("has(args)", "`has` asks for a field, as in has(args.amount) (column 1)."),
    ('has(args["x"])', "`has` asks for a field, as in has(args.amount) (column 1)."),
    ("has(1 + 1)", "`has` asks for a field, as in has(args.amount) (column 1)."),
    ("args.x == 9223372036854775808", "This whole number is too large (column 11)."),
    (f"args.x == {'9' * 50}", "This whole number is too large (column 11)."),
    ("args.x == 18446744073709551616u", "This whole number is too large (column 11)."),
    ("args.x == 1e999", "This number is too large (column 11)."),
    ('args.x == "\\ud800"', "This text is not written as CEL wants it (column 11)."),
    ("text.matches(args.x)", "`matches` wants its pattern written out as text (column 6)."),
    ("text.matches()", "`matches` takes one value, not 0 (column 6)."),
    (
        'text.matches("(")',
        "The pattern is no regular expression, or too large (column 6).",
    ),
    (f'text.matches("{"a" * 501}")', "The pattern is too long (max 500 characters) (column 6)."),
    ('text.matches("\\\\pL{500}")', "The pattern is too large: it repeats too much (column 6)."),
    (
        'text.matches("((a{1,99}){99}){99}")',
        "The pattern is too large: it repeats too much (column 6).",
    ),
    ("Foo{a: 1} == 1", None),  # type: ignore[list-item]
    ('b"x" == b"x"', None),  # type: ignore[list-item]
    ("args.?x == 1", None),  # type: ignore[list-item]
    (".args == 1", None),  # type: ignore[list-item]
    ("`args` == 1", None),  # type: ignore[list-item]
    ("import == 1", None),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("text", "sentence"), PROBLEMS, ids=[str(n) for n in range(len(PROBLEMS))])
def test_a_text_that_is_no_condition_says_why(text: str, sentence: str | None) -> None:
    problem = expression_problem(text, WHERE_NAMES)
    if sentence is None:
        assert problem.endswith(").")
    else:
        assert problem == sentence


def test_what_the_library_does_not_take_is_a_problem_too(monkeypatch: pytest.MonkeyPatch) -> None:
    read = expressions.syntax_of("true", WHERE_NAMES, str)
    odd = replace(read, node=replace(read.node, text="true)"))
    monkeypatch.setattr(expressions, "syntax_of", lambda *_: odd)
    assert expression_problem("true /* odd */", WHERE_NAMES) == (
        "Not an expression that CEL can read."
    )


def test_when_sees_facts_only() -> None:
    assert expression_problem("facts.eligible", WHEN_NAMES) == ""
    assert expression_problem("args.x == 1", WHEN_NAMES).startswith("Unknown name `args`")


def test_the_error_of_compiling_says_why() -> None:
    with pytest.raises(ExpressionError, match="empty") as caught:
        compiled("", WHERE_NAMES)
    assert caught.value.sentence == "The expression is empty."


ROWS = [{"a": number, "b": "x"} for number in range(15_000)]

LARGE: list[tuple[str, Any, str]] = [
    ("args.exists(x, x.a == -5)", ROWS, "false"),
    ("args.exists(x, x.c == -5)", ROWS, "unknown"),
    ("args.exists(x, args.exists(y, y.a == x.b))", ROWS, "error"),
    ("args.exists(x, x.c == args.size())", ROWS, "error"),
    ("args.map(x, x.a).size() == 5", ROWS, "error"),
    ("args.filter(x, x.a > 5).size() == 5", ROWS, "error"),
    ("args.exists(x, x == -5)", list(range(MOST_VALUES + 1)), "error"),
    ("args.a == 1", {str(n): n for n in range(MOST_VALUES + 1)}, "error"),
    ("args.a == 1", {"a": ["x" * 1_000_000] * 9}, "error"),
    ('args.contains("y")', "x" * 1_000_000, "false"),
    (f"{' + '.join(['args'] * 30)} == args", "x" * 1_000_000, "error"),
    ("args.map(x, args[0]) == args", ["x" * 100_000] * 1_000, "error"),
    (
        "args.exists(r, r.exists(i, i == 999))",
        [list(range(n, n + 10)) for n in range(1_000)],
        "true",
    ),
    ("args == args", deep(64), "true"),
    ("args == args", deep(200), "unknown"),
]


@pytest.mark.parametrize(
    ("text", "value", "wanted"), LARGE, ids=[str(n) for n in range(len(LARGE))]
)
def test_large_values_end_in_an_answer_or_an_error(text: str, value: Any, wanted: str) -> None:
    found = evaluate(compiled(text, WHERE_NAMES), Bindings({"args": value}))
    assert found.answer.value == wanted
    assert (found.reason == TOO_LARGE) == (wanted == "error")


def test_a_missing_field_is_named() -> None:
    found = evaluate(compiled("args.amount > 1", WHERE_NAMES), Bindings({"args": {}}))
    assert (found.answer, found.reason) == (Answer.UNKNOWN, "there is no field 'amount'")


def test_values_are_made_ready_once_for_all_expressions() -> None:
    bindings = Bindings({"args": {"a": 1}})
    for text in ("args.a == 1", "args.a > 0", "args.a < 2"):
        assert evaluate(compiled(text, WHERE_NAMES), bindings).answer is Answer.TRUE


def test_a_fault_inside_the_library_is_unknown_and_other_ends_go_on() -> None:
    class PanicException(BaseException):
        pass

    class Faulty:
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def execute(self, _: Any) -> Any:
            raise self.error

    found = expressions._said(Faulty(PanicException()), None)
    assert found.answer is Answer.UNKNOWN
    with pytest.raises(KeyboardInterrupt):
        expressions._said(Faulty(KeyboardInterrupt()), None)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=5)
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["a", "b", "items", "order", "status"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(
    st.sampled_from([text for text, _, _ in TRUTHS]),
    st.fixed_dictionaries({}, optional=dict.fromkeys(sorted(WHERE_NAMES), VALUES)),
)
def test_no_value_makes_a_condition_raise(text: str, values: dict[str, Any]) -> None:
    assert truth(text, values) in {"true", "false", "unknown", "error"}


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_makes_the_reader_raise(text: str) -> None:
    problem = expression_problem(text, WHERE_NAMES)
    assert isinstance(problem, str)


PIECES = [
    "args",
    ".a",
    "(",
    ")",
    "[",
    "]",
    " && ",
    " || ",
    "!",
    "==",
    "1",
    '"x"',
    " in ",
    "null",
    ".exists(x, ",
    "x",
    ", ",
    "{",
    "}",
    ":",
    "?",
    "-",
    "has(",
    "size(",
    ".matches(",
    "true",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_what_the_reader_takes_the_library_takes_too(text: str) -> None:
    if expression_problem(text, WHERE_NAMES) == "":
        assert truth(text, {"args": {"a": [1]}}) in {"true", "false", "unknown", "error"}
    else:
        assert "CEL can read" not in expression_problem(text, WHERE_NAMES)


@settings(deadline=None)
@given(st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), VALUES)
def test_nothing_is_told_about_null(mark: str, value: Any) -> None:
    assert truth(f"args.a {mark} args.b", {"args": {"a": None, "b": value}}) == "unknown"
    assert truth(f"args.b {mark} args.a", {"args": {"a": None, "b": value}}) == "unknown"
