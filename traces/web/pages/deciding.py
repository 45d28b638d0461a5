"""The bar by which a person decides something on the evidence: a dispute, or a blind label."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class DecisionChoice:
    """One thing that can be decided, with its key."""

    value: str
    label: str
    key: str  # a digit; keys.js clicks the label
    is_chosen: bool = False
    why_not: str = ""  # the sentence why this person may not decide so
    help: str = ""


@dataclass(frozen=True, slots=True)
class HeldDecision:
    """Something submitted that can be taken back until a moment."""

    words: str  # "fail on truthful, trial 7"
    undo_url: str  # takes a POST
    until: datetime
    seconds_left: int  # when the page was made
    href: str = ""  # where it was decided


@dataclass(frozen=True, slots=True)
class DecisionBar:
    """Choices, reason, cited steps and the acts of a deciding page."""

    action: str  # takes the POST that decides
    draft_url: str  # takes a POST that keeps what is written; "" keeps nothing
    choices: tuple[DecisionChoice, ...]
    legend: str  # "What does it come to?"
    act: str  # "Decide"
    reason: str = ""
    reason_hint: str = "Why, in a sentence. Required."
    steps: str = ""  # "2, 5"
    n_steps: int = 0  # of the transcript
    seen: str = ""  # what the person has before them, sent back
    hidden: tuple[Hidden, ...] = ()
    errors: tuple[str, ...] = ()  # of what was sent: 422 or 409
    why_not: str = ""  # why this person decides nothing here
    saved: str = ""  # "Draft kept, 12:03 UTC"
    effect_url: str = ""  # answers with what a choice would do; "" has none
    skip_url: str = ""  # takes a POST with a reason
    skip_label: str = "Skip"
    next_url: str = ""  # of the item that comes after; sent back, so that the person goes there
