"""The audit log: its list, and one event with its place in the chain."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evalsite.common.shell import Crumb, Option, Pager, Shell
from traces.web.pages.parts import Empty, Fact, Link


@dataclass(frozen=True, slots=True)
class AuditChange:
    """A value before and after; `has_before` and `has_after` tell none from no value."""

    name: str
    before: str
    after: str
    has_before: bool
    has_after: bool


@dataclass(frozen=True, slots=True)
class AuditLine:
    """An event of the list."""

    seq: int
    href: str
    at: datetime
    who: str
    role: str
    did: str
    kind: str
    object: Link
    changes: tuple[AuditChange, ...]
    n_more_changes: int
    reason: str
    is_cut: bool
    hidden: str  # why the change and the reason are not shown; "" where they are
    source: str
    key_name: str
    request_id: str


@dataclass(frozen=True, slots=True)
class AuditFilterForm:
    """What the list can be narrowed to."""

    action: str
    acts: tuple[Option, ...]
    people: tuple[Option, ...]
    sources: tuple[Option, ...]
    since: str
    until: str
    kind: str  # of one object; "" where the list is of all
    object_id: str
    clear_url: str


@dataclass(frozen=True, slots=True)
class AuditListPage:
    """The log of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sub: str
    filter: AuditFilterForm
    rows: tuple[AuditLine, ...]
    pager: Pager
    empty: Empty | None
    csv_url: str
    json_url: str
    all_url: str  # of the whole log, where this one is of an object


@dataclass(frozen=True, slots=True)
class AuditEventPage:
    """One event."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    line: AuditLine
    facts: tuple[Fact, ...]
    rows: tuple[Fact, ...]  # written by the act, by their digest
    chain: tuple[Fact, ...]
    previous_url: str
    next_url: str
    history_url: str  # all events of the object
