"""The check of pass^k: the chance that k trials of one task in a row all pass, as a mean over tasks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from reviews.core.estimators import (
    TaskCounts,
    mean_pass_hat_k,
    pass_hat_k,
    pass_hat_k_range,
    percent,
)
from reviews.core.gate.evidence import (
    OrderedEvidence,
    UnitKey,
    bounded,
    by_unit,
    decided_by,
    has_come,
    open_text,
    open_trials,
    unit_names,
)
from reviews.core.gate.model import Check, CheckDetail, Threshold
from reviews.core.gate.rates import clean_passed, outcome_passed
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import counted, exact_percent, listed
from traces.core.canonical import natural_key

_MOST_NAMED = 5


def pass_hat(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """pass^k of each task at one version and contract, n its slots, then the mean over them.

    The estimator of Yao et al., "tau-bench" (2024): C(c,k)/C(n,k). Met if the mean is enough when
    every open slot fails, not met if it is not when all pass. One task with fewer than k slots
    makes it impossible to tell, and is named. No trial: cannot be told; one trial a task tells of
    k = 1 only; all passed gives 1.
    """
    k = threshold.k or 1
    limit = threshold.limit if threshold.limit is not None else Fraction(0)
    slots = evidence.counted
    decided = decided_by(slots, outcome_passed if threshold.of == "outcome" else clean_passed)
    if not has_come(slots):
        return Check(
            threshold,
            CheckResult.CANNOT_TELL,
            None,
            "No trial has come.",
            decided.counts,
            settles=f"Run the tasks of this tier, with {counted(k, 'trial')} or more of each.",
        )
    units = by_unit(slots)
    names = unit_names(units)
    counts = {
        unit: TaskCounts(
            names[unit],
            decided_by(
                units[unit], outcome_passed if threshold.of == "outcome" else clean_passed
            ).counts,
        )
        for unit in units
    }
    mean = mean_pass_hat_k(counts.values(), k)
    found = pass_hat_k_range(counts.values(), k)
    short = {unit: each for unit, each in counts.items() if each.counts.run < k}
    if found is None:
        result = CheckResult.CANNOT_TELL
    elif found.low >= limit:
        result = CheckResult.MET
    else:
        result = CheckResult.NOT_MET if found.high < limit else CheckResult.CANNOT_TELL
    is_open = result is CheckResult.CANNOT_TELL
    settles = ""
    if short:
        settles = _short_sentence(short, k)
    elif is_open and found is not None:
        settles = (
            f"{open_trials(decided.open)} can still decide it either way: it is "
            f"{percent(found.low, [limit])} if they fail and {percent(found.high, [limit])} if they "
            f"pass."
        )
    over = _over(mean.n_tasks, len(counts))
    enough = f"{counted(k, 'graded trial')} or more"
    said = [f"pass^{k} is {percent(mean.value, [limit])} over {over} with {enough}."]
    if mean.value is None:
        said = [f"No task has {counted(k, 'graded trial')}, so there is no pass^{k}."]
    if decided.open:
        opened = f"{open_trials(decided.open)} ({open_text(decided.open)})"
        said.append(
            f"{opened}."
            if found is None
            else f"{opened}: between {percent(found.low, [limit])} and "
            f"{percent(found.high, [limit])} once {_they_are(len(decided.open))} decided."
        )
    return Check(
        threshold,
        result,
        mean.value,
        " ".join(said),
        decided.counts,
        found,
        settles=settles,
        n_more=sum(k - each.counts.run for each in short.values()) or None,
        details=_details(counts, k),
        trials=decided.first_trials(is_open_first=is_open),
    )


def _over(n: int, n_all: int) -> str:
    """What a mean is over: "3 tasks", and "1 of 3 tasks" where the others have none."""
    return counted(n, "task") if n == n_all else f"{n:,} of {counted(n_all, 'task')}"


def _they_are(n: int) -> str:
    return "it is" if n == 1 else "they are"


def _short_sentence(short: Mapping[UnitKey, TaskCounts], k: int) -> str:
    named = [f"{each.task} has {each.counts.run:,}" for each in list(short.values())[:_MOST_NAMED]]
    if len(short) > _MOST_NAMED:
        named.append(f"{len(short) - _MOST_NAMED:,} more have too few")
    return f"pass^{k} needs {counted(k, 'trial')} a task: {listed(named)}."


def _details(counts: Mapping[UnitKey, TaskCounts], k: int) -> tuple[CheckDetail, ...]:
    worst = sorted(
        counts,
        key=lambda unit: (
            _low_of(counts[unit], k),
            natural_key(unit[0]),
            unit,
        ),
    )
    return bounded([CheckDetail(counts[unit].task, _text_of(counts[unit], k)) for unit in worst])


def _low_of(task: TaskCounts, k: int) -> Fraction:
    """What a task is ordered by: its pass^k at the bad end, those with too few trials first."""
    low = pass_hat_k(task.counts.run, task.counts.passed, k)
    return Fraction(-1) if low is None else low


def _text_of(task: TaskCounts, k: int) -> str:
    counts = task.counts
    said = f"{counts.passed:,} of {counts.graded:,} graded, {counts.run:,} run"
    if counts.run < k:
        return f"{said}: needs {k:,}"
    value = pass_hat_k(counts.graded, counts.passed, k)
    if value is None:
        return f"{said}: {counts.unknown:,} open"
    return f"{said}: pass^{k} {exact_percent(value) if value in (0, 1) else percent(value)}"
