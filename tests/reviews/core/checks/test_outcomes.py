"""The state that the environment was left in, against what the contract wants."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviews.core.checks.outcomes import MOST_DIFFERENCES, CaseError, case_findings
from tests.reviews.core.checks.cases import Talk, contract, one, said
from traces.core.contracts.model import Change, OutcomeCase
from traces.core.values import Json


def case(
    changes: dict[str, Any] | list[tuple[str, Any]] | None = None,
    *,
    ignore: tuple[str, ...] = (),
    absent: tuple[str, ...] = (),
) -> OutcomeCase:
    pairs = changes.items() if isinstance(changes, dict) else changes or []
    return OutcomeCase("", tuple(Change(*pair) for pair in pairs), ignore, absent)


def found(case_: OutcomeCase, initial: Json, final: Json) -> list[tuple[str, str, str]]:
    findings = case_findings(case_, initial, final)
    listed = [(each.pointer, each.wanted, each.found) for each in findings.listed]
    assert findings.n == len(listed)
    return listed


REFUND = {"order": "A", "amount": 84}
FREE = ("/refunds/*/id", "/refunds/*/at")

STATES: list[tuple[OutcomeCase, Any, Any, list[tuple[str, str, str]]]] = [
    # Nothing changes.
    (case(), {"a": 1}, {"a": 1.0}, []),
    (case(), {"a": 1}, {"a": True}, [("/a", "as before: 1", "true")]),
    (case(), {"a": None}, {}, [("/a", "as before: null", "nothing")]),
    (case(), {}, {"a": None}, [("/a", "nothing", "null")]),
    (case(), [1], {"a": 1}, [("", "as before: [1]", '{"a":1}')]),
    (
        case(),
        {"l": [1, 2]},
        {"l": [2, 1]},
        [("/l/0", "as before: 1", "2"), ("/l/1", "as before: 2", "1")],
    ),
    # Set.
    (case({"/a": 2}), {"a": 1, "b": 1}, {"a": 2, "b": 1}, []),
    (
        case({"/a": 2}),
        {"a": 1, "b": 1},
        {"a": 1, "b": 2},
        [("/a", "2", "1"), ("/b", "as before: 1", "2")],
    ),
    (case({"/a/b/c": 2}), {"a": {"b": {"c": 1, "d": 1}}}, {"a": {"b": {"c": 2, "d": 1}}}, []),
    (case({"/r/x": {"s": 1}}), {"r": {}}, {"r": {"x": {"s": 1}}}, []),
    (case({"/r/x/s": 1}), {}, {"r": {"x": {"s": 1}}}, []),
    (case({"/r/x/s": 1}), {"r": {}}, {"r": {"x": {"s": 2}}}, [("/r/x/s", "1", "2")]),
    (case({"/r/x/s": 1}), {"r": {}}, {"r": {}}, [("/r/x", '{"s":1}', "nothing")]),
    (case({"/a": None}), {"a": 1}, {}, [("/a", "null", "nothing")]),
    (case({"/a~1b": 1, "/c~0d": 2}), {}, {"a/b": 1, "c~d": 2}, []),
    (case({"/l/1/x": 2}), {"l": [0, {"x": 1}]}, {"l": [0, {"x": 2}]}, []),
    (case({"/l/0": 5}), {"l": []}, {"l": [5]}, []),
    (case({"/m/-": 5}), {"m": {}}, {"m": {"-": 5}}, []),
    # Appended.
    (case({"/refunds/-": REFUND}), {"refunds": []}, {"refunds": [REFUND]}, []),
    (case({"/refunds/-": REFUND}), {"refunds": [1]}, {"refunds": [1, REFUND]}, []),
    (case({"/refunds/-": REFUND}), {}, {"refunds": [REFUND]}, []),
    (
        case({"/refunds/-": REFUND}),
        {"refunds": [1]},
        {"refunds": [1]},
        [("/refunds/-", '{"amount":84,"order":"A"}', "nothing")],
    ),
    (
        case({"/refunds/-": REFUND}),
        {},
        {},
        [("/refunds/-", '{"amount":84,"order":"A"}', "nothing")],
    ),
    (
        case({"/refunds/-": REFUND}),
        {"refunds": []},
        {"refunds": [{"order": "A", "amount": 90}]},
        [("/refunds/0/amount", "84", "90")],
    ),
    (
        case({"/refunds/-": REFUND}),
        {"refunds": []},
        {"refunds": [REFUND, REFUND]},
        [("/refunds/1", "nothing", '{"amount":84,"order":"A"}')],
    ),
    (
        case({"/refunds/-": REFUND}),
        {"refunds": [1, 2]},
        {"refunds": [2, REFUND]},
        [
            ("/refunds/-", '{"amount":84,"order":"A"}', "nothing"),
            ("/refunds/0", "as before: 1", "2"),
            ("/refunds/1", "as before: 2", '{"amount":84,"order":"A"}'),
        ],
    ),
    (
        case({"/refunds/-": 1}),
        {"refunds": [5]},
        {"refunds": "gone"},
        [("/refunds/-", "1", "nothing"), ("/refunds", "as before: [5]", '"gone"')],
    ),
    (
        case([("/l/-", 1), ("/l/-", 2), ("/l/-", 1)]),
        {"l": [0]},
        {"l": [0, 2, 1, 1]},
        [],
    ),
    (
        case([("/l/-", 1), ("/l/-", 2), ("/l/-", 1)]),
        {"l": [0]},
        {"l": [0, 2, 1, 2]},
        [("/l/3", "1", "2")],
    ),
    (
        case([("/l/-", {"a": 1, "b": 1}), ("/l/-", 7)]),
        {"l": []},
        {"l": [9, {"a": 1, "b": 2}]},
        [
            ("/l/1/b", "1", "2"),
            ("/l/0", "7", "9"),
        ],
    ),
    (case({"/l/-": 1, "/l/0/x": 2}), {"l": [{"x": 1}]}, {"l": [{"x": 2}, 1]}, []),
    (case({"/a/l/-": 1}), {"a": {}}, {"a": {"l": [1]}}, []),
    (case({"/l/0/n/-": 1}), {"l": [{"n": []}]}, {"l": [{"n": [1]}]}, []),
    # Ignored.
    (
        case({"/refunds/-": REFUND}, ignore=FREE),
        {"refunds": [{"id": 1}]},
        {"refunds": [{"id": 2}, {**REFUND, "id": 3, "at": "now"}]},
        [],
    ),
    (
        case([("/refunds/-", REFUND), ("/refunds/-", REFUND)], ignore=FREE),
        {"refunds": []},
        {"refunds": [{**REFUND, "id": 3}, {**REFUND, "id": 4}]},
        [],
    ),
    (
        case({"/refunds/-": {**REFUND, "id": 9}}, ignore=FREE),
        {"refunds": []},
        {"refunds": [{**REFUND, "id": 3}]},
        [],
    ),
    (case(ignore=("/log",)), {"log": [1], "a": 1}, {"a": 1}, []),
    (case(ignore=("/log/*/at",)), {"log": {"x": {"at": 1, "b": 1}}}, {"log": {"x": {"b": 1}}}, []),
    (case(ignore=("/log/*",)), {"log": [1]}, {"log": [2, 3]}, []),
    (case(ignore=("/log/*",)), {"log": []}, {}, [("/log", "as before: []", "nothing")]),
    (case(ignore=("/l/0",)), {"l": [1, 2]}, {"l": [5, 2]}, []),
    (case(ignore=("/l/0",)), {"l": [1, 2]}, {"l": [5, 3]}, [("/l/1", "as before: 2", "3")]),
    (case(ignore=("",)), {"a": 1}, {"b": 1}, []),
    (case(ignore=("/a/b",)), {"a": 1}, {"a": 1}, []),
    # What a change names counts, though it is ignored around it.
    (
        case({"/o/A/s": 2}, ignore=("/o",)),
        {"o": {"A": {"s": 1, "t": 1}}},
        {"o": {"A": {"s": 2}, "B": 5}},
        [],
    ),
    (
        case({"/o/A/s": 2}, ignore=("/o/*",)),
        {"o": {"A": {"s": 1}}},
        {"o": {"A": {"s": 3}}},
        [("/o/A/s", "2", "3")],
    ),
    (
        case({"/o/A": {"s": 2, "at": 0}}, ignore=("/o/A", "/o/*/at")),
        {"o": {}},
        {"o": {"A": {"s": 2, "at": 7}}},
        [],
    ),
    (case({"/o": {"s": 2}}, ignore=("/o",)), {"o": {}}, {"o": {"s": 3}}, [("/o/s", "2", "3")]),
    (
        case({"/l/1/s": 2}, ignore=("/l",)),
        {"l": [0, {"s": 1}]},
        {"l": [7, {"s": 2, "t": 1}, 9]},
        [],
    ),
    (case({"/l/-": 1}, ignore=("/l/*",)), {"l": [0]}, {"l": [5, 3, 1]}, []),
    (case({"/l/-": 1}, ignore=("/l",)), {"l": [0]}, {"l": [0, 3]}, [("/l/-", "1", "nothing")]),
    (
        case({"/o/A/s": 2}, ignore=("/o",)),
        {"o": {"A": {"s": 1}}},
        {"o": 5},
        [("/o", '{"A":{"s":2}}', "nothing")],
    ),
    # Absent.
    (case(absent=("/holds/A",)), {"holds": {"A": 1, "B": 1}}, {"holds": {"B": 1}}, []),
    (
        case(absent=("/holds/A",)),
        {"holds": {"A": 1}},
        {"holds": {"A": 1}},
        [("/holds/A", "nothing", "1")],
    ),
    (
        case(absent=("/holds/A",)),
        {"holds": {}},
        {"holds": {"A": None}},
        [("/holds/A", "nothing", "null")],
    ),
    (case(absent=("/holds/*",)), {"holds": [1, 2]}, {"holds": []}, []),
    (
        case(absent=("/*/x",)),
        {"a": {"x": 1}, "b": {}},
        {"a": {"x": 1}, "b": {"x": 2}, "c": 5},
        [
            ("/a/x", "nothing", "1"),
            ("/b/x", "nothing", "2"),
            ("/c", "nothing", "5"),
        ],
    ),
    (case(absent=("/l/*/x",)), {"l": [{"x": 1}]}, {"l": [{"x": 1}]}, [("/l/0/x", "nothing", "1")]),
    (case(absent=("",)), {"a": 1}, {"b": 1}, [("", "nothing", '{"b":1}')]),
    (case(absent=("/a",), ignore=("/a",)), {"a": 1}, {"a": 1}, [("/a", "nothing", "1")]),
]


@pytest.mark.parametrize(
    ("case_", "initial", "final", "wanted"), STATES, ids=[str(n) for n in range(len(STATES))]
)
def test_a_final_state_differs_where_the_case_wants_something_else(
    case_: OutcomeCase, initial: Json, final: Json, wanted: list[tuple[str, str, str]]
) -> None:
    assert found(case_, initial, final) == wanted


@pytest.mark.parametrize(
    ("case_", "initial", "sentence"),
    [
        (
            case({"/a/b": 1}),
            {"a": 5},
            "A change of the outcome cannot be made in the initial state: `b` leads through 5.",
        ),
        (
            case({"/l/7": 1}),
            {"l": [1]},
            "A change of the outcome cannot be made in the initial state: `7` leads through [1].",
        ),
        (
            case({"/l/01": 1}),
            {"l": [1, 2]},
            "A change of the outcome cannot be made in the initial state: `01` leads through [1,2].",
        ),
        (case({"/a/-": 1}), {"a": 5}, "/a is no list: nothing can be appended to it."),
    ],
    ids=["scalar", "beyond", "zeros", "no-list"],
)
def test_a_case_that_cannot_be_applied_says_why(
    case_: OutcomeCase, initial: Json, sentence: str
) -> None:
    with pytest.raises(CaseError) as caught:
        case_findings(case_, initial, initial)
    assert caught.value.sentence == sentence


def test_differences_are_counted_whole_and_listed_in_bounds() -> None:
    initial: Json = {"r": {str(n): n for n in range(100)}}
    final: Json = {"r": {str(n): n + 1 for n in range(100)}}
    findings = case_findings(case(), initial, final)
    assert (findings.n, len(findings.listed)) == (100, MOST_DIFFERENCES)
    appended = case_findings(case([("/l/-", n) for n in range(50)]), {"l": []}, {"l": []})
    assert (appended.n, len(appended.listed)) == (50, MOST_DIFFERENCES)


def test_long_values_are_cut() -> None:
    ((_, wanted, now),) = found(case({"/a": "x" * 1000}), {}, {"a": 'a"\\\n' + "y" * 1000})
    assert wanted.startswith('"xxx')
    assert wanted.endswith("…")
    assert now.startswith('"a\\"\\\\\\nyyy')
    assert max(len(wanted), len(now)) == 200


def test_large_states_are_matched_by_counting() -> None:
    records = [{"id": n, "order": f"o{n % 7}", "amount": n % 5} for n in range(10_000)]
    wanted = [("/l/-", {"order": f"o{n % 7}", "amount": n % 5}) for n in reversed(range(10_000))]
    held: Json = {"l": [], "all": {str(n): {"x": n} for n in range(10_000)}}
    now: Json = {"l": records, "all": {str(n): {"x": n} for n in range(10_000)}}
    assert found(case(wanted, ignore=("/l/*/id", "/all/*/y")), held, now) == []
    none: Json = {"l": [{"id": n} for n in range(10_000)], "all": now["all"]}  # type: ignore[call-overload, index]
    assert case_findings(case(wanted, ignore=("/l/*/id",)), held, none).n == 20_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "*", "-"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "*", "-", "0"]), inner, max_size=3)
    ),
    max_leaves=10,
)
POINTERS = st.lists(st.sampled_from(["a", "b", "*", "0", "1", "-"]), max_size=3).map(
    lambda names: "".join(f"/{name}" for name in names)
)


@settings(deadline=None)
@given(
    st.lists(st.tuples(POINTERS, JSON), max_size=3),
    st.lists(POINTERS, max_size=2),
    st.lists(POINTERS, max_size=2),
    JSON,
    JSON,
)
def test_any_case_is_answered_or_refused(
    changes: list[tuple[str, Any]], ignore: list[str], absent: list[str], initial: Json, final: Json
) -> None:
    made = case(changes, ignore=tuple(ignore), absent=tuple(absent))
    with contextlib.suppress(CaseError):
        findings = case_findings(made, initial, final)
        assert (findings.n == 0) == (not findings.listed)


@settings(deadline=None)
@given(JSON, st.lists(POINTERS, max_size=2))
def test_an_unchanged_state_never_differs(state: Json, ignore: list[str]) -> None:
    assert found(case(ignore=tuple(ignore)), state, state) == []


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), max_size=6))
def test_appended_elements_are_a_multiset(wanted: list[int], now: list[int]) -> None:
    findings = case_findings(
        case([("/l/-", value) for value in wanted]), {"l": [9]}, {"l": [9, *now]}
    )
    assert (findings.n == 0) == (sorted(wanted) == sorted(now))


CASES = """
facts: {a: 1}
trial_facts: [eligible]
outcome:
  - when: facts.eligible
    changes: {/x: 2}
  - when: facts.eligible == false && facts.kind == "b"
    unchanged: true
