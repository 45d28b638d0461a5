"""Storing verdicts: append-only, each once, and those that arrive before their trial."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import blake2b

from django.db import connection
from django.db.models import Q

from evalsite.common import blobs
from evalsite.common.copying import copy_rows, next_ids
from reviews.core.check_verdicts import Grading
from reviews.core.checks.results import CHECKS_VERSION
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE_KEY
from reviews.models import Criterion, Grader, GraderVersion, WaitingVerdict
from traces.core.canonical import digest_of
from traces.core.formats.verdicts import verdict_record, verdicts_of
from traces.core.limits import DEFAULT_LIMITS
from traces.core.records import Finding, GraderKind, ParsedVerdict, TrialKey
from traces.core.text_marks import clean_text
from traces.core.values import JsonObject
from traces.models import Release, System, Upload


class VerdictOutcome(StrEnum):
    NEW = "new"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class IncomingVerdict:
    """A verdict and the trial that it is of.

    `is_resent` says that it came with a trial record that is stored already: then other content
    without an id of its own contradicts what the same grader version said first.
    """

    trial_id: int
    trial_digest: uuid.UUID
    verdict: ParsedVerdict
    upload_id: int
    line: int
    is_resent: bool = False


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    outcome: VerdictOutcome
    finding: Finding | None = None


@dataclass(frozen=True, slots=True)
class WaitingTarget:
    """The trial that early verdicts are of, as far as they name it."""

    release: Release | None
    run_name: str
    key: TrialKey | None
    external_id: str


_Identity = tuple[int, int, int, str]  # trial, criterion, grader version, key
_TrialName = str | tuple[str, str, int, str]  # external id; or task, label, attempt, run


def store_verdicts(
    system: System, incoming: Sequence[IncomingVerdict], *, now: datetime
) -> list[StoredVerdict]:
    """Store what is new. Other content under one identity is refused and the first stays."""
    if not incoming:
        return []
    names = _Names.of(system, (one.verdict for one in incoming))
    known = _known(incoming)
    anonymous = {identity[:3] for identity, (_, is_own) in known.items() if not is_own}
    results: list[StoredVerdict] = []
    fresh: list[tuple[_Identity, IncomingVerdict]] = []
    for one in incoming:
        identity = names.identity(one)
        digest = uuid.UUID(bytes=one.verdict.digest)
        if earlier := known.get(identity):
            same = earlier[0] == digest
            results.append(
                StoredVerdict(VerdictOutcome.DUPLICATE)
                if same
                else StoredVerdict(VerdictOutcome.CONFLICT, _other_content(one))
            )
        elif one.is_resent and not _has_own_key(one) and identity[:3] in anonymous:
            results.append(StoredVerdict(VerdictOutcome.CONFLICT, _other_content(one)))
        else:
            known[identity] = (digest, _has_own_key(one))
            if not _has_own_key(one):
                anonymous.add(identity[:3])
            results.append(StoredVerdict(VerdictOutcome.NEW))
            fresh.append((identity, one))
    _write(fresh, now)
    return results


def _has_own_key(one: IncomingVerdict) -> bool:
    """Whether the grader gave the verdict an id; else its key is the digest of its content."""
    return one.verdict.key != one.verdict.digest.hex()


class _Names:
    """Row ids of the criteria and grader versions that verdicts name."""

    def __init__(self, criteria: dict[str, int], versions: dict[tuple[str, str, str], int]) -> None:
        self.criteria, self.versions = criteria, versions

    @classmethod
    def of(cls, system: System, verdicts: Iterable[ParsedVerdict]) -> _Names:
        listed = list(verdicts)
        return cls(
            _criteria(system, {v.criterion for v in listed}),
            _versions(system, {(v.kind.value, v.grader, v.grader_version) for v in listed}),
        )

    def identity(self, one: IncomingVerdict) -> _Identity:
        verdict = one.verdict
        version = self.versions[verdict.kind.value, verdict.grader, verdict.grader_version]
        return (one.trial_id, self.criteria[verdict.criterion], version, verdict.key)


def _criteria(system: System, names: set[str]) -> dict[str, int]:
    found = dict(Criterion.objects.filter(system=system, name__in=names).values_list("name", "pk"))
    missing = [name for name in names if name not in found]
    for row in Criterion.objects.bulk_create(
        [Criterion(system=system, name=name) for name in missing]
    ):
        found[row.name] = row.pk
    return found


def _versions(system: System, wanted: set[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
    graders = {
        (row.kind, row.name): row
        for row in Grader.objects.filter(system=system, name__in={name for _, name, _ in wanted})
    }
    for kind, name, _ in wanted:
        if (kind, name) not in graders:
            graders[kind, name] = Grader.objects.create(system=system, kind=kind, name=name)
    by_id = {row.pk: key for key, row in graders.items()}
    found = {
        (*by_id[row.grader_id], row.version): row.pk
        for row in GraderVersion.objects.filter(grader__in=list(graders.values()))
    }
    for kind, name, version in wanted:
        if (kind, name, version) not in found:
            row = GraderVersion.objects.create(grader=graders[kind, name], version=version)
            found[kind, name, version] = row.pk
    return found


def _known(incoming: Sequence[IncomingVerdict]) -> dict[_Identity, tuple[uuid.UUID, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(
            # LATERAL with OFFSET: an index look-up a trial, never a scan of the whole table.
            "SELECT w.id, v.criterion_id, v.grader_version_id, v.key, v.digest"
            " FROM unnest(%s::bigint[]) AS w(id) CROSS JOIN LATERAL"
            " (SELECT * FROM reviews_verdict WHERE trial_id = w.id OFFSET 0) v",
            [list({one.trial_id for one in incoming})],
        )
        return {
            (trial, criterion, version, key): (digest, key != digest.hex)
            for trial, criterion, version, key, digest in cursor.fetchall()
        }


def _other_content(one: IncomingVerdict) -> Finding:
    verdict = one.verdict
    return Finding(
        code="verdict-conflict",
        place="verdicts",
        sentence=clean_text(
            f"{verdict.grader} {verdict.grader_version}".strip()
            + f" has already given another verdict on {verdict.criterion!r} of this trial under "
            "the same identity; the first stays. Give the verdict an id of its own to add it."
        ),
    )


_COLUMNS = (
    ("id", "int8"),
    ("trial_id", "int8"),
    ("grader_version_id", "int8"),
    ("criterion_id", "int8"),
    ("criterion_class", "text"),
    ("is_mandatory", "bool"),
    ("value", "text"),
    ("raw_word", "text"),
    ("key", "text"),
    ("score", "numeric"),
    ("rationale", "text"),
    ("cited_steps", "int4[]"),
    ("overrides", "text"),
    ("extra", "text"),
    ("digest", "uuid"),
    ("evidence_digest", "uuid"),
    ("upload_id", "int8"),
    ("line", "int8"),
    ("created_at", "timestamptz"),
)


def _write(fresh: Sequence[tuple[_Identity, IncomingVerdict]], now: datetime) -> None:
    if not fresh:
        return
    ids = next_ids("reviews_verdict", len(fresh))
    copy_rows(
        "reviews_verdict",
        _COLUMNS,
        (_row(pk, identity, one, now) for pk, (identity, one) in zip(ids, fresh, strict=True)),
    )


def _row(pk: int, identity: _Identity, one: IncomingVerdict, now: datetime) -> tuple[object, ...]:
    trial_id, criterion_id, version_id, key = identity
    verdict = one.verdict
    return (
        pk,
        trial_id,
        version_id,
        criterion_id,
        verdict.criterion_class.value,
        verdict.mandatory,
        verdict.value.value,
        clean_text(verdict.raw_word),
        key,
        verdict.score,
        clean_text(verdict.rationale),
        list(verdict.cited_steps),
        verdict.overrides or "",
        blobs.dumps(verdict.extra) if verdict.extra else "",
        uuid.UUID(bytes=verdict.digest),
        one.trial_digest,
        one.upload_id,
        one.line,
        now,
    )


@dataclass(frozen=True, slots=True)
class GradedTrial:
    """What a contract version's checks say of a stored trial on some of its evidence."""

    trial_id: int
    contract_id: int
    contract: uuid.UUID
    evidence_order: int  # additions that they saw
    evidence_digest: uuid.UUID
    grading: Grading


