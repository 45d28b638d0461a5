"""Who may flag a trial and who may close a flag."""

from __future__ import annotations

from traces.models import Member, Role, User


def role_in(system_id: int, user: User) -> Role | None:
    """The role that a person has in a system now; None without one."""
    role = (
        Member.objects.filter(system=system_id, user=user, user__is_active=True)
        .values_list("role", flat=True)
        .first()
    )
    return None if role is None else Role(role)


def flagging_refusal(role: Role | None) -> str:
    """Why somebody of that role may not flag a trial of the system; "" when they may."""
    return "" if role else "Only a member of this system flags its trials."


def closing_refusal(role: Role | None, *, is_own: bool) -> str:
    """Why somebody of that role may not close a flag; "" when they may.

    `is_own`: they raised it themselves, and closing withdraws it.
    """
    if role is None:
        return "Only a member of this system closes its flags."
    if is_own or role is Role.REVIEWER:
        return ""
    return (
        "A flag asks for a second look by somebody who did not build the release: a reviewer "
        "of this system closes it. Whoever raised it may withdraw it."
    )
