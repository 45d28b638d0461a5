"""How a trajectory compares with a reference: match modes and trajectory metrics. Diagnostics only.

The modes are those of agentevals (strict, unordered, subset, superset), the metrics those of Vertex
AI's evaluation of trajectories (exact, in-order, any-order, precision, recall, single tool use).
Common to all of them here:

- Only tool calls count; what the agent says beside or between them does not.
- Calls match one to one, so a call made twice counts twice.
- Calls made in one message have no order among them: whatever is about order holds when it holds
  for some order inside each message, of the trajectory and of the reference.
- A call whose arguments were not recorded matches no call where arguments are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from json.encoder import encode_basestring_ascii
from typing import TypeAlias, assert_never

from traces.core.paths import CallTexts, call_texts
from traces.core.rules import RuleSet
from traces.core.trajectory import ArgumentsForm, Trajectory, TrajectoryCall, TrajectoryMessage

MATCHING_VERSION = 1
"""Changes when any trajectory matches any reference otherwise than before."""

Label: TypeAlias = str | None
"""Two calls match when their labels are the same text; None never matches."""


class ArgumentsMatch(StrEnum):
    """What two calls must have in common to match."""

    NAMES = "names"  # the tool
    EXACT = "exact"  # the tool, and equal arguments
    RULES = "rules"  # the tool, and arguments that are equal under the argument rules


@dataclass(frozen=True, slots=True)
class ComparedCalls:
    """The calls of a trajectory as they are matched."""

    messages: tuple[tuple[Label, ...], ...]  # those that made calls, in order
    tools: frozenset[str]

    @property
    def n_calls(self) -> int:
        return sum(map(len, self.messages))

    @property
    def n_not_comparable(self) -> int:
        """Calls that match no other: their arguments were not recorded."""
        return sum(message.count(None) for message in self.messages)

    def uses(self, tool: str) -> bool:
        """Vertex AI's `trajectory_single_tool_use`: whether that tool is called at all.

        Arguments and the number of calls do not count.
        """
        return tool in self.tools


@dataclass(frozen=True, slots=True)
class Match:
    """What a trajectory has in common with a reference."""

    n_matched: int  # pairs of calls that match, one to one
    n_calls: int  # of the trajectory
    n_reference: int  # calls of the reference
    strict: bool
    """The `strict` of agentevals: message by message, the same calls.

    Messages without calls are left out.
    """
    exact: bool
    """Vertex AI's `trajectory_exact_match`: the same calls in the same order.

    How calls are spread over messages does not count beyond the order that it leaves open.
    """
    in_order: bool
    """Vertex AI's `trajectory_in_order_match`: all calls of the reference, in its order.

    Further calls may stand anywhere between them.
    """

    @property
    def unordered(self) -> bool:
        """The `unordered` of agentevals: the same calls, each as often, in any order."""
        return self.n_matched == self.n_calls == self.n_reference

    @property
    def subset(self) -> bool:
        """The `subset` of agentevals: every call of the trajectory has its own in the reference.

        Nothing was called beyond it; true of a trajectory without calls.
        """
        return self.n_matched == self.n_calls

    @property
    def superset(self) -> bool:
        """The `superset` of agentevals: every call of the reference has its own in the trajectory."""
        return self.n_matched == self.n_reference

    @property
    def any_order(self) -> bool:
        """Vertex AI's `trajectory_any_order_match`: the same as superset."""
        return self.superset

    @property
    def precision(self) -> Fraction | None:
        """Vertex AI's `trajectory_precision`: the part of the trajectory's calls that match.

        None for a trajectory without calls.
        """
        return Fraction(self.n_matched, self.n_calls) if self.n_calls else None

    @property
    def recall(self) -> Fraction | None:
        """Vertex AI's `trajectory_recall`: the part of the reference's calls that match.

        None for a reference without calls.
        """
        return Fraction(self.n_matched, self.n_reference) if self.n_reference else None


def compared_calls(
    trajectory: Trajectory,
    arguments: ArgumentsMatch,
    rules: RuleSet | None = None,
    task_id: str | None = None,
) -> ComparedCalls:
    """The calls of a trajectory, by message. `rules` and `task_id` matter to `RULES` alone."""
    texts = call_texts(RuleSet() if rules is None else rules, task_id)
    messages: list[list[Label]] = []
    tools: set[str] = set()
    last = None
    for step in trajectory:
        if isinstance(step, TrajectoryMessage):
            continue
        if step.step != last:
            messages.append([])
            last = step.step
        messages[-1].append(call_label(step, arguments, texts))
        tools.add(step.name)
    return ComparedCalls(tuple(map(tuple, messages)), frozenset(tools))


