from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core import match_cases
from traces.core.match_cases import (
    ArgumentsMode,
    CaseScore,
    KeyPaths,
    MatchCase,
    MatchMode,
    PythonFunction,
    read_cases,
    scores_of_cases,
)
from traces.core.trajectory import ArgumentsForm

FILE = Path(__file__).parents[2] / "data" / "14_agentevals" / "trajectory_match_cases.json"
UNRECORDED = object()


def call(name: str, arguments: Any = UNRECORDED) -> dict[str, Any]:
    """A call; text is taken as it stands, anything else is written as JSON."""
    function = {"name": name}
    if arguments is not UNRECORDED:
        function["arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": "", "type": "function", "function": function}


def message(*calls: dict[str, Any], role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": "", "tool_calls": list(calls)}


def case(
    outputs: list[dict[str, Any]], reference: list[dict[str, Any]], **fields: Any
) -> dict[str, Any]:
    return {
        "id": "c1",
        "trajectory_match_mode": "strict",
        "tool_args_match_mode": "exact",
        "tool_args_match_overrides": None,
        "outputs": outputs,
        "reference_outputs": reference,
        **fields,
    }


def read_one(raw: Any) -> MatchCase:
    cases, findings = read_cases(json.dumps([raw]).encode())
    assert findings == ()
    return cases[0]


def score(raw: Any) -> bool | None:
    return scores_of_cases([read_one(raw)])[0].score


def score_of_arguments(ours: Any, theirs: Any, mode: str, **fields: Any) -> bool | None:
    return score(
        case([message(call("a", ours))], [message(call("a", theirs))], **fields)
        | {"tool_args_match_mode": mode}
    )


def sentence(raw: Any) -> str:
    """What is wrong with a case."""
    cases, findings = read_cases(json.dumps([raw]).encode())
    assert cases == ()
    return findings[0].sentence


# Recorded cases


def recorded() -> tuple[MatchCase, ...]:
    cases, findings = read_cases(FILE.read_bytes())
    assert findings == ()
    return cases


def test_scores_of_every_recorded_case_are_as_recorded() -> None:
    scores = scores_of_cases(recorded())
    assert [each.case_id for each in scores] == [f"case_{n:02}" for n in range(1, 65, 2)]
    undecided = [each for each in scores if each.score is None]
    assert [each.case_id for each in undecided] == ["case_29", "case_31"]
    assert {each.reason for each in undecided} == {
        "The arguments of “get_weather” are compared by a Python function."
    }
    assert [each for each in scores if each.score not in (None, each.expected)] == []


START = KeyPaths((("time", "start"),))


@pytest.mark.parametrize(
    ("case_id", "mode", "overrides", "expected"),
    [
        # The parametrisation of the upstream tests that the recorded cases are half of.
        *(("case_01", mode, (), True) for mode in MatchMode),
        *(("case_05", mode, (), True) for mode in MatchMode),
        ("case_09", MatchMode.SUPERSET, (), True),
        ("case_09", MatchMode.STRICT, (), False),
        ("case_13", MatchMode.SUPERSET, (), False),
        ("case_13", MatchMode.STRICT, (), False),
        *(("case_17", mode, (), False) for mode in MatchMode),
        ("case_21", MatchMode.SUPERSET, (("get_weather", ArgumentsMode.IGNORE),), True),
        ("case_21", MatchMode.STRICT, (("get_weather", ArgumentsMode.IGNORE),), False),
        ("case_25", MatchMode.SUPERSET, (("get_weather", ArgumentsMode.IGNORE),), False),
        ("case_25", MatchMode.STRICT, (("get_weather", ArgumentsMode.IGNORE),), False),
        *(("case_37", mode, (), False) for mode in MatchMode),
        *(("case_45", mode, (), False) for mode in MatchMode),
        *(("case_45", mode, (("lookup_policy", START),), True) for mode in MatchMode),
    ],
)
def test_score_of_a_recorded_case_in_another_mode(
    case_id: str, mode: MatchMode, overrides: Any, expected: bool
) -> None:
    (found,) = (each for each in recorded() if each.case_id == case_id)
    (score,) = scores_of_cases([replace(found, mode=mode, overrides=overrides)])
    assert (score.mode, score.score, score.reason) == (mode, expected, "")


@pytest.mark.parametrize(
    ("case_id", "expected"),
    [
        ("case_53", {"exact": False, "ignore": True, "subset": False, "superset": True}),
        ("case_57", {"exact": False, "ignore": True, "subset": True, "superset": False}),
        ("case_61", {"exact": True, "ignore": True, "subset": True, "superset": True}),
    ],
)
def test_score_of_a_recorded_case_by_arguments(case_id: str, expected: dict[str, bool]) -> None:
    (found,) = (each for each in recorded() if each.case_id == case_id)
    scores = scores_of_cases([replace(found, arguments=mode) for mode in ArgumentsMode])
    assert dict(zip(ArgumentsMode, (each.score for each in scores), strict=True)) == expected


# Strict


def test_strict_wants_the_same_roles_in_order() -> None:
    user, agent = {"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}
    other = {"role": "user", "content": "good bye"}
    assert score(case([user, agent], [other, agent])) is True
    assert score(case([user, agent], [agent, user])) is False
    assert score(case([user, agent], [user, agent, user])) is False


def test_strict_compares_the_calls_of_each_message_in_any_order() -> None:
    a, b = call("a", {"x": 1}), call("b", {})
    assert score(case([message(a, b)], [message(b, a)])) is True
    assert score(case([message(a), message(b)], [message(b), message(a)])) is False
    assert score(case([message(a, a)], [message(a)])) is False
    assert score(case([message(a)], [message(a, a)])) is False


def test_messages_without_tool_calls_may_say_so_in_any_way() -> None:
    ways: list[dict[str, Any]] = [
        {"role": "assistant"},
        {"role": "assistant", "tool_calls": None},
        {"role": "assistant", "tool_calls": []},
    ]
    assert {score(case([one], [other])) for one in ways for other in ways} == {True}


# Arguments


@pytest.mark.parametrize(
    ("ours", "theirs", "held"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, "exact subset superset", id="equal"),
        pytest.param({"a": 1}, {"a": True}, "", id="true-is-not-1"),
        pytest.param({"a": None}, {}, "superset", id="null-is-not-absent"),
        pytest.param({}, {"a": None}, "subset", id="absent-is-not-null"),
        pytest.param({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, "", id="inner-objects-are-exact"),
        pytest.param({"a": 1, "b": 2}, {"a": 1, "c": 2}, "", id="neither-holds-the-other"),
        pytest.param([1, 2], [1, 2], "exact subset superset", id="equal-lists"),
        pytest.param([1], [1, 2], "", id="lists-hold-nothing"),
        pytest.param({}, [], "", id="an-object-is-no-list"),
        pytest.param("", {}, "exact subset superset", id="empty-text-is-an-empty-object"),
        pytest.param("{cut", "{cut", "exact subset superset", id="the-same-text-not-json"),
        pytest.param("{cut", '"{cut"', "", id="text-not-json-against-json-text"),
        pytest.param("{cut", "{cut off", "", id="other-text-not-json"),
        pytest.param('{"a":1,"a":1}', {"a": 1}, "", id="duplicate-keys-are-not-json"),
        pytest.param("[" * 5000, "[" * 5000, "exact subset superset", id="deep-text"),
        pytest.param({"a": "é"}, {"a": "e\u0301"}, "", id="text-is-exact"),
    ],
)
def test_score_by_arguments(ours: Any, theirs: Any, held: str) -> None:
    assert score_of_arguments(ours, theirs, "ignore") is True
    assert [
        mode for mode in ("exact", "subset", "superset") if score_of_arguments(ours, theirs, mode)
    ] == held.split()


def test_score_of_tool_names_takes_nfc_as_one() -> None:
    assert score(case([message(call("é", {}))], [message(call("e\u0301", {}))])) is True


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        pytest.param("ignore", True, id="mode"),
        pytest.param(["time.start"], True, id="member"),
        pytest.param(["time.start", "query"], False, id="two-members"),
        pytest.param(["time.zone", "time.start.x", "no"], True, id="missing-equals-null"),
        pytest.param(["time"], False, id="whole-member"),
        pytest.param([], False, id="no-member-overrides-nothing"),
        pytest.param(None, False, id="null-overrides-nothing"),
        pytest.param({"callable": "lambda x, y: True"}, None, id="function"),
    ],
)
def test_score_with_an_override(override: Any, expected: bool | None) -> None:
    assert (
        score_of_arguments(
            {"query": "a", "time": {"start": 1, "end": 2}},
            {"query": "b", "time": {"start": 1.0, "end": 3, "zone": None}},
            "exact",
            tool_args_match_overrides={"b": "exact", "a": override},
        )
        is expected
    )


