"""Drafts of contracts: texts read, every expression compiled, grader tests run.

Nothing here knows a system: what only the stored traces can tell is looked at in
`reviews.selectors.contract_checks`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from reviews.core.checks import expression_problem, grader_test_results
from reviews.core.regrades import GraderTest, PlantedCheck
from traces.core.contracts.expressions import expressions_of
from traces.core.contracts.model import (
    Anchor,
    CallTarget,
    Contract,
    ContractFinding,
    ContractReading,
    Prohibited,
    Required,
    Target,
)
from traces.core.contracts.places import quoted
from traces.core.contracts.reading import read_contracts

MOST_FINDINGS = 100
"""Of one draft; what is beyond them is seen once these are mended."""

_NAMED_TESTS = 3


@dataclass(frozen=True, slots=True)
class ContractSource:
    """A text with one or many contracts, and the file that it came in; "" for a typed one."""

    name: str
    text: str | bytes


@dataclass(frozen=True, slots=True)
class DraftFinding:
    """Something wrong in a draft: the file, the place in it, and the sentence for people."""

    source: str  # "" for a typed text
    line: int  # from 1; 0 where none can be named
    column: int  # from 1; 0 where none can be named
    field: str  # "" for the document itself
    sentence: str
    code: str
    task_id: str = ""  # of the contract, where it could be read

    @property
    def place(self) -> str:
        """Where it stands: "refunds.yaml:12:3: required[0].where"."""
        numbers = [str(number) for number in (self.line, self.column) if number]
        place = ":".join([part for part in (self.source, *numbers) if part])
        return ": ".join(part for part in (place, self.field) if part)


@dataclass(frozen=True, slots=True)
class DraftedContract:
    """A contract that was read whole, with its own text."""

    reading: ContractReading
    contract: Contract
    source: str = ""

    @property
    def text(self) -> str:
        """The document's own text."""
        return self.reading.text

    def finding(self, code: str, field: str, sentence: str) -> DraftFinding:
        """A finding at a field of this contract."""
        line, column = self.reading.place_of(field)
        task_id = self.contract.task_id
        return DraftFinding(self.source, line, column, field, sentence, code, task_id)


@dataclass(frozen=True, slots=True)
class ReadDrafts:
    """What texts come to. Contracts are usable only where there is no finding."""

    contracts: tuple[DraftedContract, ...]
    findings: tuple[DraftFinding, ...]
    n_documents: int


def drafts_of(sources: Iterable[ContractSource]) -> ReadDrafts:
    """The contracts of some texts with everything that is wrong with them. Never raises."""
    contracts: list[DraftedContract] = []
    findings: list[DraftFinding] = []
    n_documents = 0
    for source in sources:
        for reading in read_contracts(source.text):
            n_documents += 1
            findings += (_placed(source, each) for each in reading.findings)
            if reading.contract is None:
                continue
            drafted = DraftedContract(reading, reading.contract, source.name)
            contracts.append(drafted)
            findings += _bad_expressions(drafted)
    findings += _second_contracts(contracts)
    return ReadDrafts(tuple(contracts), tuple(findings[:MOST_FINDINGS]), n_documents)


def _placed(source: ContractSource, finding: ContractFinding) -> DraftFinding:
    return DraftFinding(
        source.name, finding.line, finding.column, finding.field, finding.sentence, finding.code
    )


def _second_contracts(contracts: Iterable[DraftedContract]) -> Iterator[DraftFinding]:
    first: dict[str, DraftedContract] = {}
    for drafted in contracts:
        task_id = drafted.contract.task_id
        if (earlier := first.setdefault(task_id, drafted)) is drafted:
            continue
        where = f" in {earlier.source}" if earlier.source != drafted.source else ""
        line = earlier.reading.place_of("task")[0]
        sentence = f"Task {quoted(task_id)} has a contract already, at line {line}{where}."
        yield drafted.finding("second-contract", "task", sentence)


def _bad_expressions(drafted: DraftedContract) -> Iterator[DraftFinding]:
    """A finding for each expression that does not compile or is too large."""
    for expression in expressions_of(drafted.contract):
        problem = expression_problem(expression.text, expression.names)
        if problem:
            yield drafted.finding("bad-expression", expression.field, problem)


def tools_named(drafted: DraftedContract) -> Iterator[tuple[str, str]]:
    """Every tool that a contract names, with the field that names it."""
    for field, target in _targets_of(drafted):
        if isinstance(target, CallTarget):
            named = f"{field}.call"
            yield (named if named in drafted.reading.places else field), target.call
    for at, rule in enumerate(drafted.contract.variation):
        yield f"variation[{at}].tool", rule.tool


def _targets_of(drafted: DraftedContract) -> Iterator[tuple[str, Target]]:
    """The targets of all entries and anchors, with the fields in which they are written."""
    contract, places = drafted.contract, drafted.reading.places
    lists: tuple[tuple[str, Sequence[Required | Prohibited]], ...] = (
        ("required", contract.required),
        ("prohibited", contract.prohibited),
    )
    for name, entries in lists:
        for at, entry in enumerate(entries):
            field = f"{name}[{at}]"
            for n, target in enumerate(entry.any_of):
                inner = f"{field}.any_of[{n}]"
                yield (inner if inner in places else field), target
            if isinstance(entry, Required):
                yield from _anchor_target(f"{field}.before", entry.before)
                yield from _anchor_target(f"{field}.after", entry.after)


def _anchor_target(field: str, anchor: Anchor | None) -> Iterator[tuple[str, Target]]:
    if anchor is not None:
        yield field, anchor.target


@lru_cache(maxsize=256)
def contract_of_text(text: str) -> Contract | None:
    """The contract that a stored text holds; None where this version of the product refuses it."""
    reading = read_contracts(text)[0]
    return reading.contract


def grader_tests_of(contract: Contract) -> tuple[GraderTest, ...]:
    """The grader tests of a contract, run now."""
    return tuple(
        GraderTest(
            task_id=contract.task_id,
            name=result.name,
            is_met=result.is_met,
            checks=tuple(
                PlantedCheck(check.criterion, check.wanted, check.found, check.sentence)
                for check in result.checks
                if check.wanted != check.found
            ),
        )
        for result in grader_test_results(contract)
    )


def unmet_tests_sentence(tests: Iterable[GraderTest]) -> str:
    """Why contracts cannot take effect as their grader tests stand; "" where all are met."""
    unmet = [f"{quoted(test.name)} of task {test.task_id}" for test in tests if not test.is_met]
    if not unmet:
        return ""
    named = ", ".join(unmet[:_NAMED_TESTS])
    more = f" and {len(unmet) - _NAMED_TESTS} more" if len(unmet) > _NAMED_TESTS else ""
    what = "A grader test is not met" if len(unmet) == 1 else "Grader tests are not met"
    return f"{what}: {named}{more}. Mend the contract, or what the test expects, first."
