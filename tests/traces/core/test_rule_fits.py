from __future__ import annotations

from decimal import Decimal

import pytest

from traces.core.canonical import canonical_text, value_of_text
from traces.core.rule_fits import EQUAL_NUMBERS_STEP, fitting_terms
from traces.core.rules import (
    Alias,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RoundTo,
    RuleTerms,
    SameTime,
    Time,
    Unordered,
    normal_value,
)
from traces.core.values import Json

FINE = RoundTo(EQUAL_NUMBERS_STEP)


@pytest.mark.parametrize(
    ("left", "right", "narrow"),
    [
        ("2 * 600", "600 + 600", (Arithmetic(),)),
        ("1200.0", 1200, (FINE, Arithmetic())),
        ("19.98", "19.979", (RoundTo(Decimal("0.01")),)),
        ("New York", " new  york", (PlainText(),)),
        (["a", "b"], ["b", "a"], (Unordered(),)),
        ("2026-11-30T10:00Z", "2026-11-30T12:00+02:00", (Time(SameTime.INSTANT),)),
        ("2026-11-30T10:00Z", "2026-11-30T12:00Z", (Time(SameTime.DAY),)),
        ("A-17", "A-18", ()),
        (True, 1, ()),
        (None, "none", ()),
    ],
    ids=lambda value: None if isinstance(value, tuple) else canonical_text(value),
)
def test_kinds_that_make_two_values_equal(
    left: Json, right: Json, narrow: tuple[RuleTerms, ...]
) -> None:
    ours, theirs = canonical_text(left), canonical_text(right)
    found = fitting_terms(ours, theirs)

    assert found == (*narrow, Alias(((ours, theirs),)), Ignore())
    for terms in found:
        assert normal_value(terms, value_of_text(ours)) == normal_value(
            terms, value_of_text(theirs)
        )


@pytest.mark.parametrize(("left", "right"), [(None, '"economy"'), ('"economy"', None)])
def test_an_absent_value_may_have_a_default(left: str | None, right: str | None) -> None:
    assert fitting_terms(left, right) == (Default('"economy"'), Ignore())


@pytest.mark.parametrize("value", ["1", None])
def test_equal_values_need_no_rule(value: str | None) -> None:
    assert fitting_terms(value, value) == ()
