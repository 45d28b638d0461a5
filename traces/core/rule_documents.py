"""Rule sets as JSON documents: reading one with every finding in it, and writing one.

    {"rules": [{"tool": "calculate", "argument": "expression", "kind": "arithmetic",
                "reason": "spellings of one sum", "author": "ada", "task": null}],
     "tools": {"get_user_details": "read", "transfer_to_human_agents": "handoff"},
     "rejection": {"flag": true, "prefixes": ["Error"]}}

Kinds with terms of their own: `round_to` has "step" (a number, or text that is one), `datetime` has
"same" ("instant" or "day") and "zone" (an IANA name, "UTC" by default), `default` has "value",
`alias` has "groups" (lists of values). "task" limits a rule to one task.
"""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar, assert_never

from traces.core.canonical import canonical_text, decimal_of, natural_key, nfc, value_of_text
from traces.core.records import Finding
from traces.core.rules import (
    Alias,
    ArgumentRule,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RejectionSettings,
    RoundTo,
    RuleKind,
    RuleSet,
    RuleTerms,
    SameTime,
    Time,
    Unordered,
    zone_of,
)
from traces.core.trajectory import ToolKind
from traces.core.values import Json, JsonObject

MOST_RULES = 5_000
DEEPEST_ARGUMENT = 64
"""Tokens of an argument path."""

SMALLEST_STEP = Decimal("1e-12")
LARGEST_STEP = Decimal("1e12")
_STEP_DIGITS = 30
_PLAIN_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?|\.[0-9]+", re.ASCII)

_DOCUMENT_FIELDS = frozenset({"rules", "tools", "rejection"})
_COMMON_FIELDS = frozenset({"tool", "argument", "kind", "reason", "author", "task"})
_TERM_FIELDS: dict[RuleKind, frozenset[str]] = {
    RuleKind.IGNORE: frozenset(),
    RuleKind.ROUND_TO: frozenset({"step"}),
    RuleKind.ARITHMETIC: frozenset(),
    RuleKind.TEXT: frozenset(),
    RuleKind.DATETIME: frozenset({"same", "zone"}),
    RuleKind.UNORDERED: frozenset(),
    RuleKind.DEFAULT: frozenset({"value"}),
    RuleKind.ALIAS: frozenset({"groups"}),
}


_Member = TypeVar("_Member", bound=StrEnum)


class _BadRuleError(Exception):
    def __init__(self, code: str, place: str, sentence: str) -> None:
        super().__init__(sentence)
        self.finding = Finding(code, place, sentence)


def parse_rule_set(document: Json) -> tuple[RuleSet, tuple[Finding, ...]]:
    """The rule set of a document and what is wrong with it.

    A document with findings must not take effect; the rule set then holds its sound parts, for a
    preview.
    """
    if not isinstance(document, dict):
        return RuleSet(), (Finding("not-an-object", "", "A rule set is a JSON object."),)
    findings = _unknown_fields(document, _DOCUMENT_FIELDS, "")
    rules = _rules_of(document.get("rules", []), findings)
    kinds = _tool_kinds_of(document.get("tools", {}), findings)
    rejection = _rejection_of(document.get("rejection", {}), findings)
    return RuleSet(rules, kinds, rejection), tuple(findings)


def parse_rule(
    data: Json,
    place: str,
    *,
    task_id: str | None = None,
    reason: str = "",
    author: str = "",
) -> ArgumentRule | Finding:
    """One rule, or the first thing that is wrong with it. Keywords fill what `data` leaves out."""
    try:
        return _rule_of(data, place, task_id=task_id, reason=reason, author=author)
    except _BadRuleError as error:
        return error.finding


def rule_set_document(rules: RuleSet) -> JsonObject:
    """The document that `parse_rule_set` reads back as the same rule set."""
    return {
        "rules": [rule_data(rule) for rule in rules.rules],
        "tools": {tool: str(kind) for tool, kind in rules.tool_kinds},
        "rejection": {
            "flag": rules.rejection.use_flag,
            "prefixes": list(rules.rejection.prefixes),
        },
    }


def rule_data(rule: ArgumentRule) -> JsonObject:
    """One rule as `parse_rule` reads it."""
    return {
        "tool": rule.tool,
        "argument": rule.argument,
        "kind": str(rule.kind),
        **_terms_data(rule.terms),
        "reason": rule.reason,
        "author": rule.author,
        "task": rule.task_id,
    }


