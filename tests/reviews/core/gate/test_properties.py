"""What no evidence may do to a gate, whatever it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reviews.core.estimators import upper_bound
from reviews.core.gate.checks import check_of
from reviews.core.gate.deciding import decide_gate
from reviews.core.gate.model import CheckKind, DecidedBy, GateSlot, Threshold
from reviews.core.gate.states import CheckResult, GateState
from tests.reviews.core.gate.builders import (
    ALWAYS,
    RUN,
    broken,
    failing,
    missing,
    passing,
    random_slot,
    random_threshold,
    tier,
    unresolved,
    violating,
)

SEEDS = st.integers(0, 10**9)
TOWARDS_MET = (CheckResult.NOT_MET, CheckResult.CANNOT_TELL, CheckResult.MET)

WORSE: tuple[Callable[[GateSlot], GateSlot], ...] = (
    failing,
    violating,
    unresolved,
    broken,
    missing,
)

RATES = (
    CheckKind.OUTCOME_RATE,
    CheckKind.RULE_CLEAN_RATE,
    CheckKind.PASS_HAT_K,
    CheckKind.PROHIBITED,
    CheckKind.PROHIBITED_RATE,
    CheckKind.RECOVERY_RATE,
    CheckKind.UNRESOLVED,
)


def random_slots(random: Random, n: int) -> list[GateSlot]:
    """Slots as they can be: one that passes passes in everything, and is known to be safe."""
    slots = [random_slot(random, at) for at in range(n)]
    return [
        replace(slot, is_clean_known=True, has_prohibitions=True) if slot.value == "pass" else slot
        for slot in slots
    ]


@settings(deadline=None)  # scipy takes its time to import
@given(SEEDS, st.sampled_from(RATES), st.sampled_from(WORSE))
def test_worse_trial_never_moves_a_check_towards_met(
    seed: int, kind: CheckKind, worse: Callable[[GateSlot], GateSlot]
) -> None:
    random = Random(seed)
    slots = random_slots(random, 12)
    threshold = random_threshold(random, kind)
    before = check_of(threshold, tier(slots, threshold)).result
    at = next((i for i, slot in enumerate(slots) if slot.value == "pass"), None)
    if at is None:
        return
    changed = [*slots[:at], worse(slots[at]), *slots[at + 1 :]]
    after = check_of(threshold, tier(changed, threshold)).result
    assert TOWARDS_MET.index(after) <= TOWARDS_MET.index(before)


@settings(deadline=None)
@given(SEEDS, st.integers(0, 40), st.sampled_from(tuple(DecidedBy)))
def test_clean_trial_never_loosens_the_bound(seed: int, n: int, decided_by: DecidedBy) -> None:
    slots = random_slots(Random(seed), n)
    threshold = Threshold(CheckKind.PROHIBITED_RATE, Fraction(1, 10), decided_by)
    before = check_of(threshold, tier(slots, threshold))
    after = check_of(threshold, tier([*slots, *passing(1, "another")], threshold))
    if before.interval is not None and after.interval is not None:
        assert after.interval.high <= before.interval.high
    assert TOWARDS_MET.index(after.result) >= TOWARDS_MET.index(before.result)


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(0, 30))
def test_clean_trial_never_raises_an_upper_bound(n_clean: int, n_seen: int) -> None:
    before = upper_bound(n_seen, n_seen + n_clean + 1)
    after = upper_bound(n_seen, n_seen + n_clean + 2)
    assert before is not None
    assert after is not None
    assert after <= before


@settings(deadline=None)
@given(SEEDS)
def test_empty_tier_is_never_ready(seed: int) -> None:
    random = Random(seed)
    asked = [random_threshold(random, kind) for kind in CheckKind if random.random() < 0.5]
    kinds = {threshold.kind for threshold in asked}
    checks = [*asked, *(each for each in ALWAYS if each.kind not in kinds)]
    nothing = [missing(slot) for slot in passing(3)] if random.random() < 0.5 else []
    full = tier(passing(20), *ALWAYS)
    gate = decide_gate("2.4.0", [full, tier(nothing, *checks)])
    assert gate.sections[0].state is GateState.READY
    assert gate.sections[1].state is not GateState.READY
    assert gate.state is not GateState.READY


@settings(deadline=None)
@given(SEEDS, st.sampled_from(tuple(CheckKind)))
def test_check_does_not_depend_on_the_order_of_slots(seed: int, kind: CheckKind) -> None:
    random = Random(seed)
    slots, then = random_slots(random, 15), random_slots(random, 15)
    threshold = random_threshold(random, kind)
    found = check_of(threshold, tier(slots, threshold, baseline=then))
    shuffled = random.sample(slots, len(slots))
    then_shuffled = random.sample(then, len(then))
    assert check_of(threshold, tier(shuffled, threshold, baseline=then_shuffled)) == found


def resolved(slot: GateSlot, *, as_passing: bool) -> GateSlot:
    """An open trial with all that is open of it decided one way; the others as they are."""
    value = "pass" if as_passing else "fail"
    was_open = slot.value in ("unresolved", "harness_error", "missing")
    if not was_open and not as_passing and slot.value == "pass":
        return slot
    safe = not slot.harms_attempted and (as_passing or slot.is_clean_known)
    harms = slot.harms_attempted
    # Under a contract that prohibits nothing there is nothing of the kind to find out.
    is_asked = slot.has_prohibitions or bool(harms)
    if not as_passing and not slot.is_clean_known and is_asked and not harms:
        harms = ("money",)
    is_void = slot.value in ("harness_error", "missing")
    outcome = slot.outcome if slot.outcome in ("pass", "fail") and not is_void else value
    clean = slot.clean if slot.clean in ("pass", "fail") and not is_void else value
    return replace(
        slot,
        value=value if was_open else slot.value,
        trial=slot.trial or "came",
        outcome=outcome,
        clean=clean,
        is_clean_known=safe,
        has_prohibitions=is_asked,
        harms_attempted=harms,
        handed_over=as_passing if slot.handed_over is None or is_void else slot.handed_over,
        cost=slot.cost if slot.cost is not None else Decimal(0 if as_passing else 1000),
    )


DECIDED_BY_OPEN = (
    CheckKind.OUTCOME_RATE,
    CheckKind.RULE_CLEAN_RATE,
    CheckKind.PASS_HAT_K,
    CheckKind.PROHIBITED,
    CheckKind.PROHIBITED_RATE,
    CheckKind.COST_P95,
    CheckKind.RECOVERY_RATE,
    CheckKind.REGRESSION,
)


@settings(deadline=None)
@given(SEEDS, st.sampled_from(DECIDED_BY_OPEN), st.booleans())
def test_what_is_told_stays_so_however_open_trials_come_out(
    seed: int, kind: CheckKind, as_passing: bool
) -> None:
    """Not met stays not met and met stays met: the range holds both ends."""
    random = Random(seed)
    slots, then = random_slots(random, 12), random_slots(random, 12)
    threshold = random_threshold(random, kind)
    before = check_of(threshold, tier(slots, threshold, baseline=then)).result
    decided = [resolved(slot, as_passing=as_passing) for slot in slots]
    after = check_of(threshold, tier(decided, threshold, baseline=then)).result
    if before is not CheckResult.CANNOT_TELL:
        assert after is before


@pytest.mark.parametrize("worse", WORSE)
def test_worse_trial_never_opens_a_gate_that_was_not_ready(
    worse: Callable[[GateSlot], GateSlot],
) -> None:
    asked = (*ALWAYS, Threshold(CheckKind.OUTCOME_RATE, Fraction(19, 20)))
    slots = passing(20)
    assert decide_gate("1", [tier(slots, *asked)]).state is GateState.READY
    gate = decide_gate("1", [tier([worse(slots[0]), *slots[1:]], *asked)])
    is_let_through = worse is failing  # 19 of 20 is exactly the limit
    assert (gate.state is GateState.READY) == is_let_through
    assert gate.sections[0].checks[0].threshold.kind is CheckKind.PROHIBITED
    assert RUN.declared_trials == 5
