"""One trial decided: by its task's contract, or by what came in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reviews.core.calibrations import NO_CALIBRATIONS, Calibrations
from reviews.core.disposition import (
    Adjudication,
    Decision,
    GivenVerdict,
    Requirement,
    TrialFacts,
    disposition_of,
    requirements_without_contract,
)
from reviews.core.requirements import (
    CheckNotes,
    MarkedCriterion,
    TrialFigures,
    figures_of,
    requirements_of,
    requirements_with_marks,
)
from traces.core.contracts.model import Contract


@dataclass(frozen=True, slots=True)
class DecidedBy:
    """A decision with what figures count of it."""

    decision: Decision
    figures: TrialFigures
    # As they were read, calibrated judges marked as such; their order says nothing.
    verdicts: Sequence[GivenVerdict] = field(compare=False)


class TaskRequirements:
    """What the trials of one task are decided by; made once for many of them."""

    def __init__(
        self,
        contract: Contract | None = None,
        *,
        contract_key: str = "",
        marks: Sequence[MarkedCriterion] = (),
        calibrations: Calibrations = NO_CALIBRATIONS,
    ) -> None:
        self.contract, self.contract_key = contract, contract_key
        self.marks = tuple(marks)
        self.calibrations = calibrations
        self._made: dict[bool, tuple[Requirement, ...]] = {}

    def requirements(
        self, verdicts: Sequence[GivenVerdict], *, has_faulty_fixture: bool = False
    ) -> tuple[Requirement, ...]:
        """The requirements of a trial with those verdicts."""
        if self.contract is None:
            return requirements_with_marks(requirements_without_contract(verdicts), self.marks)
        if has_faulty_fixture not in self._made:
            self._made[has_faulty_fixture] = requirements_of(
                self.contract,
                contract_key=self.contract_key,
                marks=self.marks,
                has_faulty_fixture=has_faulty_fixture,
            )
        return self._made[has_faulty_fixture]

    def decided(
        self,
        facts: TrialFacts,
        verdicts: Sequence[GivenVerdict],
        notes: Mapping[str, CheckNotes] | None = None,
        *,
        adjudications: Sequence[Adjudication] = (),
        has_faulty_fixture: bool = False,
    ) -> DecidedBy:
        """The disposition of a trial and what figures count of it."""
        requirements = self.requirements(verdicts, has_faulty_fixture=has_faulty_fixture)
        verdicts = self.calibrations.applied(verdicts, requirements)
        decision = disposition_of(facts, requirements, verdicts, adjudications)
        figures = figures_of(
            decision, facts.status, contract=self.contract, verdicts=verdicts, notes=notes
        )
        return DecidedBy(decision, figures, verdicts)
