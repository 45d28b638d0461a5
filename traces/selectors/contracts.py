"""Contract versions as the core reads them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from django.db import connection

from traces.core.contracts.model import Contract
from traces.core.contracts.reading import read_contract


@dataclass(frozen=True, slots=True)
class VersionedContract:
    """A stored contract version, read."""

    pk: int
    identity: uuid.UUID
    number: int
    task_pk: int
    contract: Contract
    is_readable: bool = True  # False: this version of the product refuses its text

    @property
    def key(self) -> str:
        """What names the version among requirements and verdicts."""
        return str(self.pk)


def contracts_named(version_ids: Iterable[int]) -> dict[int, VersionedContract]:
    """Contract versions by id, in one query. A text that was read before is not read again.

    One that this version of the product refuses requires nothing, so that trials of its task are
    stored and stay undecided until the contract is mended; nobody grades by it.
    """
    wanted = sorted(set(version_ids))
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, uuid, number, task_id, text FROM traces_contractversion WHERE id = ANY(%s)",
            [wanted],
        )
        return {
            pk: _versioned(pk, identity, number, task_pk, text)
            for pk, identity, number, task_pk, text in cursor.fetchall()
        }


def _versioned(
    pk: int, identity: uuid.UUID, number: int, task_pk: int, text: str
) -> VersionedContract:
    try:
        return VersionedContract(pk, identity, number, task_pk, contract_of_stored(text))
    except ValueError:
        return VersionedContract(pk, identity, number, task_pk, _NOTHING, is_readable=False)


_NOTHING = Contract(
    task_id="",
    title="",
    family="",
    split=None,
    input=None,
    facts={},
    trial_facts=(),
    outcome=None,
    required=(),
    prohibited=(),
    budget=(),
    semantic=(),
    external=(),
    evidence=(),
    variation=(),
    trials=None,
    grader_tests=(),
    digest=b"",
)


def contracts_in_effect(task_ids: Iterable[int]) -> dict[int, VersionedContract]:
    """The contract by which each task's trials are decided; tasks without one are left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, contract_id FROM traces_task"
            " WHERE id = ANY(%s) AND contract_id IS NOT NULL",
            [sorted(set(task_ids))],
        )
        versions = dict(cursor.fetchall())
    found = contracts_named(versions.values())
    return {task: found[version] for task, version in versions.items()}


@lru_cache(maxsize=1024)
def contract_of_stored(text: str) -> Contract:
    """The contract of a text that was whole when it was proposed."""
    reading = read_contract(text)
    if reading.contract is None:
        found = reading.findings[0]
        raise ValueError(f"a stored contract is not whole: line {found.line}: {found.sentence}")
    return reading.contract
