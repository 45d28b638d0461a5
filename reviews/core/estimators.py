"""Rates with their range, pass@k and pass^k, intervals, percentiles and sums.

Fractions are exact: a threshold is compared with the fraction, never with what is printed. No data
is None, never 0. Tasks are averaged, never pooled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from math import ceil, comb, floor, log
from typing import TypeVar

Number = TypeVar("Number", Decimal, Fraction, float, int)

ESTIMATORS_VERSION = 1
"""Stored beside every stored figure. It goes up whenever the same trials may give another one."""

_EXACT_SUMS = Context(prec=200)


@dataclass(frozen=True, slots=True)
class Range:
    """A figure at both ends: every unknown one fails, every unknown one passes."""

    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True)
class Counts:
    """How many slots passed, were graded and were run, of one task or of a whole suite.

    `run` counts every slot, the missing declared trials among them; `run - graded` of them are
    unknown for the figure.
    """

    passed: int
    graded: int
    run: int
    missing: int = 0  # of `run`: declared trials that never came

    def __post_init__(self) -> None:
        if not 0 <= self.passed <= self.graded <= self.run - self.missing <= self.run:
            raise ValueError(f"counts that cannot be: {self}")

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed,
            self.graded + other.graded,
            self.run + other.run,
            self.missing + other.missing,
        )

    @property
    def failed(self) -> int:
        """Graded slots that did not pass."""
        return self.graded - self.passed

    @property
    def unknown(self) -> int:
        """Slots that are not decided for this figure."""
        return self.run - self.graded

    @property
    def rate(self) -> Fraction | None:
        """The passed among the graded. None when nothing is graded; 1 when all that is graded passed."""
        return Fraction(self.passed, self.graded) if self.graded else None

    @property
    def range(self) -> Range | None:
        """From "all unknown ones fail" to "all pass", over slots. None when nothing was run."""
        if not self.run:
            return None
        return Range(
            Fraction(self.passed, self.run), Fraction(self.passed + self.unknown, self.run)
        )


def pass_at_k(n: int, c: int, k: int) -> Fraction | None:
    """Chance that at least one of k trials passes, of n trials with c passes: 1 - C(n-c,k)/C(n,k).

    The unbiased estimator of Chen et al., "Evaluating Large Language Models Trained on Code"
    (2021). None for n < k, n = 0 included; with n = 1 it is c; all passed gives 1.
    """
    _check_counts(n, c, k)
    if n < k:
        return None
    return 1 - Fraction(comb(n - c, k), comb(n, k))


def pass_hat_k(n: int, c: int, k: int) -> Fraction | None:
    """Chance that all of k trials pass, of n trials with c passes: C(c,k)/C(n,k).

    The estimator of Yao et al., "tau-bench" (2024). None for n < k, n = 0 included; with n = 1 it
    is c; all passed gives 1.
    """
    _check_counts(n, c, k)
    if n < k:
        return None
    return Fraction(comb(c, k), comb(n, k))


def _check_counts(n: int, c: int, k: int) -> None:
    if k < 1 or not 0 <= c <= n:
        raise ValueError(f"n={n}, c={c}, k={k} cannot be")


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The counts of one task version."""

    task: str
    counts: Counts


@dataclass(frozen=True, slots=True)
class SuiteMean:
    """A mean over tasks, and what it is a mean of."""

    value: Fraction | None  # None: no task has enough trials
    n_tasks: int  # that the mean is over
    left_out: tuple[str, ...]  # tasks with fewer than k trials, in the order given


def mean_pass_hat_k(tasks: Iterable[TaskCounts], k: int) -> SuiteMean:
    """pass^k of each task with at least k graded trials, then the mean over those tasks.

    The value is None when there is no such task. One task gives its own pass^k; all passed gives 1.
    """
    return _mean_over_tasks(tasks, k, lambda _, c: comb(c, k))


def mean_pass_at_k(tasks: Iterable[TaskCounts], k: int) -> SuiteMean:
    """pass@k of each task with at least k graded trials, then the mean over those tasks.

    The value is None when there is no such task. One task gives its own pass@k; all passed gives 1.
    """
    return _mean_over_tasks(tasks, k, lambda n, c: comb(n, k) - comb(n - c, k))


