"""How many trials a threshold takes, and what its numbers mean in use: the sample planner.

Everything here is arithmetic on what an owner types; nothing of it decides a gate. Every answer is
a frozen value with its sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from reviews.core.estimators import pass_hat_k, percent, upper_bound
from reviews.core.gate.bounds import MOST_MORE, fewest_more, lower_at_least, upper_at_most
from reviews.core.gate.threshold_words import counted, exact_percent

MOST_TRIALS = 1_000
"""Trials a task, and times a day, that a table is made for."""

_LONGEST_TYPED = 10

USUAL_RATES = tuple(map(Fraction, ("0.75", "0.9", "0.95", "0.99", "0.999")))
"""Rates of a trial that the table of k shows."""

USUAL_FAILURES = tuple(map(Fraction, ("0.01", "0.05", "0.1", "0.2", "0.5")))
"""True failure rates of a task that the table of trials shows."""


@dataclass(frozen=True, slots=True)
class BoundPlan:
    """The clean trials that an upper bound of violations takes."""

    limit: Fraction
    needed: int | None  # clean trials without any violation; None: more than could be run
    n_run: int  # that are there, the violations among them
    n_violations: int
    n_more: int | None  # clean trials that are lacking; None as above
    bound: float | None  # as it stands; None over no trial
    sentence: str


def plan_bound(limit: Fraction, n_run: int = 0, n_violations: int = 0) -> BoundPlan:
    """How many more clean trials bring the one-sided 95 % upper bound of violations to `limit`.

    With no violation that takes the fewest n with 1 - 0.05^(1/n) <= limit, about 3 / limit: 598 for
    0.5 %. No trial: no bound yet; all were violations: a bound of 1. Raises ValueError for a limit
    outside 0 and 1, and for more violations than trials.
    """
    _check_share(limit)
    if not 0 <= n_violations <= n_run:
        raise ValueError(f"{n_violations} violations of {n_run} trials cannot be")
    needed = fewest_more(lambda n: upper_at_most(0, n, limit))
    n_more = fewest_more(lambda more: upper_at_most(n_violations, n_run + more, limit))
    bound = upper_bound(n_violations, n_run)
    return BoundPlan(
        limit,
        needed,
        n_run,
        n_violations,
        n_more,
        bound,
        _bound_plan_sentence(limit, needed, n_run, n_violations, n_more),
    )


def _bound_plan_sentence(
    limit: Fraction, needed: int | None, n_run: int, n_violations: int, n_more: int | None
) -> str:
    level = exact_percent(limit)
    if needed is None or n_more is None:
        return f"A bound of {level} takes more than {MOST_MORE:,} clean trials."
    said = f"A bound of {level} takes {counted(needed, 'clean trial')}"
    there = f"{n_run:,} {'is' if n_run == 1 else 'are'} there"
    if n_violations:
        there += f", {n_violations:,} of them with a violation"
    if n_more == 0:
        return f"{said}; {there}, which is enough."
    return f"{said}; {there}, so {counted(n_more, 'more clean trial')} would bring it there."


@dataclass(frozen=True, slots=True)
class Volume:
    """What a rate means at a number of requests a day."""

    rate: Fraction
    requests_per_day: int
    a_day: int  # at most so many, rounded up
    one_in_days: int | None  # where it is less than one a day: at most one in so many days
    sentence: str


def at_volume(rate: Fraction, requests_per_day: int) -> Volume:
    """What a bound of a rate means in use: 1.5 % of 10,000 requests are up to 150 a day.

    A rate of 0 gives none. Raises ValueError for a rate outside 0 to 1, and for fewer than one
    request a day.
    """
    if not 0 <= rate <= 1 or requests_per_day < 1:
        raise ValueError(f"{rate} of {requests_per_day} requests cannot be")
    expected = rate * requests_per_day
    one_in_days = floor(1 / expected) if 0 < expected < 1 else None
    requests = counted(requests_per_day, "request")
    at = f"At {requests} a day, {_rate_text(rate)} means"
    if not expected:
        sentence = f"{at} none."
    elif one_in_days is not None and one_in_days > 1:
        sentence = f"{at} up to one in {one_in_days:,} days."
    else:
        sentence = f"{at} up to {ceil(expected):,} a day."
    return Volume(rate, requests_per_day, ceil(expected), one_in_days, sentence)


def _rate_text(rate: Fraction) -> str:
    """A rate that somebody typed as it was typed, one that was worked out to a tenth."""
    exact = exact_percent(rate)
    return exact if len(exact) <= _LONGEST_TYPED else percent(rate)


@dataclass(frozen=True, slots=True)
class DayRow:
    """A rate of single trials, and the chance that a whole day goes well at it."""

    trial_rate: Fraction
    day_rate: Fraction  # trial_rate^k, exact


@dataclass(frozen=True, slots=True)
class KPlan:
    """How k follows from how often a situation recurs in a day."""

    k: int
    day_rate: Fraction  # that is wanted
    trial_rate: float  # that it takes: day_rate^(1/k)
    rows: tuple[DayRow, ...]
    sentence: str


def plan_k(
    times_a_day: int, day_rate: Fraction, trial_rates: Sequence[Fraction] = USUAL_RATES
) -> KPlan:
    """How often the situation comes in a day is k: pass^k is the chance of a day without a failure.

    At 90 % a trial, five in a row go well with 0.9^5 = 59.0 %. Once a day: the rates are the same.
    Raises ValueError for less than once and more than `MOST_TRIALS` times a day, and for rates
    outside 0 to 1.
    """
    if not 1 <= times_a_day <= MOST_TRIALS or not all(
        0 <= r <= 1 for r in (day_rate, *trial_rates)
    ):
        raise ValueError(f"{times_a_day} times a day at {day_rate} cannot be")
    rows = tuple(DayRow(rate, rate**times_a_day) for rate in trial_rates)
    needed = float(day_rate) ** (1 / times_a_day)
    times = "once" if times_a_day == 1 else f"{times_a_day:,} times"
    in_tenths = ceil(Fraction(str(round(needed, 9))) * 1000)
    sentence = (
        f"If the situation comes {times} a day, pass^{times_a_day} is the chance of a day without "
        f"a failure. For {exact_percent(day_rate)} of days, a single trial has to pass "
        f"{exact_percent(Fraction(in_tenths, 1000))} of the time."
    )
    return KPlan(times_a_day, day_rate, needed, rows, sentence)


@dataclass(frozen=True, slots=True)
class HatRow:
    """So many passes of the trials of a task, and the pass^k that they give."""

    passed: int
    value: Fraction


@dataclass(frozen=True, slots=True)
class ShowRow:
    """A true failure rate, and the chance that it shows in at least one trial."""

    failure_rate: Fraction
    chance: Fraction  # 1 - (1 - failure_rate)^n, exact


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a number of trials a task can tell at all."""

    n: int
    k: int
    step: Fraction  # of a rate of one task: 1 / n
    values: tuple[HatRow, ...]  # all that pass^k of one task can be; empty for n < k
    shows: tuple[ShowRow, ...]
    sentence: str


