"""Grader tests: the short form of planted trials is written out as native records."""

from decimal import Decimal

import pytest

from traces.core.contracts.model import PlantedTrial
from traces.core.contracts.reading import read_contract
from traces.core.values import Json

HEAD = """\
task: t
outcome: [{unchanged: true}]
required: [{id: r, call: x}]
prohibited: [{id: p, harm: h, call: y}]
budget: {turns: 3}
semantic: [{rubric: truthful}]
external: [{id: db, class: outcome}]
grader_tests:
"""


def planted(tests: str) -> tuple[PlantedTrial, ...]:
    reading = read_contract(HEAD + tests)
    assert reading.findings == ()
    assert reading.contract is not None
    return reading.contract.grader_tests


def found_in(tests: str) -> list[tuple[int, int, str, str, str]]:
    return [
        (f.line - 8, f.column, f.code, f.field.removeprefix("grader_tests"), f.sentence)
        for f in read_contract(HEAD + tests).findings
    ]


def call(call_id: str, name: str, **args: Json) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": args}}


def calls(*made: Json) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": [*made]}


def result(call_id: str, content: str, *, is_error: bool = False) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content, "is_error": is_error}


def test_steps_are_written_out_as_messages() -> None:
    (trial,) = planted(
        """
  - name: all forms
    facts: {a: 1}
    initial_state: {b: [1.50]}
    final_state: null
    expected_state: x
    status: error
    usage: {cost_usd: 0.10, input_tokens: 5}
    started_at: 2026-11-30T10:00:00Z
    ended_at: "2026-11-30T10:00:41Z"
    steps:
      - user: hi
      - {call: x, args: {n: 1.50}, result: {b: 84.00, a: [true, null]}}
      - {call: y, rejected: no such order}
      - {call: y, result: "as text: {"}
      - together:
          - {call: x, result: null}
          - {call: z}
          - {call: y, args: {}, result: 7}
      - agent: ""
    expect: {outcome: pass, r: fail, p: unknown, budget.turns: error}
"""
    )

    assert trial == PlantedTrial(
        "all forms",
        {
            "messages": [
                {"role": "user", "content": "hi"},
                calls(call("c1", "x", n=Decimal("1.50"))),
                result("c1", '{"b": 84.00, "a": [true, null]}'),
                calls(call("c2", "y")),
                result("c2", "no such order", is_error=True),
                calls(call("c3", "y")),
                result("c3", "as text: {"),
                calls(call("c4", "x"), call("c5", "z"), call("c6", "y")),
                result("c4", "null"),
                result("c6", "7"),
                {"role": "assistant", "content": ""},
            ],
            "facts": {"a": 1},
            "initial_state": {"b": [Decimal("1.50")]},
            "final_state": None,
            "expected_state": "x",
            "status": "error",
            "usage": {"cost_usd": Decimal("0.10"), "input_tokens": 5},
            "started_at": "2026-11-30T10:00:00Z",
            "ended_at": "2026-11-30T10:00:41Z",
        },
        (("outcome", "pass"), ("r", "fail"), ("p", "unknown"), ("budget.turns", "error")),
    )


def test_a_test_takes_over_what_it_does_not_give() -> None:
    first, second, third, fourth = planted(
        """
  - {name: a, facts: {f: 1}, final_state: {s: 1}, steps: [{user: hi}, {call: x}], expect: {r: pass}}
  - {name: b, like: a, final_state: {s: 2}, expect: {r: fail}}
  - {name: c, like: b, facts: {}, steps: [{agent: bye}], expect: {r: fail}}
  - {name: d, like: c, messages: [{role: user, content: hi}], expect: {r: fail}}
"""
    )

    assert second.record == {**first.record, "final_state": {"s": 2}}
    assert third.record == {
        "messages": [{"role": "assistant", "content": "bye"}],
        "facts": {},
        "final_state": {"s": 2},
    }
    assert fourth.record == {**third.record, "messages": [{"role": "user", "content": "hi"}]}


