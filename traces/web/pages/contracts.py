"""Contracts of tasks: the list, one task, one version, drafts, previews and proposals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Fact, Link, Notice
from traces.web.pages.rules import Work
from traces.web.pages.tasks import Hidden

LONG_LINES = 12
"""An entry of a difference with so many lines is folded."""


@dataclass(frozen=True, slots=True)
class ContractLine:
    """A task of the list with its contract."""

    task: Link  # to the contract of the task
    title: str
    family: str
    split: str
    n_trials: int
    badge: Badge
    waiting: Link | None  # the proposal that waits


@dataclass(frozen=True, slots=True)
class ContractListPage:
    """The tasks of a system with their contracts."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    tabs: tuple[Choice, ...]
    sentence: str
    states: tuple[Choice, ...]
    families: tuple[Option, ...]
    query: str
    action: str
    hidden: tuple[Hidden, ...]
    clear_url: str
    rows: tuple[ContractLine, ...]
    drafts: tuple[Link, ...]
    pager: Pager
    empty: Empty | None
    new_url: str  # "" where the person may not
    load_url: str
    export_url: str  # "" while there is nothing to export
    schema_url: str
    why_not: str


@dataclass(frozen=True, slots=True)
class ProposalLine:
    """A proposal in a list."""

    label: str
    href: str
    badge: Badge
    tasks: str  # "task a, task b and 3 more"
    reason: str
    by: str
    at: datetime
    decision: str  # "approved by Rita Cho", "" while nobody decided
    decided_at: datetime | None = None
    decision_reason: str = ""
    regrade: Link | None = None


@dataclass(frozen=True, slots=True)
class ProposalListPage:
    """The proposals of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    tabs: tuple[Choice, ...]
    states: tuple[Choice, ...]
    rows: tuple[ProposalLine, ...]
    pager: Pager
    empty: Empty | None


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of a contract's text."""

    number: int
    text: str
    notes: tuple[str, ...] = ()  # what is wrong with it
    kind: str = ""  # "added", "removed", "" in a difference; "skipped" for lines left out
    before: int | None = None  # its number in the earlier text


@dataclass(frozen=True, slots=True)
class EntryPart:
    """Words, what they name, and the expression that narrows it."""

    lead: str
    name: str = ""
    where: str = ""


@dataclass(frozen=True, slots=True)
class EntryLine:
    """A requirement in words."""

    id: str
    parts: tuple[EntryPart, ...]
    note: str
    is_mandatory: bool
    marks: tuple[MarkLine, ...] = ()


@dataclass(frozen=True, slots=True)
class MarkLine:
    """A mark on a criterion or the fixture, as far as it holds."""

    badge: Badge
    reason: str
    by: str
    at: datetime
    href: str  # the trial on which it was seen; "" for none


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """Requirements of one kind."""

    heading: str
    note: str
    entries: tuple[EntryLine, ...]
    harm: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeCaseLines:
    """One case of the outcome in words."""

    lead: str
    when: str
    lines: tuple[EntryPart, ...]


@dataclass(frozen=True, slots=True)
class GraderTestRow:
    """A planted trial with what its checks were expected to say, and said."""

    name: str
    is_met: bool
    unmet: tuple[str, ...]  # "identity: pass expected, fail found: …"


@dataclass(frozen=True, slots=True)
class ContractBody:
    """What a contract says: in words, as text, and by its grader tests."""

    cases: tuple[OutcomeCaseLines, ...]
    outcome_marks: tuple[MarkLine, ...]
    groups: tuple[EntryGroup, ...]
    facts: tuple[Fact, ...]  # task, family, split, evidence, trials a run
    variation: tuple[str, ...]
    lines: tuple[CodeLine, ...]
    tests: tuple[GraderTestRow, ...]
    tests_words: str
    problem: str = ""  # why this version of the product cannot read it

    @property
    def has_unmet_tests(self) -> bool:
        """Whether a grader test is not met."""
        return any(not test.is_met for test in self.tests)


@dataclass(frozen=True, slots=True)
class VersionOfContract:
    """A version in the history of a task's contract."""

    label: str
    href: str
    badge: Badge
    reason: str
    by: str
    at: datetime
    proposal: Link
    decision: str
    decided_at: datetime | None = None
    regrade: Link | None = None


