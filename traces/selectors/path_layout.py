"""The paths of a task laid side by side: a column a step, with what differs inside each path.

Trajectories, calls and rule versions are append-only, so a layout is remembered by its ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalsite.common.remembering import remembered
from traces.core.alignment import align
from traces.core.canonical import canonical_text, value_of_text
from traces.core.paths import MESSAGE_LABEL, PathLevel, call_texts
from traces.core.rule_words import argument_name, merges_of
from traces.core.rules import ArgumentRule, RuleSet, normal_value
from traces.core.shown_json import shown_json
from traces.core.trajectory import ArgumentsForm, ToolKind
from traces.selectors.trajectories import (
    MESSAGE,
    StoredCall,
    StoredSteps,
    stored_calls,
    stored_steps,
    tool_names_of,
)

LONGEST_PATH = 200  # steps that are laid out
MOST_CELLS = 1_200  # of one layout, so that the page stays small
_LEAST_STEPS = 40
_MOST_SPELLINGS = 50  # distinct calls at one step that are looked at for merges
_LISTED_SPELLINGS = 5
_LISTED_ARGUMENTS = 3  # of those in which a step differs from another path
_LONGEST_COMPARED = 100_000  # characters of arguments that are looked into for names
_COMMITTED = "c"


@dataclass(frozen=True, slots=True)
class PathMembers:
    """The trajectories of one path. `members` pairs each with its number of trials."""

    representative: int
    members: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class OtherArguments:
    """The arguments of a step differ from those of the first path that has its tool there."""

    path: int  # index of that path
    names: tuple[str, ...]  # the first of the members that differ; none where they have no names
    n_more: int  # members that differ and are not named


@dataclass(frozen=True, slots=True)
class LaidStep:
    """A step of a path in its column."""

    tool: str  # "" for an agent message
    agent_message: int  # from 1: the running number of the agent's message that made it
    differs: bool  # the arguments differ among the trials of the path
    n_rejected: int  # trials in which the tool rejected the attempt
    n_not_rejected: int  # the other trials of the path
    leaves: bool = False  # the first step off every passing path
    others: OtherArguments | None = None  # where the level compares arguments


@dataclass(frozen=True, slots=True)
class MergedValues:
    """Values that a rule takes as equal within one path."""

    path: int  # index of the path
    rule: ArgumentRule
    argument: str
    n_values: int
    value: str  # what they come to; "" where the rule names no value
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathLayout:
    """Paths and overlaid paths in the same columns. A row has None where it has no step."""

    n_columns: int
    rows: tuple[tuple[LaidStep | None, ...], ...]
    overlaid: tuple[tuple[LaidStep | None, ...], ...]
    not_comparable: tuple[bool, ...]  # for each path: a call lacks its arguments
    tools: tuple[str, ...]  # in order of use
    merges: tuple[MergedValues, ...]
    cut_at: int | None  # steps, where a path is longer than what is shown


@remembered(256)
def path_layout(
    paths: tuple[PathMembers, ...],
    overlaid: tuple[PathMembers, ...],
    *,
    level: PathLevel,
    messages: bool,
    rules: RuleSet,
    task_id: str,
) -> PathLayout:
    """Lay out paths and, under them, trials that did not pass; three queries at most."""
    everyone = [*paths, *overlaid]
    stored = stored_steps(pk for path in everyone for pk, _ in path.members)
    if not messages:
        stored = {pk: steps.without_messages() for pk, steps in stored.items()}
    longest = min(LONGEST_PATH, max(_LEAST_STEPS, MOST_CELLS // max(1, len(everyone))))
    names = tool_names_of(call for steps in stored.values() for call in steps.calls)
    names[MESSAGE] = MESSAGE_LABEL
    bundles = [_Bundle.of(path, stored, names, longest) for path in everyone]
    calls = stored_calls(
        call for bundle in bundles for spellings in bundle.spellings for call in spellings
    )
    alignment = align(tuple(bundle.labels for bundle in bundles))
    marks = _Marks(level, rules, task_id, calls, names)
    passing, others = bundles[: len(paths)], bundles[len(paths) :]
    known = [marks.of(bundle) for bundle in passing]
    leaves = [_leaves(marks.of(bundle), known) for bundle in others]
    differing = marks.differing(passing, alignment.rows[: len(paths)], known)
    return PathLayout(
        n_columns=len(alignment.columns),
        rows=tuple(
            bundle.cells(row, others=found)
            for bundle, row, found in zip(
                passing, alignment.rows[: len(paths)], differing, strict=True
            )
        ),
        overlaid=tuple(
            bundle.cells(row, leaves=leave)
            for bundle, row, leave in zip(others, alignment.rows[len(paths) :], leaves, strict=True)
        ),
        not_comparable=tuple(not stored[path.representative].is_comparable for path in paths),
        tools=tuple(
            dict.fromkeys(name for b in bundles for name in b.labels if name != MESSAGE_LABEL)
        ),
        merges=tuple(_merges(passing, calls, rules, task_id)),
        cut_at=longest if any(bundle.is_cut for bundle in bundles) else None,
    )


@dataclass(frozen=True, slots=True)
class _Bundle:
    """A path's representative with what its other trajectories have at each of its steps."""

    steps: StoredSteps
    labels: tuple[str, ...]
    spellings: tuple[tuple[int, ...], ...]  # distinct calls at each step, the shown one first
    n_rejected: tuple[int, ...]
    n_trials: int
    is_cut: bool

    @classmethod
    def of(
        cls, path: PathMembers, stored: dict[int, StoredSteps], names: dict[int, str], longest: int
    ) -> _Bundle:
        whole = stored[path.representative]
        steps = StoredSteps(
            whole.pk,
            whole.calls[:longest],
            whole.outcomes[:longest],
            whole.groups[:longest],
            whole.is_comparable,
        )
        labels = tuple(names[call] for call in steps.calls)
        found: list[dict[int, None]] = [{call: None} for call in steps.calls]
        rejected = [0] * len(labels)
        for pk, n_trials in path.members:
            member = stored[pk]
            for here, there in _pairs(labels, member, names):
                found[here][member.calls[there]] = None
                if member.outcomes[there] == "r":
                    rejected[here] += n_trials
        return cls(
            steps=steps,
            labels=labels,
            spellings=tuple(tuple(calls)[:_MOST_SPELLINGS] for calls in found),
            n_rejected=tuple(rejected),
            n_trials=sum(n_trials for _, n_trials in path.members),
            is_cut=len(whole.calls) > longest,
        )

    def cells(
        self,
        row: Sequence[int | None],
        *,
        leaves: int | None = None,
        others: Mapping[int, OtherArguments] | None = None,
    ) -> tuple[LaidStep | None, ...]:
        return tuple(
            None
            if at is None
            else LaidStep(
                tool="" if self.labels[at] == MESSAGE_LABEL else self.labels[at],
                agent_message=self.steps.groups[at] + 1,
                differs=len(self.spellings[at]) > 1,
                n_rejected=self.n_rejected[at],
                n_not_rejected=self.n_trials - self.n_rejected[at],
                leaves=at == leaves,
                others=others.get(at) if others else None,
            )
            for at in row
        )


