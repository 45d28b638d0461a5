"""A gate from its tiers: states and the sentences that say them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from reviews.core.gate.deciding import decide_gate
from reviews.core.gate.model import (
    CheckKind,
    Gate,
    GateSlot,
    RunOfRelease,
    Threshold,
    Thresholds,
    TierEvidence,
)
from reviews.core.gate.states import GateState
from reviews.core.gate.thresholds import TEMPLATES
from tests.reviews.core.gate.builders import (
    ALWAYS,
    RUN,
    failing,
    missing,
    passing,
    tier,
    unresolved,
    violating,
)

RATE = Threshold(CheckKind.OUTCOME_RATE, Fraction(19, 20))
COST = Threshold(CheckKind.COST_P95, Fraction(1, 100))


def bare(*slots: GateSlot, runs: tuple[RunOfRelease, ...] = (RUN,)) -> TierEvidence:
    """A section without thresholds in force."""
    return TierEvidence("", "", None, slots, runs)


def test_gate_is_ready_when_all_is_met() -> None:
    gate = decide_gate("2.4.0", [tier(passing(20), *ALWAYS, RATE)])
    (section,) = gate.sections
    assert (gate.state, section.state) == (GateState.READY, GateState.READY)
    assert gate.sentence == (
        "Release 2.4.0 is ready to be signed: all five checks are met or do not apply."
    )
    assert section.sentence == "All five thresholds are met."
    assert (section.tier, section.tier_uuid, section.n_slots, section.n_tasks) == (
        "Payments",
        "tier-uuid",
        20,
        1,
    )
    assert [check.threshold for check in section.checks] == [*ALWAYS, RATE]


def test_what_does_not_apply_counts_as_met() -> None:
    judges = Threshold(CheckKind.JUDGE_CALIBRATION)
    regression = Threshold(CheckKind.REGRESSION, Fraction(0))
    one = decide_gate("1", [tier(passing(20), *ALWAYS, judges)])
    two = decide_gate("1", [tier(passing(20), *ALWAYS, judges, regression)])
    single = decide_gate("1", [tier(passing(20), RATE)])
    assert [gate.state for gate in (one, two, single)] == [GateState.READY] * 3
    assert [gate.sections[0].sentence for gate in (one, two, single)] == [
        "All four thresholds are met, and one does not apply.",
        "All four thresholds are met, and two do not apply.",
        "The one threshold is met.",
    ]


def test_blocked_gate_names_what_is_not_met() -> None:
    slots = passing(20)
    one = decide_gate("2.4.0", [tier(slots, *ALWAYS, COST)])
    assert (one.state, one.sentence) == (
        GateState.BLOCKED,
        "Release 2.4.0 is blocked: cost is not met.",
    )
    assert one.sections[0].sentence == "One threshold is not met."
    two = decide_gate("2.4.0", [tier([violating(slots[0]), *slots[1:]], *ALWAYS, COST)])
    assert two.sentence == "Release 2.4.0 is blocked: prohibited actions and cost are not met."
    assert two.sections[0].sentence == "Two thresholds are not met."


def test_blocked_gate_says_how_many_cannot_be_told_yet() -> None:
    slots = passing(20)
    open_ = [unresolved(slots[0]), missing(slots[1]), *slots[2:]]
    gate = decide_gate("2.4.0", [tier(open_, *ALWAYS, replace(COST, limit=Fraction(0)))])
    assert gate.sentence == (
        "Release 2.4.0 is blocked: cost is not met, and three checks cannot be told yet."
    )
    assert gate.sections[0].sentence == ("One threshold is not met, and three cannot be told yet.")
    one = decide_gate("1", [tier([missing(slots[0]), *slots[1:]], ALWAYS[-1], COST)])
    assert one.sentence == (
        "Release 1 is blocked: cost is not met, and one check cannot be told yet."
    )


def test_waiting_gate_names_what_cannot_be_told() -> None:
    slots = passing(20)
    gate = decide_gate("2.4.0", [tier([unresolved(slots[0]), *slots[1:]], *ALWAYS, RATE)])
    assert (gate.state, gate.sentence) == (
        GateState.WAITING,
        (
            "Release 2.4.0 is waiting for evidence: prohibited actions and unresolved trials cannot be "
            "told yet."
        ),
    )
    assert gate.sections[0].sentence == "Two thresholds cannot be told yet."
    single = decide_gate("1", [tier([unresolved(slots[0])], ALWAYS[1])])
    assert single.sections[0].sentence == "One threshold cannot be told yet."


def test_many_checks_are_named_up_to_four() -> None:
    asked = TEMPLATES[2].thresholds.checks
    gate = decide_gate("1", [tier([], *asked)])
    assert gate.sentence == (
        "Release 1 is waiting for evidence: outcome rate, rule-clean rate, rule-clean pass^5, "
        "prohibited actions and 9 more cannot be told yet."
    )
    assert gate.sections[0].sentence == "13 thresholds cannot be told yet."


def test_gate_is_ready_only_if_every_tier_is() -> None:
    ready = tier(passing(20), *ALWAYS, name="Drafting")
    waiting = tier([], *ALWAYS)
    blocked = tier(passing(20), *ALWAYS, COST)
    assert [
        decide_gate("1", tiers).state for tiers in ([ready, waiting], [ready, waiting, blocked])
    ] == [
        GateState.WAITING,
        GateState.BLOCKED,
    ]
    assert decide_gate("1", [ready, waiting]).sentence == (
        "Release 1 is waiting for evidence: prohibited actions (Payments), unresolved trials "
        "(Payments), number of trials (Payments) and declared trials (Payments) cannot be told yet."
    )
    assert decide_gate("1", [ready, blocked]).sentence == (
        "Release 1 is blocked: cost (Payments) is not met."
    )


def test_section_without_thresholds_waits_and_says_why() -> None:
    nothing = decide_gate("2.4.0", [bare()])
    assert nothing.state is GateState.WAITING
    assert nothing.sections[0].checks == ()
    assert nothing.sentence == (
        "Release 2.4.0 is waiting for evidence. No thresholds were in force when the first run "
        "began, so nobody can tell until an owner has it evaluated again."
    )
    some = decide_gate(
        "2.4.0", [tier(passing(20), *ALWAYS), bare(*passing(2, "b"), *passing(1, "a"))]
    )
    assert some.state is GateState.WAITING
    assert some.sentence == (
        "Release 2.4.0 is waiting for evidence. No thresholds were in force for 2 tasks when the "
        "first run began, so nobody can tell until an owner has it evaluated again: a and b."
    )
    assert (some.sections[1].n_slots, some.sections[1].n_tasks) == (3, 2)
    many = decide_gate("1", [bare(*(slot for i in range(6) for slot in passing(1, f"t{i}")))])
    assert many.sections[0].sentence.endswith(": t0, t1, t2, t3 and 2 more.")


def test_release_without_a_run_waits() -> None:
    left_out = replace(RUN, is_left_out=True)
    for runs in ((), (left_out,)):
        gate = decide_gate("2.4.0", [bare(runs=runs)])
        assert gate.sentence == (
            "Release 2.4.0 is waiting for evidence. No run that counts has begun, so no thresholds "
            "apply yet."
        )


def test_gate_of_no_tier_and_of_no_threshold_waits() -> None:
    assert decide_gate("2.4.0", []) == Gate(
        GateState.WAITING,
        "Release 2.4.0 is waiting for evidence: there are no thresholds to decide it by.",
        (),
    )
    gate = decide_gate("1", [tier(passing(1))])
    assert (gate.state, gate.sections[0].sentence) == (
        GateState.WAITING,
        "Nothing is asked for.",
    )


@pytest.mark.parametrize(("n", "words"), [(1, "1 trial was"), (3, "3 trials were")])
def test_trials_decided_by_a_party_are_told(n: int, words: str) -> None:
    gate = decide_gate("1", [replace(tier(passing(20), RATE), n_by_party=n)])
    assert gate.sections[0].sentence == (
        f"The one threshold is met. {words} decided by a party: by somebody with a verdict of their "
        "own."
    )


def test_owners_who_have_to_sign_are_the_most_that_a_tier_asks_for() -> None:
    one = tier(passing(1), RATE)
    assert one.threshold_set is not None
    two = replace(
        one, threshold_set=replace(one.threshold_set, thresholds=Thresholds((RATE,), n_owners=2))
    )
    assert [decide_gate("1", tiers).n_owners for tiers in ([one], [one, two], [], [bare()])] == [
        1, 2, 1, 1,
    ]  # fmt: skip


def test_failing_trial_never_opens_a_gate() -> None:
    slots = passing(40)
    states = [
        decide_gate("1", [tier([*map(failing, slots[:n]), *slots[n:]], *ALWAYS, RATE)]).state
        for n in range(6)
    ]
    assert states == [GateState.READY] * 3 + [GateState.BLOCKED] * 3
