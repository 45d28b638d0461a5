"""The check against the last signed release: what passed must pass on, and no family may fall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from reviews.core.estimators import Counts, Range, percent
from reviews.core.gate.evidence import (
    OrderedEvidence,
    UnitKey,
    bounded,
    by_unit,
    decided_by,
    open_trials,
    trials_of,
    unit_names,
)
from reviews.core.gate.model import Baseline, Check, CheckDetail, GateSlot, Threshold
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import counted, exact_text, listed, shortened

_FAILS_TOO_OFTEN = 2
_DECIDED = {"pass": True, "fail": False}


@dataclass(frozen=True, slots=True)
class _Pair:
    """One task at one version and contract, in both releases."""

    key: UnitKey
    name: str
    family: str
    then: Counts
    now: Counts
    slots: tuple[GateSlot, ...]  # of now

    @property
    def failure_result(self) -> CheckResult:
        """Whether a task that always passed fails twice, with open slots either way."""
        may_have_always = not self.then.failed
        if not may_have_always or self.now.failed + self.now.unknown < _FAILS_TOO_OFTEN:
            return CheckResult.MET
        is_sure = not self.then.unknown and self.now.failed >= _FAILS_TOO_OFTEN
        return CheckResult.NOT_MET if is_sure else CheckResult.CANNOT_TELL


@dataclass(frozen=True, slots=True)
class _Family:
    """A family in both releases: the means over its paired tasks."""

    name: str
    pairs: tuple[_Pair, ...]

    @property
    def fall(self) -> Fraction | None:
        """How far the mean rate fell, over tasks graded in both; None where none is."""
        graded = [pair for pair in self.pairs if pair.now.graded]
        falls = [_rate(pair.then) - _rate(pair.now) for pair in graded]
        return sum(falls, Fraction(0)) / len(falls) if falls else None

    @property
    def range(self) -> Range:
        """How far it fell at least and at most, with open slots of both either way."""
        n = len(self.pairs)
        least = sum((_low(p.then) - _high(p.now) for p in self.pairs), Fraction(0)) / n
        most = sum((_high(p.then) - _low(p.now) for p in self.pairs), Fraction(0)) / n
        return Range(least, most)

    def result(self, limit: Fraction) -> CheckResult:
        if self.range.high <= limit:
            return CheckResult.MET
        return CheckResult.NOT_MET if self.range.low > limit else CheckResult.CANNOT_TELL


def _rate(counts: Counts) -> Fraction:
    return Fraction(counts.passed, counts.graded)


def _low(counts: Counts) -> Fraction:
    return Fraction(counts.passed, counts.run)


def _high(counts: Counts) -> Fraction:
    return Fraction(counts.passed + counts.unknown, counts.run)


def regression(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """Dispositions of tasks that both releases tried at the same task and contract version.

    Not met if a task that always passed then fails twice or more now, or if a family's mean over
    tasks is lower by more than the limit; cannot be told where open slots could still decide that,
    and where no task is paired. With no signed release it does not apply. Tasks that nothing of was
    graded then, and those of one release only, are named and not compared. `measured` is the
    farthest fall of a family, below 0 where all rose.
    """
    baseline = evidence.baseline
    if baseline is None:
        return Check(
            threshold,
            CheckResult.DOES_NOT_APPLY,
            None,
            "No release of this system has been signed yet, so there is none to compare with.",
        )
    limit = threshold.limit if threshold.limit is not None else Fraction(0)
    pairs, unpaired = _pairs_of(baseline, evidence.counted)
    if not pairs:
        return Check(
            threshold,
            CheckResult.CANNOT_TELL,
            None,
            f"No task can be compared with {shortened(baseline.release)}, the last signed release.",
            settles=(
                f"Run a task that {shortened(baseline.release)} was signed on, at the same task and contract "
                "version."
            ),
            details=bounded(unpaired),
        )
    families = _families_of(pairs)
    failing = [pair for pair in pairs if pair.failure_result is not CheckResult.MET]
    falling = [family for family in families if family.result(limit) is not CheckResult.MET]
    results = [
        *(pair.failure_result for pair in failing),
        *(family.result(limit) for family in falling),
    ]
    if CheckResult.NOT_MET in results:
        result = CheckResult.NOT_MET
    else:
        result = CheckResult.CANNOT_TELL if results else CheckResult.MET
    falls = [fall for family in families if (fall := family.fall) is not None]
    ranges = [family.range for family in families]
    to_look_at = [*failing, *(pair for family in falling for pair in family.pairs)]
    return Check(
        threshold,
        result,
        max(falls, default=None),
        _sentence(baseline, pairs, families, failing, limit),
        range=Range(max(each.low for each in ranges), max(each.high for each in ranges)),
        settles=_settles(to_look_at) if result is CheckResult.CANNOT_TELL else "",
        details=bounded(
            [
                *map(_failing_detail, failing),
                *(_family_detail(family, limit) for family in families),
                *unpaired,
            ]
        ),
        trials=_trials_of(to_look_at, is_open=result is CheckResult.CANNOT_TELL),
    )


def _pairs_of(
    baseline: Baseline, slots: Sequence[GateSlot]
) -> tuple[list[_Pair], list[CheckDetail]]:
    then = by_unit(slot for slot in baseline.slots if slot.is_counted)
    now = by_unit(slots)
    names = unit_names([*now, *(key for key in sorted(then) if key not in now)])
    pairs: list[_Pair] = []
    unpaired: list[CheckDetail] = []
    for key in names:
        if key not in then:
            unpaired.append(CheckDetail(names[key], _why_alone(key, then, "not in the signed one")))
        elif key not in now:
            unpaired.append(CheckDetail(names[key], _why_alone(key, now, "not in this release")))
        else:
            pair = _Pair(
                key,
                names[key],
                now[key][0].family,
                _counts(then[key]),
                _counts(now[key]),
                tuple(now[key]),
            )
            if pair.then.graded:
                pairs.append(pair)
            else:
                text = "not compared: nothing of it was graded in the signed release"
                unpaired.append(CheckDetail(names[key], text))
    return pairs, unpaired


def _why_alone(key: UnitKey, others: dict[UnitKey, list[GateSlot]], otherwise: str) -> str:
    task, version, _ = key
    if any(other[:2] == (task, version) for other in others):
        return "not compared: another contract version"
    if any(other[0] == task for other in others):
        return "not compared: another task version"
    return f"not compared: {otherwise}"


def _counts(slots: Sequence[GateSlot]) -> Counts:
    return decided_by(slots, lambda slot: _DECIDED.get(slot.value)).counts


def _families_of(pairs: Sequence[_Pair]) -> list[_Family]:
    families: dict[str, list[_Pair]] = {}
    for pair in pairs:
        families.setdefault(pair.family, []).append(pair)
    return [_Family(name, tuple(families[name])) for name in sorted(families)]


def _family_name(family: _Family) -> str:
    return shortened(family.name) or "tasks of no family"


def _points(value: Fraction | None, limit: Fraction) -> str:
    """A difference of rates in points, on the side of the limit where it is."""
    if value is None:
        return "not known"
    said = percent(abs(value), [limit] if value >= 0 else []).replace(" %", "")
    return f"{said} points {'lower' if value >= 0 else 'higher'}" if value else "the same"


def _sentence(
    baseline: Baseline,
    pairs: Sequence[_Pair],
    families: Sequence[_Family],
    failing: Sequence[_Pair],
    limit: Fraction,
) -> str:
    n_failing = sum(pair.failure_result is CheckResult.NOT_MET for pair in failing)
    said = [f"{counted(len(pairs), 'task')} compared with {shortened(baseline.release)}."]
    if n_failing:
        said.append(f"{counted(n_failing, 'task')} that always passed failed twice or more.")
    else:
        said.append("No task that always passed is known to have failed twice.")
    worst = max(
        (family for family in families if family.fall is not None),
        key=lambda family: (family.fall or Fraction(0), family.name),
        default=None,
    )
    if worst is not None:
        most = exact_text(limit * 100)
        said.append(
            f"Of the families, {_family_name(worst)} did worst: {_points(worst.fall, limit)}, "
            f"with {most} allowed."
        )
    return " ".join(said)


def _failing_detail(pair: _Pair) -> CheckDetail:
    beside = f", {pair.now.unknown:,} open" if pair.now.unknown else ""
    return CheckDetail(
        pair.name,
        f"passed {pair.then.passed:,} of {pair.then.run:,} then, failed {pair.now.failed:,} of "
        f"{pair.now.run:,} now{beside}",
        pair.failure_result,
    )


def _family_detail(family: _Family, limit: Fraction) -> CheckDetail:
    result = family.result(limit)
    text = f"{counted(len(family.pairs), 'task')}: {_points(family.fall, limit)}"
    if family.range.low != family.range.high:
        low, high = _points(family.range.low, limit), _points(family.range.high, limit)
        text += f"; from {low} to {high} with open trials"
    return CheckDetail(_family_name(family), text, result)


def _settles(pairs: Sequence[_Pair]) -> str:
    unknown = [
        slot
        for pair in {pair.key: pair for pair in pairs}.values()
        for slot in pair.slots
        if slot.value not in _DECIDED
    ]
    if not unknown:
        return "Trials of the signed release are open: until they are decided nobody can compare."
    names = [shortened(task) for task in dict.fromkeys(slot.task for slot in unknown)]
    shown = listed(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
    return f"{open_trials(unknown)} can still decide it either way: of {shown}."


def _trials_of(pairs: Sequence[_Pair], *, is_open: bool) -> tuple[str, ...]:
    slots = [slot for pair in {pair.key: pair for pair in pairs}.values() for slot in pair.slots]
    failed = [slot for slot in slots if slot.value == "fail"]
    unknown = [slot for slot in slots if slot.value not in _DECIDED]
    return trials_of([*unknown, *failed] if is_open else [*failed, *unknown])
