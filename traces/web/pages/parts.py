"""Parts that several pages share. Text from traces stays plain here; templates mark and escape."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Counts:
    """Passed / graded / run, which always stand together."""

    n_pass: int
    n_graded: int
    n_run: int

    @property
    def rate(self) -> float | None:
        """Passed of graded as a fraction, None when nothing is graded."""
        return self.n_pass / self.n_graded if self.n_graded else None

    @property
    def percent(self) -> str:
        """The rate as a page shows it: "96.5%", or "none"."""
        return "none" if self.rate is None else f"{100 * self.rate:.1f}%"


@dataclass(frozen=True, slots=True)
class Link:
    """A name with an address; "" when there is nowhere to go."""

    label: str
    href: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a list of names and values."""

    name: str
    value: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something odd that the reader should know before believing the page."""

    sentence: str
    level: str = "info"  # info | warning | error
    place: str = ""  # where in the record, "" when it is about all of it


@dataclass(frozen=True, slots=True)
class Empty:
    """What a page says when it has nothing to show, and what to do about it."""

    heading: str
    sentence: str
    act: Link | None = None
    command: str = ""  # a command line that helps


@dataclass(frozen=True, slots=True)
class Badge:
    """A short word beside a name; with a state it gets that state's shape and colour."""

    label: str
    state: str = ""  # pass | fail | unresolved | harness-error | working | waiting | ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a sortable table. `sort` is "" while the table is sorted by another one."""

    label: str
    href: str = ""  # sorts by this column, or turns the order round; "" not sortable
    sort: str = ""  # ascending | descending | ""
    is_number: bool = False
    help: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """A Plotly figure, with the same numbers as a table for whoever cannot see it."""

    id: str  # unique on the page, also that of the JSON element
    title: str
    sentence: str  # what it shows and what it is a figure of
    figure: dict[str, Any]  # data and layout; every label escaped (traces.charts)
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PathCell:
    """One step of a path as a coloured cell.

    A cell is an agent message, or the call of a tool. In a group, it stands for the same step of
    all its trials. `colour` is 0 to 11, given to the tools of a page in order of use.
    """

    label: str  # short, at most 12 characters
    name: str  # the whole name of the tool; "" for an agent message
    href: str = ""  # the step in a trial
    colour: int = 0
    kind: str = "write"  # read | write | handoff | message
    differs: bool = False  # the arguments differ among the trials of the group
    n_rejected: int = 0  # trials in which the tool rejected this attempt
    n_not_rejected: int = 0  # the other trials of the group
    other: str = ""  # "date differs from path A"
    leaves: bool = False  # the first step at which an overlaid trial is off every passing path
    step: int | None = None  # of the trial, where the cell is one of a single trial

    @property
    def css(self) -> str:
        """The classes of the cell."""
        if self.kind == "message":
            return "cell m lv" if self.leaves else "cell m"
        marks = {"write": " w", "handoff": " h"}.get(self.kind, "")
        marks += " d" if self.differs else ""
        marks += " o" if self.other else ""
        marks += " x" if self.n_rejected else ""
        marks += " some" if self.n_rejected and self.n_not_rejected else ""
        marks += " lv" if self.leaves else ""
        return f"cell tool-c{self.colour}{marks}"

    @property
    def words(self) -> str:
        """All that shape and colour say, in words."""
        says = [self.name or "agent message"]
        if self.step is not None:
            says.insert(0, f"step {self.step}")
        if self.kind != "message":
            says.append({"read": "reads", "handoff": "hands over"}.get(self.kind, "writes"))
        if self.differs:
            says.append("arguments differ within this path")
        if self.other:
            says.append(self.other)
        if self.n_rejected:
            says.append(f"rejected by the tool{self._rejected_in}")
        if self.leaves:
            says.append("leaves the passing paths here")
        return ", ".join(says)

    @property
    def _rejected_in(self) -> str:
        if self.n_not_rejected:
            return f" in {self.n_rejected} of {self.n_rejected + self.n_not_rejected} trials"
        return "" if self.n_rejected == 1 else f" in {self.n_rejected} trials"


@dataclass(frozen=True, slots=True)
class ToolKey:
    """One entry of the legend of tools."""

    label: str  # as in the cells
    name: str
    colour: int
    kind: str  # read | write | handoff

    @property
    def css(self) -> str:
        """The classes of its sample cell."""
        return PathCell(self.label, self.name, colour=self.colour, kind=self.kind).css


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial in a list."""

    label: str  # "7", or "7, attempt 2"
    href: str
    task: Link
    release: Link
    run: Link
    disposition: str  # pass | fail | unresolved | harness-error
    detail: str = ""  # the failed classes, or the first next action, or the error
    path: str = ""  # "A" where the page names paths
    n_steps: int = 0
    n_tool_calls: int = 0
    n_rejected: int = 0
    cost_usd: Decimal | None = None
    seconds: Decimal | None = None
    at: datetime | None = None
