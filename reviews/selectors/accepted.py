"""The accepted paths of a task: which are in force, and which passing trials they cover.

An accepted path covers a passing trial when the trial's path key, at the accepted path's own level
and under the rules that pages show, equals the key of its representative trajectory. It is asked
anew each time, so that coverage follows the rules and finer paths are covered too. Accepted paths
that are one path under these rules are one entry of the register, with all their numbers.

Passing trials are those that figures count: the last attempt of a slot, from a test, without an
injected fault. Flags are looked for on every passing trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.core.accepted_paths import PathFacts, accepted_name
from reviews.models import AcceptedPath
from traces.core.paths import PathLevel
from traces.models import System, Task
from traces.selectors.paths import KEY_NAMES, key_name
from traces.selectors.rules import shown_rules
from traces.selectors.task_detail import ChosenTrials

MOST_MEMBERS = 50  # trajectories of an accepted path that are compared for its marks

_SPELLINGS = tuple(
    (f"{level.value}{'_msg' if messages else ''}", key_name(level, messages=messages))
    for level in PathLevel
    for messages in (False, True)
)


def key_at(level: str, paths: str) -> str:
    """SQL for the key of `paths` (an alias of `TrajectoryPaths`) at a level that SQL gives."""
    cases = " ".join(f"WHEN '{spelling}' THEN {paths}.{name}" for spelling, name in _SPELLINGS)
    return f"CASE {level} {cases} END"


COUNTED = "d.stands AND d.value = 'pass' AND t.environment = 'test' AND NOT t.has_fault"
IN_FORCE = f"""
SELECT a.id, a.task_id, a.number, a.level || CASE WHEN a.messages THEN '_msg' ELSE '' END AS level,
       {key_at("a.level || CASE WHEN a.messages THEN '_msg' ELSE '' END", "r")} AS key
FROM reviews_acceptedpath a
JOIN traces_trajectorypaths r ON r.trajectory_id = a.trajectory_id AND r.rules_id = %(rules)s
WHERE NOT EXISTS (SELECT 1 FROM reviews_acceptedpathwithdrawal w WHERE w.path_id = a.id)
"""  # noqa: S608 - made of constants
"""Accepted paths in force, with their keys under the rules `rules`; more conditions may follow."""

COVERS = f"{key_at('f.level', 'p')} = f.key"
"""Whether the accepted path `f` of `IN_FORCE` covers the trajectory of the path keys `p`."""

_FLAGGED = """
EXISTS (SELECT 1 FROM reviews_flag g WHERE g.trial_id = t.id
        AND NOT EXISTS (SELECT 1 FROM reviews_flagclosing c WHERE c.flag_id = g.id))
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """How many passing trials of a release are on an accepted path."""

    release_pk: int
    n_trials: int


@dataclass(frozen=True, slots=True)
class RegisteredPath:
    """One acceptance, with its withdrawal when there is one."""

    pk: int
    uuid: UUID
    number: int
    level: PathLevel
    messages: bool
    trajectory: int
    trial_uuid: UUID
    trial_label: str
    trial_attempt: int
    rules_number: int  # the version in force when it was accepted
    reason: str
    by: str
    accepted_at: datetime
    withdrawn_reason: str = ""
    withdrawn_by: str = ""
    withdrawn_at: datetime | None = None

    @property
    def column(self) -> str:
        """The column of its path keys."""
        return key_name(self.level, messages=self.messages)


@dataclass(frozen=True, slots=True)
class RegisterEntry:
    """A path of the register: the acceptances in force that are one path, lowest number first."""

    paths: tuple[RegisteredPath, ...]
    members: tuple[tuple[int, int], ...]  # trajectory, passing trials; most trials first
    taken: tuple[Taken, ...]  # by release, newest first

    @property
    def name(self) -> str:
        """The name that pages show."""
        return accepted_name([path.number for path in self.paths])

    @property
    def n_trials(self) -> int:
        """Passing trials that it covers."""
        return sum(taken.n_trials for taken in self.taken)


