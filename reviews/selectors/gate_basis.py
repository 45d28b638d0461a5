"""What a gate applies: thresholds, tiers and contract versions in force at an instant, and its runs.

The instant is the one at which the first counting run of the release began; each run applies the
contract versions in force when it began itself. An owner's re-evaluation moves all of them to the
instant at which it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.core.gate.model import RunOfRelease, Thresholds, ThresholdSetInForce
from reviews.core.gate.thresholds import parse_thresholds
from traces.models import ContractOutcome, Release, WorkState


@dataclass(frozen=True, slots=True)
class Exclusion:
    """That an owner left a run out, and whether a second one confirmed it."""

    uuid: UUID
    reason: str
    by: str  # printed name
    by_uuid: UUID
    left_out_at: datetime
    confirmed_by: str = ""
    confirmed_uuid: UUID | None = None
    confirmed_reason: str = ""


@dataclass(frozen=True, slots=True)
class GateRun:
    """A run of the release."""

    pk: int
    uuid: UUID
    name: str
    begun_at: datetime
    declared_trials: int | None
    n_test: int  # trials in the environment `test`
    exclusion: Exclusion | None

    @property
    def is_of_tests(self) -> bool:
        """Whether it was declared or brought trials; a run of production traces alone is neither."""
        return self.declared_trials is not None or self.n_test > 0

    @property
    def counts(self) -> bool:
        """Whether the gate counts it."""
        return self.is_of_tests and self.exclusion is None

    @property
    def shown(self) -> RunOfRelease:
        """As the core of the gate reads it."""
        left = self.exclusion
        return RunOfRelease(
            uuid=str(self.uuid),
            name=self.name,
            begun_at=iso(self.begun_at),
            declared_trials=self.declared_trials,
            is_left_out=left is not None,
            is_confirmed=left is not None and bool(left.confirmed_by),
            left_out_reason=left.reason if left else "",
        )


@dataclass(frozen=True, slots=True)
class TierInForce:
    """A tier with the thresholds that apply to it."""

    pk: int
    uuid: UUID
    name: str
    thresholds: ThresholdSetInForce


@dataclass(frozen=True, slots=True)
class Reevaluation:
    """The newest re-evaluation of a release."""

    uuid: UUID
    number: int
    made_at: datetime
    reason: str
    by: str  # printed name


@dataclass(frozen=True, slots=True)
class GateSubject:
    """The release that a gate is about, with its runs in the order in which they began."""

    pk: int
    uuid: UUID
    name: str
    system_pk: int
    is_unversioned: bool
    runs: tuple[GateRun, ...]
    reevaluation: Reevaluation | None

    @property
    def counting(self) -> tuple[GateRun, ...]:
        """The runs that count."""
        return tuple(run for run in self.runs if run.counts)

    @property
    def begun_at(self) -> datetime | None:
        """When its first counting run began; None without one."""
        return min((run.begun_at for run in self.counting), default=None)

    @property
    def first_begun_at(self) -> datetime | None:
        """When its first run began, left out or not; None without one."""
        return min((run.begun_at for run in self.runs if run.is_of_tests), default=None)


@dataclass(frozen=True, slots=True)
class GateBasis:
    """What the gate of a release applies."""

    instant: datetime | None  # None: no run counts
    tiers: tuple[TierInForce, ...]  # with thresholds in force, by their age
    tier_of: Mapping[int, int | None]  # task: tier with thresholds in force; None: in none
    contract_of: Mapping[tuple[int, int], int]  # (run, task): contract version in force


def iso(at: datetime) -> str:
    """An instant as documents hold it: ISO 8601, UTC, microseconds."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_PRINTED = "coalesce(nullif(trim({0}.first_name || ' ' || {0}.last_name), ''), {0}.username)"

