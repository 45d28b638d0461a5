"""Rules of a system: in force, proposed, suggested, previewed, and their history."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms
from django.forms.boundfield import BoundField

from evalsite.common.shell import Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Fact, Link, Notice
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class Work:
    """Background work and how far it is."""

    heading: str  # "Version 3 is being worked out"
    sentence: str
    badge: Badge
    percent: int | None  # None while it is not counted
    is_moving: bool
    failure: str = ""
    href: str = ""  # the version
    action: str = ""  # takes a POST with `act`; "" where the person may not
    may_stop: bool = False
    may_restart: bool = False
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One version in a list."""

    number: int
    href: str
    badge: Badge
    reason: str
    by: str
    at: datetime
    changes: tuple[str, ...]
    n_more_changes: int
    decision: str  # "approved by Rita Cho", "" while nobody decided
    decided_at: datetime | None = None
    decision_reason: str = ""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule in force."""

    name: str  # calculate.expression
    sentence: str  # without the name
    scope: str  # "" for all tasks
    reason: str
    author: str
    since: Link  # the version that brought it
    use: str  # "applied to 120 distinct calls"
    is_unused: bool
    change_url: str = ""
    place: str = ""  # what the form that drops it sends; "" where the person may not


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool and how it counts."""

    name: str
    kind: str  # "read", "not set"
    is_set: bool
    calls: str  # "120 distinct calls"


@dataclass(frozen=True, slots=True)
class SuggestionRow:
    """A rule that the stored paths suggest."""

    sentence: str
    effect: str  # "7 paths fewer in 1 task"
    examples: tuple[str, ...]
    rule: str = ""  # what the form that previews it sends; "" where the person may not
    edit_url: str = ""


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What the stored paths suggest, and how old that is."""

    rows: tuple[SuggestionRow, ...]
    words: str
    found_at: datetime | None
    percent: int | None
    is_moving: bool
    failure: str = ""
    again_url: str = ""  # takes a POST; "" where the person may not

    @property
    def can_choose(self) -> bool:
        """Whether the person may preview several of them together."""
        return len(self.rows) > 1 and bool(self.rows[0].rule)


@dataclass(frozen=True, slots=True)
class RulesPage:
    """The rules of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    sentence: str
    error: str  # why an act on this page was refused
    work: Work | None
    proposals: tuple[VersionLine, ...]
    drafts: tuple[Link, ...]
    rules: tuple[RuleRow, ...]
    rules_words: str
    use_words: str  # as of when the use was counted
    tools: tuple[ToolRow, ...]
    tools_words: str
    n_unset: int
    suggestions: Suggestions
    history: tuple[VersionLine, ...]
    pager: Pager
    new_url: str  # "" where the person may not propose
    kinds_url: str
    action: str
    why_not: str
    poll_url: str


@dataclass(frozen=True, slots=True)
class KindChoice:
    """A kind of rule that one may choose, with the fields of its own."""

    value: str
    id: str
    label: str
    line: str  # what it does, with an example
    fit: str  # what it would make of the two values; "" without two, or where it does not fit
    is_checked: bool
    fields: tuple[BoundField, ...]


@dataclass(frozen=True, slots=True)
class RuleFormPage:
    """The form that makes or changes a rule: first the tool, then the rest."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    action: str
    cancel_url: str
    form: forms.Form
    tool: str  # "" until one is chosen
    tool_value: str  # as the form sends it
    tools: tuple[Option, ...]
    other_tool_url: str
    hidden: tuple[Hidden, ...]
    arguments: tuple[Option, ...]
    is_argument_typed: bool
    tasks: tuple[Option, ...]
    left: str | None  # the two values that a reader found different
    right: str | None
    has_values: bool
    fitting: tuple[KindChoice, ...]  # kinds that make the two values equal
    kinds: tuple[KindChoice, ...]  # the others
    earlier: str  # the rule that stands at this place already

    @property
    def has_argument(self) -> bool:
        """Whether an argument is chosen so far, or typed in."""
        return any(option.is_selected for option in self.arguments) or self.is_argument_typed

    @property
    def is_other_chosen(self) -> bool:
        """Whether a kind is chosen that leaves the two values different."""
        return any(choice.is_checked for choice in self.kinds)


@dataclass(frozen=True, slots=True)
class ToolKindRow:
    """A tool of the form of tool kinds."""

    name: str
    field: str
    options: tuple[Option, ...]
    calls: str
    is_set: bool


@dataclass(frozen=True, slots=True)
class ToolKindsPage:
    """The form that says which tools read, write and hand over."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    action: str
    cancel_url: str
    error: str
    rows: tuple[ToolKindRow, ...]
    words: str


@dataclass(frozen=True, slots=True)
class LevelRow:
    """Passing paths at one level before and after a change."""

    level: str
    help: str
    n_before: int
    n_after: int
    n_before_messages: int | None  # with agent messages; None where they make no difference
    n_after_messages: int | None

    @property
    def difference(self) -> str:
        """What the change takes away or adds: "-3", "+1", "0"."""
        return f"{self.n_after - self.n_before:+,}" if self.n_after != self.n_before else "0"


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One part of a change."""

    sentence: str
    reason: str = ""  # that was given with the rule; "" for what has none


@dataclass(frozen=True, slots=True)
class RegroupingRow:
    """Paths of a task that become other paths."""

    words: str  # "4 paths become 1"
    level: str  # "Equivalent"
    trials: str  # of each path: "5 + 2 + 1 + 1 → 9"
    sentences: tuple[str, ...]
    times: str = ""  # how many that read alike are shown as this one: "twice"


@dataclass(frozen=True, slots=True)
class TaskEffectRow:
    """A task in which paths merge or split."""

    task: Link
    counts: str  # "Equivalent 7 to 4"
    regroupings: tuple[RegroupingRow, ...]
    n_more: int


@dataclass(frozen=True, slots=True)
class Effect:
    """What a change does to the stored paths."""

    headline: str
    nothing: str  # why no path changes; "" where some do
    words: str
    is_past: bool  # somebody has decided on the change
    levels: tuple[LevelRow, ...]
    tasks: tuple[TaskEffectRow, ...]
    n_more_tasks: int


@dataclass(frozen=True, slots=True)
class RulesPreviewPage:
    """What a change would do, before anybody proposes it."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    changes: tuple[ChangeLine, ...]
    n_more_changes: int
    work: Work | None  # while it is worked out, or where that failed
    effect: Effect | None
    poll_url: str
    refresh_url: str
    form: forms.Form | None  # None where it cannot be proposed
    action: str
    error: str
    why_not: str
    proposed: Link | None
    edit_url: str
    again_action: str
    again_label: str
    again_hidden: tuple[Hidden, ...]
    leave_url: str


@dataclass(frozen=True, slots=True)
class RulesVersionPage:
    """One version: what it changes, what that does, who decided."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    badge: Badge
    notices: tuple[Notice, ...]
    error: str
    facts: tuple[Fact, ...]
    reason: str
    changes: tuple[ChangeLine, ...]
    n_more_changes: int
    work: Work | None
    effect: Effect | None
    effect_words: str  # why there is none
    rules: tuple[str, ...]  # all rules of the version, as sentences
    n_more_rules: int
    kinds: tuple[Fact, ...]  # the tools of each kind
    poll_url: str
    refresh_url: str
    decide: forms.Form | None  # None once it is decided
    decide_url: str
    decide_refusal: str
    approve_refusal: str
    withdraw: forms.Form | None  # None where the person may not
    withdraw_url: str
    form_action: str  # previews again, or goes back
    again: tuple[Hidden, ...]
    back: tuple[Hidden, ...]