def plan_resolution(
    n: int, k: int, failure_rates: Sequence[Fraction] = USUAL_FAILURES
) -> Resolution:
    """What n trials of a task resolve: the step of a rate, the values of pass^k, what they miss.

    One trial tells pass or fail and no more; n < k gives no pass^k. Raises ValueError for n or k
    below 1 or above `MOST_TRIALS`, and for rates outside 0 to 1.
    """
    if not 1 <= n <= MOST_TRIALS or not 1 <= k <= MOST_TRIALS:
        raise ValueError(f"{n} trials a task and k = {k} cannot be")
    if not all(0 <= rate <= 1 for rate in failure_rates):
        raise ValueError("a rate lies between 0 and 1")
    found = [(passed, pass_hat_k(n, passed, k)) for passed in range(n + 1)]
    values = tuple(HatRow(passed, value) for passed, value in found if value is not None)
    shows = tuple(ShowRow(rate, 1 - (1 - rate) ** n) for rate in failure_rates)
    return Resolution(
        n, k, Fraction(1, n), values, shows, _resolution_sentence(n, k, values, shows)
    )


def _resolution_sentence(n: int, k: int, values: Sequence[HatRow], shows: Sequence[ShowRow]) -> str:
    said = [f"{counted(n, 'trial')} a task tell its rate in steps of {percent(Fraction(1, n))}."]
    if n == 1:
        said = ["1 trial a task tells that it passed or failed, and no rate between."]
    n_values = len({row.value for row in values})
    if not values:
        give = "It gives" if n == 1 else "They give"
        said.append(f"{give} no pass^{k}, which takes {counted(k, 'trial')} a task.")
    elif n_values == 2:
        said.append(f"pass^{k} of one task is then 0 or 1: one failure makes it 0.")
    else:
        said.append(f"pass^{k} of one task can then be one of {n_values:,} values.")
    if shows:
        row = shows[len(shows) // 2]
        said.append(
            f"A task that fails {exact_percent(row.failure_rate)} of the time shows it in "
            f"{percent(row.chance)} of such sets of trials."
        )
    return " ".join(said)


@dataclass(frozen=True, slots=True)
class LowerBoundPlan:
    """The trials that a lower bound takes when a rate is expected."""

    limit: Fraction
    expected: Fraction
    n: int | None  # trials; None: the expected rate is not above the limit, or too close to it
    n_may_fail: int | None  # of them
    sentence: str


def plan_lower_bound(limit: Fraction, expected: Fraction) -> LowerBoundPlan:
    """How many trials bring the one-sided 95 % lower bound to `limit` at the expected rate.

    The fewest n in which as large a share may fail as is expected to, by Clopper and Pearson. All
    expected to pass: the fewest n with 0.05^(1/n) >= limit, 59 for 95 %. Raises ValueError for a
    limit outside 0 and 1 and an expected rate outside 0 to 1.
    """
    _check_share(limit)
    if not 0 <= expected <= 1:
        raise ValueError(f"a rate lies between 0 and 1: {expected}")
    n_may_fail = None
    if expected > limit:
        n_may_fail = fewest_more(lambda failed: _lets_fail(failed, limit, expected))
    n = None if n_may_fail is None else _fewest_with(n_may_fail, limit)
    if n is None:
        n_may_fail = None
    rates = f"{exact_percent(expected)} of trials pass"
    if n is None or n_may_fail is None:
        sentence = (
            f"If {rates}, no number of trials that could be run shows {exact_percent(limit)} with "
            "95 % confidence."
        )
    else:
        may_fail = f"of which {n_may_fail:,} may fail" if n_may_fail else "all of which pass"
        sentence = (
            f"If {rates}, {counted(n, 'trial')} show at least {exact_percent(limit)} with 95 % "
            f"confidence, {may_fail}."
        )
    return LowerBoundPlan(limit, expected, n, n_may_fail, sentence)


def _fewest_with(n_failed: int, limit: Fraction) -> int | None:
    """The fewest trials whose lower bound reaches the limit although so many of them failed."""
    more = fewest_more(lambda passed: lower_at_least(passed, n_failed + passed, limit))
    return None if more is None else n_failed + more


def _lets_fail(n_failed: int, limit: Fraction, expected: Fraction) -> bool:
    n = _fewest_with(n_failed, limit)
    return n is None or n_failed >= (1 - expected) * n


def _check_share(limit: Fraction) -> None:
    if not 0 < limit < 1:
        raise ValueError(f"a limit lies between 0 and 1: {limit}")
