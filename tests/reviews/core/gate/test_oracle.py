"""Every check against an independent reading of the design, on seeded random tiers."""

from __future__ import annotations

from collections import Counter

import pytest

from reviews.core.gate.checks import check_of
from reviews.core.gate.deciding import decide_gate
from reviews.core.gate.model import CheckKind
from tests.reviews.core.gate.builders import random_tier
from tests.reviews.core.gate.oracle import oracle

SEEDS = range(400)


@pytest.mark.parametrize("first", range(0, len(SEEDS), 100))
def test_check_is_what_the_design_says_on_random_tiers(first: int) -> None:
    for seed in SEEDS[first : first + 100]:
        evidence = random_tier(seed)
        assert evidence.threshold_set is not None
        for threshold in evidence.threshold_set.thresholds.checks:
            found = check_of(threshold, evidence).result.value
            assert found == oracle(threshold, evidence), (seed, threshold)


def test_random_tiers_bring_every_result_that_a_kind_can_have() -> None:
    seen = Counter(
        (threshold.kind, oracle(threshold, evidence))
        for evidence in map(random_tier, SEEDS)
        if evidence.threshold_set
        for threshold in evidence.threshold_set.thresholds.checks
    )
    never_missed = {
        CheckKind.UNRESOLVED,
        CheckKind.HARNESS_ERRORS,
        CheckKind.FEWEST_TASKS,
        CheckKind.FEWEST_TRIALS,
        CheckKind.FEWEST_HELD_OUT,
    }
    may_not_apply = {CheckKind.JUDGE_CALIBRATION, CheckKind.REGRESSION, CheckKind.DECLARED}
    expected = {
        *((kind, "met") for kind in CheckKind),
        *((kind, "cannot_tell") for kind in CheckKind),
        *((kind, "not_met") for kind in CheckKind if kind not in never_missed),
        *((kind, "does_not_apply") for kind in may_not_apply),
    }
    assert set(seen) == expected
    assert min(seen.values()) >= 5


@pytest.mark.parametrize("seed", SEEDS[:100])
def test_gate_is_blocked_waiting_or_ready_as_its_checks_say(seed: int) -> None:
    evidence = random_tier(seed)
    assert evidence.threshold_set is not None
    results = {oracle(t, evidence) for t in evidence.threshold_set.thresholds.checks}
    gate = decide_gate("2.4.0", [evidence])
    if "not_met" in results:
        assert gate.state == "blocked"
    else:
        assert gate.state == ("waiting" if "cannot_tell" in results else "ready")