def _mean_over_tasks(
    tasks: Iterable[TaskCounts], k: int, favourable: Callable[[int, int], int]
) -> SuiteMean:
    """The mean of favourable / C(n,k) over tasks with n >= k.

    Tasks with the same n share a denominator: whole numbers are added, a fraction is made for each
    n alone, as fractions of large numbers are dear.
    """
    left_out: list[str] = []
    sums: dict[int, int] = {}
    n_tasks = 0
    for task in tasks:
        n, c = task.counts.graded, task.counts.passed
        _check_counts(n, c, k)
        if n < k:
            left_out.append(task.task)
        else:
            n_tasks += 1
            sums[n] = sums.get(n, 0) + favourable(n, c)
    total = sum((Fraction(part, comb(n, k)) for n, part in sums.items()), Fraction(0))
    return SuiteMean(total / n_tasks if n_tasks else None, n_tasks, tuple(left_out))


def pass_hat_k_range(tasks: Iterable[TaskCounts], k: int) -> Range | None:
    """Mean pass^k over slots, from "all unknown ones fail" to "all pass", as a gate reads it.

    None when there is no task, and when one task has fewer than k slots: then nobody can tell.
    """
    low: list[Fraction] = []
    high: list[Fraction] = []
    for task in tasks:
        counts = task.counts
        worst = pass_hat_k(counts.run, counts.passed, k)
        best = pass_hat_k(counts.run, counts.passed + counts.unknown, k)
        if worst is None or best is None:
            return None
        low.append(worst)
        high.append(best)
    mean_low, mean_high = _mean(low), _mean(high)
    return None if mean_low is None or mean_high is None else Range(mean_low, mean_high)


def mean_task_rate(tasks: Iterable[TaskCounts]) -> SuiteMean:
    """The mean over tasks of passed / graded, which is not the rate of all trials together.

    Tasks without a graded trial are left out and named; the value is None when all are.
    """
    return mean_pass_hat_k(tasks, 1)


