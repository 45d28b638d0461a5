"""Which trajectories are the same path, at six levels (docs/design.md section 4).

A level's key is 16 bytes; two trajectories of one task are the same path at that level exactly when
their keys are equal. Each of tool set, reads in any order, sequence, equivalent, exact refines the
one before it, with and without agent messages; effects stands beside them.

Decisions that the keys rest on:
- Calls keep their recorded order, also inside one message. A level that sorted writes inside a
  message could not be refined by `sequence`, which does not see where a message ends;
  `differ_only_within_messages` says where that order is the whole difference.
- Reads in any order: reads with no write or hand-over between them are sorted by name. A message
  between them does not part them, since state does not change by it; it keeps its place.
- Effects: the committed calls of tools of kind write, a hand-over not among them.
- Argument text that is not JSON equals only the same text, and no rule applies to it.
- A trajectory with a call whose arguments were not recorded is not comparable: at `effects`,
  `equivalent` and `exact` its key also covers `own`, so that it is a path of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from json.encoder import encode_basestring_ascii
from typing import assert_never

from traces.core.canonical import canonical_text
from traces.core.rules import RuleSet, RuleUse, compiled, normal_form
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    ToolKind,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)

PATHS_VERSION = 1
"""Changes when any trajectory's key changes at any level, by canonical texts and normal forms too."""

MESSAGE_LABEL = "\x00"
"""Stands for an agent message among the names of tools, which hold no NUL once stored."""

_MOST_REMEMBERED = 2048
_LONGEST_REMEMBERED = 1000  # characters of argument text
_NOT_RECORDED = "?"
_MESSAGE_LINE = "MSG"  # never a call: the names of tools stand in quotes


class PathLevel(StrEnum):
    """When two trajectories count as the same path."""

    TOOL_SET = "tool_set"
    EFFECTS = "effects"
    READS_ANY_ORDER = "reads_any_order"
    SEQUENCE = "sequence"
    EQUIVALENT = "equivalent"
    EXACT = "exact"

    @property
    def compares_arguments(self) -> bool:
        """Whether a trajectory that is not comparable is a path of its own here."""
        return self in (PathLevel.EFFECTS, PathLevel.EQUIVALENT, PathLevel.EXACT)


@dataclass(frozen=True, slots=True)
class PathKeys:
    """The keys of one trajectory, 16 bytes each; `_msg` counts agent messages as steps."""

    tool_set: bytes
    effects: bytes
    reads_any_order: bytes
    reads_any_order_msg: bytes
    sequence: bytes
    sequence_msg: bytes
    equivalent: bytes
    equivalent_msg: bytes
    exact: bytes
    exact_msg: bytes
    comparable: bool  # False: a call lacks its arguments
    n_steps: int  # tool calls, and agent messages without a call
    n_tool_calls: int

    def key(self, level: PathLevel, *, messages: bool) -> bytes:
        """The key at a level; tool set and effects are the same with and without messages."""
        match level:
            case PathLevel.TOOL_SET:
                return self.tool_set
            case PathLevel.EFFECTS:
                return self.effects
            case PathLevel.READS_ANY_ORDER:
                return self.reads_any_order_msg if messages else self.reads_any_order
            case PathLevel.SEQUENCE:
                return self.sequence_msg if messages else self.sequence
            case PathLevel.EQUIVALENT:
                return self.equivalent_msg if messages else self.equivalent
            case PathLevel.EXACT:
                return self.exact_msg if messages else self.exact
            case _:
                assert_never(level)


class CallTexts:
    """The texts by which the calls of one task are compared; remembers normal forms of arguments.

    A cache: its answers depend on the rule set and the task alone, so threads may share it.
    """

    def __init__(self, rules: RuleSet, task_id: str | None = None) -> None:
        rules_of_task = compiled(rules, task_id)
        self.kinds = rules_of_task.kinds
        self._roots = rules_of_task.roots
        self._remembered: dict[tuple[str, str], str] = {}

    def kind_of(self, tool: str) -> ToolKind:
        return self.kinds.get(tool, ToolKind.WRITE)

    def exact_text(self, call: TrajectoryCall) -> str:
        """The arguments: equal texts for equal arguments in the same form."""
        match call.form:
            case ArgumentsForm.JSON:
                return call.arguments_text
            case ArgumentsForm.INVALID:
                return "!" + call.arguments_text
            case ArgumentsForm.ABSENT:
                return _NOT_RECORDED
            case _:
                assert_never(call.form)

    def normal_text(self, call: TrajectoryCall, exact_text: str) -> str:
        """The arguments under the rules; `exact_text` where none concerns them."""
        root = self._roots.get(call.name)
        if root is None or call.form is not ArgumentsForm.JSON:
            return exact_text
        known = self._remembered.get((call.name, exact_text))
        if known is not None:
            return known
        text = canonical_text(normal_form(call.arguments, root, []))
        if len(exact_text) <= _LONGEST_REMEMBERED:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[call.name, exact_text] = text
        return text

    def uses(self, call: TrajectoryCall) -> tuple[RuleUse, ...]:
        """The rules that apply to a call's arguments, in the order of their places."""
        root = self._roots.get(call.name)
        uses: list[RuleUse] = []
        if root is not None and call.form is ArgumentsForm.JSON:
            normal_form(call.arguments, root, uses)
        return tuple(uses)


