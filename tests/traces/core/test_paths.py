from __future__ import annotations

import json
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces.core.strategies import rule_sets, trajectories
from traces.core import paths
from traces.core.paths import (
    MESSAGE_LABEL,
    CallTexts,
    PathKeys,
    PathLevel,
    call_texts,
    differ_only_within_messages,
    keys_of_lines,
    path_keys,
    step_labels,
)
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, RuleSet
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    ToolKind,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.values import Json

RULES = RuleSet(
    (ArgumentRule("calculate", "expression", Arithmetic(), "spellings", "ada"),),
    (
        ("get", ToolKind.READ),
        ("list", ToolKind.READ),
        ("calculate", ToolKind.READ),
        ("send", ToolKind.HANDOFF),
    ),
)
MSG = TrajectoryMessage(9)
KEY_FIELDS = (
    "tool_set",
    "effects",
    "reads_any_order",
    "reads_any_order_msg",
    "sequence",
    "sequence_msg",
    "equivalent",
    "equivalent_msg",
    "exact",
    "exact_msg",
)
CHAIN = (
    PathLevel.TOOL_SET,
    PathLevel.READS_ANY_ORDER,
    PathLevel.SEQUENCE,
    PathLevel.EQUIVALENT,
    PathLevel.EXACT,
)


def call(name: str, arguments: Json = None, step: int = 1, **fields: Any) -> TrajectoryCall:
    made = TrajectoryCall(
        name,
        {} if arguments is None else arguments,
        ArgumentsForm.JSON,
        CallOutcome.COMMITTED,
        step,
    )
    return replace(made, **fields)


def same_at(left: Trajectory, right: Trajectory, *, messages: bool = True) -> set[PathLevel]:
    ours, theirs = path_keys(left, RULES), path_keys(right, RULES)
    return {
        level
        for level in PathLevel
        if ours.key(level, messages=messages) == theirs.key(level, messages=messages)
    }


ALL = set(PathLevel)
T, F, R, S, Q, X = PathLevel


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ((), (), ALL),
        ((call("put", {"a": 1}),), (call("put", {"a": 1.0}),), ALL),
        ((call("put", {"a": 1}),), (call("put", {"a": True}),), ALL - {F, Q, X}),
        ((call("put", {"a": None}),), (call("put"),), ALL - {F, Q, X}),
        ((call("put", {"a": 1}),), (call("put", {"a": "1"}),), ALL - {F, Q, X}),
        (
            (call("calculate", {"expression": "600*2"}),),
            (call("calculate", {"expression": "1200"}),),
            ALL - {X},
        ),
        ((call("get"), call("put")), (call("put"), call("get")), {T, F}),
        ((call("get"), call("list")), (call("list"), call("get")), {T, F, R}),
        ((call("get"), call("get")), (call("get"),), {T, F}),
        (
            (call("get"), call("send"), call("list")),
            (call("list"), call("send"), call("get")),
            {T, F},
        ),
        ((call("get", {"a": 1}), call("put")), (call("put"),), {F}),
        ((call("put"), call("put", {"b": 1})), (call("put", {"b": 1}), call("put")), {T, R, S}),
        ((call("unset"),), (call("other"),), set()),
        ((call("send", {"to": "a"}),), (call("send", {"to": "b"}),), {T, F, R, S}),
        (
            (call("put", outcome=CallOutcome.REJECTED), call("put")),
            (call("put"),),
            {T, F},
        ),
        ((call("put"),), (call("put", outcome=CallOutcome.UNKNOWN),), ALL - {F}),
        ((call("a b"),), (call("a"), call("b")), set()),
        ((call('x"\n"y'),), (call("x"), call("y")), set()),
        ((call("MSG"),), (MSG,), set()),
    ],
)
def test_levels_at_which_two_trajectories_are_the_same(
    left: Trajectory, right: Trajectory, same: set[PathLevel]
) -> None:
    assert same_at(left, right) == same
    assert same_at(right, left) == same


def test_messages_are_steps_whose_wording_does_not_count() -> None:
    left, right = (call("get"), TrajectoryMessage(2)), (TrajectoryMessage(7), call("get"))
    assert same_at(left, right) == {T, F}
    assert same_at(left, (call("get"), TrajectoryMessage(5))) == ALL
    assert same_at(left, right, messages=False) == ALL
    assert same_at(left, (call("get"),)) == {T, F}
    assert same_at(left, (call("get"),), messages=False) == ALL


