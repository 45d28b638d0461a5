"""The trials of a task matched with a reference."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.common.shell import Choice, Crumb, Figure, Option, Shell
from traces.web.pages.parts import Column, Empty, Link, Notice, PathCell
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class ReferenceOptions:
    """One group of references to choose from."""

    label: str  # "Accepted paths", "Trials"
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """What all rows are matched with."""

    name: str  # "Accepted path 2", "Trial 7 of 1.0"
    words: str  # "level sequence, shown by trial 7 of 1.0"
    href: str  # the trial
    messages: tuple[tuple[PathCell, ...], ...]  # the first calls, those of one message together
    calls: str  # "5 calls in 4 messages"
    n_more: int  # calls that are not drawn


@dataclass(frozen=True, slots=True)
class MatchMark:
    """Whether a mode or metric holds, or a fraction; said in words."""

    words: str  # "yes", "no", "4/5", "-"
    holds: bool | None = None  # None: a fraction, or nothing to tell
    help: str = ""


@dataclass(frozen=True, slots=True)
class MatchedRow:
    """The trials that made the same calls, and how they match the reference."""

    trial: Link  # the first one; its title has the release too
    words: str  # "of 1.0, and 11 more in 2 releases"
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_calls: int
    marks: tuple[MatchMark, ...]  # one for each column of the page's groups
    is_reference: bool
    note: str = ""  # such as: a call was recorded without its arguments
    compare_url: str = ""
    reference_url: str = ""  # matches all with this row instead


@dataclass(frozen=True, slots=True)
class MatchColumns:
    """Columns under one heading."""

    label: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class DiagnosticsPage:
    """How the trials of a task compare with one reference. Nothing here decides anything."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    tabs: tuple[Choice, ...]
    task_id: str
    title: str
    facts: tuple[str, ...]
    action: str  # this page, for its forms
    hidden: tuple[Hidden, ...]  # what the form of reference and tool keeps
    release_hidden: tuple[Hidden, ...]  # what the filter of releases keeps
    references: tuple[ReferenceOptions, ...]
    tools: tuple[Option, ...]  # for single tool use; empty without calls
    releases: tuple[Option, ...]
    releases_label: str
    versions: tuple[Choice, ...]
    arguments: tuple[Choice, ...]  # names only, arguments exact, arguments by the rules
    reference: Reference | None
    figures: tuple[Figure, ...]
    words: str  # "12 ways to call, most trials first"
    groups: tuple[MatchColumns, ...]
    rows: tuple[MatchedRow, ...]
    note: str = ""  # what was cut
    notices: tuple[Notice, ...] = ()
    empty: Empty | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of all groups, in order."""
        return tuple(column for group in self.groups for column in group.columns)
