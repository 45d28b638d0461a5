"""The cards of a dispute's page: what is asked, who says what, and what was decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evalsite.common import blobs
from evalsite.common.formatting import counted
from evalsite.web.dispute_words import RULING_STATES, RULINGS, VALUE_STATES
from evalsite.web.trial_standings import StepLinks
from evalsite.web.trial_verdicts import VerdictRowMaker
from reviews.core.disposition import Requirement, corrected_ids
from reviews.core.disputes import speaks_on
from reviews.selectors.rubrics import rubric_text_of
from reviews.selectors.rulings import HeldRuling, rulings_about
from reviews.selectors.standings import TrialStandings
from reviews.selectors.verdict_cards import VerdictCard
from traces.core.contracts.model import Contract
from traces.core.contracts.words import (
    EntryWords,
    Words,
    budget_words,
    external_words,
    outcome_words,
    prohibited_words,
    required_words,
)
from traces.core.shown_json import shown_json
from traces.core.text_marks import clean_text, count_marks
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.pages.adjudications import (
    AskedCard,
    ContractLines,
    HeldRulingRow,
    SpokenVerdict,
)

MOST_LINES = 6  # of one part of a contract
LONGEST_LINE = 240
LONGEST_QUESTION = 20_000
LONGEST_ANSWER = 64_000
LONG_TEXT = 1_200  # characters from which a rubric is folded
MOST_VERDICTS = 60  # cards on one page
MOST_CITED = 40  # links of one verdict


@dataclass(frozen=True, slots=True)
class DisputeLinks(StepLinks):
    """Addresses of steps on the page of a dispute, which keeps the list that it stands in."""

    query: str = ""  # of the list, "" or "?…"

    def href(self, step: int) -> str:
        """The address of a step; "" for one that does not exist."""
        if not 1 <= step <= self.n_steps:
            return ""
        if self.first <= step <= self.last:
            return f"#step-{step}"
        mark = "&" if self.query else "?"
        return f"{self.here}{self.query}{mark}step={step}#step-{step}"

    def cited(self, steps: Iterable[int]) -> tuple[pages.Link, ...]:
        """Links to cited steps; one that does not exist has no address."""
        return tuple(pages.Link(f"step {n}", self.href(n)) for n in list(steps)[:MOST_CITED])


def asked_card(
    found: TrialStandings, criterion: str, rubric_version: str, *, system_pk: int, at: Addresses
) -> AskedCard:
    """What the criterion asks, with the rest of the contract around it."""
    version = found.contract
    kept = rubric_text_of(system_pk, criterion, rubric_version)
    contract = version.contract if version else None
    asked, guide = _question(contract, criterion), kept.text if kept else ""
    if not asked:
        asked, guide = guide, ""
    version_named = rubric_version or (kept.version if kept else "")
    named = f"version {version_named}" if version_named else ""
    return AskedCard(
        contract=pages.Link(f"version {version.number}", at.contract_version(version.identity))
        if version
        else None,
        question=text_block(asked, most=LONGEST_QUESTION, long_from=LONG_TEXT) if asked else None,
        guide=text_block(guide, most=LONGEST_QUESTION, long_from=LONG_TEXT) if guide else None,
        rubric=pages.Link(named, at.rubric(kept.rubric_pk) if kept else "") if named else None,
        parts=tuple(_parts(contract, criterion)) if contract else (),
    )


def _question(contract: Contract | None, criterion: str) -> str:
    rubrics = contract.semantic if contract else ()
    return next((rubric.question for rubric in rubrics if rubric.id == criterion), "")


def _parts(contract: Contract, criterion: str) -> Iterator[ContractLines]:
    entries = [*required_words(contract), *budget_words(contract), *external_words(contract)]
    prohibited = [each for group in prohibited_words(contract) for each in group.entries]
    own = next((each for each in [*entries, *prohibited] if each.id == criterion), None)
    if own is not None:
        yield ContractLines(clean_text(criterion), (_entry(own),))
    outcome = [
        " ".join(part for part in (case.lead, case.when) if part)
        + ": "
        + "; ".join(_words(line, is_state=True) for line in case.lines)
        for case in outcome_words(contract)
    ]
    for heading, lines in (
        ("Required outcome", outcome),
        ("Required", [_entry(each, named=True) for each in required_words(contract)]),
        ("Forbidden", [_entry(each, named=True) for each in prohibited]),
    ):
        if lines:
            shown = tuple(_cut(line) for line in lines[:MOST_LINES])
            yield ContractLines(heading, shown, len(lines) - len(shown))


def _entry(entry: EntryWords, *, named: bool = False) -> str:
    words = " ".join(_words(part) for part in entry.parts)
    return f"{entry.id}: {words}" if named else words


def _words(words: Words, *, is_state: bool = False) -> str:
    parts = (
        (words.name, words.lead, words.where)
        if is_state
        else (words.lead, words.name, f"where {words.where}" if words.where else "")
    )
    return " ".join(part for part in parts if part)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…"


def text_block(text: str, *, most: int, long_from: int, url: str = "") -> pages.TextBlock:
    """A text as a page shows it: cut when it is too long, folded when it is long."""
    shown = text[:most]
    is_cut = len(shown) < len(text)
    return pages.TextBlock(
        text=shown,
        size=len(text.encode("utf-8", "surrogatepass")),
        n_marks=count_marks(shown),
        is_cut=is_cut,
        full_url=url if is_cut else "",
        is_long=len(shown) > long_from,
    )


@dataclass(frozen=True, slots=True)
class SpokenVerdicts:
    """The verdicts on a criterion: those that say something on it as it stands, and the others."""

    speaking: tuple[SpokenVerdict, ...]
    silent: tuple[SpokenVerdict, ...]
    n_more: int  # verdicts that are not shown
    citations: tuple[tuple[int, str], ...]  # steps with who cites them


def cards_on(
    found: TrialStandings, criterion: str, requirement: Requirement
) -> tuple[list[VerdictCard], list[VerdictCard]]:
    """The verdicts on a criterion that speak, and those that are silent by now."""
    cards = [card for card in found.cards if card.given.criterion == criterion]
    speaking = [card for card in cards if speaks_on(card.given, requirement)]
    gone = corrected_ids([card.given for card in speaking]) | found.superseded
    speaking = [card for card in speaking if card.given.id not in gone]
    ids = {card.given.id for card in speaking}
    return speaking, [card for card in cards if card.given.id not in ids]


def spoken_verdicts(
    found: TrialStandings,
    criterion: str,
    requirement: Requirement,
    links: DisputeLinks,
    rows: VerdictRowMaker,
) -> SpokenVerdicts:
    """The verdicts on a criterion as cards, those that count first."""
    speaking, silent = cards_on(found, criterion, requirement)
    speaking.sort(key=lambda card: (not card.given.counts, card.given.grader, int(card.given.id)))
    shown = speaking[:MOST_VERDICTS]
    others = silent[: MOST_VERDICTS - len(shown)]
    return SpokenVerdicts(
        speaking=tuple(_spoken(card, links, rows, is_silent=False) for card in shown),
        silent=tuple(_spoken(card, links, rows, is_silent=True) for card in others),
        n_more=len(speaking) + len(silent) - len(shown) - len(others),
        citations=tuple(
            (step, f"{clean_text(card.by_name or card.given.grader)} ({card.given.value.value})")
            for card in speaking
            for step in card.given.cited_steps
        ),
    )


def _spoken(
    card: VerdictCard, links: DisputeLinks, rows: VerdictRowMaker, *, is_silent: bool
) -> SpokenVerdict:
    given = card.given
    return SpokenVerdict(
        row=rows.row(card),
        state=pages.Badge(given.value.value, VALUE_STATES[given.value]),
        cited=links.cited(given.cited_steps),
        answer=_answer(card),
        is_silent=is_silent,
        is_check=card.is_check,
    )


def _answer(card: VerdictCard) -> pages.TextBlock | None:
    """What a grader said beside its verdict, as it came."""
    if card.is_check or not card.extra:
        return None
    said = blobs.loads(card.extra)
    text = said if isinstance(said, str) else shown_json(said)
    return text_block(text, most=LONGEST_ANSWER, long_from=LONGEST_ANSWER)


def missing_words(citations: Sequence[tuple[int, str]], n_steps: int) -> str:
    """Cited steps that do not exist, named as such; "" when all exist."""
    missing: dict[int, list[str]] = {}
    for step, who in citations:
        if not 1 <= step <= n_steps:
            missing.setdefault(step, []).append(who)
    if not missing:
        return ""
    named = [
        f"step {step}, cited by {', '.join(dict.fromkeys(who))}"
        for step, who in sorted(missing.items())[:6]
    ]
    more = f", and {len(missing) - 6} more" if len(missing) > 6 else ""
    verb = "does" if len(missing) == 1 else "do"
    words = f"{'; '.join(named)}{more}: {verb} not exist"
    return words[0].upper() + words[1:]


def cited_words(citations: Sequence[tuple[int, str]], n_steps: int) -> str:
    """How many steps are cited: "2 cited steps of 18"."""
    n = len({step for step, _ in citations if 1 <= step <= n_steps})
    return f"{counted(n, 'cited step')} of {n_steps:,}" if n else f"{counted(n_steps, 'step')}"


def ruling_rows(
    rulings: Iterable[HeldRuling], requirement: Requirement, links: DisputeLinks
) -> tuple[HeldRulingRow, ...]:
    """The decisions on the criterion in the order they came."""
    listed = tuple(rulings)
    about = {each.uuid: each for each in rulings_about(listed, requirement)}
    return tuple(
        _ruling(about.get(each.uuid, each), links, is_elsewhere=each.uuid not in about)
        for each in listed
    )


def _ruling(held: HeldRuling, links: DisputeLinks, *, is_elsewhere: bool) -> HeldRulingRow:
    given = held.given
    notes = [
        *(["decided by a party"] if given.is_by_party else []),
        *(["the third blind label"] if held.is_label else []),
        *(["corrects the decision before it"] if given.replaces else []),
        *(["corrected by a later decision"] if held.is_replaced else []),
        *(["under another version of the criterion"] if is_elsewhere else []),
    ]
    return HeldRulingRow(
        ruling=pages.Badge(RULINGS[given.ruling], RULING_STATES[given.ruling]),
        by=held.by_name,
        at=held.at,
        reason=held.reason,
        cited=links.cited(held.cited_steps),
        notes=tuple(notes),
        is_replaced=held.is_replaced or is_elsewhere,
        is_elsewhere=is_elsewhere,
    )
