"""Which kinds of rule make two values equal: what to offer where a reader sees a difference."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from traces.core.canonical import canonical_text, value_of_text
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

EQUAL_NUMBERS_STEP = Decimal("0.000001")
"""A grid that merges numbers which differ in their form, and hardly any others."""

_COARSER_STEPS = tuple(map(Decimal, ("0.001", "0.01", "0.1", "1")))


def fitting_terms(left: str | None, right: str | None) -> tuple[RuleTerms, ...]:
    """Terms under which two values are equal, the most usual first, one for each kind.

    Values are canonical texts; None: the argument is absent. Declaring the two equal and not
    comparing at all always fit, and come last. Two values that are equal need no rule.
    """
    if left == right:
        return ()
    if left is None or right is None:
        value = right if left is None else left
        assert value is not None
        return (Default(value), Ignore())
    chosen: dict[type[RuleTerms], RuleTerms] = {}
    for terms in _candidates():
        if type(terms) not in chosen and _makes_equal(terms, left, right):
            chosen[type(terms)] = terms
    return (*chosen.values(), Alias(((left, right),)), Ignore())


def _candidates() -> Iterator[RuleTerms]:
    yield Unordered()
    yield Time(SameTime.INSTANT)
    yield PlainText()
    yield RoundTo(EQUAL_NUMBERS_STEP)
    yield Arithmetic()
    yield from map(RoundTo, _COARSER_STEPS)
    yield Time(SameTime.DAY)


def _makes_equal(terms: RuleTerms, left: str, right: str) -> bool:
    ours = normal_value(terms, value_of_text(left))
    theirs = normal_value(terms, value_of_text(right))
    return canonical_text(ours) == canonical_text(theirs)
