"""From a sound document to a contract: what the schema cannot say is checked here.

Parts with a finding are left out and the rest goes on, so that an author sees everything at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeVar

from traces.core.canonical import canonical_text, decimal_of, digest_of, nfc
from traces.core.contracts.documents import Document
from traces.core.contracts.model import (
    OUTCOME,
    Anchor,
    Budget,
    BudgetName,
    CallTarget,
    Change,
    Contract,
    EvidencePart,
    External,
    MessageBy,
    MessageTarget,
    NamedGrader,
    Outcome,
    OutcomeCase,
    PlantedTrial,
    Prohibited,
    Required,
    Rubric,
    Target,
)
from traces.core.contracts.places import Findings, Path, field_of, path_of, quoted
from traces.core.contracts.planting import planted_trials
from traces.core.records import CriterionClass, Finding, GraderKind
from traces.core.rule_documents import parse_rule, rule_data
from traces.core.rules import ArgumentRule, RoundTo
from traces.core.values import Json, JsonObject

BUDGET_PREFIX: Final = "budget."

_ESCAPE_FAULT = re.compile(r"~(?![01])")
_RULE_REASON: Final = "declared in the contract"
_RULE_AUTHOR: Final = "contract"

_Entry = TypeVar("_Entry")


def contract_of(document: Document) -> Contract | None:
    """The contract of a document whose shape was checked; None where there is any finding.

    Raises TooManyFindingsError where there are too many.
    """
    if not isinstance(document.value, dict):
        return None
    contract = _Building(document.value, document.findings).contract()
    return None if document.findings.items else contract


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What the digest of a check covers beside its own entry."""

    facts: JsonObject
    trial_facts: tuple[str, ...]
    variation: tuple[ArgumentRule, ...]

    def digest(self, kind: str, entry: Json) -> bytes:
        """Of an entry whose expressions see the facts."""
        names: list[Json] = [*sorted(self.trial_facts)]
        return digest_of({kind: entry, "facts": self.facts, "trial_facts": names})


