"""What differs between two versions of a contract."""

from hypothesis import given
from hypothesis import strategies as st

from traces.core.contracts.changes import (
    CONTEXT_LINES,
    MOST_FRAGMENT_CHARS,
    MOST_LINE_CHARS,
    MOST_LINES,
    ChangeKind,
    LineKind,
    contract_changes,
    criterion_digests,
    line_changes,
)
from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contract

OLD = """\
task: t
title: One
input: hello
facts: {a: 1, gone: x}
trial_facts: [b]
outcome:
  - {when: facts.b, changes: {/x/-: {n: 84.00}}, ignore: [/i], absent: [/k]}
  - unchanged: true
required:
  - {id: r, call: x, where: args.a, before: {call: y, counts: committed}}
  - {id: s, any_of: [{call: x}, {message: user, where: text}], after: z}
prohibited:
  - {id: p, harm: data, call: z}
  - {id: big-refund, harm: money, call: refund, counts: committed}
budget: {turns: 3, cost_usd: 0.40}
semantic: [{rubric: q, version: "1", question: How?}]
external: [{id: e, class: outcome, graders: [g]}]
evidence: [final_state]
variation: [{tool: x, argument: a, kind: round_to, step: 0.01}]
trials: 3
grader_tests:
  - {name: n, steps: [{user: u}], expect: {r: fail}}
"""


def contract_of(text: str) -> Contract:
    reading = read_contract(text)
    assert reading.findings == ()
    assert reading.contract is not None
    return reading.contract


def changes(*replacements: tuple[str, str]) -> list[tuple[str, str, str, str, bool]]:
    text = OLD
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return [
        (c.kind.value, c.name, c.before, c.after, c.is_other_check)
        for c in contract_changes(contract_of(OLD), contract_of(text))
    ]


def test_the_same_contract_in_another_spelling_has_no_changes() -> None:
    assert changes(("84.00", "84"), ("{a: 1, gone: x}", "{gone: 'x', a: 1.0}")) == []


def test_each_kind_of_entry_is_named_in_words() -> None:
    assert changes(
        ("title: One", "title: Two\nfamily: f\nsplit: tuning"),
        ("{a: 1, gone: x}", "{a: 2, new: y}"),
        ("[b]", "[b, c]"),
        ("ignore: [/i], ", ""),
        ("counts: committed}}", "counts: attempted}}"),
        ("{message: user, where: text}", "{message: user}"),
        ("  - {id: p, harm: data, call: z}\n", ""),
        ("refund, counts: committed", "refund, where: args.a, mandatory: false"),
        ("turns: 3, cost_usd: 0.40", "cost_usd: {max: 0.40, mandatory: false}, tokens: 5"),
        ('version: "1", question: How?', "question: Why?, graders: [{name: j, kind: human}]"),
        ("class: outcome, graders: [g]", "class: constraint, mandatory: false"),
        ("[final_state]", "[cost]"),
        ("step: 0.01", "step: 0.02"),
        ("trials: 3", "trials: 4"),
        ("{user: u}", "{agent: u}"),
    ) == [
        ("changed", "title", "One", "Two", False),
        ("added", "family", "", "f", False),
        ("added", "split", "", "tuning", False),
        ("changed", "fact a", "1", "2", False),
        ("removed", "fact gone", "x", "", False),
        ("added", "fact new", "", "y", False),
        ("added", "trial fact c", "", "c", False),
        ("changed", "outcome",
         ("- when: facts.b\n  changes:\n    - {/x/-: {n: 84.00}}\n  ignore: [/i]\n  absent: [/k]\n"
         "- {unchanged: true}"),
         ("- when: facts.b\n  changes:\n    - {/x/-: {n: 84.00}}\n  absent: [/k]\n"
         "- {unchanged: true}"), True),
        ("changed", "required r",
         "call: x\nwhere: args.a\nbefore: {call: y, counts: committed}",
         "call: x\nwhere: args.a\nbefore: {call: y}", True),
        ("changed", "required s",
         "any_of: [{call: x}, {message: user, where: text}]\nafter: {call: z}",
         "any_of: [{call: x}, {message: user}]\nafter: {call: z}", True),
        ("removed", "prohibited p", "harm: data\ncall: z", "", True),
        ("changed", "prohibited big-refund", "harm: money\ncall: refund\ncounts: committed",
         "harm: money\ncall: refund\nwhere: args.a\nmandatory: false", True),
        ("removed", "budget turns", "max: 3", "", True),
        ("changed", "budget cost_usd", "max: 0.40", "max: 0.40\nmandatory: false", False),
        ("added", "budget tokens", "", "max: 5", True),
        ("changed", "semantic q", 'rubric: q\nversion: "1"\nquestion: "How?"',
         'rubric: q\nquestion: "Why?"\ngraders: [{name: j, kind: human}]', True),
        ("changed", "external e", "class: outcome\ngraders: [{name: g, kind: code}]",
         "class: constraint\nmandatory: false", True),
        ("removed", "evidence final_state", "final_state", "", False),
        ("added", "evidence cost", "", "cost", False),
        ("changed", "variation x a",
         ('tool: x\nargument: a\nkind: round_to\nstep: "0.01"\nreason: declared in the contract\n'
         "author: contract"),
         ('tool: x\nargument: a\nkind: round_to\nstep: "0.02"\nreason: declared in the contract\n'
         "author: contract"), False),
        ("changed", "trials", "3", "4", False),
        ("changed", "grader test n",
         "expect: {r: fail}\nmessages:\n  - {role: user, content: u}",
         "expect: {r: fail}\nmessages:\n  - {role: assistant, content: u}", False),
    ]  # fmt: skip


