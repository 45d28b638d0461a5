from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.strategies import argument_rules, trajectories
from traces.core import rule_search
from traces.core.canonical import canonical_text, value_of_text
from traces.core.paths import CallTexts, path_keys
from traces.core.rule_documents import parse_rule, rule_data
from traces.core.rule_search import Counts, Findings, PathCall, SeenCall, argument_of
from traces.core.rule_suggestions import Suggestion
from traces.core.rules import (
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
    path_tokens,
)
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    ToolKind,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.core.values import Json

READS = (("use", ToolKind.READ),)


def call(arguments: Json, tool: str = "use") -> TrajectoryCall:
    return TrajectoryCall(tool, arguments, ArgumentsForm.JSON, CallOutcome.COMMITTED, 1)


class Stored:
    """Passing trajectories of tasks, as they would be read from a database."""

    def __init__(self, tasks: Mapping[str, Sequence[Trajectory]], rules: RuleSet) -> None:
        self.rules = rules
        self.tasks = tasks
        self.ids: dict[PathCall, int] = {}

    def id_of(self, step: TrajectoryCall) -> int:
        one = PathCall(step.name, step.form, step.arguments_text)
        return self.ids.setdefault(one, len(self.ids) + 1)

    def suggestions(self) -> tuple[Suggestion, ...]:
        findings = Findings(self.rules)
        for task_id in self.tasks:
            findings.look_at_calls(self._seen(task_id))
            for rows in self._several(task_id):
                findings.look_at_paths(rows, *self._calls(task_id))
        candidates, self.is_cut = findings.candidates()
        counts = Counts(candidates)
        for task_id in self.tasks:
            for rows in self._several(task_id):
                counts.look(task_id, rows, *self._calls(task_id))
        return counts.suggestions(findings)

    def n_paths(self, rules: RuleSet, *, messages: bool = False) -> int:
        """Distinct passing paths at the equivalent level, by their keys."""
        return sum(
            len(
                {
                    keys.equivalent_msg if messages else keys.equivalent
                    for pk, path in enumerate(paths)
                    for keys in (path_keys(path, rules, task_id, own=b"%d" % pk),)
                }
            )
            for task_id, paths in self.tasks.items()
        )

    def _seen(self, task_id: str) -> list[SeenCall]:
        seen: dict[PathCall, list[int]] = {}
        for pk, path in enumerate(self.tasks[task_id]):
            for step in path:
                if isinstance(step, TrajectoryCall):
                    self.id_of(step)
                    one = PathCall(step.name, step.form, step.arguments_text)
                    seen.setdefault(one, []).append(pk)
        return [SeenCall(one, min(pks), max(pks)) for one, pks in seen.items()]

    def _calls(self, task_id: str) -> tuple[dict[int, PathCall], dict[int, str]]:
        texts = CallTexts(self.rules, task_id)
        calls = {pk: one for one, pk in self.ids.items()}
        return calls, {
            pk: texts.lines_of_text(one.tool, one.form, one.text).normal
            for pk, one in calls.items()
        }

    def _several(self, task_id: str) -> list[list[tuple[int, ...]]]:
        sequences: dict[bytes, dict[bytes, tuple[int, ...]]] = {}
        several: dict[bytes, set[bytes]] = {}
        for path in self.tasks[task_id]:
            keys = path_keys(path, self.rules, task_id)
            if keys.comparable:
                row = tuple(
                    self.id_of(step) if isinstance(step, TrajectoryCall) else 0 for step in path
                )
                sequences.setdefault(keys.sequence, {}).setdefault(keys.equivalent_msg, row)
                several.setdefault(keys.sequence, set()).add(keys.equivalent)
        return [list(rows.values()) for key, rows in sequences.items() if len(several[key]) > 1]


