"""A release against another one, task by task: results, passing paths, steps, cost and tools.

What is compared: the slots (last attempts) of both releases, without production traces and trials
with an injected fault, of tasks that are not of split `tuning`, and of one version of each task:
the newest that both releases tried. Versions are never pooled.

A task *flips to fail* when every graded trial passed in the earlier release and at least one fails
in the later one; it *flips to pass* when every graded trial failed and at least one passes. With
one trial a task that is pass to fail and fail to pass. Unresolved trials and harness errors are
not graded and make no flip.

A passing path is *kept* when passing trials of both releases took it, *gone* when only the earlier
one's did, *new* when only the later one's did. A task passes *by other paths* when trials of both
releases passed and some path is gone or new. A task is *changed* when its rate of passed among
graded trials is another one, when only one release has graded trials, or when a path is gone or new.

Tool calls and cost are medians over passing trials, of one task or one path. Over all compared
tasks it is only counted in how many the median fell, rose or stayed: a median over trials of many
tasks follows how many trials each of them has.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection

from traces.selectors.paths import KEY_NAMES

PAGE_TASKS = 20
LISTED_PATHS = 3  # of each fate
LISTED_TOOLS = 30
LISTED_LEFT_OUT = 20


@dataclass(frozen=True, slots=True)
class ComparedReleases:
    """Which releases are compared, and when two trials count as the same path."""

    system_id: int
    now_pk: int
    then_pk: int
    rules_pk: int | None
    path_key: str  # one of `KEY_NAMES`

    @property
    def values(self) -> dict[str, Any]:
        """What the queries of this module call them."""
        return {
            "system": self.system_id,
            "now": self.now_pk,
            "then": self.then_pk,
            "rules": self.rules_pk,
            "tasks": None,
        }


class Flip(StrEnum):
    """How a task's result turned round."""

    NONE = "none"
    TO_FAIL = "to_fail"
    TO_PASS = "to_pass"


@dataclass(frozen=True, slots=True)
class ReleaseSide:
    """The trials of one release that are compared: of a task, or of all compared tasks."""

    n_run: int
    n_pass: int
    n_fail: int

    @property
    def n_graded(self) -> int:
        """Trials that passed or failed."""
        return self.n_pass + self.n_fail


@dataclass(frozen=True, slots=True)
class Moves:
    """What became of a task's median, over the compared tasks that have one in both releases."""

    n_lower: int
    n_higher: int
    n_same: int

    @property
    def n_tasks(self) -> int:
        """Compared tasks that have the median in both releases."""
        return self.n_lower + self.n_higher + self.n_same


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """A task of both releases; the medians are over its passing trials, costs over known ones."""

    pk: int
    uuid: UUID
    task_id: str
    title: str
    version: int
    then: ReleaseSide
    now: ReleaseSide
    calls_then: Decimal | None
    calls_now: Decimal | None
    cost_then: Decimal | None
    cost_now: Decimal | None
    flip: Flip
    n_kept: int
    n_gone: int
    n_new: int
    failing_then: UUID | None  # the first failing trial of the earlier release
    failing_now: UUID | None
    paths: tuple[PathChange, ...] = ()  # gone, new, kept; the first ones of each

    @property
    def n_paths(self) -> int:
        """Passing paths of either release."""
        return self.n_kept + self.n_gone + self.n_new


