"""Pages of members, invitations, API keys and one's own account."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Crumb, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Link


@dataclass(frozen=True, slots=True)
class ShownOnce:
    """A secret that is shown on one page only."""

    heading: str
    sentence: str
    secret: str


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A member of the list."""

    name: str
    username: str
    role: str
    is_oneself: bool
    is_inactive: bool
    since: datetime
    by: str
    last_sign_in: datetime | None  # None too where the reader may not know it
    change_url: str  # "" where the reader may not, or nobody may
    remove_url: str
    why_not: str  # why there is no change, for owners


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change of somebody's role."""

    name: str
    words: str  # "reviewer, before: engineer"
    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class InvitationLine:
    """An invitation that was made."""

    note: str
    role: str
    by: str
    at: datetime
    state: Badge
    detail: str
    revoke_url: str  # "" where it is over


@dataclass(frozen=True, slots=True)
class PeopleForm:
    """A form of these pages."""

    heading: str
    sentence: str
    form: forms.Form
    action: str
    act: str
    cancel_url: str = ""
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MemberListPage:
    """The members of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    is_owner: bool
    fresh: ShownOnce | None
    form: PeopleForm | None  # changes a role, or removes somebody
    members: tuple[MemberLine, ...]
    pager: Pager
    invite: PeopleForm | None  # None where the reader may not invite
    invite_why_not: str
    invitations: tuple[InvitationLine, ...]
    changes: tuple[ChangeLine, ...]
    audit_url: str


@dataclass(frozen=True, slots=True)
class KeyLine:
    """An API key of the list."""

    name: str
    prefix: str  # "evs_1a2b…"
    holder: str
    scopes: str
    made_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    state: Badge
    revoke_url: str  # "" where it has ended
    why_not: str  # why the reader may not end it


@dataclass(frozen=True, slots=True)
class KeyListPage:
    """The API keys of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    fresh: ShownOnce | None
    keys: tuple[KeyLine, ...]
    pager: Pager
    new: PeopleForm | None
    new_why_not: str
    empty: Empty | None


@dataclass(frozen=True, slots=True)
class MembershipLine:
    """A system that one is a member of."""

    system: Link
    role: str
    since: datetime


@dataclass(frozen=True, slots=True)
class DeviceLine:
    """Where one is signed in."""

    words: str  # "Firefox on Linux"
    agent: str  # as the browser says it
    address: str
    since: datetime
    seen: datetime
    is_this: bool
    end_url: str


@dataclass(frozen=True, slots=True)
class AccountPage:
    """One's own account."""

    shell: Shell
    name: str
    username: str
    memberships: tuple[MembershipLine, ...]
    password: PeopleForm | None  # None for somebody without a password
    no_password: str  # how to get one
    devices: tuple[DeviceLine, ...]
    unlisted: str  # that this session began before devices were noted
    end_others_url: str


@dataclass(frozen=True, slots=True)
class InvitationPage:
    """An invitation that can be taken."""

    shell: Shell
    system: str
    role: str
    role_words: str
    by: str
    expires_at: datetime
    action: str
    person: str  # UUID of who is signed in
    signed_in_as: str  # "" where nobody is
    why_not: str
    form: forms.Form | None  # for somebody without an account
    sign_in_url: str
