"""Runs and releases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evalsite.common.shell import Choice, Crumb, Figure, Pager, Shell
from traces.web.pages.accepted import NoveltyPanel
from traces.web.pages.parts import Badge, Counts, Empty, Fact, Link, Notice, TrialRow
from traces.web.pages.releases import ReleaseComparison


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run in a list."""

    name: str
    href: str
    release: Link
    begun_at: datetime
    is_declared: bool
    n_declared: int | None  # trials that the declaration promises; None: not declared
    n_present: int
    n_missing: int
    n_error: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class RunListPage:
    """The runs of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    rows: tuple[RunRow, ...]
    releases: tuple[Choice, ...]  # a menu that narrows the list
    release_label: str
    pager: Pager
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class MissingRow:
    """A task of a declared run that lacks trials."""

    task: Link
    n_declared: int
    n_present: int


@dataclass(frozen=True, slots=True)
class UploadLink:
    """An upload that brought something."""

    name: str
    href: str
    received_at: datetime
    words: str  # "250 trials, 1 refused"


@dataclass(frozen=True, slots=True)
class RunPage:
    """One run."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    name: str
    sentence: str  # release, when it began, whether it was declared
    figures: tuple[Figure, ...]
    n_declared: int | None
    n_present: int
    missing: tuple[MissingRow, ...]
    n_more_missing: int
    errors: tuple[TrialRow, ...]  # harness errors
    n_more_errors: int
    trials: tuple[TrialRow, ...]
    trials_pager: Pager
    facts: tuple[Fact, ...]  # what the files say of the run
    uploads: tuple[UploadLink, ...]
    tasks_url: str
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseRow:
    """A release in a list."""

    name: str
    href: str
    detail: str  # model and agent, from the version record
    n_runs: int
    n_tasks: int
    n_error: int
    counts: Counts
    created_at: datetime
    gate_url: str
    gate: Badge  # what its gate came to
    sign_off: Badge
    marks: tuple[Badge, ...] = ()  # stale, expired


@dataclass(frozen=True, slots=True)
class ReleaseListPage:
    """The releases of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    rows: tuple[ReleaseRow, ...]
    pager: Pager
    empty: Empty | None = None
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleasePage:
    """One release: its version record and its runs."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    name: str
    sentence: str
    figures: tuple[Figure, ...]
    comparison: ReleaseComparison
    novelty: NoveltyPanel  # what it does with accepted paths, and which of its paths are new
    facts: tuple[Fact, ...]  # the version record: agent, models, prompts, tools
    record: str  # the version record as JSON text, "" when there is none
    runs: tuple[RunRow, ...]
    tasks_url: str
    tabs: tuple[Choice, ...]  # gate, evidence, signatures
    notices: tuple[Notice, ...] = ()
