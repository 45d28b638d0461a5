"""What figures need to know of contracts: what they prohibit, and the class of each entry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from django.db import connection

from traces.core.contracts.model import OUTCOME
from traces.core.contracts.reading import read_contract


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """What figures need to know of a contract: what it prohibits, and the class of each entry."""

    harms: tuple[tuple[str, tuple[str, ...]], ...]  # harm, mandatory prohibitions of it
    classes: tuple[tuple[str, str, bool], ...]  # criterion, class, is mandatory


NO_FACTS = ContractFacts((), ())


def facts_of_contracts(contract_pks: Iterable[int | None]) -> dict[int, ContractFacts]:
    """The facts of some contract versions, in one query."""
    wanted = sorted({pk for pk in contract_pks if pk})
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, text FROM traces_contractversion WHERE id = ANY(%s)", [wanted])
        return {pk: contract_facts(text) for pk, text in cursor.fetchall()}


@lru_cache(maxsize=4096)
def contract_facts(text: str) -> ContractFacts:
    """What figures need to know of a contract. A text that cannot be read says nothing."""
    contract = read_contract(text).contract
    if contract is None:
        return NO_FACTS
    harms: dict[str, list[str]] = {}
    for entry in contract.prohibited:
        harms.setdefault(entry.harm, []).append(entry.id)
    return ContractFacts(
        tuple((harm, tuple(ids)) for harm, ids in sorted(harms.items())),
        (
            *(((OUTCOME, "outcome", True),) if contract.outcome else ()),
            *((entry.id, "constraint", entry.mandatory) for entry in contract.required),
            *((entry.id, "constraint", entry.mandatory) for entry in contract.prohibited),
            *((entry.id, "constraint", entry.mandatory) for entry in contract.budget),
            *((entry.id, "semantic", entry.mandatory) for entry in contract.semantic),
            *(
                (entry.id, entry.criterion_class.value, entry.mandatory)
                for entry in contract.external
            ),
        ),
    )
