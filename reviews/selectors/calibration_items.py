"""Trials that people labelled or adjudicated, and what judge versions say of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db import connection

from reviews.core.calibration import GivenLabel, JudgeWord, LabelledItem, word_of
from reviews.core.consensus import Consensus
from reviews.core.disposition import (
    AdjudicationRuling,
    GivenVerdict,
    Requirement,
    RequirementSource,
    votes_on,
)
from reviews.core.requirements import requirements_of
from reviews.models import Calibration, Criterion
from reviews.selectors.votes import GIVEN_COLUMNS, given_of
from traces.core.records import CriterionClass, GraderKind, VerdictValue
from traces.models import Task
from traces.selectors.contracts import contracts_in_effect


@dataclass(frozen=True, slots=True)
class CriterionKey:
    """A criterion as it stood when people labelled it."""

    criterion: Criterion
    digest: uuid.UUID | None  # None: an imported criterion, no contract

    def requirement(self, rubric_version: str = "") -> Requirement:
        """The requirement that verdicts on it are verdicts on."""
        if self.digest is None:
            source = RequirementSource.IMPORTED
            return Requirement(self.criterion.name, CriterionClass.SEMANTIC, source)
        return Requirement(
            self.criterion.name,
            CriterionClass.SEMANTIC,
            RequirementSource.RUBRIC,
            contract="",  # of no version: verdicts given under any apply by the digest
            criterion_digest=self.digest.bytes,
            rubric_version=rubric_version or None,
        )


@dataclass(frozen=True, slots=True)
class Labelled:
    """Items with what people say of them; each trial stands once, as it was labelled last."""

    items: tuple[LabelledItem, ...] = ()
    trials: Mapping[str, int] = field(default_factory=dict)  # of each item by its key
    rubric_version: str = ""
    labelled_at: datetime | None = (
        None  # when the newest of their sets was complete, or vouched for
    )


@dataclass(frozen=True, slots=True)
class JudgeVersion:
    """One version of a judge."""

    pk: int
    judge: str
    version: str
    judge_pk: int


_ITEMS = """
SELECT DISTINCT ON (i.trial_id) i.id, i.uuid::text, i.trial_id, i.consensus, s.sampling,
       k.family, s.rubric_version, greatest(s.completed_at, w.vouched_at)
FROM reviews_calibrationset s
JOIN reviews_calibrationitem i ON i.set_id = s.id AND i.withdrawn_at IS NULL
JOIN traces_trial t ON t.id = i.trial_id
JOIN traces_task k ON k.id = t.task_id AND k.split <> 'tuning'
LEFT JOIN reviews_setvouch w ON w.set_id = s.id
WHERE s.criterion_id = %s AND s.criterion_digest IS NOT DISTINCT FROM %s
  AND s.completed_at IS NOT NULL AND (NOT s.is_imported OR w.set_id IS NOT NULL) = %s
ORDER BY i.trial_id, s.completed_at DESC, i.id DESC
"""


def labelled_items(key: CriterionKey) -> Labelled:
    """The items that count for calibrations: of complete sets, imported ones vouched for.

    Tasks of split tuning are left out. In two queries.
    """
    return _labelled(key, is_counting=True)


def exploratory_items(key: CriterionKey) -> Labelled:
    """The items of imported sets that nobody vouched for: to be read apart. In two queries."""
    return _labelled(key, is_counting=False)


def _labelled(key: CriterionKey, *, is_counting: bool) -> Labelled:
    with connection.cursor() as cursor:
        cursor.execute(_ITEMS, [key.criterion.pk, key.digest, is_counting])
        rows = cursor.fetchall()
    if not rows:
        return Labelled()
    labels = _labels([row[0] for row in rows])
    items = tuple(
        LabelledItem(
            key=identity,
            # Imported labels that differ may lack a third one: they come to nothing.
            consensus=Consensus(consensus) if consensus else Consensus.SPLIT,
            labels=tuple(labels.get(pk, ())),
            is_random=sampling == "random",
            family=family,
        )
        for pk, identity, _, consensus, sampling, family, _, _ in rows
    )
    newest = max(rows, key=lambda row: (row[7], row[0]))
    return Labelled(items, {row[1]: row[2] for row in rows}, newest[6], newest[7])


def _labels(item_pks: Sequence[int]) -> dict[int, list[GivenLabel]]:
    found: dict[int, list[GivenLabel]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT item_id, by_id, labeller, round, value, given_at FROM reviews_label"
            " WHERE item_id = ANY(%s) ORDER BY item_id, round",
            [list(item_pks)],
        )
        for item, by, labeller, number, value, given_at in cursor.fetchall():
            who = f"person {by}" if by else f"name {labeller}"
            label = GivenLabel(who, number, VerdictValue(value), given_at)
            found.setdefault(item, []).append(label)
    return found


_ADJUDICATED = """
SELECT a.uuid::text, a.trial_id, a.ruling, k.family, a.rubric_version
FROM reviews_adjudication a
JOIN traces_trial t ON t.id = a.trial_id
JOIN traces_task k ON k.id = t.task_id AND k.split <> 'tuning'
WHERE a.system_id = %s AND a.criterion_id = %s AND a.criterion_digest IS NOT DISTINCT FROM %s
  AND a.ruling = ANY(%s)
  AND NOT EXISTS (SELECT FROM reviews_adjudication later WHERE later.replaces_id = a.id)
  AND NOT EXISTS (SELECT FROM reviews_label l WHERE l.adjudication_id = a.id)
