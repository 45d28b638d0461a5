"""A contract in words: what each entry asks, for people who do not read YAML.

Expressions stay as their author wrote them and stand apart from the words, so that a page can show
them as code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from traces.core.contracts.model import (
    Anchor,
    Budget,
    BudgetName,
    CallTarget,
    Contract,
    EvidencePart,
    External,
    MessageBy,
    NamedGrader,
    OutcomeCase,
    Prohibited,
    Required,
    Rubric,
    Target,
)
from traces.core.rule_words import rule_sentence
from traces.core.shown_json import shown_json
from traces.core.values import Json

LONGEST_VALUE: Final = 300  # characters of a wanted value


@dataclass(frozen=True, slots=True)
class Words:
    """A few words, what they name, and the expression that narrows it; "" where there is none."""

    lead: str  # "call of", "or message of the user", "before the first attempt of"
    name: str = ""  # a tool
    where: str = ""  # CEL


@dataclass(frozen=True, slots=True)
class CaseWords:
    """One case of the outcome."""

    lead: str  # "Where", "Otherwise, where", "Otherwise", "Always"
    when: str  # CEL, "" for none
    lines: tuple[Words, ...]  # the pointer as name stands before the lead, a value as where


@dataclass(frozen=True, slots=True)
class EntryWords:
    """One requirement."""

    id: str
    parts: tuple[Words, ...]
    note: str = ""  # "a committed call only"
    is_mandatory: bool = True


@dataclass(frozen=True, slots=True)
class HarmWords:
    """What is prohibited for one kind of harm."""

    harm: str
    entries: tuple[EntryWords, ...]


def outcome_words(contract: Contract) -> tuple[CaseWords, ...]:
    """The cases of the outcome, in the order in which they are tried."""
    if contract.outcome is None:
        return ()
    if contract.outcome.is_recorded_expectation:
        expected = Words("the state is the one that the trial's record expects")
        return (CaseWords("Always", "", (expected,)),)
    return tuple(
        CaseWords(_case_lead(at, case), case.when, tuple(_case_lines(case)))
        for at, case in enumerate(contract.outcome.cases)
    )


def _case_lead(at: int, case: OutcomeCase) -> str:
    if at == 0:
        return "Where" if case.when else "Always"
    return "Otherwise, where" if case.when else "Otherwise"


def _case_lines(case: OutcomeCase) -> Iterator[Words]:
    for change in case.changes:
        lead = "gets the new entry" if change.pointer.endswith("/-") else "becomes"
        yield Words(lead, change.pointer.removesuffix("/-"), _value_text(change.value))
    for pointer in case.absent:
        yield Words("is absent", pointer)
    for pointer in case.ignore:
        yield Words("is not compared", pointer)
    yield Words("everything else stays as it was" if case.changes else "nothing changes")


def _value_text(value: Json) -> str:
    text = shown_json(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def required_words(contract: Contract) -> tuple[EntryWords, ...]:
    """What must have happened."""
    return tuple(_required(entry) for entry in contract.required)


def _required(entry: Required) -> EntryWords:
    anchors = [
        _anchor(lead, anchor)
        for lead, anchor in (("before", entry.before), ("after", entry.after))
        if anchor is not None
    ]
    parts = (*_targets(entry.any_of), *anchors)
    return EntryWords(entry.id, parts, is_mandatory=entry.mandatory)


def _anchor(lead: str, anchor: Anchor) -> Words:
    order = "first" if lead == "before" else "last"
    match anchor.target:
        case CallTarget(name, where):
            what = "committed call of" if anchor.committed_only else "attempt of"
            return Words(f"{lead} the {order} {what}", name, where)
        case target:
            return Words(f"{lead} the {order} message of {_side(target.by)}", "", target.where)


def _targets(targets: Sequence[Target]) -> Iterator[Words]:
    for at, target in enumerate(targets):
        joined = "or " if at else ""
        match target:
            case CallTarget(name, where):
                yield Words(f"{joined}call of", name, where)
            case _:
                yield Words(f"{joined}message of {_side(target.by)}", "", target.where)


def _side(by: MessageBy) -> str:
    return "the user" if by is MessageBy.USER else "the agent"


def prohibited_words(contract: Contract) -> tuple[HarmWords, ...]:
    """What must not happen, by harm in the order of the contract."""
    by_harm: dict[str, list[EntryWords]] = {}
    for entry in contract.prohibited:
        by_harm.setdefault(entry.harm, []).append(_prohibited(entry))
    return tuple(HarmWords(harm, tuple(entries)) for harm, entries in by_harm.items())


def _prohibited(entry: Prohibited) -> EntryWords:
    note = "committed calls only" if entry.committed_only else "an attempt already violates it"
    return EntryWords(entry.id, tuple(_targets(entry.any_of)), note, entry.mandatory)


_BUDGETS: Final = {
    BudgetName.TOOL_CALLS: ("tool call", "tool calls"),
    BudgetName.TURNS: ("answered message of the user", "answered messages of the user"),
    BudgetName.COST_USD: ("US dollar", "US dollars"),
    BudgetName.TOKENS: ("token", "tokens"),
    BudgetName.SECONDS: ("second", "seconds"),
    BudgetName.REPEAT_CALL: (
        "call of one tool with the same arguments",
        "calls of one tool with the same arguments",
    ),
}


def budget_words(contract: Contract) -> tuple[EntryWords, ...]:
    """The upper limits."""
    return tuple(_budget(entry) for entry in contract.budget)


def _budget(entry: Budget) -> EntryWords:
    one, many = _BUDGETS[entry.name]
    words = f"at most {_number(entry.limit)} {one if entry.limit == 1 else many}"
    return EntryWords(entry.id, (Words(words),), is_mandatory=entry.mandatory)


def _number(value: Decimal) -> str:
    return f"{value:,f}"


def semantic_words(contract: Contract) -> tuple[EntryWords, ...]:
    """What people and calibrated judges decide."""
    return tuple(_rubric(entry) for entry in contract.semantic)


def _rubric(entry: Rubric) -> EntryWords:
    version = f"version {entry.version}" if entry.version else ""
    note = ", ".join(part for part in (version, _graders(entry.graders)) if part)
    question = entry.question or "decided by people and calibrated judges"
    return EntryWords(entry.id, (Words(question),), note, entry.mandatory)


def external_words(contract: Contract) -> tuple[EntryWords, ...]:
    """What graders outside decide."""
    return tuple(_external(entry) for entry in contract.external)


def _external(entry: External) -> EntryWords:
    words = f"decided outside, as {entry.criterion_class.value}"
    return EntryWords(entry.id, (Words(words),), _graders(entry.graders), entry.mandatory)


def _graders(graders: Sequence[NamedGrader]) -> str:
    if not graders:
        return ""
    names = ", ".join(f"{grader.name} ({grader.kind.value})" for grader in graders)
    return f"must vote: {names}"


_EVIDENCE: Final = {
    EvidencePart.INITIAL_STATE: "initial state",
    EvidencePart.FINAL_STATE: "final state",
    EvidencePart.TOOL_RESULTS: "the result of every tool call",
    EvidencePart.FACTS: "facts",
    EvidencePart.COST: "cost",
    EvidencePart.TOKENS: "tokens",
    EvidencePart.TIMES: "start and end",
}


def evidence_words(contract: Contract) -> tuple[str, ...]:
    """The evidence without which a trial is not decided."""
    return tuple(_EVIDENCE[part] for part in contract.evidence)


def variation_words(contract: Contract) -> tuple[str, ...]:
    """The argument rules of the task, as sentences."""
    return tuple(rule_sentence(rule) for rule in contract.variation)
