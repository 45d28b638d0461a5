"""Marks on checks, rubrics and fixtures, and what of a trial can be marked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from reviews.core.disposition import Mark
from reviews.core.requirements import FIXTURE
from reviews.selectors.gradable import criteria_of, gradable_criteria
from traces.models import ContractVersion, Trial, User
from traces.selectors.contracts import VersionedContract, contract_of_stored, contracts_in_effect


@dataclass(frozen=True, slots=True)
class Markable:
    """A criterion of a trial's task, or its fixture, as it stands now."""

    criterion: str  # "": the fixture
    digest: UUID | None  # None: an imported criterion, no contract
    kind: str  # check | rubric | external | imported | fixture
    is_mandatory: bool = True


@dataclass(frozen=True, slots=True)
class MarkableTrial:
    """What of a trial can be marked, the fixture last."""

    contract: VersionedContract | None
    entries: tuple[Markable, ...]

    def named(self, criterion: str) -> Markable | None:
        """The entry of that criterion."""
        return next((each for each in self.entries if each.criterion == criterion), None)


def markable_of(trial: Trial) -> MarkableTrial:
    """The criteria that decide a trial, and its fixture: under the contract in effect, if any."""
    contract = contracts_in_effect([trial.task_id]).get(trial.task_id)
    entries = [
        Markable(each.criterion, each.stored_digest, each.source.value, each.mandatory)
        for each in gradable_criteria(trial).values()
        if each.criterion != FIXTURE
    ]
    digest = UUID(bytes=contract.contract.digest) if contract else None
    return MarkableTrial(contract, (*entries, Markable(FIXTURE, digest, "fixture")))


@dataclass(frozen=True, slots=True)
class HeldMark:
    """A mark that nobody has withdrawn."""

    pk: int
    uuid: UUID
    criterion: str  # "": the fixture
    criterion_digest: UUID | None
    mark: Mark
    reason: str
    by_pk: int
    by_name: str
    marked_at: datetime


def held_marks(task_pk: int) -> tuple[HeldMark, ...]:
    """The marks on a task that were not withdrawn, the earliest first, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT m.id, m.uuid, m.criterion, m.criterion_digest, m.mark, m.reason, m.by_id,"
            " coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username),"
            " m.marked_at FROM reviews_checkmark m JOIN traces_user p ON p.id = m.by_id"
            " WHERE m.task_id = %s AND NOT EXISTS"
            " (SELECT FROM reviews_checkmarkwithdrawal x WHERE x.mark_id = m.id) ORDER BY m.id",
            [task_pk],
        )
        return tuple(
            HeldMark(pk, identity, criterion, digest, Mark(mark), *more)
            for pk, identity, criterion, digest, mark, *more in cursor.fetchall()
        )


def written_by(task_pk: int, user: User) -> frozenset[tuple[str, UUID]]:
    """What a person wrote of a task: criteria, and fixtures (""), each with its digest.

    All versions that they proposed count, whatever became of them. One query.
    """
    rows = ContractVersion.objects.filter(task=task_pk, proposal__created_by=user)
    found: set[tuple[str, UUID]] = set()
    for pk, text in rows.values_list("pk", "text"):
        contract = contract_of_stored(text)
        found.add((FIXTURE, UUID(bytes=contract.digest)))
        for name, each in criteria_of(contract, pk).items():
            if each.stored_digest is not None:
                found.add((name, each.stored_digest))
    return frozenset(found)
