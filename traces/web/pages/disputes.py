"""Pages of disputes: their list, by cause or one by one, and what was decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evalsite.common.shell import Choice, Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Link
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class DisputeFilterForm:
    """The choices of the list that are no tabs."""

    action: str
    hidden: tuple[Hidden, ...]
    states: tuple[Option, ...]
    classes: tuple[Option, ...]
    criteria: tuple[Option, ...]
    kinds: tuple[Option, ...]
    judges: tuple[Option, ...]
    releases: tuple[Option, ...]
    families: tuple[Option, ...]
    splits: tuple[Option, ...]
    mine: tuple[Option, ...]  # empty for people who adjudicate nothing
    also: tuple[str, ...]  # what else is chosen, by links alone: "rubric version 2"
    clear_url: str  # set while a filter is on


@dataclass(frozen=True, slots=True)
class DisputeVoice:
    """A grader that says something in a dispute."""

    kind: str  # code | judge | person
    name: str
    version: str
    note: str  # why it does not count; "" when it does


@dataclass(frozen=True, slots=True)
class DisputeSaying:
    """One value, and who says it."""

    value: Badge
    voices: tuple[DisputeVoice, ...]
    n_more: int  # graders that are not named


@dataclass(frozen=True, slots=True)
class DisputeRow:
    """A dispute in the list."""

    id: str  # of its row
    trial: Link  # to the dispute: "34 · trial 7"
    title: str  # of the task, "" without one
    below: tuple[str, ...]  # release, family and split
    criterion: str
    about: tuple[str, ...]  # class, rubric version
    kinds: tuple[str, ...]  # "code against judge"
    says: tuple[DisputeSaying, ...]
    n_more: int  # graders beyond those that the row knows
    effect: Badge  # "decides", or why not
    effect_sentence: str
    not_counting: str  # that the graders that disagree do not count; "" when they do
    age: str
    opened_at: datetime  # or closed, where it is open no more
    state: Badge | None  # of a dispute that is not open
    hidden: str = ""  # why this person does not see who says what; "" when they do
    skipped: str = ""  # the reason why this person left it to others


@dataclass(frozen=True, slots=True)
class DisputeCount:
    """A count that leads to what it counts."""

    n: int
    href: str


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """The disputes of a cause in which one judge says something."""

    name: str  # "" where no judge does
    version: str
    card: str  # address of its calibration card; "" without one
    all: DisputeCount
    deciding: DisputeCount | None
    by_stance: tuple[tuple[str, DisputeCount | None], ...]  # in the order of the columns
    age: str  # of the oldest
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class CauseRow:
    """The disputes on one criterion under one version of its rubric."""

    id: str
    criterion: Link
    about: tuple[str, ...]  # class, rubric version
    words: str  # "34 disputes, none decides anything"
    why: tuple[str, ...]  # why those that decide nothing do not
    is_deciding: bool
    between: tuple[tuple[str, DisputeCount], ...]
    judges: tuple[JudgeRow, ...]  # empty where no judge says anything
    n_more_judges: int
    age: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class DisputeListPage:
    """The list of disputes."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sub: str
    tabs: tuple[Choice, ...]
    views: tuple[Choice, ...]
    filter: DisputeFilterForm
    is_grouped: bool
    stances: tuple[str, ...]  # columns of the groups
    causes: tuple[CauseRow, ...]
    n_more_causes: int
    rows: tuple[DisputeRow, ...]
    has_left_out: bool  # some are not counted, as their trials are in a blind set
    is_open: bool
    pager: Pager
    csv_url: str
    decided_url: str
    start_url: str  # the first dispute of the list, for who decides one after another; "" for none
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class DecidedRow:
    """An adjudication in the list of decided ones."""

    id: str
    trial: Link  # to the dispute, else to the trial
    below: tuple[str, ...]
    criterion: str
    about: tuple[str, ...]
    ruling: Badge
    notes: tuple[str, ...]  # "decided by a party", "third label of a blind set"
    reason: str  # its beginning
    is_cut: bool
    by: str
    at: datetime
    corrects: Link | None  # the decision that it takes the place of
    corrected_by: Link | None
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class DecidedListPage:
    """Adjudications, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sub: str
    tabs: tuple[Choice, ...]  # empty for people who decide nothing
    rows: tuple[DecidedRow, ...]
    pager: Pager
    empty: Empty | None = None