class PathFate(StrEnum):
    """What became of a passing path."""

    GONE = "gone"
    NEW = "new"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class PathChange:
    """A passing path of a task in both releases; the medians are over its passing trials."""

    key: UUID
    fate: PathFate
    n_then: int
    n_now: int
    calls_then: Decimal | None
    calls_now: Decimal | None
    cost_then: Decimal | None
    cost_now: Decimal | None
    trial_then: UUID | None  # the first one that took it
    trial_now: UUID | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A task that is not compared, or not with all of its trials, and why."""

    uuid: UUID
    task_id: str
    reason: str  # tuning | only_then | only_now | versions_differ | other_versions
    n_trials: int  # that are left out
    versions_then: tuple[int, ...]
    versions_now: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReleaseComparison:
    """Totals over all compared tasks, and one page of them.

    Tasks come with flips to fail first, then flips to pass, then other paths, then other rates,
    then the rest; within each by task id.
    """

    n_tasks: int
    n_changed: int
    n_to_fail: int
    n_to_pass: int
    n_less_often: int  # tasks that pass less often, without a flip
    n_more_often: int
    n_no_longer_graded: int  # tasks with graded trials in the earlier release only
    n_other_paths: int  # tasks that pass in both by other paths
    n_kept: int  # passing paths over all tasks
    n_gone: int
    n_new: int
    then: ReleaseSide
    now: ReleaseSide
    calls: Moves  # of the median tool calls of passing trials
    cost: Moves
    tools_gone: tuple[str, ...]  # used then and not now, by how many trials used them
    tools_new: tuple[str, ...]
    n_tools_gone: int
    n_tools_new: int
    tasks: tuple[ComparedTask, ...]
    next_after: int | None
    previous_before: int | None
    left_out: tuple[LeftOut, ...]  # the first ones
    n_left_out: int


_MEDIAN = """(percentile_disc(0.5) WITHIN GROUP (ORDER BY {of}) {where}
    + percentile_disc(0.5) WITHIN GROUP (ORDER BY {of} DESC) {where}) / 2"""


def _side(name: str, condition: str) -> str:
    """The columns of one release; the texts are constants of this module."""
    passed = f"FILTER (WHERE {condition} AND value = 'pass')"
    return f"""
    count(*) FILTER (WHERE {condition}) AS n_run_{name}, count(*) {passed} AS n_pass_{name},
    count(*) FILTER (WHERE {condition} AND value = 'fail') AS n_fail_{name},
    {_MEDIAN.format(of="n_tool_calls::numeric", where=passed)} AS calls_{name},
    {_MEDIAN.format(of="cost_usd", where=passed)} AS cost_{name}"""


def _sums(*columns: str) -> str:
    return ", ".join(f"coalesce(sum({column}), 0)::int" for column in columns)


def _moves(median: str) -> str:
    """Columns of `Moves`; a task without the median in both releases stands in none."""
    return ", ".join(
        f"count(*) FILTER (WHERE {median}_now {sign} {median}_then)" for sign in ("<", ">", "=")
    )


_SIDES = f"{_side('then', 'NOT is_now')}, {_side('now', 'is_now')}"

# Trials of both releases, and for each task the newest version that both tried.
_COMPARED = """
s AS (
    SELECT t.id, t.uuid, t.task_id, t.task_version_id, t.trajectory_id, t.cost_usd,
           t.n_tool_calls, d.value, u.release_id = %(now)s AS is_now
    FROM traces_run u JOIN traces_trial t ON t.run_id = u.id
    JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    WHERE u.release_id IN (%(now)s, %(then)s) AND t.environment = 'test' AND NOT t.has_fault
      AND (%(tasks)s::bigint[] IS NULL OR t.task_id = ANY(%(tasks)s))
), versions AS (
    SELECT s.task_id, s.task_version_id, v.number, count(*) FILTER (WHERE is_now) AS n_now,
           count(*) FILTER (WHERE NOT is_now) AS n_then
    FROM s JOIN traces_taskversion v ON v.id = s.task_version_id GROUP BY 1, 2, 3
), tasks AS (
    SELECT v.task_id, k.uuid, k.task_id AS name, k.title, k.sort_key, k.split = 'tuning' AS tuning,
           (array_agg(v.task_version_id ORDER BY number DESC)
            FILTER (WHERE n_now > 0 AND n_then > 0))[1] AS version_id,
           max(number) FILTER (WHERE n_now > 0 AND n_then > 0) AS version,
           sum(n_now) AS n_now, sum(n_then) AS n_then,
           array_agg(number ORDER BY number) FILTER (WHERE n_now > 0) AS versions_now,
           array_agg(number ORDER BY number) FILTER (WHERE n_then > 0) AS versions_then
    FROM versions v JOIN traces_task k ON k.id = v.task_id WHERE k.system_id = %(system)s
    GROUP BY v.task_id, k.id
), c AS (
    SELECT s.* FROM s JOIN tasks x
        ON x.task_id = s.task_id AND x.version_id = s.task_version_id AND NOT x.tuning
)
"""

_BY_TASK = f"""
WITH {_COMPARED}, counts AS (
    SELECT task_id, {_SIDES},
           (array_agg(uuid ORDER BY id) FILTER (WHERE NOT is_now AND value = 'fail'))[1]
               AS failing_then,
           (array_agg(uuid ORDER BY id) FILTER (WHERE is_now AND value = 'fail'))[1]
               AS failing_now
    FROM c GROUP BY task_id
), paths AS (
    SELECT c.task_id, p.{{key}} AS key, bool_or(is_now) AS in_now, bool_or(NOT is_now) AS in_then
    FROM c JOIN traces_trajectorypaths p
        ON p.trajectory_id = c.trajectory_id AND p.rules_id = %(rules)s
    WHERE value = 'pass' GROUP BY c.task_id, p.{{key}}
), path_counts AS MATERIALIZED (
    SELECT task_id, count(*) FILTER (WHERE in_now AND in_then) AS n_kept,
           count(*) FILTER (WHERE NOT in_now) AS n_gone, count(*) FILTER (WHERE NOT in_then) AS n_new
    FROM paths GROUP BY task_id
), compared AS MATERIALIZED (
    SELECT x.*, n.*, g.*, e.*, rank, rank < 4 AS is_changed
    FROM (
        SELECT x.task_id AS id, x.uuid, x.name, x.title, x.sort_key, x.version,
               coalesce(n_kept, 0) AS n_kept, coalesce(n_gone, 0) AS n_gone,
               coalesce(n_new, 0) AS n_new
        FROM tasks x LEFT JOIN path_counts p ON p.task_id = x.task_id
    ) x JOIN counts n ON n.task_id = x.id, LATERAL (
        SELECT n_pass_then + n_fail_then AS n_graded_then, n_pass_now + n_fail_now AS n_graded_now
    ) g, LATERAL (
        SELECT n_pass_then * n_graded_now AS rate_then, n_pass_now * n_graded_then AS rate_now
    ) e, LATERAL (
        SELECT CASE
            WHEN n_pass_then > 0 AND n_fail_then = 0 AND n_fail_now > 0 THEN 0
            WHEN n_fail_then > 0 AND n_pass_then = 0 AND n_pass_now > 0 THEN 1
            WHEN n_pass_then > 0 AND n_pass_now > 0 AND n_gone + n_new > 0 THEN 2
            WHEN n_gone + n_new > 0 OR (n_graded_then = 0) <> (n_graded_now = 0)
                OR rate_then <> rate_now THEN 3
            ELSE 4 END AS rank
    ) r
), totals AS (
    SELECT count(*), count(*) FILTER (WHERE is_changed), count(*) FILTER (WHERE rank = 0),
           count(*) FILTER (WHERE rank = 1),
           count(*) FILTER (WHERE rank > 1 AND rate_now < rate_then),
           count(*) FILTER (WHERE rank > 1 AND rate_now > rate_then),
           count(*) FILTER (WHERE n_graded_then > 0 AND n_graded_now = 0),
           count(*) FILTER (WHERE n_pass_then > 0 AND n_pass_now > 0 AND n_gone + n_new > 0),
           {_sums("n_kept", "n_gone", "n_new")},
           {_sums("n_run_then", "n_pass_then", "n_fail_then")},
           {_sums("n_run_now", "n_pass_now", "n_fail_now")},
           {_moves("calls")},
           {_moves("cost")}
    FROM compared
), shown AS (
    SELECT * FROM compared WHERE (is_changed OR %(all)s) AND (%(place)s::bigint IS NULL
        OR (rank, sort_key, id) {{sign}}
           (SELECT rank, sort_key, id FROM compared WHERE id = %(place)s))
    ORDER BY rank {{way}}, sort_key {{way}}, id {{way}} LIMIT %(n)s
)
SELECT totals.*, shown.id, shown.uuid, shown.name, shown.title, shown.version,
       shown.n_run_then, shown.n_pass_then, shown.n_fail_then,
       shown.n_run_now, shown.n_pass_now, shown.n_fail_now,
       shown.calls_then, shown.calls_now, shown.cost_then, shown.cost_now,
       shown.rank, shown.n_kept, shown.n_gone, shown.n_new, shown.failing_then, shown.failing_now
