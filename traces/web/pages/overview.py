"""The overview of a system, and its production traces."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.common.shell import Choice, Crumb, Figure, Option, Shell
from traces.web.pages.parts import Chart, Column, Counts, Empty, Link, Notice, TrialRow
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class RangeBar:
    """A rate on a line from 0 to 100, as whole tenths for SVG; in words beside it."""

    words: str  # all that is drawn
    low: str  # of the range
    width: str  # of the range
    value: str = ""  # "" where nothing is graded
    whisker_low: str = ""  # of the interval; "" where there is none
    whisker_width: str = ""


@dataclass(frozen=True, slots=True)
class BigNumber:
    """One of the four numbers, with all that it must not stand without."""

    label: str
    value: str  # "96.5%", "$0.041", "none"
    detail: str = ""  # "466 / 483 / 500 passed / graded / run"
    bar: RangeBar | None = None
    lines: tuple[str, ...] = ()
    second: str = ""  # a second figure of the same: "pass^5 71.0%"
    second_lines: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    help: str = ""
    switch: tuple[Choice, ...] = ()  # of k
    switch_label: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table of figures."""

    text: str
    href: str = ""
    note: str = ""
    state: str = ""  # pass | fail | unresolved | harness-error
    is_number: bool = False
    bar: RangeBar | None = None


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A table of figures. The first cell of each row names it."""

    id: str
    title: str
    sentence: str  # what it counts
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    empty: str = ""  # what stands there without a row
    notes: tuple[str, ...] = ()
    more: tuple[tuple[Cell, ...], ...] = ()  # folded at first
    more_words: str = ""


@dataclass(frozen=True, slots=True)
class OverviewFilter:
    """The filter form of the overview."""

    action: str
    releases: tuple[Option, ...]
    families: tuple[Option, ...]
    splits: tuple[Option, ...]
    hidden: tuple[Hidden, ...] = ()
    clear_url: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """The point of the page: the outcome beside the way to it."""

    sentence: str  # "5 of 5 trials reached the outcome, 2 of 5 by the rules."
    detail: str
    outcome: Counts
    clean: Counts | None  # None: no rule is checked
    outcome_bar: RangeBar | None
    clean_bar: RangeBar | None
    link: Link | None  # trials that reached the outcome and broke a rule


@dataclass(frozen=True, slots=True)
class UnpairedTask:
    """A task that the comparison with the release before leaves out."""

    task: Link
    reason: str


@dataclass(frozen=True, slots=True)
class OverviewChange:
    """What changed since the release before."""

    previous: Link
    sentence: str
    figures: tuple[Figure, ...]
    measures: FigureTable
    families: FigureTable | None
    to_fail: tuple[Link, ...]
    to_pass: tuple[Link, ...]
    n_more_to_fail: int
    n_more_to_pass: int
    unpaired: tuple[UnpairedTask, ...]
    unpaired_words: str
    method: str


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """The figures of a release of a system, on one page that can be printed."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    title: str
    sentence: str
    filter: OverviewFilter
    notices: tuple[Notice, ...] = ()
    empty: Empty | None = None
    gap: Gap | None = None
    numbers: tuple[BigNumber, ...] = ()
    safety: FigureTable | None = None
    beside: tuple[Figure, ...] = ()  # hand-overs and trials that changed nothing
    classes: tuple[Figure, ...] = ()
    requirements: FigureTable | None = None
    actions: FigureTable | None = None
    effort: FigureTable | None = None
    chart: Chart | None = None
    releases: FigureTable | None = None
    families: FigureTable | None = None
    splits: FigureTable | None = None
    change: OverviewChange | None = None
    change_words: str = ""  # why there is no comparison
    csv_url: str = ""
    json_url: str = ""


@dataclass(frozen=True, slots=True)
class ProductionPage:
    """Traces that do not come from a test. They enter no figure of a release."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    sentence: str
    releases: tuple[Option, ...]
    action: str
    clear_url: str
    figures: tuple[Figure, ...] = ()
    environments: FigureTable | None = None
    safety: FigureTable | None = None
    beside: tuple[Figure, ...] = ()
    requirements: FigureTable | None = None
    actions: FigureTable | None = None
    rows: tuple[TrialRow, ...] = ()
    all_url: str = ""  # the whole list
    empty: Empty | None = None