class _Building:
    """Builds the parts of one document and notes what is wrong with them."""

    def __init__(self, data: JsonObject, findings: Findings) -> None:
        self._data = data
        self._findings = findings
        self._ids: dict[str, str] = {}  # criterion to its field

    def contract(self) -> Contract:
        """What could be built. Not to be used where there are findings."""
        facts = self._object("facts")
        fixed = _Fixed(facts, self._trial_facts(facts), self._variation())
        outcome = self._outcome(fixed)
        budget = self._budget(fixed)
        required = self._entries("required", lambda e, p: self._required(e, p, fixed))
        prohibited = self._entries("prohibited", lambda e, p: self._prohibited(e, p, fixed))
        semantic = self._entries("semantic", self._rubric)
        external = self._entries("external", self._external)
        entries: tuple[Required | Prohibited | Budget | Rubric | External, ...]
        entries = (*required, *prohibited, *budget, *semantic, *external)
        self._check_something_required(outcome, any(entry.mandatory for entry in entries))
        trials = self._data.get("trials") if self._findings.is_sound("trials") else None
        return Contract(
            task_id=nfc(self._text("task")),
            title=self._text("title"),
            family=self._text("family"),
            split=self._text("split") or None,
            input=self._data.get("input"),
            facts=facts,
            trial_facts=fixed.trial_facts,
            outcome=outcome,
            required=required,
            prohibited=prohibited,
            budget=budget,
            semantic=semantic,
            external=external,
            evidence=self._evidence(),
            variation=fixed.variation,
            trials=None if trials is None else int(trials),  # type: ignore[arg-type]
            grader_tests=self._grader_tests(),
            digest=digest_of(self._data),
        )

    # Reading parts that the schema has passed

    def _text(self, name: str) -> str:
        return _text_in(self._data, name) if self._findings.is_sound(name) else ""

    def _object(self, name: str) -> JsonObject:
        value = self._data.get(name)
        return value if isinstance(value, dict) and self._findings.is_sound(name) else {}

    def _list(self, name: str) -> list[tuple[int, Json]]:
        """The sound items of a list, each with its index."""
        value = self._data.get(name)
        items = value if isinstance(value, list) else []
        return [pair for pair in enumerate(items) if self._findings.is_sound(name, pair[0])]

    def _entries(
        self, name: str, build: Callable[[JsonObject, Path], _Entry | None]
    ) -> tuple[_Entry, ...]:
        built = [
            build(entry, (name, index))
            for index, entry in self._list(name)
            if isinstance(entry, dict)
        ]
        return tuple(entry for entry in built if entry is not None)

    # Checks over the whole contract

    def _take_id(self, criterion: str, path: Path) -> None:
        if criterion == OUTCOME or criterion.startswith(BUDGET_PREFIX):
            sentence = f"{quoted(criterion)} is the name of a check of its own: take another."
            self._findings.add("reserved-id", path, sentence)
            return
        first = self._ids.setdefault(criterion, field_of(path))
        if first != field_of(path):
            sentence = f"{quoted(criterion)} is taken by `{first}`: each name stands once."
            self._findings.add("second-id", path, sentence)

    def _check_something_required(self, outcome: Outcome | None, any_mandatory: bool) -> None:  # noqa: FBT001
        if outcome is None and not any_mandatory and not self._findings.items:
            sentence = "Nothing is required: at least one entry must be mandatory."
            self._findings.add("nothing-required", (), sentence)

    # Facts

    def _trial_facts(self, facts: JsonObject) -> tuple[str, ...]:
        names: list[str] = []
        given = [(i, name) for i, name in self._list("trial_facts") if isinstance(name, str)]
        for index, name in given:
            path: Path = ("trial_facts", index)
            if name in names:
                self._findings.add("twice", path, f"{quoted(name)} stands here twice.")
            elif name in facts:
                sentence = f"{quoted(name)} is a fixed fact under `facts`: it cannot be both."
                self._findings.add("fact-twice", path, sentence)
            names.append(name)
        return tuple(names)

    # Outcome

    def _outcome(self, fixed: _Fixed) -> Outcome | None:
        data = self._data.get("outcome")
        if isinstance(data, str):
            return Outcome((), is_recorded_expectation=True, digest=fixed.digest(OUTCOME, data))
        cases = tuple(self._cases())
        if not cases:
            return None
        entry: list[Json] = [_case_json(case) for case in cases]
        return Outcome(cases, is_recorded_expectation=False, digest=fixed.digest(OUTCOME, entry))

    def _cases(self) -> Iterator[OutcomeCase]:
        always: int | None = None
        cases = [(i, case) for i, case in self._list("outcome") if isinstance(case, dict)]
        for index, data in cases:
            if always is not None:
                sentence = (
                    f"This case is never reached: `outcome[{always}]` before it always holds."
                )
                self._findings.add("never-reached", ("outcome", index), sentence)
            case = self._case(data, ("outcome", index))
            if not case.when and always is None:
                always = index
            yield case

    def _case(self, data: JsonObject, path: Path) -> OutcomeCase:
        return OutcomeCase(
            when=_expression_in(data, "when"),
            changes=tuple(self._changes(data.get("changes"), (*path, "changes"))),
            ignore=self._pointers(data, "ignore", path),
            absent=self._pointers(data, "absent", path),
            unchanged=data.get("unchanged") is True,
        )

    def _changes(self, data: Json, path: Path) -> Iterator[Change]:
        taken: set[str] = set()
        for pointer, value, place in _pairs(data, path):
            fault = _pointer_fault(pointer, may_append=True)
            if fault:
                self._findings.add("bad-pointer", place, fault, name=True)
            elif pointer in taken and not _is_append(pointer):
                sentence = f"{quoted(pointer)} is given twice."
                self._findings.add("twice", place, sentence, name=True)
            elif any(
                f"{pointer}/".startswith(f"{other}/") or f"{other}/".startswith(f"{pointer}/")
                for other in taken
                if other != pointer
            ):
                sentence = f"{quoted(pointer)} lies inside another changed place, or around one."
                self._findings.add("overlapping-changes", place, sentence, name=True)
            taken.add(pointer)
            yield Change(pointer, value)

    def _pointers(self, data: JsonObject, name: str, path: Path) -> tuple[str, ...]:
        pointers = [item for item in _list_in(data, name) if isinstance(item, str)]
        for index, pointer in enumerate(pointers):
            place = (*path, name, index)
            fault = _pointer_fault(pointer, may_append=False)
            if fault:
                self._findings.add("bad-pointer", place, fault)
            elif pointer in pointers[:index]:
                self._findings.add("twice", place, f"{quoted(pointer)} stands here twice.")
        return tuple(pointers)

    # Required and prohibited

    def _required(self, data: JsonObject, path: Path, fixed: _Fixed) -> Required:
        self._take_id(_text_in(data, "id"), (*path, "id"))
        targets = _targets_of(data)
        before, after = _anchor_of(data.get("before")), _anchor_of(data.get("after"))
        self._check_twice(targets, path)
        entry: JsonObject = {
            "id": _text_in(data, "id"),
            "any_of": _set_json(map(_target_json, targets)),
            "before": _anchor_json(before),
            "after": _anchor_json(after),
        }
        return Required(
            id=_text_in(data, "id"),
            any_of=targets,
            before=before,
            after=after,
            mandatory=_is_mandatory(data),
            digest=fixed.digest("required", entry),
        )

    def _prohibited(self, data: JsonObject, path: Path, fixed: _Fixed) -> Prohibited:
        self._take_id(_text_in(data, "id"), (*path, "id"))
        targets = _targets_of(data)
        self._check_twice(targets, path)
        committed_only = data.get("counts") == "committed"
        if committed_only and all(isinstance(target, MessageTarget) for target in targets):
            sentence = "A message is never committed: leave `counts` out."
            self._findings.add("wrong-form", (*path, "counts"), sentence)
        entry: JsonObject = {
            "id": _text_in(data, "id"),
            "harm": _text_in(data, "harm"),
            "any_of": _set_json(map(_target_json, targets)),
            "committed_only": committed_only,
        }
        return Prohibited(
            id=_text_in(data, "id"),
            harm=_text_in(data, "harm"),
            any_of=targets,
            committed_only=committed_only,
            mandatory=_is_mandatory(data),
            digest=fixed.digest("prohibited", entry),
        )

    def _check_twice(self, targets: tuple[Target, ...], path: Path) -> None:
        for index, target in enumerate(targets):
            if target in targets[:index]:
                self._findings.add("twice", (*path, "any_of", index), "This stands here twice.")

    # Budget

    def _budget(self, fixed: _Fixed) -> tuple[Budget, ...]:
        data = self._data.get("budget")
        given = data if isinstance(data, dict) else {}
        return tuple(
            _budget_of(name, given[name.value], fixed)
            for name in BudgetName
            if name.value in given and self._findings.is_sound("budget", name.value)
        )

    # Rubrics and criteria outside

    def _rubric(self, data: JsonObject, path: Path) -> Rubric:
        name, version = _text_in(data, "rubric"), _text_in(data, "version")
        question = _text_in(data, "question").strip()
        self._take_id(name, (*path, "rubric"))
        return Rubric(
            id=name,
            version=version,
            question=question,
            mandatory=_is_mandatory(data),
            graders=self._graders(data, path, GraderKind.MODEL),
            digest=digest_of({"rubric": name, "version": version, "question": question}),
        )

    def _external(self, data: JsonObject, path: Path) -> External:
        self._take_id(_text_in(data, "id"), (*path, "id"))
        criterion_class = CriterionClass(_text_in(data, "class"))
        return External(
            id=_text_in(data, "id"),
            criterion_class=criterion_class,
            mandatory=_is_mandatory(data),
            graders=self._graders(data, path, GraderKind.CODE),
            digest=digest_of({"external": _text_in(data, "id"), "class": str(criterion_class)}),
        )

    def _graders(
        self, data: JsonObject, path: Path, standard: GraderKind
    ) -> tuple[NamedGrader, ...]:
        graders: list[NamedGrader] = []
        for index, item in enumerate(_list_in(data, "graders")):
            named: JsonObject = item if isinstance(item, dict) else {"name": item}
            kind = GraderKind(_text_in(named, "kind") or standard)
            grader = NamedGrader(_text_in(named, "name"), kind)
            if grader in graders:
                place = (*path, "graders", index)
                self._findings.add("twice", place, f"{quoted(grader.name)} stands here twice.")
            graders.append(grader)
        return tuple(graders)

    # Evidence, variation, grader tests

    def _evidence(self) -> tuple[EvidencePart, ...]:
        parts: list[EvidencePart] = []
        for index, word in self._list("evidence"):
            part = EvidencePart(str(word))
            if part in parts:
                self._findings.add("twice", ("evidence", index), f"{part} stands here twice.")
            parts.append(part)
        return tuple(parts)

    def _variation(self) -> tuple[ArgumentRule, ...]:
        task = nfc(self._text("task"))
        taken: dict[tuple[str, tuple[str | None, ...]], int] = {}
        rules: list[ArgumentRule] = []
        for index, data in self._list("variation"):
            rule = parse_rule(
                data, "", task_id=task or None, reason=_RULE_REASON, author=_RULE_AUTHOR
            )
            if isinstance(rule, Finding):
                path = ("variation", index, *path_of(rule.place))
                self._findings.add(rule.code, path, rule.sentence)
                continue
            first = taken.setdefault((rule.tool, rule.tokens), index)
            if first != index:
                sentence = f"This tool and argument already have a rule, `variation[{first}]`."
                self._findings.add("second-rule", ("variation", index), sentence)
            rules.append(rule)
        return tuple(rules)

    def _grader_tests(self) -> tuple[PlantedTrial, ...]:
        sound = [(i, item) for i, item in self._list("grader_tests") if isinstance(item, dict)]
        return planted_trials(sound, _check_names(self._data), self._findings)


