"""Who may put families into splits, note exposures and make tasks.

Each answer is "" or the sentence that says why not; page, service and log show the same one.
"""

from __future__ import annotations

from traces.models import Member, Role, User

NOT_AN_ENGINEER = (
    "Only an engineer of this system makes tasks, puts families into splits and notes exposures."
)


def tasks_refusal(system_id: int, user: User) -> str:
    """Why a person may not change what tasks a system has and in which split; "" when they may."""
    is_engineer = Member.objects.filter(
        system=system_id, user=user, user__is_active=True, role=Role.ENGINEER.value
    ).exists()
    return "" if is_engineer else NOT_AN_ENGINEER
