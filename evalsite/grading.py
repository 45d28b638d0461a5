"""Stored trials graded by the checks of contracts.

Every door ends here before it decides trials: `ensure_graded` adds the check verdicts that are
missing under the contracts in effect. A trial is graded once for each amount of evidence that there
was (none added, one addition, …), whenever its contract comes, so that its verdicts do not depend
on the order of events. The trials that lack verdicts are locked first: whoever grades the same ones
at the same time waits, and finds them graded.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import connection

import reviews.core.checks as contract_checks
from evalsite.common import blobs
from evalsite.common.copying import copy_rows
from reviews.core.check_verdicts import Fixture, check_requirements, evidence_of, grading_of
from reviews.core.requirements import EVIDENCE_KEY
from reviews.services.verdicts import GradedTrial, checks_version, store_checks
from traces.core.rules import RejectionSettings
from traces.models import System
from traces.selectors.contracts import VersionedContract, contracts_in_effect
from traces.selectors.rules import rules_of
from traces.selectors.trial_evidence import TrialEvidenceRows, trial_evidence

STORED_TOGETHER = 200  # trials whose verdicts are held in memory


@dataclass(slots=True)
class GradingReport:
    """What a grading added."""

    n_trials: int = 0
    n_verdicts: int = 0
    fixture_peers: set[int] = field(default_factory=set)
    """Other trials whose fixture is at fault now, because these started otherwise."""


def ensure_graded(trial_ids: Iterable[int], *, now: datetime) -> GradingReport:
    """Add the check verdicts that trials lack under the contracts in effect.

    Part of the caller's transaction. The caller holds `ingest_locks`, under which alone a contract
    comes into effect, and decides the `fixture_peers` anew beside the trials.
    """
    report = GradingReport()
    for system, ids in _by_system(trial_ids).items():
        versions = contracts_in_effect(_tasks_of(ids))
        fresh = _grade(system, ids, versions, report, now)
        report.fixture_peers |= _keep_fixtures(fresh)
    return report


def grade_under(
    trial_ids: Iterable[int], versions: Mapping[int, VersionedContract], *, now: datetime
) -> GradingReport:
    """Add the check verdicts that trials lack under some contract version of each task.

    Part of the caller's transaction, which needs no other lock. Nothing takes effect by it.
    """
    report = GradingReport()
    for system, ids in _by_system(trial_ids).items():
        _grade(system, ids, versions, report, now)
    return report


class ContractGrader:
    """The checks of one contract version, on one trial after another."""

    def __init__(self, version: VersionedContract) -> None:
        self.version = version
        self._requirements = check_requirements(version.contract)

    def graded(self, rows: TrialEvidenceRows, order: int) -> GradedTrial:
        """What the checks say of a trial on its first so many additions."""
        version = self.version
        evidence = evidence_of(rows.evidence(order))
        # By its module, where it can be watched.
        checks = contract_checks.checks_of(version.contract, evidence)
        return GradedTrial(
            trial_id=rows.trial_pk,
            contract_id=version.pk,
            contract=version.identity,
            evidence_order=order,
            evidence_digest=rows.evidence_digest(order),
            grading=grading_of(version.contract, evidence, checks, self._requirements),
        )


def _by_system(trial_ids: Iterable[int]) -> dict[System, list[int]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT system_id, array_agg(id ORDER BY id) FROM traces_trial WHERE id = ANY(%s)"
            " GROUP BY system_id",
            [list(set(trial_ids))],
        )
        found = dict(cursor.fetchall())
    systems = System.objects.select_related("shown_rules").in_bulk(found)
    return {systems[pk]: ids for pk, ids in sorted(found.items())}


def _tasks_of(trial_ids: Sequence[int]) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT task_id FROM traces_trial WHERE id = ANY(%s)", [list(trial_ids)]
        )
        return [row[0] for row in cursor.fetchall()]


def _grade(
    system: System,
    trial_ids: Sequence[int],
    versions: Mapping[int, VersionedContract],
    report: GradingReport,
    now: datetime,
) -> list[GradedTrial]:
    """Grade what is not graded yet. Returns the latest grading of each trial that got one."""
    versions = {task: version for task, version in versions.items() if version.is_readable}
    if not versions:
        return []
    wanted = _ungraded(system, trial_ids, versions)
    latest: list[GradedTrial] = []
    rejection = rules_of(system).rejection
    for few in _graded_few(wanted, versions, rejection):
        report.n_verdicts += store_checks(system, few, now=now)
        newest = {one.trial_id: one for one in few}
        latest += newest.values()
    report.n_trials += len(wanted)
    return latest


def _graded_few(
    wanted: Mapping[int, tuple[int, list[int]]],
    versions: Mapping[int, VersionedContract],
    rejection: RejectionSettings,
) -> Iterator[list[GradedTrial]]:
    few: list[GradedTrial] = []
    graders: dict[int, ContractGrader] = {}
    for rows in trial_evidence(wanted, rejection):
        task, orders = wanted[rows.trial_pk]
        if task not in graders:
            graders[task] = ContractGrader(versions[task])
        few += [graders[task].graded(rows, order) for order in orders]
        if len(few) >= STORED_TOGETHER:
            yield few
            few = []
    if few:
        yield few


# Which amounts of evidence a trial was graded on under a contract version. The rows that note what
# was seen tell it; LATERAL with OFFSET is an index look-up a trial.
_GRADED = """
SELECT t.id, t.task_id,
       (SELECT count(*) FROM traces_evidenceaddition a WHERE a.trial_id = t.id),
       (SELECT array_agg(v.evidence_order) FROM
            (SELECT * FROM reviews_verdict WHERE trial_id = t.id OFFSET 0) v
        WHERE v.contract_id = w.version AND v.grader_version_id = %(grader)s
              AND right(v.key, %(length)s) = %(ending)s)
