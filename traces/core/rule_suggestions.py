"""Rules that stored paths suggest, and how often the rules in force applied; as data.

What is searched for, and how: `traces.core.rule_search`. A suggestion is never applied by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from traces.core.records import Finding
from traces.core.rule_documents import parse_rule, rule_data
from traces.core.rules import ArgumentRule
from traces.core.values import JsonObject

SUGGESTIONS_VERSION = 1
"""Changes when stored suggestions can no longer be read, or would come out otherwise."""

_Stored: TypeAlias = dict[str, Any]  # a document that this module wrote


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A rule for the whole system that would merge passing paths.

    Counts are of distinct passing paths at the equivalent level, over all tasks, when this rule
    alone is added. The rule's reason is a draft, and its author the product: whoever takes it up
    writes both anew.
    """

    rule: ArgumentRule
    n_merged: int  # paths fewer, without agent messages
    n_merged_with_messages: int
    n_tasks: int  # in which paths merge without agent messages
    examples: tuple[str, ...]  # "calculate.expression: 4 spellings, all 1200"
    values: tuple[tuple[str, ...], ...]  # canonical texts that each example makes the same
    sentence: str


@dataclass(frozen=True, slots=True)
class RuleSuggestions:
    """What a search found."""

    suggestions: tuple[Suggestion, ...]  # most merged paths first
    n_calls: tuple[int, ...]  # distinct stored calls that each rule in force applied to, in order
    n_tasks: int  # with a passing trial
    n_paths: int  # distinct passing paths that were compared: the sequence has several
    is_cut: bool  # more places differ than are tried


def suggestions_document(found: RuleSuggestions) -> JsonObject:
    """The document that `parse_suggestions` reads back as the same suggestions."""
    return {
        "version": SUGGESTIONS_VERSION,
        "suggestions": [
            {
                "rule": rule_data(one.rule),
                "n_merged": one.n_merged,
                "n_merged_with_messages": one.n_merged_with_messages,
                "n_tasks": one.n_tasks,
                "examples": list(one.examples),
                "values": [list(texts) for texts in one.values],
                "sentence": one.sentence,
            }
            for one in found.suggestions
        ],
        "n_calls": list(found.n_calls),
        "n_tasks": found.n_tasks,
        "n_paths": found.n_paths,
        "is_cut": found.is_cut,
    }


def parse_suggestions(document: JsonObject) -> RuleSuggestions | None:
    """The suggestions of a stored document; None where another version of the program wrote it."""
    if document.get("version") != SUGGESTIONS_VERSION:
        return None
    data: _Stored = document
    return RuleSuggestions(
        suggestions=tuple(
            Suggestion(
                rule=_rule_of(one["rule"]),
                n_merged=one["n_merged"],
                n_merged_with_messages=one["n_merged_with_messages"],
                n_tasks=one["n_tasks"],
                examples=tuple(one["examples"]),
                values=tuple(tuple(texts) for texts in one["values"]),
                sentence=one["sentence"],
            )
            for one in data["suggestions"]
        ),
        n_calls=tuple(data["n_calls"]),
        n_tasks=data["n_tasks"],
        n_paths=data["n_paths"],
        is_cut=data["is_cut"],
    )


def _rule_of(data: JsonObject) -> ArgumentRule:
    rule = parse_rule(data, "")
    if isinstance(rule, Finding):
        raise ValueError(rule.sentence)  # noqa: TRY004 - the document is not whole
    return rule
