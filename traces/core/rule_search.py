"""Which rules the stored paths suggest: where passing paths differ by form alone, and what it costs.

Two looks at each task. The first finds places whose values differ, and terms under which some of
them are equal. The second counts, for each rule found, the paths that would merge if it alone were
added. At each place the smallest rule that merges the most is suggested.

Terms that keep the meaning (the order of a list, the spelling of a text, the form of a number or of
a time, the same sum) are also suggested where two passing trials of a task merely used both forms.
`default` and `ignore` give up a difference, so they need paths that differ there: `default` a value
that says nothing, `ignore` free wording in a tool that does not write. A difference that looks
like identifiers, dates or amounts is never ignored.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from traces.core.canonical import canonical_text, value_of_text
from traces.core.paths import CallTexts
from traces.core.pointers import escaped
from traces.core.rule_suggestions import Suggestion
from traces.core.rule_words import merge_sentence, merges_of, rule_sentence
from traces.core.rules import (
    ArgumentRule,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RoundTo,
    RuleKind,
    RuleSet,
    RuleTerms,
    SameTime,
    Time,
    Unordered,
    normal_value,
    plain_text,
)
from traces.core.trajectory import ArgumentsForm, ToolKind
from traces.core.values import Json

MOST_CANDIDATES = 100
"""Rules that are counted."""

MOST_CALLS = 500
"""Distinct calls of a tool, in one task, whose values are compared with one another."""

_MOST_EXAMPLES = 3
_MOST_EXAMPLE_VALUES = 10
_MOST_PLACES = 300  # of one call
_DEEPEST = 6  # tokens of a place
_LONGEST_NAME = 200  # characters of a token
_LONGEST_VALUE = 5_000  # characters of a value
_MOST_DECIMALS = 12
_FEWEST_DECIMALS = 2
_WORDS = 4  # that free wording has at least
_WORDS_OF_UNSET = 8  # where the tool's kind is not set, so that it may write
_AUTHOR = "evalsite"

Tokens = tuple[str | None, ...]
Row = tuple[int, ...]
"""The calls of a path by their ids, 0 for an agent message."""


class PathCall(NamedTuple):
    """A distinct call; its arguments are parsed where they are asked for."""

    tool: str
    form: ArgumentsForm
    text: str  # canonical

    @property
    def arguments(self) -> Json:
        """The arguments as a value."""
        return value_of_text(self.text)


class SeenCall(NamedTuple):
    """A distinct call of a task's passing trials, and the first and last trajectory with it."""

    call: PathCall
    first: int
    last: int


Calls = Mapping[int, PathCall]
Marks = Mapping[int, str]
"""By the ids of calls: equal for calls that are equal under the rules in force."""


class _Place(NamedTuple):
    tool: str
    tokens: Tokens


@dataclass(slots=True)
class _Evidence:
    """What the first look found at one place."""

    forms: Counter[RuleKind] = field(default_factory=Counter)  # values with another form
    tasks: Counter[RuleKind] = field(default_factory=Counter)
    examples: dict[RuleKind, list[tuple[str, ...]]] = field(default_factory=dict)
    defaults: set[str] = field(default_factory=set)
    n_free: int = 0
    is_bound: bool = False  # some difference is not of wording

    @property
    def weight(self) -> int:
        """How much speaks for looking at the place."""
        return sum(self.forms.values()) + len(self.defaults) + self.n_free


