"""Risk tiers, their thresholds, which tasks are in them, and the plan of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Fact, Link, Notice
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class VersionNote:
    """A version of thresholds in one line."""

    name: Link  # "Version 3"
    since: datetime
    by: str
    reason: str
    made_at: datetime
    badge: Badge | None = None


@dataclass(frozen=True, slots=True)
class TierCard:
    """A tier in the list."""

    name: Link
    description: str
    badges: tuple[Badge, ...]
    in_force: VersionNote | None
    no_version: str  # why none is in force; "" where one is
    to_come: tuple[VersionNote, ...]
    tasks: Link
    owners: str  # "one owner signs"; "" without thresholds
    sentences: tuple[str, ...]  # what its thresholds say first
    more: str  # "and 6 more checks"
    edit_url: str  # "" where the person may not


@dataclass(frozen=True, slots=True)
class TemplateOffer:
    """Thresholds to begin with."""

    name: str
    description: str
    sentences: tuple[str, ...]
    href: str  # "" where the person may not


@dataclass(frozen=True, slots=True)
class TierListPage:
    """The risk tiers of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    notices: tuple[Notice, ...]
    cards: tuple[TierCard, ...]
    retired: tuple[TierCard, ...]
    offers: tuple[TemplateOffer, ...]
    untiered: Link | None  # tasks that are in no tier
    tasks_url: str
    plan_url: str
    new_url: str  # "" where the person may not
    why_not: str
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class TierFormPage:
    """The form that makes a tier."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    form: forms.Form
    offers: tuple[TemplateOffer, ...]
    cancel_url: str


@dataclass(frozen=True, slots=True)
class ThresholdLine:
    """One check of a threshold set, for reading."""

    name: str
    limit: str  # "≥ 95 %"
    sentence: str


@dataclass(frozen=True, slots=True)
class TierPage:
    """One tier: what is in force, what comes, what was."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    name: str
    description: str
    badges: tuple[Badge, ...]
    notices: tuple[Notice, ...]
    lines: tuple[ThresholdLine, ...]
    off: tuple[str, ...]  # names of checks that are switched off
    facts: tuple[Fact, ...]
    reason: str  # of the version in force
    history: tuple[VersionNote, ...]
    pager: Pager
    edit_url: str
    retire_url: str  # takes a POST; "" where the person may not, or it is retired
    retire_refusal: str  # why it cannot be retired now
    retire_form: forms.Form | None
    plan_url: str
    tasks: Link
    audit_url: str
    why_not: str
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """What one version says of a check that the one before said otherwise."""

    name: str
    was: str
    is_now: str


@dataclass(frozen=True, slots=True)
class ThresholdVersionPage:
    """One version of a tier's thresholds."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    badge: Badge
    facts: tuple[Fact, ...]
    reason: str
    before: Link | None
    changes: tuple[ChangeLine, ...]
    lines: tuple[ThresholdLine, ...]
    off: tuple[str, ...]
    notices: tuple[Notice, ...]
    edit_url: str


@dataclass(frozen=True, slots=True)
class EditorField:
    """One field of a check in the editor. `name` is that of the input, `id` unique on the page."""

    id: str
    name: str
    label: str
    value: str
    unit: str = ""  # shown behind it: "%", "$", "trials"
    help: str = ""
    error: str = ""
    options: tuple[Option, ...] = ()  # a select box where there are any
    hidden: tuple[Hidden, ...] = ()  # sent along


@dataclass(frozen=True, slots=True)
class EditorRow:
    """One check in the editor."""

    kind: str
    name: str
    help: str
    is_on: bool
    always_on: str  # the sentence why it cannot be switched off; "" where it can
    fields: tuple[EditorField, ...]
    decided_by: EditorField | None
    bound_help: str  # what the difference between estimate and bound is
    sentence: str  # what the threshold says as it stands in the form; "" where it is off or wrong
    was: str  # what the version in force says, where that differs
    errors: tuple[str, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Whether anything in it has to be mended."""
        return bool(self.errors) or any(field.error for field in self.fields)


@dataclass(frozen=True, slots=True)
class PreviewCheck:
    """A check of a past release that would come out otherwise."""

    tier: str
    name: str
    was: str
    would_be: str
    state: str  # of what it would be: pass | fail | unresolved | ""
    sentence: str


@dataclass(frozen=True, slots=True)
class PreviewRelease:
    """What thresholds would have meant for one release."""

    release: Link
    was: Badge
    would_be: Badge
    sentence: str
    checks: tuple[PreviewCheck, ...]
    n_same: str  # "14 checks come out the same"


@dataclass(frozen=True, slots=True)
class Preview:
    """What thresholds would have meant for past releases."""

    sentence: str
    releases: tuple[PreviewRelease, ...]
    more: str = ""


@dataclass(frozen=True, slots=True)
class ThresholdEditPage:
    """The editor of a tier's thresholds."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    notices: tuple[Notice, ...]
    errors: tuple[str, ...]
    groups: tuple[tuple[str, tuple[EditorRow, ...]], ...]
    owners: EditorField
    requests: EditorField
    reason: EditorField
    when: str  # now | later
    since: EditorField
    seen: int
    preview: Preview | None
    cancel_url: str
    templates: tuple[Choice, ...]  # what to begin with


@dataclass(frozen=True, slots=True)
class TierTaskLine:
    """A task with the tier that it is in."""

    task: Link
    title: str
    family: Link | None
    split: str
    tier: Link | None
    is_own: bool
    since: datetime | None
    by: str
    reason: str
    move_url: str


@dataclass(frozen=True, slots=True)
class TierMoveLine:
    """Who put what into which tier."""

    what: Link
    tier: Link | None
    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class TierMoveForm:
    """The form that puts a task, a family or the system into a tier."""

    heading: str
    sentence: str
    form: forms.Form
    action: str
    hidden: tuple[Hidden, ...]
    cancel_url: str
    why_not: str


@dataclass(frozen=True, slots=True)
class TierTasksPage:
    """The tasks of a system with their tiers."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    own_words: str  # which tier the system has of its own, and why
    own_url: str  # changes it; "" where the person may not
    form: TierMoveForm | None
    families: tuple[Option, ...]
    tiers: tuple[Option, ...]
    query: str
    action: str
    clear_url: str
    family_move: Link | None
    total: str
    rows: tuple[TierTaskLine, ...]
    pager: Pager
    history: tuple[TierMoveLine, ...]
    history_pager: Pager
    why_not: str
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One line of a small table of the planner."""

    cells: tuple[str, ...]
    is_yours: bool = False  # the line of what was asked for


@dataclass(frozen=True, slots=True)
class PlanTable:
    """A small table of the planner, with the sentence that it shows."""

    heading: str
    sentence: str
    columns: tuple[str, ...]
    rows: tuple[PlanRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplePlanPage:
    """How many trials thresholds need, and what they can tell."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    fields: tuple[EditorField, ...]
    tiers: tuple[Option, ...]
    releases: tuple[Option, ...]
    action: str
    errors: tuple[str, ...]
    answers: tuple[str, ...]  # the sentences first
    tables: tuple[PlanTable, ...]
    is_filled: bool
