"""A release against another one."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.common.shell import Choice, Figure, Pager
from traces.web.pages.parts import Badge, Counts, Link


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of both releases, with what became of it in words."""

    then: str  # "-" where it is not known
    now: str
    words: str = ""  # "3 more"; "" where nothing can be said


@dataclass(frozen=True, slots=True)
class ComparedPath:
    """A passing path of a task in both releases."""

    fate: str  # gone | new | kept
    trials: str  # "2 trials, now 1"
    calls: Change
    cost: Change
    links: tuple[Link, ...]  # to its first trial in each release


@dataclass(frozen=True, slots=True)
class ComparedTaskRow:
    """A task in both releases."""

    task_id: str
    title: str
    href: str  # the task with both releases chosen
    badges: tuple[Badge, ...]  # "flips to fail", "other paths"
    then: Counts
    now: Counts
    paths_words: str  # "1 gone, 2 new, 1 kept"
    paths: tuple[ComparedPath, ...]
    n_more_paths: int
    calls: Change
    cost: Change
    compare: Link | None  # a trial or path of each side by side


@dataclass(frozen=True, slots=True)
class LeftOutTask:
    """A task that is not compared, or not with all of its trials."""

    task: Link
    reason: str


@dataclass(frozen=True, slots=True)
class ReleaseComparison:
    """A release against another one. Without another one only `sentence` and `others` say anything."""

    sentence: str  # "5 of 50 tasks pass by other paths; 4 flips to fail, 23 to pass"
    others: tuple[Choice, ...]  # releases to compare with
    others_label: str
    now: str = ""  # the release's name
    then: Link | None = None  # the other one
    figures: tuple[Figure, ...] = ()
    tools_new: tuple[str, ...] = ()
    tools_gone: tuple[str, ...] = ()
    n_more_tools: int = 0
    level_words: str = ""  # at which level paths are compared
    shown: tuple[Choice, ...] = ()  # changed tasks, all tasks
    rows: tuple[ComparedTaskRow, ...] = ()
    rows_words: str = ""  # where there is no row: why
    pager: Pager | None = None
    left_out: tuple[LeftOutTask, ...] = ()
    left_out_words: str = ""
