"""How far two raters agree on the same items: tables, agreement and Cohen's kappa.

Fractions are exact. No data is None, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

AGREEMENT_VERSION = 1
"""Stored beside every stored figure. It goes up whenever the same table may give another one."""

KAPPA_INTERVAL = "large-sample interval of kappa (Fleiss, Cohen and Everitt 1969), two-sided 95 %"
"""How the interval is made, for people."""


@dataclass(frozen=True, slots=True)
class Table:
    """How often two raters gave each pair of labels: rows the first one's, columns the second's."""

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        size = len(self.labels)
        is_square = len(self.counts) == size and all(len(row) == size for row in self.counts)
        if not is_square or len(set(self.labels)) != size:
            raise ValueError(f"a table has a row and a column for each label: {self}")
        if any(count < 0 for row in self.counts for count in row):
            raise ValueError(f"counts that cannot be: {self}")

    @property
    def n(self) -> int:
        """Items that both raters labelled."""
        return sum(map(sum, self.counts))

    @property
    def n_alike(self) -> int:
        """Items that both gave the same label."""
        return sum(row[place] for place, row in enumerate(self.counts))

    @property
    def rows(self) -> tuple[int, ...]:
        """How often the first rater gave each label."""
        return tuple(map(sum, self.counts))

    @property
    def columns(self) -> tuple[int, ...]:
        """How often the second rater gave each label."""
        return tuple(map(sum, zip(*self.counts, strict=True)))

    def count(self, first: str, second: str) -> int:
        """How often the first rater gave one label where the second gave the other."""
        return self.counts[self.labels.index(first)][self.labels.index(second)]


def table_of(pairs: Iterable[tuple[str, str]], labels: Sequence[str]) -> Table:
    """The table of pairs of labels, first rater first. ValueError for a label not among `labels`."""
    counter = Counter(pairs)
    unknown = {label for pair in counter for label in pair} - set(labels)
    if unknown:
        raise ValueError(f"labels that the table does not have: {sorted(unknown)}")
    return Table(
        tuple(labels),
        tuple(tuple(counter[first, second] for second in labels) for first in labels),
    )


def observed_agreement(table: Table) -> Fraction | None:
    """The share of items that both gave the same label. None for n = 0; 0 or 1 for n = 1."""
    return Fraction(table.n_alike, table.n) if table.n else None


def prevalence(table: Table, label: str) -> Fraction | None:
    """The share of items that the first rater gave a label. None for n = 0."""
    if not table.n:
        return None
    return Fraction(table.rows[table.labels.index(label)], table.n)


@dataclass(frozen=True, slots=True)
class Kappa:
    """Agreement beyond what the raters' own frequencies would give by chance.

    `low` and `high` are None where the large-sample variance is nothing: with all alike, with a
    rater who always says the same, and with n = 1 it cannot tell how far the value may be off.
    """

    value: Fraction
    low: float | None
    high: float | None


def cohen_kappa(table: Table, confidence: float = 0.95) -> Kappa | None:
    """Cohen's kappa (Educational and Psychological Measurement, 1960) with its interval.

    (p_o - p_e) / (1 - p_e), p_o the observed agreement, p_e the one expected from both raters'
    frequencies. None where it is not defined: for n = 0, and when both gave one label only
    (n = 1 with both alike included). All alike over two labels gives 1. The interval is the
    large-sample one of Fleiss, Cohen and Everitt (Psychological Bulletin, 1969), kept within -1
    and 1; it says little below some 50 items.
    """
    n = table.n
    if n == 0:
        return None
    rows, columns = table.rows, table.columns
    expected = Fraction(sum(a * b for a, b in zip(rows, columns, strict=True)), n * n)
    if expected == 1:
        return None
    value = (Fraction(table.n_alike, n) - expected) / (1 - expected)
    variance = _variance(table, value, expected)
    if variance <= 0:
        return Kappa(value, None, None)
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * sqrt(variance)
    return Kappa(value, max(float(value) - reach, -1.0), min(float(value) + reach, 1.0))


def _variance(table: Table, kappa: Fraction, expected: Fraction) -> Fraction:
    """The large-sample variance of kappa, exact (Fleiss, Cohen and Everitt 1969, formula 13)."""
    n, rows, columns = table.n, table.rows, table.columns
    rest = 1 - kappa
    alike, apart = Fraction(0), Fraction(0)
    for i, row in enumerate(table.counts):
        for j, count in enumerate(row):
            if i == j:
                share = Fraction(rows[i] + columns[i], n)
                alike += Fraction(count, n) * (1 - share * rest) ** 2
            else:
                apart += Fraction(count, n) * Fraction(columns[i] + rows[j], n) ** 2
    spread = alike + rest**2 * apart - (kappa - expected * rest) ** 2
    return spread / (n * (1 - expected) ** 2)
