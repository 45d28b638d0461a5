"""The slots of a tier that a figure counts, in one order, with the words for those that are open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from reviews.core.estimators import Counts
from reviews.core.gate.model import (
    Baseline,
    CheckDetail,
    GateSlot,
    JudgeThatDecides,
    RunOfRelease,
    TierEvidence,
)
from reviews.core.gate.threshold_words import counted, listed, shortened
from reviews.core.slots import label_order
from traces.core.canonical import natural_key

MOST_TRIALS = 20
MOST_DETAILS = 50

UNDECIDED = frozenset({"harness_error", "missing"})
"""Slots of these values are unknown for every figure."""

Decide = Callable[[GateSlot], bool | None]
"""What a figure counts of a slot: that it passed, that it failed, or None for not known."""


@dataclass(frozen=True, slots=True)
class OrderedEvidence:
    """The evidence of a tier as checks read it: put in order once, apart by what counts it."""

    slots: tuple[GateSlot, ...]  # of runs that are not left out
    counted: tuple[GateSlot, ...]  # outside split tuning and without an injected fault
    with_fault: tuple[GateSlot, ...]  # outside split tuning, with one
    runs: tuple[RunOfRelease, ...]
    judges: tuple[JudgeThatDecides, ...]
    baseline: Baseline | None


def ordered(evidence: TierEvidence) -> OrderedEvidence:
    """Slots by task, version, run and label, whatever order they came in."""
    left_out = {run.uuid for run in evidence.runs if run.is_left_out}
    keys = {task: natural_key(task) for task in {slot.task for slot in evidence.slots}}
    slots = sorted(
        (slot for slot in evidence.slots if slot.run not in left_out),
        key=lambda slot: (
            keys[slot.task],
            slot.task_version,
            slot.contract,
            slot.run,
            *label_order(slot.label),
            slot.trial,
            slot.value,
        ),
    )
    return OrderedEvidence(
        slots=tuple(slots),
        counted=tuple(slot for slot in slots if slot.is_counted),
        with_fault=tuple(slot for slot in slots if slot.has_fault and slot.split != "tuning"),
        runs=evidence.runs,
        judges=evidence.judges,
        baseline=evidence.baseline,
    )


def has_come(slots: Iterable[GateSlot]) -> bool:
    """Whether there is any trial to go by."""
    return any(slot.value != "missing" for slot in slots)


@dataclass(frozen=True, slots=True)
class Decided:
    """Slots by what one figure counts of them, in order."""

    passed: tuple[GateSlot, ...]
    failed: tuple[GateSlot, ...]
    open: tuple[GateSlot, ...]

    @property
    def counts(self) -> Counts:
        n_passed = len(self.passed)
        n_graded = n_passed + len(self.failed)
        n_missing = sum(slot.value == "missing" for slot in self.open)
        return Counts(n_passed, n_graded, n_graded + len(self.open), n_missing)

    def first_trials(self, *, is_open_first: bool) -> tuple[str, ...]:
        """Trials to look at: those that failed and those that are open."""
        order = (self.open, self.failed) if is_open_first else (self.failed, self.open)
        return trials_of([slot for slots in order for slot in slots])


def decided_by(slots: Iterable[GateSlot], decide: Decide) -> Decided:
    """Slots apart by what a figure counts of them. Missing and broken ones are open."""
    passed: list[GateSlot] = []
    failed: list[GateSlot] = []
    unknown: list[GateSlot] = []
    for slot in slots:
        found = None if slot.value in UNDECIDED else decide(slot)
        (unknown if found is None else passed if found else failed).append(slot)
    return Decided(tuple(passed), tuple(failed), tuple(unknown))


def trials_of(slots: Iterable[GateSlot]) -> tuple[str, ...]:
    """The UUIDs of the first trials, at most `MOST_TRIALS`."""
    return tuple([slot.trial for slot in slots if slot.trial][:MOST_TRIALS])


UnitKey = tuple[str, int, int]


def unit_of(slot: GateSlot) -> UnitKey:
    """A task at one version, decided by one contract version: what is never pooled."""
    return (slot.task, slot.task_version, slot.contract)


def by_unit(slots: Iterable[GateSlot]) -> dict[UnitKey, list[GateSlot]]:
    """Slots by unit, in the order given."""
    units: dict[UnitKey, list[GateSlot]] = {}
    for slot in slots:
        units.setdefault(unit_of(slot), []).append(slot)
    return units


def unit_names(units: Iterable[UnitKey]) -> dict[UnitKey, str]:
    """What units are called: the task, with its versions where it stands there more than once."""
    given = list(units)
    times = Counter(task for task, _, _ in given)
    return {
        (task, version, contract): shortened(task)
        if times[task] == 1
        else f"{shortened(task)} (version {version}, contract {contract or 'none'})"
        for task, version, contract in given
    }


_OPEN_WORDS = (
    ("unresolved", "unresolved", "unresolved"),
    ("harness_error", "harness error", "harness errors"),
    ("missing", "missing", "missing"),
)


def open_text(slots: Sequence[GateSlot], otherwise: str = "not checked for this") -> str:
    """Why slots are open: "9 unresolved, 3 harness errors and 2 missing"."""
    values = Counter(slot.value for slot in slots)
    words = [
        f"{values[value]:,} {one if values[value] == 1 else many}"
        for value, one, many in _OPEN_WORDS
        if values[value]
    ]
    n_rest = len(slots) - sum(values[value] for value, _, _ in _OPEN_WORDS)
    if n_rest:
        words.append(f"{n_rest:,} {otherwise}")
    return listed(words)


def open_trials(slots: Sequence[GateSlot]) -> str:
    """How many are open: "14 open trials"."""
    return counted(len(slots), "open trial")


def bounded(details: Sequence[CheckDetail]) -> tuple[CheckDetail, ...]:
    """At most `MOST_DETAILS` of them, and a line that says how many more there are."""
    if len(details) <= MOST_DETAILS:
        return tuple(details)
    rest = len(details) - MOST_DETAILS
    return (*details[:MOST_DETAILS], CheckDetail("", f"and {rest:,} more"))


def task_details(decided: Decided, verb: str) -> tuple[CheckDetail, ...]:
    """A line a unit in which something failed or is open, those with most failures first."""
    units = by_unit((*decided.passed, *decided.failed, *decided.open))
    names = unit_names(units)
    failed = Counter(map(unit_of, decided.failed))
    unknown = Counter(map(unit_of, decided.open))
    passed = Counter(map(unit_of, decided.passed))
    worst = sorted(
        (unit for unit in units if failed[unit] or unknown[unit]),
        key=lambda unit: (-failed[unit], -unknown[unit], natural_key(unit[0]), unit),
    )
    return bounded(
        [
            CheckDetail(
                names[unit],
                f"{passed[unit]:,} of {counted(passed[unit] + failed[unit], 'graded trial')} {verb}"
                + (f", {unknown[unit]:,} open" if unknown[unit] else ""),
            )
            for unit in worst
        ]
    )
