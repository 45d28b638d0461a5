"""Cases of trajectory matching in the format of agentevals' tests, and their scores.

A case holds the messages of a trajectory and of a reference, and how to compare them:

- `strict`: the same roles in the same order, and message by message the same tool calls, in any
  order inside one message; what is said does not count.
- `unordered`, `subset`, `superset`: the same calls; every call of the outputs in the reference; every
  call of the reference in the outputs. In any order, one to one.

Two calls match when they name the same tool and their arguments fit as `tool_args_match_mode` says:
`exact` equal, `ignore` whatever they are, `subset` every member of the output's stands in the
reference's, `superset` the other way round. `tool_args_match_overrides` says otherwise for single
tools: another mode, or the paths of the members that count ("time.start"; a missing one equals null).
An empty list of paths overrides nothing. A Python function as an override cannot be run here.

Where agentevals takes the first call that fits, the best assignment decides here, and `subset` and
`superset` of arguments always mean the output's against the reference's, in each mode.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TypeAlias, TypeVar

from traces.core.canonical import canonical_text, nfc
from traces.core.formats.fields import RefusedError, kind_of
from traces.core.matching import largest_assignment
from traces.core.records import Finding
from traces.core.strict_json import StrictJsonError, loads, member_place
from traces.core.text_marks import marked_text
from traces.core.trajectory import ArgumentsForm, Step, ToolCall
from traces.core.transcript import transcript_of
from traces.core.values import Json, JsonObject

MOST_PAIRS = 1_000_000
"""Pairs of calls of one tool, in one case, that are tried for the best assignment."""

_LONGEST_NAME = 80
_INDEX = re.compile(r"\[([0-9]{1,9})\]")


class MatchMode(StrEnum):
    """How calls must correspond; see above."""

    STRICT = "strict"
    UNORDERED = "unordered"
    SUBSET = "subset"
    SUPERSET = "superset"


class ArgumentsMode(StrEnum):
    """How the arguments of two calls of one tool must fit; see above."""

    EXACT = "exact"
    IGNORE = "ignore"
    SUBSET = "subset"
    SUPERSET = "superset"


@dataclass(frozen=True, slots=True)
class KeyPaths:
    """The members of the arguments that count, each as the names on the way to it."""

    paths: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A comparison that is code of another program."""


Override: TypeAlias = ArgumentsMode | KeyPaths | PythonFunction


@dataclass(frozen=True, slots=True)
class MatchCase:
    """One trajectory, its reference, and how to compare them."""

    case_id: str
    mode: MatchMode
    arguments: ArgumentsMode
    overrides: tuple[tuple[str, Override], ...]  # by NFC name of the tool
    outputs: tuple[Step, ...]
    reference: tuple[Step, ...]
    expected: bool | None  # the score that the file names


@dataclass(frozen=True, slots=True)
class CaseScore:
    """Whether a case matches; None where it cannot be told, with the reason."""

    case_id: str
    mode: MatchMode
    score: bool | None
    reason: str = ""
    expected: bool | None = None


class _CannotTellError(Exception):
    """A sentence for people says why a case has no score."""


_Mode = TypeVar("_Mode", MatchMode, ArgumentsMode)


# Reading cases


def read_cases(data: bytes) -> tuple[tuple[MatchCase, ...], tuple[Finding, ...]]:
    """The cases of a file, and what is wrong with it: one finding for each case that cannot be read."""
    try:
        document = loads(data)
    except StrictJsonError as error:
        inside = _INDEX.match(error.place)
        named = f"Case {int(inside[1]) + 1}: " if inside else ""
        return (), (Finding(error.code, error.place, f"{named}{error.sentence}"),)
    if not isinstance(document, list):
        sentence = f"A file of cases is a list of objects, not {kind_of(document)}."
        return (), (Finding("not-a-list", "", sentence),)
    cases: list[MatchCase] = []
    findings: list[Finding] = []
    seen: set[str] = set()
    for index, raw in enumerate(document):
        try:
            case = _case_of(raw)
            if case.case_id in seen:
                raise RefusedError("duplicate-id", "id", "an earlier case has the same id")
        except RefusedError as error:
            findings.append(_finding(error.finding, raw, index))
            continue
        seen.add(case.case_id)
        cases.append(case)
    return tuple(cases), tuple(findings)


def _finding(found: Finding, raw: Json, index: int) -> Finding:
    """What is wrong with a case, as a sentence that names the case and the field."""
    name = raw.get("id") if isinstance(raw, dict) else None
    named = f" ({_shown(name)})" if isinstance(name, str) else ""
    place = f"[{index}].{found.place}" if found.place else f"[{index}]"
    field = f", {marked_text(found.place)}" if found.place else ""
    return Finding(found.code, place, f"Case {index + 1}{named}{field}: {found.sentence}.")


