"""The forms by which an owner signs a release, or declares a signature void."""

from __future__ import annotations

from datetime import date
from typing import Any

from django import forms

from reviews.core.gate.signing import MOST_CHARACTERS, OpenCheck, Terms
from reviews.core.gate.states import Meaning
from traces.core.text_marks import clean_text

_FIELDS = {
    Meaning.APPROVED: ("intended_use", "scope", "expires_on", "reason"),
    Meaning.WAIVER: ("reason", "scope", "expires_on", "intended_use"),
    Meaning.REJECTED: ("reason", "next_action"),
}
WORDS = frozenset(name for names in _FIELDS.values() for name in names)
"""The fields of all meanings: all but the password and what stands in no field."""
_OPTIONAL = {
    Meaning.APPROVED: frozenset({"reason"}),
    Meaning.WAIVER: frozenset({"intended_use"}),
    Meaning.REJECTED: frozenset[str](),
}


def _text(label: str, words: str, missing: str, *, rows: int = 2) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=words,
        max_length=MOST_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": rows, "maxlength": MOST_CHARACTERS}),
        error_messages={"required": missing},
    )


class SignForm(forms.Form):
    """What an owner signs under: the fields of the meaning, and the password."""

    intended_use = _text(
        "Intended use",
        "What the release is approved for: “Refunds up to 200 dollars, in chat”.",
        "Say what the release is approved for.",
    )
    scope = _text(
        "Scope",
        "Where it holds: customers, languages, share of requests.",
        "Say where it holds.",
    )
    expires_on = forms.DateField(
        label="Expires on",
        input_formats=["%Y-%m-%d"],
        help_text="The last day on which the signature holds. It stays visible after that.",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        error_messages={
            "required": "Give the last day on which the signature holds.",
            "invalid": "Write the date as year, month, day: 2027-03-31.",
        },
    )
    reason = _text("Reason", "It stays in the record.", "Say why.", rows=3)
    next_action = _text(
        "Next action", "What has to happen before anybody asks again.", "Say what has to happen."
    )
    password = forms.CharField(
        label="Your password",
        help_text="Asked at every signature, so that nobody else signs in your name.",
        strip=False,
        max_length=1_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        error_messages={"required": "Give your password."},
    )
    seen_digest = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(
        self, meaning: Meaning, data: Any = None, *, joins: Terms | None = None, digest: str = ""
    ) -> None:
        super().__init__(data, initial={"seen_digest": digest})
        self.meaning = meaning
        self.joins = joins
        names = _FIELDS[meaning] if joins is None else ("reason",)
        for name in tuple(self.fields):
            if name not in (*names, "password", "seen_digest"):
                del self.fields[name]
        for name in names:
            optional = joins is not None and meaning is not Meaning.WAIVER
            self.fields[name].required = not optional and name not in _OPTIONAL[meaning]
        self.order_fields([*names, "password", "seen_digest"])

    def terms(self, waived: OpenCheck | None) -> Terms:
        """The words that are signed; those of the first owner where a second one joins."""
        given = self.cleaned_data
        if self.joins is not None:
            first = self.joins
            return Terms(
                first.meaning,
                first.intended_use,
                first.scope,
                first.expires_on,
                self._said("reason"),
                "",
                first.waived_tier,
                first.waived_check,
            )
        expires_on = given.get("expires_on")
        names_check = waived is not None and self.meaning is Meaning.WAIVER
        return Terms(
            meaning=self.meaning,
            intended_use=self._said("intended_use"),
            scope=self._said("scope"),
            expires_on=expires_on if isinstance(expires_on, date) else None,
            reason=self._said("reason"),
            next_action=self._said("next_action"),
            waived_tier=waived.tier if waived and names_check else "",
            waived_check=waived.kind.value if waived and names_check else "",
        )

    def _said(self, name: str) -> str:
        text = self.cleaned_data.get(name)
        return clean_text(text).replace("\r\n", "\n").strip() if isinstance(text, str) else ""
