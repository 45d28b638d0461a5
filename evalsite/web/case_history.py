"""The history of a case in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from evalsite.web.case_words import THE_FIXTURE, after_words, day_text
from reviews.models import CaseEventKind
from reviews.selectors.blinding import HIDDEN
from reviews.selectors.case_history import HistoryEvent
from reviews.selectors.cases import ListedCase
from traces.web.pages.cases import CaseMoment

_TELLING = frozenset({CaseEventKind.VERDICT, CaseEventKind.ADJUDICATED})
_TOLD_DETAILS = frozenset({"criterion", "opened_at"})
_DECIDING = frozenset({CaseEventKind.OPENED, CaseEventKind.CLOSED})


@dataclass(frozen=True, slots=True)
class HiddenFromPerson:
    """What a page keeps from a person who may be asked for a blind label."""

    criteria: frozenset[str] = frozenset()
    is_decision: bool = False  # what the trial comes to would tell of them


def told_events(
    events: Sequence[HistoryEvent], hidden: HiddenFromPerson
) -> tuple[HistoryEvent, ...]:
    """The events with nothing in them of what is hidden."""
    return tuple(_told(event, hidden) for event in events)


def _told(event: HistoryEvent, hidden: HiddenFromPerson) -> HistoryEvent:
    is_hidden = (event.kind in _TELLING and event.detail.get("criterion") in hidden.criteria) or (
        event.kind in _DECIDING and hidden.is_decision
    )
    if not is_hidden:
        return event
    kept = {name: each for name, each in event.detail.items() if name in _TOLD_DETAILS}
    return replace(event, text=HIDDEN, detail=kept)


def moments_of(
    case: ListedCase, events: Sequence[HistoryEvent], *, today: date
) -> tuple[CaseMoment, ...]:
    """What happened to a case, the earliest first; it begins where the case first opened."""
    first = CaseMoment("The case opened", "", _first_opening(case, events), kind="opened")
    return (first, *(_moment(event, today) for event in events))


def _first_opening(case: ListedCase, events: Sequence[HistoryEvent]) -> datetime:
    """The row says when the case opened last; what closed it keeps when it opened before."""
    stored = next((e.detail["opened_at"] for e in events if "opened_at" in e.detail), None)
    return datetime.fromisoformat(stored) if isinstance(stored, str) else case.opened_at


def _moment(event: HistoryEvent, today: date) -> CaseMoment:
    what, text = _words(event, today)
    return CaseMoment(
        what=what,
        by=event.by_name,
        at=event.at,
        text=text,
        after=after_words(event.detail),
        kind=event.kind.value,
    )


def _words(event: HistoryEvent, today: date) -> tuple[str, str]:
    """What happened, and what a person wrote about it."""
    match event.kind:
        case CaseEventKind.OPENED:
            return f"The case opened again. {event.text}", ""
        case CaseEventKind.CLOSED:
            return f"The case closed by itself. {event.text}", ""
        case CaseEventKind.SET_ASIDE:
            return "set the case aside", event.text
        case CaseEventKind.TAKEN_UP:
            return "took the case up again", event.text
        case CaseEventKind.ASSIGNED:
            return _assigned(event), ""
        case CaseEventKind.DUE:
            return _due(event.text, today), ""
        case CaseEventKind.COMMENT:
            return "commented", event.text
        case CaseEventKind.RERUN_ASKED:
            return "asked for a rerun", event.text
        case CaseEventKind.EVIDENCE:
            return f"added evidence{_parts(event)}", event.text
        case CaseEventKind.MARKED:
            return _marked(event), event.text
        case CaseEventKind.VERDICT:
            return _verdict(event)
        case CaseEventKind.ADJUDICATED:
            return _adjudicated(event), event.text


def _assigned(event: HistoryEvent) -> str:
    if not event.text:
        return "took the assignment away"
    return "took the case" if event.text == event.by_name else f"assigned the case to {event.text}"


def _due(text: str, today: date) -> str:
    if not text:
        return "took the due date away"
    return f"set the due date: {day_text(date.fromisoformat(text), today)}"


def _marked(event: HistoryEvent) -> str:
    criterion, mark = event.detail.get("criterion"), event.detail.get("mark")
    named = criterion or THE_FIXTURE
    if event.detail.get("is_held", True):
        return f"marked {named} as {mark}"
    return f"withdrew the mark on {named}"


def _verdict(event: HistoryEvent) -> tuple[str, str]:
    """What was said of which criterion, and why; the text begins with what its detail says."""
    if "value" not in event.detail and "criterion" in event.detail:
        return f"gave a verdict on {event.detail.get('criterion')}", event.text
    said = f"{event.detail.get('value')} on {event.detail.get('criterion')}"
    for word, what in (("gave", "said"), ("corrected", "corrected the verdict:")):
        begin = f"{word} {said}: "
        if event.text.startswith(begin):
            return f"{what} {said}", event.text.removeprefix(begin)
    return "gave a verdict", event.text


def _adjudicated(event: HistoryEvent) -> str:
    """What a reviewer decided on a dispute; its detail holds criterion and ruling."""
    if "ruling" not in event.detail:
        return f"decided the dispute on {event.detail.get('criterion')}"
    ruling = str(event.detail.get("ruling", "")).replace("_", " ")
    what = "decided again" if event.detail.get("is_correction") else "decided the dispute"
    return f"{what} on {event.detail.get('criterion')}: {ruling}"


def _parts(event: HistoryEvent) -> str:
    parts = event.detail.get("parts")
    if not isinstance(parts, list):
        return ""
    return f" ({', '.join(str(part).replace('_', ' ') for part in parts)})"