def test_a_message_between_reads_keeps_its_place_and_does_not_part_them() -> None:
    left, right = (call("list"), MSG, call("get")), (call("get"), MSG, call("list"))
    assert same_at(left, right) == {T, F, R}
    assert R not in same_at(left, (call("get"), call("list"), MSG))
    assert R in same_at(left, (call("get"), call("list"), MSG), messages=False)


def test_argument_text_that_is_not_json_equals_only_itself() -> None:
    cut = call("put", '{"a":', form=ArgumentsForm.INVALID)
    looks_empty = call("put", "{}", form=ArgumentsForm.INVALID)
    assert same_at((cut,), (cut,)) == ALL
    assert same_at((cut,), (call("put"),)) == {T, R, S}
    assert same_at((cut,), (call("put", '{"a":'),)) == {T, R, S}
    assert same_at((looks_empty,), (call("put"),)) == {T, R, S}


def test_no_rule_applies_to_argument_text_that_is_not_json() -> None:
    rules = RuleSet((ArgumentRule("put", "", Ignore(), "why", "ada"),))
    left, right = (
        path_keys((call("put", text, form=ArgumentsForm.INVALID),), rules) for text in ("{", "[")
    )
    assert left.equivalent != right.equivalent
    assert (
        path_keys((call("put", [1]),), rules).equivalent
        == path_keys((call("put", {"a": 2}),), rules).equivalent
    )


def test_arguments_of_each_json_type_are_different_trajectories() -> None:
    values: list[Json] = [[1, 2], None, "L-204", 7, True, {}]
    keys = {
        path_keys((TrajectoryCall("t", each, ArgumentsForm.JSON, CallOutcome.COMMITTED, 1),), RULES)
        for each in values
    }
    assert len({key.exact for key in keys}) == len({key.equivalent for key in keys}) == len(values)


def test_a_call_without_its_arguments_makes_a_path_of_its_own() -> None:
    trajectory = (call("get"), call("put", form=ArgumentsForm.ABSENT))
    first = path_keys(trajectory, RULES, own=b"trial 1")
    second = path_keys(trajectory, RULES, own=b"trial 2")
    assert not first.comparable
    assert first == path_keys(trajectory, RULES, own=b"trial 1")
    assert (
        {
            level
            for level in PathLevel
            if first.key(level, messages=True) == second.key(level, messages=True)
        }
        == {level for level in PathLevel if not level.compares_arguments}
        == {T, R, S}
    )
    recorded = path_keys((call("get"), call("put")), RULES, own=b"trial 3")
    assert recorded == path_keys((call("get"), call("put")), RULES)
    assert recorded.comparable


def test_path_keys_count_steps_and_calls() -> None:
    keys = path_keys((call("get"), MSG, call("put"), MSG), RULES)
    assert (keys.n_steps, keys.n_tool_calls, keys.comparable) == (4, 2, True)
    assert all(
        isinstance(keys.key(level, messages=messages), bytes)
        and len(keys.key(level, messages=messages)) == 16
        for level in PathLevel
        for messages in (True, False)
    )


def test_path_keys_count_what_was_committed() -> None:
    refused = {"outcome": CallOutcome.REJECTED}
    tried = (call("put"), call("put", **refused), call("send"), call("send", **refused))
    keys = path_keys((call("get"), MSG, *tried, call("put")), RULES)
    assert (keys.n_writes, keys.n_handoffs) == (2, 1)


def test_path_keys_never_change() -> None:
    """Stored keys depend on these bytes: another value needs another PATHS_VERSION."""
    trajectory = (
        call("get", {"id": 1}),
        MSG,
        call("calculate", {"expression": "1+1"}),
        call("put"),
    )
    keys = path_keys(trajectory, RULES)
    assert paths.PATHS_VERSION == 1
    assert keys == PINNED


def test_a_task_s_rules_count_for_that_task_only() -> None:
    rules = RuleSet((ArgumentRule("put", "note", Ignore(), "why", "ada", "7"),))
    left, right = (call("put", {"note": "a"}),), (call("put", {"note": "b"}),)
    for task_id, merged in (("7", True), ("8", False), (None, False)):
        ours, theirs = path_keys(left, rules, task_id), path_keys(right, rules, task_id)
        assert (ours.equivalent == theirs.equivalent) is merged
    assert call_texts(rules, "8") is call_texts(rules)
    assert call_texts(rules, "7") is not call_texts(rules)


