"""A contract as frozen values. What each part means: docs/contracts.md.

`traces.core.contracts.reading` makes these of YAML text and `reviews.core.checks` decides trials by
them. A criterion's digest covers everything that its check depends on inside the contract, so that
verdicts given under another version with the same digest still count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from traces.core.records import CriterionClass, GraderKind
from traces.core.rules import ArgumentRule
from traces.core.values import Json

OUTCOME = "outcome"
"""The criterion of the outcome check; no entry may take it for its own."""


class MessageBy(StrEnum):
    """Whose messages a target means."""

    USER = "user"
    AGENT = "agent"


class BudgetName(StrEnum):
    """What a budget entry bounds. Its criterion is `budget.<name>`."""

    TOOL_CALLS = "tool_calls"  # the agent's tool calls, attempts
    TURNS = "turns"  # messages of the user that the agent answered with anything
    COST_USD = "cost_usd"
    TOKENS = "tokens"  # input and output
    SECONDS = "seconds"
    REPEAT_CALL = "repeat_call"  # calls with the same tool and arguments


class EvidencePart(StrEnum):
    """Evidence that a contract declares: without it a trial is not decided."""

    INITIAL_STATE = "initial_state"
    FINAL_STATE = "final_state"
    TOOL_RESULTS = "tool_results"  # every call of the agent has its result
    FACTS = "facts"
    COST = "cost"
    TOKENS = "tokens"
    TIMES = "times"


@dataclass(frozen=True, slots=True)
class CallTarget:
    """Calls of a tool, narrowed by a CEL expression; "" takes every call."""

    call: str  # NFC
    where: str = ""


@dataclass(frozen=True, slots=True)
class MessageTarget:
    """Messages of one side, narrowed by a CEL expression; "" takes every message."""

    by: MessageBy
    where: str = ""


Target = CallTarget | MessageTarget


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a required entry must stand before or after."""

    target: Target
    committed_only: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A wanted value at a JSON Pointer into the state; a last name `-` means appended."""

    pointer: str
    value: Json


@dataclass(frozen=True, slots=True)
class OutcomeCase:
    """One case of the outcome: the first whose `when` holds decides."""

    when: str  # CEL over `facts`; "" holds always
    changes: tuple[Change, ...] = ()  # all else must equal the initial state
    ignore: tuple[str, ...] = ()  # pointers, `*` stands for any one name
    absent: tuple[str, ...] = ()  # pointers that must lead to nothing, `*` as in ignore
    unchanged: bool = False  # written out by the author: nothing changes


@dataclass(frozen=True, slots=True)
class Outcome:
    """In which state the environment must be left."""

    cases: tuple[OutcomeCase, ...]  # empty where the record's expected_state decides
    is_recorded_expectation: bool
    digest: bytes


@dataclass(frozen=True, slots=True)
class Required:
    """Something that must have happened: one of its targets, where an anchor asks, in time."""

    id: str
    any_of: tuple[Target, ...]  # one or more
    before: Anchor | None
    after: Anchor | None
    mandatory: bool
    digest: bytes


@dataclass(frozen=True, slots=True)
class Prohibited:
    """Something that must not happen. An attempt already violates, unless narrowed."""

    id: str
    harm: str
    any_of: tuple[Target, ...]
    committed_only: bool
    mandatory: bool
    digest: bytes


@dataclass(frozen=True, slots=True)
class Budget:
    """An upper limit, itself allowed."""

    name: BudgetName
    limit: Decimal
    mandatory: bool
    digest: bytes

    @property
    def id(self) -> str:
        return f"budget.{self.name.value}"


@dataclass(frozen=True, slots=True)
class NamedGrader:
    """A grader that the contract names: without its vote the requirement stays open."""

    name: str
    kind: GraderKind


@dataclass(frozen=True, slots=True)
class Rubric:
    """A semantic criterion, decided by people and calibrated judges."""

    id: str  # the rubric's name
    version: str  # "" where the contract names none
    question: str  # what is asked, for people; "" where the name says it
    mandatory: bool
    graders: tuple[NamedGrader, ...]
    digest: bytes


@dataclass(frozen=True, slots=True)
class External:
    """A criterion that graders outside decide."""

    id: str
    criterion_class: CriterionClass
    mandatory: bool
    graders: tuple[NamedGrader, ...]
    digest: bytes


@dataclass(frozen=True, slots=True)
class PlantedTrial:
    """A grader test: a trial made for it, and what each check must say of it.

    `record` is a native trial record (messages, facts, states, usage).
    """

    name: str
    record: dict[str, Json]
    expect: tuple[tuple[str, str], ...]  # criterion, verdict word: pass, fail, unknown, error


@dataclass(frozen=True, slots=True)
class Contract:
    """The requirements of a task."""

    task_id: str  # NFC
    title: str
    family: str
    split: str | None  # tuning | held_out | regression
    input: Json  # None where the contract gives none
    facts: dict[str, Json]  # starting facts, fixed
    trial_facts: tuple[str, ...]  # facts that each trial brings
    outcome: Outcome | None
    required: tuple[Required, ...]
    prohibited: tuple[Prohibited, ...]
    budget: tuple[Budget, ...]
    semantic: tuple[Rubric, ...]
    external: tuple[External, ...]
    evidence: tuple[EvidencePart, ...]
    variation: tuple[ArgumentRule, ...]  # permitted variation of this task
    trials: int | None  # how many a run should have
    grader_tests: tuple[PlantedTrial, ...]
    digest: bytes  # of the whole document

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Every tool that it names, in order of name."""
        entries: tuple[Required | Prohibited, ...] = (*self.required, *self.prohibited)
        targets = [target for entry in entries for target in entry.any_of]
        anchors = [a for r in self.required for a in (r.before, r.after) if a is not None]
        targets += [anchor.target for anchor in anchors]
        named = {target.call for target in targets if isinstance(target, CallTarget)}
        return tuple(sorted(named | {rule.tool for rule in self.variation}))


@dataclass(frozen=True, slots=True)
class ContractFinding:
    """Something wrong in a contract's text, with its place."""

    code: str  # stable, kebab-case
    line: int  # from 1; 0 where no line can be named
    column: int  # from 1; 0 where none can be named
    field: str  # path inside the document: "required[1].where", "" for the document itself
    sentence: str  # for people, complete


@dataclass(frozen=True, slots=True)
class ContractReading:
    """One document of a contract text: its contract, or what is wrong with it."""

    line: int  # where the document begins
    text: str  # the document's own text, without document markers
    contract: Contract | None  # None when there is any finding
    findings: tuple[ContractFinding, ...]
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict, repr=False, compare=False)

    def place_of(self, field: str) -> tuple[int, int]:
        """Line and column of a field such as `required[1].where`, else of the nearest above."""
        while field and field not in self.places:
            field = field[: max(field.rfind("."), field.rfind("["), 0)]
        return self.places.get(field, (self.line, 1))
