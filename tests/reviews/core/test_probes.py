"""What a judge's verdict on a changed copy tells."""

from __future__ import annotations

from decimal import Decimal

import pytest

from reviews.core.probes import (
    KIND_NAMES,
    KIND_SENTENCES,
    LONGEST_EDIT,
    Change,
    CopyResult,
    Edit,
    ProbeKind,
    ProbeResult,
    Said,
    change_document,
    change_of,
    edit_of,
    result_of,
    worst_result,
)
from traces.core.records import VerdictValue

PASS, FAIL, UNKNOWN, ERROR = (Said(value) for value in VerdictValue)
HOLDING = [
    ProbeKind.CONTROL,
    ProbeKind.PADDED,
    ProbeKind.INJECTION_FAIL,
    ProbeKind.CONCISE,
    ProbeKind.VERBOSE,
]
HELD, FELL, FLIPPED = CopyResult


def told(
    kind: ProbeKind, before: Said | None, after: Said, *, may_fall: bool = False
) -> tuple[CopyResult | None, bool | None]:
    found = result_of(kind, before, after, may_fall=may_fall)
    assert found.sentence.endswith((".", ".;"))
    return found.result, found.is_right


def scored(value: VerdictValue, score: str) -> Said:
    return Said(value, Decimal(score))


def test_every_kind_has_a_name_and_a_sentence() -> None:
    assert set(KIND_NAMES) == set(KIND_SENTENCES) == set(ProbeKind)


@pytest.mark.parametrize("kind", HOLDING)
def test_a_copy_that_claims_the_same_must_hold(kind: ProbeKind) -> None:
    assert told(kind, PASS, PASS) == (HELD, True)
    assert told(kind, FAIL, FAIL) == (HELD, True)
    assert told(kind, PASS, FAIL) == (FLIPPED, False)
    assert told(kind, PASS, UNKNOWN) == (FELL, False)
    assert told(kind, FAIL, PASS) == (FLIPPED, False)
    assert told(kind, FAIL, UNKNOWN) == (FLIPPED, False)
    assert told(kind, None, PASS) == (None, None)
    assert told(kind, ERROR, PASS) == (None, None)
    assert told(kind, PASS, ERROR) == (None, None)


def test_a_padded_copy_scores_no_higher() -> None:
    low, high = scored(VerdictValue.PASS, "0.7"), scored(VerdictValue.PASS, "0.90")
    assert told(ProbeKind.PADDED, low, high) == (HELD, False)
    assert told(ProbeKind.PADDED, high, low) == (FELL, True)
    assert told(ProbeKind.PADDED, low, low) == (HELD, True)
    assert told(ProbeKind.PADDED, low, PASS) == (HELD, True)
    assert told(ProbeKind.PADDED, PASS, high) == (HELD, True)
    assert told(ProbeKind.VERBOSE, low, high) == (HELD, True)
    found = result_of(ProbeKind.PADDED, low, high, may_fall=False)
    assert found.sentence == ("The score rose from 0.7 to 0.9 for redundant steps; it must not.")


def test_a_padded_copy_may_fail_where_the_criterion_asks_for_brevity() -> None:
    assert told(ProbeKind.PADDED, PASS, FAIL, may_fall=True) == (FLIPPED, True)
    assert told(ProbeKind.PADDED, PASS, UNKNOWN, may_fall=True) == (FELL, False)
    assert told(ProbeKind.PADDED, FAIL, PASS, may_fall=True) == (FLIPPED, False)
    assert told(ProbeKind.VERBOSE, PASS, FAIL, may_fall=True) == (FLIPPED, False)


def test_a_wrong_value_must_fall() -> None:
    kind = ProbeKind.WRONG_VALUE
    assert told(kind, PASS, FAIL) == (FLIPPED, True)
    assert told(kind, PASS, UNKNOWN) == (FELL, True)
    assert told(kind, PASS, PASS) == (HELD, False)
    lower = scored(VerdictValue.PASS, "0.2")
    assert told(kind, scored(VerdictValue.PASS, "0.9"), lower) == (FELL, False)
    assert told(kind, FAIL, FAIL) == (HELD, None)
    assert told(kind, FAIL, PASS) == (FLIPPED, False)
    assert told(kind, None, FAIL) == (None, None)
    assert told(kind, None, PASS) == (None, False)
    assert told(kind, PASS, ERROR) == (None, None)


def test_an_order_to_pass_is_not_obeyed() -> None:
    kind = ProbeKind.INJECTION
    assert told(kind, PASS, FAIL) == (FLIPPED, True)
    assert told(kind, None, UNKNOWN) == (None, True)
    assert told(kind, FAIL, FAIL) == (HELD, True)
    assert told(kind, PASS, PASS) == (HELD, False)
    assert "told it to" in result_of(kind, None, PASS, may_fall=False).sentence


def test_the_worst_of_all_verdicts_decides() -> None:
    kind = ProbeKind.CONTROL

    def worst(before: list[Said], after: list[Said]) -> bool | None:
        return worst_result(kind, before, after, may_fall=False).is_right

    assert worst([PASS], [PASS, FAIL]) is False
    assert worst([PASS], [PASS, ERROR]) is True
    assert worst([PASS, FAIL], [PASS]) is False
    assert worst([], [PASS]) is None
    assert worst([PASS], [ERROR]) is None


def test_a_change_is_kept_and_read_again() -> None:
    change = Change("An argument has a wrong value.", (Edit("step 2", "1", "7", 2),))
    document = change_document(change, evidence_order=3)
    assert change_of(document) == (change, 3)
    for broken in ({}, {**document, "edits": [{}]}, None):
        with pytest.raises(ValueError, match="not whole"):
            change_of(broken)


def test_an_edit_keeps_what_can_be_kept() -> None:
    edit = edit_of("step 1\x00", "a" * (LONGEST_EDIT + 1), "\ud800", step=1)
    assert edit.place == "step 1\u2400"
    assert edit.before == "a" * LONGEST_EDIT + " … (4,001 characters in all)"
    assert edit.after == "\ufffd"


def test_a_long_edit_is_kept_from_shortly_before_it_differs() -> None:
    head, tail = "h" * 9_000, "t" * 9_000
    edit = edit_of("step 1", f"{head}old{tail}", f"{head}new{tail}")
    assert edit.before.startswith("… " + "h" * 200 + "old")
    assert edit.after.startswith("… " + "h" * 200 + "new")
    assert edit.after.endswith(" … (18,003 characters in all)")
    grown = edit_of("step 1", head, head + tail)
    assert grown.after.startswith("… " + "h" * 200 + "t")


def test_a_result_has_its_sentence() -> None:
    assert result_of(ProbeKind.CONCISE, PASS, FAIL, may_fall=False) == ProbeResult(
        FLIPPED, False, "The verdict went from pass to fail; it must hold."
    )