def _pairs(
    labels: tuple[str, ...], member: StoredSteps, names: dict[int, str]
) -> Iterable[tuple[int, int]]:
    """Steps of a representative and of a member that belong together.

    Where the level lets the order differ, the n-th call of a tool goes with its n-th call there.
    """
    theirs = [names[call] for call in member.calls]
    if tuple(theirs[: len(labels)]) == labels:
        return ((at, at) for at in range(len(labels)))
    places: dict[str, list[int]] = {}
    for there in range(len(theirs) - 1, -1, -1):
        places.setdefault(theirs[there], []).append(there)
    return [(here, places[label].pop()) for here, label in enumerate(labels) if places.get(label)]


@dataclass(frozen=True, slots=True)
class _Marks:
    """What tells steps apart at a level."""

    level: PathLevel
    rules: RuleSet
    task_id: str
    calls: dict[int, StoredCall]
    names: dict[int, str]

    def of(self, bundle: _Bundle) -> tuple[str, ...]:
        return tuple(self._mark(call) for call in bundle.steps.calls)

    def _mark(self, call: int) -> str:
        if call == MESSAGE or not self.level.compares_arguments:
            return self.names[call]
        if self.level is PathLevel.EXACT:
            return f"{self.names[call]}\t{call}"
        return f"{self.names[call]}\t{self._text(call)}"

    def _text(self, call: int) -> str:
        made = self.calls[call].made("u", step=0)
        texts = call_texts(self.rules, self.task_id)
        exact = texts.exact_text(made)
        return exact if self.level is PathLevel.EXACT else texts.normal_text(made, exact)

    def differing(
        self,
        bundles: Sequence[_Bundle],
        rows: Sequence[Sequence[int | None]],
        known: Sequence[tuple[str, ...]],
    ) -> tuple[dict[int, OtherArguments], ...]:
        """For each path, its steps that differ from the first path with their tool in the column.

        `known` are the marks of the paths. Where effects alone count, so do their steps alone.
        """
        found: tuple[dict[int, OtherArguments], ...] = tuple({} for _ in bundles)
        if not self.level.compares_arguments:
            return found
        first: dict[tuple[int, str], tuple[int, int]] = {}
        for path, (bundle, row) in enumerate(zip(bundles, rows, strict=True)):
            for column, at in enumerate(row):
                if at is None or not self._counts(bundle, at):
                    continue
                there, step = first.setdefault((column, bundle.labels[at]), (path, at))
                if known[there][step] != known[path][at]:
                    theirs = bundles[there].steps.calls[step]
                    names = self._differing_names(theirs, bundle.steps.calls[at])
                    found[path][at] = OtherArguments(
                        there, names[:_LISTED_ARGUMENTS], len(names[_LISTED_ARGUMENTS:])
                    )
        return found

    def _counts(self, bundle: _Bundle, at: int) -> bool:
        if bundle.steps.calls[at] == MESSAGE:
            return False
        if self.level is not PathLevel.EFFECTS:
            return True
        kind = call_texts(self.rules, self.task_id).kind_of(bundle.labels[at])
        return kind is ToolKind.WRITE and bundle.steps.outcomes[at] == _COMMITTED

    def _differing_names(self, one: int, other: int) -> tuple[str, ...]:
        """The members that differ, in the order of their names."""
        calls = self.calls[one], self.calls[other]
        if any(
            call.form is not ArgumentsForm.JSON or len(call.text) > _LONGEST_COMPARED
            for call in calls
        ):
            return ()
        left, right = (value_of_text(self._text(call)) for call in (one, other))
        if not isinstance(left, dict) or not isinstance(right, dict):
            return ()
        return tuple(
            name
            for name in sorted(left.keys() | right.keys())
            if (name in left) != (name in right)
            or canonical_text(left[name]) != canonical_text(right[name])
        )


