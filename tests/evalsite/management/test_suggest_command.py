"""`suggest`."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evalsite.management.commands import suggest
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.rules import in_force
from traces.core.rule_changes import RuleChange
from traces.core.rule_suggestions import parse_suggestions
from traces.core.rules import ArgumentRule, Arithmetic, Ignore
from traces.selectors.rule_reach import RulesMovedError

pytestmark = pytest.mark.django_db

NOTE = ArgumentRule("calculate", "note", Ignore(), "Free words.", "ada")


def printed(cast: Cast, *words: str) -> str:
    out = StringIO()
    call_command("suggest", "--system", cast.system.slug, *words, stdout=out)
    return out.getvalue()


def load(cast: Cast, *expressions: str) -> None:
    ingest(
        cast.system,
        [
            record(trial=trial, calls=[("calculate", {"expression": text})])
            for trial, text in enumerate(expressions)
        ],
    )


def test_suggest_prints_rules_with_what_they_merge_and_rules_that_never_applied(
    cast: Cast,
) -> None:
    load(cast, "2", "1  + 1", "7", "1+" * 50 + "1", "1 + " * 50 + "1")
    in_force(cast, RuleChange(put=(NOTE,)))

    assert printed(cast).splitlines() == [
        "1 task with passing trials; 5 paths that differ from others by arguments alone",
        (
            "arithmetic: calculate.expression: expressions with the same value are equal. "
            "2 passing paths fewer at the equivalent level, in 1 task."
        ),
        "    calculate.expression: 2 spellings, all 2",
        '        "1  + 1"',
        '        "2"',
        "    calculate.expression: 2 spellings, all 51",
        f'        "{"1 + " * 22}…',
        f'        "{"1+" * 44}…',
        "In force, and never applied: calculate.note: not compared.",
    ]


def test_suggest_json_is_the_stored_document(cast: Cast) -> None:
    load(cast, "2", "1 + 1")

    found = parse_suggestions(json.loads(printed(cast, "--json")))

    assert found is not None
    assert [one.rule.terms for one in found.suggestions] == [Arithmetic()]


def test_suggest_says_that_there_is_nothing_to_suggest(cast: Cast) -> None:
    load(cast, "2")

    assert printed(cast).splitlines()[1:] == ["No rule is suggested."]


def test_suggest_says_that_not_all_places_were_tried(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(cast, "2", "1 + 1")
    monkeypatch.setattr("traces.core.rule_search.MOST_CANDIDATES", 0)

    assert printed(cast).splitlines()[1:] == [
        "No rule is suggested.",
        "Only some of the places that differ were tried.",
    ]


def test_suggest_marks_what_cannot_be_seen(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record(trial=trial, calls=[("pay\u202e\x1b[31m", {"note": text})])
            for trial, text in enumerate(("a b", "A b"))
        ],
    )

    text = printed(cast)

    assert "No rule" not in text
    assert not {"\u202e", "\x1b"} & set(text)


def test_suggest_while_rules_move_asks_to_try_again(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved(*_: Any, **__: Any) -> None:
        raise RulesMovedError

    monkeypatch.setattr(suggest, "suggested_rules", moved)

    with pytest.raises(CommandError, match="try again"):
        printed(cast)
