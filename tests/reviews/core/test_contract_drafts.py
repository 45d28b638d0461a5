"""Drafts of contracts read as a whole: places, expressions, tools, grader tests."""

from __future__ import annotations

import pytest

from reviews.core.contract_drafts import (
    MOST_FINDINGS,
    ContractSource,
    DraftFinding,
    contract_of_text,
    drafts_of,
    grader_tests_of,
    tools_named,
    unmet_tests_sentence,
)
from reviews.core.regrades import GraderTest, PlantedCheck

WHOLE = """\
task: t1
outcome:
  - {when: facts.a, unchanged: true}
required:
  - {id: a, call: one, where: 'args.x == 1', before: two}
  - {id: b, any_of: [{call: three}, {message: user, where: 'text == "yes"'}], after: {call: four, where: 'args.y == 1'}}
prohibited:
  - {id: c, harm: money, call: five}
variation:
  - {tool: six, argument: z, kind: text}
trial_facts: [a]
"""


def findings_of(*texts: str) -> list[tuple[str, str, int, str]]:
    read = drafts_of(ContractSource(f"{n}.yaml", text) for n, text in enumerate(texts, 1))
    return [(each.code, each.source, each.line, each.field) for each in read.findings]


def test_texts_come_to_contracts_with_their_own_text() -> None:
    read = drafts_of(
        [ContractSource("a.yaml", f"# first\n{WHOLE}---\n{WHOLE.replace('t1', 't2')}")]
    )
    assert read.findings == ()
    assert read.n_documents == 2
    assert [(each.contract.task_id, each.source) for each in read.contracts] == [
        ("t1", "a.yaml"),
        ("t2", "a.yaml"),
    ]
    assert read.contracts[0].text == f"# first\n{WHOLE}"


def test_no_text_is_no_draft() -> None:
    assert drafts_of([]).n_documents == 0


def test_findings_of_the_reader_are_placed_in_their_file() -> None:
    assert findings_of(WHOLE, "task: t2\nbudgets: 3\n") == [
        ("unknown-field", "2.yaml", 2, "budgets")
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "field"),
    [
        ("facts.a,", "'args.x ==',", 3, "outcome[0].when"),
        ("args.x == 1", "args.x ==", 5, "required[0].where"),
        ('text == "yes"', "text ==", 6, "required[1].any_of[1].where"),
        ("args.y == 1", "args.y ==", 6, "required[1].after.where"),
    ],
)
def test_an_expression_that_does_not_compile_is_named(
    old: str, new: str, line: int, field: str
) -> None:
    assert findings_of(WHOLE.replace(old, new)) == [("bad-expression", "1.yaml", line, field)]


def test_a_name_that_an_expression_does_not_see_is_named() -> None:
    assert findings_of(WHOLE.replace("facts.a,", "'args.x == 1',")) == [
        ("bad-expression", "1.yaml", 3, "outcome[0].when")
    ]


def test_a_second_contract_of_a_task_is_named_wherever_it_stands() -> None:
    read = drafts_of([ContractSource("a", WHOLE), ContractSource("b", f"---\n{WHOLE}---\n{WHOLE}")])
    assert [(each.source, each.line, each.sentence) for each in read.findings] == [
        ("b", 2, 'Task "t1" has a contract already, at line 1 in a.'),
        ("b", 14, 'Task "t1" has a contract already, at line 1 in a.'),
    ]
    (finding,) = drafts_of([ContractSource("", f"{WHOLE}---\n{WHOLE}")]).findings
    assert finding.sentence == 'Task "t1" has a contract already, at line 1.'
    assert finding.task_id == "t1"


def test_findings_are_bounded() -> None:
    assert len(findings_of(*["task: [\n"] * (MOST_FINDINGS + 1))) == MOST_FINDINGS


@pytest.mark.parametrize(
    ("source", "line", "column", "field", "place"),
    [
        ("a.yaml", 3, 5, "required", "a.yaml:3:5: required"),
        ("", 3, 5, "required", "3:5: required"),
        ("a.yaml", 0, 0, "", "a.yaml"),
        ("", 0, 0, "", ""),
    ],
    ids=["all", "typed", "file", "nothing"],
)
def test_a_place_names_what_is_known(
    source: str, line: int, column: int, field: str, place: str
) -> None:
    assert DraftFinding(source, line, column, field, "So.", "code").place == place


def test_every_tool_is_named_with_its_field() -> None:
    (drafted,) = drafts_of([ContractSource("", WHOLE)]).contracts
    assert list(tools_named(drafted)) == [
        ("required[0].call", "one"),
        ("required[0].before", "two"),
        ("required[1].any_of[0].call", "three"),
        ("required[1].after.call", "four"),
        ("prohibited[0].call", "five"),
        ("variation[0].tool", "six"),
    ]


def test_a_stored_text_is_read_again() -> None:
    contract = contract_of_text(WHOLE)
    assert contract is not None
    assert contract.task_id == "t1"
    assert contract_of_text("task: t1\nwords_of_later: 1\n") is None


PLANTED = """\
task: t1
required:
  - {id: looked, call: look}
grader_tests:
  - {name: right, steps: [{user: Hi}, {call: look, result: ok}], expect: {looked: pass}}
  - {name: wrong, steps: [{user: Hi}], expect: {looked: pass}}
"""


def test_grader_tests_are_run_and_keep_what_is_not_as_expected() -> None:
    contract = contract_of_text(PLANTED)
    assert contract is not None
    right, wrong = grader_tests_of(contract)
    assert right == GraderTest("t1", "right", is_met=True, checks=())
    assert (wrong.name, wrong.is_met) == ("wrong", False)
    assert [(each.criterion, each.expected, each.found) for each in wrong.checks] == [
        ("looked", "pass", "fail")
    ]


def unmet(n: int) -> list[GraderTest]:
    check = PlantedCheck("a", "pass", "fail")
    met = GraderTest("t", "met", is_met=True, checks=())
    return [met, *(GraderTest("t", f"test {k}", is_met=False, checks=(check,)) for k in range(n))]


MANY = (
    'Grader tests are not met: "test 0" of task t, "test 1" of task t, "test 2" of task t'
    " and 2 more."
)


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (0, ""),
        (1, 'A grader test is not met: "test 0" of task t.'),
        (
            5,
            MANY,
        ),
    ],
)
def test_unmet_grader_tests_are_named(n: int, sentence: str) -> None:
    rest = " Mend the contract, or what the test expects, first." if n else ""
    assert unmet_tests_sentence(unmet(n)) == sentence + rest
