"""Changes of a rule set: applied to one, taken from two, as JSON documents and in words.

    {"put": [a rule as in traces.core.rule_documents, …],
     "drop": [{"tool": "calculate", "argument": "expression", "task": null}, …],
     "kinds": {"get_user": "read", "old_tool": null}}

"put" makes a rule, or replaces the one at its place; a kind of null takes a tool's kind away. A
change holds its rules whole, so that it can be made again on a later version.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from traces.core.canonical import natural_key, nfc
from traces.core.records import Finding
from traces.core.rule_documents import MOST_RULES, parse_rule, rule_data
from traces.core.rule_words import argument_name, rule_name, rule_sentence
from traces.core.rules import ArgumentRule, RuleSet, path_tokens
from traces.core.trajectory import ToolKind
from traces.core.values import Json, JsonObject

_FIELDS = ("put", "drop", "kinds")
_PLACE_FIELDS = frozenset({"tool", "argument", "task"})

PlaceKey = tuple[str | None, str, tuple[str | None, ...]]


@dataclass(frozen=True, slots=True)
class RulePlace:
    """Where a rule stands: one tool and argument, for all tasks or for one."""

    tool: str
    argument: str
    task_id: str | None = None

    @property
    def key(self) -> PlaceKey:
        """The same for two spellings of one place."""
        task = None if self.task_id is None else nfc(self.task_id)
        return (task, nfc(self.tool), path_tokens(self.argument))


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What one version of a rule set does to the one before."""

    put: tuple[ArgumentRule, ...] = ()
    drop: tuple[RulePlace, ...] = ()
    kinds: tuple[tuple[str, ToolKind | None], ...] = ()  # None: not set any more


class RuleChangeError(Exception):
    """A change that cannot be made; its text is a sentence for people."""


def place_of(rule: ArgumentRule) -> RulePlace:
    """Where a rule stands."""
    return RulePlace(rule.tool, rule.argument, rule.task_id)


def changed(base: RuleSet, change: RuleChange) -> RuleSet:
    """The rule set after a change; what the change does not name stays.

    Raises `RuleChangeError` where a rule to drop is not there, too many rules would stand, or the
    change would change nothing but reasons and names.
    """
    rules = _by_place(base)
    for place in change.drop:
        if rules.pop(place.key, None) is None:
            scope = _scope(place.task_id)
            raise RuleChangeError(f"There is no rule on {_place_name(place)}{scope} to drop.")
    for rule in change.put:
        rules[place_of(rule).key] = rule
    if len(rules) > MOST_RULES:
        raise RuleChangeError(f"A rule set holds at most {MOST_RULES} rules.")
    kinds = dict(base.tool_kinds)
    for tool, kind in change.kinds:
        if kind is None:
            kinds.pop(nfc(tool), None)
        else:
            kinds[nfc(tool)] = kind
    result = replace(
        base,
        rules=tuple(rules.values()),
        tool_kinds=tuple(sorted(kinds.items(), key=lambda item: natural_key(item[0]))),
    )
    if _says_the_same(base, result):
        raise RuleChangeError("This changes nothing: the rules say so already.")
    return result


def change_between(old: RuleSet, new: RuleSet) -> RuleChange:
    """The change that makes one rule set of the other, such as to go back to an earlier one."""
    before, after = _by_place(old), _by_place(new)
    kinds_before, kinds_after = dict(old.tool_kinds), dict(new.tool_kinds)
    return RuleChange(
        put=tuple(rule for key, rule in after.items() if before.get(key) != rule),
        drop=tuple(place_of(rule) for key, rule in before.items() if key not in after),
        kinds=tuple(
            (tool, kinds_after.get(tool))
            for tool in sorted(kinds_before.keys() | kinds_after.keys(), key=natural_key)
            if kinds_before.get(tool) != kinds_after.get(tool)
        ),
    )


def _by_place(rules: RuleSet) -> dict[PlaceKey, ArgumentRule]:
    return {place_of(rule).key: rule for rule in rules.rules}


def _says_the_same(left: RuleSet, right: RuleSet) -> bool:
    ours, theirs = _by_place(left), _by_place(right)
    return (
        {key: rule.terms for key, rule in ours.items()}
        == {key: rule.terms for key, rule in theirs.items()}
    ) and dict(left.tool_kinds) == dict(right.tool_kinds)


# As documents


