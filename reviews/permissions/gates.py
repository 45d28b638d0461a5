"""What owners may do about a gate. The answer is "" or the sentence that says why not."""

from __future__ import annotations

from datetime import datetime

from evalsite.common.formatting import time_text
from reviews.models import RunExclusion
from traces.models import Role, User

NOT_AN_OWNER = "Only an owner of this system decides what its gates count and apply."
LEFT_OUT = "This run is left out already."
NOT_LEFT_OUT = "This run counts: nothing has to be taken in again."
ONE_OWNER = "You left this run out yourself: another owner confirms it."
NOTHING_BEGUN = (
    "No run of this release counts yet: what is in force when its first one begins will apply."
)


def gate_refusal(role: Role | None) -> str:
    """Why somebody of that role may not decide what gates count; "" when they may."""
    return "" if role is Role.OWNER else NOT_AN_OWNER


def leave_out_refusal(role: Role | None, standing: RunExclusion | None) -> str:
    """Why a run may not be left out; `standing` is what leaves it out already."""
    return gate_refusal(role) or (LEFT_OUT if standing is not None else "")


def confirm_refusal(role: Role | None, user: User, standing: RunExclusion | None) -> str:
    """Why somebody may not confirm that a run was left out; "" when they may."""
    if refusal := gate_refusal(role):
        return refusal
    if standing is None:
        return "This run is not left out: nothing has to be confirmed."
    if (confirmation := getattr(standing, "confirmation", None)) is not None:
        return f"{confirmation.by.printed_name} confirmed it at {_at(confirmation.confirmed_at)}."
    return ONE_OWNER if standing.by_id == user.pk else ""


def take_in_refusal(role: Role | None, standing: RunExclusion | None) -> str:
    """Why a run may not be taken in again; "" when it may."""
    return gate_refusal(role) or (NOT_LEFT_OUT if standing is None else "")


def reevaluate_refusal(role: Role | None, *, has_begun: bool) -> str:
    """Why somebody may not re-evaluate a gate; "" when they may."""
    return gate_refusal(role) or ("" if has_begun else NOTHING_BEGUN)


def _at(at: datetime) -> str:
    return time_text(at)
