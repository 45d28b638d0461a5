"""Evidence that is added to a stored trial, and the trial's evidence with it.

An addition fills what the record lacks and never changes what it has: a part that was recorded, or
added before, stays as it is. Facts are filled member by member, results call by call. The result
of a call that had none is appended as a step of its own behind the transcript, so that the numbers
of all recorded steps stay; it counts as having arrived right after its call, as nobody noted when.
`evidence_order` says how many additions were seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar

from traces.core.records import Finding, TrialStatus
from traces.core.rules import RejectionSettings
from traces.core.trajectory import CallOutcome, Step, ToolCall
from traces.core.transcript import DEFAULT_REJECTION, transcript_of
from traces.core.values import Json, JsonObject

T = TypeVar("T")

ADDED = "added"
"""The role of a step that an addition brought. No recorded result has it: theirs is a tool's."""

MOST_COUNT = 2**63 - 1
MOST_AMOUNT = Decimal(10) ** 15


class AdditionPart(StrEnum):
    """What an addition can fill, by its name in the document. The order is the one shown."""

    INITIAL_STATE = "initial_state"
    FINAL_STATE = "final_state"
    FACTS = "facts"
    RESULTS = "results"
    COST_USD = "cost_usd"
    TOKENS = "tokens"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class AddedResult:
    """The result of a call that the record has none of."""

    step: int  # of the message that made the call
    index: int  # of the call in that message, from 0
    content: Json
    is_error: bool | None = None  # None: as the content tells


@dataclass(frozen=True, slots=True)
class Addition:
    """Parts that fill what a trial did not record. None, or empty: not part of it."""

    initial_state: Json = None
    final_state: Json = None
    facts: JsonObject | None = None
    results: tuple[AddedResult, ...] = ()
    cost_usd: Decimal | None = None
    tokens: int | None = None  # input and output together
    seconds: Decimal | None = None

    @property
    def parts(self) -> tuple[AdditionPart, ...]:
        """What it fills."""
        given: dict[AdditionPart, object] = {
            AdditionPart.INITIAL_STATE: self.initial_state,
            AdditionPart.FINAL_STATE: self.final_state,
            AdditionPart.FACTS: self.facts or None,
            AdditionPart.RESULTS: self.results or None,
            AdditionPart.COST_USD: self.cost_usd,
            AdditionPart.TOKENS: self.tokens,
            AdditionPart.SECONDS: self.seconds,
        }
        return tuple(part for part, value in given.items() if value is not None)


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """All evidence of a trial that checks read. None: not recorded, and not added since."""

    status: TrialStatus
    messages: tuple[JsonObject, ...]  # native form
    steps: tuple[Step, ...]  # of the messages, same order and length
    facts: JsonObject | None = None
    initial_state: Json = None
    final_state: Json = None
    expected_state: Json = None
    cost_usd: Decimal | None = None
    tokens: int | None = None
    seconds: Decimal | None = None
    evidence_order: int = 0  # additions that are in it


def addition_document(addition: Addition) -> JsonObject:
    """An addition as it is stored."""
    document: JsonObject = {}
    for part in addition.parts:
        match part:
            case AdditionPart.RESULTS:
                document[part.value] = [_result_document(one) for one in addition.results]
            case _:
                document[part.value] = getattr(addition, part.value)
    return document


def _result_document(one: AddedResult) -> JsonObject:
    document: JsonObject = {"step": one.step, "index": one.index, "content": one.content}
    if one.is_error is not None:
        document["is_error"] = one.is_error
    return document