def test_what_is_remembered_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "_MOST_REMEMBERED", 3)
    texts = CallTexts(RULES)
    for n in range(10):
        calls = (call("calculate", {"expression": f"{n}+0"}),)
        assert path_keys(calls, RULES, texts=texts) == path_keys(calls, RULES)
    assert 1 <= len(texts._remembered) <= 3
    assert 1 <= len(texts._lines) <= 3
    path_keys((call("calculate", {"expression": "x" * 5000}),), RULES, texts=texts)
    assert all(len(text) < 5000 for _, text in [*texts._remembered, *texts._lines])


def test_the_normal_form_of_arguments_is_worked_out_once() -> None:
    texts, made = CallTexts(RULES), call("calculate", {"expression": "1+1"})
    first, second = (texts.normal_text(made, texts.exact_text(made)) for _ in range(2))
    assert first is second
    assert first == '{"expression":["arithmetic","2"]}'


def test_uses_names_the_rules_of_a_call() -> None:
    texts = CallTexts(RULES)
    (use,) = texts.uses(call("calculate", {"expression": "1+1"}))
    assert (use.rule, use.place, use.normal) == (
        RULES.rules[0],
        "/expression",
        ["arithmetic", "2"],
    )
    assert texts.uses(call("put")) == ()
    assert texts.uses(call("calculate", "{", form=ArgumentsForm.INVALID)) == ()


def test_order_inside_one_message_is_named() -> None:
    left = (call("put", {"l": 1}, 2), call("put", {"l": 2}, 2), TrajectoryMessage(5))
    right = (call("put", {"l": 2}, 3), call("put", {"l": 1}, 3), TrajectoryMessage(6))
    assert differ_only_within_messages(left, right)
    assert not differ_only_within_messages(left, left)
    assert same_at(left, right) == {T, R, S}


def test_order_across_messages_is_not_order_inside_one() -> None:
    left = (call("put", {"l": 1}, 2), call("put", {"l": 2}, 3))
    right = (call("put", {"l": 2}, 2), call("put", {"l": 1}, 3))
    assert not differ_only_within_messages(left, right)
    assert not differ_only_within_messages(left, (*right, MSG))
    both = (call("put", {"l": 1}, 2), call("put", {"l": 2}, 2))
    swapped = (call("put", {"l": 2}, 2), call("put", {"l": 1}, 2), MSG)
    assert not differ_only_within_messages(both, swapped)
    assert differ_only_within_messages(both, swapped, messages=False)


def test_step_labels_are_names_and_a_mark_for_messages() -> None:
    trajectory = (call("get"), MSG, call("put"))
    assert step_labels(trajectory, messages=True) == ("get", MESSAGE_LABEL, "put")
    assert step_labels(trajectory, messages=False) == ("get", "put")


@settings(max_examples=300)
@given(st.lists(trajectories(), min_size=2, max_size=8), rule_sets, st.sampled_from([None, "7"]))
def test_each_level_refines_the_one_before_it(
    trials: list[Trajectory], rules: RuleSet, task_id: str | None
) -> None:
    # Trials of equal names in other messages, so that finer levels have something to part.
    trials += [
        tuple(replace(step, step=number) for number, step in enumerate(trial)) for trial in trials
    ]
    keys = [path_keys(trial, rules, task_id) for trial in trials]
    for messages in (True, False):
        for coarse, fine in zip(CHAIN, CHAIN[1:], strict=False):
            parents = {
                (key.key(fine, messages=messages), key.key(coarse, messages=messages))
                for key in keys
            }
            assert len(parents) == len({child for child, _ in parents})


def by_the_book(trial: Trajectory, rules: RuleSet, task_id: str | None, own: bytes) -> list[bytes]:
    """The keys, one line a step, as the docstring of the module says them."""
    texts, lines = CallTexts(rules, task_id), list[tuple[str, str, str, ToolKind | None, bool]]()
    salt: tuple[str, ...] = ()
    for step in trial:
        if isinstance(step, TrajectoryMessage):
            lines.append(("MSG", "MSG", "MSG", None, False))
            continue
        name, exact = json.dumps(step.name), texts.exact_text(step)
        kind, committed = texts.kind_of(step.name), step.outcome is CallOutcome.COMMITTED
        if step.form is ArgumentsForm.ABSENT:
            salt = ("?" + own.hex(),)
        normal = texts.normal_text(step, exact)
        lines.append((name, f"{name}\t{exact}", f"{name}\t{normal}", kind, committed))
    reads = list(lines)
    stretch: list[int] = []
    for at, line in enumerate([*lines, ("", "", "", ToolKind.WRITE, False)]):
        if line[3] is ToolKind.READ:
            stretch.append(at)
        elif line[3] is not None:
            for to, of in zip(stretch, sorted(stretch, key=lambda n: lines[n][0]), strict=True):
                reads[to] = lines[of]
            stretch = []
    writes = [line[2] for line in lines if line[3] is ToolKind.WRITE and line[4]]
    keys = [sorted({line[0] for line in lines if line[3]}), [*writes, *salt]]
    for rows, column, end in ((reads, 0, ()), (lines, 0, ()), (lines, 2, salt), (lines, 1, salt)):
        keys.append([*(row[column] for row in rows if row[3]), *end])
        keys.append([*(row[column] for row in rows), *end])
    return [blake2b("\n".join(key).encode(), digest_size=16).digest() for key in keys]