def _check_names(data: JsonObject) -> tuple[str, ...]:
    """Every check that the document names, entries with findings too."""
    names = [OUTCOME] if data.get("outcome") else []
    for part in ("required", "prohibited"):
        entries = _list_in(data, part)
        names += [_text_in(entry, "id") for entry in entries if isinstance(entry, dict)]
    budget = data.get("budget")
    names += [f"{BUDGET_PREFIX}{name}" for name in budget] if isinstance(budget, dict) else []
    return tuple(name for name in names if name)


def _text_in(data: JsonObject, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""


def _list_in(data: JsonObject, name: str) -> list[Json]:
    value = data.get(name)
    return value if isinstance(value, list) else []


def _expression_in(data: JsonObject, name: str) -> str:
    return _text_in(data, name).strip()


def _is_mandatory(data: JsonObject) -> bool:
    return data.get("mandatory") is not False


def _target_of(data: JsonObject) -> Target:
    where = _expression_in(data, "where")
    if "message" in data:
        return MessageTarget(MessageBy(_text_in(data, "message")), where)
    return CallTarget(nfc(_text_in(data, "call")), where)


def _targets_of(data: JsonObject) -> tuple[Target, ...]:
    if "any_of" not in data:
        return (_target_of(data),)
    return tuple(_target_of(i) for i in _list_in(data, "any_of") if isinstance(i, dict))


def _anchor_of(data: Json) -> Anchor | None:
    if isinstance(data, str):
        return Anchor(CallTarget(nfc(data)))
    if isinstance(data, dict):
        return Anchor(_target_of(data), data.get("counts") == "committed")
    return None


def _budget_of(name: BudgetName, data: Json, fixed: _Fixed) -> Budget:
    given: JsonObject = data if isinstance(data, dict) else {"max": data}
    limit = given["max"]
    assert isinstance(limit, int | Decimal)
    entry: JsonObject = {"budget": str(name), "max": limit}
    if name is BudgetName.REPEAT_CALL:
        entry["variation"] = _set_json(map(_rule_json, fixed.variation))
    return Budget(name, decimal_of(limit), _is_mandatory(given), digest_of(entry))


# Canonical forms for digests: one for each meaning


def _set_json(items: Iterable[Json]) -> Json:
    return sorted(items, key=canonical_text)


def _rule_json(rule: ArgumentRule) -> Json:
    """What a rule does, without who says so and why."""
    data = rule_data(rule)
    step: JsonObject = {"step": rule.terms.step} if isinstance(rule.terms, RoundTo) else {}
    return {**data, **step, "reason": "", "author": ""}


def _target_json(target: Target) -> Json:
    if isinstance(target, MessageTarget):
        return {"message": str(target.by), "where": target.where}
    return {"call": target.call, "where": target.where}


def _anchor_json(anchor: Anchor | None) -> Json:
    if anchor is None:
        return None
    return {"target": _target_json(anchor.target), "committed_only": anchor.committed_only}


def _case_json(case: OutcomeCase) -> Json:
    return {
        "when": case.when,
        "changes": _set_json([change.pointer, change.value] for change in case.changes),
        "ignore": _set_json(case.ignore),
        "absent": _set_json(case.absent),
        "unchanged": case.unchanged,
    }


# Pointers


def _pairs(data: Json, path: Path) -> Iterator[tuple[str, Json, Path]]:
    """Each changed pointer with its value and field."""
    if isinstance(data, list):
        for index, item in enumerate(data):
            yield from _pairs(item, (*path, index))
    elif isinstance(data, dict):
        for pointer, value in data.items():
            yield pointer, value, (*path, pointer)


def _is_append(pointer: str) -> bool:
    return pointer.endswith("/-")


def _pointer_fault(pointer: str, *, may_append: bool) -> str:
    """Why a text is no pointer that may stand here; "" for one that may."""
    if not pointer.startswith("/"):
        return f"A pointer begins with `/`: {quoted(pointer)} does not."
    if _ESCAPE_FAULT.search(pointer):
        return f"In a pointer ~ is written ~0, and / inside a name ~1: {quoted(pointer)}."
    names = pointer[1:].split("/")
    if "-" in names[:-1] or (names[-1] == "-" and not may_append):
        place = "as the last name of a change" if may_append else "in `changes`"
        return f"The name - (appended) can only stand {place}: {quoted(pointer)}."
    return ""
