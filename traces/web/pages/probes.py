"""Pages of probes: the batches, the form that makes one, and one batch with what judges made of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Fact, Link
from traces.web.pages.trials import TextBlock


@dataclass(frozen=True, slots=True)
class ProbeBatchRow:
    """A batch in the list."""

    batch: Link
    criterion: str
    version: str  # of its rubric, "" without one
    what: str  # "35 probes of 5 trials"
    judges: str  # "2 judge versions", "no judge yet"
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ProbeKindChoice:
    """A kind of change to choose, in plain words."""

    value: str
    name: str
    sentence: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ProbeForm:
    """The form that makes a batch."""

    form: forms.Form
    action: str
    criteria: tuple[Option, ...]
    kinds: tuple[ProbeKindChoice, ...]
    is_drawn: bool  # else the trials are named
    why_not: str  # why this person makes none; "" when they may


@dataclass(frozen=True, slots=True)
class ProbeListPage:
    """The batches of probes of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    rows: tuple[ProbeBatchRow, ...]
    pager: Pager
    new: ProbeForm | None  # None: there is nothing that judges could be tried on
    empty: Empty | None


@dataclass(frozen=True, slots=True)
class ProbeKindLine:
    """What a judge made of one kind of probe."""

    name: str
    must: str  # "must hold"
    held: int
    fell: int
    flipped: int
    right: int
    wrong: int
    open: int  # tells nothing, or nothing yet
    missing: int


@dataclass(frozen=True, slots=True)
class ProbeJudge:
    """A judge version and what it made of a batch."""

    name: str
    href: str  # its calibration card
    state: Badge
    sentence: str
    lines: tuple[ProbeKindLine, ...]


@dataclass(frozen=True, slots=True)
class ProbeEdit:
    """One place that is changed in a copy."""

    place: str
    before: TextBlock | None  # None: something was added
    after: TextBlock | None


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What a judge said of one probe."""

    judge: str
    said: str  # "pass, score 0.9"
    result: str  # "held", "" where there is nothing to compare with
    state: str  # pass | fail | unresolved
    word: str  # "right", "wrong", "tells nothing"
    sentence: str


@dataclass(frozen=True, slots=True)
class ProbeLine:
    """One probe."""

    id: str
    position: int  # its line in the bundle
    blind_name: str
    name: str  # of its kind
    sentence: str  # what was changed
    must: str
    edits: tuple[ProbeEdit, ...]
    answers: tuple[ProbeAnswer, ...]


@dataclass(frozen=True, slots=True)
class ProbeTrial:
    """A trial with the copies that were made of it."""

    trial: Link
    below: tuple[str, ...]  # release
    probes: tuple[ProbeLine, ...]
    not_made: tuple[str, ...]  # sentences
    hidden: str  # why this person sees nothing of it; "" when they do
    badges: tuple[Badge, ...] = ()  # how its probes came out
    is_open: bool = False  # something in it asks for a look


@dataclass(frozen=True, slots=True)
class ProbeBatchPage:
    """One batch of probes."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    criterion: str
    question: str
    made: str  # "35 probes of 5 trials: 5 unchanged, 5 padded, …"
    may_fall: str  # a sentence; "" where padded copies must hold
    bundle_url: str
    api_path: str  # of the bundle, behind the version
    example: str  # a line that brings a verdict back
    commands: tuple[str, ...]
    facts: tuple[Fact, ...]
    reason: str
    judges: tuple[ProbeJudge, ...]
    more_judges: str
    trials: tuple[ProbeTrial, ...]
    pager: Pager
