"""Each check of a gate by its kind: one function that holds a threshold against a tier's evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reviews.core.gate.amounts import (
    fewest_held_out,
    fewest_tasks,
    fewest_trials,
    harness_errors,
    unresolved,
)
from reviews.core.gate.cost import cost_p95
from reviews.core.gate.declared import declared
from reviews.core.gate.evidence import OrderedEvidence, ordered
from reviews.core.gate.judges import judge_calibration
from reviews.core.gate.model import Check, CheckKind, Threshold, TierEvidence
from reviews.core.gate.pass_hat import pass_hat
from reviews.core.gate.prohibited import prohibited, prohibited_rate
from reviews.core.gate.rates import outcome_rate, recovery_rate, rule_clean_rate
from reviews.core.gate.regression import regression

CheckOf = Callable[[Threshold, OrderedEvidence], Check]

CHECKS: dict[CheckKind, CheckOf] = {
    CheckKind.OUTCOME_RATE: outcome_rate,
    CheckKind.RULE_CLEAN_RATE: rule_clean_rate,
    CheckKind.PASS_HAT_K: pass_hat,
    CheckKind.PROHIBITED: prohibited,
    CheckKind.PROHIBITED_RATE: prohibited_rate,
    CheckKind.COST_P95: cost_p95,
    CheckKind.RECOVERY_RATE: recovery_rate,
    CheckKind.UNRESOLVED: unresolved,
    CheckKind.HARNESS_ERRORS: harness_errors,
    CheckKind.JUDGE_CALIBRATION: judge_calibration,
    CheckKind.REGRESSION: regression,
    CheckKind.FEWEST_TASKS: fewest_tasks,
    CheckKind.FEWEST_TRIALS: fewest_trials,
    CheckKind.FEWEST_HELD_OUT: fewest_held_out,
    CheckKind.DECLARED: declared,
}
"""A new check is one function and one line here."""


def check_of(threshold: Threshold, evidence: TierEvidence) -> Check:
    """A threshold held against the evidence of its tier; the order of slots changes nothing."""
    return CHECKS[threshold.kind](threshold, ordered(evidence))


def checks_of(thresholds: Iterable[Threshold], evidence: OrderedEvidence) -> tuple[Check, ...]:
    """The same of several thresholds, in their order."""
    return tuple(CHECKS[threshold.kind](threshold, evidence) for threshold in thresholds)
