"""Contract checks: what code says of a trial under a contract. Pure, bounded, deterministic.

`checks_of` is the one door; `planted_evidence` makes evidence of a grader test's record.
"""

from reviews.core.checks.results import (
    CHECKS_VERSION,
    CheckResult,
    ContractChecks,
    StateFinding,
    TrialEvidence,
)

__all__ = ["CHECKS_VERSION", "CheckResult", "ContractChecks", "StateFinding", "TrialEvidence"]
