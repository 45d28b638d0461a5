"""Regrades: stored trials graded again, and what that changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Pager, Shell
from traces.web.pages.contracts import ContractEffect
from traces.web.pages.parts import Badge, Empty, Fact, Link
from traces.web.pages.rules import Work


@dataclass(frozen=True, slots=True)
class RegradeLine:
    """A regrade in a list."""

    label: str
    href: str
    badge: Badge
    tasks: str  # "t1, t2 and 3 more tasks"
    why: str
    by: str
    at: datetime
    proposal: Link | None
    change: str  # "12 of 40 trials came out otherwise"; "" while nothing is known


@dataclass(frozen=True, slots=True)
class RegradeListPage:
    """The regrades of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    tabs: tuple[Choice, ...]
    rows: tuple[RegradeLine, ...]
    pager: Pager
    empty: Empty | None
    form: forms.Form | None  # None where the person may not, or no task has a contract
    action: str
    error: str
    why_not: str


@dataclass(frozen=True, slots=True)
class RegradePage:
    """One regrade: how far it is, and what it changed."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    badge: Badge
    error: str
    work: Work | None  # None once it is done
    poll_url: str  # "" while nothing moves
    refresh_url: str
    facts: tuple[Fact, ...]
    reason: str
    effect: ContractEffect | None
    effect_words: str  # why there is nothing to show