def test_steps_are_left_out_by_number_and_by_call() -> None:
    steps = "[{user: a}, {call: x}, {together: [{call: x}, {call: y}]}, {together: [{call: x}]}, {agent: b}]"
    all_steps, numbers, names, both, chained = planted(
        f"""
  - {{name: a, steps: {steps}, expect: {{r: pass}}}}
  - {{name: b, like: a, without: [3, 4, 2], expect: {{r: pass}}}}
  - {{name: c, like: a, without: [x], expect: {{r: pass}}}}
  - {{name: d, like: a, without: [y, 1], expect: {{r: pass}}}}
  - {{name: e, like: c, without: [1], expect: {{r: pass}}}}
"""
    )

    user, agent = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    assert all_steps.record["messages"] == [
        user,
        calls(call("c1", "x")),
        calls(call("c2", "x"), call("c3", "y")),
        calls(call("c4", "x")),
        agent,
    ]
    assert numbers.record["messages"] == [user, agent]
    assert names.record["messages"] == [user, calls(call("c1", "y")), agent]
    assert both.record["messages"] == [
        calls(call("c1", "x")),
        calls(call("c2", "x")),
        calls(call("c3", "x")),
        agent,
    ]
    assert chained.record["messages"] == [calls(call("c1", "y")), agent]


def test_steps_of_all_tests_together_are_bounded() -> None:
    steps = ", ".join(["{user: u}"] * 500)
    tests = f"  - {{name: a, steps: [{steps}], expect: {{r: fail}}}}\n" + "".join(
        f"  - {{name: b{n}, like: a, expect: {{r: fail}}}}\n" for n in range(50)
    )

    assert len(planted("".join(tests.splitlines(keepends=True)[:10]))) == 10
    assert [fault[:4] for fault in found_in(tests)] == [(11, 5, "too-many-steps", "[10]")]


A = "  - {name: a, steps: [{call: xy}, {user: u}], expect: {r: pass}}\n"

