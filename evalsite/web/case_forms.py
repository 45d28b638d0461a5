"""The forms of one case."""

from __future__ import annotations

from dataclasses import dataclass, field

from django import forms

from reviews.services.cases import LONGEST_TEXT


class DueForm(forms.Form):
    """Until when a case should be settled."""

    due_on = forms.DateField(
        required=False,
        label="Due",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        input_formats=["%Y-%m-%d"],
        error_messages={"invalid": "Write a date as 2026-12-31."},
    )


class CommentForm(forms.Form):
    """What somebody says about a case."""

    comment = forms.CharField(
        max_length=LONGEST_TEXT, widget=forms.Textarea(attrs={"rows": 2}), label="Comment"
    )


class AsideForm(forms.Form):
    """Why a case is set aside."""

    reason = forms.CharField(
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="The case opens again by itself when its next actions become others.",
    )


class RerunForm(forms.Form):
    """Why a further attempt is asked for."""

    reason = forms.CharField(
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What broke, and what is different now.",
    )


@dataclass(slots=True)
class CaseForms:
    """All forms of one case's page; the one that was sent is bound."""

    due: DueForm = field(default_factory=lambda: DueForm(auto_id="id_due_%s"))
    comment: CommentForm = field(default_factory=lambda: CommentForm(auto_id="id_comment_%s"))
    aside: AsideForm = field(default_factory=lambda: AsideForm(auto_id="id_aside_%s"))
    rerun: RerunForm = field(default_factory=lambda: RerunForm(auto_id="id_rerun_%s"))
    assign_errors: tuple[str, ...] = ()
