"""Who may make probes. The answer is "" or the sentence that says why not."""

from __future__ import annotations

from traces.models import Role

NOT_A_MAKER = (
    "Only an engineer or a reviewer of this system makes probes, runs judges and brings labels in."
)


def probe_refusal(role: Role | None) -> str:
    """Why somebody of that role may not make probes; "" when they may."""
    return "" if role in (Role.ENGINEER, Role.REVIEWER) else NOT_A_MAKER
