"""Who may have stored trials graded again. Each answer is "" or the sentence that says why not.

The page's disabled button, the error of the service and the log show this same sentence.
"""

from __future__ import annotations

from collections.abc import Iterable

from reviews.models import Regrade
from reviews.permissions.flags import role_in
from traces.models import Role, System, User, WorkState

NOT_A_WORKER = "A viewer does not start, stop or restart a regrade."
NOTHING_TO_GRADE = "None of these tasks has a contract in effect: there is nothing to grade by."
_OPEN = (WorkState.WAITING.value, WorkState.WORKING.value)


def start_refusal(system: System, user: User) -> str:
    """Why a person may not have trials graded again under the contracts in effect."""
    role = role_in(system.pk, user)
    return NOT_A_WORKER if role is None or role is Role.VIEWER else ""


def busy_sentence(system: System, task_ids: Iterable[int]) -> str:
    """That a regrade of one of these tasks is under way already; "" where there is none."""
    busy = Regrade.objects.filter(
        system=system, proposal=None, state__in=_OPEN, tasks__overlap=list(task_ids)
    )
    found = busy.order_by("number").first()
    return f"Regrade {found.number} grades trials of these tasks already." if found else ""


def stop_refusal(regrade: Regrade, user: User) -> str:
    """Why a person may not stop a regrade."""
    if refusal := start_refusal(regrade.system, user):
        return refusal
    return "" if regrade.is_open else f"Nobody works on regrade {regrade.number}."


def restart_refusal(regrade: Regrade, user: User) -> str:
    """Why a person may not take up a stopped or failed regrade again."""
    return start_refusal(regrade.system, user) or unfit_to_restart(regrade)


def unfit_to_restart(regrade: Regrade) -> str:
    """Why a regrade cannot be taken up again, whoever asks."""
    if regrade.state in (WorkState.CANCELLED.value, WorkState.FAILED.value):
        return ""
    return f"Regrade {regrade.number} has not stopped."
