"""A task with its versions, figures and paths."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from traces.core.records import Disposition
from traces.selectors.paths import KEY_NAMES

PAGE_GROUPS = 20
LISTED_TRIALS = 8


@dataclass(frozen=True, slots=True)
class ChosenTrials:
    """Trials of a task: of some releases (none: all) and of one version (None: all)."""

    task_pk: int
    rules_pk: int | None
    release_pks: tuple[int, ...] = ()
    version_pk: int | None = None

    @property
    def values(self) -> dict[str, Any]:
        """What the queries of this module call them."""
        return {
            "task": self.task_pk,
            "rules": self.rules_pk,
            "releases": list(self.release_pks) or None,
            "version": self.version_pk,
        }


# The slots of the task: last attempts, without production traces and injected faults.
SLOTS = """
SELECT t.id, t.uuid, t.label, t.attempt, t.release_id, t.trajectory_id, t.cost_usd,
       t.n_tool_calls, d.value, t.environment = 'test' AND NOT t.has_fault AS counted
FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
WHERE t.task_id = %(task)s
  AND (%(releases)s::bigint[] IS NULL OR t.release_id = ANY(%(releases)s))
  AND (%(version)s::bigint IS NULL OR t.task_version_id = %(version)s)
"""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version of a task and how many trials were of it."""

    pk: int
    number: int
    n_trials: int


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task with its versions, oldest first, and the definition of the newest."""

    pk: int
    uuid: UUID
    task_id: str
    title: str
    family: str
    split: str
    versions: tuple[VersionRow, ...]
    definition: bytes  # packed

    def version(self, number: int) -> VersionRow | None:
        """The version of that number."""
        return next((row for row in self.versions if row.number == number), None)


def task_detail(system_id: int, identity: UUID) -> TaskDetail | None:
    """The task of that address in the system, in one query; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.id, t.uuid, t.task_id, t.title, t.family, t.split, v.id, v.number,"
            " (SELECT count(*) FROM traces_trial x WHERE x.task_id = t.id"
            "  AND x.task_version_id = v.id),"
            " CASE WHEN v.number = max(v.number) OVER () THEN v.definition END"
            " FROM traces_task t LEFT JOIN traces_taskversion v ON v.task_id = t.id"
            " WHERE t.system_id = %s AND t.uuid = %s ORDER BY v.number",
            [system_id, identity],
        )
        rows = cursor.fetchall()
    if not rows:
        return None
    versions = tuple(VersionRow(*row[6:9]) for row in rows if row[6] is not None)
    definition = bytes(rows[-1][9] or b"")
    return TaskDetail(*[*rows[0][:6], versions, definition])


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Counts and costs of the chosen trials of a task, and its passing paths at every level."""

    n_run: int
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_error: int
    n_left_out: int
    n_not_comparable: int  # passing trials with a call whose arguments were not recorded
    n_paths: tuple[int, ...]  # one for each of KEY_NAMES
    n_costs: int  # passing trials whose cost is known
    cost_median: Decimal | None
    cost_p95: Decimal | None

    @property
    def n_graded(self) -> int:
        """Trials that passed or failed."""
        return self.n_pass + self.n_fail

    def paths_at(self, key: str) -> int:
        """The number of distinct passing paths at a level."""
        return self.n_paths[KEY_NAMES.index(key)]


_PASSED = "FILTER (WHERE counted AND value = 'pass')"
_DISTINCT = ", ".join(f"count(DISTINCT p.{name}) FILTER (WHERE passed)" for name in KEY_NAMES)
# Slots are folded into distinct trajectories first, so that the many DISTINCTs sort few rows.
_SUMMARY = f"""
WITH s AS ({SLOTS}), folded AS (
    SELECT trajectory_id, bool_or(counted AND value = 'pass') AS passed,
           count(*) {_PASSED} AS n_pass
    FROM s GROUP BY trajectory_id
), paths AS (
    SELECT {_DISTINCT},
           coalesce(sum(n_pass) FILTER (WHERE NOT j.is_comparable), 0)
    FROM folded f JOIN traces_trajectory j ON j.id = f.trajectory_id
    JOIN traces_trajectorypaths p ON p.trajectory_id = f.trajectory_id AND p.rules_id = %(rules)s
), costs AS (
    SELECT count(*), (percentile_disc(0.5) WITHIN GROUP (ORDER BY cost_usd)
            + percentile_disc(0.5) WITHIN GROUP (ORDER BY cost_usd DESC)) / 2,
           percentile_disc(0.95) WITHIN GROUP (ORDER BY cost_usd)
    FROM s WHERE counted AND value = 'pass' AND cost_usd IS NOT NULL
)
SELECT n.*, costs.*, paths.* FROM (
    SELECT count(*) FILTER (WHERE counted), count(*) {_PASSED},
           count(*) FILTER (WHERE counted AND value = 'fail'),
           count(*) FILTER (WHERE counted AND value = 'unresolved'),
           count(*) FILTER (WHERE counted AND value = 'harness_error'),
           count(*) FILTER (WHERE NOT counted)
    FROM s
) n, costs, paths
"""  # noqa: S608 - made of constants


def task_summary(chosen: ChosenTrials) -> TaskSummary:
    """Counts, costs and the number of passing paths at every level, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_SUMMARY, chosen.values)
        row = cursor.fetchone()
    counts, costs, (*paths, n_not_comparable) = row[:6], row[6:9], row[9:]
    return TaskSummary(*[*counts, int(n_not_comparable), tuple(paths), *costs])


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """A trial as a group lists it."""

    uuid: UUID
    label: str
    attempt: int
    release_pk: int