def test_override_by_members_takes_arguments_that_are_no_object_as_without_any() -> None:
    fields = {"tool_args_match_overrides": {"a": ["x"]}}
    assert score_of_arguments([1], {}, "exact", **fields) is True
    assert score_of_arguments("{cut", {}, "exact", **fields) is False
    assert score_of_arguments("{cut", "{cut", "exact", **fields) is True


def test_case_is_read_with_its_overrides() -> None:
    read = read_one(
        case(
            [],
            [],
            tool_args_match_mode=None,
            tool_args_match_overrides={
                "a": "subset",
                "e\u0301": ["x.y", "z"],
                "f": {"callable": 1},
            },
            expected_score=False,
        )
    )
    assert read == MatchCase(
        "c1",
        MatchMode.STRICT,
        ArgumentsMode.EXACT,
        (
            ("a", ArgumentsMode.SUBSET),
            ("é", KeyPaths((("x", "y"), ("z",)))),
            ("f", PythonFunction()),
        ),
        (),
        (),
        expected=False,
    )


@pytest.mark.parametrize("mode", ["exact", "subset", "superset"])
@pytest.mark.parametrize("unrecorded", [UNRECORDED, "null"])
def test_calls_without_arguments_never_match_and_the_score_says_so(
    mode: str, unrecorded: Any
) -> None:
    bare = call("a") if unrecorded is UNRECORDED else {"function": {"name": "a", "arguments": None}}
    read = read_one(case([message(bare)], [message(bare)], tool_args_match_mode=mode))
    assert read.outputs[0].calls[0].form is ArgumentsForm.ABSENT
    assert scores_of_cases([read]) == (
        CaseScore(
            "c1",
            MatchMode.STRICT,
            score=False,
            reason="2 calls were recorded without arguments and cannot match.",
        ),
    )


