"""Which criteria people can label, and which trials qualify for a set on one of them."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection

from reviews.core.disposition import Requirement, RequirementSource
from reviews.core.requirements import requirements_of
from reviews.core.sampling import Candidate, Stratum, stratum_of
from traces.models import Split, System, Task
from traces.selectors.contracts import VersionedContract, contracts_in_effect
from traces.selectors.rules import shown_rules_id


@dataclass(frozen=True, slots=True)
class LabelCriterion:
    """A criterion as it stands now, that a calibration set can be about."""

    name: str
    digest: uuid.UUID | None  # None: an imported criterion of tasks without a contract
    rubric_version: str
    question: str
    contract_pks: tuple[int, ...]  # contracts in effect that ask for it
    n_tasks: int  # tasks whose contract asks for it; 0 without one
    is_rubric: bool = False

    @property
    def key(self) -> str:
        """What names it in a form."""
        return f"{self.digest.hex if self.digest else ''}:{self.name}"


@dataclass(frozen=True, slots=True)
class CandidateFilter:
    """Which trials of a system are looked at."""

    system: System
    criterion: LabelCriterion
    release_pk: int | None = None
    family: str = ""
    environment: str = ""  # test or production; "" takes both
    trials: tuple[uuid.UUID, ...] | None = None  # only these


# A criterion that only checks decide is labelled where judges speak on it as well. Formats bring many
# small constraints of their own, which are for code alone.
# Each grader version and criterion is found once along an index, and looked at until it is told:
# work in proportion to these, not to the verdicts.
_TOLD = """
    SELECT true AS yes
    FROM (SELECT trial_id, by_id, contract_id, criterion_class FROM reviews_verdict
          WHERE grader_version_id = p.version AND criterion_id = p.criterion OFFSET 0) v
    JOIN traces_trial t ON t.id = v.trial_id
    JOIN traces_task k ON k.id = t.task_id
    WHERE k.split <> 'tuning' AND {condition} LIMIT 1
"""
_NAMES = """
WITH RECURSIVE pairs AS (
    SELECT gv.id AS version, g.kind,
           (SELECT v.criterion_id FROM reviews_verdict v WHERE v.grader_version_id = gv.id
            ORDER BY v.criterion_id LIMIT 1) AS criterion
    FROM reviews_graderversion gv JOIN reviews_grader g ON g.id = gv.grader_id
    WHERE g.system_id = %(system)s
    UNION ALL
    SELECT p.version, p.kind,
           (SELECT v.criterion_id FROM reviews_verdict v
            WHERE v.grader_version_id = p.version AND v.criterion_id > p.criterion
            ORDER BY v.criterion_id LIMIT 1)
    FROM pairs p WHERE p.criterion IS NOT NULL
)
SELECT c.name, bool_or(j.yes IS NOT NULL), bool_or(i.yes IS NOT NULL)
FROM pairs p
JOIN reviews_criterion c ON c.id = p.criterion
LEFT JOIN LATERAL ({judged}) j ON p.kind = 'model'
LEFT JOIN LATERAL ({plain}) i ON EXISTS (
    SELECT FROM traces_task k
    WHERE k.system_id = %(system)s AND k.contract_id IS NULL AND k.split <> 'tuning')
GROUP BY c.name
HAVING bool_or(j.yes IS NOT NULL) OR bool_or(i.yes IS NOT NULL)
""".format(  # noqa: S608 - own conditions
    judged=_TOLD.format(condition="true"),
    plain=_TOLD.format(
        condition="v.by_id IS NULL AND v.contract_id IS NULL AND k.contract_id IS NULL"
        " AND (p.kind <> 'code' OR v.criterion_class IN ('outcome', 'semantic'))"
    ),
)


def criteria_to_label(system_pk: int) -> tuple[LabelCriterion, ...]:
    """The criteria of a system that a set can be about, rubrics first, by name. Four queries.

    Rubrics and external criteria of contracts in effect, checks of these on which a judge has given a
    verdict, and the imported criteria of tasks without a contract, but constraints that only code
    decides. Tasks of split tuning are left out: their labels never count.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NAMES, {"system": system_pk})
        rows = cursor.fetchall()
    judged = frozenset(name for name, is_judged, _ in rows if is_judged)
    tasks = (
        Task.objects.filter(system=system_pk, contract__isnull=False)
        .exclude(split=Split.TUNING.value)
        .order_by("sort_key", "pk")
        .values_list("pk", flat=True)
    )
    asked = _asked(contracts_in_effect(tasks).values(), judged)
    imported = [LabelCriterion(name, None, "", "", (), 0) for name, _, plain in rows if plain]
    return tuple(
        sorted(
            [*asked, *imported],
            key=lambda each: (not each.is_rubric, each.name, each.rubric_version, each.key),
        )
    )


def _asked(
    versions: Iterable[VersionedContract], judged: frozenset[str]
) -> tuple[LabelCriterion, ...]:
    found: dict[tuple[str, uuid.UUID], list[int]] = {}
    said: dict[tuple[str, uuid.UUID], tuple[str, str, bool]] = {}
    for version in versions:
        questions = {rubric.id: rubric.question for rubric in version.contract.semantic}
        for each in requirements_of(version.contract, contract_key=""):
            if not _is_for_people(each, judged) or each.criterion_digest is None:
                continue
            key = (each.criterion, uuid.UUID(bytes=each.criterion_digest))
            found.setdefault(key, []).append(version.pk)
            is_rubric = each.source is RequirementSource.RUBRIC
            said[key] = (
                each.rubric_version or "",
                questions.get(each.criterion, "") if is_rubric else "",
                is_rubric,
            )
    return tuple(
        LabelCriterion(name, digest, version, question, tuple(contracts), len(contracts), is_rubric)
        for (name, digest), contracts in found.items()
        for version, question, is_rubric in [said[name, digest]]
    )


