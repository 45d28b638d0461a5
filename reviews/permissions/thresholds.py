"""Who may set risk tiers and thresholds. The answer is "" or the sentence that says why not."""

from __future__ import annotations

from traces.models import Role

NOT_AN_OWNER = (
    "Only an owner of this system sets risk tiers and thresholds: who builds an agent, or reviews "
    "it, does not set the bar that it has to reach."
)


def thresholds_refusal(role: Role | None) -> str:
    """Why somebody of that role may not set risk tiers and thresholds; "" when they may."""
    return "" if role is Role.OWNER else NOT_AN_OWNER
