"""The members of a system, how they became it, its invitations and its API keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from django.db.models import Model, QuerySet

from traces.models import ApiKey, Invitation, Member, MemberChange, User

PAGE_MEMBERS: Final = 100
PAGE_KEYS: Final = 100
MOST_CHANGES: Final = 50  # shown of the newest; the audit log has all
MOST_INVITATIONS: Final = 50


T = TypeVar("T")
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class RowPage(Generic[T]):
    """One page of rows in order of their ids, with the places of its neighbours."""

    rows: tuple[T, ...]
    next_after: int | None
    previous_before: int | None


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member, and who gave them their role; `by` None: the operator."""

    member: Member
    by: User | None


def members_page(
    system_id: int, *, after: int | None, before: int | None, n: int = PAGE_MEMBERS
) -> RowPage[MemberRow]:
    """The members of a system, the first one first. Two queries."""
    rows = Member.objects.filter(system=system_id).select_related("user")
    page = _page(rows, after=after, before=before, n=n)
    newest = (
        MemberChange.objects.filter(system=system_id, user__in=[row.user_id for row in page.rows])
        .select_related("by")
        .order_by("user", "-pk")
        .distinct("user")
    )
    givers = {change.user_id: change.by for change in newest}
    return RowPage(
        tuple(MemberRow(row, givers.get(row.user_id)) for row in page.rows),
        page.next_after,
        page.previous_before,
    )


def newest_changes(system_id: int, n: int = MOST_CHANGES) -> list[MemberChange]:
    """The newest changes of role, the newest first. One query."""
    rows = MemberChange.objects.filter(system=system_id).select_related("user", "by")
    return list(rows.order_by("-pk")[:n])


def newest_invitations(system_id: int, n: int = MOST_INVITATIONS) -> list[Invitation]:
    """The newest invitations, the newest first. One query."""
    rows = Invitation.objects.filter(system=system_id).select_related("made_by", "taken_by")
    return list(rows.order_by("-pk")[:n])


def keys_page(
    system_id: int,
    *,
    of: int | None,
    after: int | None,
    before: int | None,
    n: int = PAGE_KEYS,
) -> RowPage[ApiKey]:
    """The API keys of a system, or those of one person, the newest first. One query."""
    rows = ApiKey.objects.filter(system=system_id).select_related("user")
    if of is not None:
        rows = rows.filter(user=of)
    return _page(rows, after=after, before=before, n=n, newest_first=True)


def _page(
    rows: QuerySet[Row],
    *,
    after: int | None,
    before: int | None,
    n: int,
    newest_first: bool = False,
) -> RowPage[Row]:
    """The page behind a place, or before one."""
    backwards = before is not None
    place, descends = (before if backwards else after), newest_first != backwards
    if place is not None:
        rows = rows.filter(pk__lt=place) if descends else rows.filter(pk__gt=place)
    found = list(rows.order_by("-pk" if descends else "pk")[: n + 1])
    kept = found[:n]
    is_cut = len(found) > n
    if backwards:
        kept.reverse()
    has_next, has_previous = (
        (bool(kept), is_cut) if backwards else (is_cut, bool(kept) and place is not None)
    )
    return RowPage(
        tuple(kept),
        next_after=kept[-1].pk if has_next else None,
        previous_before=kept[0].pk if has_previous else None,
    )