_CHECK_COLUMNS = (
    ("trial_id", "int8"),
    ("grader_version_id", "int8"),
    ("criterion_id", "int8"),
    ("criterion_class", "text"),
    ("is_mandatory", "bool"),
    ("value", "text"),
    ("raw_word", "text"),
    ("key", "text"),
    ("rationale", "text"),
    ("cited_steps", "int4[]"),
    ("overrides", "text"),
    ("extra", "text"),
    ("digest", "uuid"),
    ("evidence_digest", "uuid"),
    ("contract_id", "int8"),
    ("criterion_digest", "uuid"),
    ("evidence_order", "int4"),
    ("created_at", "timestamptz"),
)


def grader_versions(
    system: System, wanted: set[tuple[str, str, str]]
) -> dict[tuple[str, str, str], int]:
    """Row ids of grader versions by kind, name and version, made where there are none yet."""
    return _versions(system, wanted)


def checks_version(system: System) -> int:
    """The row of the contract checks, in their version, as a grader of the system."""
    named = (GraderKind.CODE.value, CHECKS_GRADER, CHECKS_VERSION)
    return _versions(system, {named})[named]


def store_checks(system: System, graded: Sequence[GradedTrial], *, now: datetime) -> int:
    """Store the verdicts of contract checks by COPY. Returns how many they are.

    The caller has locked the trials, and knows that none of these is stored yet.
    """
    if not graded:
        return 0
    names = {v.criterion for one in graded for v in (*one.grading.verdicts, one.grading.note)}
    criteria, version = _criteria(system, names), checks_version(system)
    rows = [row for one in graded for row in _check_rows(one, criteria, version, now)]
    copy_rows("reviews_verdict", _CHECK_COLUMNS, rows)
    return len(rows) - len(graded)


