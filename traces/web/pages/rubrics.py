"""Pages of rubrics: named, versioned texts of what a criterion asks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Crumb, Shell
from traces.web.pages.parts import Badge, Empty, Link


@dataclass(frozen=True, slots=True)
class RubricLine:
    """A rubric of the list."""

    name: Link
    texts: str  # "3 texts, newest 2"
    used: str  # "version 2 in 4 tasks, version 1 in 1 task"
    badges: tuple[Badge, ...]


@dataclass(frozen=True, slots=True)
class RubricUseLine:
    """A version of a rubric as contracts in effect ask for it."""

    version: str  # "" where the contract names none
    question: str
    n_tasks: int
    tasks: tuple[Link, ...]
    more: str  # "and 3 more"
    note: str  # that its text is not written down, or is another one


@dataclass(frozen=True, slots=True)
class RubricTextLine:
    """One text of a rubric."""

    version: str
    text: str
    reason: str
    by: str
    at: datetime
    used: str  # "asked for by 4 tasks", or that no contract asks for it


@dataclass(frozen=True, slots=True)
class RequestLine:
    """A request for a clearer text."""

    id: int
    criterion: Link
    version: str
    reason: str
    by: str
    at: datetime
    trial: Link
    outcome: str  # "" while it is open
    close_url: str  # "" where the person may not, or it is closed


@dataclass(frozen=True, slots=True)
class RubricForm:
    """The form that writes a text."""

    form: forms.Form
    action: str
    heading: str
    sentence: str
    answers: tuple[RequestLine, ...]  # open requests that the text may answer
    chosen: frozenset[int]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class RubricListPage:
    """The rubrics of a system."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    rows: tuple[RubricLine, ...]
    requests: tuple[RequestLine, ...]  # open ones
    new: RubricForm
    empty: Empty | None


@dataclass(frozen=True, slots=True)
class RubricPage:
    """One rubric with its texts."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    name: str
    uses: tuple[RubricUseLine, ...]
    texts: tuple[RubricTextLine, ...]
    requests: tuple[RequestLine, ...]  # open ones first
    new: RubricForm
    judges: Link
