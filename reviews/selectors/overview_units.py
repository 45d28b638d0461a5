"""Slots of a system's tasks, counted by release and unit, in two queries and one for the tasks.

A slot counts as in `evalsite.projections`: its last attempt stands for it, a declared trial that
never came is run and unknown. Production traces and trials with an injected fault are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from reviews.core.overview import Unit, UnitCounts


@dataclass(frozen=True, slots=True)
class CountedTask:
    """A task, as far as figures care."""

    pk: int
    task_id: str
    uuid: UUID
    family: str
    split: str
    contract_pk: int | None


def counted_tasks(system_id: int) -> dict[int, CountedTask]:
    """The tasks of a system by id, in their natural order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, task_id, uuid, family, split, contract_id FROM traces_task"
            " WHERE system_id = %s ORDER BY sort_key, id",
            [system_id],
        )
        return {row[0]: CountedTask(*row) for row in cursor.fetchall()}


# Trials are folded into what they come to first: few rows are counted in so many ways, and fewer
# are joined to the names of versions.
_UNITS = """
WITH alike AS (
    SELECT t.release_id, t.task_id, t.task_version_id, d.contract_id,
        d.value, d.outcome, d.rule_clean, d.failed_classes,
        count(*) AS n, sum(t.n_tool_calls) AS n_calls, min(t.n_tool_calls) AS shortest
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    WHERE t.system_id = %(system)s AND t.environment = 'test' AND NOT t.has_fault
    GROUP BY t.release_id, t.task_id, t.task_version_id, d.contract_id,
        d.value, d.outcome, d.rule_clean, d.failed_classes
), said AS (
    SELECT *, value <> 'harness_error' AS is_sound FROM alike
), folded AS (
    SELECT release_id, task_id, task_version_id, contract_id,
        sum(n) FILTER (WHERE value = 'pass') AS n_pass,
        sum(n) FILTER (WHERE value = 'fail') AS n_fail,
        sum(n) FILTER (WHERE value = 'unresolved') AS n_unresolved,
        sum(n) FILTER (WHERE value = 'harness_error') AS n_error,
        sum(n) FILTER (WHERE is_sound AND outcome = 'pass') AS o_passed,
        sum(n) FILTER (WHERE is_sound AND outcome IN ('pass', 'fail')) AS o_graded,
        sum(n) FILTER (WHERE is_sound AND rule_clean = 'pass') AS c_passed,
        sum(n) FILTER (WHERE is_sound AND rule_clean IN ('pass', 'fail')) AS c_graded,
        sum(n) FILTER (WHERE is_sound AND outcome = 'pass' AND rule_clean = 'fail') AS o_only,
        sum(n) FILTER (WHERE value = 'fail' AND 'outcome' = ANY(failed_classes)) AS f_outcome,
        sum(n) FILTER (WHERE value = 'fail' AND 'constraint' = ANY(failed_classes))
            AS f_constraint,
        sum(n) FILTER (WHERE value = 'fail' AND 'semantic' = ANY(failed_classes)) AS f_semantic,
        sum(n_calls) FILTER (WHERE value IN ('pass', 'fail')) AS n_calls,
        min(shortest) FILTER (WHERE value = 'pass') AS shortest
    FROM said GROUP BY release_id, task_id, task_version_id, contract_id
)
SELECT f.release_id, f.task_id, v.number, coalesce(c.number, 0),
       n_pass, n_fail, n_unresolved, n_error, o_passed, o_graded, c_passed, c_graded, o_only,
       f_outcome, f_constraint, f_semantic, n_calls, shortest
FROM folded f
JOIN traces_taskversion v ON v.id = f.task_version_id
LEFT JOIN traces_contractversion c ON c.id = f.contract_id
"""

_COUNTS = (
    "n_pass", "n_fail", "n_unresolved", "n_error", "outcome_passed", "outcome_graded",
    "clean_passed", "clean_graded", "n_only_outcome", "failed_outcome", "failed_constraint",
    "failed_semantic", "n_calls",
)  # fmt: skip

# A declared run without a list of tasks covers the tasks that its trials name.
_MISSING = """
WITH runs AS (
    SELECT u.id, u.release_id, u.declared_trials FROM traces_run u
    JOIN traces_release r ON r.id = u.release_id
    WHERE r.system_id = %(system)s AND u.declared_trials IS NOT NULL
), in_run AS (
    SELECT t.run_id, t.task_id, count(*) AS n FROM traces_trial t
    JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    WHERE t.run_id IN (SELECT id FROM runs) GROUP BY t.run_id, t.task_id
), declared AS (
    SELECT rt.run_id, rt.task_id FROM traces_runtask rt WHERE rt.run_id IN (SELECT id FROM runs)
    UNION ALL
    SELECT i.run_id, i.task_id FROM in_run i
    WHERE NOT EXISTS (SELECT 1 FROM traces_runtask rt WHERE rt.run_id = i.run_id)
)
SELECT r.release_id, d.task_id, sum(greatest(r.declared_trials - coalesce(i.n, 0), 0))::bigint
FROM declared d JOIN runs r ON r.id = d.run_id
LEFT JOIN in_run i ON i.run_id = d.run_id AND i.task_id = d.task_id
GROUP BY r.release_id, d.task_id
HAVING sum(greatest(r.declared_trials - coalesce(i.n, 0), 0)) > 0
"""


def counted_units(system_id: int, tasks: dict[int, CountedTask]) -> dict[int, list[UnitCounts]]:
    """The counts of every unit, by release."""
    with connection.cursor() as cursor:
        cursor.execute(_UNITS, {"system": system_id})
        rows = cursor.fetchall()
        cursor.execute(_MISSING, {"system": system_id})
        missing = {(release, task): n for release, task, n in cursor.fetchall()}
    counted: dict[int, list[UnitCounts]] = {}
    # The newest version of a task comes first and takes its missing trials.
    for release, task_pk, version, contract, *sums, shortest in sorted(
        rows, key=lambda row: (row[0], row[1], -row[2], -row[3])
    ):
        task = tasks[task_pk]
        unit = Unit(task.task_id, version, contract, task.family, task.split)
        n_missing = missing.pop((release, task_pk), 0)
        counts = dict(zip(_COUNTS, (int(each or 0) for each in sums), strict=True))
        counted.setdefault(release, []).append(
            UnitCounts(unit, n_missing=n_missing, shortest=shortest, **counts)
        )
    for (release, task_pk), n in sorted(missing.items()):
        task = tasks[task_pk]
        unit = Unit(task.task_id, 0, 0, task.family, task.split)
        counted.setdefault(release, []).append(UnitCounts(unit, n_missing=n))
    order = {task.task_id: place for place, task in enumerate(tasks.values())}
    for found in counted.values():
        found.sort(key=lambda each: (order[each.unit.task], each.unit.version, each.unit.contract))
    return counted
