from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tests.traces.core.strategies import rule_sets
from traces.core import rule_changes
from traces.core.records import Finding
from traces.core.rule_changes import (
    RuleChange,
    RuleChangeError,
    RulePlace,
    change_between,
    change_document,
    change_sentences,
    changed,
    parse_change,
    place_of,
)
from traces.core.rules import (
    ArgumentRule,
    Arithmetic,
    Ignore,
    PlainText,
    RejectionSettings,
    RuleSet,
)
from traces.core.trajectory import ToolKind
from traces.core.values import Json

SUM = ArgumentRule("calculate", "expression", Arithmetic(), "one sum", "ada")
SUMMARY = ArgumentRule("hand_over", "summary", Ignore(), "free words", "ada")
IN_TASK_7 = replace(SUM, terms=Ignore(), task_id="7")
BASE = RuleSet(
    (SUM, SUMMARY),
    (("calculate", ToolKind.READ), ("hand_over", ToolKind.HANDOFF)),
    RejectionSettings(use_flag=False, prefixes=("no:",)),
)


def test_a_rule_at_a_new_place_is_added_and_one_at_a_known_place_replaced() -> None:
    text = replace(SUMMARY, terms=PlainText(), author="bo")

    result = changed(BASE, RuleChange(put=(IN_TASK_7, text)))

    assert result == replace(BASE, rules=(SUM, text, IN_TASK_7))


def test_two_spellings_of_an_argument_are_one_place() -> None:
    by_pointer = replace(SUM, argument="/expression", terms=PlainText())

    assert changed(BASE, RuleChange(put=(by_pointer,))).rules == (by_pointer, SUMMARY)
    assert changed(BASE, RuleChange(drop=(place_of(by_pointer),))).rules == (SUMMARY,)


def test_names_in_another_unicode_form_are_one_place() -> None:
    base = RuleSet((replace(SUM, tool="café", task_id="é"),), (("café", ToolKind.READ),))
    decomposed = RulePlace("cafe\u0301", "expression", "e\u0301")

    change = RuleChange(drop=(decomposed,), kinds=(("cafe\u0301", None),))

    assert changed(base, change) == RuleSet()


def test_kinds_are_set_changed_and_taken_away() -> None:
    change = RuleChange(
        kinds=(
            ("book", ToolKind.WRITE),
            ("calculate", None),
            ("hand_over", ToolKind.READ),
            ("unknown", None),
        )
    )

    result = changed(BASE, change)

    kinds = (("book", ToolKind.WRITE), ("hand_over", ToolKind.READ))
    assert result == replace(BASE, tool_kinds=kinds)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(RuleChange(), "This changes nothing: the rules say so already.", id="empty"),
        pytest.param(
            RuleChange(put=(replace(SUM, reason="other words", author="bo"),)),
            "This changes nothing: the rules say so already.",
            id="reason-alone",
        ),
        pytest.param(
            RuleChange(kinds=(("calculate", ToolKind.READ),)),
            "This changes nothing: the rules say so already.",
            id="kind-as-it-is",
        ),
        pytest.param(
            RuleChange(drop=(RulePlace("calculate", "/a/*"),)),
            "There is no rule on calculate.a[*] to drop.",
            id="drop-unknown",
        ),
        pytest.param(
            RuleChange(drop=(RulePlace("calculate", "expression", "7"),)),
            "There is no rule on calculate.expression for task 7 to drop.",
            id="drop-unknown-in-a-task",
        ),
    ],
)
def test_a_change_that_cannot_be_made_says_why(change: RuleChange, sentence: str) -> None:
    with pytest.raises(RuleChangeError) as refused:
        changed(BASE, change)
    assert str(refused.value) == sentence


def test_a_rule_set_stays_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_changes, "MOST_RULES", 2)
    with pytest.raises(RuleChangeError, match="at most 2 rules"):
        changed(BASE, RuleChange(put=(IN_TASK_7,)))
    swapped = changed(BASE, RuleChange(put=(IN_TASK_7,), drop=(place_of(SUM),)))
    assert swapped.rules == (SUMMARY, IN_TASK_7)