def call_label(call: TrajectoryCall, arguments: ArgumentsMatch, texts: CallTexts) -> Label:
    """What a call is matched by."""
    name = encode_basestring_ascii(call.name)
    if arguments is ArgumentsMatch.NAMES:
        return name
    if call.form is ArgumentsForm.ABSENT:
        return None
    exact = texts.exact_text(call)
    match arguments:
        case ArgumentsMatch.EXACT:
            return f"{name}\t{exact}"
        case ArgumentsMatch.RULES:
            return f"{name}\t{texts.normal_text(call, exact)}"
        case _:
            assert_never(arguments)


def match_of(ours: ComparedCalls, reference: ComparedCalls) -> Match:
    """How a trajectory matches a reference. Both must be compared by the same arguments and rules."""
    n_ours, n_theirs = ours.n_calls, reference.n_calls
    matched = sum((_labels(ours.messages) & _labels(reference.messages)).values())
    has_all = matched == n_theirs
    has_the_same = has_all and matched == n_ours
    return Match(
        n_matched=matched,
        n_calls=n_ours,
        n_reference=n_theirs,
        strict=has_the_same
        and [Counter(each) for each in ours.messages]
        == [Counter(each) for each in reference.messages],
        exact=has_the_same and _in_same_order(ours.messages, reference.messages),
        in_order=has_all and _holds_in_order(ours.messages, reference.messages),
    )


def largest_assignment(fits: Sequence[int]) -> tuple[int | None, ...]:
    """For each item on the left the place on the right that it gets, None without one.

    Bit r of `fits[l]` says that l fits r. Of all one-to-one assignments it is one with the most
    pairs (augmenting paths, Berge 1957; Kuhn 1955), and always the same one.
    """
    chosen: list[int | None] = [None] * len(fits)
    owners: dict[int, int] = {}  # place on the right: its item on the left
    for start in range(len(fits)):
        _augment(start, fits, chosen, owners)
    return tuple(chosen)


def _labels(messages: Sequence[Sequence[Label]]) -> Counter[Label]:
    """Every label that can match, as often as it stands there."""
    return Counter(label for message in messages for label in message if label is not None)


def _in_same_order(ours: Sequence[Sequence[Label]], theirs: Sequence[Sequence[Label]]) -> bool:
    """Whether two series of messages with the same calls have an order in common.

    What two first messages share may come first; then one of them must be used up.
    """
    waiting: Counter[Label] = Counter()  # the rest of our message
    following = iter(ours)
    for message in theirs:
        expected = Counter(message)
        while expected:
            if not waiting:
                waiting = Counter(next(following))
            _take_shared(waiting, expected)
            if waiting and expected:
                return False
    return True


def _holds_in_order(ours: Sequence[Sequence[Label]], theirs: Sequence[Sequence[Label]]) -> bool:
    """Whether some order of ours holds some order of theirs, with other calls between.

    Each of our messages gives as much of their next ones as it can: no later call is better off.
    """
    expected: Counter[Label] = Counter()
    following = iter(theirs)
    for message in ours:
        left = Counter(message)
        while True:
            if not expected:
                upcoming = next(following, None)
                if upcoming is None:
                    return True
                expected = Counter(upcoming)
            _take_shared(left, expected)
            if expected:
                break
    return not expected and next(following, None) is None


def _take_shared(left: Counter[Label], right: Counter[Label]) -> None:
    """Take what two messages have in common out of both."""
    for label in tuple(left if len(left) < len(right) else right):
        n = min(left[label], right[label])
        for side in (left, right):
            side[label] -= n
            if not side[label]:
                del side[label]


def _augment(
    start: int, fits: Sequence[int], chosen: list[int | None], owners: dict[int, int]
) -> None:
    """Give `start` a place, moving others where that takes it. Does nothing where it cannot be."""
    came_from: dict[int, int] = {}  # place: the item that asks for it
    seen = 0
    asking = [start]
    for item in asking:  # grows: whoever would have to move asks next
        open_places = fits[item] & ~seen
        seen |= open_places
        while open_places:
            lowest = open_places & -open_places
            open_places ^= lowest
            place = lowest.bit_length() - 1
            came_from[place] = item
            if place in owners:
                asking.append(owners[place])
                continue
            _move(place, came_from, chosen, owners)
            return


def _move(
    place: int, came_from: dict[int, int], chosen: list[int | None], owners: dict[int, int]
) -> None:
    """Hand each place to the item that asked for it, from a free one back to the start."""
    following: int | None = place
    while following is not None:
        item = came_from[following]
        owners[following] = item
        chosen[item], following = following, chosen[item]
