"""Upper limits, each itself allowed."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.reviews.core.checks.cases import Talk, contract, one, said


def calls(n: int, arguments: Any = None, name: str = "read") -> Talk:
    talk = Talk().user("x")
    for number in range(n):
        talk.call(name, {"n": number} if arguments is None else arguments, "ok")
    return talk


MEASURED: list[tuple[str, dict[str, Any], str, str]] = [
    ("cost_usd: 0.40", {"usage": {"cost_usd": 0.4}}, "pass", "0.4 USD, 0.4 USD allowed."),
    (
        "cost_usd: 0.40",
        {"usage": {"cost_usd": 0.4000001}},
        "fail",
        "0.4000001 USD, over the 0.4 USD allowed.",
    ),
    ("cost_usd: 0.40", {}, "unknown", "The cost is not recorded."),
    (
        "tokens: 10",
        {"usage": {"input_tokens": 4, "output_tokens": 6}},
        "pass",
        "10 tokens, 10 tokens allowed.",
    ),
    (
        "tokens: 10",
        {"usage": {"input_tokens": 4, "output_tokens": 7}},
        "fail",
        "11 tokens, over the 10 tokens allowed.",
    ),
    (
        "tokens: 10",
        {"usage": {"input_tokens": 4}},
        "unknown",
        "The number of tokens is not recorded.",
    ),
    (
        "seconds: 60",
        {"started_at": "2024-01-01T00:00:00Z", "ended_at": "2024-01-01T00:01:00Z"},
        "pass",
        "60 seconds, 60 seconds allowed.",
    ),
    (
        "seconds: 60",
        {"started_at": "2024-01-01T00:00:00Z", "ended_at": "2024-01-01T00:01:00.5Z"},
        "fail",
        "60.5 seconds, over the 60 seconds allowed.",
    ),
    ("seconds: 60", {"started_at": "2024-01-01T00:00:00Z"}, "unknown", "The time is not recorded."),
]


@pytest.mark.parametrize(
    ("text", "record", "word", "sentence"), MEASURED, ids=[str(n) for n in range(len(MEASURED))]
)
def test_what_is_measured_keeps_within_the_limit(
    text: str, record: dict[str, Any], word: str, sentence: str
) -> None:
    result = one(f"budget: {{{text}}}\n", Talk().user("x").evidence(**record))
    assert (result.value.value, result.sentence, result.steps) == (word, sentence, ())


def turns(*words: str) -> Talk:
    talk = Talk()
    for word in words:
        (talk.user if word == "user" else talk.agent)(word)
    return talk


COUNTED: list[tuple[str, Talk, str, str, tuple[int, ...]]] = [
    ("tool_calls: 3", calls(3), "pass", "3 tool calls, 3 allowed.", ()),
    ("tool_calls: 3", calls(1), "pass", "1 tool call, 3 allowed.", ()),
    ("tool_calls: 3", calls(5), "fail", "5 tool calls, 3 allowed: step 8 went over.", (8,)),
    ("turns: 1", turns("user", "agent", "agent", "user"), "pass", "1 turn, 1 allowed.", ()),
    ("turns: 1", turns("user", "user", "agent"), "pass", "1 turn, 1 allowed.", ()),
    ("turns: 1", turns("agent", "user"), "pass", "0 turns, 1 allowed.", ()),
    (
        "turns: 1",
        turns("user", "agent", "user", "agent"),
        "fail",
        "2 turns, 1 allowed: step 3 went over.",
        (3,),
    ),
    (
        "repeat_call: 2",
        calls(5),
        "pass",
        "No call was made more than 1 time, 2 allowed.",
        (),
    ),
    (
        "repeat_call: 2",
        calls(2, {"a": 1.0}).call("read", {"a": 2}, "ok"),
        "pass",
        "No call was made more than 2 times, 2 allowed.",
        (),
    ),
    (
        "repeat_call: 2",
        calls(2, {"a": 1.0}).call("read", {"a": 1}, "Error: no"),
        "fail",
        "read was called 3 times with the same arguments, 2 allowed: step 6 went over.",
        (6,),
    ),
    (
        "repeat_call: 2",
        calls(3, "not {json"),
        "fail",
        "read was called 3 times with the same arguments, 2 allowed: step 6 went over.",
        (6,),
    ),
    (
        "repeat_call: 2",
        calls(2, {"a": 1}).ask(("read", None)),
        "unknown",
        "The arguments of 1 call of read are not recorded.",
        (),
    ),
    (
        "repeat_call: 2",
        calls(1, {"a": 1}).ask(("read", None)).ask(("other", None)),
        "pass",
        "No call was made more than 1 time, 2 allowed.",
        (),
    ),
    (
        "repeat_call: 1",
        Talk().user("x").agent("y"),
        "pass",
        "No call was made more than 0 times, 1 allowed.",
        (),
    ),
]


@pytest.mark.parametrize(
    ("text", "talk", "word", "sentence", "steps"),
    COUNTED,
    ids=[str(n) for n in range(len(COUNTED))],
)
def test_what_is_counted_keeps_within_the_limit(
    text: str, talk: Talk, word: str, sentence: str, steps: tuple[int, ...]
) -> None:
    result = one(f"budget: {{{text}}}\n", talk.evidence())
    assert (result.value.value, result.sentence, result.steps) == (word, sentence, steps)


def test_permitted_variation_makes_calls_the_same() -> None:
    text = """
budget: {repeat_call: 1}
variation:
  - {tool: calculate, argument: expression, kind: arithmetic}
"""
    talk = Talk().user("x").call("calculate", {"expression": "1+1"}, "2")
    talk.call("calculate", {"expression": "2*1"}, "2")
    assert one(text, talk.evidence()).steps == (4,)
    unbound = contract(text)
    rules = tuple(replace(rule, task_id=None) for rule in unbound.variation)
    result = said(replace(unbound, variation=rules), talk.evidence())["budget.repeat_call"]
    assert result.steps == (4,)


def test_an_absurd_limit_is_never_reached() -> None:
    made = contract("budget: {tool_calls: 3}\n")
    wide = replace(made, budget=(replace(made.budget[0], limit=Decimal("1e5000")),))
    assert said(wide, calls(5).evidence())["budget.tool_calls"].value.value == "pass"


def test_what_is_measured_needs_no_transcript() -> None:
    text = "budget: {tool_calls: 3, turns: 1, repeat_call: 1, cost_usd: 1}\n"
    results = said(contract(text), Talk().evidence(usage={"cost_usd": 0.5}))
    assert {name: result.value.value for name, result in results.items()} == {
        "budget.tool_calls": "unknown",
        "budget.turns": "unknown",
        "budget.cost_usd": "pass",
        "budget.repeat_call": "unknown",
    }