@dataclass(frozen=True, slots=True)
class Register:
    """The accepted paths of a task, with those that were withdrawn, latest withdrawal first."""

    entries: tuple[RegisterEntry, ...]
    withdrawn: tuple[RegisteredPath, ...]
    graded: tuple[int, ...]  # releases with graded trials of the task, newest first


_COVERED = f"""
WITH in_force AS MATERIALIZED ({IN_FORCE} AND a.task_id = %(task)s), passed AS (
    SELECT t.trajectory_id, t.release_id, count(*) AS n
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id
    WHERE t.task_id = %(task)s AND {COUNTED} GROUP BY t.trajectory_id, t.release_id
)
SELECT f.id, f.key, x.trajectory_id, x.release_id, x.n
FROM in_force f LEFT JOIN (
    passed x JOIN traces_trajectorypaths p
        ON p.trajectory_id = x.trajectory_id AND p.rules_id = %(rules)s
) ON {COVERS}
"""  # noqa: S608 - made of constants


def register_of(task_pk: int, rules_pk: int | None) -> Register:
    """The register of a task under the rules that pages show, in three queries."""
    paths = [_registered(row) for row in _acceptances(task_pk)]
    rows = rows_of(_COVERED, {"task": task_pk, "rules": rules_pk})
    keys = {pk: key for pk, key, *_ in rows}
    merged: dict[tuple[str, UUID], list[RegisteredPath]] = {}
    for path in paths:
        if path.pk in keys:
            merged.setdefault((path.column, keys[path.pk]), []).append(path)
    covered: dict[int, list[tuple[int, int, int]]] = {}
    for pk, _, trajectory, release, n in rows:
        if trajectory is not None:
            covered.setdefault(pk, []).append((trajectory, release, n))
    withdrawn = [path for path in paths if path.withdrawn_at is not None]
    return Register(
        entries=tuple(_entry(same, covered.get(same[0].pk, [])) for same in merged.values()),
        withdrawn=tuple(sorted(withdrawn, key=_withdrawal, reverse=True)),
        graded=tuple(pk for (pk,) in rows_of(_GRADED, {"task": task_pk})),
    )


_GRADED = """
SELECT release_id FROM traces_taskfigures
WHERE task_id = %(task)s AND release_id IS NOT NULL AND n_pass + n_fail > 0
ORDER BY release_id DESC
"""


def accepted_path(system_pk: int, task: UUID, path: UUID) -> AcceptedPath | None:
    """The accepted path of that address; None when the task of the system has none."""
    return (
        AcceptedPath.objects.select_related("task")
        .filter(uuid=path, task__uuid=task, task__system=system_pk)
        .first()
    )


def _acceptances(task_pk: int) -> Iterable[AcceptedPath]:
    return (
        AcceptedPath.objects.filter(task=task_pk)
        .select_related("by", "trial", "rules", "withdrawal__by")
        .defer("rules__document", "rules__change")
        .order_by("number")
    )


def _registered(row: AcceptedPath) -> RegisteredPath:
    withdrawal = getattr(row, "withdrawal", None)
    return RegisteredPath(
        pk=row.pk,
        uuid=row.uuid,
        number=row.number,
        level=PathLevel(row.level),
        messages=row.messages,
        trajectory=row.trajectory_id,
        trial_uuid=row.trial.uuid,
        trial_label=row.trial.label,
        trial_attempt=row.trial.attempt,
        rules_number=row.rules.number,
        reason=row.reason,
        by=row.by.printed_name,
        accepted_at=row.accepted_at,
        withdrawn_reason=withdrawal.reason if withdrawal else "",
        withdrawn_by=withdrawal.by.printed_name if withdrawal else "",
        withdrawn_at=withdrawal.withdrawn_at if withdrawal else None,
    )


