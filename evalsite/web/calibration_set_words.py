"""How pages and commands name what belongs to calibration sets."""

from __future__ import annotations

from collections.abc import Iterable

from evalsite.common.shell import Crumb
from reviews.core.sampling import Stratum, StratumDraw
from reviews.models import Sampling
from reviews.selectors.calibration_sets import SetState
from traces.core.records import VerdictValue
from traces.core.verdict_words import VERDICT_WORDS
from traces.models import System
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.pages.calibration_sets import StratumLine

SECTION = "Labelling"
NO_SET = "There is no such calibration set in this system."
SAMPLING = {
    Sampling.RANDOM.value: "random",
    Sampling.STRATIFIED.value: "stratified",
    Sampling.CHOSEN.value: "chosen by hand",
}
STATES = {
    SetState.OPEN: pages.Badge("open", "waiting"),
    SetState.COMPLETE: pages.Badge("complete"),
    SetState.CLOSED: pages.Badge("closed"),
    SetState.IMPORTED: pages.Badge("imported, nobody vouched yet", "unresolved"),
    SetState.VOUCHED: pages.Badge("imported, vouched for"),
}
VALUES = {
    "pass": pages.Badge("pass", "pass"),
    "fail": pages.Badge("fail", "fail"),
    "unknown": pages.Badge("unknown", "unresolved"),
    "split": pages.Badge("split", "unresolved"),
}
ROUNDS = ("", "first", "second", "third")
STRATUM_HELP = {
    Stratum.CLEAR_PASS: "All that is decided passes, by the path most passing trials of the task "
    "take.",
    Stratum.CLEAR_FAILURE: "Something mandatory failed.",
    Stratum.ALTERNATE_PATH: "It passes by another path than most passing trials of its task.",
    Stratum.UNDECIDED: "Something else than this criterion is still open, or nothing else is known.",
}


def crumbs_of(system: System, *more: Crumb) -> tuple[Crumb, ...]:
    """Where a page of calibration sets is."""
    at = Addresses.of(system.slug)
    return (Crumb(system.name, at.tasks), Crumb(SECTION, at.calibration_sets), *more)


def drawn_lines(strata: Iterable[StratumDraw]) -> tuple[StratumLine, ...]:
    """The strata of a set that was drawn."""
    return tuple(
        StratumLine(
            name=each.stratum.value,
            help=STRATUM_HELP[each.stratum],
            n_found=each.n_found,
            n_wanted=each.n_wanted,
            n_drawn=each.n_drawn,
            shortage=each.shortage,
        )
        for each in strata
    )


def word_table() -> tuple[pages.Fact, ...]:
    """The words that stand for each verdict of a person."""
    return tuple(
        pages.Fact(
            value.value,
            ", ".join(word for word, stands in VERDICT_WORDS.items() if stands is value),
        )
        for value in (VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN)
    )
