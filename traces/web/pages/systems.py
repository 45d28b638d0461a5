"""The start page, and signing in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django import forms

from evalsite.common.shell import Shell
from traces.web.pages.parts import Counts, Empty


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system that the person is a member of."""

    name: str
    href: str
    description: str
    role: str
    n_tasks: int
    n_releases: int
    counts: Counts
    last_upload_at: datetime | None
    source_note: str = ""  # licence and source of sample data


@dataclass(frozen=True, slots=True)
class SystemListPage:
    """The start: the person's systems."""

    shell: Shell
    systems: tuple[SystemRow, ...]
    empty: Empty | None = None  # set when there is no system
    new_url: str = ""  # makes a system of one's own


@dataclass(frozen=True, slots=True)
class SystemFormPage:
    """A new system. The form has `name`."""

    shell: Shell
    form: forms.Form
    action: str


@dataclass(frozen=True, slots=True)
class DemoRole:
    """A one-click sign-in of the demo."""

    value: str
    label: str
    help: str


@dataclass(frozen=True, slots=True)
class SignInPage:
    """Signing in. `demo_roles` is empty outside of the demo."""

    form: forms.Form
    action_url: str
    next_url: str = ""
    demo_url: str = ""
    demo_roles: tuple[DemoRole, ...] = ()