def _withdrawal(path: RegisteredPath) -> tuple[datetime | None, int]:
    return (path.withdrawn_at, path.number)


def _entry(
    paths: Sequence[RegisteredPath], covered: Sequence[tuple[int, int, int]]
) -> RegisterEntry:
    members: Counter[int] = Counter()
    taken: Counter[int] = Counter()
    for trajectory, release, n in sorted(covered):
        members[trajectory] += n
        taken[release] += n
    return RegisterEntry(
        paths=tuple(paths),
        members=tuple(members.most_common(MOST_MEMBERS)),
        taken=tuple(Taken(pk, n) for pk, n in sorted(taken.items(), reverse=True)),
    )


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What a passing path at the level that is looked at comes to."""

    key: UUID
    n_trials: int  # of the chosen releases and version
    n_covered: int
    n_flagged: int  # passing trials on it with an open flag, of any release
    first_release: int  # the lowest release with a passing trial on it, of any version


@dataclass(frozen=True, slots=True)
class GroupStandings:
    """The passing paths of the chosen trials: how many there are, and facts of those asked for."""

    n_paths: int
    n_accepted: int  # paths all of whose trials are covered
    newest_release: int | None  # of the chosen trials
    has_earlier: bool  # a release before it has trials
    groups: dict[UUID, GroupFacts]


# Trials are folded into distinct trajectories first: each is compared with each path in force.
_STANDINGS = """
WITH in_force AS MATERIALIZED ({in_force} AND a.task_id = %(task)s), mine AS (
    SELECT t.id, t.release_id, t.trajectory_id, {counted} AS counts,
           d.stands AND d.value = 'pass' AS passed,
           t.environment = 'test' AND NOT t.has_fault AND d.stands
           AND (%(releases)s::bigint[] IS NULL OR t.release_id = ANY(%(releases)s))
           AND (%(version)s::bigint IS NULL OR t.task_version_id = %(version)s) AS chosen
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id
    WHERE t.task_id = %(task)s
), flagged AS MATERIALIZED (
    SELECT DISTINCT t.id FROM mine t JOIN reviews_flag g ON g.trial_id = t.id
    LEFT JOIN reviews_flagclosing c ON c.flag_id = g.id WHERE t.passed AND c.flag_id IS NULL
), folded AS (
    SELECT trajectory_id, count(*) FILTER (WHERE counts AND chosen) AS n,
           min(release_id) FILTER (WHERE counts) AS first, count(f.id) AS n_flagged
    FROM mine t LEFT JOIN flagged f ON f.id = t.id WHERE passed GROUP BY trajectory_id
), by_path AS (
    SELECT p.{key} AS key, sum(n)::int AS n,
           coalesce(sum(n) FILTER (WHERE EXISTS
               (SELECT 1 FROM in_force f WHERE {covers})), 0)::int AS n_covered,
           sum(n_flagged)::int AS n_flagged, min(first) AS first
    FROM folded x JOIN traces_trajectorypaths p
        ON p.trajectory_id = x.trajectory_id AND p.rules_id = %(rules)s
    GROUP BY p.{key} HAVING sum(n) > 0
), totals AS (
    SELECT count(*) AS n_paths, count(*) FILTER (WHERE n_covered = n) AS n_accepted,
           (SELECT max(release_id) FROM mine WHERE chosen) AS newest
    FROM by_path
)
SELECT o.n_paths, o.n_accepted, o.newest,
       EXISTS (SELECT 1 FROM traces_taskfigures y JOIN traces_release r ON r.id = y.release_id
               JOIN traces_task k ON k.id = %(task)s AND k.system_id = r.system_id
               WHERE r.id < o.newest AND y.n_run > 0),
       b.key, b.n, b.n_covered, b.n_flagged, b.first