FROM totals LEFT JOIN shown ON true
ORDER BY shown.rank {{way}}, shown.sort_key {{way}}, shown.id {{way}}
"""  # noqa: S608 - made of constants
_N_TOTALS = 23  # columns of `totals`, before those of a task

_PATHS = f"""
WITH {_COMPARED}, paths AS (
    SELECT c.task_id, p.{{key}} AS key, count(*) FILTER (WHERE NOT is_now) AS n_then,
           count(*) FILTER (WHERE is_now) AS n_now,
           {_MEDIAN.format(of="n_tool_calls::numeric", where="FILTER (WHERE NOT is_now)")} AS calls_then,
           {_MEDIAN.format(of="n_tool_calls::numeric", where="FILTER (WHERE is_now)")} AS calls_now,
           {_MEDIAN.format(of="cost_usd", where="FILTER (WHERE NOT is_now)")} AS cost_then,
           {_MEDIAN.format(of="cost_usd", where="FILTER (WHERE is_now)")} AS cost_now,
           (array_agg(c.uuid ORDER BY c.id) FILTER (WHERE NOT is_now))[1] AS trial_then,
           (array_agg(c.uuid ORDER BY c.id) FILTER (WHERE is_now))[1] AS trial_now
    FROM c JOIN traces_trajectorypaths p
        ON p.trajectory_id = c.trajectory_id AND p.rules_id = %(rules)s
    WHERE value = 'pass' GROUP BY c.task_id, p.{{key}}
), ordered AS (
    SELECT *, row_number() OVER (PARTITION BY task_id, fate ORDER BY n_then + n_now DESC, key)
        AS place
    FROM (SELECT *, CASE WHEN n_now = 0 THEN 0 WHEN n_then = 0 THEN 1 ELSE 2 END AS fate
          FROM paths) x
)
SELECT task_id, key, fate, n_then, n_now, calls_then, calls_now, cost_then, cost_now, trial_then,
       trial_now