def change_document(change: RuleChange) -> JsonObject:
    """The document that `parse_change` reads back as the same change."""
    return {
        "put": [rule_data(rule) for rule in change.put],
        "drop": [
            {"tool": place.tool, "argument": place.argument, "task": place.task_id}
            for place in change.drop
        ],
        "kinds": {tool: None if kind is None else str(kind) for tool, kind in change.kinds},
    }


def parse_change(data: Json) -> tuple[RuleChange, tuple[Finding, ...]]:
    """The change of a document and what is wrong with it; with findings, its sound parts."""
    if not isinstance(data, dict):
        return RuleChange(), (Finding("not-an-object", "", "A change is a JSON object."),)
    findings = [
        Finding("unknown-field", name, "A change holds put, drop and kinds.")
        for name in data
        if name not in _FIELDS
    ]
    put = _rules_of(_list_of(data, "put", findings), findings)
    drop = _places_of(_list_of(data, "drop", findings), findings)
    kinds = _kinds_of(data.get("kinds", {}), findings)
    return RuleChange(put, drop, kinds), tuple(findings)


def _list_of(data: JsonObject, name: str, findings: list[Finding]) -> list[Json]:
    value = data.get(name, [])
    if isinstance(value, list):
        return value
    findings.append(Finding("not-a-list", name, f'"{name}" is a list of objects.'))
    return []


def _rules_of(items: list[Json], findings: list[Finding]) -> tuple[ArgumentRule, ...]:
    rules: list[ArgumentRule] = []
    for index, item in enumerate(items):
        rule = parse_rule(item, f"put[{index}]")
        if isinstance(rule, Finding):
            findings.append(rule)
        else:
            rules.append(rule)
    return tuple(rules)


def _places_of(items: list[Json], findings: list[Finding]) -> tuple[RulePlace, ...]:
    places: list[RulePlace] = []
    for index, item in enumerate(items):
        match item:
            case {"tool": str(tool), "argument": str(argument), **more} if (
                more.keys() <= _PLACE_FIELDS and isinstance(task := more.get("task"), str | None)
            ):
                places.append(RulePlace(tool, argument, task))
            case _:
                sentence = "A rule to drop is named by its tool, argument and task."
                findings.append(Finding("bad-place", f"drop[{index}]", sentence))
    return tuple(places)


def _kinds_of(data: Json, findings: list[Finding]) -> tuple[tuple[str, ToolKind | None], ...]:
    if not isinstance(data, dict):
        findings.append(Finding("not-an-object", "kinds", "The kinds are an object."))
        return ()
    kinds: list[tuple[str, ToolKind | None]] = []
    for tool, word in data.items():
        kind = next((kind for kind in ToolKind if kind == word), None)
        if kind is None and word is not None:
            sentence = "A tool is of kind read, write or handoff, or null for none."
            findings.append(Finding("unknown-tool-kind", f"kinds.{tool}", sentence))
        else:
            kinds.append((tool, kind))
    return tuple(kinds)


# In words


def change_sentences(change: RuleChange, base: RuleSet) -> tuple[str, ...]:
    """What a change does to a rule set, one sentence for each part."""
    before = _by_place(base)
    return (
        *(_put_sentence(rule, before.get(place_of(rule).key)) for rule in change.put),
        *(_drop_sentence(place, before.get(place.key)) for place in change.drop),
        *(_kind_sentence(nfc(tool), kind, base) for tool, kind in change.kinds),
    )


def _put_sentence(rule: ArgumentRule, earlier: ArgumentRule | None) -> str:
    scope = _scope(rule.task_id)
    if earlier is None:
        return f"New rule{scope}: {rule_sentence(rule)}"
    said = rule_sentence(earlier).removeprefix(f"{rule_name(earlier)}: ")
    return f"Changed rule{scope}: {rule_sentence(rule)} It was: {said}"


def _drop_sentence(place: RulePlace, earlier: ArgumentRule | None) -> str:
    said = f"{_place_name(place)}." if earlier is None else rule_sentence(earlier)
    return f"No longer a rule{_scope(place.task_id)}: {said}"


def _kind_sentence(tool: str, kind: ToolKind | None, base: RuleSet) -> str:
    was = base.kind_of(tool)
    if kind is None:
        return f"{tool} has no kind any more and counts as write; it counted as {was}."
    if not base.is_declared(tool):
        return f"{tool} counts as {kind}; its kind was not set, so it counted as write."
    return f"{tool} counts as {kind}, not {was}."


def _scope(task_id: str | None) -> str:
    return "" if task_id is None else f" for task {task_id}"


def _place_name(place: RulePlace) -> str:
    return argument_name(place.tool, path_tokens(place.argument))