def _check_rows(
    one: GradedTrial, criteria: dict[str, int], version: int, now: datetime
) -> Iterable[tuple[object, ...]]:
    key = f"{one.contract.hex}.{one.evidence_order}"
    note = one.grading.note
    for verdict in (*one.grading.verdicts, note):
        rationale = clean_text(verdict.sentence)
        extra = clean_text(blobs.dumps(verdict.extra)) if verdict.extra else ""
        said = f"{verdict.value} {verdict.steps} {len(rationale)} {rationale} {extra}"
        yield (
            one.trial_id,
            version,
            criteria[verdict.criterion],
            verdict.criterion_class.value,
            verdict.mandatory,
            verdict.value.value,
            "",
            key + EVIDENCE_KEY if verdict is note else key,
            rationale,
            list(verdict.steps),
            "",
            extra,
            uuid.UUID(bytes=blake2b(said.encode(), digest_size=16).digest()),
            one.evidence_digest,
            one.contract_id,
            uuid.UUID(bytes=verdict.criterion_digest) if verdict.criterion_digest else None,
            one.evidence_order,
            now,
        )


def hold_verdicts(
    system: System,
    target: WaitingTarget,
    verdicts: Sequence[ParsedVerdict],
    *,
    upload: Upload,
    line: int,
) -> int:
    """Let verdicts wait for their trial; the same again waits once. Returns how many are new."""
    rows = [_waiting_row(system, target, verdict, upload, line) for verdict in verdicts]
    known = set(
        WaitingVerdict.objects.filter(
            system=system, digest__in=[row.digest for row in rows]
        ).values_list("digest", flat=True)
    )
    fresh = {row.digest: row for row in rows if row.digest not in known}
    WaitingVerdict.objects.bulk_create(fresh.values())
    return len(fresh)


def _waiting_row(
    system: System, target: WaitingTarget, verdict: ParsedVerdict, upload: Upload, line: int
) -> WaitingVerdict:
    record = verdict_record(verdict)
    key = target.key
    place: JsonObject = {
        "release": target.release.name if target.release else None,
        "run": target.run_name,
        "task": key.task_id if key else "",
        "label": key.trial if key else "",
        "attempt": key.attempt if key else 1,
        "external": target.external_id,
    }
    return WaitingVerdict(
        system=system,
        release=target.release,
        run_name=target.run_name,
        task_id=key.task_id if key else "",
        label=key.trial if key else "",
        attempt=key.attempt if key else 1,
        external_id=target.external_id,
        digest=uuid.UUID(bytes=digest_of([place, record])),
        verdict=blobs.dumps(record),
        upload=upload,
        line=line,
    )


@dataclass(frozen=True, slots=True)
class ArrivedTrial:
    """A trial that has just been stored, as waiting verdicts name it."""

    trial_id: int
    digest: uuid.UUID
    release_id: int
    run_name: str
    task_id: str
    label: str
    attempt: int
    external_id: str


def attach_waiting(
    system: System, arrived: Sequence[ArrivedTrial], *, now: datetime
) -> list[StoredVerdict]:
    """Give waiting verdicts to the trials that have come."""
    matched = list(_matches(system, arrived))
    if not matched:
        return []
    results = store_verdicts(
        system,
        [
            IncomingVerdict(
                trial_id=trial.trial_id,
                trial_digest=trial.digest,
                verdict=_held_verdict(row),
                upload_id=row.upload_id,
                line=row.line,
            )
            for row, trial in matched
        ],
        now=now,
    )
    WaitingVerdict.objects.filter(pk__in=[row.pk for row, _ in matched]).update(attached_at=now)
    return results


def _held_verdict(row: WaitingVerdict) -> ParsedVerdict:
    """A waiting verdict, which was read without refusal when it came."""
    (verdict,) = verdicts_of(
        [blobs.loads(row.verdict)], DEFAULT_LIMITS, lambda *_: None, lambda _: None
    )
    return verdict


def _matches(
    system: System, arrived: Sequence[ArrivedTrial]
) -> Iterable[tuple[WaitingVerdict, ArrivedTrial]]:
    if not arrived or not WaitingVerdict.objects.filter(system=system, attached_at=None).exists():
        return
    by_name: dict[_TrialName, list[ArrivedTrial]] = {}
    for trial in arrived:
        by_name.setdefault((trial.task_id, trial.label, trial.attempt, trial.run_name), []).append(
            trial
        )
        if trial.external_id:
            by_name.setdefault(trial.external_id, []).append(trial)
    waiting = WaitingVerdict.objects.filter(system=system, attached_at=None).filter(
        Q(external_id__in={t.external_id for t in arrived if t.external_id})
        | Q(external_id="", task_id__in={t.task_id for t in arrived})
    )
    for row in waiting.order_by("pk"):
        name: _TrialName = row.external_id or (row.task_id, row.label, row.attempt, row.run_name)
        named = [t for t in by_name.get(name, ()) if row.release_id in (None, t.release_id)]
        # Where several trials bear the name, it is not told which one is meant.
        if len(named) == 1:
            yield row, named[0]