@settings(max_examples=300)
@given(trajectories(absent=True), rule_sets, st.sampled_from([None, "7"]), st.binary(max_size=3))
def test_keys_are_those_of_the_book(
    trial: Trajectory, rules: RuleSet, task_id: str | None, own: bytes
) -> None:
    keys = path_keys(trial, rules, task_id, own=own)
    assert [getattr(keys, name) for name in KEY_FIELDS] == by_the_book(trial, rules, task_id, own)


@settings(max_examples=300)
@given(trajectories(absent=True), rule_sets, st.sampled_from([None, "7"]))
def test_stored_texts_give_the_same_keys(
    trial: Trajectory, rules: RuleSet, task_id: str | None
) -> None:
    texts = CallTexts(rules, task_id)
    lines = [
        texts.lines_of_text(step.name, step.form, step.arguments_text)
        if isinstance(step, TrajectoryCall)
        else None
        for step in trial
    ]
    committed = [getattr(step, "outcome", None) is CallOutcome.COMMITTED for step in trial]
    assert keys_of_lines(lines, committed, own=b"1") == path_keys(trial, rules, task_id, own=b"1")


@given(trajectories(absent=True), rule_sets)
def test_keys_with_messages_refine_those_without(trial: Trajectory, rules: RuleSet) -> None:
    calls_only = tuple(step for step in trial if isinstance(step, TrajectoryCall))
    with_all, without = path_keys(trial, rules, own=b"1"), path_keys(calls_only, rules, own=b"1")
    for level in PathLevel:
        assert with_all.key(level, messages=False) == without.key(level, messages=True)


@given(trajectories(), st.randoms(use_true_random=False))
def test_reads_of_one_stretch_may_come_in_any_order(trial: Trajectory, random: Any) -> None:
    reads = [at for at, step in enumerate(trial) if step_kind(step) is ToolKind.READ]
    shuffled = list(trial)
    for left, right in zip(reads, reads[1:], strict=False):
        between = trial[left + 1 : right]
        if all(isinstance(step, TrajectoryMessage) for step in between) and random.random() < 0.5:
            shuffled[left], shuffled[right] = shuffled[right], shuffled[left]
    assert R in same_at(trial, tuple(shuffled))


def step_kind(step: TrajectoryCall | TrajectoryMessage) -> ToolKind | None:
    return RULES.kind_of(step.name) if isinstance(step, TrajectoryCall) else None


PINNED = PathKeys(
    tool_set=bytes.fromhex("1a98d6b562e397c47791c3b6c979507a"),
    effects=bytes.fromhex("6fd6db098ffa877091e9c122119d9640"),
    reads_any_order=bytes.fromhex("1a98d6b562e397c47791c3b6c979507a"),
    reads_any_order_msg=bytes.fromhex("b0ff7cde051b18943e846be2f87836c6"),
    sequence=bytes.fromhex("de2013d2e8f2e6e3ffe5d9f2a71e2ff4"),
    sequence_msg=bytes.fromhex("f509fd713e6bd44db561a08543b06464"),
    equivalent=bytes.fromhex("52355df98d9e348c90eaccb3ea91943b"),
    equivalent_msg=bytes.fromhex("3be93ae57d967bc17c41cd9e048644a4"),
    exact=bytes.fromhex("c5aa787185157f0cf86963dcf51820df"),
    exact_msg=bytes.fromhex("e056d12ad26cb13de2add555b2d05ad9"),
    comparable=True,
    n_steps=4,
    n_tool_calls=3,
    n_writes=1,
    n_handoffs=0,
)
