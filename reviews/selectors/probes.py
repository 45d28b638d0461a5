"""Probes: the batches that were made, what judges said of them, and the trials to make more of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from evalsite.common import blobs
from reviews.core.disposition import GivenVerdict, Requirement, applies_to, kept_values
from reviews.core.probes import (
    Change,
    ProbeKind,
    ProbeResult,
    Said,
    change_of,
    worst_result,
)
from reviews.models import Criterion, Probe, ProbeBatch
from reviews.selectors.calibration_candidates import LabelCriterion
from reviews.selectors.calibration_items import CriterionKey
from reviews.selectors.votes import GIVEN_COLUMNS, given_of
from traces.core.records import VerdictValue
from traces.core.values import JsonObject
from traces.models import System

PAGE = 50
BATCH_PROBES = 20
"""Records that a bundle reads together."""


# --- what judges said


@dataclass(frozen=True, slots=True)
class TriedProbe:
    """A probe and what a judge's verdicts on it tell."""

    pk: int
    uuid: UUID
    batch_number: int
    position: int
    kind: ProbeKind
    trial_pk: int
    said: tuple[Said, ...]  # of the judge version, in the order they came; () when it said nothing
    result: ProbeResult | None  # None: no verdict yet


@dataclass(frozen=True, slots=True)
class ProbeSummary:
    """What the probes of a criterion tell of one judge version."""

    probes: tuple[TriedProbe, ...] = ()  # of every batch that the judge began

    @property
    def n_tried(self) -> int:
        """Probes with a verdict."""
        return sum(1 for each in self.probes if each.result)

    @property
    def n_missing(self) -> int:
        """Probes of the same batches without a verdict."""
        return len(self.probes) - self.n_tried

    @property
    def wrong(self) -> tuple[TriedProbe, ...]:
        """The probes that came out as they must not."""
        return tuple(p for p in self.probes if p.result and p.result.is_right is False)

    @property
    def n_right(self) -> int:
        """Probes that came out as they must."""
        return sum(1 for each in self.probes if each.result and each.result.is_right)

    @property
    def n_wrong(self) -> int:
        """Probes that came out as they must not."""
        return len(self.wrong)

    @property
    def n_open(self) -> int:
        """Changed copies with a verdict that tells nothing, or nothing yet."""
        return sum(
            1
            for each in self.probes
            if each.result and each.result.is_right is None and each.kind is not ProbeKind.CONTROL
        )

    @property
    def has_failed(self) -> bool:
        """Whether any probe came out as it must not: such a judge's verdicts do not count."""
        return bool(self.wrong)


@dataclass(frozen=True, slots=True)
class TriedJudge:
    """A judge version that said something of a batch."""

    version_pk: int
    judge: str
    version: str
    summary: ProbeSummary


_COLUMNS = """
p.id, p.uuid, b.number, b.may_fall, p.position, p.kind, p.trial_id,
coalesce((p.change->>'evidence_order')::int, 0)
"""
_TRIED = f"""
SELECT {_COLUMNS}
FROM reviews_probe p JOIN reviews_probebatch b ON b.id = p.batch_id
WHERE b.id = ANY(%s) ORDER BY b.number, p.position
"""  # noqa: S608 - columns from here
_SAID = """
SELECT v.probe_id, v.grader_version_id, v.value, v.score
FROM reviews_probeverdict v JOIN reviews_probe p ON p.id = v.probe_id
WHERE p.batch_id = ANY(%s) AND (%s::bigint IS NULL OR v.grader_version_id = %s)
ORDER BY v.id
"""
_BATCHES = """
SELECT DISTINCT b.id, b.rubric_version FROM reviews_probeverdict v
JOIN reviews_probe p ON p.id = v.probe_id
JOIN reviews_probebatch b ON b.id = p.batch_id
WHERE v.grader_version_id = %s AND b.criterion_id = %s
  AND b.criterion_digest IS NOT DISTINCT FROM %s
ORDER BY b.id
"""
# LATERAL with OFFSET: an index look-up a trial, never a scan of the whole table.
_ORIGINALS = f"""
SELECT v.trial_id, gv.id, {GIVEN_COLUMNS}
FROM unnest(%s::bigint[]) AS w(id)
CROSS JOIN LATERAL (
    SELECT * FROM reviews_verdict WHERE trial_id = w.id AND criterion_id = %s OFFSET 0
) v
JOIN reviews_graderversion gv ON gv.id = v.grader_version_id AND gv.id = ANY(%s)
JOIN reviews_grader g ON g.id = gv.grader_id
JOIN reviews_criterion c ON c.id = v.criterion_id
ORDER BY v.id
"""  # noqa: S608 - columns from here
_VERSIONS = """
SELECT gv.id, g.name, gv.version FROM reviews_graderversion gv
JOIN reviews_grader g ON g.id = gv.grader_id WHERE gv.id = ANY(%s) ORDER BY g.name, gv.id
"""


