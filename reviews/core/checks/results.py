"""What goes into the checks of a trial and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from traces.core.records import TrialStatus, VerdictValue
from traces.core.trajectory import Step
from traces.core.values import Json, JsonObject

CHECKS_VERSION = "1"
"""The version of the checks as a grader. It goes up whenever the same trial may come out otherwise
under the same contract; verdicts of earlier versions then no longer vote."""


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """A trial as checks see it, additions included. None: not recorded."""

    status: TrialStatus
    messages: tuple[JsonObject, ...]  # native form; results are read from here
    steps: tuple[Step, ...]  # of the messages, same order and length
    facts: dict[str, Json] | None
    initial_state: Json  # None: not recorded (a state that is null counts as not recorded)
    final_state: Json
    expected_state: Json
    cost_usd: Decimal | None
    tokens: int | None  # input and output together
    seconds: Decimal | None


@dataclass(frozen=True, slots=True)
class StateFinding:
    """One place where the final state is not as the contract wants it."""

    pointer: str
    wanted: str  # in words or as JSON text: "84.00", "nothing", "as before: …"
    found: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check says of a trial."""

    criterion: str
    value: VerdictValue
    sentence: str  # why, for people, complete; may quote the trace
    steps: tuple[int, ...] = ()  # the deciding steps, in order
    differences: tuple[StateFinding, ...] = ()  # of the outcome: the first ones
    n_differences: int = 0
    reached: tuple[int, ...] = ()  # required: steps that satisfy it, anchors left aside
    attempted: tuple[int, ...] = ()  # prohibited: steps of attempts, whatever `counts` says
    committed: tuple[int, ...] = ()  # prohibited: of those, the committed ones


@dataclass(frozen=True, slots=True)
class ContractChecks:
    """Everything that code says of a trial under a contract."""

    results: tuple[CheckResult, ...]  # outcome, required, prohibited, budget; in that order
    missing_evidence: tuple[str, ...]  # declared by the contract, not recorded: for people
    fixture_faults: tuple[str, ...]  # sentences: the trial contradicts the task's fixed facts
