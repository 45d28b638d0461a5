"""Two releases, task by task: paired differences, flips, and whether chance alone could make them.

The pairs are tasks, never trials: a task that was tried more often counts no more than another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, lcm
from random import Random

from reviews.core.estimators import Counts

EXACT_STEPS = 2**17
"""The most additions that the exact test makes: never more for 16 differences, 2^16 patterns."""

MONTE_CARLO_DRAWS = 10_000
MONTE_CARLO_SEED = 20_261_130


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """The two-sided p-value of a sign-flip permutation test over tasks."""

    p: Fraction
    n_tasks: int
    is_exact: bool  # else drawn `MONTE_CARLO_DRAWS` times with `MONTE_CARLO_SEED`


def sign_flip_test(differences: Sequence[Fraction]) -> PermutationTest | None:
    """Whether the mean of per-task differences is far from 0 for signs that could as well be others.

    Fisher's randomisation test for paired samples ("The Design of Experiments", 1935, section 21):
    the share of all sign patterns whose sum is at least as far from 0 as the one observed. Exact
    while that takes at most `EXACT_STEPS`, so always up to 16 differences that are not 0; else
    (hits + 1) / (draws + 1) over seeded draws (Phipson and Smyth, 2010). None for no task. One
    task, or no difference at all, gives 1.
    """
    if not differences:
        return None
    whole = lcm(*(each.denominator for each in differences))
    sizes = Counter(abs(int(each * whole)) for each in differences if each)
    observed = abs(int(sum(differences, Fraction(0)) * whole))
    groups = tuple(sorted(sizes.items()))
    exact = _exact_p(groups, observed)
    if exact is not None:
        return PermutationTest(exact, len(differences), is_exact=True)
    return PermutationTest(_drawn_p(groups, observed), len(differences), is_exact=False)


@lru_cache(maxsize=512)
def _exact_p(groups: tuple[tuple[int, int], ...], observed: int) -> Fraction | None:
    """By counting how many sign patterns lead to each sum; None when that takes too many steps."""
    ways = {0: 1}
    n_steps = 0
    for size in (size for size, n in groups for _ in range(n)):
        n_steps += 2 * len(ways)
        if n_steps > EXACT_STEPS:
            return None
        flipped: dict[int, int] = {}
        for total, count in ways.items():
            for reached in (total - size, total + size):
                flipped[reached] = flipped.get(reached, 0) + count
        ways = flipped
    far = sum(count for total, count in ways.items() if abs(total) >= observed)
    return Fraction(far, 2 ** sum(n for _, n in groups))


@lru_cache(maxsize=512)
def _drawn_p(groups: tuple[tuple[int, int], ...], observed: int) -> Fraction:
    random = Random(MONTE_CARLO_SEED)  # noqa: S311 - seeded on purpose, so that it is the same again
    hits = 0
    for _ in range(MONTE_CARLO_DRAWS):
        total = 0
        for size, n in groups:
            total += size * (2 * random.getrandbits(n).bit_count() - n)
        hits += abs(total) >= observed
    return Fraction(hits + 1, MONTE_CARLO_DRAWS + 1)


def exact_mcnemar(n_to_fail: int, n_to_pass: int) -> Fraction:
    """The two-sided exact p-value of McNemar's test from its discordant pairs (1947; binomial form).

    Only where each pair is one trial against one. No discordant pair gives 1.
    """
    n = n_to_fail + n_to_pass
    tail = sum(comb(n, i) for i in range(min(n_to_fail, n_to_pass) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**n))


@dataclass(frozen=True, slots=True)
class Pair:
    """One task in two releases, under one task version and one contract version."""

    task: str
    group: str  # its family
    then: Counts
    now: Counts

    @property
    def difference(self) -> Fraction | None:
        """Rate now minus rate then; None where one of them has no graded trial."""
        if self.then.rate is None or self.now.rate is None:
            return None
        return self.now.rate - self.then.rate

    @property
    def flips_to_fail(self) -> bool:
        """Every graded trial passed then, and at least one fails now."""
        return bool(self.then.graded and not self.then.failed and self.now.failed)

    @property
    def flips_to_pass(self) -> bool:
        """Every graded trial failed then, and at least one passes now."""
        return bool(self.then.graded and not self.then.passed and self.now.passed)


@dataclass(frozen=True, slots=True)
class PairedFigures:
    """What a figure did from one release to the next, over the tasks that both graded."""

    n_tasks: int
    then: Fraction | None  # mean over tasks
    now: Fraction | None
    to_fail: tuple[str, ...]  # tasks, in the order given
    to_pass: tuple[str, ...]
    test: PermutationTest | None  # None: no task
    mcnemar: Fraction | None  # None: no task, or one with more than one graded trial

    @property
    def difference(self) -> Fraction | None:
        """Of the means. None where no task is paired."""
        return None if self.then is None or self.now is None else self.now - self.then


def paired_figures(pairs: Iterable[Pair]) -> PairedFigures:
    """The figures over those pairs that both releases graded; the others have no difference."""
    both: list[Pair] = []
    then: list[Fraction] = []
    now: list[Fraction] = []
    for pair in pairs:
        if pair.then.rate is not None and pair.now.rate is not None:
            both.append(pair)
            then.append(pair.then.rate)
            now.append(pair.now.rate)
    to_fail = tuple(pair.task for pair in both if pair.flips_to_fail)
    to_pass = tuple(pair.task for pair in both if pair.flips_to_pass)
    is_single = all(pair.then.graded == pair.now.graded == 1 for pair in both)
    return PairedFigures(
        n_tasks=len(both),
        then=sum(then, Fraction(0)) / len(then) if then else None,
        now=sum(now, Fraction(0)) / len(now) if now else None,
        to_fail=to_fail,
        to_pass=to_pass,
        test=sign_flip_test([n - t for n, t in zip(now, then, strict=True)]),
        mcnemar=exact_mcnemar(len(to_fail), len(to_pass)) if both and is_single else None,
    )


def paired_by_group(pairs: Iterable[Pair]) -> tuple[tuple[str, PairedFigures], ...]:
    """The same for each family on its own, in order of name."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.group, []).append(pair)
    return tuple((name, paired_figures(groups[name])) for name in sorted(groups))