def suggested(
    *given: Any, kinds: tuple[tuple[str, ToolKind], ...] = READS, rules: Sequence[Any] = ()
) -> list[tuple[str, RuleTerms, int]]:
    """What is suggested where passing trials of a task make one call with some arguments each."""
    stored = Stored({"t": [(call(one),) for one in given]}, RuleSet(tuple(rules), kinds))
    return [(one.rule.argument, one.rule.terms, one.n_merged) for one in stored.suggestions()]


INSTANT = Time(SameTime.INSTANT)


@pytest.mark.parametrize(
    ("values", "terms"),
    [
        pytest.param(["2 * 3", "6", "3 + 3"], Arithmetic(), id="sums"),
        pytest.param([6, "6"], RoundTo(Decimal("0.01")), id="a number and its text"),
        pytest.param(["1.2500", "1.25"], RoundTo(Decimal("0.0001")), id="decimals"),
        pytest.param(["1.0000000000001", "1.00000000000010"], Arithmetic(), id="many decimals"),
        pytest.param([1.5, "1.50"], RoundTo(Decimal("0.01")), id="a float and its text"),
        pytest.param(["New  York", "new york"], PlainText(), id="spellings"),
        pytest.param(["2024-05-20T10:00Z", "2024-05-20 12:00+02:00"], INSTANT, id="instants"),
        pytest.param([["b", "a"], ["a", "b"]], Unordered(), id="orders"),
        pytest.param([{"x": [1, 2]}, {"x": [2, 1]}], Unordered(), id="orders below"),
        pytest.param(
            ["The customer wants a refund.", "A refund is what the customer asks for."],
            Ignore(),
            id="free wording",
        ),
    ],
)
def test_terms_that_merge_paths(values: list[Json], terms: RuleTerms) -> None:
    argument = "/v/x" if isinstance(values[0], dict) else "v"

    assert suggested(*[{"v": value} for value in values]) == [(argument, terms, len(values) - 1)]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["A-17", "B-21"], id="identifiers"),
        pytest.param(["ab17", "AB17"], id="identifiers in two cases"),
        pytest.param(["007", "7"], id="leading zeros"),
        pytest.param(["2024-05-20", "2024-06-19"], id="dates of one value as sums"),
        pytest.param(["555-12-34", "555-13-33"], id="telephone numbers"),
        pytest.param([1, 2], id="amounts"),
        pytest.param([True, 1], id="true and one"),
        pytest.param(
            ["Please cancel the order A-17 for me", "Please cancel the order B-21 for me"],
            id="words that differ by an identifier",
        ),
        pytest.param(
            ["We fly from JFK over to ORD today", "We fly from SFO over to LAX today"],
            id="words that differ by capitals",
        ),
        pytest.param(["a b c", "d e f"], id="too few words"),
        pytest.param(["SELECT name FROM users LIMIT ten", "SELECT id FROM orders"], id="a query"),
        pytest.param(["{ the quick brown fox }", "{ a lazy dog sleeps }"], id="code"),
        pytest.param(["The customer wants a refund.", None], id="wording or null"),
        pytest.param([[], [1]], id="lists of different length"),
    ],
)
def test_values_for_which_nothing_is_suggested(values: list[Json]) -> None:
    assert suggested(*[{"v": value} for value in values]) == []


def test_wording_is_free_where_a_tool_does_not_write() -> None:
    brief = [{"v": "The customer wants a refund"}, {"v": "Someone asks for money back"}]
    long = [{"v": f"{one['v']} and is waiting for it since yesterday"} for one in brief]

    def kinds(kind: ToolKind) -> tuple[tuple[str, ToolKind], ...]:
        return (("use", kind),)

    assert suggested(*brief, kinds=kinds(ToolKind.HANDOFF)) == [("v", Ignore(), 1)]
    assert suggested(*long, kinds=kinds(ToolKind.WRITE)) == []
    assert suggested(*long, kinds=()) == [("v", Ignore(), 1)]
    assert suggested(*brief, kinds=()) == []


