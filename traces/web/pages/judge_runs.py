"""Judge runs: a model asked through the operator's endpoint, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Crumb, Option, Pager, Shell
from traces.web.pages.parts import Badge, Empty, Fact, Link
from traces.web.pages.rules import Work


@dataclass(frozen=True, slots=True)
class JudgeRunLine:
    """A judge run in the list."""

    run: Link
    badge: Badge
    criterion: str
    judge: str
    about: str  # "40 of 50 trials", "12 probes"
    errors: str  # "2 errors", "" without any
    cost: str  # "" where it is not known
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class JudgeRunForm:
    """The form that starts a run."""

    form: forms.Form
    action: str
    judge: str  # "site judge, model m-1, at models.example.org/v1/chat/completions"
    criteria: tuple[Option, ...]
    releases: tuple[Option, ...]
    batches: tuple[Option, ...]
    asks: str  # "This sends 12 requests: …", "" where nobody counted
    error: str
    why_not: str  # why this person starts none, or nobody can; "" where they may


@dataclass(frozen=True, slots=True)
class JudgeRunListPage:
    """The judge runs of a system, newest first."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    rows: tuple[JudgeRunLine, ...]
    pager: Pager
    empty: Empty | None
    not_set_up: str  # that the operator gave no endpoint; "" where one is given
    new: JudgeRunForm | None  # None: there is no criterion that a judge could be asked


@dataclass(frozen=True, slots=True)
class JudgeRunCount:
    """How many answers were of one kind."""

    word: str
    state: str  # pass | fail | unresolved | harness-error
    n: int


@dataclass(frozen=True, slots=True)
class JudgeRunReason:
    """Why items ended as errors."""

    sentence: str
    n: int


@dataclass(frozen=True, slots=True)
class JudgeRunItemLine:
    """One trial or probe of a run."""

    position: int
    thing: Link
    release: str  # "release 1.4", "" for a probe
    word: str  # pass | fail | unknown | error | hidden | not asked | ""
    state: str
    why: str
    took: str  # "1.2 s, 2 tries"
    cost: str


@dataclass(frozen=True, slots=True)
class JudgeRunPage:
    """One judge run: how far it is and what came of it."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sentence: str
    badge: Badge
    error: str
    work: Work | None  # None once it is done
    poll_url: str  # "" while nothing moves
    refresh_url: str
    counts: tuple[JudgeRunCount, ...]
    reasons: tuple[JudgeRunReason, ...]
    items: tuple[JudgeRunItemLine, ...]
    items_note: str
    pager: Pager
    only_errors: Link | None
    facts: tuple[Fact, ...]
    reason: str
    question: str
