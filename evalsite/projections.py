"""What pages read, computed from evidence: dispositions of trials and figures of tasks.

Only the pipeline and `manage.py rebuild` call this. A projection is never evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.utils import timezone

from evalsite.common.copying import copy_rows
from evalsite.grading import ensure_graded, mixed_fixtures
from reviews.core.cases import DecidedCase
from reviews.core.deciding import DecidedBy, TaskRequirements
from reviews.core.disposition import (
    DISPOSITION_VERSION,
    Adjudication,
    StandingResult,
    TrialFacts,
)
from reviews.core.notices import NoticedTrial
from reviews.core.requirements import MarkedCriterion
from reviews.selectors.votes import (
    SeenEvidence,
    TrialVotes,
    calibrations_in,
    marks_on,
    trial_votes,
)
from reviews.services.case_rows import follow_dispositions
from reviews.services.dispute_rows import DecidedDisputes, follow_disputes, follow_standing
from reviews.services.flags import DecidedTrial, raise_product_flags
from reviews.services.gate_rows import touch_gates
from traces.core.records import TrialStatus
from traces.models import System, Task
from traces.selectors.contracts import VersionedContract, contracts_named
from traces.selectors.paths import KEY_NAMES
from traces.selectors.rules import shown_rules_id

_STATUSES = {status.value: status for status in TrialStatus}
_DISPOSITION_COLUMNS = (
    ("trial_id", "int8"),
    ("stands", "bool"),
    ("contract_id", "int8"),
    ("value", "text"),
    ("failed_classes", "varchar[]"),
    ("next_actions", "varchar[]"),
    ("outcome", "text"),
    ("rule_clean", "text"),
    ("passed", "varchar[]"),
    ("failed", "varchar[]"),
    ("open", "varchar[]"),
    ("harms_attempted", "varchar[]"),
    ("harms_committed", "varchar[]"),
    ("n_required", "int4"),
    ("n_reached", "int4"),
    ("algorithm", "int2"),
    ("decided_at", "timestamptz"),
)


def decide_trials(trial_ids: Iterable[int], *, now: datetime) -> set[int]:
    """Decide trials from their verdicts and write the dispositions. Returns their tasks' ids.

    Trials of tasks with a contract are graded first where they are not; where that shows that
    trials of a task did not start alike, these are decided anew too. The other attempts of their
    slots are looked at: the last attempt stands for its slot. What is odd about a decided trial
    raises the product's own flags, and cases follow.

    Part of the caller's transaction, which holds `ingest_locks` of the system: of two writers the
    later one sees what the earlier one stored.
    """
    wanted = set(trial_ids)
    if not wanted:
        return set()
    rows = _attempts(wanted)
    under_contract = [row.pk for row in rows if row.pk in wanted and row.contract_pk is not None]
    if under_contract:
        peers = ensure_graded(under_contract, now=now).fixture_peers - wanted
        if peers:
            wanted |= peers
            rows = _attempts(wanted)
    _decide_rows([row for row in rows if row.pk in wanted], now)
    others = [(row.pk, row.stands) for row in rows if row.pk not in wanted]
    _update_standing(others)
    follow_standing(others)
    touch_gates((row.release_id for row in rows), now=now)
    return {row.task_id for row in rows}


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A trial, with what its disposition and its flags are decided from."""

    pk: int
    system_id: int
    task_id: int
    status: TrialStatus
    release_id: int
    contract_pk: int | None  # in effect for its task
    n_steps: int
    n_agent_steps: int
    stands: bool
    is_known: bool  # has a disposition already


