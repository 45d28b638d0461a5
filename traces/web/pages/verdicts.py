"""The form by which a person gives a verdict."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms

from evalsite.common.shell import Crumb, Shell
from traces.web.pages.parts import Badge, Link


@dataclass(frozen=True, slots=True)
class CriterionChoice:
    """A criterion that a verdict can be given on."""

    value: str  # of its radio button
    label: str
    notes: str  # "semantic, not mandatory"
    question: str  # of a rubric
    standing: Badge
    rule: str  # why it stands so
    voters: str  # "contract checks says pass; …"
    steps: tuple[Link, ...]  # that others cite
    own: str  # "You gave pass at …": this verdict corrects it
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class VerdictFormPage:
    """The form by which a person gives a verdict on one criterion, or corrects their own."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    trial: Link
    contract: Link | None
    disposition: Badge
    choices: tuple[CriterionChoice, ...]  # one only, where a verdict is corrected
    other: Link | None  # to the form with all criteria
    corrects: str  # "" or the verdict that is corrected
    seen: str  # the contract and evidence that it shows, sent back with it
    n_steps: int
    form: forms.Form
    action: str
    act: str
    back: str
    why_not: str
