"""Argument rules in words: what a rule says, and what it made the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from traces.core.canonical import canonical_text, natural_key, value_of_text
from traces.core.rules import (
    Alias,
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
    normal_value,
    normalise_arguments,
)
from traces.core.values import Json

_LONGEST_QUOTED = 60  # characters of a value inside a sentence


@dataclass(frozen=True, slots=True)
class Merge:
    """Values that differ, made the same by one rule."""

    rule: ArgumentRule
    values: tuple[str, ...]  # distinct canonical texts, in natural order
    may_be_absent: bool
    sentence: str


def argument_name(tool: str, tokens: tuple[str | None, ...]) -> str:
    """For people: `calculate.expression`, `book.flights[*].date`, `book["a.b"]`."""
    return tool + "".join(_part_name(token) for token in tokens)


def rule_name(rule: ArgumentRule) -> str:
    """The argument that a rule is about, for people."""
    return argument_name(rule.tool, rule.tokens)


def rule_sentence(rule: ArgumentRule) -> str:
    """What the rule says, as one sentence."""
    return f"{rule_name(rule)}: {_terms_sentence(rule.terms)}"


def merge_sentence(
    rule: ArgumentRule, values: Sequence[Json], *, may_be_absent: bool = False
) -> str:
    """What a rule made the same: `calculate.expression: 3 spellings, all 1200`."""
    texts = _distinct_texts(values)
    return f"{rule_name(rule)}: {_merge_words(rule.terms, texts, may_be_absent=may_be_absent)}"


def merges_of(
    tool: str, arguments: Sequence[Json], rules: RuleSet, task_id: str | None = None
) -> tuple[Merge, ...]:
    """Which rules made calls of one tool the same, one merge for each rule and normal value.

    `arguments` are those of calls that are equal under the rules, one for each trial.
    """
    values: dict[tuple[ArgumentRule, str], set[str]] = {}
    n_calls: Counter[tuple[ArgumentRule, str]] = Counter()
    for given in arguments:
        _, uses = normalise_arguments(tool, given, rules, task_id)
        keys = [(use.rule, canonical_text(use.normal)) for use in uses]
        n_calls.update(set(keys))
        for key, use in zip(keys, uses, strict=True):
            values.setdefault(key, set()).add(canonical_text(use.value))
    merges = (
        _merge(rule, texts, may_be_absent=n_calls[rule, normal] < len(arguments))
        for (rule, normal), texts in values.items()
    )
    return tuple(merge for merge in merges if len(merge.values) + merge.may_be_absent > 1)


def _merge(rule: ArgumentRule, texts: set[str], *, may_be_absent: bool) -> Merge:
    absent = may_be_absent and isinstance(rule.terms, Ignore | Default)
    values = tuple(sorted(texts, key=natural_key))
    words = _merge_words(rule.terms, values, may_be_absent=absent)
    return Merge(rule, values, absent, f"{rule_name(rule)}: {words}")


def _distinct_texts(values: Sequence[Json]) -> tuple[str, ...]:
    return tuple(sorted({canonical_text(value) for value in values}, key=natural_key))


def _part_name(token: str | None) -> str:
    if token is None:
        return "[*]"
    return f".{token}" if token.isidentifier() else f"[{canonical_text(token)}]"


def _terms_sentence(terms: RuleTerms) -> str:
    match terms:
        case Ignore():
            return "not compared."
        case RoundTo(step):
            return f"numbers with the same nearest multiple of {step} are equal."
        case Arithmetic():
            return "expressions with the same value are equal."
        case PlainText():
            return "texts that differ in case, white space or Unicode form alone are equal."
        case Time(same, zone):
            if same is SameTime.INSTANT:
                return "times of the same instant are equal."
            return f"times on the same day in {zone} are equal."
        case Unordered():
            return "lists with the same elements in any order are equal."
        case Default(value):
            return f"absent is the same as {_quoted(value)}."
        case Alias(groups):
            equalities = "; ".join(" = ".join(map(_quoted, group)) for group in groups)
            return f"these values are equal: {equalities}."
        case _:
            assert_never(terms)


def _merge_words(terms: RuleTerms, texts: tuple[str, ...], *, may_be_absent: bool) -> str:
    absent = " or none" if may_be_absent else ""
    match terms:
        case Ignore():
            return f"{_counted(len(texts), 'value')}{absent}, not compared"
        case RoundTo(step):
            return f"{_counted(len(texts), 'number')}, all {_common(terms, texts)} to {step}"
        case Arithmetic():
            return f"{_counted(len(texts), 'spelling')}, all {_common(terms, texts)}"
        case PlainText():
            return f"{_counted(len(texts), 'spelling')} of one text, all {_common(terms, texts)}"
        case Time(same, zone):
            common = _common(terms, texts)
            if same is SameTime.INSTANT:
                return f"{_counted(len(texts), 'spelling')} of {common}"
            return f"{_counted(len(texts), 'time')}, all on {common} in {zone}"
        case Unordered():
            return f"{_counted(len(texts), 'order')} of one list"
        case Default(value):
            return f"{_quoted(value)}{absent}"
        case Alias():
            return f"{' = '.join(map(_quoted, texts))}, declared equal"
        case _:
            assert_never(terms)


def _common(terms: RuleTerms, texts: tuple[str, ...]) -> str:
    """The normal value that the texts share; "equal" where they are not all alike."""
    normals = {canonical_text(normal_value(terms, value_of_text(text))): text for text in texts}
    if len(normals) != 1:
        return "equal"
    (text,) = normals.values()
    normal = normal_value(terms, value_of_text(text))
    if isinstance(normal, list) and normal[0] != "exact":
        return _quoted(str(normal[1]))
    return _quoted(text)


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _quoted(text: str) -> str:
    return text if len(text) <= _LONGEST_QUOTED else f"{text[: _LONGEST_QUOTED - 1]}…"