ORDER BY a.trial_id, a.id
"""
_RULED = {
    AdjudicationRuling.PASS.value: Consensus.PASS,
    AdjudicationRuling.FAIL.value: Consensus.FAIL,
}


def adjudicated_items(key: CriterionKey) -> Labelled:
    """The trials that reviewers adjudicated to pass or fail, blind labels left aside. One query.

    They are a selection, no sample: figures over them are read apart and decide nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _ADJUDICATED, [key.criterion.system_id, key.criterion.pk, key.digest, list(_RULED)]
        )
        rows = cursor.fetchall()
    items = tuple(
        LabelledItem(identity, _RULED[ruling], (), is_random=False, family=family)
        for identity, _, ruling, family, _ in rows
    )
    version = rows[-1][4] if rows else ""
    return Labelled(items, {row[0]: row[1] for row in rows}, version)


# LATERAL with OFFSET: an index look-up a trial, never a scan of the whole table.
_WORDS = f"""
SELECT v.trial_id, gv.id, g.id, {GIVEN_COLUMNS}
FROM unnest(%s::bigint[]) AS w(id)
CROSS JOIN LATERAL (
    SELECT * FROM reviews_verdict WHERE trial_id = w.id AND criterion_id = %s OFFSET 0
) v
JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id AND g.kind = 'model'
JOIN reviews_criterion c ON c.id = v.criterion_id
ORDER BY gv.id, v.trial_id, v.id
"""  # noqa: S608


def judge_words(
    key: CriterionKey, labelled: Labelled
) -> dict[JudgeVersion, tuple[LabelledItem, ...]]:
    """The items with the word of each judge version that says anything of them. One query.

    Versions stand in the order in which they were first seen. A verdict speaks here as it would
    vote if the judge were calibrated.
    """
    if not labelled.items:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_WORDS, [sorted(set(labelled.trials.values())), key.criterion.pk])
        rows = cursor.fetchall()
    requirement = key.requirement(labelled.rubric_version)
    said = _said(rows)
    return {
        judge: tuple(_with_word(item, labelled, by_trial, requirement) for item in labelled.items)
        for judge, by_trial in said.items()
        if any(votes_on(requirement, verdicts) for verdicts in by_trial.values())
    }


def _said(rows: Sequence[Sequence[Any]]) -> dict[JudgeVersion, dict[int, list[GivenVerdict]]]:
    found: dict[JudgeVersion, dict[int, list[GivenVerdict]]] = {}
    for trial, version_pk, judge_pk, *columns in rows:
        given = replace(given_of(*columns), is_calibrated=True)
        judge = JudgeVersion(version_pk, given.grader, given.grader_version, judge_pk)
        found.setdefault(judge, {}).setdefault(trial, []).append(given)
    return found


def _with_word(
    item: LabelledItem,
    labelled: Labelled,
    by_trial: Mapping[int, Sequence[GivenVerdict]],
    requirement: Requirement,
) -> LabelledItem:
    votes = votes_on(requirement, by_trial.get(labelled.trials[item.key], ()))
    return replace(item, word=word_of(votes[0].values) if votes else JudgeWord.NONE)


_NEWEST = """
SELECT gv.id, g.name, gv.version, g.id, v.is_plain, v.criterion_digest, v.named
FROM (
    SELECT DISTINCT v.grader_version_id, v.criterion_digest,
           v.by_id IS NULL AND v.contract_id IS NULL AS is_plain,
           substring(v.extra FROM '"rubric_version": ?("[^"]*"|[0-9.]+)') AS named
    FROM reviews_verdict v
    WHERE v.criterion_id = %s AND v.grader_version_id IN (
        SELECT later.id FROM reviews_graderversion one
        JOIN reviews_graderversion later ON later.grader_id = one.grader_id AND later.id > one.id
        WHERE one.id = ANY(%s))
) v
JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id AND g.kind = 'model'
"""


