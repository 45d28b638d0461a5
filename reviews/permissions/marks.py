"""Who may mark a check, rubric or fixture that is at fault. Each answer is "" or why not."""

from __future__ import annotations

from traces.models import Role

NOT_A_REVIEWER = "Only a reviewer of this system marks checks, rubrics and fixtures."
WROTE_IT = (
    "You proposed a contract version that holds this; a reviewer who did not write it marks it."
)


def marking_refusal(role: Role | None, *, has_written: bool = False) -> str:
    """Why somebody of that role may not mark something; "" when they may.

    `has_written`: they proposed a contract version that holds it as it stands.
    """
    if role is not Role.REVIEWER:
        return NOT_A_REVIEWER
    return WROTE_IT if has_written else ""


def mark_withdrawal_refusal(role: Role | None, *, is_own: bool, has_written: bool) -> str:
    """Why somebody of that role may not withdraw a mark; "" when they may.

    `is_own`: they made it themselves.
    """
    return marking_refusal(role, has_written=has_written and not is_own)
