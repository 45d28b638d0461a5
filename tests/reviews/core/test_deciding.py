"""What holds of every trial that is decided by a contract, whatever is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reviews.core.deciding import TaskRequirements
from reviews.core.disposition import GivenVerdict, TrialFacts
from reviews.core.requirements import requirements_of
from traces.core.contracts.reading import read_contract
from traces.core.records import Disposition, GraderKind, TrialStatus, VerdictValue

PASS = VerdictValue.PASS
READING = read_contract(
    """
task: t
outcome: [{unchanged: true}]
required: [{id: looked, call: look}]
prohibited: [{id: foreign, harm: data, call: peek}]
budget: {tool_calls: 4}
semantic: [{rubric: truthful}, {rubric: tone, mandatory: false}]
external: [{id: db, class: outcome}]
"""
)
assert READING.contract is not None
CONTRACT = READING.contract
REQUIREMENTS = TaskRequirements(CONTRACT, contract_key="7")
ALL = requirements_of(CONTRACT, contract_key="7")
CHECKS = [r.criterion for r in ALL if not r.takes_files]
NAMES = [r.criterion for r in ALL]

values = st.sampled_from(list(VerdictValue))
completed = TrialFacts()


@st.composite
def check_verdicts(draw: st.DrawFn) -> list[GivenVerdict]:
    """Votes of the contract's own checks, most of them passes, some on more evidence."""
    found = []
    for name in CHECKS:
        for order in range(draw(st.integers(0, 2))):
            value = draw(st.one_of(st.just(PASS), values))
            found.append(own(name, value, order))
    return found


def own(name: str, value: VerdictValue, order: int = 0) -> GivenVerdict:
    return GivenVerdict(
        id=f"{name}.{order}",
        grader="contract checks",
        grader_version="1",
        kind=GraderKind.CODE,
        criterion=name,
        value=value,
        is_imported=False,
        contract="7",
        evidence_order=order,
    )


others = st.lists(
    st.builds(
        GivenVerdict,
        id=st.uuids().map(str),
        grader=st.sampled_from(["a", "b"]),
        grader_version=st.sampled_from(["1", "2"]),
        kind=st.sampled_from(list(GraderKind)),
        criterion=st.sampled_from([*NAMES, "elsewhere"]),
        value=st.one_of(st.just(PASS), values),
        is_imported=st.booleans(),
        is_calibrated=st.booleans(),
        contract=st.sampled_from([None, "6", "7"]),
    ),
    max_size=8,
)


def comes_to(verdicts: list[GivenVerdict], facts: TrialFacts = completed) -> Disposition:
    return REQUIREMENTS.decided(facts, verdicts).decision.disposition


def kept(verdicts: list[GivenVerdict]) -> list[GivenVerdict]:
    """Those whose graders are not the contract's own: code that is given in the product is."""
    return [v for v in verdicts if v.kind is not GraderKind.CODE or v.is_imported]


CLEAN = [
    *(own(name, PASS) for name in CHECKS),
    replace(own("truthful", PASS), kind=GraderKind.HUMAN, grader="ann"),
    replace(own("db", PASS), is_imported=True, contract=None, grader="tau2"),
]


def test_a_trial_of_which_everything_is_said_passes() -> None:
    assert comes_to(CLEAN) is Disposition.PASS


@given(check_verdicts(), others)
def test_only_a_pass_of_every_check_is_ever_a_pass(
    checks: list[GivenVerdict], said: list[GivenVerdict]
) -> None:
    decided = comes_to([*checks, *kept(said)])

    latest = {v.criterion: v.value for v in sorted(checks, key=lambda v: v.evidence_order)}
    if any(latest.get(name) is None for name in CHECKS):
        assert decided is not Disposition.PASS  # missing
    if decided is Disposition.PASS:
        assert all(PASS in {v.value for v in checks if v.criterion == name} for name in CHECKS)
        assert VerdictValue.FAIL not in {v.value for v in checks}


@given(check_verdicts(), others)
def test_no_verdict_of_a_model_lifts_a_trial(
    checks: list[GivenVerdict], said: list[GivenVerdict]
) -> None:
    """With every model silent a failed check fails the trial, and so it does with any of them."""
    models = [replace(v, kind=GraderKind.MODEL) for v in said]
    if comes_to(checks) is Disposition.FAIL:
        assert comes_to([*checks, *models]) is Disposition.FAIL


@given(st.lists(st.sampled_from(CLEAN), unique=True), others)
def test_leaving_something_out_is_never_a_pass(
    left_out: list[GivenVerdict], said: list[GivenVerdict]
) -> None:
    models = [replace(v, kind=GraderKind.MODEL, is_calibrated=False) for v in said]
    found = comes_to([*(v for v in CLEAN if v not in left_out), *models])
    assert (found is Disposition.PASS) is (not left_out)


@given(st.sampled_from(CLEAN), st.sampled_from([VerdictValue.UNKNOWN, VerdictValue.ERROR]))
def test_what_is_unreadable_or_timed_out_is_never_a_pass(
    one: GivenVerdict, value: VerdictValue
) -> None:
    assert comes_to([replace(v, value=value) if v is one else v for v in CLEAN]) is (
        Disposition.UNRESOLVED
    )


def test_missing_evidence_or_a_broken_harness_is_never_a_pass() -> None:
    assert comes_to(CLEAN, TrialFacts(missing_evidence=("facts",))) is Disposition.UNRESOLVED
    assert comes_to(CLEAN, TrialFacts(TrialStatus.ERROR)) is Disposition.HARNESS_ERROR


@given(check_verdicts(), others, st.randoms(use_true_random=False))
def test_the_order_of_verdicts_does_not_matter(
    checks: list[GivenVerdict], said: list[GivenVerdict], random: Any
) -> None:
    verdicts = [*checks, *said]
    shuffled = list(verdicts)
    random.shuffle(shuffled)
    first = REQUIREMENTS.decided(completed, verdicts)
    assert REQUIREMENTS.decided(completed, shuffled) == first