@dataclass(slots=True)
class _Count:
    """What the second look found for one candidate."""

    n_merged: int = 0
    n_merged_with_messages: int = 0
    n_tasks: int = 0
    last_task: str | None = None
    examples: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rule that may merge paths."""

    rule: ArgumentRule
    rules: RuleSet  # the rules in force, and this one


# The first look


class Findings:
    """Gathers places whose values differ, task by task."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._found: dict[_Place, _Evidence] = {}
        self._n_decimals: dict[_Place, int] = {}  # the most of any number seen there

    def look_at_calls(self, seen: Iterable[SeenCall]) -> None:
        """Note the forms in which passing trials of one task wrote equal values.

        Give at most MOST_CALLS calls of a tool.
        """
        values: dict[_Place, dict[str, tuple[int, int]]] = {}
        for one in seen:
            if one.call.form is not ArgumentsForm.JSON:
                continue
            for tokens, value in _places_in(one.call.arguments):
                if isinstance(value, bool | dict) or value is None:
                    continue
                text = canonical_text(value)
                if len(text) <= _LONGEST_VALUE:
                    _widen(values.setdefault(_Place(one.call.tool, tokens), {}), text, one)
        for place, texts in values.items():
            known = self._n_decimals.get(place, _FEWEST_DECIMALS)
            self._n_decimals[place] = max(known, *map(_n_decimals, texts))
            if len(texts) > 1 and not self._is_ruled(place):
                self._note_forms(place, texts)

    def look_at_paths(self, rows: Sequence[Row], calls: Calls, marks: Marks) -> None:
        """Note where passing paths of one sequence differ."""
        for step in zip(*(tuple(filter(None, row)) for row in rows), strict=True):
            alike = {marks[pk]: calls[pk] for pk in step}
            if len(alike) > 1:
                self._note_step(list(alike.values()))

    def candidates(self) -> tuple[tuple[Candidate, ...], bool]:
        """The rules to count, and whether there were more places than are tried."""
        chosen: list[tuple[int, Candidate]] = []
        for place, evidence in self._found.items():
            for terms in _terms_for(evidence, self._n_decimals.get(place, _FEWEST_DECIMALS)):
                rule = ArgumentRule(
                    tool=place.tool,
                    argument=argument_of(place.tokens),
                    terms=terms,
                    reason=_REASONS[type(terms)],
                    author=_AUTHOR,
                )
                widened = RuleSet(
                    (*self._rules.rules, rule), self._rules.tool_kinds, self._rules.rejection
                )
                chosen.append((evidence.weight, Candidate(rule, widened)))
        chosen.sort(key=lambda item: (-item[0], *_order(item[1].rule)))
        return tuple(one for _, one in chosen[:MOST_CANDIDATES]), len(chosen) > MOST_CANDIDATES

    def forms_of(self, rule: ArgumentRule) -> tuple[int, tuple[tuple[str, ...], ...]]:
        """Tasks in which passing trials wrote equal values otherwise, and examples of them."""
        evidence = self._found[_Place(rule.tool, rule.tokens)]
        return evidence.tasks[rule.kind], tuple(evidence.examples.get(rule.kind, ()))

    def _note_forms(self, place: _Place, texts: dict[str, tuple[int, int]]) -> None:
        values = {text: value_of_text(text) for text in texts}
        for kind, terms in _FORMS.items():
            equal: dict[str, list[str]] = {}
            for text, value in values.items():
                if _is_meant(kind, value):
                    normal = normal_value(terms, value)
                    if isinstance(normal, list) and normal[0] == kind:
                        equal.setdefault(canonical_text(normal), []).append(text)
            groups = [group for group in equal.values() if _are_of_several(group, texts)]
            if not groups:
                continue
            evidence = self._found.setdefault(place, _Evidence())
            evidence.tasks[kind] += 1
            evidence.forms[kind] += sum(len(group) - 1 for group in groups)
            for group in groups:
                examples = evidence.examples.setdefault(kind, [])
                if len(examples) < _MOST_EXAMPLES:
                    examples.append(tuple(sorted(group)[:_MOST_EXAMPLE_VALUES]))

    def _note_step(self, calls: Sequence[PathCall]) -> None:
        tool = calls[0].tool
        values: dict[Tokens, list[Json]] = {}
        n_calls: Counter[Tokens] = Counter()
        recorded = [call for call in calls if call.form is ArgumentsForm.JSON]
        for call in recorded:
            seen: dict[Tokens, list[Json]] = {}
            for tokens, value in _places_in(call.arguments):
                seen.setdefault(tokens, []).append(value)
            n_calls.update(seen.keys())
            for tokens, some in seen.items():
                values.setdefault(tokens, []).extend(some)
        for tokens, given in values.items():
            place = _Place(tool, tokens)
            texts = {canonical_text(value): value for value in given}
            is_absent = n_calls[tokens] < len(recorded)
            if self._is_ruled(place) or (len(texts) == 1 and not is_absent):
                continue
            evidence = self._found.setdefault(place, _Evidence())
            if is_absent and tokens[-1] is not None:
                evidence.defaults.update(text for text in texts if text in _SAYS_NOTHING)
            if len(texts) > 1:
                if _is_free_wording(list(texts.values()), self._fewest_words(tool)):
                    evidence.n_free += 1
                else:
                    evidence.is_bound = True

    def _fewest_words(self, tool: str) -> int | None:
        if not self._rules.is_declared(tool):
            return _WORDS_OF_UNSET
        return None if self._rules.kind_of(tool) is ToolKind.WRITE else _WORDS

    def _is_ruled(self, place: _Place) -> bool:
        """Whether a rule of the system stands there, or above with nothing left to compare."""
        for rule in self._rules.rules:
            tokens = rule.tokens
            if rule.tool != place.tool or rule.task_id is not None or not _fits(tokens, place):
                continue
            if len(tokens) == len(place.tokens) or not isinstance(rule.terms, Unordered | Default):
                return True
        return False


