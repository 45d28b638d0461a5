"""Path keys of stored trajectories, worked out from the lines of their distinct calls.

`evalsite.rebuilding` makes the keys of the shown rules anew with it, `evalsite.rules_work` those
of a version that is to be shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.db import connection
from django.db.backends.utils import CursorWrapper

from traces.core.paths import PATHS_VERSION
from traces.models import RulesVersion
from traces.selectors.rules import rules_in
from traces.selectors.stored_keys import StoredKeys, WantedKeys
from traces.services.packing import columns_of
from traces.services.trajectories import write_paths
from traces.services.trials import own_mark

BATCH = 2_000
MOST_STEPS = 400_000  # of a batch, unless one trajectory alone has more


class Keyless(NamedTuple):
    """A trajectory that needs keys."""

    pk: int
    wanted: WantedKeys


_TRAJECTORIES = """
SELECT j.id, j.task_id, k.task_id, length(j.outcomes), j.is_comparable
FROM traces_trajectory j JOIN traces_task k ON k.id = j.task_id
WHERE k.system_id = %s AND {where} ORDER BY j.id LIMIT %s
"""
_AFTER = _TRAJECTORIES.format(where="j.id > %s")
_WITHOUT = _TRAJECTORIES.format(
    where="NOT EXISTS (SELECT 1 FROM traces_trajectorypaths p WHERE p.trajectory_id = j.id"
    " AND p.rules_id = %s AND p.algorithm = %s)"
)
# A trajectory that cannot be compared belongs to one trial, whose mark is in its keys. The trials
# of its task are read once a batch: there is no index by trajectory.
_MARKS = """
SELECT trajectory_id, digest, run_id, label, attempt FROM traces_trial
WHERE task_id = ANY(%s) AND trajectory_id = ANY(%s)
"""


def trajectories_after(system_id: int, after: int) -> list[Keyless]:
    """The next trajectories of a system by id, as many as one batch takes."""
    return _rows(_AFTER, [system_id, after, BATCH])


def trajectories_without_keys(system_id: int, rules_id: int) -> list[Keyless]:
    """Trajectories of a system without keys under a version, as many as one batch takes."""
    return _rows(_WITHOUT, [system_id, rules_id, PATHS_VERSION, BATCH])


def _rows(sql: str, parameters: list[int]) -> list[Keyless]:
    n_steps = 0
    found: list[tuple[int, str]] = []
    own_of: dict[int, int] = {}  # the task of each trajectory that cannot be compared
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for pk, task_pk, task_id, length, is_comparable in cursor.fetchall():
            n_steps += length
            if found and n_steps > MOST_STEPS:
                break
            found.append((pk, task_id))
            if not is_comparable:
                own_of[pk] = task_pk
        marks = _marks(cursor, own_of) if own_of else {}
    return [Keyless(pk, WantedKeys(task_id, marks.get(pk, b""))) for pk, task_id in found]


def _marks(cursor: CursorWrapper, tasks: dict[int, int]) -> dict[int, bytes]:
    cursor.execute(_MARKS, [list(set(tasks.values())), list(tasks)])
    return {pk: own_mark(digest.bytes, *trial) for pk, digest, *trial in cursor.fetchall()}


class KeyMaker:
    """Stores keys under one version of the rules."""

    def __init__(self, version: RulesVersion) -> None:
        self.version = version
        self._keys = StoredKeys(rules_in(version))

    def write(self, rows: Sequence[Keyless]) -> None:
        """Store the keys of trajectories that have none under the version."""
        keys = self._keys.keys({row.pk: row.wanted for row in rows})
        write_paths(self.version.pk, ((row.pk, columns_of(keys[row.pk])) for row in rows))