def probe_results(grader_version_pk: int, criterion_pk: int, digest: UUID | None) -> ProbeSummary:
    """What probes of a criterion of one digest tell of a judge version. At most five queries.

    Every verdict counts and a wrong one decides. Each is held against what the same version says
    of the unchanged trial, or else of its unchanged copy in the batch.
    """
    with connection.cursor() as cursor:
        cursor.execute(_BATCHES, [grader_version_pk, criterion_pk, digest])
        batches = dict(cursor.fetchall())
    if not batches:
        return ProbeSummary()
    key = CriterionKey(Criterion.objects.get(pk=criterion_pk), digest)
    rubric_version = next(iter(batches.values()))  # the digest covers it: all name the same
    found = _summaries(list(batches), key, rubric_version, version_pk=grader_version_pk)
    return found[grader_version_pk]


def judges_tried(batch: ProbeBatch) -> tuple[TriedJudge, ...]:
    """The judge versions that said something of a batch, by name. Four queries at most."""
    key = CriterionKey(batch.criterion, batch.criterion_digest)
    found = _summaries([batch.pk], key, batch.rubric_version)
    if not found:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_VERSIONS, [list(found)])
        return tuple(
            TriedJudge(pk, judge, version, found[pk]) for pk, judge, version in cursor.fetchall()
        )


@dataclass(frozen=True, slots=True)
class _Made:
    """A probe as the results need it."""

    pk: int
    uuid: UUID
    batch_number: int
    may_fall: bool
    position: int
    kind: ProbeKind
    trial_pk: int
    evidence_order: int


_Copies = dict[int, list[Said]]
_Originals = dict[tuple[int, int], list[GivenVerdict]]


def _summaries(
    batch_pks: Sequence[int],
    key: CriterionKey,
    rubric_version: str,
    *,
    version_pk: int | None = None,
) -> dict[int, ProbeSummary]:
    """What batches tell, by judge version."""
    with connection.cursor() as cursor:
        cursor.execute(_SAID, [list(batch_pks), version_pk, version_pk])
        said: dict[int, _Copies] = {}
        for probe, version, value, score in cursor.fetchall():
            copies = said.setdefault(version, {})
            copies.setdefault(probe, []).append(Said(VerdictValue(value), score))
        if not said:
            return {}
        cursor.execute(_TRIED, [list(batch_pks)])
        made = [_made(*row) for row in cursor.fetchall()]
    requirement = key.requirement(rubric_version)
    originals = _originals(key, requirement, {each.trial_pk for each in made}, set(said))
    return {
        version: ProbeSummary(tuple(_tried(made, copies, originals, version)))
        for version, copies in said.items()
    }


def _made(
    pk: int,
    identity: UUID,
    number: int,
    may_fall: bool,  # noqa: FBT001 - a column
    position: int,
    kind: str,
    trial: int,
    order: int,
) -> _Made:
    return _Made(pk, identity, number, may_fall, position, ProbeKind(kind), trial, order)


def _originals(
    key: CriterionKey, requirement: Requirement, trials: Iterable[int], versions: Iterable[int]
) -> _Originals:
    """What judge versions say of the unchanged trials on the criterion as it is."""
    found: _Originals = {}
    with connection.cursor() as cursor:
        cursor.execute(_ORIGINALS, [sorted(trials), key.criterion.pk, sorted(versions)])
        for trial, version, *columns in cursor.fetchall():
            given = given_of(*columns)
            if applies_to(given, requirement):
                found.setdefault((version, trial), []).append(given)
    return found


