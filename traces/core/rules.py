"""Argument rules, tool kinds and refusal settings of a system: what may differ within one path.

A rule names a tool, an argument and a kind (docs/design.md section 4). Two values at its place are the
same when their normal forms are, so equality under rules is always an equivalence. A rule that
cannot apply to a value leaves it exact, and no normal form ever equals an exact value.

An argument is named by its member name ("expression"), or by a JSON Pointer (RFC 6901) into the
arguments when it starts with "/" ("/flights/*/date"): "*" stands for every element of a list and
every member of an object, "~2" for a member that is itself called "*"; "" names the arguments as a
whole. List elements are reached by "*" only, so all of them follow the same rule. Where several
rules fit a place, a task's comes before the system's, then the one with the earlier literal name.
Rules inside a value are applied before the rule on the value.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, assert_never
from zoneinfo import ZoneInfo

from traces.core.arithmetic import fraction_text, value_of_expression
from traces.core.canonical import canonical_text, decimal_of
from traces.core.pointers import escaped
from traces.core.trajectory import ToolKind
from traces.core.values import Json

RULES_VERSION = 1
"""Changes when a rule gives another normal form to any value."""

SYSTEM_SCOPE: None = None
"""The task id of a rule that holds for every task of the system."""


class RuleKind(StrEnum):
    """What a rule regards as the same."""

    IGNORE = "ignore"
    ROUND_TO = "round_to"
    ARITHMETIC = "arithmetic"
    TEXT = "text"
    DATETIME = "datetime"
    UNORDERED = "unordered"
    DEFAULT = "default"
    ALIAS = "alias"


class SameTime(StrEnum):
    """What two times have in common under a `datetime` rule."""

    INSTANT = "instant"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Ignore:
    """Any value, and none."""


@dataclass(frozen=True, slots=True)
class RoundTo:
    """Numbers, also written as text, with the same nearest multiple of `step` (ties to even)."""

    step: Decimal


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Expressions with the same value; see traces.core.arithmetic."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """Texts that are alike after NFKC, case folding and collapsing white space."""


@dataclass(frozen=True, slots=True)
class Time:
    """ISO 8601 times of the same instant, or on the same day in a zone.

    A time without a zone is read as UTC. A date alone is a day and no instant.
    """

    same: SameTime
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Unordered:
    """Lists with the same elements, as often, in any order."""


@dataclass(frozen=True, slots=True)
class Default:
    """Absent is the same as `value`, which is canonical text."""

    value: str


@dataclass(frozen=True, slots=True)
class Alias:
    """The values of a group, each as canonical text, are the same. Groups are disjoint."""

    groups: tuple[tuple[str, ...], ...]


RuleTerms: TypeAlias = (
    Ignore | RoundTo | Arithmetic | PlainText | Time | Unordered | Default | Alias
)


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """What may differ in one argument of one tool, why, and who says so."""

    tool: str  # NFC
    argument: str  # member name, or JSON Pointer with wildcards
    terms: RuleTerms
    reason: str = ""
    author: str = ""
    task_id: str | None = SYSTEM_SCOPE  # NFC

    @property
    def kind(self) -> RuleKind:
        return _KIND_OF_TERMS[type(self.terms)]

    @property
    def tokens(self) -> tuple[str | None, ...]:
        """The path into the arguments; None stands for every element or member."""
        return path_tokens(self.argument)


_KIND_OF_TERMS: dict[type[RuleTerms], RuleKind] = {
    Ignore: RuleKind.IGNORE,
    RoundTo: RuleKind.ROUND_TO,
    Arithmetic: RuleKind.ARITHMETIC,
    PlainText: RuleKind.TEXT,
    Time: RuleKind.DATETIME,
    Unordered: RuleKind.UNORDERED,
    Default: RuleKind.DEFAULT,
    Alias: RuleKind.ALIAS,
}


@dataclass(frozen=True, slots=True)
class RejectionSettings:
    """How the results of a system's tools say that the tool refused."""

    use_flag: bool = True
    prefixes: tuple[str, ...] = ("Error", "error:", "ERROR:")

    def is_rejection(self, text: str, *, flag: bool | None) -> bool:
        """A flag decides where there is one, else the way the text starts."""
        if self.use_flag and flag is not None:
            return flag
        return text.startswith(self.prefixes)


@dataclass(frozen=True, slots=True)
class RuleSet:
    """One version of what a system declares about its tools."""

    rules: tuple[ArgumentRule, ...] = ()
    tool_kinds: tuple[tuple[str, ToolKind], ...] = ()  # by NFC name
    rejection: RejectionSettings = RejectionSettings()
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    _task_ids: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())

    def __post_init__(self) -> None:
        # Kept: rule sets are cache keys, looked up once a trajectory.
        task_ids = frozenset(rule.task_id for rule in self.rules if rule.task_id is not None)
        object.__setattr__(self, "_task_ids", task_ids)
        object.__setattr__(self, "_hash", hash((self.rules, self.tool_kinds, self.rejection)))

    def __hash__(self) -> int:
        return self._hash

    def kind_of(self, tool: str) -> ToolKind:
        """The declared kind, else write."""
        return compiled(self, None).kinds.get(tool, ToolKind.WRITE)

    def is_declared(self, tool: str) -> bool:
        return tool in compiled(self, None).kinds

    def has_rules_for(self, task_id: str) -> bool:
        return task_id in self._task_ids


@dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule that applied to a value, and where."""

    rule: ArgumentRule
    place: str  # JSON Pointer into the arguments
    value: Json
    normal: Json


def path_tokens(argument: str) -> tuple[str | None, ...]:
    """The tokens of an argument path; None is the wildcard."""
    if not argument:
        return ()
    if not argument.startswith("/"):
        return (argument,)
    return tuple(
        None if part == "*" else part.replace("~1", "/").replace("~2", "*").replace("~0", "~")
        for part in argument[1:].split("/")
    )


# Applying rules


@dataclass(slots=True)
class Node:
    """Where rules wait in the arguments of one tool."""

    rule: ArgumentRule | None
    rank: tuple[bool, tuple[bool, ...]]
    members: dict[str, Node]
    each: Node | None


@dataclass(frozen=True, slots=True)
class CompiledRules:
    """A rule set laid out for look-up, for one task."""

    roots: dict[str, Node]
    kinds: dict[str, ToolKind]


Matching: TypeAlias = tuple[Node, ...]


def normalise_arguments(
    tool: str, arguments: Json, rules: RuleSet, task_id: str | None = None
) -> tuple[Json, tuple[RuleUse, ...]]:
    """The normal form of a call's arguments, and the rules that applied, in the order of places.

    Normal forms are for comparing, not for showing: at the place of a rule stands a pair of the
    kind and the normal value, or of "exact" and the value as it is.
    """
    root = compiled(rules, task_id).roots.get(tool)
    if root is None:
        return arguments, ()
    uses: list[RuleUse] = []
    normal = normal_form(arguments, root, uses)
    return normal, tuple(uses)


def normal_form(arguments: Json, root: Node, uses: list[RuleUse]) -> Json:
    """As `normalise_arguments`, for a tool whose rules are at hand."""
    return _kept(_normal(arguments, (root,), "", uses))


def compiled(rules: RuleSet, task_id: str | None) -> CompiledRules:
    """The rules that hold for a task, by tool. Tasks without rules of their own share one."""
    if task_id is None or not rules.has_rules_for(task_id):
        return _compiled(rules, None)
    return _compiled(rules, task_id)


@lru_cache(maxsize=128)
def _compiled(rules: RuleSet, task_id: str | None) -> CompiledRules:
    chosen: dict[tuple[str, tuple[str | None, ...]], ArgumentRule] = {}
    for scope in (None, task_id):  # a task's rule replaces the system's
        for rule in rules.rules:
            if rule.task_id == scope:
                chosen[rule.tool, rule.tokens] = rule
    roots: dict[str, Node] = {}
    for (tool, tokens), rule in chosen.items():
        rank = (rule.task_id is None, tuple(token is None for token in tokens))
        node = roots.setdefault(tool, _empty_node())
        for token in tokens:
            node = _child(node, token)
        node.rule, node.rank = rule, rank
    return CompiledRules(roots, dict(rules.tool_kinds))


def _empty_node() -> Node:
    return Node(None, (True, ()), {}, None)


def _child(node: Node, token: str | None) -> Node:
    if token is not None:
        return node.members.setdefault(token, _empty_node())
    if node.each is None:
        node.each = _empty_node()
    return node.each


class _Dropped:
    """A member that does not count."""


_DROPPED = _Dropped()


def _kept(normal: Json | _Dropped) -> Json:
    return [RuleKind.IGNORE] if isinstance(normal, _Dropped) else normal


def _normal(value: Json, nodes: Matching, place: str, uses: list[RuleUse]) -> Json | _Dropped:
    if isinstance(value, dict):
        inner: Json = _normal_members(value, nodes, place, uses)
    elif isinstance(value, list):
        inner = _normal_elements(value, nodes, place, uses)
    else:
        inner = value
    rules = [(node.rank, node.rule) for node in nodes if node.rule is not None]
    if not rules:
        return inner
    rule = min(rules, key=lambda ranked: ranked[0])[1]
    normal = _applied(rule.terms, inner)
    if normal is not None:
        uses.append(RuleUse(rule, place, value, _kept(normal)))
        return normal
    return inner if isinstance(rule.terms, Default) else ["exact", inner]


def _normal_members(
    value: dict[str, Json], nodes: Matching, place: str, uses: list[RuleUse]
) -> Json:
    result: dict[str, Json] = {}
    for name, item in value.items():
        below = tuple(
            child for node in nodes for child in (node.members.get(name), node.each) if child
        )
        if not below:
            result[name] = item
            continue
        normal = _normal(item, below, f"{place}/{escaped(name)}", uses)
        if not isinstance(normal, _Dropped):
            result[name] = normal
    return result


def _normal_elements(value: list[Json], nodes: Matching, place: str, uses: list[RuleUse]) -> Json:
    below = tuple(node.each for node in nodes if node.each)
    if not below:
        return value
    result: list[Json] = []
    for index, item in enumerate(value):
        # An ignored element still counts as one.
        result.append(_kept(_normal(item, below, f"{place}/{index}", uses)))
    return result


def normal_value(terms: RuleTerms, value: Json) -> Json:
    """The normal form of a value at the place of a rule with these terms."""
    normal = _applied(terms, value)
    return ["exact", value] if normal is None else _kept(normal)


def _applied(terms: RuleTerms, value: Json) -> Json | _Dropped | None:
    """The tagged normal form; None where the rule cannot apply to the value."""
    match terms:
        case Ignore():
            return _DROPPED
        case RoundTo(step):
            return _tagged(RuleKind.ROUND_TO, _rounded(value, step))
        case Arithmetic():
            return _tagged(RuleKind.ARITHMETIC, _computed(value))
        case PlainText():
            plain = plain_text(value) if isinstance(value, str) else None
            return _tagged(RuleKind.TEXT, plain)
        case Time(same, zone):
            return _tagged(RuleKind.DATETIME, _time(value, same, zone))
        case Unordered():
            if not isinstance(value, list):
                return None
            return [RuleKind.UNORDERED, sorted(value, key=canonical_text)]
        case Default(default):
            return _DROPPED if canonical_text(value) == default else None
        case Alias(groups):
            text = canonical_text(value)
            firsts = [min(group) for group in groups if text in group]
            return _tagged(RuleKind.ALIAS, firsts[0] if firsts else None)
        case _:
            assert_never(terms)


def _tagged(kind: RuleKind, normal: str | None) -> Json | None:
    return None if normal is None else [kind, normal]


_NUMERAL = re.compile(
    r"[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?"
)
_MOST_DIGITS = 400  # before and after the point, of a number that is rounded


def _rounded(value: Json, step: Decimal) -> str | None:
    number = _number_of(value)
    if number is None:
        return None
    return fraction_text(round(number / Fraction(step)) * Fraction(step))


def _number_of(value: Json) -> Fraction | None:
    """A number, or text that is one; None for anything else and for absurd sizes."""
    if isinstance(value, str):
        text = value.strip(" \t\r\n")
        if _NUMERAL.fullmatch(text) is None:
            return None
        number = Decimal(text)
    elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    else:
        number = decimal_of(value)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # no NaN or Infinity comes out of a parser
    if len(digits) > 2 * _MOST_DIGITS:
        return None
    if abs(number.adjusted()) > _MOST_DIGITS or abs(exponent) > 2 * _MOST_DIGITS:
        return None
    return Fraction(number)


def _computed(value: Json) -> str | None:
    number = value_of_expression(value) if isinstance(value, str) else _number_of(value)
    return None if number is None else fraction_text(number)


def plain_text(text: str) -> str:
    """NFKC, case folded, white space collapsed and trimmed."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,18}))?)?"
    r" ?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)