def newest_versions(
    key: CriterionKey, rubric_version: str, version_pks: Sequence[int]
) -> dict[int, int]:
    """The newest version by judge that gave a verdict on the criterion, of those after the given.

    Both are row ids. One query; where no later version exists it reads no verdict.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [key.criterion.pk, list(version_pks)])
        rows = cursor.fetchall()
    requirement = key.requirement(rubric_version)
    found: dict[int, int] = {}
    for version_pk, judge, version, judge_pk, is_plain, digest, named in rows:
        given = GivenVerdict(
            id="",
            grader=judge,
            grader_version=version,
            kind=GraderKind.MODEL,
            criterion=key.criterion.name,
            value=VerdictValue.UNKNOWN,
            is_imported=is_plain,
            is_calibrated=True,
            contract=None if is_plain else "another",
            criterion_digest=digest.bytes if digest else None,
            rubric_version=(named or "").strip('"') or None,
        )
        if votes_on(requirement, [given]):
            found[judge_pk] = max(found.get(judge_pk, 0), version_pk)
    return found


def is_asked(key: CriterionKey) -> bool:
    """Whether tasks are decided by the criterion as it stood: in at most two queries."""
    tasks = Task.objects.filter(system=key.criterion.system_id)
    if key.digest is None:
        return tasks.filter(contract=None).exists()
    versions = contracts_in_effect(
        tasks.filter(contract__isnull=False).values_list("pk", flat=True)
    )
    wanted = (key.criterion.name, key.digest.bytes)
    return any(
        (each.criterion, each.criterion_digest) == wanted
        for version in {version.pk: version for version in versions.values()}.values()
        for each in requirements_of(version.contract, contract_key="")
    )


def has_calibrations(system_pk: int) -> bool:
    """Whether labels or calibrations of the system can say anything of a judge. One query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM reviews_calibrationset"
            " WHERE system_id = %(system)s AND completed_at IS NOT NULL)"
            " OR EXISTS (SELECT FROM reviews_calibration WHERE system_id = %(system)s)",
            {"system": system_pk},
        )
        return bool(cursor.fetchone()[0])


# Where a judge speaks on a labelled trial, where a later version of a judge speaks whose earlier
# version is not stale yet, and where a judge speaks on a trial after it was tried with copies of it.
_TOUCHED = """
WITH said AS MATERIALIZED (
    SELECT DISTINCT v.trial_id, v.criterion_id, gv.id AS version, gv.grader_id
    FROM unnest(%(trials)s::bigint[]) AS w(id)
    CROSS JOIN LATERAL (SELECT * FROM reviews_verdict WHERE trial_id = w.id OFFSET 0) v
    JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
    JOIN reviews_grader g ON g.id = gv.grader_id AND g.kind = 'model'
), newest AS (
    SELECT DISTINCT ON (b.grader_version_id, b.criterion_id, b.criterion_digest)
        b.criterion_id, b.criterion_digest, b.status, gv.id AS version, gv.grader_id
    FROM reviews_calibration b JOIN reviews_graderversion gv ON gv.id = b.grader_version_id
    WHERE b.system_id = %(system)s
    ORDER BY b.grader_version_id, b.criterion_id, b.criterion_digest, b.id DESC
)
SELECT s.criterion_id, s.criterion_digest
FROM reviews_calibrationset s
JOIN reviews_calibrationitem i ON i.set_id = s.id AND i.withdrawn_at IS NULL
JOIN said ON said.trial_id = i.trial_id AND said.criterion_id = s.criterion_id
WHERE s.system_id = %(system)s AND s.completed_at IS NOT NULL
UNION
SELECT n.criterion_id, n.criterion_digest
FROM newest n
JOIN said ON said.grader_id = n.grader_id AND said.version > n.version
    AND said.criterion_id = n.criterion_id
WHERE n.status IN ('calibrated', 'exploratory')
UNION
SELECT b.criterion_id, b.criterion_digest
FROM said
JOIN reviews_probe p ON p.trial_id = said.trial_id
JOIN reviews_probebatch b ON b.id = p.batch_id AND b.criterion_id = said.criterion_id
JOIN reviews_probeverdict w ON w.probe_id = p.id AND w.grader_version_id = said.version
ORDER BY 1, 2
"""


def keys_touched(system_pk: int, trial_ids: Iterable[int]) -> list[CriterionKey]:
    """The criteria whose calibrations judges' verdicts on these trials may change. Two queries."""
    with connection.cursor() as cursor:
        cursor.execute(_TOUCHED, {"system": system_pk, "trials": sorted(set(trial_ids))})
        rows = cursor.fetchall()
    return _keys(rows)


def keys_known(system_pk: int) -> list[CriterionKey]:
    """The criteria on which a judge of the system has a calibration. Two queries."""
    rows = (
        Calibration.objects.filter(system=system_pk)
        .order_by("criterion", "criterion_digest")
        .values_list("criterion", "criterion_digest")
        .distinct()
    )
    return _keys(list(rows))


def _keys(rows: Sequence[tuple[int, uuid.UUID | None]]) -> list[CriterionKey]:
    criteria = Criterion.objects.in_bulk({criterion for criterion, _ in rows})
    return [CriterionKey(criteria[criterion], digest) for criterion, digest in rows]
