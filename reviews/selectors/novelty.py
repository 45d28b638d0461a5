"""What a release does with the accepted paths of its tasks, and which passing paths are new.

Of each accepted path in force of a task that the release ran: *taken* where a passing trial of the
release is on it, *no longer taken* where graded trials of the release are not but passing trials of
an earlier one are, *not taken yet* where no earlier one did either. Of each passing path of the
release that no accepted path covers: *new* where no passing trial of an earlier release is on it,
at the level that is looked at, else *seen before*, and so is a path of which some trials are
covered. Earlier is what became known before. A new path is not a failure.

Tasks that the release did not run do not come up. Trials are those that figures count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef

from reviews.core.accepted_paths import Taking, taking_of
from reviews.selectors.accepted import COUNTED, COVERS, IN_FORCE, rows_of
from traces.models import Release, System, TaskFigures
from traces.selectors.path_groups import ordered_groups
from traces.selectors.paths import KEY_NAMES


@dataclass(frozen=True, slots=True)
class AcceptedHere:
    """An accepted path of a task of the release. Equal `key` and `level`: it is one path."""

    number: int
    level: str
    key: UUID
    taking: Taking


@dataclass(frozen=True, slots=True)
class TaskNovelty:
    """A task of a release: its accepted paths, and its passing paths that are not accepted."""

    pk: int
    uuid: UUID
    task_id: str
    n_graded: int
    n_new: int
    n_seen: int
    accepted: tuple[AcceptedHere, ...] = ()

    def numbers(self, taking: Taking) -> tuple[int, ...]:
        """The accepted paths with which the release does this."""
        return tuple(path.number for path in self.accepted if path.taking is taking)

    def merged(self, taking: Taking) -> tuple[tuple[int, ...], ...]:
        """The same, those that are one path together."""
        same: dict[tuple[str, UUID], list[int]] = {}
        for path in self.accepted:
            if path.taking is taking:
                same.setdefault((path.level, path.key), []).append(path.number)
        return tuple(tuple(numbers) for numbers in same.values())


@dataclass(frozen=True, slots=True)
class ReleaseNovelty:
    """The tasks that a release ran, in natural order."""

    has_earlier: bool  # an earlier release of the system has trials
    tasks: tuple[TaskNovelty, ...] = field(default=())


_BASE = f"""
WITH ran AS MATERIALIZED (
    SELECT task_id, n_pass + n_fail AS n_graded FROM traces_taskfigures
    WHERE release_id = %(release)s AND n_run > 0
), in_force AS MATERIALIZED (
    {IN_FORCE} AND a.task_id IN (SELECT task_id FROM ran)
), passed AS MATERIALIZED (
    SELECT t.task_id, t.trajectory_id, count(*) FILTER (WHERE t.release_id = %(release)s) AS here,
           count(*) FILTER (WHERE t.release_id < %(release)s) AS before
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id
    WHERE t.task_id IN (SELECT task_id FROM ran) AND t.release_id <= %(release)s AND {COUNTED}
    GROUP BY t.task_id, t.trajectory_id
)
"""  # noqa: S608 - made of constants
_BY_PATH = """
by_path AS (
    SELECT x.task_id, p.{key} AS key, sum(x.before) = 0 AS unseen,
           coalesce(sum(x.here) FILTER (WHERE NOT c.covered), 0) AS n_open,
           coalesce(bool_or(c.covered) FILTER (WHERE x.here > 0), false) AS partly
    FROM passed x
    JOIN traces_trajectorypaths p ON p.trajectory_id = x.trajectory_id AND p.rules_id = %(rules)s
    CROSS JOIN LATERAL (SELECT CASE WHEN x.here > 0 THEN EXISTS (
        SELECT 1 FROM in_force f WHERE f.task_id = x.task_id AND {covers}) END AS covered) c
    GROUP BY x.task_id, p.{key} HAVING sum(x.here) > 0
)
"""
_TASKS = (
    _BASE
    + ", {by_path}"
    + """
SELECT k.id, k.uuid, k.task_id, r.n_graded,
       count(b.key) FILTER (WHERE b.n_open > 0 AND b.unseen AND NOT b.partly),
       count(b.key) FILTER (WHERE b.n_open > 0 AND (b.partly OR NOT b.unseen))
FROM ran r JOIN traces_task k ON k.id = r.task_id LEFT JOIN by_path b ON b.task_id = r.task_id
GROUP BY k.id, r.n_graded ORDER BY k.sort_key, k.task_id
"""
)
_ACCEPTED = (
    _BASE
    + f"""
