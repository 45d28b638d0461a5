"""Flags: the list, one flag, and the form that raises one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Link
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class FlagNote:
    """A flag wherever it is shown."""

    why: str  # "A verdict cites a step that does not exist"
    reason: str  # text of a person, or of the product with text from the trace
    href: str
    by: str  # a person, or "the product"
    at: datetime
    criterion: str = ""
    level: str = "warning"  # info | warning
    closed_by: str = ""  # "" while it is open
    closed_at: datetime | None = None
    closing_reason: str = ""


@dataclass(frozen=True, slots=True)
class FlagRow:
    """A flag in the list, with its trial."""

    note: FlagNote
    trial: Link
    task: Link
    release: Link
    disposition: Badge
    detail: str = ""  # "an earlier attempt: a later one stands"


@dataclass(frozen=True, slots=True)
class FlagListPage:
    """The flags of a system, newest first, with a filter form."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    states: tuple[Choice, ...]  # open, closed, all; with counts
    action: str  # of the filter form
    hidden: tuple[Hidden, ...]
    reasons: tuple[Option, ...]
    releases: tuple[Option, ...]
    passing_only: bool
    task: Link | None  # set while only the flags of one task are listed
    trial: Link | None  # set while only those of one trial are
    clear_url: str  # set while a filter is on
    rows: tuple[FlagRow, ...]
    pager: Pager
    vouching_url: str  # where imported verdicts of people wait
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class ShortVerdict:
    """A verdict on the flagged trial, in one line."""

    criterion: str
    value: str  # pass | fail | unresolved | harness-error
    word: str
    grader: str
    note: str = ""  # "not mandatory", "does not count"
    rationale: str = ""  # its beginning, where the flag is about this criterion


@dataclass(frozen=True, slots=True)
class OtherFlag:
    """Another open flag of the trial, to be closed with the same reason."""

    value: str  # of its box
    why: str
    reason: str  # its beginning
    by: str  # a person, or "the product"
    href: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class FlagPage:
    """One flag, with what helps to judge it."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    row: FlagRow
    steps: tuple[Link, ...]
    missing_steps: tuple[int, ...]  # cited, and not in the transcript
    verdicts: tuple[ShortVerdict, ...]  # those that the flag is about come first
    n_more_verdicts: int
    form: forms.Form
    action: str  # takes the closing
    act: str  # "Close the flag", "Withdraw the flag"
    why_not: str  # why this person may not close it; "" when they may
    others: tuple[OtherFlag, ...] = ()  # those that this person may close as well
    more_others: Link | None = None  # "3 more open flags": too many to list them all
    next_url: str = ""  # the next older open flag
    vouching_url: str = ""  # set where a reviewer's word settles it


@dataclass(frozen=True, slots=True)
class FlagFormPage:
    """The form that flags a trial."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    trial: Link
    disposition: Badge
    form: forms.Form
    action: str
    flags: tuple[FlagNote, ...]  # open ones that the trial has