def test_a_value_that_says_nothing_is_the_default() -> None:
    assert suggested({"v": None}, {}) == [("v", Default("null"), 1)]
    assert suggested({"v": "economy"}, {}) == []
    assert suggested({"v": [{}, {"a": 0}]}, {"v": [{}, {}]}) == [("/v/*/a", Default("0"), 1)]
    assert suggested({"v": [0]}, {"v": []}) == []
    assert suggested({"v": None, "w": 1}, {"w": 2}) == []


def test_of_several_defaults_the_one_that_merges_is_suggested() -> None:
    found = suggested({"w": 1, "v": 0}, {"w": 1}, {"w": 2, "v": 0}, {"w": 2}, {"w": 1, "v": ""})

    assert found == [("v", Default("0"), 2)]


def test_the_smallest_rule_that_merges_most_is_suggested() -> None:
    assert suggested({"v": "1 + 1"}, {"v": "1  + 1"}) == [("v", PlainText(), 1)]
    assert suggested({"v": "1 + 1"}, {"v": "1  + 1"}, {"v": "2"}) == [("v", Arithmetic(), 2)]
    assert suggested({"v": "2.0"}, {"v": "2"}) == [("v", RoundTo(Decimal("0.01")), 1)]


def test_a_grid_merges_no_other_numbers_that_were_seen() -> None:
    def step(*others: Json) -> RuleTerms:
        tasks = {
            "1": [(call({"v": "2.0"}),), (call({"v": "2"}),)],
            "2": [(call({"v": other}),) for other in others],
        }
        (found,) = Stored(tasks, RuleSet()).suggestions()
        return found.rule.terms

    assert step() == RoundTo(Decimal("0.01"))
    assert step("NaN", "1", [1.25], None) == RoundTo(Decimal("0.01"))
    assert step(1.2345) == RoundTo(Decimal("0.0001"))
    assert step("1e-5") == RoundTo(Decimal("0.00001"))
    assert step("1e-13") == Arithmetic()


def test_a_few_examples_of_forms_are_kept() -> None:
    tasks = {
        "t": [
            tuple(call({"v": text}) for text in path)
            for path in (("1", "2", "3", "4"), ("1+0", "2+0", "3+0", "4+0", "9"))
        ]
    }

    (found,) = Stored(tasks, RuleSet()).suggestions()

    assert (found.n_merged, len(found.examples)) == (0, 3)


def test_an_argument_that_has_a_rule_gets_no_other() -> None:
    paths = [{"v": {"x": "a b"}}, {"v": {"x": "A B"}}]

    def rule(argument: str, terms: RuleTerms, task: str | None = None) -> ArgumentRule:
        return ArgumentRule("use", argument, terms, "r", "a", task)

    assert suggested(*paths) == [("/v/x", PlainText(), 1)]
    assert suggested(*paths, rules=[rule("/v/x", Unordered())]) == []
    assert suggested(*paths, rules=[rule("/v/*", Unordered())]) == []
    assert suggested(*paths, rules=[rule("v", Ignore())]) == []
    assert suggested(*paths, rules=[rule("v", Unordered())]) == [("/v/x", PlainText(), 1)]
    assert suggested(*paths, rules=[rule("w", Ignore())]) == [("/v/x", PlainText(), 1)]
    assert suggested(*paths, rules=[rule("/v/x/y", Ignore())]) == [("/v/x", PlainText(), 1)]
    assert suggested(*paths, rules=[rule("v", Ignore(), "other")]) == [("/v/x", PlainText(), 1)]
    assert suggested(*paths, rules=[ArgumentRule("other", "v", Ignore(), "r", "a")]) == [
        ("/v/x", PlainText(), 1)
    ]


