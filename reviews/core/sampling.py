"""Which trials go into a calibration set, and in which order people meet them.

A draw is made from a seed, so that it can be made again. Strata are told by what is known of a trial
without any judge: sampling by a judge's own word would bend the rates that the set is there for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from traces.core.values import Json, JsonObject

SAMPLING_VERSION = 1
"""Of the draw: the same trials, seed and version give the same set."""


class Stratum(StrEnum):
    """What a trial is like, apart from any judge."""

    CLEAR_PASS = "clear pass"  # all that is decided passes, by the usual path of its task
    CLEAR_FAILURE = "clear failure"  # something mandatory failed
    ALTERNATE_PATH = "alternate path"  # a pass by another path than the usual one of its task
    UNDECIDED = "undecided"  # what else there is


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trial that may go into a set."""

    pk: int
    family: str
    stratum: Stratum


@dataclass(frozen=True, slots=True)
class StratumDraw:
    """How many trials of a stratum were wanted, found and drawn."""

    stratum: Stratum
    n_wanted: int
    n_found: int
    n_drawn: int

    @property
    def shortage(self) -> str:
        """What is said where there are fewer trials than wanted; "" where there are enough."""
        if self.n_drawn >= self.n_wanted:
            return ""
        word = "trial is" if self.n_found == 1 else "trials are"
        found = f"only {self.n_found:,} {word}" if self.n_found else "no trial is"
        return f"{self.n_wanted:,} wanted of {self.stratum.value}; {found} there."


@dataclass(frozen=True, slots=True)
class Drawn:
    """The trials of a set in the order in which people meet them."""

    candidates: tuple[Candidate, ...]
    strata: tuple[StratumDraw, ...] = ()  # of a stratified draw


def stratum_of(*, passes: bool | None, is_usual_path: bool) -> Stratum:
    """The stratum of a trial. `passes` None: what decides it without judges leaves it open."""
    if passes is None:
        return Stratum.UNDECIDED
    if not passes:
        return Stratum.CLEAR_FAILURE
    return Stratum.CLEAR_PASS if is_usual_path else Stratum.ALTERNATE_PATH


def random_draw(candidates: Iterable[Candidate], n: int, *, seed: int) -> Drawn:
    """`n` trials, each as likely as any other, or all where there are fewer, in a drawn order."""
    pool = sorted(candidates, key=lambda each: each.pk)
    return Drawn(tuple(Random(seed).sample(pool, min(n, len(pool)))))  # noqa: S311


def stratified_draw(
    candidates: Iterable[Candidate], wanted: Mapping[Stratum, int], *, seed: int
) -> Drawn:
    """So many trials of each stratum, the families of a stratum taken in turn.

    A stratum with too few trials gives all that it has, and says so; no other one fills in. The order of
    the whole is drawn, so that neighbours tell nothing of one another.
    """
    random = Random(seed)  # noqa: S311 - seeded on purpose, so that it is the same again
    pool = sorted(candidates, key=lambda each: each.pk)
    chosen: list[Candidate] = []
    strata: list[StratumDraw] = []
    for stratum in Stratum:
        n_wanted = wanted.get(stratum, 0)
        found = [each for each in pool if each.stratum is stratum]
        drawn = _by_family_in_turn(found, random)[:n_wanted]
        chosen.extend(drawn)
        if n_wanted:
            strata.append(StratumDraw(stratum, n_wanted, len(found), len(drawn)))
    random.shuffle(chosen)
    return Drawn(tuple(chosen), tuple(strata))


def _by_family_in_turn(found: Sequence[Candidate], random: Random) -> list[Candidate]:
    """One of each family, then one more of each, and so on: families and trials in a drawn order."""
    by_family: dict[str, list[Candidate]] = {}
    for each in found:
        by_family.setdefault(each.family, []).append(each)
    queues = list(by_family.values())
    random.shuffle(queues)
    for queue in queues:
        random.shuffle(queue)
    rounds = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(rounds) for queue in queues if turn < len(queue)]


def chosen_order(candidates: Iterable[Candidate], *, seed: int) -> Drawn:
    """Trials that somebody chose by hand, in a drawn order."""
    pool = sorted(candidates, key=lambda each: each.pk)
    Random(seed).shuffle(pool)  # noqa: S311 - seeded on purpose, so that it is the same again
    return Drawn(tuple(pool))


def even_shares(n: int, found: Mapping[Stratum, int]) -> dict[Stratum, int]:
    """`n` parted over the strata as evenly as what was found allows, in the order of `Stratum`.

    What a poor stratum cannot give goes to the others; less than `n` in all where there is less.
    """
    shares = dict.fromkeys(Stratum, 0)
    left = min(n, sum(found.values()))
    while left:
        open_strata = [each for each in Stratum if found.get(each, 0) > shares[each]]
        for stratum in open_strata[:left]:
            shares[stratum] += 1
        left -= min(left, len(open_strata))
    return shares


def suggested_shares(
    n: int, found: Mapping[Stratum, int], *, n_failures: int
) -> dict[Stratum, int]:
    """A stratified set of `n` trials: `n_failures` clear failures, the rest parted evenly.

    Failures come first because the bound of false passes is read on failing items alone.
    """
    n_failing = min(n_failures, n, found.get(Stratum.CLEAR_FAILURE, 0))
    others = {**found, Stratum.CLEAR_FAILURE: 0}
    return even_shares(n - n_failing, others) | {Stratum.CLEAR_FAILURE: n_failing}


def strata_document(strata: Iterable[StratumDraw]) -> Json:
    """The strata of a draw as they are stored."""
    return [
        {
            "stratum": each.stratum.value,
            "wanted": each.n_wanted,
            "found": each.n_found,
            "drawn": each.n_drawn,
        }
        for each in strata
    ]


def read_strata(document: Iterable[JsonObject]) -> tuple[StratumDraw, ...]:
    """What `strata_document` wrote."""
    return tuple(
        StratumDraw(
            Stratum(str(each["stratum"])),
            _whole(each["wanted"]),
            _whole(each["found"]),
            _whole(each["drawn"]),
        )
        for each in document
    )


def _whole(value: Json) -> int:
    assert isinstance(value, int), value
    return value
