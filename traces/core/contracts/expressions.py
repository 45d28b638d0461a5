"""The CEL expressions of a contract, with what each of them may name.

Compiling them is for whoever decides trials; here only what there is to compile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from traces.core.contracts.model import CallTarget, Contract, Target

FACT_NAMES: Final = frozenset(("facts",))
MESSAGE_NAMES: Final = frozenset(("text", "facts", "step"))
CALL_NAMES: Final = frozenset(("args", "result", "error", "text", "facts", "step"))


class Expression(NamedTuple):
    """One expression: its field in the document, its text, the names that it may begin with."""

    field: str
    text: str
    names: frozenset[str]


def expressions_of(contract: Contract) -> tuple[Expression, ...]:
    """Every expression of a contract, in the order of the language."""
    return tuple(_expressions(contract))


def _expressions(contract: Contract) -> Iterator[Expression]:
    for index, case in enumerate(contract.outcome.cases if contract.outcome else ()):
        if case.when:
            yield Expression(f"outcome[{index}].when", case.when, FACT_NAMES)
    for index, required in enumerate(contract.required):
        place = f"required[{index}]"
        yield from _of_targets(required.any_of, place)
        for name, anchor in (("before", required.before), ("after", required.after)):
            if anchor is not None:
                yield from _of_target(anchor.target, f"{place}.{name}")
    for index, prohibited in enumerate(contract.prohibited):
        yield from _of_targets(prohibited.any_of, f"prohibited[{index}]")


def _of_targets(targets: tuple[Target, ...], place: str) -> Iterator[Expression]:
    if len(targets) == 1:
        yield from _of_target(targets[0], place)
        return
    for index, target in enumerate(targets):
        yield from _of_target(target, f"{place}.any_of[{index}]")


def _of_target(target: Target, place: str) -> Iterator[Expression]:
    if target.where:
        names = CALL_NAMES if isinstance(target, CallTarget) else MESSAGE_NAMES
        yield Expression(f"{place}.where", target.where, names)
