"""What a gate is decided from, and what it comes to: frozen values, exact fractions, no clock."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from reviews.core.calibration import CalibrationFigures, Limits
from reviews.core.estimators import Counts, Interval, Range
from reviews.core.gate.states import CheckResult, GateState

GATE_VERSION = 1
"""Stored beside every computed gate. It goes up whenever the same evidence may give another one."""


class CheckKind(StrEnum):
    """The checks of docs/design.md section 8, in the order in which a gate lists them."""

    OUTCOME_RATE = "outcome_rate"
    RULE_CLEAN_RATE = "rule_clean_rate"
    PASS_HAT_K = "pass_hat_k"
    PROHIBITED = "prohibited"  # trials with a prohibited attempt, by harm
    PROHIBITED_RATE = "prohibited_rate"  # upper bound of the true rate of them
    COST_P95 = "cost_p95"
    RECOVERY_RATE = "recovery_rate"
    UNRESOLVED = "unresolved"
    HARNESS_ERRORS = "harness_errors"
    JUDGE_CALIBRATION = "judge_calibration"
    REGRESSION = "regression"
    FEWEST_TASKS = "fewest_tasks"
    FEWEST_TRIALS = "fewest_trials"
    FEWEST_HELD_OUT = "fewest_held_out"
    DECLARED = "declared"


ALWAYS_ON = frozenset(
    {CheckKind.PROHIBITED, CheckKind.UNRESOLVED, CheckKind.DECLARED, CheckKind.FEWEST_TRIALS}
)
NEVER_WAIVED = frozenset({CheckKind.PROHIBITED, CheckKind.PROHIBITED_RATE})
HAVE_BOUNDS = frozenset(
    {
        CheckKind.OUTCOME_RATE,
        CheckKind.RULE_CLEAN_RATE,
        CheckKind.PROHIBITED_RATE,
        CheckKind.RECOVERY_RATE,
    }
)
"""Rates of trials: all else is decided by its estimate."""


class DecidedBy(StrEnum):
    """Which end of a figure decides a check."""

    ESTIMATE = "estimate"
    BOUND = "bound"  # one-sided 95 % Clopper-Pearson


@dataclass(frozen=True, slots=True)
class Threshold:
    """One check that a tier asks for.

    `limit` is a rate between 0 and 1, US dollars, a count, or points of a rate that a family may
    fall; None for `DECLARED` and `JUDGE_CALIBRATION`.
    """

    kind: CheckKind
    limit: Fraction | None = None
    decided_by: DecidedBy = DecidedBy.ESTIMATE
    k: int | None = None  # of pass^k
    of: str = "rule_clean"  # of pass^k: rule_clean | outcome
    by_harm: tuple[tuple[str, int], ...] = ()  # of `PROHIBITED`: most trials of single harms
    calibration: Limits | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """One version of a tier's thresholds, in the order of `CheckKind`."""

    checks: tuple[Threshold, ...]
    n_owners: int = 1  # that have to sign: 1 or 2
    requests_per_day: int | None = None  # for the planner, decides nothing


@dataclass(frozen=True, slots=True)
class ThresholdSetInForce:
    """A threshold set with what a gate says of it."""

    number: int
    digest: str  # SHA-256 of its canonical JSON, hex
    by: str  # printed name
    made_at: str  # ISO 8601, UTC
    in_force_from: str
    thresholds: Thresholds


@dataclass(frozen=True, slots=True)
class GateSlot:
    """One slot (run, task, trial) of a release: its last attempt, or that none came.

    `value` is pass | fail | unresolved | harness_error | missing. `outcome` and `clean` are
    pass | fail | unknown | "" (nothing of the kind is required, which is unknown for the figure).
    """

    task: str  # its id
    task_version: int  # 0: no trial of the task came
    contract: int  # number of the contract version that decides it here; 0: none was in force
    family: str
    split: str  # "" | tuning | held_out | regression
    run: str  # its UUID
    label: str
    trial: str  # its UUID; "" where none came
    value: str
    outcome: str = ""
    clean: str = ""
    is_clean_known: bool = False  # nothing prohibited was seen, and every such check is decided
    has_prohibitions: bool = False  # the deciding contract prohibits something
    harms_attempted: tuple[str, ...] = ()
    harms_committed: tuple[str, ...] = ()
    cost: Decimal | None = None
    has_fault: bool = False
    handed_over: bool | None = None  # None: not known
    n_calls: int = 0

    @property
    def is_counted(self) -> bool:
        """Whether gate figures count it: split tuning and injected faults stand apart."""
        return self.split != "tuning" and not self.has_fault


@dataclass(frozen=True, slots=True)
class JudgeThatDecides:
    """A judge version whose votes decide requirements of this release on a criterion."""

    judge: str
    version: str
    criterion: str
    figures: CalibrationFigures | None  # as its calibration was read; None: never
    n_trials: int


@dataclass(frozen=True, slots=True)
class RunOfRelease:
    """A run, and whether it counts."""

    uuid: str
    name: str
    begun_at: str  # ISO 8601, UTC
    declared_trials: int | None  # a task
    is_left_out: bool = False
    is_confirmed: bool = False  # leaving it out, by a second owner
    left_out_reason: str = ""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The last signed release, and its slots in the tier at hand."""

    release: str  # its name
    release_uuid: str
    sign_off: str  # UUID of the approval
    digest: str  # of its evidence manifest
    slots: tuple[GateSlot, ...]  # decided by the contract versions that its own gate applied


@dataclass(frozen=True, slots=True)
class TierEvidence:
    """What one section of a gate is decided from. `threshold_set` None: none was in force."""

    tier: str  # its name
    tier_uuid: str
    threshold_set: ThresholdSetInForce | None
    slots: tuple[GateSlot, ...]
    runs: tuple[RunOfRelease, ...]  # of the whole release
    judges: tuple[JudgeThatDecides, ...] = ()
    baseline: Baseline | None = None
    n_by_party: int = 0  # trials decided by an adjudication of somebody with a verdict of their own


@dataclass(frozen=True, slots=True)
class CheckDetail:
    """One part of a check: a harm, a task, a family, a judge, a run."""

    label: str
    text: str
    result: CheckResult | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A threshold held against the evidence.

    `measured` is the figure that is shown, exact; None where there is none. `range` is from "all
    unknown ones fail" to "all pass". `interval` is the one that decides where a bound does, else
    the two-sided one for display. `n_more` is how many more trials would settle what cannot be
    told, where a number can be given.
    """

    threshold: Threshold
    result: CheckResult
    measured: Fraction | None
    sentence: str
    counts: Counts | None = None
    range: Range | None = None
    interval: Interval | None = None
    settles: str = ""  # what would settle it, with numbers; "" unless it cannot be told
    n_more: int | None = None
    details: tuple[CheckDetail, ...] = ()
    trials: tuple[str, ...] = ()  # UUIDs of trials to look at first, at most 20


@dataclass(frozen=True, slots=True)
class Section:
    """The checks of one tier."""

    tier: str
    tier_uuid: str
    threshold_set: ThresholdSetInForce | None
    state: GateState
    sentence: str
    checks: tuple[Check, ...]
    n_slots: int
    n_tasks: int


@dataclass(frozen=True, slots=True)
class Gate:
    """A release's gate. `sentence` says it in one: "2 checks are not met, 3 cannot be told yet."."""

    state: GateState
    sentence: str
    sections: tuple[Section, ...]

    @property
    def n_owners(self) -> int:
        """How many owners have to sign: the most that a tier asks for."""
        asked = (s.threshold_set.thresholds.n_owners for s in self.sections if s.threshold_set)
        return max(asked, default=1)
