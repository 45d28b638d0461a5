"""What differs between two versions of a contract: entry by entry, and line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from traces.core.canonical import equal
from traces.core.contracts.model import (
    Anchor,
    Budget,
    CallTarget,
    Contract,
    External,
    NamedGrader,
    Outcome,
    OutcomeCase,
    Prohibited,
    Required,
    Rubric,
    Target,
)
from traces.core.contracts.writing import fragment_text
from traces.core.rule_documents import rule_data
from traces.core.values import Json, JsonObject

MOST_FRAGMENT_CHARS: Final = 4_000
MOST_COMPARED_CELLS: Final = 1_000_000  # lines of the one times lines of the other
MOST_LINES: Final = 2_000  # of a difference
CONTEXT_LINES: Final = 3
MOST_LINE_CHARS: Final = 2_000


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class LineKind(StrEnum):
    SAME = "same"
    ADDED = "added"
    REMOVED = "removed"
    GAP = "gap"  # equal lines left out here, or the end of what is shown


@dataclass(frozen=True, slots=True)
class ContractChange:
    """One entry that differs; "" on the side where it is not."""

    kind: ChangeKind
    name: str  # in words: "prohibited big-refund"
    before: str  # YAML
    after: str
    is_other_check: bool  # what it asks differs: verdicts given on it before no longer count


@dataclass(frozen=True, slots=True)
class LineChange:
    """One line of a difference; its numbers, from 1, where it stands on a side."""

    kind: LineKind
    old_number: int | None
    new_number: int | None
    text: str


def contract_changes(old: Contract | None, new: Contract) -> tuple[ContractChange, ...]:
    """Every entry that differs, in the order of the language; all are added where old is None.

    Other facts change what every check of states, calls and messages depends on: only the facts
    are listed then, `criterion_digests` tells the checks.
    """
    before = dict(_entries(old)) if old is not None else {}
    after = dict(_entries(new))
    digests = [criterion_digests(side) if side is not None else {} for side in (old, new)]
    names = sorted({**before, **after}, key=_rank)
    return tuple(
        change
        for name in names
        if (change := _change(name, before.get(name), after.get(name), digests)) is not None
    )


def criterion_digests(contract: Contract) -> dict[str, bytes]:
    """The digest of every criterion of a contract, by its id."""
    entries: tuple[Required | Prohibited | Budget | Rubric | External, ...] = (
        *contract.required,
        *contract.prohibited,
        *contract.budget,
        *contract.semantic,
        *contract.external,
    )
    outcome = {"outcome": contract.outcome.digest} if contract.outcome is not None else {}
    return {**outcome, **{entry.id: entry.digest for entry in entries}}


_Name = tuple[str, str]  # part of the language, name in it

_PARTS: Final = (
    "task",
    "title",
    "family",
    "split",
    "input",
    "fact",
    "trial fact",
    "outcome",
    "required",
    "prohibited",
    "budget",
    "semantic",
    "external",
    "evidence",
    "variation",
    "trials",
    "grader test",
)
_NO_CRITERIA: Final = frozenset(_PARTS) - {
    "outcome",
    "required",
    "prohibited",
    "budget",
    "semantic",
    "external",
}


def _rank(name: _Name) -> int:
    return _PARTS.index(name[0])


def _change(
    name: _Name,
    before: tuple[Json] | None,
    after: tuple[Json] | None,
    digests: Sequence[dict[str, bytes]],
) -> ContractChange | None:
    if before is not None and after is not None:
        kind = ChangeKind.CHANGED
        if equal(before[0], after[0]):
            return None
        is_other = _is_other_check(name, digests)
    else:
        kind = ChangeKind.ADDED if before is None else ChangeKind.REMOVED
        is_other = name[0] not in _NO_CRITERIA
    return ContractChange(kind, " ".join(filter(None, name)), _text(before), _text(after), is_other)


def _is_other_check(name: _Name, digests: Sequence[dict[str, bytes]]) -> bool:
    part, inner = name
    if part in _NO_CRITERIA:
        return False
    criterion = {"outcome": "outcome", "budget": f"budget.{inner}"}.get(part, inner)
    old, new = digests
    return old[criterion] != new[criterion]


def _text(value: tuple[Json] | None) -> str:
    if value is None:
        return ""
    text = fragment_text(value[0])
    return text if len(text) <= MOST_FRAGMENT_CHARS else f"{text[:MOST_FRAGMENT_CHARS]}…"


def _entries(contract: Contract) -> Iterator[tuple[_Name, tuple[Json]]]:
    """Each entry by part and name, its value boxed since null is one."""
    for part, value in (
        ("task", contract.task_id),
        ("title", contract.title),
        ("family", contract.family),
        ("split", contract.split),
        ("input", contract.input),
        ("trials", contract.trials),
    ):
        if value not in (None, ""):
            yield (part, ""), (value,)
    for name, fact in contract.facts.items():
        yield ("fact", name), (fact,)
    for name in contract.trial_facts:
        yield ("trial fact", name), (name,)
    if contract.outcome is not None:
        yield ("outcome", ""), (_outcome(contract.outcome),)
    yield from _requirements(contract)
    for evidence in contract.evidence:
        yield ("evidence", str(evidence)), (str(evidence),)
    for rule in contract.variation:
        data = {name: value for name, value in rule_data(rule).items() if name != "task"}
        yield ("variation", f"{rule.tool} {rule.argument}".strip()), (data,)
    for test in contract.grader_tests:
        expect: JsonObject = dict(test.expect)
        yield ("grader test", test.name), ({"expect": expect, **test.record},)


def _requirements(contract: Contract) -> Iterator[tuple[_Name, tuple[Json]]]:
    for required in contract.required:
        yield (
            ("required", required.id),
            (
                {
                    **_targets(required.any_of),
                    **_anchor("before", required.before),
                    **_anchor("after", required.after),
                    **_mandatory(required.mandatory),
                },
            ),
        )
    for prohibited in contract.prohibited:
        counts: JsonObject = {"counts": "committed"} if prohibited.committed_only else {}
        yield (
            ("prohibited", prohibited.id),
            (
                {
                    "harm": prohibited.harm,
                    **_targets(prohibited.any_of),
                    **counts,
                    **_mandatory(prohibited.mandatory),
                },
            ),
        )
    for budget in contract.budget:
        yield (
            ("budget", str(budget.name)),
            ({"max": budget.limit, **_mandatory(budget.mandatory)},),
        )
    for rubric in contract.semantic:
        said: JsonObject = {"version": rubric.version, "question": rubric.question}
        given = {name: value for name, value in said.items() if value}
        rest = {**given, **_mandatory(rubric.mandatory), **_graders(rubric.graders)}
        yield ("semantic", rubric.id), ({"rubric": rubric.id, **rest},)
    for external in contract.external:
        rest = {**_mandatory(external.mandatory), **_graders(external.graders)}
        yield ("external", external.id), ({"class": str(external.criterion_class), **rest},)


def _mandatory(is_mandatory: bool) -> JsonObject:  # noqa: FBT001
    return {} if is_mandatory else {"mandatory": False}


def _graders(graders: tuple[NamedGrader, ...]) -> JsonObject:
    items: list[Json] = [{"name": grader.name, "kind": str(grader.kind)} for grader in graders]
    return {"graders": items} if items else {}


def _target(target: Target) -> JsonObject:
    what: JsonObject = (
        {"call": target.call} if isinstance(target, CallTarget) else {"message": str(target.by)}
    )
    return {**what, "where": target.where} if target.where else what


def _targets(targets: tuple[Target, ...]) -> JsonObject:
    if len(targets) == 1:
        return _target(targets[0])
    return {"any_of": [_target(target) for target in targets]}


def _anchor(name: str, anchor: Anchor | None) -> JsonObject:
    if anchor is None:
        return {}
    counts: JsonObject = {"counts": "committed"} if anchor.committed_only else {}
    return {name: {**_target(anchor.target), **counts}}


def _outcome(outcome: Outcome) -> Json:
    if outcome.is_recorded_expectation:
        return "recorded_expectation"
    return [_case(case) for case in outcome.cases]


def _case(case: OutcomeCase) -> Json:
    pairs: list[Json] = [{change.pointer: change.value} for change in case.changes]
    parts: JsonObject = {
        "when": case.when,
        "changes": pairs,
        "ignore": [*case.ignore],
        "absent": [*case.absent],
        "unchanged": case.unchanged,
    }
    return {name: value for name, value in parts.items() if value}


# Lines


def line_changes(old_text: str, new_text: str) -> tuple[LineChange, ...]:
    """The lines that differ, with a few equal ones around them; none for equal texts.

    Very different long texts come as all removed, then all added. At most MOST_LINES lines, of
    which a gap at the end says that there are more.
    """
    old, new = old_text.splitlines(), new_text.splitlines()
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    middle = _middle(old[start : len(old) - end], new[start : len(new) - end], start)
    head = [_same(n, n, old) for n in range(1, start + 1)]
    shift = len(new) - len(old)
    tail = [_same(n, n + shift, old) for n in range(len(old) - end + 1, len(old) + 1)]
    lines = list(_near_changes([*head, *middle, *tail]))
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], _GAP]
    return tuple(lines)


_GAP: Final = LineChange(LineKind.GAP, None, None, "")


def _same(old_number: int, new_number: int, old: list[str]) -> LineChange:
    return LineChange(LineKind.SAME, old_number, new_number, _cut(old[old_number - 1]))


def _cut(line: str) -> str:
    return line if len(line) <= MOST_LINE_CHARS else f"{line[:MOST_LINE_CHARS]}…"


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    shortest = min(len(left), len(right))
    return next((number for number, (a, b) in pairs if a != b), shortest)


def _middle(old: list[str], new: list[str], start: int) -> list[LineChange]:
    """The lines from the first difference to the last, by a longest common subsequence."""
    lengths = _lengths(old, new)
    lines: list[LineChange] = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and lengths and old[i] == new[j]:
            numbers = (start + i + 1, start + j + 1)
            lines.append(LineChange(LineKind.SAME, *numbers, _cut(old[i])))
            i, j = i + 1, j + 1
        elif i < len(old) and (
            not lengths or j == len(new) or lengths[i + 1][j] >= lengths[i][j + 1]
        ):
            lines.append(LineChange(LineKind.REMOVED, start + i + 1, None, _cut(old[i])))
            i += 1
        else:
            lines.append(LineChange(LineKind.ADDED, None, start + j + 1, _cut(new[j])))
            j += 1
    return lines


def _lengths(old: list[str], new: list[str]) -> list[list[int]]:
    """Lengths of the longest common subsequences of the rests; none for too many lines."""
    if len(old) * len(new) > MOST_COMPARED_CELLS:
        return []
    rows = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        row, below, line = rows[i], rows[i + 1], old[i]
        for j in range(len(new) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if line == new[j] else max(below[j], row[j + 1])
    return rows


def _near_changes(lines: list[LineChange]) -> Iterator[LineChange]:
    """The changed lines and the few around each; a gap where others are left out."""
    near: set[int] = set()
    for number, line in enumerate(lines):
        if line.kind is not LineKind.SAME:
            near.update(range(number - CONTEXT_LINES, number + CONTEXT_LINES + 1))
    was_near = True
    for number, line in enumerate(lines):
        if number in near:
            yield line
        elif was_near and near:
            yield _GAP
        was_near = number in near
