from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from tests.traces.core.strategies import json_values, rule_sets
from traces.core.records import Finding
from traces.core.rule_documents import (
    DEEPEST_ARGUMENT,
    MOST_RULES,
    parse_rule,
    parse_rule_set,
    rule_set_document,
)
from traces.core.rules import (
    Alias,
    ArgumentRule,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RejectionSettings,
    RoundTo,
    RuleSet,
    SameTime,
    Time,
    Unordered,
)
from traces.core.trajectory import ToolKind
from traces.core.values import Json


def rule(**fields: Any) -> dict[str, Json]:
    base = {"tool": "t", "argument": "a", "kind": "ignore", "reason": "why", "author": "ada"}
    return {**base, **fields}


def test_parse_rule_set_reads_every_part() -> None:
    rules, findings = parse_rule_set(
        {
            "rules": [
                rule(argument="a1"),
                rule(argument="a2", kind="round_to", step="0.01"),
                rule(argument="a3", kind="arithmetic", task="7"),
                rule(argument="a4", kind="text", task=None),
                rule(argument="a5", kind="datetime", same="instant"),
                rule(argument="a6", kind="datetime", same="day", zone="Europe/Berlin"),
                rule(argument="a7", kind="unordered"),
                rule(argument="a8", kind="default", value=1.0),
                rule(argument="a9", kind="alias", groups=[["SFO", "San Francisco"]]),
                rule(argument="", kind="round_to", step=5),
            ],
            "tools": {"put": "write", "cafe\u0301": "read", "a2": "handoff"},
            "rejection": {"flag": False, "prefixes": ["no:"]},
        }
    )

    terms = [
        Ignore(),
        RoundTo(Decimal("0.01")),
        Arithmetic(),
        PlainText(),
        Time(SameTime.INSTANT),
        Time(SameTime.DAY, "Europe/Berlin"),
        Unordered(),
        Default("1"),
        Alias((('"SFO"', '"San Francisco"'),)),
    ]
    assert findings == ()
    assert rules == RuleSet(
        (
            *(
                ArgumentRule("t", f"a{n}", each, "why", "ada", "7" if n == 3 else None)
                for n, each in enumerate(terms, start=1)
            ),
            ArgumentRule("t", "", RoundTo(Decimal(5)), "why", "ada"),
        ),
        (("a2", ToolKind.HANDOFF), ("caf\u00e9", ToolKind.READ), ("put", ToolKind.WRITE)),
        RejectionSettings(use_flag=False, prefixes=("no:",)),
    )


def test_an_empty_document_is_the_rule_set_without_rules() -> None:
    assert parse_rule_set({}) == (RuleSet(), ())


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        ("text", "not-an-object", "r"),
        (rule(kind="fuzzy"), "unknown-kind", "r.kind"),
        (rule(kind=None), "unknown-kind", "r.kind"),
        (rule(kind=["ignore"]), "unknown-kind", "r.kind"),
        (rule(step=1), "unknown-field", "r.step"),
        (rule(tool=""), "missing-tool", "r.tool"),
        (rule(tool=7), "missing-tool", "r.tool"),
        (rule(argument=None), "missing-argument", "r.argument"),
        (rule(reason=""), "missing-reason", "r.reason"),
        (rule(author=""), "missing-author", "r.author"),
        (rule(task=""), "missing-task", "r.task"),
        (rule(argument="/a" * (DEEPEST_ARGUMENT + 1)), "argument-too-deep", "r.argument"),
        (rule(kind="round_to"), "bad-step", "r.step"),
        (rule(kind="round_to", step=True), "bad-step", "r.step"),
        (rule(kind="round_to", step=0), "bad-step", "r.step"),
        (rule(kind="round_to", step=-1), "bad-step", "r.step"),
        (rule(kind="round_to", step="a cent"), "bad-step", "r.step"),
        (rule(kind="round_to", step="\u0661"), "bad-step", "r.step"),
        (rule(kind="round_to", step="1_0"), "bad-step", "r.step"),
        (rule(kind="round_to", step="NaN"), "bad-step", "r.step"),
        (rule(kind="round_to", step="Infinity"), "bad-step", "r.step"),
        (rule(kind="round_to", step="1e13"), "bad-step", "r.step"),
        (rule(kind="round_to", step="1." + "1" * 40), "bad-step", "r.step"),
        (rule(kind="datetime"), "bad-same", "r.same"),
        (rule(kind="datetime", same="week"), "bad-same", "r.same"),
        (rule(kind="datetime", same="day", zone="Europe/Nowhere"), "unknown-zone", "r.zone"),
        (rule(kind="datetime", same="day", zone="../../etc/passwd"), "unknown-zone", "r.zone"),
        (rule(kind="datetime", same="day", zone="Europe"), "unknown-zone", "r.zone"),
        (rule(kind="datetime", same="day", zone=""), "unknown-zone", "r.zone"),
        (rule(kind="datetime", same="day", zone="a\x00b"), "unknown-zone", "r.zone"),
        (rule(kind="datetime", same="day", zone=1), "unknown-zone", "r.zone"),
        (rule(kind="default"), "missing-value", "r.value"),
        (rule(kind="default", value=1, argument=""), "default-without-name", "r.argument"),
        (rule(kind="default", value=1, argument="/a/*"), "default-without-name", "r.argument"),
        (rule(kind="alias"), "missing-groups", "r.groups"),
        (rule(kind="alias", groups=[]), "missing-groups", "r.groups"),
        (rule(kind="alias", groups=[["a"]]), "bad-group", "r.groups[0]"),
        (rule(kind="alias", groups=[["a", "b"], "c"]), "bad-group", "r.groups[1]"),
        (rule(kind="alias", groups=[[1, 2], [1.0, 3]]), "overlapping-groups", "r.groups"),
        (rule(kind="alias", groups=[["a", "a"]]), "overlapping-groups", "r.groups"),
    ],
)
def test_parse_rule_names_what_is_wrong(data: Json, code: str, place: str) -> None:
    found = parse_rule(data, "r")
    assert isinstance(found, Finding)
    assert (found.code, found.place) == (code, place)
    assert found.sentence.endswith(".")


