"""Who may vouch for verdicts that people gave outside. The answer is "" or why not."""

from __future__ import annotations

from traces.models import Role

NOT_A_REVIEWER = "Only a reviewer of this system vouches for imported verdicts."
BROUGHT_IT = (
    "You uploaded these verdicts, or evidence of their trials' releases; a reviewer who did "
    "neither vouches for them."
)


def vouching_refusal(role: Role | None, *, has_brought: bool) -> str:
    """Why somebody of that role may not vouch; "" when they may.

    `has_brought`: they brought the verdicts, or evidence of the releases that they are about.
    """
    if role is not Role.REVIEWER:
        return NOT_A_REVIEWER
    return BROUGHT_IT if has_brought else ""
