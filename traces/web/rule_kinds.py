"""The kinds of argument rules as a form offers them: what each does, in one line."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.common.formatting import counted
from traces.core.canonical import value_of_text
from traces.core.rule_words import merge_sentence, rule_name
from traces.core.rules import ArgumentRule, RuleKind, RuleTerms
from traces.core.trajectory import ToolKind
from traces.selectors.rule_choices import MOST_COUNTED

_LONGEST_NAME = 200
NO_KIND = "not set: counts as write"
KIND_WORDS = {
    ToolKind.READ: "reads",
    ToolKind.WRITE: "writes",
    ToolKind.HANDOFF: "hands over to a person",
}


@dataclass(frozen=True, slots=True)
class KindWords:
    """A kind of rule in words. `fields` are those of the form that it alone needs."""

    kind: RuleKind
    label: str
    line: str
    fields: tuple[str, ...] = ()


KINDS = (
    KindWords(
        RuleKind.ARITHMETIC,
        "Arithmetic value",
        'Expressions with the same value are equal: "2 * 600" = "1200".',
    ),
    KindWords(
        RuleKind.ROUND_TO,
        "Rounded number",
        'Numbers, also written as text, are equal when they round to the same multiple of a step: "1200.0" = 1200.',
        ("step",),
    ),
    KindWords(
        RuleKind.TEXT,
        "Spelling of a text",
        'Case, white space and Unicode form do not count: "New York" = "new  york".',
    ),
    KindWords(
        RuleKind.DATETIME,
        "Time",
        "Times of the same instant are equal, or those on the same day: 10:00Z = 12:00+02:00.",
        ("same", "zone"),
    ),
    KindWords(
        RuleKind.UNORDERED,
        "List in any order",
        'Lists with the same elements, each as often, are equal: ["a", "b"] = ["b", "a"].',
    ),
    KindWords(
        RuleKind.DEFAULT,
        "Default value",
        "Leaving the argument out is the same as giving this one value.",
        ("value",),
    ),
    KindWords(
        RuleKind.ALIAS,
        "Declared equal",
        "The values that you list are equal. All others stay exact.",
        ("groups",),
    ),
    KindWords(
        RuleKind.IGNORE,
        "Not compared",
        "Any value is the same, and so is none. For free wording only: it hides every difference.",
    ),
)


def fit_words(tool: str, argument: str, terms: RuleTerms, values: tuple[str | None, ...]) -> str:
    """What terms make of values that they merge: "2 spellings, all 1200"."""
    rule = ArgumentRule(tool, argument, terms)
    present = [value_of_text(value) for value in values if value is not None]
    sentence = merge_sentence(rule, present, may_be_absent=None in values)
    return sentence.removeprefix(f"{rule_name(rule)}: ")


def short_name(tool: str) -> str:
    """The name of a tool in a list of many; a rule's own page shows it whole."""
    return tool if len(tool) <= _LONGEST_NAME else f"{tool[: _LONGEST_NAME - 1]}…"


def calls_words(n: int) -> str:
    """How often a tool was called, as far as that was counted."""
    if n >= MOST_COUNTED:
        return f"{MOST_COUNTED:,} distinct calls or more"
    return counted(n, "distinct call") if n else "in no stored trace"
