"""Passing trials grouped by the path they took, for `manage.py paths` and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection

from traces.core.paths import PathLevel
from traces.models import Release, System
from traces.selectors.paths import key_name


@dataclass(frozen=True, slots=True)
class TaskPaths:
    """The passing paths of one task, all its versions together, at one level.

    `groups` holds the labels of the passing trials, largest group first, then by first label.
    """

    task_id: str
    n_trials: int  # slots: the last attempt stands for each
    n_graded: int
    n_pass: int
    groups: tuple[tuple[str, ...], ...]


_COUNTS = """
SELECT k.id, k.task_id, count(*), count(*) FILTER (WHERE d.value IN ('pass', 'fail')),
       count(*) FILTER (WHERE d.value = 'pass')
FROM traces_trial t
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
JOIN traces_task k ON k.id = t.task_id
WHERE k.system_id = %(system)s
  AND (%(releases)s::bigint[] IS NULL OR t.release_id = ANY(%(releases)s))
  AND (%(task)s::text IS NULL OR k.task_id = %(task)s)
GROUP BY k.id ORDER BY k.sort_key, k.task_id
"""

_GROUPS = """
SELECT t.task_id, array_agg(CASE WHEN %(several)s THEN r.name || ':' || t.label ELSE t.label END)
FROM traces_trial t
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands AND d.value = 'pass'
JOIN traces_trajectorypaths p ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s
JOIN traces_release r ON r.id = t.release_id
WHERE t.task_id = ANY(%(tasks)s)
  AND (%(releases)s::bigint[] IS NULL OR t.release_id = ANY(%(releases)s))
GROUP BY t.task_id, p.{key}
"""


def passing_paths(
    system: System,
    *,
    level: PathLevel,
    messages: bool,
    releases: Sequence[Release] = (),
    task_id: str | None = None,
) -> tuple[TaskPaths, ...]:
    """The passing paths of each task that has trials, in natural order of the tasks.

    Without `releases` those of the whole system count. A label is the trial's, with its release
    in front when several releases are meant. Production traces and trials with an injected fault
    are shown like all others.
    """
    chosen = [release.pk for release in releases] or None
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"system": system.pk, "releases": chosen, "task": task_id})
        counts = cursor.fetchall()
        cursor.execute(
            _GROUPS.format(key=key_name(level, messages=messages)),
            {
                "several": len(releases) > 1 or (not releases and _is_of_several(system)),
                "rules": system.shown_rules_id,
                "tasks": [pk for pk, *_ in counts],
                "releases": chosen,
            },
        )
        groups: dict[int, list[list[str]]] = {}
        for pk, labels in cursor.fetchall():
            groups.setdefault(pk, []).append(labels)
    return tuple(
        TaskPaths(task, n_trials, n_graded, n_pass, ordered_groups(groups.get(pk, [])))
        for pk, task, n_trials, n_graded, n_pass in counts
    )


def _is_of_several(system: System) -> bool:
    """Whether more than one release of the system has trials."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) > 1 FROM traces_release r WHERE r.system_id = %s AND EXISTS"
            " (SELECT 1 FROM traces_trial t JOIN traces_run u ON u.id = t.run_id"
            " WHERE u.release_id = r.id)",
            [system.pk],
        )
        return bool(cursor.fetchone()[0])


def ordered_groups(groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Groups in their order: the largest first, then by first label."""
    inside = [tuple(sorted(group, key=label_order)) for group in groups]
    return tuple(sorted(inside, key=lambda group: (-len(group), label_order(group[0]))))


def label_order(label: str) -> tuple[int, int, str]:
    """A sort key for labels: whole numbers by value, all others behind them as text."""
    # A label may be thousands of digits, which int() refuses.
    if label.isascii() and label.isdigit() and len(label) <= 1_000:
        return (0, int(label), label)
    return (1, 0, label)
