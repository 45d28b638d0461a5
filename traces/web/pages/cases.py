"""Pages of cases: the queue, one case, and the forms of what settles it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Fact, Link
from traces.web.pages.tasks import Hidden
from traces.web.pages.trials import HiddenCriteria


@dataclass(frozen=True, slots=True)
class NextStep:
    """A next action in words, as the queue shows it."""

    name: str  # "Repair evidence"
    what: str  # "outcome, tone": what it is about; "" when the name says it


@dataclass(frozen=True, slots=True)
class CaseDue:
    """Until when a case should be settled."""

    on: date
    words: str  # "today", "tomorrow", "overdue", "12 Dec"
    is_overdue: bool


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case in the queue."""

    id: str  # of its row
    value: str  # of its box
    trial: Link  # to the case: "34 · trial 7"
    title: str  # of the task, "" without one
    below: tuple[str, ...]  # release, family and split
    why: tuple[Badge, ...]
    why_detail: str  # criteria, or what the harness said
    steps: tuple[NextStep, ...]  # the first one is shown bold
    who: str  # "you", a name, or the role
    is_role: bool  # nobody has it
    age: str  # "2 h": since it opened or, where it waits no longer, since it closed
    opened_at: datetime  # or closed
    due: CaseDue | None
    state: Badge | None  # of a case that does not wait
    is_mine: bool = False
    n_comments: int = 0
    is_rerun_asked: bool = False


@dataclass(frozen=True, slots=True)
class CaseFilterForm:
    """The choices of the queue that are no tabs."""

    action: str
    hidden: tuple[Hidden, ...]
    roles: tuple[Option, ...]
    families: tuple[Option, ...]
    splits: tuple[Option, ...]
    states: tuple[Option, ...]
    is_overdue: bool
    query: str
    clear_url: str  # set while a filter is on


@dataclass(frozen=True, slots=True)
class CaseListPage:
    """The queue of cases."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str  # "14 cases wait, 6 of them for you"
    sub: str
    tabs: tuple[Choice, ...]
    who: tuple[Choice, ...]
    who_label: str
    releases: tuple[Choice, ...]
    release_label: str
    filter: CaseFilterForm
    rows: tuple[CaseRow, ...]
    pager: Pager
    is_waiting: bool  # open cases are listed: they have an age and take an assignee
    assign_url: str  # takes the boxes; "" when nobody can be assigned here
    may_take: bool  # the person works cases themselves
    workers: tuple[Option, ...]
    why_not: str  # why this person assigns nothing; "" when they may
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class CaseVote:
    """What a grader said on an open requirement."""

    who: str
    kind: str  # code | model | human
    value: str  # pass | fail | unresolved | harness-error
    word: str
    note: str = ""  # "does not count"
    rationale: str = ""  # its beginning
    steps: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseReason:
    """One open requirement of the trial."""

    criterion: str  # "" for the trial itself
    sentence: str
    action: str  # "repair evidence"
    votes: tuple[CaseVote, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseAct:
    """A link or button that does, or begins, what a next action asks for."""

    label: str
    href: str = ""
    why_not: str = ""  # why this person may not; "" when they may
    is_primary: bool = False


@dataclass(frozen=True, slots=True)
class CaseStep:
    """A next action with the way to do it."""

    name: str
    worked_by: str
    sentence: str
    about: tuple[str, ...]  # criteria
    acts: tuple[CaseAct, ...]
    is_first: bool
    form: forms.Form | None = None  # a reason, where asking is all that is to do
    form_action: str = ""
    form_button: str = ""
    form_why_not: str = ""
    asked: str = ""  # who asked for it last, and when


@dataclass(frozen=True, slots=True)
class CaseMoment:
    """One thing that happened to a case."""

    what: str  # "set a due date: 12 Dec"
    by: str  # a person; "" when it happened by itself
    at: datetime
    text: str = ""  # written by a person
    after: str = ""  # "after code check says pass on outcome"
    kind: str = ""  # comment | closed | opened | …


@dataclass(frozen=True, slots=True)
class CasePage:
    """One case with everything to settle it."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    title: str  # "34 · trial 7"
    state: Badge
    sub: tuple[str, ...]
    trial_url: str
    step_url: str  # the trial at its deciding step; "" when none is known
    task_url: str  # the form that makes a task of the trial; "" where this person may not
    previous_url: str
    next_url: str
    is_open: bool
    closed_words: str  # why it waits no longer
    closed_at: datetime | None
    reasons: tuple[CaseReason, ...]
    no_reason: str  # where no requirement is open: why it is a case all the same
    steps: tuple[CaseStep, ...]
    facts: tuple[Fact, ...]
    history: tuple[CaseMoment, ...]
    assignee: str
    due: CaseDue | None
    workers: tuple[Option, ...]
    seen: str  # the assignee that the page showed
    assign_url: str
    take_button: bool
    assign_errors: tuple[str, ...]
    due_form: forms.Form
    due_url: str
    comment_form: forms.Form
    comment_url: str
    aside_form: forms.Form
    aside_url: str
    work_why_not: str  # why this person neither dates nor sets aside; "" when they may
    take_up_url: str  # "": it is not set aside
    take_up_why_not: str
    additions: tuple[Fact, ...] = ()
    marks: tuple[CaseMark, ...] = ()
    hidden: HiddenCriteria | None = None  # kept from who may be asked for a blind label


@dataclass(frozen=True, slots=True)
class CaseMark:
    """A mark that holds on a criterion of the task."""

    criterion: str
    word: str  # defective | ambiguous
    reason: str
    by: str
    at: datetime
    withdraw_url: str
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MissingPart:
    """A part of a trial's evidence: recorded, added, or missing."""

    name: str  # "final_state"
    words: str  # "state after the run"
    state: str  # recorded | added | missing
    detail: str = ""
    is_declared: bool = False  # the contract declares it


@dataclass(frozen=True, slots=True)
class AdditionRow:
    """Evidence that was added."""

    order: int
    parts: str
    source: str
    reason: str
    by: str
    at: datetime
    digest: str


@dataclass(frozen=True, slots=True)
class EvidenceFormPage:
    """The form that adds evidence which a trial did not record."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    trial: Link
    disposition: Badge
    parts: tuple[MissingPart, ...]
    open_calls: tuple[Link, ...]  # calls without a result
    n_more_calls: int
    example: str  # JSON of what is missing
    additions: tuple[AdditionRow, ...]
    form: forms.Form
    action: str
    back: str
    findings: tuple[Fact, ...] = ()  # place and sentence of what is wrong


@dataclass(frozen=True, slots=True)
class MarkChoice:
    """A criterion that can be marked."""

    value: str  # of its radio button
    label: str
    note: str
    is_chosen: bool
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class MarkFormPage:
    """The form that marks a check, fixture or rubric that is at fault."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    trial: Link
    task: Link
    contract: Link | None
    disposition: Badge
    choices: tuple[MarkChoice, ...]
    marks: tuple[CaseMark, ...]
    n_trials: int  # of the task, decided anew
    seen: str  # the contract that it shows, sent back with it
    form: forms.Form
    action: str
    back: str