_RUNS = f"""
SELECT r.id, r.uuid, r.name, r.begun_at, r.declared_trials,
       (SELECT count(*) FROM traces_trial t WHERE t.run_id = r.id AND t.environment = 'test'),
       x.uuid, x.reason, {_PRINTED.format("p")}, p.uuid, x.left_out_at,
       {_PRINTED.format("q")}, q.uuid, c.reason
FROM traces_run r
LEFT JOIN LATERAL (
    SELECT * FROM reviews_runexclusion e WHERE e.run_id = r.id
    AND NOT EXISTS (SELECT FROM reviews_exclusionend n WHERE n.exclusion_id = e.id)
    ORDER BY e.id DESC LIMIT 1
) x ON true
LEFT JOIN traces_user p ON p.id = x.by_id
LEFT JOIN reviews_exclusionconfirmation c ON c.exclusion_id = x.id
LEFT JOIN traces_user q ON q.id = c.by_id
WHERE r.release_id = %(release)s ORDER BY r.begun_at, r.id
"""  # noqa: S608 - put together from texts of this module

_REEVALUATION = f"""
SELECT e.uuid, e.number, e.made_at, e.reason, {_PRINTED.format("p")}
FROM reviews_gatereevaluation e JOIN traces_user p ON p.id = e.by_id
WHERE e.release_id = %(release)s ORDER BY e.number DESC LIMIT 1
"""  # noqa: S608 - put together from texts of this module


def gate_subject(release_pk: int) -> GateSubject:
    """A release with its runs, what was left out of them, and its last re-evaluation. 3 queries."""
    release = Release.objects.only("pk", "uuid", "name", "system", "is_unversioned").get(
        pk=release_pk
    )
    with connection.cursor() as cursor:
        cursor.execute(_RUNS, {"release": release_pk})
        runs = tuple(_run(*row) for row in cursor.fetchall())
        cursor.execute(_REEVALUATION, {"release": release_pk})
        row = cursor.fetchone()
    return GateSubject(
        pk=release.pk,
        uuid=release.uuid,
        name=release.name,
        system_pk=release.system_id,
        is_unversioned=release.is_unversioned,
        runs=runs,
        reevaluation=Reevaluation(*row) if row else None,
    )


def _run(
    pk: int,
    identity: UUID,
    name: str,
    begun_at: datetime,
    declared: int | None,
    n_test: int,
    exclusion: UUID | None,
    *left: Any,
) -> GateRun:
    found = None
    if exclusion is not None:
        reason, by, by_uuid, at, confirmed_by, confirmed_uuid, confirmed_reason = left
        found = Exclusion(
            exclusion,
            reason,
            by,
            by_uuid,
            at,
            confirmed_by or "",
            confirmed_uuid,
            confirmed_reason or "",
        )
    return GateRun(pk, identity, name, begun_at, declared, n_test, found)


def basis_at_start(subject: GateSubject, task_pks: Iterable[int]) -> GateBasis:
    """What was in force when the release's runs began.

    Thresholds and tiers are those of its first run, left out or not: leaving one out moves no bar.
    """
    instants = {run.pk: run.begun_at for run in subject.counting}
    begun = None if subject.begun_at is None else subject.first_begun_at
    return _basis(subject, task_pks, begun, instants)


def basis_at(subject: GateSubject, task_pks: Iterable[int], instant: datetime) -> GateBasis:
    """What was in force at an instant, for all runs."""
    begun = None if subject.begun_at is None else instant
    return _basis(subject, task_pks, begun, {run.pk: instant for run in subject.counting})


def _basis(
    subject: GateSubject,
    task_pks: Iterable[int],
    instant: datetime | None,
    instants: Mapping[int, datetime],
) -> GateBasis:
    tasks = sorted(set(task_pks))
    if instant is None:
        return GateBasis(None, (), dict.fromkeys(tasks), {})
    tiers = tiers_in_force(subject.system_pk, instant)
    known = {tier.pk for tier in tiers}
    assigned = assigned_tiers(subject.system_pk, instant)
    own = {task: assigned.get(task) or assigned.get(None) for task in tasks}
    return GateBasis(
        instant=instant,
        tiers=tiers,
        tier_of={task: tier if tier in known else None for task, tier in own.items()},
        contract_of=_contracts(tasks, instants),
    )