FROM totals o LEFT JOIN by_path b ON b.key = ANY(%(keys)s)
"""


def group_standings(chosen: ChosenTrials, *, path_key: str, keys: Sequence[UUID]) -> GroupStandings:
    """What accepted paths, flags and earlier releases say of passing paths, in one query.

    `path_key` is of `KEY_NAMES`, `keys` are those of the paths that are shown.
    """
    if path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {path_key}")
    query = _STANDINGS.format(in_force=IN_FORCE, counted=COUNTED, covers=COVERS, key=path_key)
    rows = rows_of(query, {**chosen.values, "keys": list(keys)})
    n_paths, n_accepted, newest, has_earlier = rows[0][:4]
    facts = (GroupFacts(*row[4:]) for row in rows if row[4] is not None)
    return GroupStandings(
        n_paths, n_accepted, newest, has_earlier, {each.key: each for each in facts}
    )


@dataclass(frozen=True, slots=True)
class CandidatePath:
    """The path of a trial at one level, as somebody who may accept it has to know it."""

    level: PathLevel
    n_trials: int  # passing trials on it
    n_releases: int  # that passed by it
    n_failed: int  # trials on it that failed
    facts: PathFacts


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trial whose path may be accepted, at every level."""

    trial_pk: int
    uuid: UUID
    label: str
    attempt: int
    trajectory: int
    release_name: str
    keys: dict[str, UUID]  # by column
    covering: tuple[tuple[int, str], ...]  # number and level of accepted paths that cover it
    paths: dict[tuple[PathLevel, bool], CandidatePath]

    def path(self, level: PathLevel, *, messages: bool) -> CandidatePath:
        """Its path at a level."""
        return self.paths[level, messages]


_ON_PATH = ", ".join(
    f"coalesce(sum(n) FILTER (WHERE p.{name} = m.{name}), 0)::int,"
    f" count(DISTINCT release_id) FILTER (WHERE p.{name} = m.{name} AND n > 0),"
    f" coalesce(sum(n_failed) FILTER (WHERE p.{name} = m.{name}), 0)::int,"
    f" coalesce(sum(n_flagged) FILTER (WHERE p.{name} = m.{name}), 0)::int"
    for name in KEY_NAMES
)
_CANDIDATE = """
SELECT t.id, t.uuid, t.label, t.attempt, t.trajectory_id, r.name, j.is_comparable,
       coalesce({counted}, false), {keys}
FROM traces_trial t JOIN traces_release r ON r.id = t.release_id
JOIN traces_trajectory j ON j.id = t.trajectory_id
JOIN traces_trajectorypaths p ON p.trajectory_id = j.id AND p.rules_id = %(rules)s
LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id
WHERE t.task_id = %(task)s AND t.uuid = %(trial)s
"""
_LIKE_CANDIDATE = """
WITH folded AS (
    SELECT t.trajectory_id, t.release_id, count(*) FILTER (WHERE {counted}) AS n,
           count(*) FILTER (WHERE d.stands AND d.value = 'fail') AS n_failed,
           count(*) FILTER (WHERE d.stands AND d.value = 'pass' AND {flagged}) AS n_flagged
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id
    WHERE t.task_id = %(task)s GROUP BY t.trajectory_id, t.release_id
)
SELECT {on_path} FROM folded x
JOIN traces_trajectorypaths p ON p.trajectory_id = x.trajectory_id AND p.rules_id = %(rules)s
JOIN traces_trajectorypaths m ON m.trajectory_id = %(trajectory)s AND m.rules_id = %(rules)s
"""
_COVERING = f"""
WITH in_force AS MATERIALIZED ({IN_FORCE} AND a.task_id = %(task)s)
SELECT f.number, f.level FROM in_force f
JOIN traces_trajectorypaths p ON p.trajectory_id = %(trajectory)s AND p.rules_id = %(rules)s
WHERE {COVERS} ORDER BY f.number
"""  # noqa: S608 - made of constants