FROM ordered WHERE place <= %(listed)s ORDER BY task_id, fate, place
"""  # noqa: S608 - made of constants

# Trials with the same set of tools share a key: one trajectory of each is looked into. OFFSET 0
# keeps that order: one look-up a set, not the steps of every stored trajectory.
_TOOLS = f"""
WITH {_COMPARED}, sets AS (
    SELECT p.tool_set, min(c.trajectory_id) AS trajectory_id,
           count(*) FILTER (WHERE is_now) AS n_now, count(*) FILTER (WHERE NOT is_now) AS n_then
    FROM c JOIN traces_trajectorypaths p
        ON p.trajectory_id = c.trajectory_id AND p.rules_id = %(rules)s GROUP BY p.tool_set
), used AS (
    SELECT y.tool_id, sum(n_now) AS n_now, sum(n_then) AS n_then
    FROM sets CROSS JOIN LATERAL (
        SELECT DISTINCT d.tool_id
        FROM (SELECT unnest(steps) AS call FROM traces_trajectory
              WHERE id = sets.trajectory_id OFFSET 0) x
        CROSS JOIN LATERAL (
            SELECT tool_id FROM traces_distinctcall WHERE id = x.call OFFSET 0) d
    ) y GROUP BY y.tool_id
)
SELECT o.name, n_now = 0 FROM used JOIN traces_tool o ON o.id = used.tool_id
WHERE (n_now = 0) <> (n_then = 0)
ORDER BY n_now + n_then DESC, o.name
"""  # noqa: S608 - made of constants

_LEFT_OUT = f"""
WITH {_COMPARED}, left_out AS (
    SELECT x.*, CASE
        WHEN tuning THEN 'tuning' WHEN n_now = 0 THEN 'only_then' WHEN n_then = 0 THEN 'only_now'
        WHEN version_id IS NULL THEN 'versions_differ' ELSE 'other_versions' END AS reason,
        n_now + n_then - CASE WHEN tuning THEN 0 ELSE coalesce((
            SELECT v.n_now + v.n_then FROM versions v
            WHERE v.task_id = x.task_id AND v.task_version_id = x.version_id), 0) END AS n_trials
    FROM tasks x
)
SELECT uuid, name, reason, n_trials::int, coalesce(versions_then, '{{{{}}}}'),
       coalesce(versions_now, '{{{{}}}}'), count(*) OVER ()
