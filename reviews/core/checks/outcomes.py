"""The outcome: the state that the environment was left in, against what the contract wants.

The first case whose `when` holds decides. What it changes is written into the initial state, what
it ignores is left out on both sides, and the rest must be equal under the one JSON equality.
Appended elements are matched as a multiset: what is ignored is left out of wanted and found alike,
so that matching is counting equal texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reviews.core.checks.expressions import (
    WHEN_NAMES,
    Answer,
    Bindings,
    ExpressionError,
    compiled,
    evaluate,
)
from reviews.core.checks.results import CheckResult, StateFinding, TrialEvidence
from reviews.core.checks.words import count_words, value_words
from traces.core.canonical import canonical_text
from traces.core.contracts.model import OUTCOME, Outcome, OutcomeCase
from traces.core.differences import Difference, DifferenceKind, state_differences
from traces.core.pointers import pointer_of
from traces.core.records import VerdictValue
from traces.core.values import Json, JsonObject

MOST_DIFFERENCES = 20
"""Named in a result; all of them are counted."""

APPENDED = "-"

Names = tuple[str, ...]


def outcome_result(outcome: Outcome, evidence: TrialEvidence, facts: JsonObject) -> CheckResult:
    """Whether the final state is what the contract wants, given the starting facts."""
    if outcome.is_recorded_expectation:
        return _expected_result(evidence)
    case, undecided = _case(outcome, facts)
    if undecided is not None:
        return undecided
    missing = [
        name
        for name, state in (
            ("initial state", evidence.initial_state),
            ("final state", evidence.final_state),
        )
        if state is None
    ]
    if missing:
        return _unknown(missing)
    assert case is not None
    try:
        found = case_findings(case, evidence.initial_state, evidence.final_state)
    except CaseError as error:
        return CheckResult(OUTCOME, VerdictValue.ERROR, error.sentence)
    name = f" (case: {value_words(case.when)})" if case.when else ""
    return _result(found, f"The final state is as the contract wants it{name}.", name)


def _unknown(missing: Sequence[str]) -> CheckResult:
    verb = "is" if len(missing) == 1 else "are"
    sentence = f"The {' and the '.join(missing)} {verb} not recorded."
    return CheckResult(OUTCOME, VerdictValue.UNKNOWN, sentence)


def _expected_result(evidence: TrialEvidence) -> CheckResult:
    missing = [
        name
        for name, state in (
            ("final state", evidence.final_state),
            ("expected state", evidence.expected_state),
        )
        if state is None
    ]
    if missing:
        return _unknown(missing)
    found = _Findings()
    found.add_all(evidence.expected_state, evidence.final_state, (), "")
    return _result(found, "The final state is the recorded expectation.", "")


def _result(found: _Findings, passed: str, name: str) -> CheckResult:
    if not found.n:
        return CheckResult(OUTCOME, VerdictValue.PASS, passed)
    first = found.listed[0]
    more = f" And {count_words(found.n - 1, 'more difference')}." if found.n > 1 else ""
    place = first.pointer or "the whole state"
    sentence = (
        f"The final state differs{name}: {place} is {first.found}, wanted {first.wanted}.{more}"
    )
    return CheckResult(
        OUTCOME,
        VerdictValue.FAIL,
        sentence,
        differences=tuple(found.listed),
        n_differences=found.n,
    )


def _case(outcome: Outcome, facts: JsonObject) -> tuple[OutcomeCase | None, CheckResult | None]:
    """The case that decides, or why none does."""
    bindings = Bindings({"facts": facts})
    for case in outcome.cases:
        if not case.when:
            return case, None
        try:
            truth = evaluate(compiled(case.when, WHEN_NAMES), bindings)
        except ExpressionError as error:
            sentence = f"A condition of the outcome cannot be read: {error.sentence}"
            return None, CheckResult(OUTCOME, VerdictValue.ERROR, sentence)
        match truth.answer:
            case Answer.TRUE:
                return case, None
            case Answer.UNKNOWN:
                sentence = f"Whether {value_words(case.when)} holds is unknown: {truth.reason}."
                return None, CheckResult(OUTCOME, VerdictValue.UNKNOWN, sentence)
            case Answer.ERROR:
                return None, CheckResult(OUTCOME, VerdictValue.ERROR, truth.reason)
    sentence = "No case of the outcome holds for the facts of this trial."
    return None, CheckResult(OUTCOME, VerdictValue.ERROR, sentence)


class CaseError(ValueError):
    """A case cannot be applied to the initial state. `sentence` is for people."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


# Applying a case


class _Missing:
    """What a place holds that does not exist, or that does not count."""


_MISSING = _Missing()
_Held = Json | _Missing


@dataclass(slots=True)
class _Places:
    """Pointers laid out by their names; in what is ignored or absent `*` stands for any name."""

    is_end: bool = False
    below: dict[str, _Places] = field(default_factory=dict)

    def add(self, names: Names) -> None:
        node = self
        for name in names:
            node = node.below.setdefault(name, _Places())
        node.is_end = True

    def touches(self, names: Names) -> bool:
        """Whether a place is one of these, or lies inside or around one."""
        node: _Places | None = self
        for name in names:
            if node is None or node.is_end:
                break
            node = node.below.get(name)
        return node is not None and (node.is_end or bool(node.below))


