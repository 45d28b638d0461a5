"""Contract checks: what code says of a trial under a contract. Pure, bounded, deterministic.

`checks_of` is the one door; `planted_evidence` makes evidence of a grader test's record.
"""

from reviews.core.checks.checks import checks_of, first_wrong
from reviews.core.checks.expressions import expression_problem
from reviews.core.checks.planted import grader_test_results, planted_evidence, trial_evidence
from reviews.core.checks.results import (
    CHECKS_VERSION,
    CheckResult,
    ContractChecks,
    StateFinding,
    TrialEvidence,
)

__all__ = [
    "CHECKS_VERSION",
    "CheckResult",
    "ContractChecks",
    "StateFinding",
    "TrialEvidence",
    "checks_of",
    "expression_problem",
    "first_wrong",
    "grader_test_results",
    "planted_evidence",
    "trial_evidence",
]