@given(old=rule_sets, new=rule_sets)
def test_the_change_between_two_rule_sets_leads_from_one_to_the_other(
    old: RuleSet, new: RuleSet
) -> None:
    change = change_between(old, new)

    if change == RuleChange():
        assert set(old.rules) == set(new.rules)
        assert old.tool_kinds == new.tool_kinds
        return
    try:
        result = changed(old, change)
    except RuleChangeError:
        # Two rules that say the same with other words.
        assert all(rule not in old.rules for rule in change.put)
        return
    assert set(result.rules) == set(new.rules)
    assert result.tool_kinds == new.tool_kinds
    assert result.rejection == old.rejection


@given(old=rule_sets, new=rule_sets)
def test_a_change_comes_back_from_its_document(old: RuleSet, new: RuleSet) -> None:
    change = change_between(old, new)
    assert parse_change(change_document(change)) == (change, ())


RULE_DATA: dict[str, Json] = {
    "tool": "t",
    "argument": "a",
    "kind": "ignore",
    "reason": "why",
    "author": "ada",
    "task": None,
}


@pytest.mark.parametrize(
    ("data", "change", "findings"),
    [
        pytest.param(
            [],
            RuleChange(),
            [Finding("not-an-object", "", "A change is a JSON object.")],
            id="list",
        ),
        pytest.param(
            {"puts": []},
            RuleChange(),
            [Finding("unknown-field", "puts", "A change holds put, drop and kinds.")],
            id="unknown-field",
        ),
        pytest.param(
            {"put": {}, "drop": 1},
            RuleChange(),
            [
                Finding("not-a-list", "put", '"put" is a list of objects.'),
                Finding("not-a-list", "drop", '"drop" is a list of objects.'),
            ],
            id="no-lists",
        ),
        pytest.param(
            {"put": [RULE_DATA, {**RULE_DATA, "tool": ""}]},
            RuleChange(put=(ArgumentRule("t", "a", Ignore(), "why", "ada"),)),
            [Finding("missing-tool", "put[1].tool", 'A rule needs a text "tool".')],
            id="bad-rule",
        ),
        pytest.param(
            {
                "drop": [
                    {"tool": "t", "argument": "a"},
                    {"tool": "t", "argument": "a", "task": 7},
                    {"tool": "t", "argument": "a", "tasks": "7"},
                    {"tool": 1, "argument": "a"},
                    "t.a",
                ]
            },
            RuleChange(drop=(RulePlace("t", "a"),)),
            [
                Finding(
                    "bad-place",
                    f"drop[{index}]",
                    "A rule to drop is named by its tool, argument and task.",
                )
                for index in range(1, 5)
            ],
            id="bad-places",
        ),
        pytest.param(
            {"kinds": ["t"]},
            RuleChange(),
            [Finding("not-an-object", "kinds", "The kinds are an object.")],
            id="kinds-no-object",
        ),
        pytest.param(
            {"kinds": {"t": "reads", "u": None, "v": "read"}},
            RuleChange(kinds=(("u", None), ("v", ToolKind.READ))),
            [
                Finding(
                    "unknown-tool-kind",
                    "kinds.t",
                    "A tool is of kind read, write or handoff, or null for none.",
                )
            ],
            id="bad-kind",
        ),
    ],
)
def test_parse_change_names_what_is_wrong_and_keeps_the_rest(
    data: Json, change: RuleChange, findings: list[Finding]
) -> None:
    assert parse_change(data) == (change, tuple(findings))


def test_a_change_is_told_one_sentence_a_part() -> None:
    change = RuleChange(
        put=(IN_TASK_7, replace(SUMMARY, terms=PlainText())),
        drop=(place_of(SUM), RulePlace("gone", "a", "7")),
        kinds=(
            ("calculate", None),
            ("hand_over", ToolKind.READ),
            ("book", ToolKind.WRITE),
        ),
    )

    assert change_sentences(change, BASE) == (
        "New rule for task 7: calculate.expression: not compared.",
        (
            "Changed rule: hand_over.summary: texts that differ in case, white space or Unicode "
            "form alone are equal. It was: not compared."
        ),
        "No longer a rule: calculate.expression: expressions with the same value are equal.",
        "No longer a rule for task 7: gone.a.",
        "calculate has no kind any more and counts as write; it counted as read.",
        "hand_over counts as read, not handoff.",
        "book counts as write; its kind was not set, so it counted as write.",
    )