def candidate_of(task: Task, system: System, trial: UUID) -> Candidate | None:
    """The trial of that address with its path at every level; None where the task has none.

    Three queries. The rules are those that the pages of `system`, the task's, show.
    """
    values: dict[str, Any] = {"task": task.pk, "rules": shown_rules(system).pk, "trial": trial}
    found = rows_of(
        _CANDIDATE.format(counted=COUNTED, keys=", ".join(f"p.{name}" for name in KEY_NAMES)),
        values,
    )
    if not found:
        return None
    pk, uuid, label, attempt, trajectory, release_name, is_comparable, is_passing, *keys = found[0]
    values["trajectory"] = trajectory
    like = rows_of(
        _LIKE_CANDIDATE.format(counted=COUNTED, flagged=_FLAGGED, on_path=_ON_PATH), values
    )[0]
    covering = tuple(
        (number, dict(_SPELLINGS)[level]) for number, level in rows_of(_COVERING, values)
    )

    def path(level: PathLevel, *, messages: bool) -> CandidatePath:
        column = key_name(level, messages=messages)
        at = 4 * KEY_NAMES.index(column)
        n_trials, n_releases, n_failed, n_flagged = like[at : at + 4]
        return CandidatePath(
            level=level,
            n_trials=n_trials,
            n_releases=n_releases,
            n_failed=n_failed,
            facts=PathFacts(
                is_passing=is_passing,
                is_comparable=is_comparable,
                compares_arguments=level.compares_arguments,
                n_flagged=n_flagged,
                accepted=tuple(number for number, name in covering if name == column),
            ),
        )

    return Candidate(
        trial_pk=pk,
        uuid=uuid,
        label=label,
        attempt=attempt,
        trajectory=trajectory,
        release_name=release_name,
        keys=dict(zip(KEY_NAMES, keys, strict=True)),
        covering=covering,
        paths={
            (level, messages): path(level, messages=messages)
            for level in PathLevel
            for messages in (False, True)
        },
    )


_MEMBERS = """
SELECT t.trajectory_id, count(*) FROM traces_trial t
JOIN traces_trialdisposition d ON d.trial_id = t.id
JOIN traces_trajectorypaths p ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s
WHERE t.task_id = %(task)s AND {counted} AND p.{key} = %(key)s
GROUP BY t.trajectory_id ORDER BY count(*) DESC, t.trajectory_id LIMIT %(most)s
"""


def members_of_path(
    task_pk: int, rules_pk: int | None, *, path_key: str, key: UUID
) -> tuple[tuple[int, int], ...]:
    """Trajectories of the passing trials on a path with their numbers of trials, most first."""
    if path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {path_key}")
    return tuple(
        (trajectory, n)
        for trajectory, n in rows_of(
            _MEMBERS.format(counted=COUNTED, key=path_key),
            {"task": task_pk, "rules": rules_pk, "key": key, "most": MOST_MEMBERS},
        )
    )


MOST_FLAGGED = 6
_FLAGGED_ON_PATH = """
SELECT t.uuid, t.label, t.attempt, r.name FROM traces_trial t
JOIN traces_release r ON r.id = t.release_id
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands AND d.value = 'pass'
JOIN traces_trajectorypaths p ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s
WHERE t.task_id = %(task)s AND p.{key} = %(key)s AND {flagged}
ORDER BY t.release_id DESC, t.id LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class FlaggedOnPath:
    """A passing trial whose open flag keeps its path back."""

    uuid: UUID
    label: str
    attempt: int
    release_name: str


def flagged_on_path(
    task_pk: int, rules_pk: int | None, *, path_key: str, key: UUID
) -> tuple[FlaggedOnPath, ...]:
    """Passing trials on a path with an open flag, newest release first, at most `MOST_FLAGGED`."""
    if path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {path_key}")
    query = _FLAGGED_ON_PATH.format(key=path_key, flagged=_FLAGGED)
    values = {"task": task_pk, "rules": rules_pk, "key": key, "most": MOST_FLAGGED}
    return tuple(FlaggedOnPath(*row) for row in rows_of(query, values))


def rows_of(query: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
