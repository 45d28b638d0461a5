"""Whether a one-sided 95 % Clopper-Pearson bound holds, and how many more trials bring it there.

A bound is compared as the float that it is. Where it comes within `NEAR` of the limit the exact
binomial tail decides instead, in whole numbers: the upper bound of c of n is at most p exactly when
P(X <= c | n, p) <= 5 %, and the lower one at least p exactly when P(X >= c | n, p) <= 5 %
(Clopper and Pearson, Biometrika 1934). With n = 0 there is no bound, and nothing holds.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from reviews.core.estimators import upper_bound

NEAR = 1e-9
MOST_EXACT = 20_000_000
"""Terms of the tail times trials; beyond it the float decides, which is exact to 12 digits or so."""

MOST_MORE = 10**9
"""Further trials beyond which none are asked for."""

_ONE_IN = 20  # 5 %


def upper_at_most(c: int, n: int, limit: Fraction) -> bool:
    """Whether the upper bound of c of n is at most `limit`. All of n: only for a limit of 1."""
    bound = upper_bound(c, n)
    if bound is None or c == n:
        return bound is not None and limit >= 1
    return _compared(c, n, bound, limit) <= 0


def upper_below(c: int, n: int, limit: Fraction) -> bool:
    """Whether the upper bound of c of n is below `limit`. All of n: never."""
    bound = upper_bound(c, n)
    if bound is None or c == n:
        return False
    return _compared(c, n, bound, limit) < 0


def lower_at_least(c: int, n: int, limit: Fraction) -> bool:
    """Whether the lower bound of c of n is at least `limit`. None of n: only for a limit of 0."""
    return n > 0 and upper_at_most(n - c, n, 1 - limit)


def lower_above(c: int, n: int, limit: Fraction) -> bool:
    """Whether the lower bound of c of n is above `limit`. None of n: never."""
    return upper_below(n - c, n, 1 - limit)


def _compared(c: int, n: int, bound: float, limit: Fraction) -> int:
    """-1, 0 or 1 as the upper bound of c of n, c < n, is below, at or above the limit."""
    n_terms = min(c + 1, n - c)
    if abs(bound - limit) < NEAR and 0 < limit < 1 and n_terms * n <= MOST_EXACT:
        return _tail_sign(c, n, limit)
    return (bound > limit) - (bound < limit)


def _tail_sign(c: int, n: int, p: Fraction) -> int:
    """-1, 0 or 1 as P(X <= c) is below, at or above 5 %, for a binomial X of n and p."""
    whole: int = p.denominator**n
    if c + 1 <= n - c:
        return _sign(_ONE_IN * _first_terms(c, n, p) - whole)
    others = _first_terms(n - c - 1, n, 1 - p)
    return _sign(_ONE_IN * (whole - others) - whole)


def _first_terms(c: int, n: int, p: Fraction) -> int:
    """P(X <= c) times the denominator of p to the n, which is whole."""
    yes, no = p.numerator, p.denominator - p.numerator
    term: int = no**n
    total = term
    for i in range(c):
        term = term * (n - i) * yes // ((i + 1) * no)
        total += term
    return total


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def fewest_more(holds: Callable[[int], bool]) -> int | None:
    """The fewest further trials with which something holds that goes on holding with more.

    0 where it holds already; None where `MOST_MORE` do not bring it.
    """
    if holds(0):
        return 0
    high = 1
    while not holds(high):
        high *= 2
        if high > MOST_MORE:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
