"""The check of what a trial costs: the 95th percentile over all trials, in US dollars."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from reviews.core.estimators import Counts, Range, nearest_rank
from reviews.core.gate.evidence import OrderedEvidence, trials_of
from reviews.core.gate.model import Check, Threshold
from reviews.core.gate.states import CheckResult
from reviews.core.gate.threshold_words import counted, dollars, dollars_of

PERCENT = 95


def cost_p95(threshold: Threshold, evidence: OrderedEvidence) -> Check:
    """The nearest-rank 95th percentile of cost over all slots that count.

    A cost that is not known, of a missing trial too, stands above every value at the bad end and
    below every one at the good end. No trial: cannot be told; one trial: its own cost. `counts`
    says how many are within the limit, of those whose cost is known, of all.
    """
    limit = threshold.limit if threshold.limit is not None else Fraction(0)
    slots = evidence.counted
    came = [slot for slot in slots if slot.value != "missing"]
    known = [slot for slot in came if slot.cost is not None]
    costs = sorted(slot.cost for slot in came if slot.cost is not None)
    n_within = sum(Fraction(cost) <= limit for cost in costs)
    counts = Counts(n_within, len(costs), len(slots), len(slots) - len(came))
    if not came:
        return Check(
            threshold,
            CheckResult.CANNOT_TELL,
            None,
            "No trial has come.",
            counts,
            settles="No trial has come: run the tasks of this tier.",
        )
    n_over = len(costs) - n_within
    n_allowed = len(slots) - -(-PERCENT * len(slots) // 100)
    if n_over > n_allowed:
        result = CheckResult.NOT_MET
    elif n_over + counts.unknown <= n_allowed:
        result = CheckResult.MET
    else:
        result = CheckResult.CANNOT_TELL
    is_open = result is CheckResult.CANNOT_TELL
    measured = nearest_rank(costs, PERCENT)
    dearest = sorted(known, key=lambda slot: -(slot.cost or 0))
    unknown = [slot for slot in came if slot.cost is None]
    return Check(
        threshold,
        result,
        None if measured is None else Fraction(measured),
        _sentence(costs, counts, limit),
        counts,
        _range_of(costs, counts),
        settles=_settles(counts.unknown, n_allowed - n_over, limit) if is_open else "",
        trials=trials_of([*unknown, *dearest] if is_open else dearest),
    )


def _range_of(costs: list[Decimal], counts: Counts) -> Range | None:
    """The percentile at both ends; None where an unknown cost stands at the rank of the bad end."""
    rank = -(-PERCENT * counts.run // 100)
    if rank > len(costs):
        return None
    at_best = rank - counts.unknown
    low = Fraction(costs[at_best - 1]) if at_best > 0 else Fraction(0)
    return Range(low, Fraction(costs[rank - 1]))


def _sentence(costs: list[Decimal], counts: Counts, limit: Fraction) -> str:
    measured = nearest_rank(costs, PERCENT)
    if measured is None:
        return f"No cost is known of {counted(counts.run, 'trial')}."
    said = (
        f"95 % of {counted(counts.graded, 'trial')} with a known cost, of {counts.run:,} run, cost "
        f"{dollars_of(measured)} or less; {counts.passed:,} cost {dollars(limit)} or less."
    )
    return f"{said} {_unknown(counts.unknown)}." if counts.unknown else said


def _unknown(n: int) -> str:
    return f"The cost of {counted(n, 'trial')} is not known"


def _settles(n_unknown: int, n_may_be_over: int, limit: Fraction) -> str:
    return (
        f"{_unknown(n_unknown)}: it is met if at most {n_may_be_over:,} of them cost more than "
        f"{dollars(limit)}."
    )