FROM unnest(%(tasks)s::bigint[], %(versions)s::bigint[]) AS w(task, version)
JOIN traces_trial t ON t.task_id = w.task AND t.id = ANY(%(trials)s)
"""
_LOCK = "SELECT id FROM traces_trial WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"


def _ungraded(
    system: System, trial_ids: Sequence[int], versions: Mapping[int, VersionedContract]
) -> dict[int, tuple[int, list[int]]]:
    """The trials that lack gradings, locked: their task, and the amounts of evidence to grade on."""
    wanted = {
        "grader": checks_version(system),
        "length": len(EVIDENCE_KEY),
        "ending": EVIDENCE_KEY,
        "tasks": list(versions),
        "versions": [version.pk for version in versions.values()],
    }
    lacking = _lacking(wanted, list(trial_ids))
    if not lacking:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [list(lacking)])
    return _lacking(wanted, list(lacking))


def _lacking(wanted: Mapping[str, Any], trial_ids: list[int]) -> dict[int, tuple[int, list[int]]]:
    with connection.cursor() as cursor:
        cursor.execute(_GRADED, {**wanted, "trials": trial_ids})
        rows = cursor.fetchall()
    found = {
        pk: (task, [order for order in range(n_added + 1) if order not in (known or ())])
        for pk, task, n_added, known in rows
    }
    return {pk: found[pk] for pk in sorted(found) if found[pk][1]}


def _keep_fixtures(latest: Sequence[GradedTrial]) -> set[int]:
    """Keep how trials started, under the contracts in effect.

    Returns the other trials of their groups where these are the first to start otherwise, and
    those that started otherwise than a trial which added evidence has taken out of their group.
    """
    graded = [one.trial_id for one in latest]
    if not graded:
        return set()
    starts = {
        one.trial_id: one.grading.fixture for one in latest if one.grading.fixture is not None
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM traces_trialfixture WHERE trial_id = ANY(%s)"
            " RETURNING task_id, task_version_id, facts, state",
            [graded],
        )
        left = cursor.fetchall()
        peers: set[int] = set()
        if starts:
            _write_fixtures(starts)
            cursor.execute(_PEERS, {"trials": list(starts)})
            peers |= {row[0] for row in cursor.fetchall()}
        if left:
            cursor.execute(_LEFT_BEHIND, [*map(list, zip(*left, strict=True)), graded])
            peers |= {row[0] for row in cursor.fetchall()}
    return peers


# Trials of the groups that some trials were in, which started otherwise than these.
_LEFT_BEHIND = """
SELECT f.trial_id FROM traces_trialfixture f
JOIN unnest(%s::bigint[], %s::bigint[], %s::uuid[], %s::uuid[])
    AS g(task_id, task_version_id, facts, state) USING (task_id, task_version_id, facts)