def parse_addition(document: Json) -> tuple[Addition, tuple[Finding, ...]]:
    """The addition of a document, and what is wrong with it; worth nothing with any finding."""
    findings: list[Finding] = []
    if not isinstance(document, dict):
        sentence = "An addition must be an object of the parts that it fills."
        return Addition(), (Finding("wrong-type", "", sentence),)
    known = {part.value for part in AdditionPart}
    for name in document:
        if name not in known:
            sentence = f"{name[:100]!r} is no part that can be added."
            findings.append(Finding("unknown-part", name, sentence))
    facts = document.get("facts")
    if facts is not None and not isinstance(facts, dict):
        findings.append(Finding("wrong-type", "facts", "facts must be an object."))
        facts = None
    addition = Addition(
        initial_state=document.get("initial_state"),
        final_state=document.get("final_state"),
        facts=facts,
        results=tuple(_results(document.get("results"), findings)),
        cost_usd=_amount(document.get("cost_usd"), "cost_usd", findings),
        tokens=_count(document.get("tokens"), "tokens", findings),
        seconds=_amount(document.get("seconds"), "seconds", findings),
    )
    if not addition.parts and not findings:
        findings.append(Finding("empty", "", "It adds nothing: every part of it is empty."))
    return addition, tuple(findings)


def _results(raw: Json, findings: list[Finding]) -> Iterable[AddedResult]:
    if raw is None:
        return
    if not isinstance(raw, list):
        findings.append(Finding("wrong-type", "results", "results must be a list."))
        return
    for number, one in enumerate(raw):
        place = f"results[{number}]"
        if not isinstance(one, dict):
            findings.append(Finding("wrong-type", place, f"{place} must be an object."))
            continue
        step = _count(one.get("step"), f"{place}.step", findings)
        index = _count(one.get("index", 0), f"{place}.index", findings)
        flag = one.get("is_error")
        if flag is not None and not isinstance(flag, bool):
            sentence = f"{place}.is_error must be true or false."
            findings.append(Finding("wrong-type", f"{place}.is_error", sentence))
            flag = None
        if "content" not in one:
            findings.append(Finding("missing-field", place, f"{place} has no content."))
        if step is None or index is None:
            sentence = f"{place} must name the step of its call."
            findings.append(Finding("missing-field", place, sentence))
            continue
        yield AddedResult(step, index, one.get("content"), flag)


def _count(raw: Json, place: str, findings: list[Finding]) -> int | None:
    value = _number(raw)
    if raw is None or (value is not None and value <= MOST_COUNT and value == int(value)):
        return None if value is None else int(value)
    findings.append(Finding("bad-number", place, f"{place} must be a whole number from 0 on."))
    return None


def _amount(raw: Json, place: str, findings: list[Finding]) -> Decimal | None:
    value = _number(raw)
    if raw is None or (value is not None and value <= MOST_AMOUNT):
        return value
    findings.append(Finding("bad-number", place, f"{place} must be a number from 0 on."))
    return None


