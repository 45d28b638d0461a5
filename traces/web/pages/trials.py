"""A trial with its transcript, verdicts and states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from evalsite.common.shell import Crumb, Option, Pager, Shell
from traces.web.pages.flags import FlagNote
from traces.web.pages.parts import Empty, Fact, Link, Notice, PathCell, ToolKey, TrialRow
from traces.web.pages.standings import Standings
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A text of a transcript, shortened when it is huge."""

    text: str
    kind: str = "text"  # text | reasoning | image | data | other
    size: int = 0  # bytes of the whole text as UTF-8
    n_marks: int = 0  # characters that cannot be seen
    is_cut: bool = False
    full_url: str = ""  # downloads the whole text; set when cut
    is_long: bool = False  # folded at first
    addressed: str = ""  # what in it is addressed to graders or reviewers, in a sentence


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool call, its value as JSON text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TranscriptCall:
    """A tool call with its result."""

    name: str
    colour: int
    kind: str  # read | write | handoff
    outcome: str  # committed | rejected | unknown
    arguments: tuple[Argument, ...] = ()
    raw: TextBlock | None = None  # instead of arguments: text that is not a JSON object
    raw_note: str = ""  # "arguments were not recorded", "not JSON: kept as it came"
    result: TextBlock | None = None
    result_step: int | None = None
    result_href: str = ""
    seconds: Decimal | None = None
    by_user: bool = False  # a user-side call: not the agent's
    addressed: str = ""  # what in its name or arguments is addressed to graders or reviewers


@dataclass(frozen=True, slots=True)
class TranscriptStep:
    """One entry of the transcript. A result that is shown with its call has no entry of its own."""

    number: int
    actor: str  # agent | user | system | tool | other
    href: str  # "?step=12#step-12": a link that stays
    blocks: tuple[TextBlock, ...] = ()
    calls: tuple[TranscriptCall, ...] = ()
    at: str = ""  # the time as given
    role: str = ""  # as given, where it is not one of the known ones
    is_error: bool = False  # an error, or a call of it was rejected
    cited_by: tuple[str, ...] = ()  # "outcome by judge 2"
    note: str = ""  # "a result without its call"


@dataclass(frozen=True, slots=True)
class Disposition:
    """What the trial comes to, and why."""

    value: str  # pass | fail | unresolved | harness-error
    sentence: str
    next_actions: tuple[str, ...] = ()  # the first one is the one to do
    note: str = ""  # "There is no contract: the imported criteria decide."


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """One verdict, as it is kept."""

    criterion: str
    value: str  # pass | fail | unresolved (for unknown) | harness-error (for error)
    word: str  # pass | fail | unknown | error
    grader: str
    version: str
    kind: str  # code | model | human
    criterion_class: str
    is_mandatory: bool
    counts: bool
    why_not: str = ""  # why it does not count
    raw_word: str = ""  # as given, where it is another one
    score: str = ""
    rationale: TextBlock | None = None
    cited: tuple[Link, ...] = ()  # "step 9"; without an address the step does not exist
    at: datetime | None = None  # when a signed-in person gave it
    under: str = ""  # "contract version 2"
    corrected: str = ""  # "corrected by fail, 2026-12-01 …": it votes no more
    corrects: str = ""  # "corrects pass": what it took the place of
    correct_url: str = ""  # of the form, for who gave it
    calibration: Link | None = None  # of a judge: how it stands, with the way to its card
    vouched: str = ""  # "Rita Cho, 2026-12-01 …": of an imported human verdict
    is_blind: bool = False  # given without sight of other verdicts


@dataclass(frozen=True, slots=True)
class HiddenCriteria:
    """Criteria of which the reader sees nothing: they may be asked for a blind label on them."""

    sentence: str
    names: tuple[str, ...]
    trial: str  # as the form names it
    action: str  # takes a POST: shows one, and gives the label up
    back: str


@dataclass(frozen=True, slots=True)
class StateChange:
    """One difference between the initial and the final state."""

    act: str  # added | removed | changed
    pointer: str  # JSON Pointer
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class StateDifference:
    """The states of the environment, as far as they were recorded."""

    sentence: str  # "2 differences in 3 collections", "The final state was not recorded."
    changes: tuple[StateChange, ...] = ()
    n_more: int = 0
    source: str = ""  # who says so: "inspection api"


@dataclass(frozen=True, slots=True)
class TrialPage:
    """One trial."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    title: str  # of the task
    sub: tuple[Link, ...]  # release, run, "18 steps", "11 tool calls", "84 s", "$0.044" …
    disposition: Disposition
    notices: tuple[Notice, ...]
    cells: tuple[PathCell, ...]
    tools: tuple[ToolKey, ...]
    steps: tuple[TranscriptStep, ...]
    n_steps: int
    pager: Pager
    step_action: str  # takes ?step=
    step_asked: int | None
    verdicts: tuple[VerdictRow, ...]  # the counting ones first
    n_verdicts_waiting: int
    state: StateDifference | None  # None: the format has no states
    facts: tuple[Fact, ...]
    raw_url: str
    compare_url: str = ""
    same_path: Link | None = None
    previous: Link | None = None  # trial of the task
    next: Link | None = None
    cells_note: str = ""
    flags: tuple[FlagNote, ...] = ()  # open ones
    more_flags: Link | None = None  # "3 more open flags on this trial"
    closed_flags: tuple[FlagNote, ...] = ()
    flag_url: str = ""  # the form that flags it
    standings: Standings | None = None
    superseded: tuple[VerdictRow, ...] = ()  # of checks of other contract versions
    hidden: HiddenCriteria | None = None  # kept from a reviewer who may be asked for a blind label


@dataclass(frozen=True, slots=True)
class TrialListPage:
    """The trials of a system, newest first, with a filter form."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    action: str  # of the filter form
    releases: tuple[Option, ...]
    dispositions: tuple[Option, ...]
    query: str  # a trial's address, number or name, or the id that its source gave
    task: Link | None  # set while only the trials of one task are listed
    task_value: str  # of that task in the form
    clear_url: str  # set while a filter is on
    rows: tuple[TrialRow, ...]
    pager: Pager
    csv_url: str
    jsonl_url: str
    empty: Empty | None = None
    conditions: tuple[str, ...] = ()  # what is asked beyond the form, in words
    hidden: tuple[Hidden, ...] = ()  # the same, carried along by the form