def _terms_data(terms: RuleTerms) -> JsonObject:
    match terms:
        case RoundTo(step):
            return {"step": str(step)}
        case Time(same, zone):
            return {"same": str(same), "zone": zone}
        case Default(value):
            return {"value": value_of_text(value)}
        case Alias(groups):
            return {"groups": [[value_of_text(text) for text in group] for group in groups]}
        case Ignore() | Arithmetic() | PlainText() | Unordered():
            return {}
        case _:
            assert_never(terms)


def _unknown_fields(data: JsonObject, known: frozenset[str], place: str) -> list[Finding]:
    return [
        Finding(
            "unknown-field", _at(place, name), f"There is no field {canonical_text(name)} here."
        )
        for name in data
        if name not in known
    ]


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _rules_of(data: Json, findings: list[Finding]) -> tuple[ArgumentRule, ...]:
    if not isinstance(data, list):
        findings.append(Finding("not-a-list", "rules", "The rules are a list of objects."))
        return ()
    if len(data) > MOST_RULES:
        findings.append(
            Finding("too-many-rules", "rules", f"A rule set holds at most {MOST_RULES} rules.")
        )
        return ()
    rules: list[ArgumentRule] = []
    taken: dict[tuple[str | None, str, tuple[str | None, ...]], str] = {}
    for index, item in enumerate(data):
        place = f"rules[{index}]"
        rule = parse_rule(item, place)
        if isinstance(rule, Finding):
            findings.append(rule)
            continue
        first = taken.setdefault((rule.task_id, rule.tool, rule.tokens), place)
        if first != place:
            sentence = f"This tool and argument already have a rule, {first}."
            findings.append(Finding("second-rule", place, sentence))
            continue
        rules.append(rule)
    return tuple(rules)


def _rule_of(
    data: Json, place: str, *, task_id: str | None, reason: str, author: str
) -> ArgumentRule:
    if not isinstance(data, dict):
        raise _BadRuleError("not-an-object", place, "A rule is a JSON object.")
    filled: JsonObject = {"task": task_id, "reason": reason, "author": author, **data}
    kind = _kind_of(filled, place)
    for finding in _unknown_fields(filled, _COMMON_FIELDS | _TERM_FIELDS[kind], place):
        raise _BadRuleError(finding.code, finding.place, finding.sentence)
    task = filled["task"]
    rule = ArgumentRule(
        tool=nfc(_text(filled, "tool", place)),
        argument=_text(filled, "argument", place, may_be_empty=True),
        terms=_terms_of(kind, filled, place),
        reason=_text(filled, "reason", place),
        author=_text(filled, "author", place),
        task_id=None if task is None else nfc(_text(filled, "task", place)),
    )
    _check_argument(rule, place)
    return rule


def _text(data: JsonObject, name: str, place: str, *, may_be_empty: bool = False) -> str:
    value = data.get(name)
    if isinstance(value, str) and (value or may_be_empty):
        return value
    raise _BadRuleError(f"missing-{name}", _at(place, name), f'A rule needs a text "{name}".')


def _member_of(members: type[_Member], word: Json) -> _Member | None:
    return next((member for member in members if member == word), None)


def _kind_of(data: JsonObject, place: str) -> RuleKind:
    kind = _member_of(RuleKind, data.get("kind"))
    if kind is not None:
        return kind
    kinds = ", ".join(RuleKind)
    raise _BadRuleError("unknown-kind", _at(place, "kind"), f"The kind is one of: {kinds}.")


def _check_argument(rule: ArgumentRule, place: str) -> None:
    tokens = rule.tokens
    where = _at(place, "argument")
    if len(tokens) > DEEPEST_ARGUMENT:
        sentence = f"An argument path has at most {DEEPEST_ARGUMENT} parts."
        raise _BadRuleError("argument-too-deep", where, sentence)
    if rule.kind is RuleKind.DEFAULT and (not tokens or tokens[-1] is None):
        sentence = "A default needs an argument whose last part is a name."
        raise _BadRuleError("default-without-name", where, sentence)


def _terms_of(kind: RuleKind, data: JsonObject, place: str) -> RuleTerms:
    match kind:
        case RuleKind.IGNORE:
            return Ignore()
        case RuleKind.ROUND_TO:
            return RoundTo(_step_of(data.get("step"), _at(place, "step")))
        case RuleKind.ARITHMETIC:
            return Arithmetic()
        case RuleKind.TEXT:
            return PlainText()
        case RuleKind.DATETIME:
            return _time_of(data, place)
        case RuleKind.UNORDERED:
            return Unordered()
        case RuleKind.DEFAULT:
            if "value" not in data:
                sentence = "A default needs the value that absence stands for."
                raise _BadRuleError("missing-value", _at(place, "value"), sentence)
            return Default(canonical_text(data["value"]))
        case RuleKind.ALIAS:
            return Alias(_groups_of(data.get("groups"), _at(place, "groups")))
        case _:
            assert_never(kind)


