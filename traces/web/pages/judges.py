"""The judges of a system, and the calibration card of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evalsite.common.shell import Choice, Crumb, Figure, Option, Pager, Shell
from traces.web.pages.overview import FigureTable
from traces.web.pages.parts import Badge, Chart, Empty, Fact, Link, Notice


@dataclass(frozen=True, slots=True)
class DueDate:
    """Until when a calibration holds."""

    at: datetime
    words: str  # "2027-03-01, in 90 d"
    is_due: bool  # within the days of a reminder, or past


@dataclass(frozen=True, slots=True)
class JudgeRow:
    """A judge version on a criterion."""

    id: str
    judge: str
    version: str
    criterion: str
    href: str  # its card
    status: Badge
    why: str  # a sentence
    votes: str  # "votes", "does not vote"
    bound: str  # of false passes: "6.0%", "-"
    bound_note: str  # "2 of 60 items that people failed; 120 labels by 3 people"
    said: str  # "1,204 verdicts"
    said_note: str  # "900 pass, 300 fail, 4 error"
    last_at: datetime | None
    labelled_at: datetime | None  # the newest label
    due: DueDate | None
    older: tuple[JudgeRow, ...] = ()  # earlier versions, newest first


@dataclass(frozen=True, slots=True)
class JudgeFilter:
    """The filter form of the list."""

    action: str
    statuses: tuple[Option, ...]
    criteria: tuple[Option, ...]
    clear_url: str


@dataclass(frozen=True, slots=True)
class JudgeListPage:
    """The judges of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sub: str
    acts: tuple[Link, ...]
    filter: JudgeFilter
    notices: tuple[Notice, ...]
    rows: tuple[JudgeRow, ...]
    pager: Pager
    empty: Empty | None


@dataclass(frozen=True, slots=True)
class BoundBar:
    """A rate with its bounds and the limit, as places of a line from 0 to 100 for SVG."""

    words: str  # all that is drawn
    low: str  # of the interval
    width: str
    value: str
    limit: str


@dataclass(frozen=True, slots=True)
class JudgeNumber:
    """One number of the card, with all that it must not stand without."""

    label: str
    value: str  # "6.0%", "too few to tell", "cannot tell"
    detail: str  # "2 of 60 items that people failed"
    state: str = ""  # pass | fail | unresolved: against its limit
    bar: BoundBar | None = None
    lines: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class TableCell:
    """One cell of the table of people and judge."""

    n: str
    href: str
    words: str  # "both pass", "false pass"
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class AgreementTable:
    """People by judge: rows what people say, columns what the judge says."""

    rows: tuple[tuple[str, TableCell, TableCell], ...]


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A labelled item."""

    trial: Link
    family: str
    people: Badge
    labels: str  # "pass, fail, pass"
    judge: Badge
    note: str  # "false pass", "flip"


@dataclass(frozen=True, slots=True)
class ItemList:
    """The items behind a number."""

    title: str
    sentence: str
    choices: tuple[Choice, ...]
    rows: tuple[ItemRow, ...]
    pager: Pager
    n_hidden: int  # in a blind set that the reader may still be asked to label
    csv_url: str
    all_url: str  # "": all of them are shown


@dataclass(frozen=True, slots=True)
class ApartFigures:
    """Figures that decide nothing: of adjudications, of imported labels that nobody vouched for."""

    title: str
    sentence: str
    figures: tuple[Figure, ...]
    link: Link | None  # the items


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A status as it was read."""

    at: datetime
    status: Badge
    why: str
    by: str  # "read by itself" or a name
    until: str  # "until 2027-03-01", "" when it was not calibrated


@dataclass(frozen=True, slots=True)
class ProbeLine:
    """Probes of one kind and how they came out."""

    kind: str
    must: str  # what has to come out
    n_right: int
    n_wrong: int
    n_open: int  # no verdict yet, or one that tells nothing
    links: tuple[Link, ...]  # the wrong ones


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """How a judge came out of its probes."""

    sentence: str
    rows: tuple[ProbeLine, ...]
    link: Link | None  # all probes


@dataclass(frozen=True, slots=True)
class JudgeCardPage:
    """The calibration card of a judge version on a criterion."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    title: str  # the judge
    version: str
    criterion: str
    sub: tuple[Link, ...]
    texts: tuple[Choice, ...]  # of the criterion, where there are several
    versions: tuple[Choice, ...]  # of the judge, where there are several
    status: Badge
    answer: str  # "Its verdicts vote until 2027-03-01."
    why: str
    needs: tuple[str, ...]  # what would settle it
    notices: tuple[Notice, ...]
    read_action: str  # takes a POST; "" for people who may not
    read_fields: tuple[tuple[str, str], ...]
    why_not: str  # why they may not
    acts: tuple[Link, ...]
    csv_url: str
    json_url: str
    numbers: tuple[JudgeNumber, ...]
    chart: Chart | None
    table: AgreementTable | None
    facts: tuple[Fact, ...]
    families: FigureTable | None
    family_chart: Chart | None
    apart: tuple[ApartFigures, ...]
    probes: ProbeResults | None
    history: tuple[HistoryRow, ...]
    items: ItemList | None
