"""What pages read, computed from evidence: dispositions of trials and figures of tasks.

Only the pipeline and `manage.py rebuild` call this. A projection is never evidence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.utils import timezone

from evalsite.common.copying import copy_rows
from reviews.core.disposition import (
    DISPOSITION_VERSION,
    Decision,
    GivenVerdict,
    TrialFacts,
    disposition_of,
    requirements_without_contract,
)
from reviews.core.notices import NoticedTrial
from reviews.selectors.votes import given_verdicts
from reviews.services.flags import DecidedTrial, raise_product_flags
from traces.core.records import TrialStatus
from traces.models import System, Task
from traces.selectors.paths import KEY_NAMES
from traces.selectors.rules import shown_rules_id

_STATUSES = {status.value: status for status in TrialStatus}
_DISPOSITION_COLUMNS = (
    ("trial_id", "int8"),
    ("value", "text"),
    ("failed_classes", "varchar[]"),
    ("next_actions", "varchar[]"),
    ("stands", "bool"),
    ("algorithm", "int2"),
    ("decided_at", "timestamptz"),
)


def decide_trials(trial_ids: Iterable[int], *, now: datetime) -> set[int]:
    """Decide trials from their verdicts and write the dispositions. Returns their tasks' ids.

    The other attempts of their slots are looked at too: the last attempt stands for its slot.
    What is odd about a decided trial raises the product's own flags.
    """
    wanted = set(trial_ids)
    if not wanted:
        return set()
    rows = _attempts(wanted)
    verdicts = given_verdicts(wanted)
    ours = [row for row in rows if row.pk in wanted]
    decided = {row.pk: _decide(row.status, verdicts.get(row.pk, ())) for row in ours}
    fresh = [
        (row.pk, *_columns(decided[row.pk]), row.stands, DISPOSITION_VERSION, now)
        for row in ours
        if not row.is_known
    ]
    copy_rows("traces_trialdisposition", _DISPOSITION_COLUMNS, fresh)
    _update([(row.pk, row.stands) for row in rows if row.is_known], decided, now)
    raise_product_flags((row.with_verdicts(verdicts.get(row.pk, ())) for row in ours), now=now)
    return {row.task_id for row in rows}


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A trial, with what its disposition and its flags are decided from."""

    pk: int
    system_id: int
    task_id: int
    status: TrialStatus
    n_steps: int
    n_agent_steps: int
    stands: bool
    is_known: bool  # has a disposition already

    def with_verdicts(self, verdicts: tuple[GivenVerdict, ...]) -> DecidedTrial:
        facts = NoticedTrial(self.status, self.n_steps, self.n_agent_steps)
        return DecidedTrial(self.pk, self.system_id, facts, verdicts)