def _leaves(marks: tuple[str, ...], passing: Sequence[tuple[str, ...]]) -> int | None:
    """The first step at which a path is off every passing one; None when it never is."""
    shared = max((_n_shared(marks, other) for other in passing), default=0)
    return shared if shared < len(marks) and passing else None


def _n_shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    count = 0
    for ours, theirs in zip(left, right, strict=False):
        if ours != theirs:
            break
        count += 1
    return count


def _merges(
    bundles: Sequence[_Bundle], calls: dict[int, StoredCall], rules: RuleSet, task_id: str
) -> Iterable[MergedValues]:
    texts = call_texts(rules, task_id)
    for path, bundle in enumerate(bundles):
        seen: set[tuple[ArgumentRule, tuple[str, ...]]] = set()
        for spellings in bundle.spellings:
            if len(spellings) < 2:
                continue
            alike: dict[str, list[StoredCall]] = {}
            for call in (calls[pk] for pk in spellings if pk != MESSAGE):
                if call.form is ArgumentsForm.JSON:
                    made = call.made("u", step=0)
                    text = texts.normal_text(made, texts.exact_text(made))
                    alike.setdefault(text, []).append(call)
            for same in alike.values():
                arguments = [call.arguments for call in same]
                for merge in merges_of(same[0].name, arguments, rules, task_id):
                    if (merge.rule, merge.values) in seen:
                        continue
                    seen.add((merge.rule, merge.values))
                    yield MergedValues(
                        path=path,
                        rule=merge.rule,
                        argument=argument_name("", merge.rule.tokens).lstrip("."),
                        n_values=len(merge.values) + merge.may_be_absent,
                        value=_common_value(merge.rule, merge.values),
                        examples=tuple(
                            shown_json(value_of_text(text))
                            for text in merge.values[:_LISTED_SPELLINGS]
                        ),
                    )


def _common_value(rule: ArgumentRule, values: tuple[str, ...]) -> str:
    normals = [normal_value(rule.terms, value_of_text(text)) for text in values]
    first = normals[0] if normals else None
    if isinstance(first, list) and len(first) == 2 and isinstance(first[1], str):
        return first[1]
    return ""