def _tried(
    made: Sequence[_Made], copies: _Copies, originals: _Originals, version: int
) -> Iterator[TriedProbe]:
    controls: dict[tuple[int, int], list[Said]] = {}
    for each in made:
        if each.kind is ProbeKind.CONTROL:
            controls.setdefault((each.batch_number, each.trial_pk), []).extend(
                copies.get(each.pk, ())
            )
    for each in made:
        said = copies.get(each.pk, [])
        before = _kept(originals.get((version, each.trial_pk), ()), each.evidence_order)
        if not before and each.kind is not ProbeKind.CONTROL:
            before = controls.get((each.batch_number, each.trial_pk), [])
        yield TriedProbe(
            pk=each.pk,
            uuid=each.uuid,
            batch_number=each.batch_number,
            position=each.position,
            kind=each.kind,
            trial_pk=each.trial_pk,
            said=tuple(said),
            result=worst_result(each.kind, before, said, may_fall=each.may_fall) if said else None,
        )


def _kept(given: Sequence[GivenVerdict], evidence_order: int) -> list[Said]:
    """The verdicts that speak, of those given on no more evidence than was copied."""
    cast = [verdict for verdict in given if verdict.evidence_order <= evidence_order]
    values = kept_values(cast) if cast else set()
    said = dict.fromkeys(Said(v.value, v.score) for v in cast if v.value in values)
    return [each for each in said if each.value is not VerdictValue.ERROR]


# --- batches


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch in the list."""

    pk: int
    number: int
    criterion: str
    rubric_version: str
    n_trials: int
    n_probes: int
    n_judges: int  # versions with a verdict on any of them
    may_fall: bool
    reason: str
    by_name: str
    made_at: datetime


_LIST = """
SELECT b.id, b.number, c.name, b.rubric_version,
       (SELECT count(DISTINCT p.trial_id) FROM reviews_probe p WHERE p.batch_id = b.id),
       (SELECT count(*) FROM reviews_probe p WHERE p.batch_id = b.id),
       (SELECT count(DISTINCT v.grader_version_id) FROM reviews_probeverdict v
        JOIN reviews_probe p ON p.id = v.probe_id WHERE p.batch_id = b.id),
       b.may_fall, b.reason,
       coalesce(nullif(trim(u.first_name || ' ' || u.last_name), ''), u.username), b.made_at
FROM reviews_probebatch b
JOIN reviews_criterion c ON c.id = b.criterion_id
JOIN traces_user u ON u.id = b.by_id
WHERE b.system_id = %s AND (%s::int IS NULL OR b.number < %s)
ORDER BY b.number DESC LIMIT %s
"""


def batch_rows(system_pk: int, *, before: int | None = None, n: int = PAGE) -> list[BatchRow]:
    """The batches of a system, newest first, one more than asked where there are more. One query."""
    before = None if before is None else min(before, 2**31 - 1)
    with connection.cursor() as cursor:
        cursor.execute(_LIST, [system_pk, before, before, n + 1])
        return [BatchRow(*row) for row in cursor.fetchall()]


def batch_numbered(system_pk: int, number: int) -> ProbeBatch | None:
    """The batch of that number, with its criterion and who made it. One query."""
    if number >= 2**31:
        return None
    return (
        ProbeBatch.objects.select_related("system", "criterion", "by")
        .filter(system=system_pk, number=number)
        .first()
    )


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """A probe of a batch, with the trial that it is a copy of."""

    pk: int
    uuid: UUID
    position: int
    kind: ProbeKind
    trial_pk: int
    trial_uuid: UUID
    task_id: str
    label: str
    attempt: int
    release_name: str
    change: Change
    not_made: tuple[tuple[ProbeKind, str], ...]  # of an unchanged copy: what could not be made, why


_PROBES = """
SELECT p.id, p.uuid, p.position, p.kind, t.id, t.uuid, k.task_id, t.label, t.attempt, r.name,
       p.change::text
FROM reviews_probe p
JOIN traces_trial t ON t.id = p.trial_id
JOIN traces_task k ON k.id = t.task_id
JOIN traces_release r ON r.id = t.release_id
WHERE p.batch_id = %s ORDER BY k.sort_key, t.id, p.id
"""


def probes_of(batch: ProbeBatch) -> list[ProbeRow]:
    """The probes of a batch by trial, without their records. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_PROBES, [batch.pk])
        return [_probe_row(*row) for row in cursor.fetchall()]