def test_calls_without_arguments_match_where_arguments_do_not_count() -> None:
    raw = case([message(call("a"), call("b"))], [message(call("a"), call("b", {}))])
    overrides = {"tool_args_match_overrides": {"a": "ignore", "b": "ignore"}}
    assert scores_of_cases([read_one(raw | overrides)])[0] == CaseScore(
        "c1", MatchMode.STRICT, score=True
    )
    assert scores_of_cases([read_one(raw)])[0].reason == (
        "3 calls were recorded without arguments and cannot match."
    )
    one = scores_of_cases([read_one(raw | {"tool_args_match_overrides": {"a": "ignore"}})])[0]
    assert (one.score, one.reason) == (
        False,
        "1 call was recorded without arguments and cannot match.",
    )


# The best assignment


@pytest.mark.parametrize("mode", ["strict", "unordered", "subset", "superset"])
def test_score_takes_the_best_assignment_not_the_first_that_fits(mode: str) -> None:
    # {x: 1} fits both, and taken first by the first reference it would leave {x: 1, y: 2} alone.
    ours = [message(call("a", {"x": 1}), call("a", {"x": 1, "y": 2}))]
    theirs = [message(call("a", {"x": 1, "y": 2, "z": 3}), call("a", {"x": 1, "w": 4}))]
    fields = {"trajectory_match_mode": mode}
    assert score(case(ours, theirs, tool_args_match_mode="subset", **fields)) is True
    assert score(case(theirs, ours, tool_args_match_mode="superset", **fields)) is True
    assert score(case(ours, theirs, tool_args_match_mode="superset", **fields)) is False