"""


@pytest.mark.parametrize(
    ("record", "word", "sentence"),
    [
        (
            {"facts": {"eligible": True}, "final_state": {"x": 2}},
            "pass",
            'The final state is as the contract wants it (case: "facts.eligible").',
        ),
        (
            {"facts": {"eligible": True}, "final_state": {"x": 1, "y": 1}},
            "fail",
            (
                'The final state differs (case: "facts.eligible"): /x is 1, wanted 2. '
                "And 1 more difference."
            ),
        ),
        (
            {"facts": {"eligible": True}, "final_state": {"x": 3}},
            "fail",
            'The final state differs (case: "facts.eligible"): /x is 3, wanted 2.',
        ),
        (
            {"facts": {"eligible": False, "kind": "b"}, "final_state": {"x": 1}},
            "pass",
            (
                "The final state is as the contract wants it (case: "
                '"facts.eligible == false && facts.kind == \\"b\\"").'
            ),
        ),
        (
            {"facts": {"eligible": False, "kind": "c"}, "final_state": {"x": 1}},
            "error",
            "No case of the outcome holds for the facts of this trial.",
        ),
        (
            {"final_state": {"x": 2}},
            "unknown",
            "Whether \"facts.eligible\" holds is unknown: there is no field 'eligible'.",
        ),
        (
            {"facts": {"eligible": "yes"}, "final_state": {"x": 2}},
            "unknown",
            'Whether "facts.eligible" holds is unknown: a value is neither true nor false.',
        ),
        ({"facts": {"eligible": True}}, "unknown", "The final state is not recorded."),
        (
            {"facts": {"eligible": True}, "initial_state": None, "final_state": None},
            "unknown",
            "The initial state and the final state are not recorded.",
        ),
        (
            {"facts": {"eligible": True}, "initial_state": 5, "final_state": 5},
            "error",
            "A change of the outcome cannot be made in the initial state: `x` leads through 5.",
        ),
        (
            {"facts": {"eligible": False, "kind": "b"}, "initial_state": 5, "final_state": 6},
            "fail",
            (
                'The final state differs (case: "facts.eligible == false && facts.kind == \\"b\\""): '
                "the whole state is 6, wanted as before: 5."
            ),
        ),
    ],
    ids=[
        "holds",
        "two-differ",
        "differs",
        "second",
        "none",
        "no-fact",
        "no-truth",
        "no-final",
        "no-states",
        "no-object",
        "whole",
    ],
)
def test_the_first_case_that_holds_decides(
    record: dict[str, Any], word: str, sentence: str
) -> None:
    made = contract(CASES)
    evidence = Talk().user("x").evidence(**{"initial_state": {"x": 1}, **record})
    result = said(made, evidence)["outcome"]
    assert (result.value.value, result.sentence) == (word, sentence)


def test_a_condition_that_cannot_be_read_is_an_error() -> None:
    made = contract("outcome:\n  - {when: facts.a, unchanged: true}\n")
    assert made.outcome is not None
    odd = replace(made.outcome, cases=(replace(made.outcome.cases[0], when="args.a"),))
    result = said(replace(made, outcome=odd), Talk().evidence())["outcome"]
    assert (result.value.value, result.sentence) == (
        "error",
        (
            "A condition of the outcome cannot be read: Unknown name `args`: "
            "only facts may stand here (column 1)."
        ),
    )


def test_a_condition_over_too_many_facts_is_an_error() -> None:
    text = (
        "outcome:\n  - when: 'facts.l.exists(x, facts.l.exists(y, x == y))'\n    unchanged: true\n"
    )
    evidence = Talk().evidence(facts={"l": list(range(10_000))})
    result = one(text, evidence)
    assert result.value.value == "error"
    assert result.sentence == "What the condition looks at is too large to evaluate."


@pytest.mark.parametrize(
    ("record", "word", "differences"),
    [
        ({"final_state": {"a": 1}, "expected_state": {"a": 1.0}}, "pass", []),
        ({"final_state": {"a": 1}, "expected_state": {"a": "1"}}, "fail", [("/a", '"1"', "1")]),
        ({"final_state": {"a": 1}}, "unknown", []),
        ({"expected_state": {"a": 1}}, "unknown", []),
    ],
    ids=["equal", "differs", "no-expectation", "no-final"],
)
def test_a_recorded_expectation_is_the_final_state(
    record: dict[str, Any], word: str, differences: list[tuple[str, str, str]]
) -> None:
    result = one("outcome: recorded_expectation\n", Talk().evidence(**record))
    found_ = [(each.pointer, each.wanted, each.found) for each in result.differences]
    assert (result.value.value, found_, result.n_differences) == (
        word,
        differences,
        len(differences),
    )