def test_forms_of_one_value_in_paths_that_differ_otherwise_are_named_too() -> None:
    tasks: dict[str, list[Trajectory]] = {
        "1": [(call({"v": "725 - 503"}), call({}, "end")), (call({"v": "111 * 2"}),)],
        "2": [(call({"v": "1 + 1"}), call({"v": "2"}))],
    }

    (found,) = Stored(tasks, RuleSet()).suggestions()

    assert found == Suggestion(
        rule=ArgumentRule(
            "use",
            "v",
            Arithmetic(),
            "Two spellings of one sum ask for the same number.",
            "evalsite",
        ),
        n_merged=0,
        n_merged_with_messages=0,
        n_tasks=0,
        examples=("use.v: 2 spellings, all 222",),
        values=(('"111 * 2"', '"725 - 503"'),),
        sentence=(
            "use.v: expressions with the same value are equal. No path merges by it yet; "
            "passing trials of 1 task wrote the same in several ways."
        ),
    )


def test_suggestions_say_what_they_would_merge() -> None:
    note = TrajectoryMessage(1)
    spelled = [(call({"v": text}),) for text in ("1 + 1", "2", "4 / 2")]
    tasks: dict[str, list[Trajectory]] = {
        "1": [*spelled, (note, *spelled[0])],
        "2": [spelled[0], spelled[2]],
        "3": spelled[:1],
    }

    (found,) = Stored(tasks, RuleSet()).suggestions()

    assert (found.n_merged, found.n_merged_with_messages, found.n_tasks) == (3, 3, 2)
    assert found.examples == ("use.v: 3 spellings, all 2", "use.v: 2 spellings, all 2")
    assert found.values == (('"1 + 1"', '"2"', '"4 / 2"'), ('"1 + 1"', '"4 / 2"'))
    assert found.sentence == (
        "use.v: expressions with the same value are equal. "
        "3 passing paths fewer at the equivalent level, in 2 tasks."
    )


def test_paths_that_differ_in_two_arguments_merge_by_neither_rule() -> None:
    found = suggested({"v": "1 + 1", "w": "a b"}, {"v": "2", "w": "A b"})

    assert found == [("v", Arithmetic(), 0), ("w", PlainText(), 0)]


def test_a_task_looked_at_in_parts_is_one_task() -> None:
    spelled = [call({"v": text}) for text in ("1 + 1", "2")]
    end = call({}, "end")
    stored = Stored(
        {"t": [*[(one,) for one in spelled], *[(one, end) for one in spelled]]}, RuleSet()
    )

    (found,) = stored.suggestions()

    assert (found.n_merged, found.n_tasks) == (2, 1)
    assert found.examples == ("use.v: 2 spellings, all 2",)


def test_only_some_places_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_search, "MOST_CANDIDATES", 1)
    stored = Stored(
        {"t": [(call({"v": "a", "w": "b"}),), (call({"v": "A", "w": "B"}),)]}, RuleSet()
    )

    assert [one.rule.argument for one in stored.suggestions()] == ["v"]
    assert stored.is_cut


def test_what_cannot_be_compared_or_is_not_json_suggests_nothing() -> None:
    absent = TrajectoryCall("use", None, ArgumentsForm.ABSENT, CallOutcome.COMMITTED, 1)
    broken = [
        TrajectoryCall("use", text, ArgumentsForm.INVALID, CallOutcome.COMMITTED, 1)
        for text in ("{1 + 1", "{2")
    ]
    tasks = {"t": [(absent,), *[(one,) for one in broken], (call({"v": 1}),)]}

    assert Stored(tasks, RuleSet()).suggestions() == ()


def test_calls_of_other_forms_beside_a_merge() -> None:
    broken = TrajectoryCall("use", "{", ArgumentsForm.INVALID, CallOutcome.COMMITTED, 1)
    tasks = {"t": [(call({"v": "1 + 1"}),), (broken,), (call({"v": "2"}),)]}

    (found,) = Stored(tasks, RuleSet()).suggestions()

    assert (found.n_merged, found.examples) == (1, ("use.v: 2 spellings, all 2",))


def deep(depth: int) -> Json:
    value: Json = "a"
    for _ in range(depth):
        value = {"d": value}
    return value


def other_case(value: Json) -> Json:
    return value_of_text(canonical_text(value).replace('"a"', '"A"'))


