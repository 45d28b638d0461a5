"""Who may have a judge asked from here. Each answer is "" or the sentence that says why not."""

from __future__ import annotations

from reviews.models import JudgeRun
from reviews.permissions.flags import role_in
from traces.models import Role, System, User, WorkState

NOT_ONE_TO_ASK = "Only an engineer or a reviewer of this system runs judges."


def start_refusal(system: System, user: User) -> str:
    """Why a person may not have a judge asked; "" when they may."""
    return "" if role_in(system.pk, user) in (Role.ENGINEER, Role.REVIEWER) else NOT_ONE_TO_ASK


def stop_refusal(run: JudgeRun, user: User) -> str:
    """Why a person may not stop a judge run."""
    if refusal := start_refusal(run.system, user):
        return refusal
    return "" if run.is_open else f"Nobody works on judge run {run.number}."


def restart_refusal(run: JudgeRun, user: User) -> str:
    """Why a person may not take up a stopped or failed judge run again."""
    return start_refusal(run.system, user) or unfit_to_restart(run)


def unfit_to_restart(run: JudgeRun) -> str:
    """Why a judge run cannot be taken up again, whoever asks."""
    if run.state in (WorkState.CANCELLED.value, WorkState.FAILED.value):
        return ""
    return f"Judge run {run.number} has not stopped."