def _number(raw: Json) -> Decimal | None:
    """A number from 0 on, also written as text; None for all else."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | Decimal | str):
        return None
    if isinstance(raw, int) and raw > MOST_COUNT:
        return None
    try:
        value = Decimal(str(raw))
    except InvalidOperation:
        return None
    return value if value.is_finite() and value >= 0 else None


def unfit_parts(evidence: StoredEvidence, addition: Addition) -> tuple[Finding, ...]:
    """What of an addition fills nothing, for people: the trial has that part already.

    Of facts and results each one is named by itself. Results must name calls of the transcript.
    """
    findings: list[Finding] = []
    for part in addition.parts:
        match part:
            case AdditionPart.FACTS:
                findings += _known_facts(evidence, addition)
            case AdditionPart.RESULTS:
                findings += _unfit_results(evidence, addition)
            case _ if getattr(evidence, part.value) is not None:
                sentence = f"The trial has {part.value} already; evidence never changes."
                findings.append(Finding("recorded", part.value, sentence))
            case _:
                pass
    return tuple(findings)


def _known_facts(evidence: StoredEvidence, addition: Addition) -> Iterable[Finding]:
    for name in addition.facts or ():
        if name in (evidence.facts or {}):
            sentence = f"The trial has the fact {name[:100]!r} already; evidence never changes."
            yield Finding("recorded", f"facts.{name}", sentence)


def _unfit_results(evidence: StoredEvidence, addition: Addition) -> Iterable[Finding]:
    open_calls = _open_calls(evidence)
    for number, one in enumerate(addition.results):
        place = f"results[{number}]"
        is_open = open_calls.get((one.step, one.index))
        if is_open is None:
            sentence = f"Step {one.step} has no call {one.index + 1}."
            yield Finding("no-such-call", place, sentence)
        elif not is_open:
            sentence = (
                f"Call {one.index + 1} of step {one.step} has its result already; "
                "evidence never changes."
            )
            yield Finding("recorded", place, sentence)
        open_calls[one.step, one.index] = False


def _open_calls(evidence: StoredEvidence) -> dict[tuple[int, int], bool]:
    """Whether each call lacks its result, by step and index."""
    return {
        (call.step, call.index): call.result_step is None
        for step in evidence.steps
        for call in step.calls
    }


def filled(
    recorded: StoredEvidence,
    additions: Sequence[Addition],
    rejection: RejectionSettings = DEFAULT_REJECTION,
) -> StoredEvidence:
    """The evidence with additions, the earliest first. The first to fill a part fills it."""
    evidence = recorded
    for addition in additions:
        evidence = _filled_once(evidence, addition, rejection)
    return evidence


def _filled_once(
    evidence: StoredEvidence, addition: Addition, rejection: RejectionSettings
) -> StoredEvidence:
    facts = evidence.facts
    if addition.facts:
        facts = {**addition.facts, **(facts or {})}
    evidence = replace(
        evidence,
        facts=facts,
        initial_state=_first(evidence.initial_state, addition.initial_state),
        final_state=_first(evidence.final_state, addition.final_state),
        cost_usd=_first(evidence.cost_usd, addition.cost_usd),
        tokens=_first(evidence.tokens, addition.tokens),
        seconds=_first(evidence.seconds, addition.seconds),
        evidence_order=evidence.evidence_order + 1,
    )
    return _with_results(evidence, addition, rejection) if addition.results else evidence


def _first(recorded: T, added: T) -> T:
    return added if recorded is None else recorded


def _with_results(
    evidence: StoredEvidence, addition: Addition, rejection: RejectionSettings
) -> StoredEvidence:
    open_calls = _open_calls(evidence)
    messages, steps = list(evidence.messages), list(evidence.steps)
    answered: dict[tuple[int, int], tuple[int, CallOutcome]] = {}
    for one in addition.results:
        place = (one.step, one.index)
        if open_calls.get(place) and place not in answered:
            message = _message_of(one, evidence.steps[one.step - 1].calls[one.index].id)
            number = len(messages) + 1
            messages.append(message)
            (step,) = transcript_of([message], rejection, first_number=number)
            steps.append(replace(step, role=ADDED))
            answered[place] = (number, _outcome_of(message, rejection))
    steps = [_answered(step, answered) for step in steps]
    return replace(evidence, messages=tuple(messages), steps=tuple(steps))


def _message_of(one: AddedResult, call_id: str | None) -> JsonObject:
    message: JsonObject = {"role": "tool", "content": one.content}
    if call_id is not None:
        message["tool_call_id"] = call_id
    if one.is_error is not None:
        message["is_error"] = one.is_error
    return message


def _outcome_of(message: JsonObject, rejection: RejectionSettings) -> CallOutcome:
    """What a call with this result came to, as a recorded result tells it."""
    call: JsonObject = {"role": "assistant", "tool_calls": [{"name": "call"}]}
    alone = {name: value for name, value in message.items() if name != "tool_call_id"}
    return transcript_of([call, alone], rejection)[0].calls[0].outcome


def _answered(step: Step, answered: Mapping[tuple[int, int], tuple[int, CallOutcome]]) -> Step:
    if not any((call.step, call.index) in answered for call in step.calls):
        return step
    return replace(step, calls=tuple(_answered_call(call, answered) for call in step.calls))


def _answered_call(
    call: ToolCall, answered: Mapping[tuple[int, int], tuple[int, CallOutcome]]
) -> ToolCall:
    found = answered.get((call.step, call.index))
    return replace(call, result_step=found[0], outcome=found[1]) if found else call