@dataclass(frozen=True, slots=True)
class GroupRow:
    """The trials of a task with one disposition that took one path."""

    rank: int  # from 1, most trials first
    key: UUID
    value: Disposition
    n_trials: int
    n_finer: int  # distinct exact paths among them
    release_pks: tuple[int, ...]
    representative: int  # the trajectory of the first trial
    members: tuple[tuple[int, int], ...]  # trajectory, trials that took it; most trials first
    n_tool_calls: int  # of the first trial
    cost_median: Decimal | None
    trials: tuple[GroupTrial, ...]  # the first ones


LABEL_ORDER = (
    "r.name, CASE WHEN s.label ~ '^[0-9]{1,9}$' THEN lpad(s.label, 10, '0') ELSE 'x' END,"
    " s.label, s.attempt, s.id"
)
_GROUPS = """
WITH s AS ({slots}), ordered AS (
    SELECT s.*, p.{key} AS key, p.{finer} AS finer, row_number() OVER (ORDER BY {order}) AS place
    FROM s JOIN traces_release r ON r.id = s.release_id
    JOIN traces_trajectorypaths p ON p.trajectory_id = s.trajectory_id AND p.rules_id = %(rules)s
    WHERE counted AND s.value = ANY(%(dispositions)s)
)
SELECT row_number() OVER (ORDER BY count(*) DESC, min(place)), key, value, count(*),
       count(DISTINCT finer), array_agg(release_id ORDER BY place),
       array_agg(trajectory_id ORDER BY place), (array_agg(n_tool_calls ORDER BY place))[1],
       (percentile_disc(0.5) WITHIN GROUP (ORDER BY cost_usd)
        + percentile_disc(0.5) WITHIN GROUP (ORDER BY cost_usd DESC)) / 2,
       (array_agg(uuid ORDER BY place))[1:%(listed)s],
       (array_agg(label ORDER BY place))[1:%(listed)s],
       (array_agg(attempt ORDER BY place))[1:%(listed)s]
FROM ordered GROUP BY value, key
ORDER BY count(*) DESC, min(place) LIMIT %(n)s OFFSET %(skip)s
"""


def path_groups(
    chosen: ChosenTrials,
    *,
    path_key: str,
    finer_key: str,
    dispositions: Iterable[Disposition] = (Disposition.PASS,),
    skip: int = 0,
    n: int = PAGE_GROUPS,
) -> tuple[GroupRow, ...]:
    """Groups of trials by path: most trials first, then by first trial; in one query.

    `path_key` and `finer_key` are of `KEY_NAMES`.
    """
    if path_key not in KEY_NAMES or finer_key not in KEY_NAMES:
        raise ValueError(f"no columns of path keys: {path_key}, {finer_key}")
    query = _GROUPS.format(
        slots=SLOTS,
        key=path_key,
        finer=finer_key,
        order=LABEL_ORDER,
    )
    with connection.cursor() as cursor:
        cursor.execute(
            query,
            {
                **chosen.values,
                "dispositions": [value.value for value in dispositions],
                "listed": LISTED_TRIALS,
                "skip": skip,
                "n": n,
            },
        )
        return tuple(_group(row) for row in cursor.fetchall())


def _group(row: tuple[Any, ...]) -> GroupRow:
    rank, key, value, n_trials, n_finer, releases, taken, n_calls, cost, uuids, labels, tries = row
    return GroupRow(
        rank=rank,
        key=key,
        value=Disposition(value),
        n_trials=n_trials,
        n_finer=n_finer,
        release_pks=tuple(dict.fromkeys(releases)),
        representative=taken[0],
        members=tuple(Counter(taken).most_common()),
        n_tool_calls=n_calls,
        cost_median=cost,
        trials=tuple(
            GroupTrial(*trial)
            for trial in zip(uuids, labels, tries, releases[: len(uuids)], strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class ComparedTrial:
    """A trial of a task as the comparison needs it."""

    pk: int
    uuid: UUID
    label: str
    attempt: int
    release_name: str
    trajectory: int
    value: Disposition
    key: UUID  # of its path at the level that is looked at


def compared_trials(
    chosen: ChosenTrials, identities: Iterable[UUID], *, path_key: str
) -> dict[UUID, ComparedTrial]:
    """The trials of the task among some addresses, whatever the release or version."""
    if path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {path_key}")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.id, t.uuid, t.label, t.attempt, r.name, t.trajectory_id,"  # noqa: S608
            f" coalesce(d.value, 'unresolved'), p.{path_key} FROM traces_trial t"
            " JOIN traces_release r ON r.id = t.release_id"
            " JOIN traces_trajectorypaths p"
            "  ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s"
            " LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id"
            " WHERE t.task_id = %(task)s AND t.uuid = ANY(%(uuids)s)",
            {**chosen.values, "uuids": list(identities)},
        )
        return {
            row[1]: ComparedTrial(*[*row[:6], Disposition(row[6]), row[7]])
            for row in cursor.fetchall()
        }
