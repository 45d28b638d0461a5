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

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from json.encoder import encode_basestring_ascii
from typing import NamedTuple, TypeVar, assert_never

from traces.core.canonical import canonical_text, value_of_text
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
    n_writes: int  # committed calls of tools of kind write
    n_handoffs: int  # committed hand-overs

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


class CallLines(NamedTuple):
    """What the keys of a trajectory take from one of its calls, apart from its outcome."""

    name: str
    exact: str
    normal: str  # under the rules
    kind: ToolKind
    is_recorded: bool  # False: the arguments were not


class CallTexts:
    """The texts by which the calls of one task are compared; remembers normal forms of arguments.

    A cache: its answers depend on the rule set and the task alone, so threads may share it.
    """

    def __init__(self, rules: RuleSet, task_id: str | None = None) -> None:
        rules_of_task = compiled(rules, task_id)
        self.kinds = rules_of_task.kinds
        self._roots = rules_of_task.roots
        self._remembered: dict[tuple[str, str], str] = {}
        self._lines: dict[tuple[str, str], CallLines] = {}

    def kind_of(self, tool: str) -> ToolKind:
        return self.kinds.get(tool, ToolKind.WRITE)

    def exact_text(self, call: TrajectoryCall) -> str:
        """The arguments: equal texts for equal arguments in the same form."""
        return _exact_text(call.form, call.arguments_text)

    def normal_text(self, call: TrajectoryCall, exact_text: str) -> str:
        """The arguments under the rules; `exact_text` where none concerns them."""
        root = self._roots.get(call.name)
        if root is None or call.form is not ArgumentsForm.JSON:
            return exact_text
        key = (call.name, exact_text)
        known = self._remembered.get(key)
        if known is None:
            known = canonical_text(normal_form(call.arguments, root, []))
            _remember(self._remembered, key, known)
        return known

    def lines(self, call: TrajectoryCall) -> CallLines:
        """What the keys take from a call."""
        exact_text = self.exact_text(call)
        key = (call.name, exact_text)
        known = self._lines.get(key)
        if known is None:
            normal_text = self.normal_text(call, exact_text)
            known = self._lines_with(call.name, call.form, exact_text, normal_text)
            _remember(self._lines, key, known)
        return known

    def lines_of_text(self, name: str, form: ArgumentsForm, text: str) -> CallLines:
        """The same for a call whose arguments are stored as canonical text.

        The text is parsed only where a rule concerns the tool.
        """
        exact_text = normal_text = _exact_text(form, text)
        root = self._roots.get(name)
        if root is not None and form is ArgumentsForm.JSON:
            normal_text = canonical_text(normal_form(value_of_text(text), root, []))
        return self._lines_with(name, form, exact_text, normal_text)

    def _lines_with(
        self, name: str, form: ArgumentsForm, exact_text: str, normal_text: str
    ) -> CallLines:
        written = encode_basestring_ascii(name)
        exact = f"{written}\t{exact_text}"
        return CallLines(
            name=written,
            exact=exact,
            normal=exact if normal_text is exact_text else f"{written}\t{normal_text}",
            kind=self.kind_of(name),
            is_recorded=form is not ArgumentsForm.ABSENT,
        )

    def uses(self, call: TrajectoryCall) -> tuple[RuleUse, ...]:
        """The rules that apply to a call's arguments, in the order of their places."""
        root = self._roots.get(call.name)
        uses: list[RuleUse] = []
        if root is not None and call.form is ArgumentsForm.JSON:
            normal_form(call.arguments, root, uses)
        return tuple(uses)


_Kept = TypeVar("_Kept")


def _remember(memory: dict[tuple[str, str], _Kept], key: tuple[str, str], kept: _Kept) -> None:
    if len(key[1]) <= _LONGEST_REMEMBERED:
        if len(memory) >= _MOST_REMEMBERED:
            memory.clear()
        memory[key] = kept


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
    return keys_of_lines(
        [None if isinstance(step, TrajectoryMessage) else known.lines(step) for step in trajectory],
        [
            isinstance(step, TrajectoryCall) and step.outcome is CallOutcome.COMMITTED
            for step in trajectory
        ],
        own=own,
    )


def keys_of_lines(
    steps: Sequence[CallLines | None], committed: Sequence[bool], *, own: bytes = b""
) -> PathKeys:
    """The keys of a trajectory from the lines of its calls; None stands for a message.

    `committed` says of each step whether it is a call that was committed.
    """
    calls = [step for step in steps if step is not None]
    with_messages = len(calls) < len(steps)
    comparable = all(call.is_recorded for call in calls)
    salt = () if comparable else (_NOT_RECORDED + own.hex(),)
    names = [_MESSAGE_LINE if step is None else step.name for step in steps]
    reads_sorted = _reads_in_canonical_order(
        names, [None if step is None else step.kind for step in steps]
    )
    sequence = _key([call.name for call in calls])
    equivalent = _key([call.normal for call in calls], salt)
    exact = _key([call.exact for call in calls], salt)
    done = [
        step
        for step, is_committed in zip(steps, committed, strict=True)
        if is_committed and step is not None
    ]
    writes = [call.normal for call in done if call.kind is ToolKind.WRITE]
    reads_any_order = _key(_calls_only(reads_sorted))
    if with_messages:
        reads_any_order_msg, sequence_msg = _key(reads_sorted), _key(names)
        equivalent_msg = _key([_MESSAGE_LINE if s is None else s.normal for s in steps], salt)
        exact_msg = _key([_MESSAGE_LINE if s is None else s.exact for s in steps], salt)
    else:
        reads_any_order_msg, sequence_msg = reads_any_order, sequence
        equivalent_msg, exact_msg = equivalent, exact
    return PathKeys(
        tool_set=_key(sorted({call.name for call in calls})),
        effects=_key(writes, salt),
        reads_any_order=reads_any_order,
        reads_any_order_msg=reads_any_order_msg,
        sequence=sequence,
        sequence_msg=sequence_msg,
        equivalent=equivalent,
        equivalent_msg=equivalent_msg,
        exact=exact,
        exact_msg=exact_msg,
        comparable=comparable,
        n_steps=len(steps),
        n_tool_calls=len(calls),
        n_writes=len(writes),
        n_handoffs=sum(call.kind is ToolKind.HANDOFF for call in done),
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


def _exact_text(form: ArgumentsForm, text: str) -> str:
    """The canonical text of arguments, marked by the form in which they were recorded."""
    match form:
        case ArgumentsForm.JSON:
            return text
        case ArgumentsForm.INVALID:
            return "!" + text
        case ArgumentsForm.ABSENT:
            return _NOT_RECORDED
        case _:
            assert_never(form)


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