def _mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a true rate, between 0 and 1."""

    low: float
    high: float


def clopper_pearson(c: int, n: int, confidence: float = 0.95) -> Interval | None:
    """Two-sided exact interval of a rate with c of n (Clopper and Pearson, Biometrika 1934).

    None for n = 0. With n = 1 it reaches from 0 to 0.975, or 0.025 to 1. None passed gives a low
    end of exactly 0; all passed gives a high end of exactly 1.
    """
    if n == 0:
        return None
    _check_counts(n, c, 1)
    each_side = (1 + confidence) / 2
    return Interval(_lower(c, n, each_side), _upper(c, n, each_side))


def upper_bound(c: int, n: int, confidence: float = 0.95) -> float | None:
    """One-sided Clopper-Pearson upper bound of a rate with c of n.

    None for n = 0; exactly 1 when all of them did (n = 1 included); for c = 0 the closed form
    1 - (1 - confidence)^(1/n), so 0.95 for n = 1.
    """
    if n == 0:
        return None
    _check_counts(n, c, 1)
    return _upper(c, n, confidence)


def lower_bound(c: int, n: int, confidence: float = 0.95) -> float | None:
    """One-sided Clopper-Pearson lower bound of a rate with c of n.

    None for n = 0; exactly 0 for c = 0; for c = n the closed form (1 - confidence)^(1/n), so 0.05
    for n = 1.
    """
    if n == 0:
        return None
    _check_counts(n, c, 1)
    return _lower(c, n, confidence)


def _upper(c: int, n: int, confidence: float) -> float:
    if c == n:
        return 1.0
    if c == 0:
        return float(1 - (1 - confidence) ** (1 / n))
    return _beta_quantile(c + 1, n - c, confidence)


def _lower(c: int, n: int, confidence: float) -> float:
    if c == 0:
        return 0.0
    if c == n:
        return float((1 - confidence) ** (1 / n))
    return _beta_quantile(c, n - c + 1, 1 - confidence)


def _beta_quantile(a: int, b: int, probability: float) -> float:
    # scipy takes a fifth of a second to import: only processes that draw an interval pay for it
    from scipy.special import betaincinv

    return float(betaincinv(a, b, probability))


def zero_violation_bound(n: int) -> float | None:
    """95 % upper bound of the true rate after n clean trials: 1 - 0.05^(1/n), about 3/n.

    Hanley and Lippman-Hand, JAMA 1983. None for n = 0; 0.95 for n = 1.
    """
    return upper_bound(0, n)


def clean_trials_needed(bound: float) -> int:
    """The fewest clean trials whose `zero_violation_bound` is at most `bound`, 0 < bound < 1."""
    if not 0 < bound < 1:
        raise ValueError(f"a bound lies between 0 and 1: {bound}")
    return ceil(log(0.05) / log(1 - bound))


def nearest_rank(values: Iterable[Number], percent: int) -> Number | None:
    """The nearest-rank percentile: the smallest value that `percent` % of values do not exceed.

    It is always one of the values. None for no value; the only one for n = 1.
    """
    if not 0 < percent <= 100:
        raise ValueError(f"a percentile lies between 1 and 100: {percent}")
    ordered = sorted(values)
    if not ordered:
        return None
    rank = -(-percent * len(ordered) // 100)
    return ordered[rank - 1]


def median(values: Iterable[Decimal]) -> Decimal | None:
    """The middle value, or the mean of the middle two. None for n = 0; the only one for n = 1."""
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return _EXACT_SUMS.divide(_EXACT_SUMS.add(ordered[middle - 1], ordered[middle]), Decimal(2))


@dataclass(frozen=True, slots=True)
class KnownSum:
    """A sum over trials of which some may not say their part."""

    total: Decimal | None  # of the known ones; None when none is known
    n_known: int
    n: int

    @property
    def mean(self) -> Decimal | None:
        """The mean of the known ones, to 28 digits. None when none is known."""
        return None if self.total is None else self.total / self.n_known


def known_sum(values: Iterable[Decimal | None]) -> KnownSum:
    """Sum of money, seconds or tokens in decimal, exact to 200 digits; None is not known, not 0."""
    given = list(values)
    known = [value for value in given if value is not None]
    if not known:
        return KnownSum(None, 0, len(given))
    total = Decimal(0)
    for value in known:
        total = _EXACT_SUMS.add(total, value)
    return KnownSum(total, len(known), len(given))


def percent(value: Fraction | None, thresholds: Iterable[Fraction] = ()) -> str:
    """A rate for people, to a tenth of a percent: "94.4 %"; "-" for no data.

    What is printed never claims more than the fraction holds: it is rounded half up or down, but
    never up to a whole percent, and it stands on the same side of each of `thresholds` as the
    fraction does, with further digits where a tenth cannot show that. A rate above 0 never reads 0.
    The comparison itself is always made on the fraction.
    """
    if value is None:
        return "-"
    if 0 < value < Fraction(1, 1000):
        return "< 0.1 %"
    others = [threshold for threshold in thresholds if threshold != value]
    places = 1
    while (shown := _shown(value, places, others)) is None:
        places += 1
    return f"{shown // 10**places}.{shown % 10**places:0{places}} %"


def _shown(value: Fraction, places: int, thresholds: Sequence[Fraction]) -> int | None:
    """The rate in units of the last place, rounded half up or else down; None where neither does."""
    one = 10**places
    exact = value * 100 * one
    below: int = floor(exact)
    above: int = ceil(exact)
    for shown in (above, below) if 2 * exact >= below + above else (below,):
        is_whole_too_early = shown > exact and shown % one == 0
        rate = Fraction(shown, 100 * one)
        if not is_whole_too_early and all(
            (rate > t, rate < t) == (value > t, value < t) for t in thresholds
        ):
            return shown
    return None


def rate_text(counts: Counts, thresholds: Iterable[Fraction] = ()) -> str:
    """A rate with what it is a rate of: "94.4 % (17/18)"; "-" when nothing is graded."""
    if counts.rate is None:
        return "-"
    return f"{percent(counts.rate, thresholds)} ({counts.passed}/{counts.graded})"


def known_text(known: KnownSum, noun: str = "trials") -> str:
    """How much of a sum is known: "known for 1 of 3 trials"; "" when all of it is."""
    return "" if known.n_known == known.n else f"known for {known.n_known} of {known.n} {noun}"
