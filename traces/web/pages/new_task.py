"""The form that makes a task of a trial."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms

from evalsite.common.shell import Crumb, Shell
from traces.web.pages.parts import Badge, Link


@dataclass(frozen=True, slots=True)
class TextFinding:
    """What is wrong with the contract's text."""

    place: str  # "line 3, required[0].where"
    sentence: str


@dataclass(frozen=True, slots=True)
class NewTaskPage:
    """The form that makes a task of a trial, prefilled."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    trial: Link
    disposition: Badge
    form: forms.Form
    split_note: str  # why the split is fixed
    contract_note: str  # where the text comes from
    findings: tuple[TextFinding, ...]
    made: tuple[Link, ...]  # tasks that were made of it before
    action: str
    back: str
    why_not: str