def _widen(texts: dict[str, tuple[int, int]], text: str, seen: SeenCall) -> None:
    first, last = texts.get(text, (seen.first, seen.last))
    texts[text] = (min(first, seen.first), max(last, seen.last))


def _are_of_several(group: Sequence[str], texts: Mapping[str, tuple[int, int]]) -> bool:
    """Whether values stand in more than one trajectory."""
    return len(group) > 1 and min(texts[one][0] for one in group) != max(
        texts[one][1] for one in group
    )


def _fits(tokens: Tokens, place: _Place) -> bool:
    return len(tokens) <= len(place.tokens) and all(
        ours is None or ours == theirs for ours, theirs in zip(tokens, place.tokens, strict=False)
    )


def _places_in(arguments: Json) -> Iterator[tuple[Tokens, Json]]:
    """The first places of a call's arguments that a rule could name, the outer ones first."""
    waiting: deque[tuple[Tokens, Json]] = deque([((), arguments)])
    n_places = -1  # the arguments as a whole are none
    while waiting and n_places < _MOST_PLACES:
        tokens, value = waiting.popleft()
        n_places += 1
        if tokens:
            yield tokens, value
        if len(tokens) >= _DEEPEST:
            continue
        if isinstance(value, dict):
            waiting += [((*tokens, name), value[name]) for name in value if _is_plain_name(name)]
        elif isinstance(value, list):
            waiting += [((*tokens, None), item) for item in value]


def _is_plain_name(name: str) -> bool:
    # What a database can keep: no NUL, no half of a surrogate pair.
    if not name or len(name) > _LONGEST_NAME:
        return False
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in name)


def argument_of(tokens: Tokens) -> str:
    """The argument path of a rule that `traces.core.rules.path_tokens` reads as these tokens."""
    if len(tokens) == 1 and tokens[0] and not tokens[0].startswith("/"):
        return tokens[0]
    return "".join(
        "/*" if token is None else f"/{escaped(token).replace('*', '~2')}" for token in tokens
    )


# What values look like

_FORMS: Mapping[RuleKind, RuleTerms] = {
    RuleKind.UNORDERED: Unordered(),
    RuleKind.DATETIME: Time(SameTime.INSTANT),
    RuleKind.TEXT: PlainText(),
    RuleKind.ROUND_TO: RoundTo(Decimal(10) ** -_MOST_DECIMALS),
    RuleKind.ARITHMETIC: Arithmetic(),
}
_NARROWNESS = (
    *(type(terms) for terms in _FORMS.values()),
    Default,
    Ignore,
)
_REASONS: Mapping[type[RuleTerms], str] = {
    Unordered: "The order of this list says nothing.",
    Time: "Two spellings of one instant mean the same time.",
    PlainText: "Two spellings of one text mean the same.",
    RoundTo: "A number written as text is the same number.",
    Arithmetic: "Two spellings of one sum ask for the same number.",
    Default: "Left out, this argument means the same.",
    Ignore: "The wording is free; that the call was made is what counts.",
}
_SAYS_NOTHING = frozenset({"null", "false", "0", '""', "[]", "{}"})
_CODE = re.compile(r"\W*[0-9]+(?:[-/.:][0-9]+){2,}\W*")  # dates, telephone numbers, versions
_LEADING_ZERO = re.compile(r"(?<![0-9.])0[0-9]")
_PROSE_WORD = re.compile(r"""["'(*]*[^\W\d_]+(?:['\u2019-][^\W\d_]+)*["'.,;:!?)*]*""")
_NOT_PROSE = re.compile(r"[{}<>|\\`]")