@pytest.mark.parametrize(
    ("arguments", "n_found"),
    [
        pytest.param(deep(6), 1, id="deep"),
        pytest.param(deep(7), 0, id="too deep"),
        pytest.param({"x" * 200: "a"}, 1, id="a long name"),
        pytest.param({"x" * 201: "a"}, 0, id="too long a name"),
        pytest.param({"a\0b": "a"}, 0, id="a NUL in a name"),
        pytest.param({"\ud800": "a"}, 0, id="half a letter in a name"),
        pytest.param({"": "a"}, 0, id="no name"),
        pytest.param({f"n{at:03}": at for at in range(299)} | {"z": "a"}, 1, id="300 places"),
        pytest.param({f"n{at:03}": at for at in range(300)} | {"z": "a"}, 0, id="too many places"),
        pytest.param({"v": ["a", "b"]}, 1, id="elements of a list"),
        pytest.param({"/v": "a"}, 1, id="a name like a pointer"),
        pytest.param({"*": {"~": "a"}}, 1, id="names like wildcards"),
    ],
)
def test_places_that_a_rule_could_name(arguments: Json, n_found: int) -> None:
    found = suggested(arguments, other_case(arguments))

    assert [terms for _, terms, _ in found] == [PlainText()] * n_found


def test_values_that_are_too_long_are_not_looked_at() -> None:
    assert suggested({"v": "a" * 5_000}, {"v": "A" + "a" * 4_999}) == []


def test_calls_of_one_trial_alone_are_no_difference() -> None:
    tasks = {"t": [(call({"v": "1 + 1"}), call({"v": "2"}))]}

    assert Stored(tasks, RuleSet()).suggestions() == ()


@given(
    st.lists(st.none() | st.sampled_from(["a", "*", "~", "/", "~1", "~2", "a/b", "/x"]), min_size=1)
)
def test_argument_of_tokens_is_read_back(tokens: list[str | None]) -> None:
    assert path_tokens(argument_of(tuple(tokens))) == tuple(tokens)


system_rules = st.lists(
    argument_rules(), max_size=3, unique_by=lambda rule: (rule.task_id, rule.tool, rule.tokens)
).map(tuple)


@given(
    st.dictionaries(
        st.sampled_from(["7", "8"]),
        st.lists(trajectories(absent=True), max_size=6).map(lambda paths: [*paths, *paths[:1]]),
    ),
    system_rules,
    st.sampled_from([(), (("get", ToolKind.READ), ("send", ToolKind.HANDOFF))]),
)
def test_counts_are_those_of_path_keys(
    tasks: dict[str, list[Trajectory]],
    rules: tuple[ArgumentRule, ...],
    kinds: tuple[tuple[str, ToolKind], ...],
) -> None:
    base = RuleSet(rules, kinds)
    stored = Stored(tasks, base)

    for one in stored.suggestions():
        widened = RuleSet((*rules, one.rule), kinds)
        assert one.n_merged == stored.n_paths(base) - stored.n_paths(widened)
        assert one.n_merged_with_messages == stored.n_paths(base, messages=True) - stored.n_paths(
            widened, messages=True
        )
        assert parse_rule(rule_data(one.rule), "") == one.rule
        assert one.n_merged > 0 or not isinstance(one.rule.terms, Ignore | Default)


calls_alike = st.sampled_from(
    [
        {"a": value, "b": other}
        for value in ("1+1", "2", 2, "x y", "X  y", ["p", "q"], ["q", "p"])
        for other in (1, "1")
    ]
)


@given(st.lists(st.lists(calls_alike, min_size=1, max_size=2), max_size=8))
def test_counts_of_paths_that_often_merge(given_paths: list[list[Json]]) -> None:
    paths = [tuple(call(one) for one in path) for path in given_paths]
    stored = Stored({"t": paths}, RuleSet())

    for one in stored.suggestions():
        widened = RuleSet((one.rule,))
        assert one.n_merged == stored.n_paths(RuleSet()) - stored.n_paths(widened)
        assert len(one.examples) == len(one.values) > 0