def test_other_facts_are_one_change_and_other_digests() -> None:
    text = OLD.replace("{a: 1,", "{a: 2,")
    old, new = criterion_digests(contract_of(OLD)), criterion_digests(contract_of(text))

    assert [name for _, name, *_ in changes(("{a: 1,", "{a: 2,"))] == ["fact a"]
    assert {name for name in old if old[name] != new[name]} == {
        "outcome",
        "r",
        "s",
        "p",
        "big-refund",
    }


def test_without_an_earlier_version_all_is_added() -> None:
    added = contract_changes(None, contract_of("task: t\noutcome: recorded_expectation\n"))

    assert [(c.kind, c.name, c.before, c.after, c.is_other_check) for c in added] == [
        (ChangeKind.ADDED, "task", "", "t", False),
        (ChangeKind.ADDED, "outcome", "", "recorded_expectation", True),
    ]


def test_a_null_fact_is_not_a_missing_one() -> None:
    old = contract_of("task: t\nfacts: {a: null}\nbudget: {turns: 1}")
    new = contract_of("task: t\nbudget: {turns: 1}")

    (change,) = contract_changes(old, new)
    assert (change.kind, change.name, change.before) == (ChangeKind.REMOVED, "fact a", "null")


def test_a_long_fragment_is_cut() -> None:
    old = contract_of(f"task: t\ninput: {'x' * 9_000}\nbudget: {{turns: 1}}")
    new = contract_of("task: t\nbudget: {turns: 1}")

    (change,) = contract_changes(old, new)
    assert change.before == "x" * MOST_FRAGMENT_CHARS + "…"


# Lines


def shown(old: str, new: str) -> list[tuple[str, int | None, int | None, str]]:
    signs = {LineKind.SAME: " ", LineKind.ADDED: "+", LineKind.REMOVED: "-", LineKind.GAP: "…"}
    return [(signs[c.kind], c.old_number, c.new_number, c.text) for c in line_changes(old, new)]


def test_lines_that_differ_are_shown_with_a_few_around_them() -> None:
    old = "".join(f"{n}\n" for n in range(1, 21))
    new = old.replace("\n10\n", "\nten\n10b\n").replace("\n20\n", "\n")

    assert shown(old, new) == [
        ("…", None, None, ""),
        (" ", 7, 7, "7"), (" ", 8, 8, "8"), (" ", 9, 9, "9"),
        ("-", 10, None, "10"), ("+", None, 10, "ten"), ("+", None, 11, "10b"),
        (" ", 11, 12, "11"), (" ", 12, 13, "12"), (" ", 13, 14, "13"),
        ("…", None, None, ""),
        (" ", 17, 18, "17"), (" ", 18, 19, "18"), (" ", 19, 20, "19"),
        ("-", 20, None, "20"),
    ]  # fmt: skip


def test_equal_lines_between_two_differences_are_kept() -> None:
    assert shown("a\nb\nc\n", "x\nb\ny\nc\nz\n") == [
        ("-", 1, None, "a"), ("+", None, 1, "x"), (" ", 2, 2, "b"), ("+", None, 3, "y"),
        (" ", 3, 4, "c"), ("+", None, 5, "z"),
    ]  # fmt: skip


def test_equal_texts_have_no_lines() -> None:
    assert line_changes("a\nb\n", "a\nb\n") == ()
    assert line_changes("", "") == ()


def test_from_nothing_and_to_nothing() -> None:
    assert shown("", "a\n") == [("+", None, 1, "a")]
    assert shown("a\n", "") == [("-", 1, None, "a")]


def test_very_different_long_texts_are_removed_and_added_whole() -> None:
    old = "same\n" + "a\nb\n" * 700
    new = "same\n" + "b\nc\n" * 700

    kinds = [change.kind for change in line_changes(old, new)]

    assert kinds == [
        LineKind.SAME,
        *[LineKind.REMOVED] * 1_400,
        *[LineKind.ADDED] * 599,
        LineKind.GAP,
    ]
    assert len(kinds) == MOST_LINES + 1


def test_a_long_line_is_cut() -> None:
    (line,) = line_changes("", "x" * 5_000)

    assert line.text == "x" * MOST_LINE_CHARS + "…"


lines = st.lists(st.sampled_from("abc"), max_size=12).map(
    lambda items: "".join(f"{i}\n" for i in items)
)


@given(lines, lines)
def test_a_difference_leads_from_the_old_lines_to_the_new(old: str, new: str) -> None:
    found = line_changes(old, new)
    kept = [change for change in found if change.kind is not LineKind.GAP]

    assert bool(found) == (old != new)
    for number, text in enumerate(old.splitlines(), 1):
        of_line = [change for change in kept if change.old_number == number]
        assert [change.text for change in of_line] in ([text], [])
    for change in kept:
        if change.kind is LineKind.SAME:
            assert (
                old.splitlines()[change.old_number - 1] == new.splitlines()[change.new_number - 1]
            )
    n_removed = sum(change.kind is LineKind.REMOVED for change in kept)
    n_added = sum(change.kind is LineKind.ADDED for change in kept)
    assert len(old.splitlines()) - n_removed == len(new.splitlines()) - n_added
    assert CONTEXT_LINES == 3
