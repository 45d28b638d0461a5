"""Grader tests: planted trials of a contract, and whether each check says what is expected."""

from __future__ import annotations

from dataclasses import dataclass

from reviews.core.checks.checks import checks_of
from reviews.core.checks.results import CheckResult, TrialEvidence
from traces.core.contracts.model import Contract, PlantedTrial
from traces.core.formats.native import item_of
from traces.core.records import ParsedTrial, Source
from traces.core.rules import RejectionSettings
from traces.core.transcript import DEFAULT_REJECTION, transcript_of
from traces.core.values import JsonObject


@dataclass(frozen=True, slots=True)
class PlantedCheck:
    """What one check says of a planted trial, beside what is expected."""

    criterion: str
    wanted: str  # pass | fail | unknown | error
    found: str  # the same, or nothing
    sentence: str  # what the check says, for people


@dataclass(frozen=True, slots=True)
class PlantedResult:
    """A grader test that was run."""

    name: str
    checks: tuple[PlantedCheck, ...]

    @property
    def is_met(self) -> bool:
        return all(check.wanted == check.found for check in self.checks)


_NOTHING = "nothing"
_IDENTITY: JsonObject = {"task_id": "planted", "trial": 0, "agent": {"version": "1"}}


def planted_evidence(
    record: JsonObject, rejection: RejectionSettings = DEFAULT_REJECTION
) -> TrialEvidence:
    """The evidence of a planted trial. Raises ValueError where its record cannot be read."""
    item = item_of({**_IDENTITY, **record}, Source(1))
    trial = item.content
    if not isinstance(trial, ParsedTrial):
        said = [finding.sentence for finding in item.refusals]
        raise ValueError(" ".join(said) or "The record holds no trial.")  # noqa: TRY004
    return trial_evidence(trial, rejection)


def trial_evidence(
    trial: ParsedTrial, rejection: RejectionSettings = DEFAULT_REJECTION
) -> TrialEvidence:
    """A parsed trial as checks see it."""
    messages = tuple(trial.messages)
    facts = trial.rest.get("facts")
    tokens = [n for n in (trial.input_tokens, trial.output_tokens) if n is not None]
    return TrialEvidence(
        status=trial.status,
        messages=messages,
        steps=transcript_of(messages, rejection),
        facts=facts if isinstance(facts, dict) else None,
        initial_state=trial.rest.get("initial_state"),
        final_state=trial.rest.get("final_state"),
        expected_state=trial.rest.get("expected_state"),
        cost_usd=trial.cost_usd,
        tokens=sum(tokens) if len(tokens) == 2 else None,
        seconds=trial.seconds,
    )


def grader_test_results(contract: Contract) -> tuple[PlantedResult, ...]:
    """The grader tests of a contract, each run. Never raises."""
    return tuple(_result(contract, planted) for planted in contract.grader_tests)


def _result(contract: Contract, planted: PlantedTrial) -> PlantedResult:
    try:
        results = checks_of(contract, planted_evidence(planted.record)).results
    except ValueError as error:
        checks = tuple(
            PlantedCheck(criterion, wanted, _NOTHING, str(error))
            for criterion, wanted in planted.expect
        )
        return PlantedResult(planted.name, checks)
    said = {result.criterion: result for result in results}
    return PlantedResult(
        planted.name, tuple(_check(said, criterion, word) for criterion, word in planted.expect)
    )


def _check(said: dict[str, CheckResult], criterion: str, wanted: str) -> PlantedCheck:
    result = said.get(criterion)
    if result is None:
        return PlantedCheck(criterion, wanted, _NOTHING, "The contract has no such check.")
    return PlantedCheck(criterion, wanted, result.value.value, result.sentence)
