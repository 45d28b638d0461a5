"""Records packed for storage, so that the process that talks to the database only writes them.

No Django here: this also runs in the reading process (`reading.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from evalsite.common import blobs
from evalsite.common.transcripts import Chunk, packed_chunks
from traces.core.paths import PathKeys, path_keys
from traces.core.records import (
    Finding,
    Item,
    ParsedTask,
    ParsedTrial,
    ParsedVerdicts,
    RunFacts,
    Source,
)
from traces.core.rules import RuleSet
from traces.core.text_marks import clean_text
from traces.core.trajectory import ArgumentsForm, CallOutcome, Trajectory, TrajectoryCall
from traces.selectors.paths import KEY_NAMES

_LETTERS = {CallOutcome.COMMITTED: "c", CallOutcome.REJECTED: "r", CallOutcome.UNKNOWN: "u"}
MESSAGE_LETTER = "m"

CallText = tuple[str, str, str]
"""Tool name, form and canonical text of the arguments: what makes two calls the same."""


class PathColumns(NamedTuple):
    """What the paths of a trajectory are under some rules, as its row holds it."""

    keys: tuple[bytes, ...]  # in the order of `KEY_NAMES`
    n_writes: int  # committed ones
    n_handoffs: int


class PackedTrajectory(NamedTuple):
    """A trajectory as its row holds it. `whole` is there where the keys need the trial's own."""

    calls: tuple[CallText | None, ...]  # None: an agent message without a call
    outcomes: str  # one letter a step
    groups: tuple[int, ...]  # the running number of the message that made the step
    keys: PathColumns | None  # None: it cannot be compared with any other
    whole: Trajectory | None


class PackedTrial(NamedTuple):
    """A parsed trial without its messages, rest and trajectory, and these packed."""

    trial: ParsedTrial
    n_messages: int
    chunks: tuple[Chunk, ...]
    record: bytes  # rest and warnings
    trajectory: PackedTrajectory


@dataclass(frozen=True, slots=True)
class PackedItem:
    """One record of an upload, ready to be stored. `content` None: refused."""

    source: Source
    content: PackedTrial | ParsedVerdicts | ParsedTask | RunFacts | None
    refusals: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


def packed(item: Item, rules: RuleSet) -> PackedItem:
    """An item with its trial packed, and path keys under the rules."""
    content = item.content
    if isinstance(content, ParsedTrial):
        return PackedItem(
            item.source, packed_trial(content, item.warnings, rules), item.refusals, item.warnings
        )
    return PackedItem(item.source, content, item.refusals, item.warnings)


def packed_trial(trial: ParsedTrial, warnings: tuple[Finding, ...], rules: RuleSet) -> PackedTrial:
    """A trial with its transcript, record and trajectory packed."""
    return PackedTrial(
        trial=replace(trial, messages=[], rest={}, trajectory=()),
        n_messages=len(trial.messages),
        chunks=tuple(packed_chunks(trial.messages)),
        record=blobs.pack(
            {"rest": trial.rest, "warnings": [[f.code, f.place, f.sentence] for f in warnings]}
        ),
        trajectory=packed_trajectory(trial.trajectory, rules, trial.key.task_id),
    )


def packed_trajectory(trajectory: Trajectory, rules: RuleSet, task_id: str) -> PackedTrajectory:
    """A trajectory with the texts of its calls and its path keys."""
    calls: list[CallText | None] = []
    letters: list[str] = []
    groups: list[int] = []
    group, last = -1, None
    for step in trajectory:
        if step.step != last:
            group, last = group + 1, step.step
        groups.append(group)
        if isinstance(step, TrajectoryCall):
            calls.append(call_text(step))
            letters.append(_LETTERS[step.outcome])
        else:
            calls.append(None)
            letters.append(MESSAGE_LETTER)
    keys = path_columns(trajectory, rules, task_id) if is_comparable(trajectory) else None
    whole = trajectory if keys is None else None
    return PackedTrajectory(tuple(calls), "".join(letters), tuple(groups), keys, whole)


def path_columns(
    trajectory: Trajectory, rules: RuleSet, task_id: str, own: bytes = b""
) -> PathColumns:
    """The path keys of a trajectory; `own` tells one that cannot be compared from all others.

    They are those of the names of tools as columns hold them, from which they are made anew.
    """
    return columns_of(path_keys(_as_stored(trajectory), rules, task_id, own=own))


def _as_stored(trajectory: Trajectory) -> Trajectory:
    names = {step.name for step in trajectory if isinstance(step, TrajectoryCall)}
    if all(clean_text(name) == name for name in names):
        return trajectory
    return tuple(
        replace(step, name=clean_text(step.name)) if isinstance(step, TrajectoryCall) else step
        for step in trajectory
    )


def columns_of(keys: PathKeys) -> PathColumns:
    """Keys in the order of their columns, and what the trajectory did."""
    columns = tuple([getattr(keys, name) for name in KEY_NAMES])
    return PathColumns(columns, keys.n_writes, keys.n_handoffs)


def call_text(call: TrajectoryCall) -> CallText:
    """What makes a call distinct. Raw text stays as it is, marked by its form."""
    text = "" if call.form is ArgumentsForm.ABSENT else call.arguments_text
    return (call.name, call.form.value, text)


def is_comparable(trajectory: Trajectory) -> bool:
    """Whether every call was recorded with its arguments."""
    return all(
        not isinstance(step, TrajectoryCall) or step.form is not ArgumentsForm.ABSENT
        for step in trajectory
    )
