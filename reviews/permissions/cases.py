"""Who may work on a case, and which acts it takes now. Each answer is "" or why not.

The page's disabled button, the error of the service and the API show this same sentence.
"""

from __future__ import annotations

from collections.abc import Iterable

from reviews.core.disposition import NextAction
from reviews.models import CaseState
from traces.models import Role

NOT_A_MEMBER = "Only a member of this system works on its cases."
NOT_A_WORKER = "A viewer does not work on cases; comment on one instead."
CASE_CLOSED = "The case is closed: nothing of it waits."
CASE_ASIDE = "The case is set aside; take it up again first."
CASE_OPEN = "The case is open already."
NOT_ASIDE = "The case closed by itself; it opens by itself when its trial is not decided any more."
NO_RERUN = (
    "A further attempt is taken only where the harness broke. This trial ended; "
    "declare another run instead."
)
_ROLES = {"engineer": "an engineer", "reviewer": "a reviewer", "owner": "an owner"}


def working_refusal(role: Role | None) -> str:
    """Why somebody of that role may not assign cases, date them, set them aside or ask for reruns."""
    if role is None:
        return NOT_A_MEMBER
    return NOT_A_WORKER if role is Role.VIEWER else ""


def commenting_refusal(role: Role | None) -> str:
    """Why somebody of that role may not comment on a case."""
    return "" if role else "Only a member of this system comments on its cases."


def open_refusal(state: CaseState) -> str:
    """Why a case in that state takes no assignee, no date and no request; "" while it is open."""
    match state:
        case CaseState.OPEN:
            return ""
        case CaseState.SET_ASIDE:
            return CASE_ASIDE
        case CaseState.CLOSED:
            return CASE_CLOSED


def taking_up_refusal(state: CaseState) -> str:
    """Why a case in that state is not taken up again; "" when it is set aside."""
    match state:
        case CaseState.OPEN:
            return CASE_OPEN
        case CaseState.SET_ASIDE:
            return ""
        case CaseState.CLOSED:
            return NOT_ASIDE


def rerun_refusal(next_actions: Iterable[str]) -> str:
    """Why a rerun of the trial settles nothing; "" where it is one of the next actions."""
    return "" if NextAction.RERUN_TRIAL.value in next_actions else NO_RERUN


def workers_of(next_actions: Iterable[str]) -> tuple[str, ...]:
    """The roles that work the next actions, that of the first one first, each once."""
    roles = (NextAction(action).worked_by.value for action in next_actions)
    return tuple(dict.fromkeys(roles))


def assignee_refusal(role: Role | None, name: str, next_actions: Iterable[str]) -> str:
    """Why a case is not assigned to a person of that role; "" when they work one of its actions."""
    workers = workers_of(next_actions)
    if role is None:
        return f"{name} is no member of this system."
    if role.value in workers:
        return ""
    words = " or ".join(_ROLES[worker] for worker in workers)
    return f"{name} is {_ROLES.get(role.value, 'a viewer')} here; {words} works this case."