def _is_meant(kind: RuleKind, value: Json) -> bool:
    """Whether a value may be taken as what a kind is for, and not as an identifier."""
    if kind is RuleKind.UNORDERED:
        return isinstance(value, list) and len(value) > 1
    if kind is RuleKind.DATETIME:
        return isinstance(value, str)
    if kind is RuleKind.TEXT:
        return isinstance(value, str) and not _looks_like_identifier(value)
    if isinstance(value, str):
        return not (_CODE.fullmatch(value) or _LEADING_ZERO.search(value))
    return not isinstance(value, list)


def _looks_like_identifier(text: str) -> bool:
    return len(text.split()) == 1 and any(letter.isdigit() for letter in text)


def _n_decimals(text: str) -> int:
    """Decimal places of a canonical number, or of text that is one."""
    value = value_of_text(text)
    if isinstance(value, list):
        return 0
    try:
        exponent = Decimal(str(value)).as_tuple().exponent
    except InvalidOperation:
        return 0
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _is_free_wording(values: Sequence[Json], fewest_words: int | None) -> bool:
    """Whether values are prose, and differ by more than what looks like an identifier."""
    if fewest_words is None:
        return False
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        return False
    if not all(_is_prose(text, fewest_words) for text in texts):
        return False
    return len({_without_identifiers(text) for text in texts}) == len(texts)


def _is_prose(text: str, fewest_words: int) -> bool:
    words = text.split()
    if len(words) < fewest_words or _NOT_PROSE.search(text):
        return False
    n_plain = sum(bool(_PROSE_WORD.fullmatch(w)) and not _is_capitals(w) for w in words)
    return n_plain * 4 > len(words) * 3


def _without_identifiers(text: str) -> tuple[str, ...]:
    """The words that are not in capitals and hold no digit: what is left when those change."""
    return tuple(
        plain_text(word)
        for word in text.split()
        if not (any(letter.isdigit() for letter in word) or _is_capitals(word))
    )


def _is_capitals(word: str) -> bool:
    return len(word) > 1 and word.isupper()


def _terms_for(evidence: _Evidence, n_decimals: int) -> Iterator[RuleTerms]:
    for kind, terms in _FORMS.items():
        if not evidence.forms[kind]:
            continue
        if kind is not RuleKind.ROUND_TO:
            yield terms
        elif n_decimals <= _MOST_DECIMALS:  # else a grid would merge other numbers too
            yield RoundTo(Decimal(1).scaleb(-n_decimals))
    yield from map(Default, sorted(evidence.defaults))
    if evidence.n_free and not evidence.is_bound:
        yield Ignore()


def _order(rule: ArgumentRule) -> tuple[str, str, int]:
    return (rule.tool, rule.argument, _NARROWNESS.index(type(rule.terms)))


# The second look


