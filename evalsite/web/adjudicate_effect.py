"""What a decision on a dispute would do, as its page tells it before anybody confirms it."""

from __future__ import annotations

from collections.abc import Iterator

from evalsite.adjudication_effects import DecisionEffect, effect_of
from evalsite.common.formatting import count_text, counted
from reviews.core.deciding import DecidedBy
from reviews.core.disposition import AdjudicationRuling, Mark, Standing, StandingResult
from reviews.selectors.adjudicating import DisputeBasis
from reviews.selectors.disputes import ListedDispute
from reviews.selectors.release_counts import ReleaseCounts
from traces.core.text_marks import clean_text
from traces.models import Trial
from traces.selectors.releases import NO_RELEASE
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.pages.adjudications import DisputeEffect, EffectLine
from traces.web.rows import STATES, action_words

DECISIONS: dict[AdjudicationRuling | Mark, tuple[str, str]] = {
    AdjudicationRuling.PASS: ("Pass", "pass"),
    AdjudicationRuling.FAIL: ("Fail", "fail"),
    AdjudicationRuling.INSUFFICIENT_EVIDENCE: ("Insufficient evidence", "insufficient evidence"),
    AdjudicationRuling.RUBRIC_UNCLEAR: ("Rubric is unclear", "rubric unclear"),
    Mark.DEFECTIVE: ("Check is defective", "a defective check"),
    Mark.AMBIGUOUS: ("Check is ambiguous", "an ambiguous check"),
}
"""Each decision as its button says it, and as a sentence names it."""

_STANDS = {
    StandingResult.PASS: "pass",
    StandingResult.FAIL: "fail",
    StandingResult.OPEN: "unresolved",
}


def dispute_effect_of(
    trial: Trial,
    dispute: ListedDispute,
    basis: DisputeBasis,
    decision: AdjudicationRuling | Mark,
    at: Addresses,
) -> DisputeEffect:
    """What a decision would do, line by line."""
    effect = effect_of(trial, basis, decision)
    return DisputeEffect(
        decision=DECISIONS[decision][1],
        lines=tuple(_lines(effect, at)),
        why_nothing=effect.why_nothing,
        alike=_alike(effect, dispute, at),
        notes=tuple(_notes(effect)),
    )


def _lines(effect: DecisionEffect, at: Addresses) -> Iterator[EffectLine]:
    if effect.standing_before and effect.standing_after:
        yield _standing_line(effect.standing_before, effect.standing_after)
    yield _trial_line(effect.before, effect.after)
    release = effect.release
    name = f"Release {clean_text(release.name) or NO_RELEASE}"
    before, after = release.counts, effect.counts_after
    yield EffectLine(
        f"{name}, passed / graded / run",
        _triple(before),
        _triple(after) if _triple(after) != _triple(before) else "",
        at.release(release.uuid),
    )
    for what, had, gets in (
        ("outcome rate", _outcome(before), _outcome(after)),
        ("rule-clean rate", _clean(before), _clean(after)),
    ):
        if had != gets:
            yield EffectLine(f"{name}, {what}", had, gets)


def _standing_line(before: Standing, after: Standing) -> EffectLine:
    had, gets = _standing_words(before), _standing_words(after)
    return EffectLine(
        "This criterion",
        had,
        gets if gets != had else "",
        state_before=_STANDS[before.result],
        state_after=_STANDS[after.result],
    )


def _standing_words(standing: Standing) -> str:
    if standing.action is None:
        return standing.result.value
    return f"open: {action_words(standing.action.value)}"


def _trial_line(before: DecidedBy, after: DecidedBy) -> EffectLine:
    had, gets = _disposition_words(before), _disposition_words(after)
    return EffectLine(
        "This trial",
        had,
        gets if gets != had else "",
        state_before=STATES[before.decision.disposition],
        state_after=STATES[after.decision.disposition],
    )


def _disposition_words(decided: DecidedBy) -> str:
    decision = decided.decision
    words = decision.disposition.value.replace("_", " ")
    if decision.failed_classes:
        return f"{words} ({', '.join(name.value for name in decision.failed_classes)})"
    action = decision.next_action
    return f"{words}: {action_words(action.value)}" if action else words


def _triple(counts: ReleaseCounts) -> str:
    return " / ".join(count_text(n) for n in (counts.n_pass, counts.n_graded, counts.n_run))


def _outcome(counts: ReleaseCounts) -> str:
    return f"{count_text(counts.outcome_passed)} of {count_text(counts.outcome_graded)}"


def _clean(counts: ReleaseCounts) -> str:
    return f"{count_text(counts.clean_passed)} of {count_text(counts.clean_graded)}"


def _alike(effect: DecisionEffect, dispute: ListedDispute, at: Addresses) -> pages.Link:
    version = dispute.rubric_version
    under = f"under rubric version {clean_text(version)}" if version else "on this criterion"
    if not effect.n_alike:
        return pages.Link(f"No other open dispute {under}")
    query = {"criterion": dispute.criterion, "rubric": version or None}
    words = f"{counted(effect.n_alike, 'other open dispute')} {under}"
    return pages.Link(words, address(at.disputes, {**query, "view": "list"}))


def _notes(effect: DecisionEffect) -> Iterator[str]:
    if effect.release.left_out:
        yield effect.release.left_out
    if effect.n_trials:
        yield (
            f"A mark is on the check itself: all {counted(effect.n_trials, 'trial')} of the task "
            "that it decides are open until the contract is mended."
        )
    if effect.decision is AdjudicationRuling.RUBRIC_UNCLEAR:
        yield "It asks whoever writes rubrics for a clearer text."