def test_parse_rule_fills_in_what_a_contract_says_once() -> None:
    found = parse_rule(
        {"tool": "calculate", "argument": "expression", "kind": "arithmetic"},
        "variation[0]",
        task_id="12",
        reason="permitted by the contract",
        author="ada",
    )
    assert found == ArgumentRule(
        "calculate", "expression", Arithmetic(), "permitted by the contract", "ada", "12"
    )


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ([], [("not-an-object", "")]),
        ({"rulez": []}, [("unknown-field", "rulez")]),
        ({"rules": {}}, [("not-a-list", "rules")]),
        ({"rules": [rule(), rule(argument="/a")]}, [("second-rule", "rules[1]")]),
        ({"rules": [rule(), rule(task="7"), rule(task="8")]}, []),
        ({"rules": [rule(), {}, rule()]}, [("unknown-kind", "rules[1].kind"), ("second-rule", "rules[2]")]),
        ({"rules": [None] * (MOST_RULES + 1)}, [("too-many-rules", "rules")]),
        ({"tools": []}, [("not-an-object", "tools")]),
        ({"tools": {"a": "reads"}}, [("unknown-tool-kind", "tools.a")]),
        ({"tools": {"a": None}}, [("unknown-tool-kind", "tools.a")]),
        ({"tools": {"caf\u00e9": "read", "cafe\u0301": "read"}}, [("second-tool", "tools.cafe\u0301")]),
        ({"rejection": 1}, [("not-an-object", "rejection")]),
        ({"rejection": {"flags": True}}, [("unknown-field", "rejection.flags")]),
        ({"rejection": {"flag": "yes"}}, [("bad-flag", "rejection.flag")]),
        ({"rejection": {"prefixes": "Error"}}, [("bad-prefixes", "rejection.prefixes")]),
        ({"rejection": {"prefixes": ["Error", ""]}}, [("bad-prefixes", "rejection.prefixes")]),
    ],
)  # fmt: skip
def test_parse_rule_set_names_what_is_wrong(
    document: Json, expected: list[tuple[str, str]]
) -> None:
    _, findings = parse_rule_set(document)
    assert [(finding.code, finding.place) for finding in findings] == expected


def test_the_sound_parts_of_a_bad_document_are_read_for_a_preview() -> None:
    rules, _ = parse_rule_set({"rules": [rule(), 7], "tools": {"a": "read", "b": "?"}})
    assert rules == RuleSet(
        (ArgumentRule("t", "a", Ignore(), "why", "ada"),), (("a", ToolKind.READ),)
    )


@given(rule_sets)
def test_a_document_is_read_back_as_the_same_rule_set(rules: RuleSet) -> None:
    assert parse_rule_set(rule_set_document(rules)) == (rules, ())


@given(json_values)
def test_any_document_is_answered_with_findings(value: Json) -> None:
    for document in (
        value,
        {"rules": value, "tools": value, "rejection": value},
        {"rules": [value]},
    ):
        parse_rule_set(document)
    for kind in ("round_to", "datetime", "default", "alias"):
        fields = {"step": value, "same": value, "zone": value, "value": value, "groups": value}
        parse_rule_set({"rules": [rule(kind=kind, **{name: fields[name]}) for name in fields]})
