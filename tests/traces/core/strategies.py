"""Hypothesis strategies for JSON values, rules and trajectories."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from traces.core.rules import (
    Alias,
    ArgumentRule,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RoundTo,
    RuleSet,
    SameTime,
    Time,
    Unordered,
)
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    ToolKind,
    TrajectoryCall,
    TrajectoryMessage,
)

hostile_text = st.text(st.characters(exclude_categories=()), max_size=6)
numbers = st.one_of(
    st.integers(),
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 1.5, 1e-7, 1e16, 1e22, 0.1, 100.0]),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.sampled_from([Decimal("1.50"), Decimal("1E+2"), Decimal("0.1"), Decimal("-0")]),
)
scalars = st.one_of(st.none(), st.booleans(), numbers, hostile_text)


def trees(leaves: st.SearchStrategy, names: st.SearchStrategy[str]) -> st.SearchStrategy:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)
        ),
        max_leaves=8,
    )


json_values = trees(scalars, hostile_text)

# Few different values, so that equal ones, and ones that look like normal forms, turn up often.
plain_leaves = st.sampled_from(
    [
        None, True, False, 0, 1, 1.0, 2, "1", "1.0", "1+0", "2-1", "(1)", "A", "a ", "exact",
        "text", "a", "ignore", "arithmetic", "round_to", "unordered", "2024-05-20",
        "2024-05-20T00:30:00Z", "2024-05-20T02:30:00+02:00", "datetime", "economy", "default",
        '"SFO"', "SFO", "San Francisco", "alias", 0.5, 1.004,
    ]
)  # fmt: skip
argument_names = st.sampled_from(["a", "b", "*", "x/y"])
arguments = st.dictionaries(argument_names, trees(plain_leaves, argument_names), max_size=3)

terms = st.sampled_from(
    [
        Ignore(),
        RoundTo(Decimal("0.01")),
        RoundTo(Decimal(2)),
        Arithmetic(),
        PlainText(),
        Time(SameTime.INSTANT),
        Time(SameTime.DAY, "Europe/Berlin"),
        Unordered(),
        Default('"economy"'),
        Default("1"),
        Alias((('"San Francisco"', '"SFO"'), ('"1"', "1", "true"))),
    ]
)
paths = st.sampled_from(["a", "b", "*", "/*", "/a/*", "/~2", "/x~1y", "/b/a", "/*/*/a", "/a/*/b"])
tools = st.sampled_from(["get", "list", "put", "send"])


@st.composite
def argument_rules(draw: st.DrawFn) -> ArgumentRule:
    rule = ArgumentRule(
        draw(tools), draw(paths), draw(terms), "reason", "ada", draw(st.sampled_from([None, "7"]))
    )
    if isinstance(rule.terms, Default) and rule.tokens[-1] is None:
        return ArgumentRule(rule.tool, "a", rule.terms, "reason", "ada", rule.task_id)
    return rule


KINDS = (("get", ToolKind.READ), ("list", ToolKind.READ), ("send", ToolKind.HANDOFF))
rule_sets = st.builds(
    RuleSet,
    st.lists(
        argument_rules(), max_size=6, unique_by=lambda rule: (rule.task_id, rule.tool, rule.tokens)
    ).map(tuple),
    st.sampled_from([(), KINDS]),
)


@st.composite
def trajectories(draw: st.DrawFn, *, absent: bool = False) -> tuple:
    steps: list[TrajectoryCall | TrajectoryMessage] = []
    forms = [ArgumentsForm.JSON, ArgumentsForm.JSON, ArgumentsForm.INVALID]
    if absent:
        forms.append(ArgumentsForm.ABSENT)
    for number in range(1, draw(st.integers(0, 4)) + 1):
        n_calls = draw(st.integers(0, 3))
        if not n_calls:
            steps.append(TrajectoryMessage(number))
        for _ in range(n_calls):
            form = draw(st.sampled_from(forms))
            given = {
                ArgumentsForm.JSON: arguments,
                ArgumentsForm.INVALID: st.sampled_from(["{", "1", "{}"]),
                ArgumentsForm.ABSENT: st.none(),
            }[form]
            outcome = draw(st.sampled_from(CallOutcome))
            steps.append(TrajectoryCall(draw(tools), draw(given), form, outcome, number))
    return tuple(steps)
