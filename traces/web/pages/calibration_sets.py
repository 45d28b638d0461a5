"""Pages of calibration sets: the list, one set, the form that makes one, and the import of labels."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Choice, Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Fact, Link, Notice
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class PersonBar:
    """How many items of a set somebody labelled."""

    name: str
    n: int
    of: int


@dataclass(frozen=True, slots=True)
class SetLine:
    """A set in the list."""

    name: Link
    number: int
    criterion: str
    rubric_version: str
    sampling: str
    state: Badge
    by: str
    made_at: datetime
    n_items: int
    n_settled: int
    n_withdrawn: int
    people: tuple[PersonBar, ...]
    n_left: int | None  # for the person who looks; None: they label nothing of it
    label_url: str  # "": nothing to label
    why_not: str  # why they label nothing of an open set; "" else
    vouch_url: str  # "": nothing to vouch for, or not by them


@dataclass(frozen=True, slots=True)
class Reminder:
    """A judge that is to be calibrated again."""

    judge: Link
    criterion: str
    words: str  # "until 2026-12-12", "ended on 2026-11-30"
    is_past: bool
    act: Link  # the set that is open, or the form that makes the next one; href "" for none


@dataclass(frozen=True, slots=True)
class SetListPage:
    """The calibration sets of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    reminders: tuple[Reminder, ...]
    rows: tuple[SetLine, ...]
    pager: Pager
    new_url: str
    new_why_not: str
    import_url: str
    import_why_not: str
    notices: tuple[Notice, ...]
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class StratumLine:
    """How many trials of a kind qualify, or were wanted and drawn."""

    name: str
    help: str
    n_found: int
    n_wanted: int | None = None
    n_drawn: int | None = None
    shortage: str = ""


@dataclass(frozen=True, slots=True)
class SetFormPage:
    """The form that makes a set."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    criteria: tuple[Option, ...]
    releases: tuple[Option, ...]
    families: tuple[Option, ...]
    environments: tuple[Option, ...]  # tests, production or both
    look_url: str  # takes the choices above, and shows what qualifies
    question: str
    strata: tuple[StratumLine, ...]
    families_found: tuple[tuple[str, int], ...]
    more_families: int
    n_found: int
    advice: tuple[str, ...]
    notices: tuple[Notice, ...]
    form: forms.Form
    hidden: tuple[Hidden, ...]
    action: str
    cancel_url: str
    why_not: str = ""
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class LabelLine:
    """What somebody said of an item."""

    labeller: str
    value: Badge
    round: str  # "first", "second", "third"
    reason: str
    steps: tuple[Link, ...]
    given_at: datetime


@dataclass(frozen=True, slots=True)
class ItemLine:
    """An item of a set."""

    id: str
    position: int
    trial: Link
    below: tuple[str, ...]
    state: Badge
    detail: str  # why it was withdrawn
    stratum: str
    labels: tuple[LabelLine, ...]
    withdraw_url: str  # the form; "" where nothing is to be withdrawn


@dataclass(frozen=True, slots=True)
class NoteLine:
    """That somebody left an item to others, or saw what others say of it."""

    item: Link
    who: str
    what: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class SetForm:
    """A form on the page of a set: a reason, and the button that does it."""

    heading: str
    sentence: str
    form: forms.Form
    action: str
    button: str
    hidden: tuple[Hidden, ...] = ()
    cancel_url: str = ""
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class SetPage:
    """One calibration set."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    name: str
    number: int
    state: Badge
    criterion: str
    question: str
    notices: tuple[Notice, ...]
    facts: tuple[Fact, ...]
    strata: tuple[StratumLine, ...]
    n_items: int
    n_settled: int
    people: tuple[PersonBar, ...]
    n_left: int | None
    label_url: str
    label_why_not: str
    withdraw: SetForm | None
    vouch: SetForm | None
    close: SetForm | None
    tabs: tuple[Choice, ...]
    rows: tuple[ItemLine, ...]
    pager: Pager
    notes: tuple[NoteLine, ...]
    csv_url: str
    jsonl_url: str
    export_note: str
    empty: Empty | None = None


@dataclass(frozen=True, slots=True)
class RefusedLabel:
    """A line of an import that did not land."""

    line: int  # 0: it has none
    sentence: str


@dataclass(frozen=True, slots=True)
class ImportPage:
    """The form that brings labels in, and what became of a file."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    form: forms.Form
    action: str
    cancel_url: str
    words: tuple[Fact, ...]  # verdicts, and the words that stand for them
    landed: str  # what became of it; "" before anything was sent
    made: Link | None
    refused: tuple[RefusedLabel, ...]
    refused_words: str
    empty: Empty | None = None