def _attempts(trial_ids: set[int]) -> list[_Attempt]:
    """The trials and all other attempts of their slots."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT a.id, a.system_id, a.task_id, a.status, a.release_id, k.contract_id,"
            " a.n_messages,"
            # A trajectory with a tool call is not empty: the others alone are looked up.
            " CASE WHEN a.n_tool_calls > 0 THEN a.n_tool_calls ELSE (SELECT length(j.outcomes)"
            " FROM traces_trajectory j WHERE j.id = a.trajectory_id) END,"
            " a.attempt = max(a.attempt) OVER (PARTITION BY a.run_id, a.task_id, a.label),"
            " d.trial_id IS NOT NULL"
            " FROM (SELECT DISTINCT run_id, task_id, label FROM traces_trial WHERE id = ANY(%s)) s"
            " CROSS JOIN LATERAL (SELECT * FROM traces_trial WHERE run_id = s.run_id"
            " AND task_id = s.task_id AND label = s.label OFFSET 0) a"
            " JOIN traces_task k ON k.id = a.task_id"
            " LEFT JOIN traces_trialdisposition d ON d.trial_id = a.id",
            [list(trial_ids)],
        )
        return [
            _Attempt(pk, system, task, _STATUSES[status], *others)
            for pk, system, task, status, *others in cursor.fetchall()
        ]


def _decide_rows(rows: Sequence[_Attempt], now: datetime) -> None:
    contracts = contracts_named(row.contract_pk for row in rows if row.contract_pk is not None)
    votes = trial_votes((row.pk for row in rows), have_contracts=bool(contracts))
    tasks = _Tasks(rows, contracts)
    mixed = mixed_fixtures(row.pk for row in rows if row.contract_pk) if contracts else set()
    nothing = TrialVotes()
    decided = {
        row.pk: tasks.decided(row, votes.get(row.pk, nothing), is_mixed=row.pk in mixed)
        for row in rows
    }
    _write(rows, decided, now)
    noticed = [tasks.noticed(row, votes.get(row.pk, nothing)) for row in rows]
    raise_product_flags(noticed, now=now)
    follow_dispositions((_case(row, decided[row.pk]) for row in rows), now=now)
    follow_disputes(
        (_disputes(row, votes.get(row.pk, nothing), decided[row.pk]) for row in rows), now=now
    )


class _Tasks:
    """What the trials of a batch are decided by, made once a task."""

    def __init__(
        self, rows: Sequence[_Attempt], contracts: Mapping[int, VersionedContract]
    ) -> None:
        tasks = {row.task_id: row.contract_pk for row in rows}
        calibrations = calibrations_in(row.system_id for row in rows)
        system_of = {row.task_id: row.system_id for row in rows}
        marks = marks_on(tasks)
        self._requirements: dict[int, TaskRequirements] = {}
        self._criteria: dict[int, frozenset[str]] = {}
        for task, contract_pk in tasks.items():
            holds = calibrations[system_of[task]]
            if contract_pk is None:
                self._requirements[task] = TaskRequirements(
                    marks=marks.get(task, ()), calibrations=holds
                )
                continue
            version = contracts[contract_pk]
            made = TaskRequirements(
                version.contract,
                contract_key=version.key,
                marks=marks.get(task, ()),
                calibrations=holds,
            )
            self._requirements[task] = made
            self._criteria[task] = frozenset(r.criterion for r in made.requirements(()))

    def decided(self, row: _Attempt, votes: TrialVotes, *, is_mixed: bool) -> DecidedBy:
        seen = votes.seen.get(row.contract_pk, _NOTHING_SEEN) if row.contract_pk else _NOTHING_SEEN
        return self._requirements[row.task_id].decided(
            TrialFacts(row.status, seen.missing, votes.evidence_order(row.contract_pk)),
            votes.verdicts,
            votes.notes,
            adjudications=votes.adjudications,
            has_faulty_fixture=is_mixed or bool(seen.faults),
        )

    def suppose(self, row: _Attempt, mark: MarkedCriterion) -> None:
        """Decide by one more mark from now on."""
        made = self._requirements[row.task_id]
        self._requirements[row.task_id] = TaskRequirements(
            made.contract,
            contract_key=made.contract_key,
            marks=(*made.marks, mark),
            calibrations=made.calibrations,
        )

    def noticed(self, row: _Attempt, votes: TrialVotes) -> DecidedTrial:
        facts = NoticedTrial(
            row.status, row.n_steps, row.n_agent_steps, self._criteria.get(row.task_id)
        )
        return DecidedTrial(row.pk, row.system_id, facts, votes.verdicts)


_NOTHING_SEEN = SeenEvidence()


@dataclass(frozen=True, slots=True)
class Supposed:
    """A trial as it is decided, and as it would be if somebody decided something of it."""

    now: DecidedBy
    then: DecidedBy
    stands: bool  # for its slot


def decided_if(
    trial_id: int,
    *,
    adjudication: Adjudication | None = None,
    mark: MarkedCriterion | None = None,
) -> Supposed:
    """What one more adjudication or mark would make of a trial. Nothing is written or graded."""
    row = next(each for each in _attempts({trial_id}) if each.pk == trial_id)
    wanted = [] if row.contract_pk is None else [row.contract_pk]
    tasks = _Tasks([row], contracts_named(wanted))
    votes = trial_votes([trial_id], have_contracts=bool(wanted)).get(trial_id, TrialVotes())
    is_mixed = bool(wanted) and bool(mixed_fixtures([trial_id]))
    now = tasks.decided(row, votes, is_mixed=is_mixed)
    if adjudication is not None:
        votes.n_additions = max(votes.n_additions, adjudication.evidence_order)
        votes.adjudications.append(adjudication)
    if mark is not None:
        tasks.suppose(row, mark)
    return Supposed(now, tasks.decided(row, votes, is_mixed=is_mixed), row.stands)


def _case(row: _Attempt, decided: DecidedBy) -> DecidedCase:
    decision = decided.decision
    return DecidedCase(
        trial_id=row.pk,
        system_id=row.system_id,
        task_id=row.task_id,
        release_id=row.release_id,
        disposition=decision.disposition.value,
        actions=tuple(action.value for action in decision.actions),
        open_criteria=tuple(
            standing.requirement.criterion
            for standing in decision.standings
            if standing.requirement.mandatory and standing.result is StandingResult.OPEN
        ),
        stands=row.stands,
    )


def _disputes(row: _Attempt, votes: TrialVotes, decided: DecidedBy) -> DecidedDisputes:
    return DecidedDisputes(
        trial_id=row.pk,
        system_id=row.system_id,
        task_id=row.task_id,
        release_id=row.release_id,
        stands=row.stands,
        decision=decided.decision,
        verdicts=decided.verdicts,
        adjudications=tuple(votes.adjudications),
        evidence_order=votes.evidence_order(row.contract_pk),
        is_completed=row.status is TrialStatus.COMPLETED,
    )


def _write(rows: Sequence[_Attempt], decided: Mapping[int, DecidedBy], now: datetime) -> None:
    known = [row.pk for row in rows if row.is_known]
    if known:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM traces_trialdisposition WHERE trial_id = ANY(%s)", [known])
    copy_rows(
        "traces_trialdisposition",
        _DISPOSITION_COLUMNS,
        (
            (
                row.pk,
                row.stands,
                row.contract_pk,
                *_columns(decided[row.pk]),
                DISPOSITION_VERSION,
                now,
            )
            for row in rows
        ),
    )


def _columns(decided: DecidedBy) -> tuple[object, ...]:
    decision, figures = decided.decision, decided.figures
    return (
        decision.disposition.value,
        [name.value for name in decision.failed_classes],
        [action.value for action in decision.actions],
        figures.outcome,
        figures.rule_clean,
        list(figures.passed),
        list(figures.failed),
        list(figures.open),
        list(figures.harms_attempted),
        list(figures.harms_committed),
        figures.n_required,
        figures.n_reached,
    )


def _update_standing(rows: Sequence[tuple[int, bool]]) -> None:
    """Which attempt stands for its slot, of trials that are not decided now."""
    if rows:
        with connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE traces_trialdisposition SET stands = %s"
                " WHERE trial_id = %s AND stands IS DISTINCT FROM %s",
                [(stands, pk, stands) for pk, stands in rows],
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