def _probe_row(
    pk: int,
    identity: UUID,
    position: int,
    kind: str,
    trial_pk: int,
    trial_uuid: UUID,
    task_id: str,
    label: str,
    attempt: int,
    release: str,
    change: str,
) -> ProbeRow:
    document = blobs.loads(change)
    return ProbeRow(
        pk=pk,
        uuid=identity,
        position=position,
        kind=ProbeKind(kind),
        trial_pk=trial_pk,
        trial_uuid=trial_uuid,
        task_id=task_id,
        label=label,
        attempt=attempt,
        release_name=release,
        change=change_of(document)[0],
        not_made=tuple(
            (ProbeKind(one["kind"]), one["sentence"]) for one in document.get("not_made", ())
        ),
    )


def bundle_lines(batch: ProbeBatch) -> Iterator[str]:
    """The blind bundle: a native record a line, in the drawn order. Nothing tells kinds apart."""
    first = 0
    while records := list(
        Probe.objects.filter(batch=batch, position__gt=first, position__lte=first + BATCH_PROBES)
        .order_by("position")
        .values_list("record", flat=True)
    ):
        for record in records:
            yield blobs.dumps(blobs.unpack(record)) + "\n"
        first += BATCH_PROBES


def probe_record(probe: Probe) -> JsonObject:
    """The native record of a probe, as a judge may see it."""
    record: JsonObject = blobs.unpack(probe.record)
    return record


# --- trials to make probes of


@dataclass(frozen=True, slots=True)
class PassingTrial:
    """A trial that passes on a criterion, as far as it is decided."""

    pk: int
    uuid: UUID
    n_messages: int


# A trial that waits for nothing but a word that counts on this criterion passes as well, where all
# that was said of it is pass: without it no judge could be tried before it is calibrated.
_PASSING = """
SELECT t.id, t.uuid, t.n_messages
FROM traces_trial t
JOIN traces_task k ON k.id = t.task_id
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
WHERE t.system_id = %(system)s AND t.status = 'completed' AND k.split <> 'tuning'
  AND (%(trials)s::uuid[] IS NULL OR t.uuid = ANY(%(trials)s))
  AND (k.contract_id = ANY(%(contracts)s)
       OR %(digest)s::uuid IS NULL AND k.contract_id IS NULL AND EXISTS (
           SELECT FROM reviews_verdict v
           WHERE v.trial_id = t.id AND v.criterion_id = %(criterion)s::int
             AND v.by_id IS NULL AND v.contract_id IS NULL))
  AND NOT %(name)s::varchar = ANY(d.failed)
  AND (d.value = 'pass'
       OR d.value = 'unresolved' AND d.failed = '{}'
          AND array_remove(d.open, %(name)s::varchar) = '{}'
          AND EXISTS (SELECT FROM reviews_verdict v WHERE v.trial_id = t.id
                      AND v.criterion_id = %(criterion)s::int AND v.value = 'pass')
          AND NOT EXISTS (SELECT FROM reviews_verdict v WHERE v.trial_id = t.id
                          AND v.criterion_id = %(criterion)s::int
                          AND v.value IN ('fail', 'unknown')))
ORDER BY t.id
"""


def passing_trials(
    system: System, criterion: LabelCriterion, *, trials: Iterable[UUID] | None = None
) -> tuple[PassingTrial, ...]:
    """The trials that probes on a criterion can be made of; of some, those that can. Two queries.

    Completed ones that stand for their slot, pass, and are asked for the criterion now, of tasks
    that are not of split tuning.
    """
    pks = Criterion.objects.filter(system=system, name=criterion.name).values_list("pk", flat=True)
    values: Mapping[str, Any] = {
        "system": system.pk,
        "name": criterion.name,
        "criterion": pks.first(),
        "digest": criterion.digest,
        "contracts": list(criterion.contract_pks),
        "trials": None if trials is None else list(trials),
    }
    with connection.cursor() as cursor:
        cursor.execute(_PASSING, values)
        return tuple(PassingTrial(*row) for row in cursor.fetchall())


def counted_by_kind(rows: Iterable[ProbeRow]) -> Counter[ProbeKind]:
    """How many probes there are of each kind."""
    return Counter(row.kind for row in rows)


def plain_score(score: Decimal | None) -> str:
    """A score as it is shown; "" without one."""
    return "" if score is None else f"{score.normalize():f}"
