"""The page of imported human verdicts that wait for a reviewer's word."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evalsite.common.shell import Crumb, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Link


@dataclass(frozen=True, slots=True)
class VouchLine:
    """The verdicts of one person on one criterion in one upload."""

    key: str
    grader: str
    criterion: str
    upload: Link
    uploaded: str  # "by engineer"
    at: datetime
    counts: str  # "41 verdicts on 41 trials: 36 pass, 5 fail"
    state: Badge
    note: str  # who vouched, when all or some are vouched for
    href: str  # to the single verdicts
    is_chosen: bool
    is_waiting: bool


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """One verdict of the chosen group."""

    trial: Link
    release: str
    value: Badge
    raw_word: str
    rationale: str
    is_cut: bool
    vouched: str  # "" while nobody did
    at: datetime | None


@dataclass(frozen=True, slots=True)
class VouchForm:
    """The form that vouches for the chosen group."""

    action: str
    key: str
    trial: str
    heading: str
    reason: str
    error: str
    why_not: str


@dataclass(frozen=True, slots=True)
class VouchPage:
    """Imported human verdicts by person, criterion and upload."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    trial: Link | None  # only its verdicts
    rows: tuple[VouchLine, ...]
    is_cut: bool
    form: VouchForm | None
    verdicts: tuple[ImportedLine, ...]
    pager: Pager
    empty: Empty | None
