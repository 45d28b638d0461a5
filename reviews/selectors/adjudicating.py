"""What a dispute is decided on: the criterion as it stands, its verdicts, evidence and chain."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Max

from reviews.core.disposition import (
    Adjudication,
    AdjudicationRuling,
    Requirement,
    RequirementSource,
    chain_on,
    heads_on,
    last_after,
    requirements_without_contract,
)
from reviews.core.requirements import EVIDENCE_KEY, requirements_of
from reviews.models import CalibrationItem, Dispute, Verdict
from reviews.selectors.blinding import open_items
from reviews.selectors.standings import TrialStandings
from reviews.selectors.votes import adjudications_on, given_verdicts
from traces.core.records import CriterionClass
from traces.models import EvidenceAddition, Trial
from traces.selectors.contracts import contracts_in_effect


@dataclass(frozen=True, slots=True)
class DisputeBasis:
    """Everything that a decision depends on, and that must not have changed since it was shown."""

    criterion: str
    requirement: Requirement | None  # None: nothing requires it, it is decided as its name says
    contract_pk: int | None  # in effect
    evidence_order: int  # additions to the evidence by now
    verdict_pks: tuple[int, ...]  # on the criterion, in the order they came
    head: Adjudication | None  # the decision in force, of its chain
    last: Adjudication | None  # what a further decision replaces: the head, or one after it

    @property
    def criterion_digest(self) -> uuid.UUID | None:
        """As an adjudication stores it."""
        digest = self.requirement.criterion_digest if self.requirement else None
        return uuid.UUID(bytes=digest) if digest else None

    @property
    def rubric_version(self) -> str:
        """As an adjudication stores it."""
        return (self.requirement.rubric_version or "") if self.requirement else ""

    @property
    def head_pk(self) -> int | None:
        """The id of the decision in force."""
        return int(self.head.id) if self.head else None

    @property
    def last_pk(self) -> int | None:
        """The id of the decision that a further one replaces."""
        return int(self.last.id) if self.last else None

    @property
    def seen(self) -> SeenBasis:
        """What a person has before them, as a form sends it back."""
        named = ",".join(str(pk) for pk in self.verdict_pks).encode()
        return SeenBasis(
            contract_pk=self.contract_pk or 0,
            evidence_order=self.evidence_order,
            verdicts=f"{len(self.verdict_pks)}-{hashlib.sha256(named).hexdigest()[:24]}",
            head_pk=self.head_pk or 0,
        )

    def hypothetical(self, ruling: AdjudicationRuling) -> Adjudication:
        """The adjudication that somebody would make now."""
        requirement = self.requirement
        return Adjudication(
            id="if",
            criterion=self.criterion,
            ruling=ruling,
            rubric_version=requirement.rubric_version if requirement else None,
            criterion_digest=requirement.criterion_digest if requirement else None,
            evidence_order=self.evidence_order,
            replaces=self.last.id if self.last else None,
        )


@dataclass(frozen=True, slots=True)
class SeenBasis:
    """What a person had before them when they decided."""

    contract_pk: int
    evidence_order: int
    verdicts: str  # how many, and a digest of their ids
    head_pk: int

    def __str__(self) -> str:
        return f"{self.contract_pk}.{self.evidence_order}.{self.verdicts}.{self.head_pk}"

    @classmethod
    def read(cls, text: str) -> SeenBasis | None:
        """What a form sent back; None for anything else."""
        match text.split("."):
            case [contract, order, verdicts, head] if all(
                part.isascii() and part.isdigit() and len(part) < 19
                for part in (contract, order, head)
            ):
                return cls(int(contract), int(order), verdicts, int(head))
        return None


def dispute_basis(trial: Trial, criterion: str) -> DisputeBasis:
    """What a dispute on a criterion of a trial is decided on now. Four queries, five without one.

    Under the release's lock it is what holds when the decision is stored.
    """
    contract = contracts_in_effect([trial.task_id]).get(trial.task_id)
    if contract is None:
        given = given_verdicts([trial.pk]).get(trial.pk, ())
        requirements = requirements_without_contract(given)
    else:
        requirements = requirements_of(contract.contract, contract_key=contract.key)
    requirement = next((each for each in requirements if each.criterion == criterion), None)
    order = EvidenceAddition.objects.filter(trial=trial).aggregate(n=Max("order"))["n"] or 0
    verdicts = Verdict.objects.filter(trial=trial, criterion__name=criterion).exclude(
        contract__isnull=False, by=None, key__endswith=EVIDENCE_KEY
    )
    head, last = _head_and_last(
        [one for _, _, one in adjudications_on([trial.pk])], criterion, requirement
    )
    return DisputeBasis(
        criterion=criterion,
        requirement=requirement,
        contract_pk=contract.pk if contract else None,
        evidence_order=order,
        verdict_pks=tuple(verdicts.order_by("pk").values_list("pk", flat=True)),
        head=head,
        last=last,
    )


def basis_of_standings(found: TrialStandings, criterion: str) -> DisputeBasis:
    """The same as `dispute_basis`, of a trial whose standings were read already. No query."""
    requirements = (detail.standing.requirement for detail in found.details)
    requirement = next((each for each in requirements if each.criterion == criterion), None)
    given = (card.given for card in found.cards if card.given.criterion == criterion)
    head, last = _head_and_last(found.adjudications, criterion, requirement)
    return DisputeBasis(
        criterion=criterion,
        requirement=requirement,
        contract_pk=found.contract.pk if found.contract else None,
        evidence_order=max((each.order for each in found.additions), default=0),
        verdict_pks=tuple(sorted(int(each.id) for each in given)),
        head=head,
        last=last,
    )


def _head_and_last(
    rulings: Sequence[Adjudication], criterion: str, requirement: Requirement | None
) -> tuple[Adjudication | None, Adjudication | None]:
    """The decision on the criterion as it stands, and the one that a further one replaces.

    They differ where the criterion asks again what it asked before: what was decided on another
    wording in between decides nothing, and stays a part of the chain.
    """
    asked = requirement or _named_alone(criterion)
    # Of no chain, its newest.
    heads = heads_on(asked, rulings) or chain_on(asked, rulings)
    return (heads[-1], last_after(heads[-1], rulings)) if heads else (None, None)


def _named_alone(criterion: str) -> Requirement:
    """What nothing requires, by its name."""
    return Requirement(
        criterion, CriterionClass.SEMANTIC, RequirementSource.IMPORTED, mandatory=False
    )


def awaited_label(trial_pk: int, criterion: str) -> CalibrationItem | None:
    """The item of an open set whose blind labels are still awaited. One query."""
    items = open_items().select_related("set")
    return items.filter(trial=trial_pk, set__criterion__name=criterion).order_by("pk").first()


def dispute_on(trial_pk: int, criterion: str) -> uuid.UUID | None:
    """The address of the dispute on a criterion of a trial. One query; None without one."""
    found = Dispute.objects.filter(trial=trial_pk, criterion=criterion)
    return found.values_list("uuid", flat=True).first()