FAULTS = [
    ("  - {name: n, steps: [], expect: {r: good}}\n",
     [(1, 38, "unknown-word", "[0].expect.r",
       '`grader_tests[0].expect.r` must be one of pass, fail, unknown, error, not the text "good".')]),
    ("  - {name: n, steps: [], expect: {R1: pass, truthful: pass, db: pass, budget.tokens: pass}}\n",
     [(1, column, "unknown-check", f"[0].expect{name}",
       f"The contract has no check {word} that code decides.{hint}")
      for column, name, word, hint in (
          (35, ".R1", '"R1"', " Do you mean `r`?"), (45, ".truthful", '"truthful"', ""),
          (61, ".db", '"db"', ""),
          (71, '["budget.tokens"]', '"budget.tokens"', " Do you mean `budget.turns`?"))]),
    (A + A, [(2, 12, "second-name", "[1].name", 'There is a grader test "a" already.')]),
    ("  - {name: b, like: a, expect: {r: pass}}\n" + A,
     [(1, 21, "unknown-test", "[0].like", 'There is no earlier grader test "a".')]),
    (A + "  - {name: b, like: A1, without: [1], expect: {r: pass}}\n",
     [(2, 21, "unknown-test", "[1].like",
       'There is no earlier grader test "A1". Do you mean `a`?')]),
    (A + "  - {name: b, like: a, without: [0, 3, xyy], expect: {r: pass}}\n",
     [(2, 34, "no-such-step", "[1].without[0]", "There is no step 0: there are 2, from 1."),
      (2, 37, "no-such-step", "[1].without[1]", "There is no step 3: there are 2, from 1."),
      (2, 40, "no-such-step", "[1].without[2]", 'No step there calls "xyy". Do you mean `xy`?')]),
    (("  - {name: a, messages: [], expect: {r: pass}}\n"
     "  - {name: b, like: a, without: [1], expect: {r: pass}}\n"),
     [(2, 33, "no-steps", "[1].without",
       "The grader test has no `steps` to leave out: it has `messages`.")]),
    (A + "  - {name: b, without: [1], expect: {r: pass}}\n",
     [(2, 5, "wrong-form", "[1]", "A planted trial needs `steps`, `messages` or `like`."),
      (2, 5, "wrong-form", "[1]", "`without` needs `like`, and no `steps` or `messages` beside it.")]),
    (A + "  - {name: b, like: a, without: [1], steps: [], expect: {r: pass}}\n",
     [(2, 5, "wrong-form", "[1]", "`without` needs `like`, and no `steps` or `messages` beside it.")]),
    ("  - {name: n, steps: [], messages: [], expect: {r: pass}}\n",
     [(1, 5, "wrong-form", "[0]", "A planted trial has `steps` or `messages`, not both.")]),
    ("  - {name: n, steps: [{user: a, agent: b}], expect: {r: pass}}\n",
     [(1, 23, "wrong-form", "[0].steps[0]",
       "Exactly one of `user`, `agent`, `call` and `together` must stand here.")]),
    ("  - {name: n, steps: [{user: a, args: {}}], expect: {r: pass}}\n",
     [(1, 23, "wrong-form", "[0].steps[0]",
       "`args`, `result` and `rejected` stand beside `call` only.")]),
    ("  - {name: n, steps: [{call: a, result: 1, rejected: b}], expect: {r: pass}}\n",
     [(1, 23, "wrong-form", "[0].steps[0]", "A call has a `result` or is `rejected`, not both.")]),
    ("  - {name: n, steps: [{together: []}], expect: {r: pass}}\n",
     [(1, 34, "too-few", "[0].steps[0].together",
       "`grader_tests[0].steps[0].together` must hold 1 or more.")]),
    ("  - {name: n, messages: [{content: x}, {role: bot}], expect: {r: pass}}\n",
     [(1, 26, "missing-field", "[0].messages[0].role",
       "`grader_tests[0].messages[0].role` is missing."),
      (1, 47, "unknown-word", "[0].messages[1].role",
       ("`grader_tests[0].messages[1].role` must be one of system, user, assistant, tool, "
       'not the text "bot".'))]),
    ("  - {name: n, messages: [{role: assistant, tool_calls: [5]}], expect: {r: pass}}\n",
     [(1, 57, "bad-record", "[0].messages[0].tool_calls[0]",
       ("The planted trial cannot be read: messages[0].tool_calls[0] must be an object, "
       "this is a number."))]),
    ("  - {name: n, steps: [], usage: {cost_usd: x}, started_at: now, expect: {r: pass}}\n",
     [(1, 44, "bad-record", "[0].usage.cost_usd",
       "The planted trial cannot be read: usage.cost_usd is not a number: read as missing."),
      (1, 60, "bad-record", "[0].started_at",
       "The planted trial cannot be read: started_at is not a time: read as missing.")]),
]  # fmt: skip


@pytest.mark.parametrize(("tests", "found"), FAULTS, ids=range(len(FAULTS)))
def test_a_mistake_in_a_planted_trial_is_named(
    tests: str, found: list[tuple[int, int, str, str, str]]
) -> None:
    assert found_in(tests) == found


def test_names_are_guessed_for_the_first_few_mistakes() -> None:
    expect = ", ".join(f"outcome{n}: pass" for n in range(13))

    found = found_in(f"  - {{name: n, steps: [], expect: {{{expect}}}}}\n")

    assert ["Do you mean `outcome`?" in fault[4] for fault in found] == [True] * 10 + [False] * 3


def test_long_names_are_not_guessed() -> None:
    (fault,) = found_in(f"  - {{name: n, steps: [], expect: {{{'r' * 41}: pass}}}}\n")

    assert fault[4].endswith("that code decides.")