few_arguments = st.lists(
    st.dictionaries(st.sampled_from("xyz"), st.integers(0, 1), max_size=3), max_size=4
)


@given(few_arguments, few_arguments, st.sampled_from(["subset", "superset"]))
def test_score_of_a_subset_is_that_of_the_best_of_all_assignments(
    ours: list[dict[str, int]], theirs: list[dict[str, int]], mode: str
) -> None:
    def fits(output: dict[str, int], reference: dict[str, int]) -> bool:
        if mode == "subset":
            return output.items() <= reference.items()
        return reference.items() <= output.items()

    possible = any(all(map(fits, ours, places)) for places in permutations(theirs, len(ours)))
    raw = case(
        [message(*(call("a", each) for each in ours))],
        [message(*(call("a", each) for each in theirs))],
        trajectory_match_mode="subset",
        tool_args_match_mode=mode,
    )
    assert score(raw) is (possible and len(ours) <= len(theirs))


def test_score_of_too_many_calls_that_differ_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(match_cases, "MOST_PAIRS", 3)
    alike = [call("a", {"same": 1})] * 5
    ours = message(*alike, *(call("a", {"n": n}) for n in range(2)))
    theirs = message(*alike, *(call("a", {"m": n}) for n in range(2)))
    (found,) = scores_of_cases([read_one(case([ours], [theirs], tool_args_match_mode="subset"))])
    assert found.score is None
    assert found.reason == (
        "“a” is called 2 and 2 times with arguments that differ: too many to tell which fit"
        " (at most 3 pairs)."
    )
    assert score(case([message(*alike)], [message(*alike)], tool_args_match_mode="subset")) is True


