"""The list of tasks, and a task with its paths."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from evalsite.common.shell import Choice, Crumb, Figure, Option, Pager, Shell
from traces.web.pages.parts import (
    Badge,
    Chart,
    Column,
    Counts,
    Empty,
    Link,
    Notice,
    PathCell,
    ToolKey,
    TrialRow,
)


@dataclass(frozen=True, slots=True)
class Hidden:
    """A value that a filter form carries along."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """The filter form of the list of tasks. An empty value means no filter."""

    action: str
    families: tuple[Option, ...]
    releases: tuple[Option, ...]
    splits: tuple[Option, ...]
    query: str
    hidden: tuple[Hidden, ...] = ()  # level, messages, view and sort
    clear_url: str = ""  # set while a filter is on


@dataclass(frozen=True, slots=True)
class PathSwitches:
    """Which level is looked at, with the number of passing paths at each."""

    levels: tuple[Choice, ...]  # sequence, equivalent, exact
    more_levels: tuple[Choice, ...]  # the others
    messages: tuple[Choice, ...]  # tool calls only, with agent messages


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task in the grid and in the table."""

    task_id: str
    title: str
    href: str
    family: str
    split: str
    n_paths: int
    counts: Counts
    n_fail: int
    n_unresolved: int
    n_error: int
    heat: int = 0  # 0 to 6: how many paths, against the most on the page


@dataclass(frozen=True, slots=True)
class TaskListPage:
    """The tasks of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    figures: tuple[Figure, ...]
    filter: TaskFilter
    switches: PathSwitches
    views: tuple[Choice, ...]  # grid, table
    is_table: bool
    columns: tuple[Column, ...]  # of the table, in the order of the template
    rows: tuple[TaskRow, ...]
    words: str  # "50 tasks" or "12 of 50 tasks"
    pager: Pager
    charts: tuple[Chart, ...]
    notices: tuple[Notice, ...] = ()  # what the figures leave out
    empty: Empty | None = None  # set when there is no row


@dataclass(frozen=True, slots=True)
class PathGroup:
    """The trials of a task that took one path, or an overlaid trial that did not pass."""

    key: str  # names it in addresses: the level's key as hex, or the trial's id
    name: str  # "A", "B" … for passing paths, "trial 3" for an overlaid trial
    state: str  # pass | fail | unresolved
    n_trials: int
    share: int  # percent of the passing trials
    trials: tuple[Link, ...]  # the first ones
    n_more_trials: int
    releases: tuple[str, ...]
    finer: str  # "3 exact paths", "" where nothing is finer
    n_tool_calls: int
    cost_usd: Decimal | None  # median over its trials
    cells: tuple[PathCell | None, ...]  # one for each column; None: no step here
    badges: tuple[Badge, ...] = ()
    note: str = ""  # such as: a call was recorded without its arguments
    accept_url: str = ""  # the form that accepts the path; "" where it is not for this person
    is_picked: bool = False


@dataclass(frozen=True, slots=True)
class AlignedView:
    """Paths under each other, a column a step. Overlaid trials that did not pass come last."""

    words: str  # "4 sequences, most trials first"
    columns: tuple[int, ...]  # 1, 2 …
    groups: tuple[PathGroup, ...]
    overlaid: tuple[PathGroup, ...] = ()
    tools: tuple[ToolKey, ...] = ()
    more: Link | None = None  # to the rest, when not all paths are drawn
    note: str = ""  # such as: cut after 200 steps
    compares_arguments: bool = False  # cells say where arguments differ from a path above


@dataclass(frozen=True, slots=True)
class Merge:
    """Argument values that a rule takes as equal, within one path."""

    tool: str
    argument: str  # its path, "expression"
    rule: str  # "arithmetic value"
    n_values: int
    value: str  # what they come to, "1200"; "" when the rule ignores the value
    examples: tuple[str, ...]  # some of the spellings
    reason: str  # why the rule exists, as its author gave it
    path: str = ""  # the group's name


@dataclass(frozen=True, slots=True)
class TaskPage:
    """One task: figures, paths, trials."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    task_id: str
    title: str
    text: str  # what the task asks, shortened
    facts: tuple[str, ...]  # "family airline", "split regression"
    tabs: tuple[Choice, ...]  # the other views of the task
    figures: tuple[Figure, ...]
    action: str  # this page, for the release filter
    releases: tuple[Option, ...]  # several may be chosen; none: all
    releases_label: str  # "All releases", "2 of 5 releases"
    hidden: tuple[Hidden, ...]  # level, messages, overlay, version
    versions: tuple[Choice, ...]  # "all versions", "version 1" …; empty with one version
    switches: PathSwitches
    overlay: tuple[Choice, ...]  # passing only, and failing, and unresolved; with counts
    aligned: AlignedView
    merges: tuple[Merge, ...]
    merges_words: str  # "Rules version 3 of this system." or why nothing merges
    compare_url: str
    compare_hidden: tuple[Hidden, ...]
    trials: tuple[TrialRow, ...]
    trials_pager: Pager
    trials_words: str
    notices: tuple[Notice, ...] = ()  # versions taken together, trials that are not comparable
    empty: Empty | None = None  # set when no trial passed: the aligned view has no path
    history: tuple[Link, ...] = ()  # the trial that it was made from, the newest exposure
    contract_url: str = ""