def _step_of(value: Json, place: str) -> Decimal:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
            raise InvalidOperation
        step = Decimal(value) if isinstance(value, str) else decimal_of(value)
        if isinstance(value, str) and not _PLAIN_NUMBER.fullmatch(value):
            raise InvalidOperation
        if not SMALLEST_STEP <= step <= LARGEST_STEP or len(step.as_tuple().digits) > _STEP_DIGITS:
            raise InvalidOperation
    except InvalidOperation:
        sentence = f"The step is a number from {SMALLEST_STEP} to {LARGEST_STEP}, such as 0.01."
        raise _BadRuleError("bad-step", place, sentence) from None
    return step


def _time_of(data: JsonObject, place: str) -> Time:
    same, zone = _member_of(SameTime, data.get("same")), data.get("zone", "UTC")
    if same is None:
        sentence = 'A datetime rule says "same": "instant" or "day".'
        raise _BadRuleError("bad-same", _at(place, "same"), sentence)
    if not isinstance(zone, str) or not _is_zone(zone):
        sentence = 'The zone is an IANA name, such as "Europe/Berlin" or "UTC".'
        raise _BadRuleError("unknown-zone", _at(place, "zone"), sentence)
    return Time(same, zone)


def _is_zone(name: str) -> bool:
    try:
        zone_of(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder of zones
        return False
    return True


def _groups_of(value: Json, place: str) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list) or not value:
        raise _BadRuleError("missing-groups", place, "An alias needs groups of values.")
    groups: list[tuple[str, ...]] = []
    for index, group in enumerate(value):
        if not isinstance(group, list) or len(group) < 2:
            sentence = "A group is a list of at least two values."
            raise _BadRuleError("bad-group", f"{place}[{index}]", sentence)
        groups.append(tuple(canonical_text(item) for item in group))
    counts = Counter(text for group in groups for text in group)
    twice = next((text for text, n_times in counts.items() if n_times > 1), None)
    if twice is not None:
        raise _BadRuleError("overlapping-groups", place, f"{twice} stands in the groups twice.")
    return tuple(groups)


def _tool_kinds_of(data: Json, findings: list[Finding]) -> tuple[tuple[str, ToolKind], ...]:
    if not isinstance(data, dict):
        findings.append(Finding("not-an-object", "tools", "The tools are an object."))
        return ()
    kinds: dict[str, ToolKind] = {}
    for name, word in data.items():
        place = f"tools.{name}"
        kind = _member_of(ToolKind, word)
        if kind is None:
            sentence = "A tool is of kind read, write or handoff."
            findings.append(Finding("unknown-tool-kind", place, sentence))
        elif nfc(name) in kinds:
            sentence = "This tool is named twice, in two Unicode forms."
            findings.append(Finding("second-tool", place, sentence))
        else:
            kinds[nfc(name)] = kind
    return tuple(sorted(kinds.items(), key=lambda item: natural_key(item[0])))


def _rejection_of(data: Json, findings: list[Finding]) -> RejectionSettings:
    standard = RejectionSettings()
    if not isinstance(data, dict):
        findings.append(Finding("not-an-object", "rejection", "The rejection is an object."))
        return standard
    findings += _unknown_fields(data, frozenset({"flag", "prefixes"}), "rejection")
    flag = data.get("flag", standard.use_flag)
    if not isinstance(flag, bool):
        sentence = "Whether the format's flag counts is true or false."
        findings.append(Finding("bad-flag", "rejection.flag", sentence))
        flag = standard.use_flag
    return RejectionSettings(flag, _prefixes_of(data, findings))


def _prefixes_of(data: JsonObject, findings: list[Finding]) -> tuple[str, ...]:
    prefixes = data.get("prefixes", list(RejectionSettings().prefixes))
    if isinstance(prefixes, list):
        texts = tuple(text for text in prefixes if isinstance(text, str) and text)
        if len(texts) == len(prefixes):
            return texts
    sentence = "The prefixes are a list of texts that are not empty."
    findings.append(Finding("bad-prefixes", "rejection.prefixes", sentence))
    return RejectionSettings().prefixes
