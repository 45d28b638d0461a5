"""What signatures come to, and what may be signed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.core.gate.model import (
    Check,
    CheckKind,
    Gate,
    Section,
    Threshold,
    Thresholds,
    ThresholdSetInForce,
)
from reviews.core.gate.signing import (
    MOST_CHARACTERS,
    NEVER,
    NO_THRESHOLDS,
    NOTHING_TO_WAIVE,
    READY_NEEDS_NO_WAIVER,
    TRANSITIONS,
    UNKNOWN_WAIVER,
    Decision,
    OpenCheck,
    Signature,
    SigningEvent,
    Terms,
    approval_refusal,
    decisions_of,
    diagram_text,
    last_approval,
    sign_off_state,
    table_text,
    terms_refusal,
    waivable,
    waiver_refusal,
    walked_state,
)
from reviews.core.gate.states import CheckResult, GateState, Mark, Meaning, SignOffState

TODAY = date(2026, 12, 1)
APPROVED = Terms(Meaning.APPROVED, "Refunds", "Pilot", date(2027, 1, 1))
REJECTED = Terms(Meaning.REJECTED, reason="No.", next_action="Mend it.")
WAIVER = replace(
    APPROVED,
    meaning=Meaning.WAIVER,
    reason="Known.",
    waived_tier="payments",
    waived_check="cost_p95",
)


def signature(
    key: int,
    terms: Terms = APPROVED,
    *,
    by: int = 1,
    digest: str = "d1",
    needed: int = 1,
    void: int | None = None,
) -> Signature:
    return Signature(key, by, digest, terms, needed, order=key, voided_order=void)


def state(
    *signatures: Signature, digest: str | None = "d1"
) -> tuple[SignOffState, tuple[Mark, ...]]:
    standing = sign_off_state(signatures, digest=digest, today=TODAY)
    return standing.state, standing.marks


def test_no_signature_and_each_meaning() -> None:
    assert state() == (SignOffState.NONE, ())
    assert state(signature(1)) == (SignOffState.APPROVED, ())
    assert state(signature(1, WAIVER)) == (SignOffState.WAIVER, ())
    assert state(signature(1, REJECTED)) == (SignOffState.REJECTED, ())


def test_two_owners_make_one_approval() -> None:
    first, second = signature(1, needed=2), signature(2, needed=2, by=2)
    assert state(first) == (SignOffState.PARTLY, ())
    assert state(first, second) == (SignOffState.APPROVED, ())
    assert decisions_of([first, second]) == (Decision((first, second)),)
    same = replace(second, by=1)
    assert not Decision((first,)).takes(same)
    assert not Decision((first,)).takes(replace(second, digest="d2"))
    assert not Decision((first,)).takes(replace(second, terms=replace(APPROVED, scope="Everybody")))
    assert Decision((first,)).takes(replace(second, terms=replace(APPROVED, reason="Mine")))


def test_void_brings_back_what_stood_before() -> None:
    approved, rejected = signature(1), signature(2, REJECTED)
    assert state(approved, rejected)[0] is SignOffState.REJECTED
    assert state(approved, replace(rejected, voided_order=3))[0] is SignOffState.APPROVED
    void = replace(approved, voided_order=4)
    assert state(void, replace(rejected, voided_order=3))[0] is SignOffState.VOID
    assert state(void, rejected)[0] is SignOffState.REJECTED
    waived = signature(1, WAIVER)
    assert state(waived, replace(rejected, voided_order=3))[0] is SignOffState.WAIVER
    first, second = signature(1, needed=2), signature(2, needed=2, by=2, void=3)
    assert state(first, second)[0] is SignOffState.PARTLY


def test_a_rejection_needs_one_owner_where_approvals_need_two() -> None:
    assert state(signature(1, needed=2), signature(2, REJECTED, needed=2))[0] is (
        SignOffState.REJECTED
    )


def test_marks() -> None:
    late = replace(APPROVED, expires_on=date(2026, 11, 30))
    last_day = replace(APPROVED, expires_on=TODAY)
    assert state(signature(1), digest="d2")[1] == (Mark.STALE,)
    assert state(signature(1), digest=None)[1] == (Mark.STALE,)
    assert state(signature(1, late), digest="d2")[1] == (Mark.STALE, Mark.EXPIRED)
    assert state(signature(1, last_day))[1] == ()
    assert state(signature(1, needed=2), digest="d2")[1] == (Mark.STALE,)
    assert state(signature(1, REJECTED), digest="d2")[1] == ()
    standing = sign_off_state([signature(1)], digest="d1", today=TODAY)
    assert (standing.is_approval, standing.is_valid) == (True, True)
    stale = sign_off_state([signature(1, WAIVER)], digest="d2", today=TODAY)
    assert (stale.is_approval, stale.is_valid) == (True, False)
    assert not sign_off_state([], digest="d1", today=TODAY).is_approval


def test_last_approval_is_complete_and_no_rejection() -> None:
    assert last_approval([]) is None
    assert last_approval([signature(1, needed=2)]) is None
    assert last_approval([signature(1), signature(2, REJECTED)]) == Decision((signature(1),))
    assert last_approval([signature(1, void=3)]) is None


def test_what_cannot_have_happened_has_the_state_of_what_stands() -> None:
    # Two open approvals over different evidence: no service stores them.
    both = (signature(1, needed=2), signature(2, needed=2, digest="d2"))
    assert walked_state(both) is None
    assert walked_state((*both, signature(3, REJECTED))) is None
    assert state(*both, digest="d2")[0] is SignOffState.PARTLY
    voids = tuple(replace(each, voided_order=5) for each in both)
    assert state(*voids)[0] is SignOffState.VOID


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["approve", "waive", "reject", "void"]),
            st.integers(1, 3),
            st.integers(0, 5),
        ),
        max_size=12,
    ),
    st.integers(1, 2),
)
def test_the_table_leads_to_the_newest_decision_that_stands(
    acts: list[tuple[str, int, int]], needed: int
) -> None:
    terms = {"approve": APPROVED, "waive": WAIVER, "reject": REJECTED}
    signatures: list[Signature] = []
    for order, (act, by, which) in enumerate(acts, start=1):
        standing = [s for s in signatures if s.voided_order is None]
        if act == "void":
            if standing:
                chosen = standing[which % len(standing)]
                signatures[signatures.index(chosen)] = replace(chosen, voided_order=order)
            continue
        new = signature(order, terms[act], by=by, needed=needed)
        decisions = decisions_of(standing)
        is_open = bool(decisions) and not decisions[-1].is_complete
        if is_open and act != "reject" and not decisions[-1].takes(new):
            continue  # what the service refuses
        signatures.append(new)
    decisions = decisions_of(signatures)
    wanted = SignOffState.VOID if signatures else SignOffState.NONE
    if decisions:
        wanted = decisions[-1].state
    assert walked_state(signatures) is wanted


def test_the_table_has_an_answer_for_every_signing_in_every_state() -> None:
    for before in SignOffState:
        for event in (SigningEvent.APPROVED, SigningEvent.WAIVED, SigningEvent.REJECTED):
            assert (before, event) in TRANSITIONS
    assert (SignOffState.NONE, SigningEvent.VOID_LEAVES_NONE) not in TRANSITIONS
    assert (SignOffState.VOID, SigningEvent.VOID_LEAVES_NONE) not in TRANSITIONS


def test_the_docs_draw_this_table() -> None:
    text = (Path(__file__).resolve().parents[4] / "docs" / "sign-off.md").read_text()
    assert table_text() in text
    assert f"```mermaid\n{diagram_text()}```" in text


# --- what may be signed


def gate(*results: tuple[str, CheckKind, CheckResult], without_thresholds: bool = False) -> Gate:
    tiers = dict.fromkeys(tier for tier, _, _ in results)
    in_force = ThresholdSetInForce(1, "0" * 64, "Ines", "t", "t", Thresholds(()))
    sections = tuple(
        Section(
            tier=tier,
            tier_uuid=f"uuid of {tier}",
            threshold_set=None if without_thresholds else in_force,
            state=GateState.READY,
            sentence="",
            checks=tuple(
                Check(Threshold(kind, Fraction(1)), result, None, "")
                for name, kind, result in results
                if name == tier
            ),
            n_slots=0,
            n_tasks=0,
        )
        for tier in tiers
    )
    is_ready = all(r in (CheckResult.MET, CheckResult.DOES_NOT_APPLY) for _, _, r in results)
    return Gate(GateState.READY if is_ready and sections else GateState.BLOCKED, "", sections)


COST = ("payments", CheckKind.COST_P95, CheckResult.NOT_MET)
RATE = ("payments", CheckKind.OUTCOME_RATE, CheckResult.MET)
OTHER = ("drafting", CheckKind.COST_P95, CheckResult.CANNOT_TELL)
SAFE = ("payments", CheckKind.PROHIBITED, CheckResult.NOT_MET)
NOTHING = ("drafting", CheckKind.DECLARED, CheckResult.DOES_NOT_APPLY)


def test_only_a_ready_gate_is_approved() -> None:
    assert approval_refusal(gate(RATE, NOTHING)) == ""
    assert approval_refusal(gate(RATE, COST)) == (
        "Only a gate that is ready can be approved; this one is blocked."
    )


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (gate(RATE, COST, NOTHING), OpenCheck("payments", "uuid of payments", CheckKind.COST_P95)),
        (gate(RATE, NOTHING), READY_NEEDS_NO_WAIVER),
        (
            gate(RATE, COST, OTHER),
            "A waiver covers one check; 2 checks are neither met nor do they not apply.",
        ),
        (gate(SAFE), NEVER),
        (gate(COST, without_thresholds=True), NO_THRESHOLDS),
        (gate(), NO_THRESHOLDS),
    ],
)
def test_the_one_check_that_a_waiver_names(found: Gate, wanted: OpenCheck | str) -> None:
    assert waivable(found) == wanted


@pytest.mark.parametrize(
    ("found", "tier", "check", "sentence"),
    [
        (gate(RATE, COST), "payments", "cost_p95", ""),
        (gate(RATE, COST), "payments", "outcome_rate", NOTHING_TO_WAIVE),
        (gate(RATE, COST), "drafting", "cost_p95", UNKNOWN_WAIVER),
        (gate(RATE, COST), "payments", "nonsense", UNKNOWN_WAIVER),
        (gate(SAFE), "payments", "prohibited", NEVER),
        (gate(RATE), "payments", "outcome_rate", READY_NEEDS_NO_WAIVER),
    ],
)
def test_waiver_refusal(found: Gate, tier: str, check: str, sentence: str) -> None:
    assert waiver_refusal(found, tier=tier, check=check) == sentence


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        (APPROVED, ""),
        (WAIVER, ""),
        (REJECTED, ""),
        (replace(APPROVED, intended_use=" "), "The intended use is needed."),
        (replace(APPROVED, scope=""), "The scope is needed."),
        (replace(APPROVED, expires_on=None), "An expiry date is needed."),
        (replace(APPROVED, expires_on=TODAY), "The expiry date is a day after today."),
        (replace(WAIVER, reason=""), "The reason is needed."),
        (replace(REJECTED, reason=""), "The reason is needed."),
        (replace(REJECTED, next_action=""), "The next action is needed."),
        (
            replace(APPROVED, scope="x" * (MOST_CHARACTERS + 1)),
            "The scope has at most 4,000 characters.",
        ),
        (replace(APPROVED, scope="\u200b \u2060"), "The scope is needed."),
        (replace(REJECTED, next_action="\u200b"), "The next action is needed."),
        (replace(REJECTED, reason="\0"), "The reason holds a character that cannot be stored."),
    ],
)
def test_terms_refusal(terms: Terms, sentence: str) -> None:
    assert terms_refusal(terms, today=TODAY) == sentence