def _time(value: Json, same: SameTime, zone: str) -> str | None:
    match = _TIME.fullmatch(value.strip(" \t\r\n")) if isinstance(value, str) else None
    if match is None:
        return None
    day, clock, seconds, fraction, offset = match.groups()
    try:
        if clock is None:
            return date.fromisoformat(day).isoformat() if same is SameTime.DAY else None
        local = datetime.fromisoformat(f"{day}T{clock}:{seconds or '00'}").replace(tzinfo=UTC)
        instant = local - _offset_of(offset)
        if same is SameTime.DAY:
            return instant.astimezone(zone_of(zone)).date().isoformat()
    except (ValueError, OverflowError):
        return None
    digits = (fraction or "").rstrip("0")
    written = instant.replace(tzinfo=None).isoformat()
    return f"{written}.{digits}Z" if digits else f"{written}Z"


def zone_of(name: str) -> tzinfo:
    """The zone of an IANA name. Raises KeyError, ValueError or OSError where there is none.

    UTC needs no time zone data on the machine.
    """
    return UTC if name == "UTC" else ZoneInfo(name)


def _offset_of(text: str | None) -> timedelta:
    """Raises ValueError for 24 hours and more, or 60 minutes and more."""
    if text is None or text in "Zz":
        return timedelta(0)
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or "0")
    if hours > 23 or minutes > 59:
        raise ValueError(text)
    offset = timedelta(hours=hours, minutes=minutes)
    return -offset if text.startswith("-") else offset