@dataclass(frozen=True, slots=True)
class ContractDetailPage:
    """The contract of one task."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    badge: Badge
    notices: tuple[Notice, ...]
    proposals: tuple[Link, ...]  # that wait
    task: Link
    body: ContractBody | None
    empty: Empty | None
    fixture_marks: tuple[MarkLine, ...]
    history: tuple[VersionOfContract, ...]
    pager: Pager
    edit_url: str  # "" where the person may not
    why_not: str
    file_url: str  # the text as a file; "" without one


@dataclass(frozen=True, slots=True)
class EntryChange:
    """What became of one entry between two versions."""

    kind: str  # "added", "removed", "changed"
    name: str  # "required identity"
    before: str  # YAML
    after: str
    is_other_check: bool = False  # what it asks differs: verdicts given on it before do not count

    @property
    def is_long(self) -> bool:
        """Whether it would hide what stands below it."""
        return max(self.before.count("\n"), self.after.count("\n")) >= LONG_LINES


@dataclass(frozen=True, slots=True)
class ContractChange:
    """The difference between two versions: by entry, and by line."""

    heading: str
    entries: tuple[EntryChange, ...]
    lines: tuple[CodeLine, ...]
    words: str  # why there is nothing to show


@dataclass(frozen=True, slots=True)
class ContractVersionPage:
    """One version of a task's contract."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    badge: Badge
    facts: tuple[Fact, ...]
    reason: str
    change: ContractChange | None
    body: ContractBody
    edit_url: str
    file_url: str


@dataclass(frozen=True, slots=True)
class FindingLine:
    """Something wrong in a text."""

    place: str  # "Line 12, column 5"
    field: str  # "required[0].where"
    href: str  # to the line; "" where none can be named
    line: int  # 0 for none
    column: int
    sentence: str


@dataclass(frozen=True, slots=True)
class ContractFormPage:
    """The editor, or the form that takes a file."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    action: str
    cancel_url: str
    form: forms.Form
    hidden: tuple[Hidden, ...]
    notices: tuple[Notice, ...]
    error: str
    findings: tuple[FindingLine, ...]
    findings_words: str
    wrong: str  # the numbers of the lines with a finding, for the script of the editor
    lines: tuple[CodeLine, ...]  # the text as it was read, where something is wrong with it
    schema_url: str
    other: Link  # the other way in
    is_file: bool


@dataclass(frozen=True, slots=True)
class Move:
    """Trials that go from one disposition to another."""

    before: Badge
    after: Badge
    n_trials: int
    why: str = ""  # the criteria that fail or are open now
    examples: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class ContractEffectRow:
    """A task in which dispositions change."""

    task: Link
    counts: str  # "3 of 10 trials change"
    moves: tuple[Move, ...]
    newly_failing: str  # criteria that did not fail before, with counts


@dataclass(frozen=True, slots=True)
class ContractEffect:
    """What contracts do to the stored trials."""

    heading: str
    headline: str
    words: str
    nothing: str  # said where no disposition changes
    moves: tuple[Move, ...]
    tasks: tuple[ContractEffectRow, ...]
    n_more_tasks: int
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DraftedTask:
    """A contract of a draft or proposal, with what it changes."""

    task: Link
    badge: Badge  # "new", "version 3"
    change: ContractChange | None
    tests: tuple[GraderTestRow, ...]
    tests_words: str
    edit_url: str
    version_url: str = ""

    @property
    def has_unmet_tests(self) -> bool:
        """Whether a grader test is not met."""
        return any(not test.is_met for test in self.tests)


@dataclass(frozen=True, slots=True)
class ContractPreviewPage:
    """What drafted contracts would do, before anybody proposes them."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    notices: tuple[Notice, ...]
    work: Work | None
    effect: ContractEffect | None
    drafts: tuple[DraftedTask, ...]
    n_more_drafts: int
    poll_url: str
    refresh_url: str
    form: forms.Form | None  # None where it cannot be proposed
    action: str
    error: str
    why_not: str
    proposed: Link | None
    again_label: str  # "" for no reason to preview again
    leave_url: str


@dataclass(frozen=True, slots=True)
class ContractProposalPage:
    """Proposed contracts: what they change, and who decides."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    badge: Badge
    notices: tuple[Notice, ...]
    error: str
    facts: tuple[Fact, ...]
    reason: str
    work: Work | None
    effect: ContractEffect | None
    effect_words: str
    drafts: tuple[DraftedTask, ...]
    n_more_drafts: int
    poll_url: str
    refresh_url: str
    decide: forms.Form | None  # None once it is decided
    decide_url: str
    decide_refusal: str
    approve_refusal: str
    withdraw: forms.Form | None  # None where the person may not
    withdraw_url: str
    again_label: str  # "" for no reason to preview again
