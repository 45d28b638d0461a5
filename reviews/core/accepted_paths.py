"""Accepted paths: when one may be accepted, and what a release does with them.

A trial is on an accepted path when its path key, at the accepted path's own level and under the
rules that pages show, equals the key of the accepted path's representative trajectory. So coverage
follows the rules, and an accepted path covers every finer path inside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LONGEST_REASON = 4_000  # characters


class RefusalCode(StrEnum):
    """Why a path cannot be accepted."""

    NOT_PASSING = "not-passing"
    NOT_COMPARABLE = "not-comparable"
    FLAGGED = "flagged"
    ALREADY = "already-accepted"
    NO_REASON = "no-reason"
    LONG_REASON = "long-reason"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, with the sentence that page, service and log show."""

    code: RefusalCode
    sentence: str


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What decides whether the path of a trial may be accepted at one level."""

    is_passing: bool  # the trial that shows the path passed and counts in figures
    is_comparable: bool  # every call was recorded with its arguments
    compares_arguments: bool  # the level does
    n_flagged: int  # passing trials on the path with an open flag
    accepted: tuple[int, ...]  # numbers of the paths in force that are this very path


def refusal_of_path(facts: PathFacts) -> Refusal | None:
    """Why the path cannot be accepted, the weightiest reason first; None when it can."""
    if not facts.is_passing:
        return Refusal(
            RefusalCode.NOT_PASSING,
            "Only the path of a passing trial can be accepted: the last attempt of its slot, from "
            "a test and without an injected fault.",
        )
    if facts.compares_arguments and not facts.is_comparable:
        return Refusal(
            RefusalCode.NOT_COMPARABLE,
            "A call of this trial was recorded without its arguments, so its path cannot be "
            "accepted at a level that compares them.",
        )
    if facts.n_flagged:
        carry = (
            "1 passing trial on this path carries"
            if facts.n_flagged == 1
            else (f"{facts.n_flagged:,} passing trials on this path carry")
        )
        return Refusal(
            RefusalCode.FLAGGED,
            f"{carry} an open flag. The path can be accepted once every flag on it is closed.",
        )
    if facts.accepted:
        return Refusal(
            RefusalCode.ALREADY,
            f"This path is accepted at this level already: {accepted_name(facts.accepted)}.",
        )
    return None


def refusal_of_reason(reason: str) -> Refusal | None:
    """Why a reason, as it will be stored, is none; None when it is one."""
    if not reason.strip():
        return Refusal(RefusalCode.NO_REASON, "Say why, for whoever reads the register later.")
    if len(reason) > LONGEST_REASON:
        return Refusal(
            RefusalCode.LONG_REASON,
            f"The reason is longer than {LONGEST_REASON:,} characters.",
        )
    return None


def accepted_name(numbers: Sequence[int]) -> str:
    """How pages name accepted paths that are one path: "Accepted 1", "Accepted 1, 3 and 4"."""
    words = [f"{number:,}" for number in sorted(numbers)]
    if len(words) < 2:
        return f"Accepted {''.join(words)}"
    return f"Accepted {', '.join(words[:-1])} and {words[-1]}"


class GroupStanding(StrEnum):
    """What the trials of one path at the level that is looked at come to."""

    ACCEPTED = "accepted"  # accepted paths cover all of them
    PARTLY = "partly accepted"  # they cover some
    NEW = "new"  # none, and no earlier release passed by this path
    NOT_ACCEPTED = "not accepted"


def standing_of_group(*, n_trials: int, n_covered: int, is_first_seen: bool) -> GroupStanding:
    """The standing of a path. `is_first_seen`: an earlier release there was did not pass by it."""
    if n_covered:
        return GroupStanding.ACCEPTED if n_covered == n_trials else GroupStanding.PARTLY
    return GroupStanding.NEW if is_first_seen else GroupStanding.NOT_ACCEPTED


class Taking(StrEnum):
    """What a release does with an accepted path of a task that it ran."""

    TAKEN = "taken"
    NO_LONGER = "no longer taken"
    NOT_YET = "not taken yet"
    CANNOT_TELL = "cannot tell"  # no trial of the task is graded


def taking_of(*, n_here: int, n_graded: int, n_before: int) -> Taking:
    """What a release does with an accepted path.

    `n_here` passing trials of the release are on it, of `n_graded` trials that passed or failed;
    `n_before` passing trials of earlier releases are on it.
    """
    if n_here:
        return Taking.TAKEN
    if not n_graded:
        return Taking.CANNOT_TELL
    return Taking.NO_LONGER if n_before else Taking.NOT_YET
