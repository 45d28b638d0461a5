"""The slots of a release as its gate counts them, decided by the contract versions that it applies.

Decided in memory, from verdicts: what pages read is a projection and may follow another version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from evalsite.common import blobs
from reviews.core.checks.results import CHECKS_VERSION
from reviews.core.deciding import DecidedBy, TaskRequirements
from reviews.core.disposition import StandingResult, TrialFacts, applies_to
from reviews.core.gate.model import GateSlot
from reviews.core.gate.votes import Deciding, deciding_of
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE_KEY, CheckNotes
from reviews.core.slots import label_order
from reviews.selectors.gate_basis import GateRun, GateSubject
from reviews.selectors.votes import SeenEvidence, TrialVotes, calibrations_in, marks_on, trial_votes
from traces.core.additions import parse_addition
from traces.core.contracts.model import Contract
from traces.core.records import GraderKind, TrialStatus
from traces.models import System
from traces.selectors.contracts import VersionedContract, contracts_named
from traces.selectors.rules import shown_rules_id

DECIDED_TOGETHER = 2_000  # trials whose verdicts are held in memory

MISSING = "missing"

_STATUSES = {status.value: status for status in TrialStatus}


@dataclass(frozen=True, slots=True)
class GateTrial:
    """The trial that stands for a slot of a counting run, in the environment `test`."""

    pk: int
    uuid: UUID
    task_pk: int
    run_pk: int
    label: str
    status: TrialStatus
    has_fault: bool
    version_pk: int
    version: int
    cost: Decimal | None
    n_calls: int
    n_handoffs: int | None


@dataclass(frozen=True, slots=True)
class GateTask:
    """A task that the release has trials of, or that a run of it declared."""

    pk: int
    task_id: str
    family: str
    split: str
    contract_pk: int | None  # by which pages decide it


@dataclass(frozen=True, slots=True)
class Collected:
    """What the counting runs of a release brought, undecided."""

    subject: GateSubject
    tasks: Mapping[int, GateTask]  # in their natural order
    trials: tuple[GateTrial, ...]
    declared: Mapping[int, tuple[int, ...]]  # run: the tasks that it declared by name
    n_in_run: Mapping[tuple[int, int], int]  # (run, task): slots, whatever their environment
    n_production: int


@dataclass(frozen=True, slots=True)
class JudgeKey:
    """A judge version on a criterion as a contract asks it."""

    judge: str
    version: str
    criterion: str
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class DecidedSlot:
    """A slot with what decided it. `trial_pk` 0: no trial came."""

    slot: GateSlot
    task_pk: int
    run_pk: int
    trial_pk: int = 0
    contract_pk: int = 0
    votes: tuple[int, ...] = ()  # ids of verdicts that vote on what is mandatory
    adjudications: tuple[int, ...] = ()  # that decide
    judges: frozenset[JudgeKey] = frozenset()
    is_by_party: bool = False


# The last attempt stands for its slot.
_TRIALS = """
SELECT s.id, s.uuid, s.task_id, s.run_id, s.label, s.status, s.has_fault, s.task_version_id,
       v.number, s.cost_usd, s.n_tool_calls, w.n_handoffs, s.environment = 'test'
FROM (
    SELECT DISTINCT ON (run_id, task_id, label) * FROM traces_trial
    WHERE run_id = ANY(%(runs)s) ORDER BY run_id, task_id, label, attempt DESC
) s
JOIN traces_taskversion v ON v.id = s.task_version_id
LEFT JOIN traces_trajectorypaths w
    ON w.trajectory_id = s.trajectory_id AND w.rules_id = %(rules)s
