"""Who may change members, invite people, and make and end API keys.

Each answer is "" or the sentence that says why not; page, command and service show the same one.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from traces.models import Member, Role, User

NOT_AN_OWNER = "Only an owner of this system invites people, changes roles and removes members."
OWN_ROLE = "Nobody changes their own role; another owner of this system does."
NOT_THEIR_KEY = "Only the engineer who holds this key and the owners of this system end it."


def owners_of(system_id: int) -> frozenset[int]:
    """The ids of the owners of a system who can still sign in."""
    return frozenset(
        Member.objects.filter(
            system=system_id, role=Role.OWNER.value, user__is_active=True
        ).values_list("user", flat=True)
    )


def owner_refusal(by: int | None, owners: AbstractSet[int]) -> str:
    """Why a person may not change who is a member; None stands for the operator, who may."""
    return "" if by is None or by in owners else NOT_AN_OWNER


def role_refusal(person: User, *, by: int | None, owners: AbstractSet[int]) -> str:
    """Why a member's role may not be changed by that person."""
    if refusal := owner_refusal(by, owners) or _last_owner_refusal(person, owners):
        return refusal
    return OWN_ROLE if by == person.pk else ""


def removal_refusal(person: User, *, by: int | None, owners: AbstractSet[int]) -> str:
    """Why a member may not be removed by that person. An owner may leave while another stays."""
    return owner_refusal(by, owners) or _last_owner_refusal(person, owners)


def key_refusal(holder: int, *, by: int, role: Role) -> str:
    """Why a member may not end a key."""
    return "" if by == holder or role is Role.OWNER else NOT_THEIR_KEY


def _last_owner_refusal(person: User, owners: AbstractSet[int]) -> str:
    if owners != {person.pk}:
        return ""
    return f"{person.printed_name} is the only owner of this system: make somebody else one first."