_TIERS = f"""
SELECT DISTINCT ON (t.id) t.id, t.uuid, t.name, s.number, s.digest, {_PRINTED.format("p")},
       s.made_at, s.in_force_from, s.document
FROM reviews_risktier t
JOIN reviews_thresholdset s ON s.tier_id = t.id AND s.in_force_from <= %(instant)s
LEFT JOIN traces_user p ON p.id = s.by_id
WHERE t.system_id = %(system)s AND NOT EXISTS (
    SELECT FROM reviews_tierretirement e WHERE e.tier_id = t.id AND e.retired_at <= %(instant)s
)
ORDER BY t.id, s.number DESC
"""  # noqa: S608 - put together from texts of this module

NOBODY = "the operator"


def tiers_in_force(system_pk: int, instant: datetime) -> tuple[TierInForce, ...]:
    """The tiers of a system that had thresholds in force at an instant, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_TIERS, {"system": system_pk, "instant": instant})
        return tuple(_tier(*row) for row in cursor.fetchall())


def _tier(
    pk: int,
    identity: UUID,
    name: str,
    number: int,
    digest: str,
    by: str | None,
    made_at: datetime,
    in_force_from: datetime,
    document: Any,
) -> TierInForce:
    parsed = parse_thresholds(_loaded(document))
    if not isinstance(parsed, Thresholds):
        raise ValueError(f"the stored thresholds {number} of tier {pk} are not whole")  # noqa: TRY004
    made = ThresholdSetInForce(
        number=number,
        digest=digest,
        by=by or NOBODY,
        made_at=iso(made_at),
        in_force_from=iso(in_force_from),
        thresholds=parsed,
    )
    return TierInForce(pk, identity, name, made)


def _loaded(document: Any) -> Any:
    import json

    return json.loads(document) if isinstance(document, str) else document


_ASSIGNED = """
SELECT DISTINCT ON (task_id) task_id, tier_id FROM reviews_tierassignment
WHERE system_id = %(system)s AND assigned_at <= %(instant)s ORDER BY task_id, id DESC
"""


def assigned_tiers(system_pk: int, instant: datetime) -> dict[int | None, int | None]:
    """Which tier each task was put into by then, None: all others. In one query."""
    with connection.cursor() as cursor:
        cursor.execute(_ASSIGNED, {"system": system_pk, "instant": instant})
        return dict(cursor.fetchall())


# A version whose regrade was stopped counts where it took effect before.
_APPROVED = """
SELECT v.task_id, v.id, d.decided_at, p.id FROM traces_contractversion v
JOIN traces_contractproposal p ON p.id = v.proposal_id
JOIN traces_contractdecision d ON d.proposal_id = p.id AND d.outcome = %(approved)s
LEFT JOIN reviews_regrade g ON g.proposal_id = p.id
WHERE v.task_id = ANY(%(tasks)s) AND d.decided_at <= %(latest)s
  AND (g.id IS NULL OR g.state <> ALL(%(ended)s)
       OR coalesce(array_position(g.tasks, v.task_id) <= g.n_tasks_done, false))
ORDER BY v.task_id, d.decided_at, p.id
"""


def _contracts(
    tasks: Sequence[int], instants: Mapping[int, datetime]
) -> dict[tuple[int, int], int]:
    """The contract version of each task that was in force at the instant of each run. One query."""
    if not tasks or not instants:
        return {}
    wanted: dict[str, Any] = {
        "approved": ContractOutcome.APPROVED.value,
        "tasks": list(tasks),
        "latest": max(instants.values()),
        "ended": [WorkState.CANCELLED.value, WorkState.FAILED.value],
    }
    found: dict[tuple[int, int], int] = {}
    with connection.cursor() as cursor:
        cursor.execute(_APPROVED, wanted)
        for task, version, decided_at, _ in cursor.fetchall():
            for run, instant in instants.items():
                if decided_at <= instant:
                    found[run, task] = version
    return found
