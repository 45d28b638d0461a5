"""Who may add evidence to a stored trial. Each answer is "" or why not."""

from __future__ import annotations

from traces.models import Role

NOT_AN_ENGINEER = (
    "Only an engineer of this system adds evidence: whoever adds it counts as its uploader."
)


def addition_refusal(role: Role | None) -> str:
    """Why somebody of that role may not add evidence to a trial; "" when they may."""
    return "" if role is Role.ENGINEER else NOT_AN_ENGINEER
