"""Families of tasks with their splits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Link
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class SplitNote:
    """A change of split or an exposure, in words."""

    words: str  # "moved", "2 exposures"
    reason: str
    by: str
    at: datetime
    trial: Link | None = None


@dataclass(frozen=True, slots=True)
class FamilyLine:
    """A family, or a task without one, in the list."""

    name: Link
    splits: tuple[Badge, ...]
    is_apart: bool  # its tasks are in several splits
    n_tasks: int
    n_trials: int
    change: SplitNote | None
    exposure: SplitNote | None
    change_url: str  # "" where the person may not
    expose_url: str


@dataclass(frozen=True, slots=True)
class OfferLine:
    """What could go into the regression split, with its evidence."""

    name: Link
    splits: tuple[Badge, ...]
    words: str  # "2 tasks, 12 trials, at least 3 a task and release"
    evidence: tuple[Link, ...]  # one a release
    change_url: str


@dataclass(frozen=True, slots=True)
class FamilyForm:
    """The form above the list: a change of split, or an exposure."""

    heading: str
    sentence: str
    form: forms.Form
    action: str
    hidden: tuple[Hidden, ...]
    act: str
    cancel_url: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class FamilyListPage:
    """The families of a system, or its tasks without one."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    shown: tuple[Choice, ...]
    lone: bool
    form: FamilyForm | None
    offers_words: str
    offers: tuple[OfferLine, ...]
    offers_more: str  # "and 3 more"
    rows: tuple[FamilyLine, ...]
    pager: Pager
    empty: Empty | None = None
