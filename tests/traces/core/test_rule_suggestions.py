from __future__ import annotations

import json

import pytest

from traces.core.rule_suggestions import (
    RuleSuggestions,
    Suggestion,
    parse_suggestions,
    suggestions_document,
)
from traces.core.rules import ArgumentRule, Default

FOUND = RuleSuggestions(
    suggestions=(
        Suggestion(
            rule=ArgumentRule("book", "/bags/*", Default("0"), "No bags is none.", "evalsite"),
            n_merged=3,
            n_merged_with_messages=2,
            n_tasks=1,
            examples=("book.bags[*]: 0 or none",),
            values=(("0",),),
            sentence="book.bags[*]: absent is the same as 0.",
        ),
    ),
    n_calls=(4, 0),
    n_tasks=7,
    n_paths=21,
    is_cut=True,
)


def test_parse_suggestions_reads_back_what_was_written() -> None:
    stored = json.loads(json.dumps(suggestions_document(FOUND)).replace("/bags/*", "/bags/x"))

    assert parse_suggestions(stored) == RuleSuggestions(
        suggestions=(
            Suggestion(
                rule=ArgumentRule("book", "/bags/x", Default("0"), "No bags is none.", "evalsite"),
                n_merged=3,
                n_merged_with_messages=2,
                n_tasks=1,
                examples=("book.bags[*]: 0 or none",),
                values=(("0",),),
                sentence="book.bags[*]: absent is the same as 0.",
            ),
        ),
        n_calls=(4, 0),
        n_tasks=7,
        n_paths=21,
        is_cut=True,
    )


def test_parse_suggestions_of_another_version_is_none() -> None:
    assert parse_suggestions({**suggestions_document(FOUND), "version": 0}) is None


def test_parse_suggestions_with_a_rule_that_is_none() -> None:
    with pytest.raises(ValueError, match="default needs an argument"):
        parse_suggestions(suggestions_document(FOUND))
