"""Slots, tiers and seeded random tiers for tests of gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

from reviews.core.agreement import table_of
from reviews.core.calibration import (
    DECIDED,
    PEOPLE_SAY,
    CalibrationFigures,
    ErrorRate,
    HeldAgainst,
    Limits,
)
from reviews.core.gate.model import (
    ALWAYS_ON,
    HAVE_BOUNDS,
    Baseline,
    CheckKind,
    DecidedBy,
    GateSlot,
    JudgeThatDecides,
    RunOfRelease,
    Threshold,
    Thresholds,
    ThresholdSetInForce,
    TierEvidence,
)

RUN = RunOfRelease("run-1", "nightly", "2026-11-30T10:00:00Z", declared_trials=5)

PASSING = GateSlot(
    task="refund",
    task_version=1,
    contract=1,
    family="refunds",
    split="",
    run="run-1",
    label="1",
    trial="",
    value="pass",
    outcome="pass",
    clean="pass",
    is_clean_known=True,
    has_prohibitions=True,
    cost=Decimal("0.10"),
    handed_over=False,
)


def passing(n: int, task: str = "refund", *, first: int = 1) -> list[GateSlot]:
    """Trials that pass everything."""
    return [
        replace(PASSING, task=task, label=str(i), trial=f"{task}-{i}")
        for i in range(first, first + n)
    ]


def failing(slot: GateSlot) -> GateSlot:
    """The same, missing its outcome."""
    return replace(slot, value="fail", outcome="fail", clean="fail", handed_over=False)


def violating(slot: GateSlot, *harms: str) -> GateSlot:
    """The same, having attempted something prohibited."""
    return replace(
        slot, value="fail", clean="fail", is_clean_known=False, harms_attempted=harms or ("money",)
    )


def unresolved(slot: GateSlot) -> GateSlot:
    """The same, with nothing of it decided."""
    return replace(
        slot,
        value="unresolved",
        outcome="unknown",
        clean="unknown",
        is_clean_known=False,
        handed_over=None,
        cost=None,
    )


def broken(slot: GateSlot) -> GateSlot:
    """The same, lost as the harness broke."""
    return replace(unresolved(slot), value="harness_error")


def missing(slot: GateSlot) -> GateSlot:
    """The same, never having come."""
    return replace(unresolved(slot), value="missing", trial="")


def tier(
    slots: Sequence[GateSlot],
    *checks: Threshold,
    runs: Sequence[RunOfRelease] = (RUN,),
    judges: Sequence[JudgeThatDecides] = (),
    baseline: Sequence[GateSlot] | None = None,
    name: str = "Payments",
) -> TierEvidence:
    """What one section is decided from."""
    return TierEvidence(
        name,
        "tier-uuid",
        ThresholdSetInForce(
            7, "d" * 64, "System owner", "2026-11-12", "2026-11-12", Thresholds(checks)
        ),
        tuple(slots),
        tuple(runs),
        tuple(judges),
        None if baseline is None else Baseline("2.3.0", "b", "s", "e" * 64, tuple(baseline)),
    )


def figures(
    false_pass: tuple[int, int], false_fail: tuple[int, int], checked: int = 60, people: int = 2
) -> CalibrationFigures:
    """Figures of a judge with so many errors of so many items on each side."""
    empty = table_of((), DECIDED)
    held = HeldAgainst(ErrorRate(*false_pass), ErrorRate(*false_fail), empty, empty)
    return CalibrationFigures(
        checked, checked, 2 * checked, people, 0, 0, 0, 0, 0, 0,
        held, table_of((), PEOPLE_SAY), None, None,
    )  # fmt: skip


def judge(found: CalibrationFigures | None, name: str = "gpt") -> JudgeThatDecides:
    """A judge version that decides ten trials."""
    return JudgeThatDecides(name, "v1", "truthful", found, 10)


_VALUES = ("pass", "pass", "pass", "fail", "unresolved", "harness_error", "missing")
_RATES = tuple(map(Fraction, ("0", "0.1", "0.25", "0.5", "0.6", "0.75", "0.9", "0.95", "1")))


def random_slot(random: Random, at: int) -> GateSlot:
    """A slot of one of a few tasks, of any value that can be."""
    value = random.choice(_VALUES)
    task = random.choice(("a", "b", "c"))
    decided = random.choice(("pass", "fail", "unknown", ""))
    harms = ()
    if value == "fail" and random.random() < 0.4:
        harms = random.choice((("money",), ("data",), ("data", "money")))
    outcome = "pass" if value == "pass" else decided
    clean = "pass" if value == "pass" else random.choice(("fail", "unknown", ""))
    return GateSlot(
        task=task,
        task_version=random.choice((1, 1, 1, 2)),
        contract=1,
        family={"a": "refunds", "b": "refunds", "c": ""}[task],
        split={"a": "", "b": "held_out", "c": random.choice(("regression", "tuning"))}[task],
        run=random.choice(("run-1", "run-1", "run-2")),
        label=str(at),
        trial="" if value == "missing" else f"trial-{at}",
        value=value,
        outcome=outcome,
        clean=clean,
        is_clean_known=not harms and random.random() < 0.8,
        has_prohibitions=random.random() < 0.9,
        harms_attempted=harms,
        harms_committed=harms[:1] if random.random() < 0.5 else (),
        cost=None
        if value == "missing"
        else random.choice((None, Decimal("0.1"), Decimal("0.4"), Decimal("0.5"))),
        has_fault=random.random() < 0.15,
        handed_over=random.choice((None, True, False)),
    )


def random_threshold(random: Random, kind: CheckKind) -> Threshold:
    """A threshold of a kind, at a level that may go either way."""
    by_bound = kind in HAVE_BOUNDS and random.random() < 0.5
    decides = DecidedBy.BOUND if by_bound else DecidedBy.ESTIMATE
    match kind:
        case CheckKind.DECLARED:
            return Threshold(kind)
        case CheckKind.JUDGE_CALIBRATION:
            return Threshold(kind, calibration=Limits())
        case CheckKind.COST_P95:
            return Threshold(kind, Fraction(random.choice(("0", "0.1", "0.4", "0.5"))))
        case CheckKind.PASS_HAT_K:
            of = random.choice(("rule_clean", "outcome"))
            return Threshold(kind, random.choice(_RATES), k=random.choice((1, 1, 2, 3)), of=of)
        case CheckKind.PROHIBITED:
            own = random.choice(((), (("money", 1),), (("data", 0), ("money", 2))))
            return Threshold(kind, Fraction(random.choice((0, 0, 1, 3))), by_harm=own)
        case CheckKind.REGRESSION:
            return Threshold(kind, Fraction(random.choice(("0", "0.05", "0.3"))))
        case (
            CheckKind.UNRESOLVED
            | CheckKind.HARNESS_ERRORS
            | CheckKind.FEWEST_TASKS
            | CheckKind.FEWEST_TRIALS
            | CheckKind.FEWEST_HELD_OUT
        ):
            return Threshold(kind, Fraction(random.choice((0, 1, 2, 5))))
        case _:
            return Threshold(kind, random.choice(_RATES), decides)


def random_tier(seed: int) -> TierEvidence:
    """A tier of up to thirty slots with one threshold of every kind; the same for the same seed."""
    random = Random(seed)
    slots = [random_slot(random, at) for at in range(random.choice((0, 1, 2, 5, 12, 30)))]
    then = [random_slot(random, at) for at in range(random.choice((0, 3, 10)))]
    if random.random() < 0.4:
        then = [replace(slot, value="pass", trial="then") for slot in slots]
    run_2 = random.choice(
        (
            RunOfRelease("run-2", "top-up", "2026-12-01T10:00:00Z", None),
            RunOfRelease("run-2", "top-up", "2026-12-01T10:00:00Z", 2),
            RunOfRelease("run-2", "top-up", "2026-12-01T10:00:00Z", 2, True, True, "wrong data"),
            RunOfRelease("run-2", "top-up", "2026-12-01T10:00:00Z", 2, True, False, "wrong data"),
        )
    )
    run_1 = replace(RUN, declared_trials=random.choice((None, 5)))
    judges = [
        judge(
            random.choice(
                (
                    None,
                    figures((0, 40), (0, 40)),
                    figures((2, 12), (0, 0)),
                    figures((20, 25), (1, 30), checked=20),
                    figures((0, 30), (3, 40), people=1),
                )
            ),
            f"judge-{i}",
        )
        for i in range(random.choice((0, 1, 2)))
    ]
    return tier(
        slots,
        *(random_threshold(random, kind) for kind in CheckKind),
        runs=(run_1, run_2),
        judges=judges,
        baseline=then if random.random() < 0.8 else None,
    )


ALWAYS = tuple(
    Threshold(
        kind, None if kind is CheckKind.DECLARED else Fraction(kind is CheckKind.FEWEST_TRIALS)
    )
    for kind in CheckKind
    if kind in ALWAYS_ON
)
"""The checks that cannot be switched off, at their strictest."""
