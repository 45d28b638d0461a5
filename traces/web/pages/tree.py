"""The trials of a task as a prefix tree."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.common.shell import Choice, Crumb, Figure, Option, Shell
from traces.web.pages.parts import Empty, Link, Notice, PathCell, ToolKey
from traces.web.pages.tasks import Hidden, PathSwitches


@dataclass(frozen=True, slots=True)
class BarPart:
    """A stretch of a bar, in hundredths of its length."""

    state: str  # pass | fail | unresolved | harness-error
    start: str  # decimal numbers as an SVG takes them
    length: str


@dataclass(frozen=True, slots=True)
class BranchCounts:
    """The trials of a branch by disposition, as numbers and as a bar."""

    n_trials: int
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_error: int
    bar: tuple[BarPart, ...]  # against all trials of the tree


@dataclass(frozen=True, slots=True)
class BranchTrial:
    """A trial that ends with a branch, and how many did so with it."""

    label: str
    href: str  # the step of the trial that the branch begins with
    state: str  # pass | fail | unresolved | harness-error
    release: str  # "" where all trials are of one
    n_more: int  # trials of the same disposition that did the same


@dataclass(frozen=True, slots=True)
class BranchRow:
    """One branch of the tree, or all branches that are not drawn at a place."""

    anchor: str
    level: int  # from 1
    guides: tuple[str, ...]  # the lines before it: "line", "none", at last "tee" or "corner"
    steps: str  # "3" or "3-9"; "" where it has no step
    cells: tuple[PathCell, ...]  # its first steps
    n_between: int  # steps that are not drawn
    last_cells: tuple[PathCell, ...]
    opening: str  # the arguments of its first step, where they tell branches apart
    counts: BranchCounts
    parting: str = ""  # "2 failing trials leave the passing paths here"
    ends: str = ""  # "3 end here:"
    trials: tuple[BranchTrial, ...] = ()
    words: str = ""  # instead of steps: "Start", "4 more branches"
    is_deep: bool = False  # more levels than lines
    is_deep_when_narrow: bool = False


@dataclass(frozen=True, slots=True)
class PartingPlace:
    """A step at which failing trials part from the passing paths."""

    label: str  # "step 4"
    href: str  # the first row that shows it; "" where none is drawn
    words: str  # "3 leave, 1 stops before it"


@dataclass(frozen=True, slots=True)
class TaskTreePage:
    """Where the trials of a task part, and at which step failing ones leave."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    task_id: str
    title: str
    tabs: tuple[Choice, ...]
    facts: tuple[str, ...]
    figures: tuple[Figure, ...]
    action: str  # this page, for the release filter
    releases: tuple[Option, ...]
    releases_label: str
    hidden: tuple[Hidden, ...]  # level, messages, version
    versions: tuple[Choice, ...]
    switches: PathSwitches
    words: str  # "12 branches, most trials first"
    places: tuple[PartingPlace, ...]  # most trials first
    n_more_places: int
    rows: tuple[BranchRow, ...]
    has_errors: bool  # a column for harness errors
    tools: tuple[ToolKey, ...]
    note: str = ""
    more: Link | None = None  # draws more branches
    notices: tuple[Notice, ...] = ()
    empty: Empty | None = None
