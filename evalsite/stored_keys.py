"""Path keys of stored trajectories, worked out from the lines of their distinct calls.

`evalsite.rebuilding` makes the keys of the shown rules anew with it, `evalsite.rules_work` those
of a version that is to be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection

from traces.core.paths import PATHS_VERSION, CallLines, call_texts, keys_of_lines
from traces.models import RulesVersion
from traces.selectors.rules import rules_in
from traces.selectors.trajectories import MESSAGE, StoredSteps, stored_calls, stored_steps
from traces.services.packing import PathColumns, columns_of
from traces.services.trajectories import write_paths
from traces.services.trials import own_mark

BATCH = 2_000
MOST_STEPS = 400_000  # of a batch, unless one trajectory alone has more
MOST_KEPT_CHARS = 64 * 1024 * 1024


class Keyless(NamedTuple):
    """A trajectory that needs keys."""

    pk: int
    task_id: str
    own: bytes  # tells the trial of a trajectory that cannot be compared
    n_steps: int


# A trajectory that cannot be compared belongs to one trial, whose mark is in its keys.
_TRAJECTORIES = """
SELECT j.id, k.task_id, length(j.outcomes), t.digest, t.run_id, t.label, t.attempt
FROM traces_trajectory j
JOIN traces_task k ON k.id = j.task_id
LEFT JOIN traces_trial t
    ON NOT j.is_comparable AND t.task_id = j.task_id AND t.trajectory_id = j.id
WHERE k.system_id = %s AND {where} ORDER BY j.id LIMIT %s
"""
_AFTER = _TRAJECTORIES.format(where="j.id > %s")
_WITHOUT = _TRAJECTORIES.format(
    where="NOT EXISTS (SELECT 1 FROM traces_trajectorypaths p WHERE p.trajectory_id = j.id"
    " AND p.rules_id = %s AND p.algorithm = %s)"
)


def trajectories_after(system_id: int, after: int) -> list[Keyless]:
    """The next trajectories of a system by id, as many as one batch takes."""
    return _rows(_AFTER, [system_id, after, BATCH])


def trajectories_without_keys(system_id: int, rules_id: int) -> list[Keyless]:
    """Trajectories of a system without keys under a version, as many as one batch takes."""
    return _rows(_WITHOUT, [system_id, rules_id, PATHS_VERSION, BATCH])


def _rows(sql: str, parameters: list[int]) -> list[Keyless]:
    rows: list[Keyless] = []
    n_steps = 0
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for pk, task_id, length, digest, *trial in cursor.fetchall():
            n_steps += length
            if rows and n_steps > MOST_STEPS:
                break
            own = own_mark(digest.bytes, *trial) if digest else b""
            rows.append(Keyless(pk, task_id, own, length))
    return rows


class KeyMaker:
    """Works out keys under one version of the rules, and the lines of each distinct call once."""

    def __init__(self, version: RulesVersion) -> None:
        self.version = version
        self._rules = rules_in(version)
        self._lines: dict[tuple[str | None, int], CallLines] = {}
        self._n_chars = 0

    def write(self, rows: Sequence[Keyless]) -> None:
        """Store the keys of trajectories that have none under the version."""
        steps = stored_steps(row.pk for row in rows)
        self._look_up(rows, steps)
        write_paths(self.version.pk, ((row.pk, self._columns(row, steps[row.pk])) for row in rows))

    def _look_up(self, rows: Sequence[Keyless], steps: dict[int, StoredSteps]) -> None:
        """Make the lines of the calls of a batch that are not at hand."""
        if self._n_chars > MOST_KEPT_CHARS:
            self._lines.clear()
            self._n_chars = 0
        wanted: dict[str | None, set[int]] = {}
        for row in rows:
            wanted.setdefault(self._scope(row.task_id), set()).update(steps[row.pk].calls)
        missing = {
            (scope, call) for scope, ids in wanted.items() for call in ids if call != MESSAGE
        } - self._lines.keys()
        calls = stored_calls(call for _, call in missing)
        for scope, pk in missing:
            call = calls[pk]
            lines = call_texts(self._rules, scope).lines_of_text(call.name, call.form, call.text)
            self._lines[scope, pk] = lines
            self._n_chars += len(lines.exact) + len(lines.normal)

    def _scope(self, task_id: str) -> str | None:
        return task_id if self._rules.has_rules_for(task_id) else None

    def _columns(self, row: Keyless, steps: StoredSteps) -> PathColumns:
        scope = self._scope(row.task_id)
        keys = keys_of_lines(
            [None if call == MESSAGE else self._lines[scope, call] for call in steps.calls],
            [letter == "c" for letter in steps.outcomes],
            own=row.own,
        )
        return columns_of(keys)