class Counts:
    """Counts what each candidate alone would merge, task by task."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._counts = {candidate: _Count() for candidate in candidates}

    def look(
        self,
        task_id: str,
        rows: Sequence[Row],
        calls: Calls,
        marks: Marks,
    ) -> None:
        """Count the distinct passing paths of one task that would merge.

        `rows` are all paths of some of its sequences, comparable ones only. The sequences of a task
        may come in several looks, one after another.
        """
        for candidate, count in self._counts.items():
            tool = candidate.rule.tool
            concerned = [row for row in rows if any(pk and calls[pk].tool == tool for pk in row)]
            merged = _merged_marks(candidate, task_id, concerned, calls, marks)
            if merged is None:
                continue
            n_msg = len({_marked(row, marks) for row in concerned}) - len(
                {_marked(row, merged) for row in concerned}
            )
            bare = [tuple(filter(None, row)) for row in concerned]
            together: dict[tuple[str, ...], dict[tuple[str, ...], Row]] = {}
            for row in bare:
                together.setdefault(_marked(row, merged), {}).setdefault(_marked(row, marks), row)
            n_merged = sum(len(paths) - 1 for paths in together.values())
            count.n_merged += n_merged
            count.n_merged_with_messages += n_msg
            if n_merged and count.last_task != task_id:
                count.n_tasks += 1
                count.last_task = task_id
            for paths in together.values():
                if len(paths) > 1 and len(count.examples) < _MOST_EXAMPLES:
                    _add_example(count, candidate, task_id, list(paths.values()), calls, marks)

    def suggestions(self, findings: Findings) -> tuple[Suggestion, ...]:
        """At each place the rule that merges most, the narrowest of several; best first."""
        best: dict[tuple[str, str], tuple[tuple[int, ...], Suggestion]] = {}
        for candidate, count in self._counts.items():
            rule = candidate.rule
            n_forms, forms = findings.forms_of(rule)
            if not count.n_merged and not n_forms:
                continue
            rank = (
                -count.n_merged,
                -count.n_merged_with_messages,
                -n_forms,
                _NARROWNESS.index(type(rule.terms)),
            )
            known = best.get((rule.tool, rule.argument))
            if known is None or rank < known[0]:
                suggestion = _suggestion(rule, count, n_forms, forms)
                best[rule.tool, rule.argument] = (rank, suggestion)
        ranked = sorted(best.values(), key=lambda item: (item[0][:3], *_order(item[1].rule)))
        return tuple(suggestion for _, suggestion in ranked)


def _merged_marks(
    candidate: Candidate,
    task_id: str,
    rows: Sequence[Row],
    calls: Calls,
    marks: Marks,
) -> dict[int, str] | None:
    """The marks under a candidate; None where it makes no two calls equal."""
    texts = CallTexts(candidate.rules, task_id)
    merged: dict[int, str] = {}
    for row in rows:
        for pk in row:
            if pk and pk not in merged:
                tool, form, text = calls[pk]
                merged[pk] = marks[pk]
                if tool == candidate.rule.tool:
                    merged[pk] = texts.lines_of_text(tool, form, text).normal
    n_before = len({marks[pk] for pk in merged})
    return merged if len(set(merged.values())) < n_before else None


def _marked(row: Row, marks: Mapping[int, str]) -> tuple[str, ...]:
    return tuple(marks[pk] if pk else "" for pk in row)


def _add_example(
    count: _Count,
    candidate: Candidate,
    task_id: str,
    rows: Sequence[Row],
    calls: Calls,
    marks: Marks,
) -> None:
    rule = candidate.rule
    for step in zip(*rows, strict=True):
        alike = {marks[pk]: calls[pk] for pk in step}
        if len(alike) < 2 or calls[step[0]].tool != rule.tool:
            continue
        arguments = [c.arguments for c in alike.values() if c.form is ArgumentsForm.JSON]
        for merge in merges_of(rule.tool, arguments, candidate.rules, task_id):
            example = (merge.sentence, merge.values[:_MOST_EXAMPLE_VALUES])
            if merge.rule == rule and example not in count.examples:
                count.examples.append(example)
                return


def _suggestion(
    rule: ArgumentRule, count: _Count, n_forms: int, forms: Sequence[tuple[str, ...]]
) -> Suggestion:
    examples = count.examples or [
        (merge_sentence(rule, [value_of_text(text) for text in group]), group) for group in forms
    ]
    if count.n_merged:
        effect = (
            f"{_counted(count.n_merged, 'passing path')} fewer at the equivalent level, "
            f"in {_counted(count.n_tasks, 'task')}."
        )
    else:
        effect = (
            f"No path merges by it yet; passing trials of {_counted(n_forms, 'task')} wrote "
            "the same in several ways."
        )
    return Suggestion(
        rule=rule,
        n_merged=count.n_merged,
        n_merged_with_messages=count.n_merged_with_messages,
        n_tasks=count.n_tasks,
        examples=tuple(sentence for sentence, _ in examples),
        values=tuple(values for _, values in examples),
        sentence=f"{rule_sentence(rule)} {effect}",
    )


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
