"""Distinct calls, distinct trajectories, and the path keys of each under the rules."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from django.db import connection

from evalsite.common.copying import copy_rows, next_ids
from traces.core.canonical import digest_of
from traces.core.paths import PATHS_VERSION
from traces.core.rules import RuleSet
from traces.core.text_marks import clean_text
from traces.models import System, Task, Tool
from traces.selectors.paths import KEY_NAMES
from traces.selectors.rules import rules_of, shown_rules
from traces.services.packing import CallText, PackedTrajectory, PathColumns, path_columns


class WantedTrajectory(NamedTuple):
    """A trajectory of a task. `own` tells its trial from every other."""

    task: Task
    packed: PackedTrajectory
    own: bytes


class _Shape(NamedTuple):
    """A trajectory as its row holds it."""

    wanted: WantedTrajectory
    steps: list[int]
    digest: uuid.UUID

    @property
    def key(self) -> tuple[int, uuid.UUID]:
        return (self.wanted.task.pk, self.digest)


def store_trajectories(system: System, wanted: Sequence[WantedTrajectory]) -> list[int]:
    """The ids of trajectories, stored where they are new, with their calls and path keys."""
    calls = _store_calls(system, (one.packed for one in wanted))
    shapes = [_shape(one, calls) for one in wanted]
    known = _known(shapes)
    fresh = {shape.key: shape for shape in shapes if shape.key not in known}
    if fresh:
        known |= _write(system, list(fresh.values()))
    return [known[shape.key] for shape in shapes]


def _shape(wanted: WantedTrajectory, calls: dict[CallText, int]) -> _Shape:
    packed = wanted.packed
    steps = [0 if call is None else calls[call] for call in packed.calls]
    digest = blake2b(f"{steps}{packed.outcomes}{packed.groups}".encode(), digest_size=16)
    if packed.keys is None:
        digest.update(wanted.own)
    return _Shape(wanted, steps, uuid.UUID(bytes=digest.digest()))


def _store_calls(system: System, trajectories: Iterable[PackedTrajectory]) -> dict[CallText, int]:
    texts = {call for one in trajectories for call in one.calls if call is not None}
    tools = _store_tools(system, {name for name, _, _ in texts})
    keyed = {(tools[text[0]], _call_digest(text)): text for text in texts}
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
                (pk, key[0], keyed[key][1], keyed[key][2], key[1])
                for pk, key in zip(ids, missing, strict=True)
            ),
        )
        found |= dict(zip(missing, ids, strict=True))
    return {keyed[key]: pk for key, pk in found.items()}


def _call_digest(call: CallText) -> uuid.UUID:
    _, form, text = call
    return uuid.UUID(bytes=blake2b(f"{form}:{text}".encode(), digest_size=16).digest())


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
            (
                pk,
                shape.wanted.task.pk,
                shape.digest,
                shape.steps,
                shape.wanted.packed.outcomes,
                list(shape.wanted.packed.groups),
                shape.wanted.packed.keys is not None,
            )
            for pk, shape in zip(ids, shapes, strict=True)
        ),
    )
    rules = rules_of(system)
    write_paths(
        shown_rules(system).pk,
        ((pk, _keys(shape.wanted, rules)) for pk, shape in zip(ids, shapes, strict=True)),
    )
    return {shape.key: pk for pk, shape in zip(ids, shapes, strict=True)}


def _keys(wanted: WantedTrajectory, rules: RuleSet) -> PathColumns:
    packed = wanted.packed
    if packed.keys is not None:
        return packed.keys
    return path_columns(packed.whole or (), rules, wanted.task.task_id, wanted.own)


_PATH_COLUMNS = (
    ("trajectory_id", "int8"),
    ("rules_id", "int8"),
    ("algorithm", "int2"),
    ("n_writes", "int4"),
    ("n_handoffs", "int4"),
    *((name, "uuid") for name in KEY_NAMES),
)


def write_paths(rules_id: int, keys: Iterable[tuple[int, PathColumns]]) -> None:
    """Store the path keys of trajectories, by their ids, under a version of the rules."""
    copy_rows(
        "traces_trajectorypaths",
        _PATH_COLUMNS,
        (
            (
                pk,
                rules_id,
                PATHS_VERSION,
                columns.n_writes,
                columns.n_handoffs,
                *[uuid.UUID(bytes=key) for key in columns.keys],
            )
            for pk, columns in keys
        ),
    )