def _attempts(trial_ids: set[int]) -> list[_Attempt]:
    """The trials and all other attempts of their slots."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT a.id, a.system_id, a.task_id, a.status, a.n_messages,"
            # A trajectory with a tool call is not empty: the others alone are looked up.
            " CASE WHEN a.n_tool_calls > 0 THEN a.n_tool_calls ELSE (SELECT length(j.outcomes)"
            " FROM traces_trajectory j WHERE j.id = a.trajectory_id) END,"
            " a.attempt = max(a.attempt) OVER (PARTITION BY a.run_id, a.task_id, a.label),"
            " d.trial_id IS NOT NULL"
            " FROM (SELECT DISTINCT run_id, task_id, label FROM traces_trial WHERE id = ANY(%s)) s"
            " CROSS JOIN LATERAL (SELECT * FROM traces_trial WHERE run_id = s.run_id"
            " AND task_id = s.task_id AND label = s.label OFFSET 0) a"
            " LEFT JOIN traces_trialdisposition d ON d.trial_id = a.id",
            [list(trial_ids)],
        )
        return [
            _Attempt(pk, system, task, _STATUSES[status], *others)
            for pk, system, task, status, *others in cursor.fetchall()
        ]


def _decide(status: TrialStatus, given: tuple[GivenVerdict, ...]) -> Decision:
    return disposition_of(TrialFacts(status=status), requirements_without_contract(given), given)


def _columns(decision: Decision) -> tuple[str, list[str], list[str]]:
    return (
        decision.disposition.value,
        [name.value for name in decision.failed_classes],
        [action.value for action in decision.actions],
    )


def _update(rows: list[tuple[int, bool]], decided: dict[int, Decision], now: datetime) -> None:
    again = [(pk, stands) for pk, stands in rows if pk in decided]
    others = [(pk, stands) for pk, stands in rows if pk not in decided]
    with connection.cursor() as cursor:
        if again:
            cursor.executemany(
                "UPDATE traces_trialdisposition SET value = %s, failed_classes = %s,"
                " next_actions = %s, stands = %s, algorithm = %s, decided_at = %s"
                " WHERE trial_id = %s",
                [
                    (*_columns(decided[pk]), stands, DISPOSITION_VERSION, now, pk)
                    for pk, stands in again
                ],
            )
        if others:
            cursor.executemany(
                "UPDATE traces_trialdisposition SET stands = %s"
                " WHERE trial_id = %s AND stands IS DISTINCT FROM %s",
                [(stands, pk, stands) for pk, stands in others],
            )


_DISTINCT_PATHS = ", ".join(f"count(DISTINCT {name}) FILTER (WHERE passed)" for name in KEY_NAMES)

# Trials are first folded into distinct trajectories, so that the many DISTINCT counts sort few
# rows. GROUPING SETS gives each release and all of them together. A declared run without a list
# of tasks covers the tasks that its trials name. The column names come from `KEY_NAMES` alone.
_FIGURES = f"""
WITH slots AS (
    SELECT t.task_id, t.release_id, t.run_id, t.trajectory_id, d.value,
           t.environment = 'test' AND NOT t.has_fault AS counted
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    WHERE t.task_id = ANY(%(tasks)s)
), folded AS (
    SELECT task_id, release_id, trajectory_id,
           count(*) FILTER (WHERE counted) AS n_run,
           count(*) FILTER (WHERE counted AND value = 'pass') AS n_pass,
           count(*) FILTER (WHERE counted AND value = 'fail') AS n_fail,
           count(*) FILTER (WHERE counted AND value = 'unresolved') AS n_unresolved,
           count(*) FILTER (WHERE counted AND value = 'harness_error') AS n_error,
           count(*) FILTER (WHERE NOT counted) AS n_left_out,
           bool_or(counted AND value = 'pass') AS passed
    FROM slots GROUP BY task_id, release_id, trajectory_id
), counted AS (
    SELECT f.task_id, f.release_id, sum(n_run) AS n_run, sum(n_pass) AS n_pass,
           sum(n_fail) AS n_fail, sum(n_unresolved) AS n_unresolved, sum(n_error) AS n_error,
           sum(n_left_out) AS n_left_out, ARRAY[{_DISTINCT_PATHS}] AS n_paths
    FROM folded f JOIN traces_trajectorypaths p
        ON p.trajectory_id = f.trajectory_id AND p.rules_id = %(rules)s
    GROUP BY GROUPING SETS ((f.task_id, f.release_id), (f.task_id))
), in_run AS (
    SELECT run_id, task_id, count(*) AS n FROM slots GROUP BY run_id, task_id
), declared AS (
    SELECT rt.run_id, rt.task_id FROM traces_runtask rt WHERE rt.task_id = ANY(%(tasks)s)
    UNION ALL
    SELECT i.run_id, i.task_id FROM in_run i
    WHERE NOT EXISTS (SELECT 1 FROM traces_runtask rt WHERE rt.run_id = i.run_id)
), missing AS (
    SELECT d.task_id, r.release_id,
           sum(greatest(r.declared_trials - coalesce(i.n, 0), 0)) AS n_missing
    FROM declared d JOIN traces_run r ON r.id = d.run_id AND r.declared_trials IS NOT NULL
    LEFT JOIN in_run i ON i.run_id = d.run_id AND i.task_id = d.task_id
    GROUP BY GROUPING SETS ((d.task_id, r.release_id), (d.task_id))
)
INSERT INTO traces_taskfigures
    (task_id, release_id, rules_id, n_run, n_pass, n_fail, n_unresolved, n_error, n_left_out,
     n_missing, n_paths, computed_at)
SELECT coalesce(c.task_id, m.task_id), coalesce(c.release_id, m.release_id), %(rules)s,
       coalesce(n_run, 0), coalesce(n_pass, 0), coalesce(n_fail, 0), coalesce(n_unresolved, 0),
       coalesce(n_error, 0), coalesce(n_left_out, 0), coalesce(n_missing, 0),
       coalesce(n_paths, array_fill(0, ARRAY[{len(KEY_NAMES)}])), %(now)s
FROM counted c FULL JOIN missing m
    ON m.task_id = c.task_id AND coalesce(m.release_id, 0) = coalesce(c.release_id, 0)
ORDER BY 1, 2
ON CONFLICT (task_id, release_id) DO UPDATE SET
    rules_id = excluded.rules_id, n_run = excluded.n_run, n_pass = excluded.n_pass,
    n_fail = excluded.n_fail, n_unresolved = excluded.n_unresolved, n_error = excluded.n_error,
    n_left_out = excluded.n_left_out, n_missing = excluded.n_missing, n_paths = excluded.n_paths,
    computed_at = excluded.computed_at
"""  # noqa: S608


@transaction.atomic
def refresh_figures(system: System, task_ids: Iterable[int] | None = None) -> None:
    """Count the slots and distinct passing paths of some tasks anew, by release and in all.

    None: of every task. The paths are those of the rules that pages show by now, which the object
    at hand may not know of yet.
    """
    tasks = None if task_ids is None else sorted(set(task_ids))
    if tasks == []:
        return
    with connection.cursor() as cursor:
        # The lock comes before the statements that read, which so see all that was committed.
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended('evalsite.figures', %s))", [system.pk]
        )
        if tasks is None:
            tasks = list(Task.objects.filter(system=system).values_list("pk", flat=True))
        cursor.execute(
            _FIGURES, {"tasks": tasks, "rules": shown_rules_id(system), "now": timezone.now()}
        )