WHERE f.state <> g.state AND f.trial_id <> ALL(%s)
"""

# Trials beside those given that had one initial state in their group, where the group has two now.
_PEERS = """
SELECT f.trial_id FROM traces_trialfixture f
JOIN (SELECT o.task_id, o.task_version_id, o.facts FROM traces_trialfixture o
      JOIN (SELECT DISTINCT task_id, task_version_id, facts FROM traces_trialfixture
            WHERE trial_id = ANY(%(trials)s)) g USING (task_id, task_version_id, facts)
      GROUP BY 1, 2, 3
      HAVING count(DISTINCT o.state) > 1
         AND count(DISTINCT o.state) FILTER (WHERE o.trial_id <> ALL(%(trials)s)) = 1) g
    USING (task_id, task_version_id, facts)
WHERE f.trial_id <> ALL(%(trials)s)
"""


def _write_fixtures(starts: Mapping[int, Fixture]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, task_id, task_version_id FROM traces_trial WHERE id = ANY(%s)",
            [list(starts)],
        )
        rows = cursor.fetchall()
    copy_rows(
        "traces_trialfixture",
        (
            ("trial_id", "int8"),
            ("task_id", "int8"),
            ("task_version_id", "int8"),
            ("facts", "uuid"),
            ("state", "uuid"),
        ),
        [
            (pk, task, task_version, uuid.UUID(bytes=start.facts), uuid.UUID(bytes=start.state))
            for pk, task, task_version in rows
            for start in [starts[pk]]
        ],
    )


_NOTED = """
SELECT DISTINCT ON (t.id) t.id, v.extra FROM traces_trial t
CROSS JOIN LATERAL (SELECT * FROM reviews_verdict WHERE trial_id = t.id OFFSET 0) v
WHERE t.task_id = %(task)s AND v.contract_id = %(version)s AND v.grader_version_id = %(grader)s
      AND right(v.key, %(length)s) = %(ending)s
ORDER BY t.id, v.evidence_order DESC
"""


def remake_fixtures(system: System, task_pk: int) -> None:
    """Keep anew how all trials of a task started, from what their gradings noted.

    Part of the transaction in which another contract takes effect, or that rebuilds projections.
    """
    (version,) = contracts_in_effect([task_pk]).values() or (None,)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM traces_trialfixture WHERE task_id = %s", [task_pk])
        if version is None:
            return
        cursor.execute(
            _NOTED,
            {
                "task": task_pk,
                "version": version.pk,
                "grader": checks_version(system),
                "length": len(EVIDENCE_KEY),
                "ending": EVIDENCE_KEY,
            },
        )
        noted = {pk: blobs.loads(extra)["evidence"].get("fixture") for pk, extra in cursor}
    _write_fixtures(
        {
            pk: Fixture(bytes.fromhex(start[0]), bytes.fromhex(start[1]))
            for pk, start in noted.items()
            if start is not None
        }
    )


def mixed_fixtures(trial_ids: Iterable[int]) -> set[int]:
    """Those of the trials that are in a group of task version and facts with two initial states."""
    with connection.cursor() as cursor:
        cursor.execute(_MIXED, [list(trial_ids)])
        return {row[0] for row in cursor.fetchall()}


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


def grade_task(system: System, task_pk: int, *, now: datetime) -> GradingReport:
    """Grade all trials of a task under the contract in effect, and keep anew how they started.

    Part of the transaction of a rebuild, under `ingest_locks`.
    """
    versions = contracts_in_effect([task_pk])
    report = GradingReport()
    after = 0
    while ids := _trials_after(task_pk, after):
        after = ids[-1]
        _grade(system, ids, versions, report, now)
    remake_fixtures(system, task_pk)
    return report


def _trials_after(task_pk: int, after: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM traces_trial WHERE task_id = %s AND id > %s ORDER BY id LIMIT %s",
            [task_pk, after, STORED_TOGETHER],
        )
        return [row[0] for row in cursor.fetchall()]