FROM left_out WHERE n_trials > 0
ORDER BY array_position(ARRAY['versions_differ', 'other_versions', 'only_then', 'only_now',
                              'tuning'], reason), sort_key, task_id LIMIT %(listed)s
"""  # noqa: S608 - made of constants


def release_comparison(
    compared: ComparedReleases,
    *,
    everything: bool = False,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_TASKS,
) -> ReleaseComparison:
    """One release against another, in four queries.

    Changed tasks only, unless `everything` is asked for. `after` (or `before`) is the task that
    the page follows (or precedes); the page goes on from where that task stands now.
    """
    if compared.path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {compared.path_key}")
    backward = before is not None
    query = _BY_TASK.format(
        key=compared.path_key, sign="<" if backward else ">", way="DESC" if backward else "ASC"
    )
    place = after if before is None else before
    with connection.cursor() as cursor:
        cursor.execute(query, {**compared.values, "all": everything, "place": place, "n": n + 1})
        rows = cursor.fetchall()
        found = [row for row in rows if row[_N_TOTALS] is not None]
        shown = list(reversed(found[:n])) if backward else found[:n]
        cursor.execute(
            _PATHS.format(key=compared.path_key),
            {**compared.values, "tasks": [row[_N_TOTALS] for row in shown], "listed": LISTED_PATHS},
        )
        paths: dict[int, list[PathChange]] = {}
        for task, key, fate, *rest in cursor.fetchall():
            paths.setdefault(task, []).append(PathChange(key, tuple(PathFate)[fate], *rest))
        cursor.execute(_TOOLS, compared.values)
        tools = cursor.fetchall()
        cursor.execute(_LEFT_OUT.format(), {**compared.values, "listed": LISTED_LEFT_OUT})
        left_out = cursor.fetchall()
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    gone, new = ([name for name, is_gone in tools if is_gone is way] for way in (True, False))
    first = rows[0]
    return ReleaseComparison(
        *[
            *first[:11],
            ReleaseSide(*first[11:14]),
            ReleaseSide(*first[14:17]),
            Moves(*first[17:20]),
            Moves(*first[20:_N_TOTALS]),
            tuple(gone[:LISTED_TOOLS]),
            tuple(new[:LISTED_TOOLS]),
            len(gone),
            len(new),
            tuple(_task(row[_N_TOTALS:], paths) for row in shown),
            shown[-1][_N_TOTALS] if shown and has_next else None,
            shown[0][_N_TOTALS] if shown and has_previous else None,
            tuple(LeftOut(*[*row[:4], tuple(row[4]), tuple(row[5])]) for row in left_out),
            left_out[0][6] if left_out else 0,
        ]
    )


_FLIPS = {0: Flip.TO_FAIL, 1: Flip.TO_PASS}


def _task(row: tuple[Any, ...], paths: dict[int, list[PathChange]]) -> ComparedTask:
    names, medians, (rank, *rest) = row[:5], row[11:15], row[15:]
    return ComparedTask(
        *[
            *names,
            ReleaseSide(*row[5:8]),
            ReleaseSide(*row[8:11]),
            *medians,
            _FLIPS.get(rank, Flip.NONE),
            *rest,
            tuple(paths.get(row[0], ())),
        ]
    )


@dataclass(frozen=True, slots=True)
class OtherRelease:
    """A release with trials that another one may be compared with."""

    pk: int
    uuid: UUID
    name: str
    is_unversioned: bool


def releases_with_trials(system_id: int) -> tuple[OtherRelease, ...]:
    """The releases of a system that have trials, newest first, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id, r.uuid, r.name, r.is_unversioned FROM traces_release r"
            " WHERE r.system_id = %s AND EXISTS (SELECT 1 FROM traces_run u"
            " JOIN traces_trial t ON t.run_id = u.id WHERE u.release_id = r.id)"
            " ORDER BY r.id DESC",
            [system_id],
        )
        return tuple(OtherRelease(*row) for row in cursor.fetchall())