# What cannot be read


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(7, "Case 1: an object is needed, not a number.", id="number"),
        pytest.param({}, "Case 1, id: text is needed, not null.", id="no-id"),
        pytest.param({"id": ""}, "Case 1 (“”), id: text is needed, not empty text.", id="empty-id"),
        pytest.param(
            {"id": "x" * 100},
            f"Case 1 (“{'x' * 79}…”), trajectory_match_mode: one of strict, unordered, subset,"
            " superset is needed, not null.",
            id="no-mode",
        ),
        pytest.param(
            case([], [], trajectory_match_mode="fuzzy\u202e"),
            "Case 1 (“c1”), trajectory_match_mode: one of strict, unordered, subset, superset is"
            " needed, not “fuzzy[U+202E]”.",
            id="other-mode",
        ),
        pytest.param(
            case([], [], tool_args_match_mode=["exact"]),
            "Case 1 (“c1”), tool_args_match_mode: one of exact, ignore, subset, superset is"
            " needed, not a list.",
            id="mode-of-arguments",
        ),
        pytest.param(
            case([], [], tool_args_match_overrides=[]),
            "Case 1 (“c1”), tool_args_match_overrides: an object is needed, not a list.",
            id="overrides",
        ),
        pytest.param(
            case([], [], tool_args_match_overrides={"my tool": "fuzzy"}),
            'Case 1 (“c1”), tool_args_match_overrides["my tool"]: one of exact, ignore, subset,'
            " superset is needed, not “fuzzy”.",
            id="override-mode",
        ),
        pytest.param(
            case([], [], tool_args_match_overrides={"a": ["x", 1]}),
            "Case 1 (“c1”), tool_args_match_overrides.a[1]: text is needed, not a number.",
            id="override-member",
        ),
        pytest.param(
            case([], [], tool_args_match_overrides={"a": {"mode": "exact"}}),
            "Case 1 (“c1”), tool_args_match_overrides.a: a mode, a list of paths or"
            ' {"callable": …} is needed, not an object.',
            id="override-object",
        ),
        pytest.param(
            case([], [], expected_score=1),
            "Case 1 (“c1”), expected_score: true or false is needed, not a number.",
            id="expected",
        ),
        pytest.param(
            case([], {"messages": []}),  # type: ignore[arg-type]
            "Case 1 (“c1”), reference_outputs: a list is needed, not an object.",
            id="messages",
        ),
        pytest.param(
            case(["hello"], []),  # type: ignore[list-item]
            "Case 1 (“c1”), outputs[0]: an object is needed, not text.",
            id="message",
        ),
        pytest.param(
            case([{"role": "user"}, {"content": ""}], []),
            "Case 1 (“c1”), outputs[1].role: text is needed, not null.",
            id="role",
        ),
        pytest.param(
            case([{"role": "assistant", "tool_calls": "a()"}], []),
            "Case 1 (“c1”), outputs[0].tool_calls: a list is needed, not text.",
            id="calls",
        ),
        pytest.param(
            case([message(call("a", {})), message(call("a", {}), None)], []),  # type: ignore[arg-type]
            "Case 1 (“c1”), outputs[1].tool_calls[1]: an object is needed, not null.",
            id="call",
        ),
        pytest.param(
            case([message({"name": "a", "args": {}})], []),
            "Case 1 (“c1”), outputs[0].tool_calls[0].function: an object is needed, not null.",
            id="function",
        ),
        pytest.param(
            case([message({"function": {"arguments": "{}"}})], []),
            "Case 1 (“c1”), outputs[0].tool_calls[0].function.name: text is needed, not null.",
            id="name",
        ),
    ],
)  # fmt: skip
def test_case_that_cannot_be_read_is_named_with_its_field(raw: Any, expected: str) -> None:
    assert sentence(raw) == expected


def test_read_cases_names_each_case_that_cannot_be_read_and_reads_the_others() -> None:
    good = case([], [])
    cases, findings = read_cases(json.dumps([good, 1, good | {"id": "c2"}, good]).encode())
    assert [each.case_id for each in cases] == ["c1", "c2"]
    assert [(each.code, each.place, each.sentence) for each in findings] == [
        ("not-an-object", "[1]", "Case 2: an object is needed, not a number."),
        ("duplicate-id", "[3].id", "Case 4 (“c1”), id: an earlier case has the same id."),
    ]


@pytest.mark.parametrize(
    ("data", "code", "sentence"),
    [
        pytest.param(
            b"{}", "not-a-list", "A file of cases is a list of objects, not an object.", id="object"
        ),
        pytest.param(
            b'[{"id": "c1", "outputs": [{"role": "user", "role": "tool"}]}]',
            "duplicate-key",
            'Case 1: Duplicate key "role" at [0].outputs[0].',
            id="duplicate-key",
        ),
        pytest.param(
            b'[{"id": ' + b"[" * 100,
            "too-deep",
            f"Case 1: Nested too deeply (max 64) at [0].id{'[0]' * 18}…{'[0]' * 20}.",
            id="deep",
        ),
        pytest.param(
            b"\xff", "not-utf8", "The text is not UTF-8: byte 1 cannot be read.", id="bytes"
        ),
    ],
)
def test_read_cases_of_a_file_that_is_none(data: bytes, code: str, sentence: str) -> None:
    cases, findings = read_cases(data)
    assert (cases, [(each.code, each.sentence) for each in findings]) == ((), [(code, sentence)])
