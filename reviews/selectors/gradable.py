"""By which criteria a trial is decided, for people who give a verdict on one."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from reviews.core.disposition import Requirement, RequirementSource, requirements_without_contract
from reviews.core.requirements import requirements_of
from reviews.selectors.votes import given_verdicts
from traces.core.contracts.model import Contract
from traces.core.records import CriterionClass
from traces.models import Trial
from traces.selectors.contracts import contracts_in_effect


@dataclass(frozen=True, slots=True)
class Gradable:
    """A criterion of a trial as it stands now."""

    criterion: str
    criterion_class: CriterionClass
    source: RequirementSource
    mandatory: bool
    contract_pk: int | None  # the version in effect; None: an imported criterion
    criterion_digest: bytes | None
    question: str  # of a rubric; "" where its name says it

    @property
    def stored_digest(self) -> uuid.UUID | None:
        """The criterion's digest as it is stored."""
        return uuid.UUID(bytes=self.criterion_digest) if self.criterion_digest else None

    def takes(self, contract_pk: int | None, criterion_digest: uuid.UUID | None) -> bool:
        """Whether a verdict that was given under that version votes on the criterion now."""
        if contract_pk == self.contract_pk:
            return True
        return criterion_digest is not None and criterion_digest == self.stored_digest


def gradable_criteria(trial: Trial) -> dict[str, Gradable]:
    """The criteria that decide a trial, mandatory or not, in their order.

    Those of the contract in effect; without one every imported criterion.
    """
    version = contracts_in_effect([trial.task_id]).get(trial.task_id)
    return criteria_of(version.contract, version.pk) if version else _imported(trial.pk)


def criteria_of(contract: Contract, contract_pk: int) -> dict[str, Gradable]:
    """The criteria of a contract by their names, in its order."""
    questions = {rubric.id: rubric.question for rubric in contract.semantic}
    return {
        each.criterion: _gradable(each, contract_pk, questions.get(each.criterion, ""))
        for each in requirements_of(contract, contract_key="")
    }


def _gradable(requirement: Requirement, contract_pk: int | None, question: str = "") -> Gradable:
    return Gradable(
        criterion=requirement.criterion,
        criterion_class=requirement.criterion_class,
        source=requirement.source,
        mandatory=requirement.mandatory,
        contract_pk=contract_pk,
        criterion_digest=requirement.criterion_digest,
        question=question,
    )


def _imported(trial_pk: int) -> dict[str, Gradable]:
    given = given_verdicts([trial_pk]).get(trial_pk, ())
    found = {each.criterion: _gradable(each, None) for each in requirements_without_contract(given)}
    for verdict in given:
        if verdict.is_imported and verdict.criterion not in found:
            found[verdict.criterion] = Gradable(
                criterion=verdict.criterion,
                criterion_class=verdict.criterion_class,
                source=RequirementSource.IMPORTED,
                mandatory=False,
                contract_pk=None,
                criterion_digest=None,
                question="",
            )
    return found
