"""Cases in words: next actions, reasons, ages and dates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from evalsite.common.formatting import relative_text
from reviews.core.disposition import NextAction, Ruling, Standing
from traces.core.text_marks import clean_text
from traces.web.pages.cases import CaseDue, NextStep

THE_FIXTURE = "the fixture"
_LONG_DATE = 300  # days from which a date needs its year


@dataclass(frozen=True, slots=True)
class ActionWords:
    """What a next action asks for, and how it is done."""

    name: str
    todo: str  # behind the name in the queue, where no requirement is named
    sentence: str


ACTIONS = {
    NextAction.REPAIR_EVIDENCE: ActionWords(
        "Repair evidence",
        "add what the trial did not record",
        "Add what the trial did not record, with its source. The trial itself never changes.",
    ),
    NextAction.FIX_FIXTURE: ActionWords(
        "Fix fixture",
        "mend the check or how the trial starts",
        "Mend the check or the starting state in the contract, or withdraw the mark that is wrong.",
    ),
    NextAction.CLARIFY_CONTRACT: ActionWords(
        "Clarify contract",
        "say what the task requires",
        "Say in the contract what the task requires, so that this trial can be decided.",
    ),
    NextAction.RERUN_JUDGE: ActionWords(
        "Rerun judge",
        "a grader ended in an error",
        "A grader ended in an error. Judges are run where they live; upload the new verdict.",
    ),
    NextAction.RERUN_TRIAL: ActionWords(
        "Rerun trial",
        "the harness broke",
        "The harness broke, so the trial says nothing about the agent. Ask for a further attempt; "
        "a harness fetches what is asked for and uploads it.",
    ),
    NextAction.GRADE: ActionWords(
        "Grade",
        "give a verdict",
        "Give a verdict on what no counting grader has decided.",
    ),
    NextAction.ADJUDICATE: ActionWords(
        "Adjudicate",
        "the graders disagree",
        "The graders disagree. All verdicts are on the trial's page; the decision on them is a "
        "reviewer's.",
    ),
    NextAction.CALIBRATE_JUDGE: ActionWords(
        "Calibrate judge",
        "only judges that are not calibrated voted",
        "Only judges that are not calibrated for it gave a verdict. A reviewer's own verdict "
        "settles the trial as well.",
    ),
}

_SHORT = {
    (1, NextAction.FIX_FIXTURE): "marked defective",
    (1, NextAction.CLARIFY_CONTRACT): "marked ambiguous",
    (2, NextAction.REPAIR_EVIDENCE): "code verdict missing",
    (3, NextAction.REPAIR_EVIDENCE): "evidence missing",
    (3, NextAction.CLARIFY_CONTRACT): "check ended in an error",
    (3, NextAction.GRADE): "a named grader has not voted",
    (3, NextAction.ADJUDICATE): "code passes, another fails",
    (4, NextAction.REPAIR_EVIDENCE): "evidence insufficient",
    (4, NextAction.CLARIFY_CONTRACT): "found unclear",
    (4, NextAction.ADJUDICATE): "adjudications part",
    (5, NextAction.ADJUDICATE): "graders disagree",
    (5, NextAction.RERUN_JUDGE): "judge ended in an error",
    (5, NextAction.REPAIR_EVIDENCE): "graders cannot tell",
    (6, NextAction.CALIBRATE_JUDGE): "judge not calibrated",
    (6, NextAction.GRADE): "not graded",
    (7, NextAction.GRADE): "a named grader has not voted",
}
_BY_ACTION = {
    NextAction.REPAIR_EVIDENCE: "evidence missing",
    NextAction.FIX_FIXTURE: "check or fixture defective",
    NextAction.CLARIFY_CONTRACT: "contract unclear",
    NextAction.RERUN_JUDGE: "judge ended in an error",
    NextAction.RERUN_TRIAL: "harness broke",
    NextAction.GRADE: "not graded",
    NextAction.ADJUDICATE: "graders disagree",
    NextAction.CALIBRATE_JUDGE: "judge not calibrated",
}
_FAULTY_START = "does not start as its task says"


def short_reason(ruling: Ruling) -> str:
    """Why a requirement is open, in a few words: the short form of the ruling's sentence."""
    action = ruling.action
    assert action is not None
    if ruling.rule == 1 and "start" in ruling.sentence:
        return _FAULTY_START
    return _SHORT.get((ruling.rule, action), _BY_ACTION[action])


def short_action(action: NextAction) -> str:
    """Why a trial waits, in a few words, where no requirement says more."""
    return _BY_ACTION[action]


def next_steps(
    actions: tuple[NextAction, ...],
    standings: tuple[Standing, ...],
    *,
    missing: tuple[str, ...] = (),
) -> tuple[NextStep, ...]:
    """The next actions as the queue shows them, each with the requirements that it is about.

    `missing` is the evidence that the contract declares and the trial lacks.
    """
    return tuple(
        NextStep(ACTIONS[action].name, _todo(action, about_of(action, standings), missing))
        for action in actions
    )


def _todo(action: NextAction, about: tuple[str, ...], missing: tuple[str, ...]) -> str:
    if action is NextAction.REPAIR_EVIDENCE and missing:
        return f"add {', '.join(missing)}"
    return ", ".join(about) or ACTIONS[action].todo


def about_of(action: NextAction, standings: tuple[Standing, ...]) -> tuple[str, ...]:
    """The mandatory requirements that an action would settle."""
    return tuple(
        clean_text(s.requirement.criterion)
        for s in standings
        if s.requirement.mandatory and s.action is action
    )


def age_text(at: datetime, now: datetime) -> str:
    """How old something is: "2 h", "1 d", "now"; from 30 days on the date."""
    words = relative_text(at, now=now)
    return "now" if words == "just now" else words.removesuffix(" ago")


def due_of(day: date | None, today: date, *, is_waiting: bool = True) -> CaseDue | None:
    """A due date in words."""
    if day is None:
        return None
    is_overdue = is_waiting and day < today
    return CaseDue(day, "overdue" if is_overdue else day_text(day, today), is_overdue)


def day_text(day: date, today: date) -> str:
    """A day as people say it: "today", "tomorrow", "12 Dec", "12 Dec 2027"."""
    if day == today:
        return "today"
    if day == today + timedelta(days=1):
        return "tomorrow"
    is_far = abs((day - today).days) > _LONG_DATE
    return f"{day.day} {day:%b %Y}" if is_far else f"{day.day} {day:%b}"


def after_words(detail: dict[str, Any]) -> str:
    """The last thing that came before a case closed or opened by itself; "" when nothing did."""
    after = detail.get("after")
    if not isinstance(after, dict):
        return ""
    criterion = str(after.get("criterion") or THE_FIXTURE)
    match after.get("kind"):
        case "verdict":
            return f"{after.get('grader')} said {after.get('value')} on {criterion}"
        case "evidence":
            parts = ", ".join(str(part).replace("_", " ") for part in after.get("parts") or [])
            return f"evidence was added: {parts}"
        case "adjudication":
            ruling = str(after.get("ruling")).replace("_", " ")
            party = ", as a party" if after.get("is_by_party") else ""
            return f"{after.get('by')} decided the dispute on {criterion}: {ruling}{party}"
        case "mark":
            return f"{criterion} was marked {after.get('mark')}"
        case "withdrawal":
            return f"the mark on {criterion} was withdrawn"
        case "contract":
            return f"contract version {after.get('number')} took effect"
        case _:
            return ""


def today_of(now: datetime) -> date:
    """The day that due dates are held against."""
    return now.astimezone(UTC).date()