def _case_of(raw: Json) -> MatchCase:
    if not isinstance(raw, dict):
        raise RefusedError("not-an-object", "", f"an object is needed, not {kind_of(raw)}")
    arguments = raw.get("tool_args_match_mode")
    expected = raw.get("expected_score")
    if not (expected is None or isinstance(expected, bool)):
        raise _wrong_type(expected, "expected_score", "true or false")
    return MatchCase(
        case_id=_text(raw.get("id"), "id"),
        mode=_mode(MatchMode, raw.get("trajectory_match_mode"), "trajectory_match_mode"),
        arguments=ArgumentsMode.EXACT
        if arguments is None
        else _mode(ArgumentsMode, arguments, "tool_args_match_mode"),
        overrides=_overrides(raw.get("tool_args_match_overrides"), "tool_args_match_overrides"),
        outputs=_steps(raw.get("outputs"), "outputs"),
        reference=_steps(raw.get("reference_outputs"), "reference_outputs"),
        expected=expected,
    )


def _overrides(value: Json, place: str) -> tuple[tuple[str, Override], ...]:
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise _wrong_type(value, place, "an object")
    found = {nfc(tool): _override(item, member_place(place, tool)) for tool, item in value.items()}
    return tuple((tool, override) for tool, override in found.items() if override is not None)


def _override(value: Json, place: str) -> Override | None:
    match value:
        case None | []:
            return None
        case str():
            return _mode(ArgumentsMode, value, place)
        case list():
            return KeyPaths(
                tuple(
                    tuple(_text(path, f"{place}[{at}]").split(".")) for at, path in enumerate(value)
                )
            )
        case {"callable": _}:
            return PythonFunction()
        case _:
            raise _wrong_type(value, place, 'a mode, a list of paths or {"callable": …}')


def _steps(value: Json, place: str) -> tuple[Step, ...]:
    messages: list[JsonObject] = []
    for at, message in enumerate(_listed(value, place)):
        messages.append(_message(message, f"{place}[{at}]"))
    return transcript_of(messages)


def _message(value: Json, place: str) -> JsonObject:
    message = _object(value, place)
    _text(message.get("role"), f"{place}.role")
    if message.get("tool_calls") is not None:
        for at, call in enumerate(_listed(message["tool_calls"], f"{place}.tool_calls")):
            here = f"{place}.tool_calls[{at}]"
            function = _object(_object(call, here).get("function"), f"{here}.function")
            _text(function.get("name"), f"{here}.function.name")
    return message


def _object(value: Json, place: str) -> JsonObject:
    if isinstance(value, dict):
        return value
    raise _wrong_type(value, place, "an object")


def _listed(value: Json, place: str) -> list[Json]:
    if isinstance(value, list):
        return value
    raise _wrong_type(value, place, "a list")