SELECT f.task_id, f.number, f.level, f.key, coalesce(sum(x.here), 0), coalesce(sum(x.before), 0)
FROM in_force f LEFT JOIN (
    passed x JOIN traces_trajectorypaths p
        ON p.trajectory_id = x.trajectory_id AND p.rules_id = %(rules)s
) ON x.task_id = f.task_id AND {COVERS}
GROUP BY f.id, f.task_id, f.number, f.level, f.key ORDER BY f.number
"""  # noqa: S608 - made of constants
)
_HAS_EARLIER = """
SELECT EXISTS (SELECT 1 FROM traces_taskfigures y JOIN traces_release r ON r.id = y.release_id
               WHERE r.system_id = %(system)s AND r.id < %(release)s AND y.n_run > 0)
"""


def release_novelty(system: System, release_pk: int, *, path_key: str) -> ReleaseNovelty:
    """What a release does with accepted paths, and how many of its paths are new; three queries.

    `path_key`, of `KEY_NAMES`, is the level at which paths that are not accepted are looked at.
    """
    values = _values(system, release_pk)
    ((has_earlier,),) = rows_of(_HAS_EARLIER, values)
    tasks = rows_of(_TASKS.format(by_path=_by_path(path_key)), values)
    accepted: dict[int, list[tuple[Any, ...]]] = {}
    for task, *row in rows_of(_ACCEPTED, values):
        accepted.setdefault(task, []).append(tuple(row))
    return ReleaseNovelty(
        has_earlier,
        tuple(
            TaskNovelty(
                pk, uuid, task_id, n_graded, n_new, n_seen, _here(accepted.get(pk, ()), n_graded)
            )
            for pk, uuid, task_id, n_graded, n_new, n_seen in tasks
        ),
    )


def _here(rows: Iterable[tuple[Any, ...]], n_graded: int) -> tuple[AcceptedHere, ...]:
    return tuple(
        AcceptedHere(
            number,
            level,
            key,
            taking_of(n_here=int(n_here), n_graded=n_graded, n_before=int(n_before)),
        )
        for number, level, key, n_here, n_before in rows
    )


@dataclass(frozen=True, slots=True)
class NovelPaths:
    """Passing paths of a task in a release that are not accepted, as labels of their trials."""

    new: tuple[tuple[str, ...], ...] = ()
    seen_before: tuple[tuple[str, ...], ...] = ()


_LABELS = """
{base}, {by_path}
SELECT t.task_id, b.unseen AND NOT b.partly, array_agg(t.label)
FROM by_path b JOIN traces_trial t ON t.task_id = b.task_id AND t.release_id = %(release)s
JOIN traces_trialdisposition d ON d.trial_id = t.id AND {counted}
JOIN traces_trajectorypaths p ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s
    AND p.{key} = b.key
WHERE b.n_open > 0 AND NOT EXISTS (
    SELECT 1 FROM in_force f WHERE f.task_id = t.task_id AND {covers})
GROUP BY t.task_id, b.key, 2
"""


def novel_paths(system: System, release_pk: int, *, path_key: str) -> dict[int, NovelPaths]:
    """The passing paths of a release that are not accepted, by task; largest first, one query."""
    query = _LABELS.format(
        base=_BASE, by_path=_by_path(path_key), counted=COUNTED, key=path_key, covers=COVERS
    )
    found: dict[int, tuple[list[list[str]], list[list[str]]]] = {}
    for task, is_new, labels in rows_of(query, _values(system, release_pk)):
        found.setdefault(task, ([], []))[0 if is_new else 1].append(labels)
    return {
        task: NovelPaths(ordered_groups(new), ordered_groups(seen))
        for task, (new, seen) in found.items()
    }


def newest_release(system: System) -> Release | None:
    """The newest release of a system with trials; None when there is none."""
    tried = TaskFigures.objects.filter(release=OuterRef("pk"), n_run__gt=0)
    return Release.objects.filter(Exists(tried), system=system).order_by("-pk").first()


def _by_path(path_key: str) -> str:
    if path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {path_key}")
    return _BY_PATH.format(key=path_key, covers=COVERS)


def _values(system: System, release_pk: int) -> dict[str, Any]:
    return {
        "system": system.pk,
        "release": release_pk,
        "rules": system.shown_rules_id,
    }
