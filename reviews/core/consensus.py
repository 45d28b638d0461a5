"""What the people who labelled an item blind say of it together."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from traces.core.records import VerdictValue


class Consensus(StrEnum):
    """What the people say of an item: two alike, or two of three."""

    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    SPLIT = "split"  # three people, three answers


_ALIKE = {
    VerdictValue.PASS: Consensus.PASS,
    VerdictValue.FAIL: Consensus.FAIL,
    VerdictValue.UNKNOWN: Consensus.UNKNOWN,
}
"""People give no other answer: an error is a grader's, and says nothing of an item."""


def needs_third(first: VerdictValue, second: VerdictValue) -> bool:
    """Whether a third person is asked, because the first two differ."""
    return first is not second


def consensus_of(values: Sequence[VerdictValue], *, n_needed: int = 2) -> Consensus | None:
    """What the labels of an item, in the order of their rounds, come to.

    None while labels are missing: with none, and with fewer than `n_needed` of them alike where a
    third is still to come. One label alone decides only where the set asks for no second one. Three
    answers of three people are a split. Raises ValueError for a value that people do not give, and
    for more than three labels.
    """
    if len(values) > 3:
        raise ValueError(f"an item has at most three labels, not {len(values)}")
    said = [_said(value) for value in values]
    if not said or len(said) < min(n_needed, 2):
        return None
    if len(said) == 1:
        return said[0]
    for one in Consensus:
        if said.count(one) >= 2:
            return one
    return Consensus.SPLIT if len(said) == 3 else None


def _said(value: VerdictValue) -> Consensus:
    if value not in _ALIKE:
        raise ValueError(f"people do not label an item {value.value!r}")
    return _ALIKE[value]
