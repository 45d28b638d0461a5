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


# Trials are folded into distinct trajectories, whose keys are looked up once for all that follows.
_BASE = f"""
WITH ran AS MATERIALIZED (
    SELECT task_id, n_pass + n_fail AS n_graded FROM traces_taskfigures
    WHERE release_id = %(release)s AND n_run > 0
), in_force AS MATERIALIZED (
    {IN_FORCE} AND a.task_id IN (SELECT task_id FROM ran)
), folded AS MATERIALIZED (
    SELECT t.task_id, t.trajectory_id, count(*) FILTER (WHERE t.release_id = %(release)s) AS here,
           count(*) FILTER (WHERE t.release_id < %(release)s) AS before,
           array_agg(t.label) FILTER (WHERE t.release_id = %(release)s) AS labels
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id
    WHERE t.task_id IN (SELECT task_id FROM ran) AND t.release_id <= %(release)s AND {COUNTED}
    GROUP BY t.task_id, t.trajectory_id
), passed AS MATERIALIZED (
    SELECT x.*, {", ".join(f"p.{name}" for name in KEY_NAMES)}
    FROM folded x JOIN traces_trajectorypaths p
        ON p.trajectory_id = x.trajectory_id AND p.rules_id = %(rules)s
), taken AS MATERIALIZED (
    SELECT f.id, p.trajectory_id, p.here, p.before
    FROM in_force f JOIN passed p ON p.task_id = f.task_id AND {COVERS}
), keyed AS (
    SELECT p.task_id, p.here, p.before, p.labels, p.{{key}} AS key,
           p.trajectory_id IN (SELECT trajectory_id FROM taken) AS covered
    FROM passed p
), by_path AS (
    SELECT task_id, key, sum(before) = 0 AND NOT bool_or(covered AND here > 0) AS is_new
    FROM keyed GROUP BY task_id, key HAVING sum(here) FILTER (WHERE NOT covered) > 0
)
"""  # noqa: S608 - made of constants
_TASKS = """
{base}, accepted AS (
    SELECT f.task_id, array_agg(f.number ORDER BY f.number) AS numbers,
           array_agg(f.level ORDER BY f.number) AS levels,
           array_agg(f.key ORDER BY f.number) AS keys,
           array_agg(n.here ORDER BY f.number) AS here,
           array_agg(n.before ORDER BY f.number) AS before
    FROM in_force f CROSS JOIN LATERAL (
        SELECT coalesce(sum(here), 0)::int AS here, coalesce(sum(before), 0)::int AS before
        FROM taken WHERE taken.id = f.id
    ) n GROUP BY f.task_id
), open_paths AS (
    SELECT task_id, count(*) FILTER (WHERE is_new) AS n_new,
           count(*) FILTER (WHERE NOT is_new) AS n_seen
    FROM by_path GROUP BY task_id
)
SELECT k.id, k.uuid, k.task_id, r.n_graded, coalesce(o.n_new, 0), coalesce(o.n_seen, 0),
       a.numbers, a.levels, a.keys, a.here, a.before
FROM ran r JOIN traces_task k ON k.id = r.task_id
LEFT JOIN open_paths o ON o.task_id = r.task_id LEFT JOIN accepted a ON a.task_id = r.task_id
ORDER BY k.sort_key, k.task_id
"""
_HAS_EARLIER = """
SELECT EXISTS (SELECT 1 FROM traces_taskfigures y JOIN traces_release r ON r.id = y.release_id
               WHERE r.system_id = %(system)s AND r.id < %(release)s AND y.n_run > 0)
"""


def release_novelty(system: System, release_pk: int, *, path_key: str) -> ReleaseNovelty:
    """What a release does with accepted paths, and how many of its paths are new; two queries.

    `path_key`, of `KEY_NAMES`, is the level at which paths that are not accepted are looked at.
    """
    values = _values(system, release_pk)
    ((has_earlier,),) = rows_of(_HAS_EARLIER, values)
    tasks = rows_of(_TASKS.format(base=_base(path_key)), values)
    return ReleaseNovelty(has_earlier, tuple(_task(*row) for row in tasks))


def _task(
    pk: int,
    uuid: UUID,
    task_id: str,
    n_graded: int,
    n_new: int,
    n_seen: int,
    *accepted: list[Any] | None,
) -> TaskNovelty:
    """`accepted` holds numbers, levels, keys, and trials of the release and of earlier ones."""
    rows = zip(*(column or () for column in accepted), strict=True)
    return TaskNovelty(
        pk,
        uuid,
        task_id,
        n_graded,
        n_new,
        n_seen,
        tuple(
            AcceptedHere(
                number,
                level,
                key,
                taking_of(n_here=n_here, n_graded=n_graded, n_before=n_before),
            )
            for number, level, key, n_here, n_before in rows
        ),
    )


@dataclass(frozen=True, slots=True)
class NovelPaths:
    """Passing paths of a task in a release that are not accepted, as labels of their trials."""

    new: tuple[tuple[str, ...], ...] = ()
    seen_before: tuple[tuple[str, ...], ...] = ()


_LABELS = """
{base}
SELECT x.task_id, x.key, b.is_new, x.labels
FROM by_path b JOIN keyed x ON x.task_id = b.task_id AND x.key = b.key
WHERE x.here > 0 AND NOT x.covered
"""


def novel_paths(system: System, release_pk: int, *, path_key: str) -> dict[int, NovelPaths]:
    """The passing paths of a release that are not accepted, by task; largest first, one query."""
    groups: dict[tuple[int, UUID, bool], list[str]] = {}
    query = _LABELS.format(base=_base(path_key))
    for task, key, is_new, labels in rows_of(query, _values(system, release_pk)):
        groups.setdefault((task, key, is_new), []).extend(labels)
    found: dict[int, tuple[list[list[str]], list[list[str]]]] = {}
    for (task, _, is_new), labels in groups.items():
        found.setdefault(task, ([], []))[0 if is_new else 1].append(labels)
    return {
        task: NovelPaths(ordered_groups(new), ordered_groups(seen))
        for task, (new, seen) in found.items()
    }


def newest_release(system: System) -> Release | None:
    """The newest release of a system with trials; None when there is none."""
    tried = TaskFigures.objects.filter(release=OuterRef("pk"), n_run__gt=0)
    return Release.objects.filter(Exists(tried), system=system).order_by("-pk").first()


def _base(path_key: str) -> str:
    if path_key not in KEY_NAMES:
        raise ValueError(f"no column of path keys: {path_key}")
    return _BASE.format(key=path_key)


def _values(system: System, release_pk: int) -> dict[str, Any]:
    return {
        "system": system.pk,
        "release": release_pk,
        "rules": system.shown_rules_id,
    }