def _places(pointers: Iterable[str]) -> _Places:
    places = _Places()
    for pointer in pointers:
        places.add(_names_of(pointer))
    return places


def _names_of(pointer: str) -> Names:
    if not pointer:
        return ()
    return tuple(name.replace("~1", "/").replace("~0", "~") for name in pointer[1:].split("/"))


def case_findings(case: OutcomeCase, initial: Json, final: Json) -> _Findings:
    """Where the final state is not as a case wants it. Raises CaseError."""
    found = _Findings()
    wanted: Json = initial
    for names, value in _set_places(case, initial):
        wanted = _with(wanted, names, value)
        found.changed.add(names)
    ignored = [_places(case.ignore)]
    for names, elements in _appended(case, initial).items():
        base = _at_place(wanted, names)
        if not isinstance(base, list | _Missing):
            raise CaseError(f"{pointer_of(names)} is no list: nothing can be appended to it.")
        start = 0 if isinstance(base, _Missing) else len(base)
        now = _at_place(final, names)
        tail: list[Json] = []
        if isinstance(now, list):
            tail = now[start:]
            final = _with(final, names, now[:start])
            if isinstance(base, _Missing):
                wanted = _with(wanted, names, [])
        found.add_appended(names, elements, tail, start, ignored)
    absent = _places(case.absent)
    found.add_absent(final, absent)
    wanted = _shown(_without(wanted, [absent]))
    final = _shown(_without(final, [absent]))
    found.add_all(
        _shown(_masked(wanted, ignored, found.changed)),
        _shown(_masked(final, ignored, found.changed)),
        (),
        "as before: ",
    )
    return found


def _shown(value: _Held) -> Json:
    return None if isinstance(value, _Missing) else value


def _is_append(names: Names, initial: Json) -> bool:
    # In an object the name is one like any other.
    is_last = bool(names) and names[-1] == APPENDED
    return is_last and not isinstance(_at_place(initial, names[:-1]), dict)


def _set_places(case: OutcomeCase, initial: Json) -> list[tuple[Names, Json]]:
    placed = [(_names_of(change.pointer), change.value) for change in case.changes]
    return [(names, value) for names, value in placed if not _is_append(names, initial)]


def _appended(case: OutcomeCase, initial: Json) -> dict[Names, list[Json]]:
    """The wanted elements of each list that something is appended to."""
    wanted: dict[Names, list[Json]] = {}
    for change in case.changes:
        names = _names_of(change.pointer)
        if _is_append(names, initial):
            wanted.setdefault(names[:-1], []).append(change.value)
    return wanted


def _at_place(value: Json, names: Names) -> _Held:
    for name in names:
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and (index := _index(name)) is not None and index < len(value):
            value = value[index]
        else:
            return _MISSING
    return value


def _index(name: str) -> int | None:
    is_index = name.isascii() and name.isdigit() and len(name) < 10
    return int(name) if is_index and (name == "0" or name[0] != "0") else None


def _with(value: _Held, names: Names, new: Json) -> Json:
    """A value with something else at a place; objects on the way there are made."""
    if not names:
        return new
    name, rest = names[0], names[1:]
    if isinstance(value, _Missing):
        return {name: _with(_MISSING, rest, new)}
    if isinstance(value, dict):
        return {**value, name: _with(value.get(name, _MISSING), rest, new)}
    index = _index(name)
    if isinstance(value, list) and index is not None and index <= len(value):
        inner = value[index] if index < len(value) else _MISSING
        return [*value[:index], _with(inner, rest, new), *value[index + 1 :]]
    place = f"`{name[:100]}` leads through {value_words(value)}"
    raise CaseError(f"A change of the outcome cannot be made in the initial state: {place}.")


def _next(nodes: Sequence[_Places], name: str) -> list[_Places]:
    return [
        below
        for node in nodes
        for below in (node.below.get(name), node.below.get("*") if name != "*" else None)
        if below is not None
    ]


def _without(value: Json, nodes: Sequence[_Places]) -> _Held:
    """A value without what stands at some places."""
    if any(node.is_end for node in nodes):
        return _MISSING
    if not any(node.below for node in nodes):
        return value
    if isinstance(value, dict):
        members = {name: _without(item, _next(nodes, name)) for name, item in value.items()}
        return {name: item for name, item in members.items() if not isinstance(item, _Missing)}
    if isinstance(value, list):
        items = [_without(item, _next(nodes, str(at))) for at, item in enumerate(value)]
        return [item for item in items if not isinstance(item, _Missing)]
    return value


