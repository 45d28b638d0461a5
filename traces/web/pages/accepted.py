"""Accepted paths: the register of a task, accepting, withdrawing, and what a release does with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Shell
from traces.web.pages.parts import Empty, Link, Notice, PathCell, ToolKey
from traces.web.pages.tasks import Hidden, PathSwitches


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Who accepted a path, when and why."""

    name: str  # "Accepted 1"
    by: str
    at: datetime
    reason: str
    trial: Link  # that showed it
    rules: str  # "rules version 1"
    withdraw_url: str = ""  # "" for whoever may not


@dataclass(frozen=True, slots=True)
class RegisterRow:
    """An accepted path: one, or several that the shown rules make one."""

    name: str  # "Accepted 1 and 3"
    level: str  # "Sequence, tool calls only"
    n_trials: int  # passing trials that it covers
    cells: tuple[PathCell | None, ...]  # one for each column
    acceptances: tuple[Acceptance, ...]
    merged: str  # why it has several names; "" with one
    taken: tuple[Link, ...]  # releases with their trials, newest first
    not_taken: tuple[Link, ...]  # releases whose graded trials are all elsewhere


@dataclass(frozen=True, slots=True)
class WithdrawnRow:
    """An accepted path that was withdrawn."""

    accepted: Acceptance
    level: str
    by: str
    at: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class RegisterPage:
    """The accepted paths of a task."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    task_id: str
    title: str
    facts: tuple[str, ...]
    tabs: tuple[Choice, ...]
    notices: tuple[Notice, ...]
    words: str  # "2 accepted paths"
    rules: str  # "under rules version 3"
    columns: tuple[int, ...]
    rows: tuple[RegisterRow, ...]
    tools: tuple[ToolKey, ...]
    note: str  # what the rows leave out
    more: Link | None
    withdrawn: tuple[WithdrawnRow, ...]
    how_to: str  # how to accept one, or why this person may not
    empty: Empty | None = None  # set when no accepted path is in force


@dataclass(frozen=True, slots=True)
class LevelChoice:
    """A level at which the path may be accepted, and what that would cover."""

    value: str
    label: str
    help: str
    words: str  # "7 trials of 2 releases"
    refusal: str  # why it cannot be accepted at this level, unless the page says it for all; or ""
    is_refused: bool
    is_selected: bool


@dataclass(frozen=True, slots=True)
class AcceptPage:
    """The form that accepts the path of a trial."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    task_id: str
    title: str
    trial: Link
    hidden: tuple[Hidden, ...]  # the trial, and that messages count
    words: str  # what the trial is of
    level: str
    cells: tuple[PathCell | None, ...]
    tools: tuple[ToolKey, ...]
    note: str
    refusal: str  # why not, where no level can be chosen; "" where one can
    notices: tuple[Notice, ...]  # why not at this level, and what to know before
    flags: tuple[Link, ...]  # to the open flags in the way, by trial
    flags_more: Link | None  # where more trials carry one
    form: forms.Form
    levels: tuple[LevelChoice, ...]
    messages: tuple[Choice, ...]  # tool calls only, with agent messages
    action: str
    cancel_url: str


@dataclass(frozen=True, slots=True)
class WithdrawPage:
    """The form that withdraws an accepted path."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    task_id: str
    level: str
    accepted: Acceptance
    form: forms.Form
    action: str
    cancel_url: str
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class NoveltyRow:
    """A task of a release, with what is to be said of its paths."""

    task: Link
    words: str  # "2 paths", "Accepted 1"; "" where there is one path


@dataclass(frozen=True, slots=True)
class NoveltyList:
    """One thing that a release does with paths, and the tasks in which it does."""

    name: str  # new | lost | seen
    sentence: str
    rows: tuple[NoveltyRow, ...]
    more: Link | None = None  # to the next tasks


@dataclass(frozen=True, slots=True)
class NoveltyPanel:
    """What a release does with accepted paths, and which of its paths are new."""

    switches: PathSwitches
    lists: tuple[NoveltyList, ...]
    notes: tuple[str, ...]
