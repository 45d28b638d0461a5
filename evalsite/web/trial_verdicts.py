"""The verdicts on a trial as its page lists them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from evalsite.access import Access, Act
from evalsite.common.formatting import time_text
from evalsite.web.judge_words import state_words, why_not_counting
from evalsite.web.trial_standings import StepLinks
from reviews.core.disposition import GivenVerdict
from reviews.selectors.standings import TrialStandings
from reviews.selectors.verdict_cards import VerdictCard
from traces.core.records import GraderKind, VerdictValue
from traces.core.text_marks import count_marks
from traces.web import pages
from traces.web.addressed_notes import addressed_note
from traces.web.addresses import Addresses, address

_LONG_RATIONALE = 500
_LONGEST_RATIONALE = 64_000  # characters
_WORDS = {
    VerdictValue.PASS: "pass",
    VerdictValue.FAIL: "fail",
    VerdictValue.UNKNOWN: "unresolved",
    VerdictValue.ERROR: "harness-error",
}
_UNTAKEN = "no requirement of the contract takes it"
_DIGEST = re.compile(r"[0-9a-f]{32,}")


@dataclass(frozen=True, slots=True)
class VerdictRows:
    """The verdicts that are listed, and those that are folded away."""

    shown: tuple[pages.VerdictRow, ...]  # what counts comes first, and of that what is mandatory
    superseded: tuple[pages.VerdictRow, ...]  # of checks of other contract versions


def cited_steps(found: TrialStandings) -> tuple[tuple[int, str], ...]:
    """Steps with who cites them; what was corrected or superseded cites nothing."""
    gone = found.superseded | found.untaken | {card.given.corrects for card in found.cards}
    return tuple(
        (step, _citation(card))
        for card in found.cards
        if card.given.id not in gone
        for step in card.given.cited_steps
    )


def _citation(card: VerdictCard) -> str:
    given = card.given
    if card.is_check:
        return f"{given.criterion}: {given.value.value}"
    return f"{given.criterion} by {card.by_name or given.grader}"


def verdict_rows(
    found: TrialStandings,
    links: StepLinks,
    *,
    at: Addresses,
    access: Access,
    trial: UUID,
    now: datetime,
) -> VerdictRows:
    """The verdicts as rows. Those of the checks in effect stand with their requirements."""
    superseded = found.superseded
    rows = VerdictRowMaker.of(found, links, at=at, access=access, trial=trial, now=now)
    shown = sorted(
        (card for card in found.cards if not card.is_check),
        key=lambda card: (
            card.given.id in rows.untaken or not card.given.counts,
            card.given.id in rows.corrected,
            not card.given.mandatory,
        ),
    )
    return VerdictRows(
        shown=tuple(rows.row(card) for card in shown),
        superseded=tuple(rows.row(card) for card in found.cards if card.given.id in superseded),
    )


@dataclass(frozen=True, slots=True)
class VerdictRowMaker:
    """Makes the row of one verdict of a trial after the other."""

    found: TrialStandings
    by_id: Mapping[str, VerdictCard]
    corrected: Mapping[str, VerdictCard]
    untaken: frozenset[str]
    links: StepLinks
    at: Addresses
    access: Access
    trial: UUID
    now: datetime

    @classmethod
    def of(
        cls,
        found: TrialStandings,
        links: StepLinks,
        *,
        at: Addresses,
        access: Access,
        trial: UUID,
        now: datetime,
    ) -> VerdictRowMaker:
        """For the verdicts of a trial as it stands."""
        by_id = {card.given.id: card for card in found.cards}
        corrected = {
            card.given.corrects: card for card in found.cards if card.given.corrects is not None
        }
        return cls(found, by_id, corrected, found.untaken, links, at, access, trial, now)

    def row(self, card: VerdictCard) -> pages.VerdictRow:
        """One verdict as it is kept."""
        verdict = card.given
        later = self.corrected.get(verdict.id)
        earlier = self.by_id.get(verdict.corrects or "")
        is_own = card.by_pk == self.access.user.pk and self.access.may(Act.REVIEW)
        return pages.VerdictRow(
            criterion=verdict.criterion,
            value=_WORDS[verdict.value],
            word=verdict.value.value,
            grader=card.by_name or verdict.grader,
            version=_version_text(verdict.grader_version),
            kind=verdict.kind.value,
            criterion_class=verdict.criterion_class.value,
            is_mandatory=verdict.mandatory,
            counts=verdict.counts and verdict.id not in self.untaken,
            why_not=_UNTAKEN if verdict.id in self.untaken else self._why_not(verdict),
            raw_word=verdict.raw_word if verdict.raw_word != verdict.value.value else "",
            score=_score_text(verdict.score),
            rationale=_rationale(card.rationale, f"{self.links.here}raw"),
            cited=self._cited(verdict),
            at=card.created_at if card.by_pk is not None else None,
            under=f"contract version {card.contract_number}" if card.contract_number else "",
            corrected=f"{later.given.value.value}, {time_text(later.created_at)}" if later else "",
            corrects=earlier.given.value.value if earlier else "",
            correct_url=address(
                self.at.verdict_form(self.trial),
                {"criterion": verdict.criterion, "corrects": verdict.id},
            )
            if is_own and later is None and not verdict.is_blind_label
            else "",
            calibration=self._calibration(verdict),
            vouched=_vouched(card),
            is_blind=verdict.is_blind_label,
        )

    def _why_not(self, verdict: GivenVerdict) -> str:
        if verdict.counts:
            return ""
        if verdict.kind is GraderKind.MODEL:
            return why_not_counting(self.found.judge_state(verdict))
        return "it came in a file, and no reviewer vouched for it"

    def _calibration(self, verdict: GivenVerdict) -> pages.Link | None:
        judge = self.found.judges.of(verdict)
        if judge is None:
            return None
        words = state_words(self.found.judge_state(verdict), now=self.now)
        return pages.Link(words, self.at.judge(judge.version_pk, judge.criterion_pk))

    def _cited(self, verdict: GivenVerdict) -> tuple[pages.Link, ...]:
        return tuple(
            pages.Link(f"step {step}", self.links.href(step)) for step in verdict.cited_steps
        )


def _version_text(version: str) -> str:
    """A version as people tell it apart: the first digits of a long digest."""
    return f"{version[:12]}…" if _DIGEST.fullmatch(version) else version


def _vouched(card: VerdictCard) -> str:
    """Who vouched for an imported human verdict, and why."""
    if not card.vouched_by:
        return ""
    return f"{card.vouched_by}, {time_text(card.vouched_at)}: {card.vouch_reason}"


def _score_text(score: Decimal | None) -> str:
    if score is None:
        return ""
    text = f"{score:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rationale(text: str, raw_url: str) -> pages.TextBlock | None:
    if not text:
        return None
    shown = text[:_LONGEST_RATIONALE]
    return pages.TextBlock(
        text=shown,
        size=len(text.encode("utf-8", "surrogatepass")),
        n_marks=count_marks(shown),
        is_cut=len(text) > len(shown),
        full_url=raw_url if len(text) > len(shown) else "",
        is_long=len(shown) > _LONG_RATIONALE,
        addressed=addressed_note(text),
    )