def _masked(
    value: Json, nodes: Sequence[_Places], kept: _Places | None, *, is_ignored: bool = False
) -> _Held:
    """A value without what is ignored. What a change names counts, though all around it is ignored.

    Elements of a list keep their places: an ignored one becomes null, and those at the end go.
    """
    is_ignored = is_ignored or any(node.is_end for node in nodes)
    if kept is not None and kept.is_end:
        is_ignored, kept = False, None
    if is_ignored and (kept is None or not kept.below):
        return _MISSING
    if not is_ignored and not any(node.below for node in nodes):
        return value
    if isinstance(value, dict):
        members = {
            name: _masked(item, _next(nodes, name), _kept_below(kept, name), is_ignored=is_ignored)
            for name, item in value.items()
        }
        return {name: item for name, item in members.items() if not isinstance(item, _Missing)}
    if isinstance(value, list):
        items = [
            _masked(item, _next(nodes, str(at)), _kept_below(kept, str(at)), is_ignored=is_ignored)
            for at, item in enumerate(value)
        ]
        while items and isinstance(items[-1], _Missing):
            items.pop()
        return [_shown(item) for item in items]
    return _MISSING if is_ignored else value


def _kept_below(kept: _Places | None, name: str) -> _Places | None:
    return None if kept is None else kept.below.get(name)


@dataclass(slots=True)
class _Findings:
    """The places that are not as they are wanted: the first ones, and how many there are."""

    listed: list[StateFinding] = field(default_factory=list)
    n: int = 0
    changed: _Places = field(default_factory=_Places)  # what the case sets

    def add(self, names: Names, wanted: str, found: str, n: int = 1) -> None:
        self.n += n
        if len(self.listed) < MOST_DIFFERENCES:
            self.listed.append(StateFinding(pointer_of(names), wanted, found))

    def add_all(self, wanted: Json, found: Json, place: Names, prefix: str) -> None:
        """Every place where two values differ. `prefix` stands before what no change names."""
        if canonical_text(wanted) == canonical_text(found):
            return
        differences = state_differences(wanted, found, limit=MOST_DIFFERENCES)
        for each in differences.differences:
            names = (*place, *_names_of(each.path))
            before = "" if self.changed.touches(names) else prefix
            self.add(names, _wanted_words(each, before), _found_words(each))
        self.n += differences.n_differences - len(differences.differences)

    def add_absent(self, state: Json, places: _Places) -> None:
        """Every place that must lead to nothing and holds something."""
        waiting: list[tuple[Json, Names, list[_Places]]] = [(state, (), [places])]
        while waiting:
            value, names, nodes = waiting.pop()
            if any(node.is_end for node in nodes):
                self.add(names, "nothing", value_words(value))
                continue
            items: Iterable[tuple[str, Json]] = ()
            if isinstance(value, dict):
                items = value.items()
            elif isinstance(value, list):
                items = ((str(at), item) for at, item in enumerate(value))
            below = [(item, (*names, name), _next(nodes, name)) for name, item in items]
            waiting += [each for each in reversed(below) if each[2]]

    def add_appended(
        self,
        place: Names,
        wanted: Sequence[Json],
        tail: Sequence[Json],
        start: int,
        ignored: Sequence[_Places],
    ) -> None:
        """Appended elements against the wanted ones, as multisets, what is ignored left out."""
        nodes: Sequence[_Places] = ignored
        are_free = False  # whether elements that nobody wants are ignored
        for name in (*place, "*"):
            are_free = are_free or any(node.is_end for node in nodes)
            nodes = _next(nodes, name)
        are_free = are_free or any(node.is_end for node in nodes)
        inside = [_Places(below=node.below) for node in nodes]
        masked = [_shown(_masked(value, inside, None)) for value in wanted]
        found = [_shown(_masked(value, inside, None)) for value in tail]
        texts = [canonical_text(value) for value in found]
        n_left = Counter(texts)
        missing: list[int] = []
        for at, value in enumerate(masked):
            text = canonical_text(value)
            if n_left[text]:
                n_left[text] -= 1
            else:
                missing.append(at)
        extra: list[int] = []
        for at in reversed(range(len(found))):  # of equal ones the first are the wanted ones
            if n_left[texts[at]]:
                n_left[texts[at]] -= 1
                extra.append(at)
        extra.reverse()
        for at in missing:
            nearest = _nearest(masked[at], extra, found) if not are_free else None
            if nearest is None:
                self.add((*place, APPENDED), value_words(wanted[at]), "nothing")
                continue
            extra.remove(nearest)
            self.add_all(masked[at], found[nearest], (*place, str(start + nearest)), "")
        for at in () if are_free else extra:
            self.add((*place, str(start + at)), "nothing", value_words(tail[at]))


_MOST_COMPARED = 20


def _nearest(wanted: Json, extra: Sequence[int], found: Sequence[Json]) -> int | None:
    """The element that differs least from a wanted one, among the first few."""
    return min(extra[:_MOST_COMPARED], key=lambda at: _distance(wanted, found[at]), default=None)


def _distance(wanted: Json, found: Json) -> tuple[bool, int]:
    differences = state_differences(wanted, found, limit=1)
    return not differences.differences[0].path, differences.n_differences


def _wanted_words(difference: Difference, prefix: str) -> str:
    if difference.kind is DifferenceKind.ADDED:
        return "nothing"
    return f"{prefix}{value_words(difference.before)}"


def _found_words(difference: Difference) -> str:
    if difference.kind is DifferenceKind.REMOVED:
        return "nothing"
    return value_words(difference.after)
