"""Contracts are read whole, and every mistake is named at its line and field."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from traces.core.contracts.documents import FAST_LOADER, MOST_TEXT_BYTES, PURE_LOADER, Loader
from traces.core.contracts.model import (
    Anchor,
    Budget,
    BudgetName,
    CallTarget,
    Change,
    Contract,
    EvidencePart,
    External,
    MessageBy,
    MessageTarget,
    NamedGrader,
    OutcomeCase,
    Rubric,
)
from traces.core.contracts.places import MOST_FINDINGS
from traces.core.contracts.reading import read_contract, read_contracts
from traces.core.records import CriterionClass, GraderKind
from traces.core.rules import Alias, ArgumentRule, Arithmetic, RoundTo, SameTime, Time

DESIGN = (Path(__file__).parents[4] / "docs" / "design.md").read_text()
(EXAMPLE,) = re.findall(r"```yaml\n(task:.*?)```", DESIGN, re.DOTALL)

Found = tuple[int, int, str, str]


def contract_of(text: str) -> Contract:
    reading = read_contract(text)
    assert reading.findings == ()
    assert reading.contract is not None
    return reading.contract


def found_in(text: str) -> list[Found]:
    reading = read_contract(text)
    assert reading.contract is None
    return [(f.line, f.column, f.code, f.field) for f in reading.findings]


def sentence_of(text: str) -> str:
    (finding,) = read_contract(text).findings
    return finding.sentence


# The example of the design


@pytest.mark.parametrize("loader", [FAST_LOADER, PURE_LOADER], ids=["fast", "pure"])
def test_the_example_of_the_design_is_read(loader: Loader) -> None:
    reading = read_contract(EXAMPLE, loader)
    contract = reading.contract

    assert (reading.line, reading.text, reading.findings) == (1, EXAMPLE, ())
    assert contract is not None
    assert contract.task_id == "refund_damaged_item"
    assert (contract.title, contract.family) == ("Refund a damaged item", "refunds")
    assert contract.split == "regression"
    assert contract.input == "Order A-2291 arrived damaged. I would like my money back."
    assert contract.facts == {"customer_id": "C-17", "order": "A-2291"}
    assert contract.trial_facts == ("eligible",)
    assert contract.trials == 5
    assert contract.evidence == (EvidencePart.FINAL_STATE, EvidencePart.TOOL_RESULTS)
    assert contract.grader_tests == ()
    assert contract.tool_names == (
        "calculate", "get_customer", "get_order", "issue_refund", "list_orders", "verify_identity",
    )  # fmt: skip


def test_the_outcome_of_the_example() -> None:
    outcome = contract_of(EXAMPLE).outcome

    assert outcome is not None
    assert not outcome.is_recorded_expectation
    wanted = {"order": "A-2291", "amount": Decimal("84.00"), "method": "original_card"}
    assert outcome.cases == (
        OutcomeCase(
            "facts.eligible",
            changes=(Change("/refunds/-", wanted),),  # type: ignore[arg-type]
            ignore=("/refunds/*/id", "/refunds/*/created_at"),
            absent=("/holds/A-2291",),
        ),
        OutcomeCase("", unchanged=True),
    )
    value = outcome.cases[0].changes[0].value
    assert isinstance(value, dict)
    assert str(value["amount"]) == "84.00"
    assert value["amount"] == 84


def test_the_requirements_of_the_example() -> None:
    contract = contract_of(EXAMPLE)
    refund = Anchor(CallTarget("issue_refund"))

    assert [(r.id, r.any_of, r.before, r.after, r.mandatory) for r in contract.required] == [
        ("identity", (CallTarget("verify_identity", 'result.status == "verified"'),), refund, None, True),
        (
            "eligibility",
            (
                CallTarget("get_order", "result.order == facts.order"),
                CallTarget("list_orders", "result.items.exists(o, o.order == facts.order)"),
            ),
            refund, None, True,
        ),
        (
            "consent",
            (MessageTarget(MessageBy.USER, r'text.matches("(?i)\\b(yes|confirm)\\b")'),),
            refund, None, True,
        ),
        ("amount-told", (MessageTarget(MessageBy.AGENT, 'text.contains("84")'),), None, None, True),
    ]  # fmt: skip
    assert [(p.id, p.harm, p.committed_only, p.mandatory) for p in contract.prohibited] == [
        ("foreign-record", "data", False, True),
        ("big-refund", "money", False, True),
    ]
    assert {b.id: b.limit for b in contract.budget} == {
        "budget.tool_calls": 10,
        "budget.turns": 10,
        "budget.cost_usd": Decimal("0.40"),
        "budget.tokens": 20_000,
        "budget.seconds": 120,
        "budget.repeat_call": 3,
    }
    assert [(r.id, r.mandatory) for r in contract.semantic] == [("truthful", True), ("tone", False)]
    assert [(e.id, e.criterion_class, e.graders) for e in contract.external] == [
        ("db", CriterionClass.OUTCOME, (NamedGrader("tau2", GraderKind.CODE),))
    ]
    (rule,) = contract.variation
    assert (rule.tool, rule.argument, rule.terms) == ("calculate", "expression", Arithmetic())
    assert rule.task_id == "refund_damaged_item"


# Everything that the example leaves out


def test_a_small_contract_has_nothing_else() -> None:
    contract = contract_of("task: é\nbudget: {turns: 1}\n")  # composed when read

    assert contract == Contract(
        "é", "", "", None, None, {}, (), None, (), (), contract.budget, (), (), (), (), None, (),
        contract.digest,
    )  # fmt: skip


def test_forms_that_the_example_does_not_show() -> None:
    contract = contract_of(
        """