def _text(value: Json, place: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise _wrong_type(value, place, "text")


def _mode(modes: type[_Mode], value: Json, place: str) -> _Mode:
    for mode in modes:
        if value == mode.value:
            return mode
    names = ", ".join(modes)
    given = _shown(value) if isinstance(value, str) else kind_of(value)
    raise RefusedError("unknown-mode", place, f"one of {names} is needed, not {given}")


def _wrong_type(value: Json, place: str, needed: str) -> RefusedError:
    given = "empty text" if value == "" else kind_of(value)
    return RefusedError("wrong-type", place, f"{needed} is needed, not {given}")


def _shown(text: str) -> str:
    short = text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
    return f"“{marked_text(short)}”"


# Scoring cases


@dataclass(frozen=True, slots=True)
class _Arguments:
    """A call's arguments as one mode compares them."""

    label: str | None  # equal labels fit; None: not recorded, fits nothing
    members: frozenset[tuple[str, str]] | None = None  # of an object, with canonical values


def scores_of_cases(cases: Iterable[MatchCase]) -> tuple[CaseScore, ...]:
    """The score of each case, in order."""
    return tuple(_score_of(case) for case in cases)


def _score_of(case: MatchCase) -> CaseScore:
    overrides = dict(case.overrides)
    functions = [tool for tool, each in case.overrides if isinstance(each, PythonFunction)]
    if functions:
        reason = f"The arguments of {_shown(functions[0])} are compared by a Python function."
        return CaseScore(case.case_id, case.mode, None, reason, case.expected)
    try:
        score = _matches(case, overrides)
    except _CannotTellError as error:
        return CaseScore(case.case_id, case.mode, None, str(error), case.expected)
    return CaseScore(case.case_id, case.mode, score, _remark(case, overrides), case.expected)


def _matches(case: MatchCase, overrides: dict[str, Override]) -> bool:
    if case.mode is MatchMode.STRICT:
        return [step.role for step in case.outputs] == [
            step.role for step in case.reference
        ] and all(
            len(ours.calls) == len(theirs.calls)
            and _n_matched(ours.calls, theirs.calls, case.arguments, overrides) == len(ours.calls)
            for ours, theirs in zip(case.outputs, case.reference, strict=True)
        )
    outputs, reference = _calls(case.outputs), _calls(case.reference)
    n = _n_matched(outputs, reference, case.arguments, overrides)
    return (case.mode is MatchMode.SUPERSET or n == len(outputs)) and (
        case.mode is MatchMode.SUBSET or n == len(reference)
    )


def _remark(case: MatchCase, overrides: dict[str, Override]) -> str:
    n = sum(
        call.form is ArgumentsForm.ABSENT
        and overrides.get(call.name, case.arguments) is not ArgumentsMode.IGNORE
        for call in (*_calls(case.outputs), *_calls(case.reference))
    )
    if not n:
        return ""
    subject = "1 call was" if n == 1 else f"{n:,} calls were"
    return f"{subject} recorded without arguments and cannot match."


def _calls(steps: Sequence[Step]) -> tuple[ToolCall, ...]:
    return tuple(chain.from_iterable(step.calls for step in steps))


def _n_matched(
    outputs: Sequence[ToolCall],
    reference: Sequence[ToolCall],
    mode: ArgumentsMode,
    overrides: dict[str, Override],
) -> int:
    """The most pairs of calls that fit, one to one."""
    ours, theirs = _by_tool(outputs), _by_tool(reference)
    return sum(
        _n_fitting(ours[tool], theirs[tool], overrides.get(tool, mode), tool)
        for tool in ours
        if tool in theirs
    )


def _by_tool(calls: Sequence[ToolCall]) -> dict[str, list[ToolCall]]:
    tools: dict[str, list[ToolCall]] = {}
    for call in calls:
        tools.setdefault(call.name, []).append(call)
    return tools


def _n_fitting(
    outputs: Sequence[ToolCall], reference: Sequence[ToolCall], mode: Override, tool: str
) -> int:
    if mode is ArgumentsMode.IGNORE:
        return min(len(outputs), len(reference))
    ours = [_compared(call, mode) for call in outputs]
    theirs = [_compared(call, mode) for call in reference]
    # Equal ones are paired first: no assignment is larger, as whatever fits one fits the other.
    left, right = Counter(ours), Counter(theirs)
    equal = Counter({each: n for each, n in (left & right).items() if each.label is not None})
    n = equal.total()
    if mode not in (ArgumentsMode.SUBSET, ArgumentsMode.SUPERSET):
        return n
    smaller, larger = (left - equal), (right - equal)
    if mode is ArgumentsMode.SUPERSET:
        smaller, larger = larger, smaller
    return n + _n_contained(tuple(smaller.elements()), tuple(larger.elements()), tool)


def _n_contained(smaller: Sequence[_Arguments], larger: Sequence[_Arguments], tool: str) -> int:
    """The most pairs of arguments of which one contains the other."""
    if len(smaller) * len(larger) > MOST_PAIRS:
        raise _CannotTellError(
            f"{_shown(tool)} is called {len(smaller):,} and {len(larger):,} times with arguments that"
            f" differ: too many to tell which fit (at most {MOST_PAIRS:,} pairs)."
        )
    fits = [
        sum(1 << at for at, their in enumerate(larger) if _is_contained(our, their))
        for our in smaller
    ]
    return sum(place is not None for place in largest_assignment(fits))


def _is_contained(smaller: _Arguments, larger: _Arguments) -> bool:
    return (
        smaller.members is not None
        and larger.members is not None
        and smaller.members <= larger.members
    )


def _compared(call: ToolCall, mode: Override) -> _Arguments:
    match call.form:
        case ArgumentsForm.ABSENT:
            return _Arguments(None)
        case ArgumentsForm.INVALID:
            return _Arguments(f"!{call.arguments}")
    if isinstance(mode, KeyPaths):
        return _Arguments(canonical_text([_at_path(call.arguments, path) for path in mode.paths]))
    if mode is ArgumentsMode.EXACT or not isinstance(call.arguments, dict):
        return _Arguments(canonical_text(call.arguments))
    members = frozenset((name, canonical_text(item)) for name, item in call.arguments.items())
    return _Arguments("{}", members)


def _at_path(value: Json, path: Sequence[str]) -> Json:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