@lru_cache(maxsize=16)
def _shared_texts(rules: RuleSet, task_id: str | None) -> CallTexts:
    return CallTexts(rules, task_id)


def call_texts(rules: RuleSet, task_id: str | None = None) -> CallTexts:
    """The shared cache of a rule set; tasks without rules of their own share one."""
    own = task_id is not None and rules.has_rules_for(task_id)
    return _shared_texts(rules, task_id if own else None)


def path_keys(
    trajectory: Trajectory,
    rules: RuleSet,
    task_id: str | None = None,
    *,
    own: bytes = b"",
    texts: CallTexts | None = None,
) -> PathKeys:
    """The keys of a trajectory at every level.

    `own` tells a trajectory that is not comparable from all others: the trial's digest with its
    identity. Without it such trajectories with the same steps share their keys. `texts` must be of
    the same rules and task.
    """
    known = call_texts(rules, task_id) if texts is None else texts
    names: list[str] = []
    exact: list[str] = []
    normal: list[str] = []
    effects: list[str] = []
    kinds: list[ToolKind | None] = []  # None: a message
    comparable = True
    n_tool_calls = 0
    for step in trajectory:
        if isinstance(step, TrajectoryMessage):
            for lines in (names, exact, normal):
                lines.append(_MESSAGE_LINE)
            kinds.append(None)
            continue
        n_tool_calls += 1
        comparable = comparable and step.form is not ArgumentsForm.ABSENT
        name = encode_basestring_ascii(step.name)
        exact_text = known.exact_text(step)
        normal_line = f"{name}\t{known.normal_text(step, exact_text)}"
        kind = known.kind_of(step.name)
        names.append(name)
        exact.append(f"{name}\t{exact_text}")
        normal.append(normal_line)
        kinds.append(kind)
        if kind is ToolKind.WRITE and step.outcome is CallOutcome.COMMITTED:
            effects.append(normal_line)
    salt = () if comparable else (_NOT_RECORDED + own.hex(),)
    reads_sorted = _reads_in_canonical_order(names, kinds)
    return PathKeys(
        tool_set=_key(sorted(set(_calls_only(names)))),
        effects=_key(effects, salt),
        reads_any_order=_key(_calls_only(reads_sorted)),
        reads_any_order_msg=_key(reads_sorted),
        sequence=_key(_calls_only(names)),
        sequence_msg=_key(names),
        equivalent=_key(_calls_only(normal), salt),
        equivalent_msg=_key(normal, salt),
        exact=_key(_calls_only(exact), salt),
        exact_msg=_key(exact, salt),
        comparable=comparable,
        n_steps=len(trajectory),
        n_tool_calls=n_tool_calls,
    )


def differ_only_within_messages(
    left: Trajectory, right: Trajectory, *, messages: bool = True
) -> bool:
    """Whether the order of calls inside one message is all that two trajectories differ in."""
    texts = call_texts(RuleSet())
    ours = _labels_by_message(left, texts, messages=messages)
    theirs = _labels_by_message(right, texts, messages=messages)
    return ours != theirs and [sorted(group) for group in ours] == [
        sorted(group) for group in theirs
    ]


def step_labels(trajectory: Trajectory, *, messages: bool) -> tuple[str, ...]:
    """The trajectory as alignment sees it: names of tools and MESSAGE_LABEL."""
    return tuple(
        MESSAGE_LABEL if isinstance(step, TrajectoryMessage) else step.name
        for step in trajectory
        if messages or isinstance(step, TrajectoryCall)
    )


def _labels_by_message(
    trajectory: Trajectory, texts: CallTexts, *, messages: bool
) -> list[list[str]]:
    groups: list[list[str]] = []
    last = None
    for step in trajectory:
        if isinstance(step, TrajectoryMessage):
            label = _MESSAGE_LINE
            if not messages:
                continue
        else:
            label = f"{encode_basestring_ascii(step.name)}\t{texts.exact_text(step)}"
        if step.step != last:
            groups.append([])
            last = step.step
        groups[-1].append(label)
    return groups


def _calls_only(lines: list[str]) -> list[str]:
    return [line for line in lines if line != _MESSAGE_LINE]


def _reads_in_canonical_order(names: list[str], kinds: list[ToolKind | None]) -> list[str]:
    """The names with the reads of each stretch without a write or hand-over sorted."""
    result = list(names)
    places: list[int] = []
    for place, kind in enumerate([*kinds, ToolKind.WRITE]):
        if kind is ToolKind.READ:
            places.append(place)
        elif kind is not None and places:
            for target, name in zip(places, sorted(names[at] for at in places), strict=True):
                result[target] = name
            places = []
    return result


def _key(lines: list[str], salt: tuple[str, ...] = ()) -> bytes:
    # Lines hold ASCII without line feeds, so joining them loses nothing.
    return blake2b("\n".join((*lines, *salt)).encode("ascii"), digest_size=16).digest()