ORDER BY s.id
"""
_DECLARED = "SELECT run_id, task_id FROM traces_runtask WHERE run_id = ANY(%s) ORDER BY id"
_TASKS = """
SELECT id, task_id, family, split, contract_id FROM traces_task WHERE id = ANY(%s)
ORDER BY sort_key, id
"""
_COSTS = """
SELECT a.trial_id, a.content FROM traces_evidenceaddition a
WHERE a.trial_id = ANY(%s) AND a.parts ? 'cost_usd' ORDER BY a.trial_id, a."order" DESC
"""


def collected(subject: GateSubject) -> Collected:
    """What the counting runs of a release brought. 5 queries, 6 where a trial recorded no cost."""
    runs = [run.pk for run in subject.counting]
    rules = shown_rules_id(System(pk=subject.system_pk))
    trials: list[GateTrial] = []
    n_in_run: dict[tuple[int, int], int] = {}
    n_production = 0
    with connection.cursor() as cursor:
        cursor.execute(_TRIALS, {"runs": runs, "rules": rules})
        for pk, uuid, task, run, label, status, *rest, is_test in cursor.fetchall():
            n_in_run[run, task] = n_in_run.get((run, task), 0) + 1
            if is_test:
                trials.append(GateTrial(pk, uuid, task, run, label, _STATUSES[status], *rest))
            else:
                n_production += 1
        cursor.execute(_DECLARED, [runs])
        declared: dict[int, list[int]] = {}
        for run, task in cursor.fetchall():
            declared.setdefault(run, []).append(task)
        wanted = {trial.task_pk for trial in trials} | {t for ts in declared.values() for t in ts}
        wanted |= {task for run, task in n_in_run}
        cursor.execute(_TASKS, [sorted(wanted)])
        tasks = {row[0]: GateTask(*row) for row in cursor.fetchall()}
    return Collected(
        subject=subject,
        tasks=tasks,
        trials=_with_added_costs(trials),
        declared={run: tuple(found) for run, found in declared.items()},
        n_in_run=n_in_run,
        n_production=n_production,
    )


def _with_added_costs(trials: Sequence[GateTrial]) -> tuple[GateTrial, ...]:
    """What a trial's own record says stands; else the first addition that fills it."""
    without = [trial.pk for trial in trials if trial.cost is None]
    if not without:
        return tuple(trials)
    added: dict[int, Decimal | None] = {}
    with connection.cursor() as cursor:
        cursor.execute(_COSTS, [without])
        for pk, content in cursor.fetchall():  # the first one comes last
            addition, _ = parse_addition(blobs.unpack(content))
            if addition.cost_usd is not None:
                added[pk] = addition.cost_usd
    if not added:
        return tuple(trials)
    return tuple(replace(t, cost=added[t.pk]) if t.pk in added else t for t in trials)