def _is_for_people(requirement: Requirement, judged: frozenset[str]) -> bool:
    return requirement.source is not RequirementSource.CHECK or requirement.criterion in judged


# `own`: code or a person speaks on the criterion itself; else its standing may be a judge's word,
# and the trial is told by its other criteria alone.
_CANDIDATES = """
WITH looked_at AS MATERIALIZED (
    SELECT t.id, t.uuid, t.task_id, t.release_id, t.environment, k.family, d.value, p.sequence,
           array_remove(d.passed, %(name)s::varchar) AS passed, array_remove(d.open, %(name)s::varchar) AS open,
           array_remove(d.failed, %(name)s::varchar) AS failed,
           %(name)s::varchar = ANY(d.passed) AS own_passed, %(name)s::varchar = ANY(d.failed) AS own_failed,
           EXISTS (SELECT FROM reviews_verdict v
                   JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
                   JOIN reviews_grader g ON g.id = gv.grader_id
                   WHERE v.trial_id = t.id AND v.criterion_id = %(criterion)s::int
                     AND g.kind <> 'model') AS own
    FROM traces_trial t
    JOIN traces_task k ON k.id = t.task_id
    JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    LEFT JOIN traces_trajectorypaths p
        ON p.trajectory_id = t.trajectory_id AND p.rules_id = %(rules)s
    WHERE t.system_id = %(system)s AND t.status = 'completed' AND k.split <> 'tuning'
      AND (k.contract_id = ANY(%(contracts)s)
           OR %(digest)s::uuid IS NULL AND k.contract_id IS NULL AND EXISTS (
               SELECT FROM reviews_verdict v
               WHERE v.trial_id = t.id AND v.criterion_id = %(criterion)s::int AND v.by_id IS NULL
                 AND v.contract_id IS NULL))
), told AS (
    SELECT l.*, CASE
        WHEN value = 'fail' AND (failed <> '{}' OR own AND own_failed) THEN false
        WHEN open = '{}' AND (passed <> '{}' OR own AND own_passed) THEN true END AS passes
    FROM looked_at l
), usual AS (
    SELECT DISTINCT ON (task_id) task_id, sequence
    FROM (SELECT task_id, sequence, count(*) AS n FROM told
          WHERE passes AND sequence IS NOT NULL GROUP BY task_id, sequence) c
    ORDER BY task_id, n DESC, sequence
)
SELECT w.id, w.uuid, w.family, w.passes, coalesce(w.sequence = u.sequence, true)
FROM told w LEFT JOIN usual u ON u.task_id = w.task_id
WHERE (%(release)s::bigint IS NULL OR w.release_id = %(release)s)
  AND (%(family)s = '' OR w.family = %(family)s)
  AND (%(environment)s = '' OR w.environment = %(environment)s)
  AND (%(trials)s::uuid[] IS NULL OR w.uuid = ANY(%(trials)s))
  AND NOT EXISTS (
      SELECT FROM reviews_calibrationitem i JOIN reviews_calibrationset s ON s.id = i.set_id
      WHERE i.trial_id = w.id AND i.withdrawn_at IS NULL AND NOT s.is_imported
        AND s.criterion_id = %(criterion)s::int
        AND s.criterion_digest IS NOT DISTINCT FROM %(digest)s::uuid
        AND (i.settled_at IS NOT NULL OR s.closed_at IS NULL))
ORDER BY w.id
"""


@dataclass(frozen=True, slots=True)
class Qualifying:
    """The trials that qualify for a set."""

    candidates: tuple[Candidate, ...]
    identities: frozenset[uuid.UUID]

    @property
    def n_by_stratum(self) -> Mapping[Stratum, int]:
        """How many there are of each stratum."""
        return Counter(each.stratum for each in self.candidates)

    @property
    def n_by_family(self) -> Mapping[str, int]:
        """How many there are of each family; "" for tasks without one."""
        return Counter(each.family for each in self.candidates)


def qualifying_trials(chosen: CandidateFilter) -> Qualifying:
    """The trials that may go into a new set on a criterion. Three queries.

    Completed ones that stand for their slot, of tasks that are asked for the criterion now and are
    not of split tuning, and that stand in no other blind set on it.
    """
    criterion = chosen.criterion
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM reviews_criterion WHERE system_id = %s AND name = %s",
            [chosen.system.pk, criterion.name],
        )
        found = cursor.fetchone()
        values = {
            "system": chosen.system.pk,
            "name": criterion.name,
            "criterion": found[0] if found else None,
            "digest": criterion.digest,
            "contracts": list(criterion.contract_pks),
            "rules": shown_rules_id(chosen.system),
            "release": chosen.release_pk,
            "family": chosen.family,
            "environment": chosen.environment,
            "trials": None if chosen.trials is None else list(chosen.trials),
        }
        cursor.execute(_CANDIDATES, values)
        rows = cursor.fetchall()
    return Qualifying(
        tuple(
            Candidate(pk, family, stratum_of(passes=passes, is_usual_path=is_usual))
            for pk, _, family, passes, is_usual in rows
        ),
        frozenset(row[1] for row in rows),
    )
