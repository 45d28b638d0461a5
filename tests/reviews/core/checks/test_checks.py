"""All checks together: their order, errors of one of them, and where a trial first went wrong."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviews.core.checks import CheckResult, budgets, checks, checks_of, first_wrong
from reviews.core.checks.results import TrialEvidence
from tests.reviews.core.checks.cases import Talk, contract, said, words
from traces.core.records import TrialStatus, VerdictValue
from traces.core.transcript import transcript_of
from traces.core.values import Json, JsonObject

TEXT = """
facts: {order: A}
outcome:
  - unchanged: true
required:
  - {id: known, call: check, where: 'result.ok', before: pay}
  - {id: liked, message: agent, where: 'text.contains("thanks")', mandatory: false}
prohibited:
  - {id: foreign, harm: data, call: read, where: 'args.id != facts.order'}
  - {id: late, harm: data, message: agent, where: 'text.contains("late")', mandatory: false}
budget: {tool_calls: 2, turns: {max: 1, mandatory: false}}
"""


def test_results_come_in_the_order_of_the_contract() -> None:
    evidence = Talk().user("x").evidence(initial_state={}, final_state={})
    assert words(contract(TEXT), evidence) == {
        "outcome": "pass",
        "known": "pass",
        "liked": "fail",
        "foreign": "pass",
        "late": "pass",
        "budget.tool_calls": "pass",
        "budget.turns": "pass",
    }
    assert list(words(contract(TEXT), evidence)) == [
        "outcome",
        "known",
        "liked",
        "foreign",
        "late",
        "budget.tool_calls",
        "budget.turns",
    ]


def test_a_contract_without_checks_has_no_results() -> None:
    text = "semantic:\n  - {rubric: truthful}\n"
    assert checks_of(contract(text), Talk().user("x").evidence()).results == ()


def test_the_checks_of_a_broken_trial_are_worked_out_too() -> None:
    talk = Talk().user("x").call("read", {"id": "B"}, "ok")
    evidence = talk.evidence(status="error", error="the harness broke")
    assert evidence.status is TrialStatus.ERROR
    results = said(contract(TEXT), evidence)
    assert results["foreign"].value is VerdictValue.FAIL
    assert results["outcome"].value is VerdictValue.UNKNOWN


def test_a_check_that_breaks_is_an_error_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(_: TrialEvidence) -> list[int]:
        raise ZeroDivisionError

    monkeypatch.setattr(budgets, "_turns", broken)
    results = said(contract(TEXT), Talk().user("x").evidence())
    assert results["budget.turns"] == CheckResult(
        "budget.turns",
        VerdictValue.ERROR,
        "The check could not be worked out on this trial (ZeroDivisionError).",
    )
    assert results["budget.tool_calls"].value is VerdictValue.PASS


def test_a_trial_first_went_wrong_at_the_earliest_step_of_a_mandatory_check() -> None:
    made = contract(TEXT)
    talk = Talk().user("x").agent("late").call("pay", {}, "ok").call("read", {"id": "B"}, "ok")
    results = list(said(made, talk.call("read", {"id": "A"}, "ok").evidence()).values())
    assert [(result.criterion, result.steps) for result in results if result.steps] == [
        ("known", (3,)),
        ("foreign", (5,)),
        ("late", (2,)),
        ("budget.tool_calls", (7,)),
    ]
    assert first_wrong(results, made) == 3
    assert first_wrong(results[3:], made) == 5
    assert first_wrong(results[:1], made) is None
    assert first_wrong([], made) is None


def test_nothing_is_kept_between_contracts_of_one_digest() -> None:
    one, other = contract("required:\n  - {id: a, call: x}\n"), contract("budget: {turns: 1}\n")
    other = replace(other, digest=one.digest)
    evidence = Talk().user("x").evidence()
    assert list(words(one, evidence)) == ["a"]
    assert list(words(other, evidence)) == ["budget.turns"]


# Properties

WIDE = contract("""
facts: {order: A}
trial_facts: [eligible]
outcome:
  - when: facts.eligible
    changes: {/refunds/-: {order: A}, /x/y: 1}
    ignore: [/refunds/*/id, /log]
    absent: [/holds/A]
  - unchanged: true
required:
  - {id: before, call: check, where: 'result.ok', before: pay}
  - {id: committed, call: check, where: 'result.ok', before: {call: pay, counts: committed}}
  - {id: after, message: agent, where: 'text.contains("a")', after: pay}
  - {id: alone, any_of: [{call: check, where: 'args.id == facts.order'}, {message: user, where: 'text == "yes"'}]}
prohibited:
  - {id: attempt, harm: data, call: pay, where: 'args.amount > 100'}
  - {id: commit, harm: data, call: pay, where: 'args.amount > 100', counts: committed}
  - {id: list, harm: data, call: check, where: 'result.items.exists(i, i.id == facts.order)'}
budget: {tool_calls: 3, turns: 2, repeat_call: 2, cost_usd: 1, tokens: 10, seconds: 5}
""")

ARGUMENTS = st.sampled_from(
    [{}, {"id": "A"}, {"id": None}, {"amount": 200}, {"amount": 50}, {"amount": "x"}, None, "{x"]
)
RESULTS = st.sampled_from(
    ['{"ok": true}', '{"ok": false}', "{}", "Error: no", "text", '{"items": [{}, {"id": "A"}]}']
)


@st.composite
def transcripts(draw: st.DrawFn) -> list[JsonObject]:
    messages: list[JsonObject] = []
    waiting: list[str] = []
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["user", "agent", "call", "call", "answer"]))
        if kind == "call":
            names = draw(st.lists(st.sampled_from(["check", "pay"]), min_size=1, max_size=2))
            calls: list[Json] = []
            for at, name in enumerate(names):
                waiting.append(f"{number}.{at}")
                calls.append({"id": waiting[-1], "name": name, "arguments": draw(ARGUMENTS)})
            messages.append({"role": "assistant", "tool_calls": calls})
        elif kind == "answer" and waiting:
            id_ = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            messages.append({"role": "tool", "tool_call_id": id_, "content": draw(RESULTS)})
        else:
            role = "user" if kind == "user" else "assistant"
            messages.append({"role": role, "content": draw(st.sampled_from(["a", "b", "yes"]))})
    return messages


STATES = st.sampled_from(
    [
        None,
        {},
        {"refunds": []},
        {"refunds": [{"order": "A"}], "x": {"y": 1}},
        {"holds": {"A": 1}},
        5,
    ]
)
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "facts": st.sampled_from([{}, {"eligible": True}, {"eligible": False}, {"eligible": 1}]),
        "initial_state": STATES,
        "final_state": STATES,
        "usage": st.sampled_from([{}, {"cost_usd": 2}, {"input_tokens": 1, "output_tokens": 1}]),
    },
)


@given(transcripts(), RECORDS)
@settings(max_examples=60, deadline=None)
def test_a_rejected_call_more_never_satisfies_a_requirement(
    messages: list[JsonObject], record: JsonObject
) -> None:
    call: JsonObject = {"id": "r", "name": "check", "arguments": {"id": "A"}}
    more = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "r", "content": '{"ok": true}', "is_error": True},
    ]
    before = words(WIDE, Talk(list(messages)).evidence(**record))
    after = words(WIDE, Talk([*messages, *more]).evidence(**record))
    for criterion in ("before", "committed", "alone"):
        assert after[criterion] == before[criterion]


@given(transcripts(), RECORDS)
@settings(max_examples=60, deadline=None)
def test_an_attempt_more_never_takes_a_violation_back(
    messages: list[JsonObject], record: JsonObject
) -> None:
    call: JsonObject = {"id": "r", "name": "pay", "arguments": {"amount": 200}}
    before = words(WIDE, Talk(list(messages)).evidence(**record))
    attempt: JsonObject = {"role": "assistant", "tool_calls": [call]}
    after = words(WIDE, Talk([*messages, attempt]).evidence(**record))
    assert after["attempt"] == "fail"
    assert after["commit"] in {"fail", "unknown"}
    assert (after["commit"] == "fail") == (before["commit"] == "fail")


def _is_less(less: str, more: str) -> bool:
    """Whether less evidence says at most what more says, never a pass that more does not."""
    return less != "pass" or more == "pass"


@given(transcripts(), RECORDS, st.data())
@settings(max_examples=100, deadline=None)
def test_nothing_missing_ever_gives_a_pass(
    messages: list[JsonObject], record: JsonObject, data: st.DataObject
) -> None:
    whole = words(WIDE, Talk(messages).evidence(**record))
    part = data.draw(st.sampled_from(["facts", "initial_state", "final_state", "usage", "result"]))
    if part == "result":
        results = [at for at, message in enumerate(messages) if message["role"] == "tool"]
        if not results:
            return
        gone = data.draw(st.sampled_from(results))
        # A message stays in its place, so that steps keep their numbers.
        nothing: JsonObject = {"role": "system", "content": ""}
        left = [*messages[:gone], nothing, *messages[gone + 1 :]]
        less = words(WIDE, Talk(left).evidence(**record))
    else:
        less = words(WIDE, Talk(messages).evidence(**{**record, part: None}))
    assert all(_is_less(less[name], whole[name]) for name in whole), (less, whole)


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "tool_calls",
                    "id",
                    "name",
                    "arguments",
                    "tool_call_id",
                    "type",
                    "refunds",
                    "ok",
                    "items",
                ]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]) | ANY_JSON},
    optional={"content": ANY_JSON, "tool_calls": ANY_JSON, "tool_call_id": ANY_JSON},
)


@given(st.lists(MESSAGE, max_size=4), ANY_JSON, ANY_JSON, st.dictionaries(st.text(), ANY_JSON))
@settings(max_examples=150, deadline=None)
def test_checks_never_raise_whatever_was_recorded(
    messages: list[JsonObject], initial: Json, final: Json, facts: JsonObject
) -> None:
    evidence = TrialEvidence(
        status=TrialStatus.COMPLETED,
        messages=tuple(messages),
        steps=transcript_of(messages),
        facts=facts,
        initial_state=initial,
        final_state=final,
        expected_state=None,
        cost_usd=None,
        tokens=None,
        seconds=None,
    )
    found = checks_of(WIDE, evidence)
    assert len(found.results) == 14
    assert all(result.sentence.endswith(".") for result in found.results)
    assert not any("could not be worked out on this trial" in r.sentence for r in found.results)
    assert checks.checks_of(WIDE, evidence) == found