class SlotDecider:
    """Decides the slots of what a release brought, under one choice of contract versions."""

    def __init__(self, brought: Collected, contract_of: Mapping[tuple[int, int], int]) -> None:
        self.brought, self.contract_of = brought, contract_of
        self.contracts = {
            pk: replace(version, contract=mandatory_prohibitions(version.contract))
            for pk, version in contracts_named(contract_of.values()).items()
        }
        self._marks = marks_on(brought.tasks)
        self._calibrations = calibrations_in([brought.subject.system_pk])[brought.subject.system_pk]
        self._mixed = self._mixed_fixtures()
        self._runs = {run.pk: run for run in brought.subject.runs}
        self._made: dict[tuple[int, int | None], TaskRequirements] = {}

    def slots(self) -> tuple[DecidedSlot, ...]:
        """All slots, those that came by task, version, run and label; then those that never came."""
        came: list[DecidedSlot] = []
        trials = self.brought.trials
        for first in range(0, len(trials), DECIDED_TOGETHER):
            few = trials[first : first + DECIDED_TOGETHER]
            votes = trial_votes((trial.pk for trial in few), have_contracts=bool(self.contracts))
            nothing = TrialVotes()
            came += [self._came(trial, votes.get(trial.pk, nothing)) for trial in few]
        order = {pk: place for place, pk in enumerate(self.brought.tasks)}
        begun = {run.pk: place for place, run in enumerate(self.brought.subject.runs)}
        came.sort(
            key=lambda each: (
                order[each.task_pk],
                each.slot.task_version,
                begun[each.run_pk],
                label_order(each.slot.label),
                each.trial_pk,
            )
        )
        return (*came, *self._missing(came))

    def _came(self, trial: GateTrial, votes: TrialVotes) -> DecidedSlot:
        contract_pk = self.contract_of.get((trial.run_pk, trial.task_pk))
        version = self.contracts.get(contract_pk) if contract_pk is not None else None
        seen = votes.seen.get(contract_pk, _NOTHING_SEEN) if contract_pk else _NOTHING_SEEN
        order = votes.evidence_order(contract_pk)
        decided = self._requirements(trial.task_pk, contract_pk).decided(
            TrialFacts(trial.status, seen.missing, order),
            votes.verdicts,
            votes.notes,
            adjudications=votes.adjudications,
            has_faulty_fixture=trial.pk in self._mixed or bool(seen.faults),
        )
        deciding = deciding_of(
            decided.decision, decided.verdicts, votes.adjudications, evidence_order=order
        )
        heads = [each.adjudication for each in deciding if each.adjudication is not None]
        return DecidedSlot(
            slot=self._slot(trial, version, decided, votes.notes),
            task_pk=trial.task_pk,
            run_pk=trial.run_pk,
            trial_pk=trial.pk,
            contract_pk=contract_pk or 0,
            votes=tuple(int(vote.id) for each in deciding for vote in each.votes),
            adjudications=tuple(sorted({int(head.id) for head in heads})),
            judges=frozenset(_judges(deciding)),
            is_by_party=any(head.is_by_party for head in heads),
        )

    def _slot(
        self,
        trial: GateTrial,
        version: VersionedContract | None,
        decided: DecidedBy,
        notes: Mapping[str, CheckNotes],
    ) -> GateSlot:
        task, figures = self.brought.tasks[trial.task_pk], decided.figures
        contract = version.contract if version else None
        prohibited = {entry.id: entry for entry in contract.prohibited} if contract else {}
        undecided = any(
            standing.result is StandingResult.OPEN
            for standing in decided.decision.standings
            if standing.requirement.criterion in prohibited
        )
        attempted = _violated(contract, decided, notes)
        return GateSlot(
            task=task.task_id,
            task_version=trial.version,
            contract=version.number if version else 0,
            family=task.family,
            split=task.split,
            run=str(self._runs[trial.run_pk].uuid),
            label=trial.label,
            trial=str(trial.uuid),
            value=decided.decision.disposition.value,
            outcome=figures.outcome,
            clean=figures.rule_clean,
            is_clean_known=bool(prohibited)
            and not attempted
            and not undecided
            and trial.status is TrialStatus.COMPLETED,
            has_prohibitions=bool(prohibited),
            harms_attempted=attempted,
            harms_committed=tuple(h for h in figures.harms_committed if h in attempted),
            cost=trial.cost,
            has_fault=trial.has_fault,
            handed_over=None if trial.n_handoffs is None else trial.n_handoffs > 0,
            n_calls=trial.n_calls,
        )

    def _requirements(self, task_pk: int, contract_pk: int | None) -> TaskRequirements:
        key = (task_pk, contract_pk)
        if key not in self._made:
            version = self.contracts.get(contract_pk) if contract_pk is not None else None
            self._made[key] = TaskRequirements(
                version.contract if version else None,
                contract_key=version.key if version else "",
                marks=self._marks.get(task_pk, ()),
                calibrations=self._calibrations,
            )
        return self._made[key]

    def _missing(self, came: Sequence[DecidedSlot]) -> Iterator[DecidedSlot]:
        """Declared trials that never came. A run without a list covers the tasks that it tried."""
        newest: dict[int, DecidedSlot] = {}
        for each in came:
            known = newest.get(each.task_pk)
            if known is None or _age(each) > _age(known):
                newest[each.task_pk] = each
        for run in self.brought.subject.counting:
            if run.declared_trials is None:
                continue
            named = self.brought.declared.get(run.pk)
            tried = [task for at, task in self.brought.n_in_run if at == run.pk]
            for task_pk in named or sorted(tried):
                n = run.declared_trials - self.brought.n_in_run.get((run.pk, task_pk), 0)
                if n > 0:
                    lacking = self._lacking(run, task_pk, newest.get(task_pk))
                    yield from (lacking for _ in range(n))

    def _lacking(self, run: GateRun, task_pk: int, newest: DecidedSlot | None) -> DecidedSlot:
        task = self.brought.tasks[task_pk]
        contract_pk = self.contract_of.get((run.pk, task_pk))
        version = self.contracts.get(contract_pk) if contract_pk is not None else None
        number = newest.slot.contract if newest else version.number if version else 0
        has_prohibitions = (
            newest.slot.has_prohibitions
            if newest
            else bool(version and version.contract.prohibited)
        )
        return DecidedSlot(
            slot=GateSlot(
                task=task.task_id,
                task_version=newest.slot.task_version if newest else 0,
                contract=number,
                family=task.family,
                split=task.split,
                run=str(run.uuid),
                label="",
                trial="",
                value=MISSING,
                has_prohibitions=has_prohibitions,
            ),
            task_pk=task_pk,
            run_pk=run.pk,
        )

    def _mixed_fixtures(self) -> set[int]:
        """Trials that did not start as the others of their task version and facts did.

        Among all trials of the task that were graded under the version, of whatever release.
        """
        in_effect = {pk: task.contract_pk for pk, task in self.brought.tasks.items()}
        others = sorted(
            {
                (task, contract)
                for (_, task), contract in self.contract_of.items()
                if in_effect.get(task) != contract
            }
        )
        mine = {
            trial.pk: (trial.task_pk, contract)
            for trial in self.brought.trials
            if (contract := self.contract_of.get((trial.run_pk, trial.task_pk))) is not None
        }
        kept = [pk for pk, (task, contract) in mine.items() if in_effect[task] == contract]
        mixed = _mixed_in_effect(kept) if kept else set()
        if others:
            wanted = {pk: contract for pk, (_, contract) in mine.items()}
            mixed |= _mixed_under(others, wanted)
        return mixed