task: t
outcome: recorded_expectation
required:
  - {id: a, call: x, after: {message: agent, where: 'text.contains("a")'}, mandatory: false}
  - {id: b, call: x, before: {call: y, counts: committed}, after: {call: z, where: args.a}}
  - {id: c, any_of: [{message: user}, {call: x}], before: {call: y, counts: attempted}}
prohibited:
  - {id: d, harm: data, any_of: [{call: x}, {message: agent}], counts: committed, mandatory: false}
budget:
  cost_usd: {max: 0.40, mandatory: false}
  tokens: {max: 5.0}
semantic:
  - rubric: polite
    version: "2"
    question: >
      Was the agent polite?
    graders: [judge, {name: ada, kind: human}]
  - {rubric: "nl: any name "}
external: [{id: x:y, class: constraint, mandatory: false, graders: [{name: m, kind: model}]}]
evidence: [initial_state, facts, cost, tokens, times]
variation:
  - {tool: a, argument: b, kind: round_to, step: 0.01, reason: cents, author: ada}
  - {tool: a, argument: /c/*, kind: datetime, same: day, zone: Europe/Berlin}
  - {tool: a, argument: d, kind: alias, groups: [[1, one], [2, 2.5]]}
"""
    )

    assert contract.outcome is not None
    assert (contract.outcome.cases, contract.outcome.is_recorded_expectation) == ((), True)
    assert [(r.id, r.any_of, r.before, r.after, r.mandatory) for r in contract.required] == [
        ("a", (CallTarget("x"),), None,
         Anchor(MessageTarget(MessageBy.AGENT, 'text.contains("a")')), False),
        ("b", (CallTarget("x"),), Anchor(CallTarget("y"), committed_only=True),
         Anchor(CallTarget("z", "args.a")), True),
        ("c", (MessageTarget(MessageBy.USER), CallTarget("x")), Anchor(CallTarget("y")), None, True),
    ]  # fmt: skip
    (prohibited,) = contract.prohibited
    assert prohibited.any_of == (CallTarget("x"), MessageTarget(MessageBy.AGENT))
    assert (prohibited.committed_only, prohibited.mandatory) == (True, False)
    assert contract.budget == (
        Budget(BudgetName.COST_USD, Decimal("0.40"), False, contract.budget[0].digest),
        Budget(BudgetName.TOKENS, Decimal("5.0"), True, contract.budget[1].digest),
    )
    polite, any_name = contract.semantic
    ada = NamedGrader("ada", GraderKind.HUMAN)
    assert polite == Rubric(
        "polite", "2", "Was the agent polite?", True,
        (NamedGrader("judge", GraderKind.MODEL), ada), polite.digest,
    )  # fmt: skip
    assert any_name.id == "nl: any name "
    assert contract.external == (
        External("x:y", CriterionClass.CONSTRAINT, False,
                 (NamedGrader("m", GraderKind.MODEL),), contract.external[0].digest),
    )  # fmt: skip
    assert contract.variation == (
        ArgumentRule("a", "b", RoundTo(Decimal("0.01")), "cents", "ada", "t"),
        ArgumentRule("a", "/c/*", Time(SameTime.DAY, "Europe/Berlin"),
                     "declared in the contract", "contract", "t"),
        ArgumentRule("a", "d", Alias((("1", '"one"'), ("2", "2.5"))),
                     "declared in the contract", "contract", "t"),
    )  # fmt: skip


def test_cases_of_an_outcome() -> None:
    contract = contract_of(
        """
task: t
outcome:
  - when: " facts.a "
    changes: [{/a/-: 1}, {/a/-: 2, /b~1c: null}]
    absent: [/d/*]
  - {when: facts.b, absent: [/e]}
  - {unchanged: true, absent: [/f], ignore: [/g]}
"""
    )

    assert contract.outcome is not None
    assert contract.outcome.cases == (
        OutcomeCase(
            "facts.a", (Change("/a/-", 1), Change("/a/-", 2), Change("/b~1c", None)), (), ("/d/*",)
        ),
        OutcomeCase("facts.b", absent=("/e",)),
        OutcomeCase("", ignore=("/g",), absent=("/f",), unchanged=True),
    )


# Shape


WELL = "task: t\nbudget: {turns: 1}\n"

SENTENCES = [
    ("x", 'A contract is a mapping that begins with `task: …`, not the text "x".'),
    ("[]", "A contract is a mapping that begins with `task: …`, not a list."),
    ("budget: {turns: 1}", "`task` is missing."),
    ("task: 12\nbudget: {turns: 1}",
     "`task` must be a text, not the number 12. Put it in quotes."),
    (f"{WELL}title:", "`title` is empty: give it a text, or leave the line out."),
    (f"{WELL}required:", "`required` is empty: give it a list, or leave the line out."),
    (f"{WELL}title: ''", "`title` is empty: give it a text, or leave it out."),
    (f'{WELL}title: "a\\nb"',
     '`title` cannot be "a⏎b". It is one line, with nothing blank around it.'),
    (f"{WELL}title: {'x' * 501}", "`title` is too long: at most 500 characters."),
    (f"{WELL}titel: x", 'There is no field "titel" here. Do you mean `title`?'),
    (f"{WELL}Grader-Tests: x", 'There is no field "Grader-Tests" here. Do you mean `grader_tests`?'),
    (f"{WELL}zzzz: x", 'There is no field "zzzz" here.'),
    (f"{WELL}checks: x",
     ('There is no field "checks" here. Requirements stand under `outcome`, `required`, '
     "`prohibited`, `budget`, `semantic` and `external`.")),
    (f"{WELL}contract: x",
     'There is no field "contract" here. A contract begins with `task`, the id of its task.'),
    (f"{WELL}version: 1",
     'There is no field "version" here. Versions are counted when a contract is stored.'),
    (f"{WELL}split: held-out",
     ('`split` must be one of tuning, held_out, regression, not the text "held-out". '
     "Do you mean `held_out`?")),
    (f"{WELL}split: {{}}", "`split` must be one of tuning, held_out, regression, not a mapping."),
    (f"{WELL}trials: 0", "`trials` must be 1 or more, not the number 0."),
    (f"{WELL}trials: 10001", "`trials` must be 10000 or less, not the number 10001."),
    (f"{WELL}trials: true", "`trials` must be a whole number of 1 or more, not true."),
    (f"{WELL}trials: {'9' * 90}",
     f"`trials` must be 10000 or less, not the number {'9' * 60}…."),
    ("task: t\nbudget: {turns: 'ten'}",
     '`budget.turns` must be a whole number of 0 or more, not the text "ten".'),
    ("task: t\nbudget: {turns: 1.5}",
     "`budget.turns` must be a whole number of 0 or more, not the number 1.5."),
    ("task: t\nbudget: {cost_usd: [1]}",
     "`budget.cost_usd` must be a number of 0 or more, not a list."),
    ("task: t\nbudget: {cost_usd: -0.1}",
     "`budget.cost_usd` must be 0 or more, not the number -0.1."),
    ("task: t\nbudget: {cost_usd: {mandatory: true}}", "`budget.cost_usd.max` is missing."),
    (f"{WELL}outcome: expected",
     ("`outcome` is a list of cases, or the word `recorded_expectation`. "
     'Found: the text "expected".')),
    (f"{WELL}outcome: []", "`outcome` must hold 1 or more."),
    (f"{WELL}outcome: [{{changes: {{}}}}]",
     "`outcome[0].changes` is empty: give it a name and a value, or leave it out."),
    (f"{WELL}outcome: [{{when: facts.a}}]", "A case needs `changes`, `unchanged: true` or `absent`."),
    (f"{WELL}outcome: [{{unchanged: true, changes: {{/a: 1}}}}]",
     "A case has either `changes` or `unchanged`, not both."),
    (f"{WELL}outcome: [{{unchanged: false}}]", "`outcome[0].unchanged` must be true, not false."),
    (f"{WELL}required: [{{id: a}}]",
     "Exactly one of `call`, `message` and `any_of` must stand here."),
    (f"{WELL}required: [{{id: a, call: b, message: user}}]",
     "Exactly one of `call`, `message` and `any_of` must stand here."),
    (f"{WELL}required: [{{id: a, any_of: [{{call: b}}], where: c}}]",
     "Beside `any_of` there is no `where`: give each of its entries its own."),
    (f"{WELL}required: [{{id: a, any_of: [{{where: c}}]}}]",
     "Exactly one of `call` and `message` must stand here."),
    (f"{WELL}required: [{{id: a, call: b, before: {{message: user, counts: committed}}}}]",
     "A message is never committed: `counts` stands beside `call` only."),
    (f"{WELL}required: [{{id: a b, call: b}}]",
     ('`required[0].id` cannot be "a b". The name of the criterion: letters, digits, - _ . and :, '
     "unique in the contract.")),
    (f'{WELL}required: [{{id: "a\\n", call: b}}]',
     ('`required[0].id` cannot be "a⏎". The name of the criterion: letters, digits, - _ . and :, '
     "unique in the contract.")),
    (f"{WELL}required: [{{id: a, call: b, where: '{'x' * 2_001}'}}]",
     "`required[0].where` is too long: at most 2000 characters."),
    (f"{WELL}required: [nothing]",
     '`required[0]` must be a mapping of names to values, not the text "nothing".'),
    (f"{WELL}required: [{'{id: a, call: b}, ' * 201}]", None),
    (f"{WELL}prohibited: [{{id: a, call: b}}]", "`prohibited[0].harm` is missing."),
    (f"{WELL}prohibited: [{{id: a, harm: h, message: user, counts: committed}}]",
     "A message is never committed: leave `counts` out."),
    (f"{WELL}semantic: [{{rubric: a, graders: [{{name: b, kind: robot}}]}}]",
     '`semantic[0].graders[0].kind` must be one of code, model, human, not the text "robot".'),
    (f"{WELL}semantic: [{{rubric: a, version: 2}}]",
     "`semantic[0].version` must be a text, not the number 2. Put it in quotes."),
    (f"{WELL}evidence: [state]",
     ("`evidence[0]` must be one of initial_state, final_state, tool_results, facts, cost, tokens, "
     'times, not the text "state". Do you mean `final_state`?')),
    (f"{WELL}variation: [{{tool: a, argument: b, kind: round_to, step: [1]}}]",
     "`variation[0].step` must be a number or a text, not a list."),
    # What no schema says
    ("task: t", "Nothing is required: at least one entry must be mandatory."),
    ("task: t\nbudget: {turns: {max: 1, mandatory: false}}",
     "Nothing is required: at least one entry must be mandatory."),
    (f"{WELL}required: [{{id: outcome, call: b}}]",
     '"outcome" is the name of a check of its own: take another.'),
    (f"{WELL}external: [{{id: budget.x, class: outcome}}]",
     '"budget.x" is the name of a check of its own: take another.'),
    (f"{WELL}required: [{{id: a, call: b}}]\nsemantic: [{{rubric: a}}]",
     '"a" is taken by `required[0].id`: each name stands once.'),
    (f"{WELL}facts: {{a: 1}}\ntrial_facts: [b, a]",
     '"a" is a fixed fact under `facts`: it cannot be both.'),
    (f"{WELL}trial_facts: [b, b]", '"b" stands here twice.'),
    (f"{WELL}evidence: [cost, cost]", "cost stands here twice."),
    (f"{WELL}semantic: [{{rubric: a, graders: [b, b]}}]", '"b" stands here twice.'),
    (f"{WELL}required: [{{id: a, any_of: [{{call: b}}, {{call: b}}]}}]", "This stands here twice."),
    (f"{WELL}outcome: [{{unchanged: true}}, {{absent: [/a]}}]",
     "This case is never reached: `outcome[0]` before it always holds."),
    (f"{WELL}outcome: [{{changes: {{a: 1}}}}]", 'A pointer begins with `/`: "a" does not.'),
    (f"{WELL}outcome: [{{changes: {{'': 1}}}}]", 'A pointer begins with `/`: "" does not.'),
    (f"{WELL}outcome: [{{changes: {{/a~2: 1}}}}]",
     'In a pointer ~ is written ~0, and / inside a name ~1: "/a~2".'),
    (f"{WELL}outcome: [{{changes: {{/a/-/b: 1}}}}]",
     'The name - (appended) can only stand as the last name of a change: "/a/-/b".'),
    (f"{WELL}outcome: [{{absent: [/a/-]}}]",
     'The name - (appended) can only stand in `changes`: "/a/-".'),
    (f"{WELL}outcome: [{{absent: [/a, /a]}}]", '"/a" stands here twice.'),
    (f"{WELL}outcome: [{{changes: [{{/a: 1}}, {{/a: 2}}]}}]", '"/a" is given twice.'),
    (f"{WELL}outcome: [{{changes: {{/a: 1, /a/b: 2}}}}]",
     '"/a/b" lies inside another changed place, or around one.'),
    (f"{WELL}outcome: [{{changes: {{/a/b: 1, /a: 2}}}}]",
     '"/a" lies inside another changed place, or around one.'),
    (f"{WELL}variation: [{{tool: a, argument: b, kind: round_to}}]",
     "The step is a number from 1E-12 to 1E+12, such as 0.01."),
    (f"{WELL}variation: [{{tool: a, argument: b, kind: text}}, {{tool: a, argument: /b, kind: ignore}}]",
     "This tool and argument already have a rule, `variation[0]`."),
    (f"{WELL}variation: [{{tool: a, argument: b, kind: text, step: 1}}]",
     'There is no field "step" here.'),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"), [pair for pair in SENTENCES if pair[1]], ids=range(len(SENTENCES) - 1)
)
def test_a_mistake_is_said_in_one_sentence(text: str, sentence: str) -> None:
    assert sentence_of(text) == sentence


def test_a_list_that_is_too_long_is_said_before_its_items() -> None:
    text = f"{WELL}required: [{', '.join(f'{{id: a{n}, call: b}}' for n in range(201))}]"

    assert sentence_of(text) == "`required` holds too many: at most 200."


def test_a_mapping_that_is_too_long_is_refused() -> None:
    changes = ", ".join(f"/a{n}: 1" for n in range(501))

    text = f"task: t\noutcome: [{{changes: {{{changes}}}}}]\n"
    assert sentence_of(text) == "`outcome[0].changes` holds too many: at most 500."


def test_every_mistake_is_found_at_once_in_the_order_of_the_text() -> None:
    text = """\
task: 12
splt: tuning
facts: {a: 1, a: 2, b: *x}
trial_facts: [a, 7]
outcome:
  - changes: {/a/-/b: 1, c: 2}
    unchanged: true
required:
  - {id: outcome, call: x}
  - {id: y, calls: q}
  - {id: z, call: !t x, mandatory: 1}
budget: {turns: ten, toolcalls: 4}
grader_tests:
  - {name: n, steps: [], expect: {nothing: pass}}
"""

    assert found_in(text) == [
        (1, 7, "wrong-type", "task"),
        (2, 1, "unknown-field", "splt"),
        (3, 15, "duplicate-key", "facts.a"),
        (3, 24, "alias", "facts.b"),
        (4, 18, "wrong-type", "trial_facts[1]"),
        (6, 5, "wrong-form", "outcome[0]"),
        (9, 10, "reserved-id", "required[0].id"),
        (10, 5, "wrong-form", "required[1]"),
        (10, 13, "unknown-field", "required[1].calls"),
        (11, 19, "tag", "required[2].call"),
        (11, 36, "wrong-type", "required[2].mandatory"),
        (12, 17, "wrong-type", "budget.turns"),
        (12, 22, "unknown-field", "budget.toolcalls"),
        (14, 35, "unknown-check", "grader_tests[0].expect.nothing"),
    ]


def test_a_rule_with_a_mistake_names_the_part() -> None:
    text = (
        f"{WELL}variation:\n  - {{tool: a, argument: b, kind: alias, groups: [[1, 2], [1, 3]]}}\n"
    )
    default = f"{WELL}variation: [{{tool: a, argument: b, kind: default}}]"

    assert found_in(text) == [(4, 49, "overlapping-groups", "variation[0].groups")]
    assert found_in(default) == [(3, 13, "missing-value", "variation[0].value")]


def test_a_field_that_could_not_be_told_is_not_complained_of_twice() -> None:
    assert found_in("task: *x\nbudget: {turns: .inf}\n") == [
        (1, 7, "alias", "task"),
        (2, 17, "not-finite", "budget.turns"),
    ]
    assert found_in("1: x\n") == [(1, 1, "name-not-text", "")]
    assert found_in("? {a: b}\n: x\nzzz: 1\n") == [
        (1, 3, "name-not-text", ""),
        (3, 1, "unknown-field", "zzz"),
    ]
    assert found_in("*x") == [(1, 1, "alias", "")]


def test_findings_are_bounded() -> None:
    required = "".join(f"  - {{id: '{n} x', call: y}}\n" for n in range(100))

    found = found_in(f"task: t\nrequired:\n{required}")

    assert len(found) == MOST_FINDINGS
    assert {code for _, _, code, _ in found} == {"bad-name"}


def test_unknown_fields_of_one_mapping_are_bounded() -> None:
    found = found_in(WELL + "".join(f"zz{n}: 1\n" for n in range(1_000)))

    assert [code for _, _, code, _ in found] == ["unknown-field"] * 21
    assert found[0] == (1, 1, "unknown-field", "")


def test_a_name_of_any_length_is_answered() -> None:
    assert sentence_of(f"{WELL}{'x' * 1_000}: 1").startswith('There is no field "xxx')


# Texts


def test_a_text_without_a_contract() -> None:
    assert sentence_of("") == sentence_of("# only\n---\n") == "There is no contract in this text."


def test_a_second_contract_is_refused_where_one_is_wanted() -> None:
    assert found_in(f"{WELL}---\n{WELL}") == [(4, 1, "second-document", "")]


def test_contracts_are_read_each_for_itself() -> None:
    readings = read_contracts(f"# all\n---\n{WELL}---\ntask: *x\n---\ntask: 'b\n---\n{WELL}")

    assert [(r.line, r.contract is None, len(r.findings)) for r in readings] == [
        (3, False, 0),
        (6, True, 1),
        (8, True, 1),
        (10, False, 0),
    ]
    assert readings[0].text == readings[3].text == WELL
    assert [readings[n].findings[0].line for n in (1, 2)] == [6, 8]


def test_contracts_after_too_much_text_are_not_read() -> None:
    large = f"task: t\nfacts: {{a: [{', '.join('1' * 19_900)}]}}\n"

    readings = read_contracts("---\n".join([large] * 6 + [WELL]))

    codes = [[finding.code for finding in reading.findings] for reading in readings]
    assert codes == [["nothing-required"]] * 6 + [["text-too-large"]]
    assert (readings[6].line, readings[6].text) == (19, WELL)


@pytest.mark.parametrize(
    ("text", "code"),
    [(b"task: \xff", "not-utf-8"), ("x" * (MOST_TEXT_BYTES + 1), "text-too-large")],
    ids=["bytes", "size"],
)
def test_a_text_that_cannot_be_read_is_one_finding(text: str | bytes, code: str) -> None:
    reading = read_contract(text)

    assert (reading.contract, reading.text) == (None, "")
    assert [finding.code for finding in reading.findings] == [code]


def test_a_text_of_other_line_breaks_and_a_mark_is_read() -> None:
    marked = ("\ufeff" + EXAMPLE.replace("\n", "\r\n")).encode()

    assert read_contract(marked).contract == contract_of(EXAMPLE)


def test_the_place_of_a_field() -> None:
    reading = read_contract(
        "task: t\nrequired:\n  - id: a\n    any_of:\n      - call: b\n        where: c\n"
    )

    assert reading.findings == ()
    assert reading.place_of("required[0].any_of[0].where") == (6, 16)
    assert reading.place_of("required[0].where") == (6, 16)  # as expressions name it
    assert reading.place_of("required[0].any_of[0].nothing") == (5, 9)
    assert reading.place_of("required[7].where") == (3, 3)
    assert reading.place_of("") == (1, 1)
    assert read_contract("").place_of("task") == (1, 1)


def test_each_missing_field_is_said_once() -> None:
    assert found_in(f"{WELL}prohibited: [{{call: x}}]") == [
        (3, 14, "missing-field", "prohibited[0].id"),
        (3, 14, "missing-field", "prohibited[0].harm"),
    ]
