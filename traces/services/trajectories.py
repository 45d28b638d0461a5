"""Distinct calls, distinct trajectories, and the path keys of each under the rules."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from django.db import connection

from evalsite.common.copying import copy_rows, next_ids
from traces.core.canonical import digest_of
from traces.core.paths import PATHS_VERSION, path_keys
from traces.core.rules import RuleSet
from traces.core.text_marks import clean_text
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    Trajectory,
    TrajectoryCall,
)
from traces.models import System, Task, Tool
from traces.selectors.paths import KEY_NAMES
from traces.selectors.rules import rules_of, shown_rules

_LETTERS = {CallOutcome.COMMITTED: "c", CallOutcome.REJECTED: "r", CallOutcome.UNKNOWN: "u"}
MESSAGE_LETTER = "m"

CallText = tuple[str, ArgumentsForm, str]
"""Tool name, form and canonical text of the arguments: what makes two calls the same."""


def call_text(call: TrajectoryCall) -> CallText:
    """What makes a call distinct. Raw text stays as it is, marked by its form."""
    match call.form:
        case ArgumentsForm.ABSENT:
            return (call.name, call.form, "")
        case ArgumentsForm.INVALID | ArgumentsForm.JSON:
            return (call.name, call.form, call.arguments_text)


def store_trajectories(
    system: System, wanted: Sequence[tuple[Task, Trajectory, bytes]]
) -> list[int]:
    """The ids of trajectories, stored where they are new, with their calls and path keys.

    `wanted` gives task, trajectory and what tells its trial from every other, which keeps a
    trajectory that cannot be compared apart.
    """
    calls = _store_calls(system, (t for _, t, _ in wanted))
    shapes = [_Shape.of(task, trajectory, own, calls) for task, trajectory, own in wanted]
    known = _known(shapes)
    fresh = {shape.key: shape for shape in shapes if shape.key not in known}
    if fresh:
        known |= _write(system, list(fresh.values()))
    return [known[shape.key] for shape in shapes]


class _Shape:
    """A trajectory as its row holds it."""

    __slots__ = ("digest", "groups", "key", "outcomes", "own", "steps", "task", "trajectory")

    def __init__(
        self,
        task: Task,
        trajectory: Trajectory,
        own: bytes,
        steps: list[int],
        outcomes: str,
        groups: list[int],
    ) -> None:
        comparable = is_comparable(trajectory)
        digest = blake2b(digest_size=16)
        digest.update(",".join(map(str, steps)).encode())
        digest.update(outcomes.encode())
        digest.update(",".join(map(str, groups)).encode())
        if not comparable:
            digest.update(own)
        self.task, self.trajectory, self.own = task, trajectory, own
        self.steps, self.outcomes, self.groups = steps, outcomes, groups
        self.digest = uuid.UUID(bytes=digest.digest())
        self.key = (task.pk, self.digest)

    @classmethod
    def of(
        cls, task: Task, trajectory: Trajectory, own: bytes, calls: dict[CallText, int]
    ) -> _Shape:
        steps: list[int] = []
        letters: list[str] = []
        groups: list[int] = []
        group, last = -1, None
        for step in trajectory:
            if step.step != last:
                group, last = group + 1, step.step
            groups.append(group)
            if isinstance(step, TrajectoryCall):
                steps.append(calls[call_text(step)])
                letters.append(_LETTERS[step.outcome])
            else:
                steps.append(0)
                letters.append(MESSAGE_LETTER)
        return cls(task, trajectory, own, steps, "".join(letters), groups)


def is_comparable(trajectory: Trajectory) -> bool:
    """Whether every call was recorded with its arguments."""
    return all(
        not isinstance(step, TrajectoryCall) or step.form is not ArgumentsForm.ABSENT
        for step in trajectory
    )


def _store_calls(system: System, trajectories: Iterable[Trajectory]) -> dict[CallText, int]:
    texts = {
        call_text(step)
        for trajectory in trajectories
        for step in trajectory
        if isinstance(step, TrajectoryCall)
    }
    tools = _store_tools(system, {name for name, _, _ in texts})
    keyed = {
        (tools[name], _call_digest(form, text)): (name, form, text) for name, form, text in texts
    }
    found = _known_calls(keyed.keys())
    missing = [key for key in keyed if key not in found]
    if missing:
        ids = next_ids("traces_distinctcall", len(missing))
        copy_rows(
            "traces_distinctcall",
            (
                ("id", "int8"),
                ("tool_id", "int8"),
                ("form", "text"),
                ("arguments", "text"),
                ("digest", "uuid"),
            ),
            (
                (pk, key[0], keyed[key][1].value, keyed[key][2], key[1])
                for pk, key in zip(ids, missing, strict=True)
            ),
        )
        found |= dict(zip(missing, ids, strict=True))
    return {keyed[key]: pk for key, pk in found.items()}


def _call_digest(form: ArgumentsForm, text: str) -> uuid.UUID:
    return uuid.UUID(bytes=blake2b(f"{form.value}:{text}".encode(), digest_size=16).digest())


def _known_calls(keys: Iterable[tuple[int, uuid.UUID]]) -> dict[tuple[int, uuid.UUID], int]:
    pairs = list(keys)
    with connection.cursor() as cursor:
        cursor.execute(
            # LATERAL with LIMIT: one index look-up a key, never a scan of the whole table.
            "SELECT k.tool_id, k.digest, c.id"
            " FROM unnest(%s::bigint[], %s::uuid[]) AS k(tool_id, digest)"
            " CROSS JOIN LATERAL (SELECT id FROM traces_distinctcall"
            " WHERE tool_id = k.tool_id AND digest = k.digest LIMIT 1) c",
            [[tool for tool, _ in pairs], [digest for _, digest in pairs]],
        )
        return {(tool, digest): pk for tool, digest, pk in cursor.fetchall()}


def _store_tools(system: System, names: set[str]) -> dict[str, int]:
    digests = {name: _name_digest(name) for name in names}
    wanted = set(digests.values())
    found = {row.digest: row.pk for row in Tool.objects.filter(system=system, digest__in=wanted)}
    missing = {digest: name for name, digest in digests.items() if digest not in found}
    if missing:
        rows = Tool.objects.bulk_create(
            [Tool(system=system, name=clean_text(n), digest=d) for d, n in missing.items()]
        )
        found |= {row.digest: row.pk for row in rows}
    return {name: found[digest] for name, digest in digests.items()}


def _name_digest(name: str) -> uuid.UUID:
    return uuid.UUID(bytes=digest_of(name))


def _known(shapes: Sequence[_Shape]) -> dict[tuple[int, uuid.UUID], int]:
    keys = {shape.key for shape in shapes}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT k.task_id, k.digest, t.id"
            " FROM unnest(%s::bigint[], %s::uuid[]) AS k(task_id, digest)"
            " CROSS JOIN LATERAL (SELECT id FROM traces_trajectory"
            " WHERE task_id = k.task_id AND digest = k.digest LIMIT 1) t",
            [[task for task, _ in keys], [digest for _, digest in keys]],
        )
        return {(task, digest): pk for task, digest, pk in cursor.fetchall()}


def _write(system: System, shapes: Sequence[_Shape]) -> dict[tuple[int, uuid.UUID], int]:
    ids = next_ids("traces_trajectory", len(shapes))
    copy_rows(
        "traces_trajectory",
        (
            ("id", "int8"),
            ("task_id", "int8"),
            ("digest", "uuid"),
            ("steps", "int8[]"),
            ("outcomes", "text"),
            ("groups", "int4[]"),
            ("is_comparable", "bool"),
        ),
        (
            (pk, s.task.pk, s.digest, s.steps, s.outcomes, s.groups, is_comparable(s.trajectory))
            for pk, s in zip(ids, shapes, strict=True)
        ),
    )
    write_paths(
        shown_rules(system).pk,
        rules_of(system),
        ((pk, s.trajectory, s.task.task_id, s.own) for pk, s in zip(ids, shapes, strict=True)),
    )
    return {s.key: pk for pk, s in zip(ids, shapes, strict=True)}


_PATH_COLUMNS = (
    ("trajectory_id", "int8"),
    ("rules_id", "int8"),
    ("algorithm", "int2"),
    *((name, "uuid") for name in KEY_NAMES),
)


def write_paths(
    rules_id: int,
    rules: RuleSet,
    trajectories: Iterable[tuple[int, Trajectory, str, bytes]],
) -> None:
    """Store the path keys of trajectories (id, trajectory, task id, own digest) under rules."""
    copy_rows(
        "traces_trajectorypaths",
        _PATH_COLUMNS,
        (
            (pk, rules_id, PATHS_VERSION, *_key_columns(trajectory, rules, task_id, own))
            for pk, trajectory, task_id, own in trajectories
        ),
    )


def _key_columns(
    trajectory: Trajectory, rules: RuleSet, task_id: str, own: bytes
) -> list[uuid.UUID]:
    keys = path_keys(trajectory, rules, task_id, own=own)
    return [uuid.UUID(bytes=getattr(keys, name)) for name in KEY_NAMES]
