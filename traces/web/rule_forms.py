"""Forms about rules: making one, proposing, deciding, withdrawing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django import forms

from traces.core.canonical import canonical_text, value_of_text
from traces.core.limits import Limits
from traces.core.records import Finding
from traces.core.rule_documents import parse_rule, rule_data
from traces.core.rules import (
    Alias,
    ArgumentRule,
    Default,
    RoundTo,
    RuleKind,
    RuleTerms,
    SameTime,
    Time,
)
from traces.core.shown_json import shown_json
from traces.core.strict_json import StrictJsonError, loads_text
from traces.core.values import Json, JsonObject
from traces.models import RulesOutcome
from traces.services.rules import LONGEST_REASON

LONGEST_ARGUMENT = 2_000
_LONGEST_VALUES = 20_000
_LIMITS = Limits(depth=32)
_NOBODY = "-"


class _Reason(forms.CharField):
    """A sentence that says why."""

    def __init__(self, *, label: str, help_text: str = "") -> None:
        super().__init__(
            label=label,
            help_text=help_text,
            max_length=LONGEST_REASON,
            widget=forms.Textarea(attrs={"rows": 3}),
            error_messages={"required": "Say why, in a sentence."},
        )


class ProposeForm(forms.Form):
    """The reason of a proposal."""

    reason = _Reason(
        label="Why should this hold?", help_text="A reviewer or an owner reads it and decides."
    )


class DecideForm(forms.Form):
    """Approve or reject, and why."""

    outcome = forms.ChoiceField(
        choices=[
            (each.value, each.value) for each in (RulesOutcome.APPROVED, RulesOutcome.REJECTED)
        ],
        widget=forms.HiddenInput,
        error_messages={"required": "Approve or reject."},
    )
    reason = _Reason(label="Why?")


class WithdrawForm(forms.Form):
    """Why a proposal is taken back."""

    reason = _Reason(label="Why do you withdraw it?")


class RuleForm(forms.Form):
    """One argument rule. The tool is chosen before, and comes along."""

    argument = forms.CharField(
        required=False, max_length=LONGEST_ARGUMENT * 12, label="Argument", strip=False
    )
    place = forms.CharField(
        required=False,
        max_length=LONGEST_ARGUMENT,
        strip=False,
        label="Another argument",
        help_text='A name, or a JSON Pointer such as "/flights/*/date"; * stands for every element '
        "of a list.",
    )
    task = forms.CharField(required=False, max_length=100, label="Holds for")
    kind = forms.ChoiceField(
        label="When are two values the same?",
        choices=[(kind.value, kind.value) for kind in RuleKind],
        widget=forms.RadioSelect,
        error_messages={"required": "Choose when two values are the same."},
    )
    step = forms.CharField(
        required=False,
        max_length=60,
        label="Step",
        help_text="0.01 makes cents equal; 0.000001 little more than the form of a number.",
    )
    same = forms.ChoiceField(
        required=False,
        label="Same instant or same day",
        choices=[(SameTime.INSTANT.value, "same instant"), (SameTime.DAY.value, "same day")],
    )
    zone = forms.CharField(
        required=False,
        max_length=100,
        label="Zone for the day, when day is chosen",
        help_text='Such as "Europe/Berlin"; UTC when left empty.',
    )
    value = forms.CharField(
        required=False,
        max_length=_LONGEST_VALUES,
        label="The value that absence stands for",
        help_text="As JSON, or plain text.",
    )
    groups = forms.CharField(
        required=False,
        max_length=_LONGEST_VALUES,
        label="Equal values",
        help_text='A line for each group, with = between its values: "economy" = "coach". Values '
        "as JSON, or plain text.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    reason = _Reason(
        label="Why may these differ?",
        help_text="It stands beside the rule for as long as it holds.",
    )

    def clean_argument(self) -> str | None:
        """The chosen argument; None where another one is typed in."""
        chosen = self.cleaned_data["argument"]
        if not chosen:
            return None
        try:
            argument = json.loads(chosen)
        except ValueError:
            argument = None
        if not isinstance(argument, str) or len(argument) > LONGEST_ARGUMENT:
            raise forms.ValidationError("Choose an argument of the list, or type another one.")
        return argument

    def rule(self, *, tool: str, author: str, task_id: str | None) -> ArgumentRule | None:
        """The rule of a valid form; None, with the error at its field, where it cannot be one."""
        given = self.cleaned_data
        argument = given["argument"]
        if argument is None:
            argument = given["place"]
            if not argument:
                self.add_error("argument", "Choose an argument, or type another one.")
                return None
        data: JsonObject = {
            "tool": tool,
            "argument": argument,
            "kind": given["kind"],
            "reason": given["reason"],
            "author": author,
            "task": task_id,
            **self._terms(RuleKind(given["kind"])),
        }
        if self.errors:
            return None
        rule = parse_rule(data, "")
        if isinstance(rule, Finding):
            self.add_error(self._field_of(rule.place), rule.sentence)
            return None
        return rule

    def _field_of(self, place: str) -> str:
        name = place.partition("[")[0]
        return name if name in self.fields else "argument"

    def _terms(self, kind: RuleKind) -> JsonObject:
        given = self.cleaned_data
        match kind:
            case RuleKind.ROUND_TO:
                return {"step": given["step"].strip()}
            case RuleKind.DATETIME:
                return {"same": given["same"], "zone": given["zone"].strip() or "UTC"}
            case RuleKind.DEFAULT:
                if not given["value"]:
                    return {}
                return {"value": self._value("value", given["value"])}
            case RuleKind.ALIAS:
                return {"groups": [*self._groups(given["groups"])]}
            case _:
                return {}

    def _groups(self, text: str) -> Iterator[Json]:
        for line in text.splitlines():
            if line.strip():
                yield [self._value("groups", part) for part in split_values(line)]

    def _value(self, field: str, text: str) -> Json:
        try:
            return value_in(text)
        except ValueError as error:
            self.add_error(field, str(error))
            return None


def value_in(text: str) -> Json:
    """The JSON value that a person typed; what is no JSON is a text as it stands.

    Raises ValueError, with a sentence, for JSON that is read nowhere in the product.
    """
    text = text.strip()
    try:
        return loads_text(text, _LIMITS)
    except StrictJsonError as error:
        if text[:1] in ("{", "[", '"'):
            raise ValueError(f"This is not JSON: {error.sentence}") from None
        return text


def split_values(line: str) -> list[str]:
    """The values of a line with = between them; an = inside a JSON text or list does not count."""
    parts, depth, in_text, is_escaped = [""], 0, False, False
    for character in line:
        if in_text:
            in_text = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        elif character == '"' and (depth or not parts[-1].strip()):
            in_text, is_escaped = True, False
        elif character in "[{":
            depth += 1
        elif character in "]}":
            depth -= 1
        elif character == "=" and depth <= 0:
            parts.append("")
            continue
        parts[-1] += character
    return [part.strip() for part in parts]


def initial_of(rule: ArgumentRule) -> dict[str, Any]:
    """The fields of the form that make a rule, without its task."""
    return {
        "argument": json.dumps(rule.argument),
        "kind": rule.kind.value,
        "reason": rule.reason,
        **initial_terms(rule.terms),
    }


def initial_terms(terms: RuleTerms) -> dict[str, str]:
    """The fields that some kinds have of their own."""
    match terms:
        case RoundTo(step):
            return {"step": f"{step:f}"}
        case Time(same, zone):
            return {"same": same.value, "zone": zone}
        case Default(value):
            return {"value": shown_json(value_of_text(value))}
        case Alias(groups):
            lines = (
                " = ".join(shown_json(value_of_text(text)) for text in group) for group in groups
            )
            return {"groups": "\n".join(lines)}
        case _:
            return {}


def rule_text(rule: ArgumentRule) -> str:
    """A rule as an address or a hidden field carries it: ASCII JSON."""
    return canonical_text(rule_data(rule))


def rule_of_text(text: str, *, author: str = "") -> ArgumentRule | None:
    """The rule of a text that `rule_text` may have made; None for anything else.

    `author` is who takes it up, where that is not whom the text names.
    """
    try:
        data = loads_text(text, _LIMITS)
    except StrictJsonError:
        return None
    if not isinstance(data, dict):
        return None
    named = {"author": author} if author else {"author": data.get("author") or _NOBODY}
    rule = parse_rule({**data, **named}, "")
    return None if isinstance(rule, Finding) else rule