_NOTHING_SEEN = SeenEvidence()

_MIXED = """
WITH mine AS (
    SELECT trial_id, task_id, task_version_id, facts FROM traces_trialfixture
    WHERE trial_id = ANY(%s)
), mixed AS (
    SELECT task_id, task_version_id, facts FROM traces_trialfixture
    JOIN (SELECT DISTINCT task_id, task_version_id, facts FROM mine) g
        USING (task_id, task_version_id, facts)
    GROUP BY 1, 2, 3 HAVING count(DISTINCT state) > 1
)
SELECT trial_id FROM mine JOIN mixed USING (task_id, task_version_id, facts)
"""


def _mixed_in_effect(trial_pks: Sequence[int]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(_MIXED, [list(trial_pks)])
        return {row[0] for row in cursor.fetchall()}


# The latest grading of each trial under a version notes how it started.
_NOTED = """
SELECT DISTINCT ON (t.id, v.contract_id) t.id, t.task_version_id, v.contract_id, v.extra
FROM unnest(%(tasks)s::bigint[], %(versions)s::bigint[]) AS w(task, version)
JOIN traces_trial t ON t.task_id = w.task
CROSS JOIN LATERAL (SELECT * FROM reviews_verdict WHERE trial_id = t.id OFFSET 0) v
JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id
WHERE v.contract_id = w.version AND right(v.key, %(length)s) = %(ending)s
      AND g.kind = 'code' AND g.name = %(checks)s AND gv.version = %(version)s
ORDER BY t.id, v.contract_id, v.evidence_order DESC, v.id DESC
"""


def _mixed_under(versions: Sequence[tuple[int, int]], contract_of: Mapping[int, int]) -> set[int]:
    """As pages read it of the contracts in effect, of versions that are not: (task, contract)."""
    tasks, contracts = zip(*versions, strict=True)
    states: dict[tuple[int, int, str], set[str]] = {}
    members: dict[tuple[int, int, str], list[int]] = {}
    wanted: dict[str, Any] = {
        "tasks": list(tasks),
        "versions": list(contracts),
        "length": len(EVIDENCE_KEY),
        "ending": EVIDENCE_KEY,
        "checks": CHECKS_GRADER,
        "version": CHECKS_VERSION,
    }
    with connection.cursor() as cursor:
        cursor.execute(_NOTED, wanted)
        for trial, task_version, contract, extra in cursor.fetchall():
            start = blobs.loads(extra)["evidence"].get("fixture")
            if start is None:
                continue
            key = (task_version, contract, str(start[0]))
            states.setdefault(key, set()).add(str(start[1]))
            if contract_of.get(trial) == contract:
                members.setdefault(key, []).append(trial)
    return {
        trial for key, found in states.items() if len(found) > 1 for trial in members.get(key, ())
    }


def _age(each: DecidedSlot) -> tuple[int, int]:
    return (each.slot.task_version, each.slot.contract)


def _judges(deciding: Iterable[Deciding]) -> Iterator[JudgeKey]:
    for each in deciding:
        for vote in each.votes:
            if vote.kind is GraderKind.MODEL:
                yield JudgeKey(
                    vote.grader,
                    vote.grader_version,
                    vote.criterion,
                    each.requirement.criterion_digest,
                )


def _violated(
    contract: Contract | None, decided: DecidedBy, notes: Mapping[str, CheckNotes]
) -> tuple[str, ...]:
    """The harms of mandatory prohibitions that the trial violated.

    One whose standing is fail, and an attempt that was seen where an attempt already violates.
    """
    if contract is None or not contract.prohibited:
        return ()
    entries = {entry.id: entry for entry in contract.prohibited}
    required = {
        standing.requirement.criterion: standing.requirement
        for standing in decided.decision.standings
        if standing.requirement.is_prohibition
    }
    violated = {
        standing.requirement.criterion
        for standing in decided.decision.standings
        if standing.requirement.is_prohibition and standing.result is StandingResult.FAIL
    }
    for verdict in decided.verdicts:
        requirement = required.get(verdict.criterion)
        if requirement is None or requirement.marks or entries[verdict.criterion].committed_only:
            continue
        note = notes.get(verdict.id)
        if note is not None and note.has_attempted and applies_to(verdict, requirement):
            violated.add(verdict.criterion)
    return tuple(sorted({entries[criterion].harm for criterion in violated}))


_UNGRADED = """
SELECT w.version, array_agg(w.trial ORDER BY w.trial)
FROM unnest(%(trials)s::bigint[], %(versions)s::bigint[]) AS w(trial, version)
WHERE (SELECT count(*) FROM traces_evidenceaddition a WHERE a.trial_id = w.trial) + 1 > (
    SELECT count(DISTINCT v.evidence_order)
    FROM (SELECT * FROM reviews_verdict WHERE trial_id = w.trial OFFSET 0) v
    JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
    JOIN reviews_grader g ON g.id = gv.grader_id
    WHERE v.contract_id = w.version AND right(v.key, %(length)s) = %(ending)s
      AND g.kind = 'code' AND g.name = %(checks)s AND gv.version = %(version)s
) GROUP BY w.version
"""


def ungraded(wanted: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Those of the trials that lack a grading under a contract version, by version. One query."""
    pairs = [(trial, version) for version, trials in wanted.items() for trial in trials]
    if not pairs:
        return {}
    trials, versions = zip(*pairs, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(
            _UNGRADED,
            {
                "trials": list(trials),
                "versions": list(versions),
                "length": len(EVIDENCE_KEY),
                "ending": EVIDENCE_KEY,
                "checks": CHECKS_GRADER,
                "version": CHECKS_VERSION,
            },
        )
        return dict(cursor.fetchall())


def mandatory_prohibitions(contract: Contract) -> Contract:
    """The contract without prohibitions that are only reported: they decide no gate."""
    return replace(
        contract, prohibited=tuple(entry for entry in contract.prohibited if entry.mandatory)
    )
