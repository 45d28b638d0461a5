"""What an evidence manifest lists, read in bulk: identities and digests of stored rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection

from evalsite.common.row_digests import row_digest_sql
from reviews.core.gate.manifest import ManifestParts
from reviews.core.gate.model import JudgeThatDecides
from reviews.selectors.gate_baseline import SignedRelease
from reviews.selectors.gate_basis import Exclusion, GateBasis, GateRun, GateSubject, iso
from reviews.selectors.gate_evidence import Collected, DecidedSlot, JudgeKey
from traces.core.values import JsonObject

EARLIER = "earlier_attempt"
"""The disposition of a trial that another attempt stands for."""


def manifest_parts(
    brought: Collected,
    basis: GateBasis,
    slots: Sequence[DecidedSlot],
    baseline: SignedRelease | None,
) -> ManifestParts:
    """The lists of the manifest of a release's gate. 8 queries, however many trials."""
    subject = brought.subject
    came = {each.trial_pk: each for each in slots if each.trial_pk}
    reevaluation = subject.reevaluation
    return ManifestParts(
        release=_release(subject),
        reevaluation=str(reevaluation.uuid) if reevaluation else None,
        runs=tuple(_run(run, brought) for run in subject.runs),
        tasks=_tasks(brought, basis, slots),
        trials=_trials(subject, came),
        verdicts=_verdicts(came),
        adjudications=_adjudications(came),
        marks=_marks(brought.tasks),
        calibrations=_calibrations(subject.system_pk, came),
        contracts=_contracts({each.contract_pk for each in came.values() if each.contract_pk}),
        thresholds=tuple(
            {
                "tier": str(tier.uuid),
                "name": tier.name,
                "number": tier.thresholds.number,
                "digest": tier.thresholds.digest,
            }
            for tier in basis.tiers
        ),
        baseline=None if baseline is None else baseline_document(baseline),
    )


def baseline_document(baseline: SignedRelease) -> JsonObject:
    """The last signed release, as manifests and documents name it."""
    return {
        "release": baseline.release,
        "uuid": str(baseline.release_uuid),
        "sign_off": str(baseline.sign_off),
        "digest": baseline.digest,
    }


def _rows(sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _release(subject: GateSubject) -> JsonObject:
    ((details,),) = _rows(
        "SELECT encode(sha256(convert_to(details, 'UTF8')), 'hex') FROM traces_release"
        " WHERE id = %(pk)s",
        {"pk": subject.pk},
    )
    return {"name": subject.name, "uuid": str(subject.uuid), "details": details}


def _run(run: GateRun, brought: Collected) -> JsonObject:
    named = sorted(brought.tasks[task].task_id for task in brought.declared.get(run.pk, ()))
    return {
        "uuid": str(run.uuid),
        "name": run.name,
        "begun_at": iso(run.begun_at),
        "declared": run.declared_trials,
        "declared_tasks": [*named],
        "left_out": None if run.exclusion is None else _left_out(run.exclusion),
    }


def _left_out(left: Exclusion) -> JsonObject:
    return {
        "uuid": str(left.uuid),
        "by": str(left.by_uuid),
        "reason": left.reason,
        "confirmed_by": str(left.confirmed_uuid) if left.confirmed_uuid else None,
        "confirmed_reason": left.confirmed_reason or None,
    }


def _tasks(
    brought: Collected, basis: GateBasis, slots: Iterable[DecidedSlot]
) -> tuple[JsonObject, ...]:
    tiers = {tier.pk: str(tier.uuid) for tier in basis.tiers}
    with_slots = {each.task_pk for each in slots}
    found: list[JsonObject] = []
    for pk, task in brought.tasks.items():
        if pk in with_slots:
            tier = basis.tier_of.get(pk)
            found.append(
                {
                    "task": task.task_id,
                    "family": task.family,
                    "split": task.split,
                    "tier": None if tier is None else tiers[tier],
                }
            )
    return tuple(found)


# All attempts of counting runs. The rows of a trial are itself, its record and its transcript.
@cache
def _trials_sql() -> str:
    return f"""
SELECT t.id, t.uuid, k.task_id, v.number, r.uuid, t.label, t.attempt, t.digest,
       encode(sha256(convert_to(
           {row_digest_sql("traces_trial", alias="t")}
           || coalesce((SELECT {row_digest_sql("traces_trialrecord", alias="o")}
                        FROM traces_trialrecord o WHERE o.trial_id = t.id), '')
           || coalesce((SELECT string_agg({row_digest_sql("traces_transcriptchunk", alias="c")},
                                          '' ORDER BY c.first_step)
                        FROM traces_transcriptchunk c WHERE c.trial_id = t.id), ''),
           'UTF8')), 'hex'),
       (SELECT array_agg({row_digest_sql("traces_evidenceaddition", alias="a")} ORDER BY a."order")
        FROM traces_evidenceaddition a WHERE a.trial_id = t.id)
FROM traces_trial t
JOIN traces_task k ON k.id = t.task_id
JOIN traces_taskversion v ON v.id = t.task_version_id
JOIN traces_run r ON r.id = t.run_id
WHERE t.run_id = ANY(%(runs)s) AND t.environment = 'test'
"""  # noqa: S608 - put together from texts of our own


def _trials(subject: GateSubject, came: Mapping[int, DecidedSlot]) -> tuple[JsonObject, ...]:
    found: list[JsonObject] = []
    rows = _rows(_trials_sql(), {"runs": [run.pk for run in subject.counting]})
    for pk, uuid, task, version, run, label, attempt, record, digest, additions in rows:
        each = came.get(pk)
        found.append(
            {
                "uuid": str(uuid),
                "task": task,
                "task_version": version,
                "run": str(run),
                "label": label,
                "attempt": attempt,
                "record": record.hex,
                "rows": digest,
                "additions": additions or [],
                "contract": each.slot.contract if each else 0,
                "disposition": each.slot.value if each else EARLIER,
            }
        )
    return tuple(found)


@cache
def _verdicts_sql() -> str:
    return f"""
SELECT v.id, t.uuid, g.name, gv.version, g.kind, c.name, v.value, v.digest,
       {row_digest_sql("reviews_verdict", alias="v")}
FROM reviews_verdict v
JOIN traces_trial t ON t.id = v.trial_id
JOIN reviews_criterion c ON c.id = v.criterion_id
JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id
WHERE v.id = ANY(%(pks)s)
"""  # noqa: S608 - put together from texts of our own


def _verdicts(came: Mapping[int, DecidedSlot]) -> tuple[JsonObject, ...]:
    pks = sorted({pk for each in came.values() for pk in each.votes})
    if not pks:
        return ()
    return tuple(
        {
            "verdict": str(pk),
            "trial": str(trial),
            "grader": grader,
            "version": version,
            "kind": kind,
            "criterion": criterion,
            "value": value,
            "digest": digest.hex,
            "row": row,
        }
        for pk, trial, grader, version, kind, criterion, value, digest, row in _rows(
            _verdicts_sql(), {"pks": pks}
        )
    )


@cache
def _adjudications_sql() -> str:
    return f"""
SELECT a.uuid, t.uuid, c.name, a.ruling, a.is_by_party,
       {row_digest_sql("reviews_adjudication", alias="a")}
FROM reviews_adjudication a
JOIN traces_trial t ON t.id = a.trial_id
JOIN reviews_criterion c ON c.id = a.criterion_id
WHERE a.id = ANY(%(pks)s)
"""  # noqa: S608 - put together from texts of our own


def _adjudications(came: Mapping[int, DecidedSlot]) -> tuple[JsonObject, ...]:
    pks = sorted({pk for each in came.values() for pk in each.adjudications})
    if not pks:
        return ()
    return tuple(
        {
            "uuid": str(uuid),
            "trial": str(trial),
            "criterion": criterion,
            "ruling": ruling,
            "by_party": by_party,
            "row": row,
        }
        for uuid, trial, criterion, ruling, by_party, row in _rows(
            _adjudications_sql(), {"pks": pks}
        )
    )


@cache
def _marks_sql() -> str:
    return f"""
SELECT m.uuid, k.task_id, m.criterion, m.mark, m.criterion_digest,
       {row_digest_sql("reviews_checkmark", alias="m")}
FROM reviews_checkmark m JOIN traces_task k ON k.id = m.task_id
WHERE m.task_id = ANY(%(tasks)s)
  AND NOT EXISTS (SELECT FROM reviews_checkmarkwithdrawal w WHERE w.mark_id = m.id)
"""  # noqa: S608 - put together from texts of our own


def _marks(task_pks: Iterable[int]) -> tuple[JsonObject, ...]:
    return tuple(
        {
            "uuid": str(uuid),
            "task": task,
            "criterion": criterion,
            "mark": mark,
            "criterion_digest": digest.hex if digest else None,
            "row": row,
        }
        for uuid, task, criterion, mark, digest, row in _rows(
            _marks_sql(), {"tasks": list(task_pks)}
        )
    )


_CONTRACTS = """
SELECT k.task_id, v.number, v.uuid, encode(sha256(convert_to(v.text, 'UTF8')), 'hex')
FROM traces_contractversion v JOIN traces_task k ON k.id = v.task_id WHERE v.id = ANY(%(pks)s)
"""


def _contracts(pks: Iterable[int]) -> tuple[JsonObject, ...]:
    return tuple(
        {"task": task, "number": number, "uuid": str(uuid), "text": text}
        for task, number, uuid, text in _rows(_CONTRACTS, {"pks": sorted(pks)})
    )


@dataclass(frozen=True, slots=True)
class ReadCalibration:
    """The newest reading of a judge version on a criterion."""

    key: JudgeKey
    status: str
    figures: Any  # as `reviews.core.calibration` wrote it
    figures_digest: str
    valid_until: datetime | None


_CALIBRATIONS = """
SELECT DISTINCT ON (b.grader_version_id, b.criterion_id, b.criterion_digest)
    g.name, gv.version, c.name, b.criterion_digest, b.status, b.figures,
    encode(sha256(convert_to(b.figures::text, 'UTF8')), 'hex'), b.valid_until
FROM reviews_calibration b
JOIN reviews_graderversion gv ON gv.id = b.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id
JOIN reviews_criterion c ON c.id = b.criterion_id
WHERE b.system_id = %(system)s
ORDER BY b.grader_version_id, b.criterion_id, b.criterion_digest, b.id DESC
"""


def calibrations_read(system_pk: int, keys: Iterable[JudgeKey]) -> tuple[ReadCalibration, ...]:
    """The newest readings of some judge versions, in one query; none where no judge decides."""
    wanted = set(keys)
    if not wanted:
        return ()
    found = []
    for judge, version, criterion, digest, *rest in _rows(_CALIBRATIONS, {"system": system_pk}):
        key = JudgeKey(judge, version, criterion, _bytes(digest))
        if key in wanted:
            found.append(ReadCalibration(key, *rest))
    return tuple(found)


def _bytes(digest: UUID | None) -> bytes | None:
    return None if digest is None else digest.bytes


def _calibrations(system_pk: int, came: Mapping[int, DecidedSlot]) -> tuple[JsonObject, ...]:
    keys = frozenset[JudgeKey]().union(*(each.judges for each in came.values()))
    return tuple(
        {
            "judge": one.key.judge,
            "version": one.key.version,
            "criterion": one.key.criterion,
            "criterion_digest": one.key.digest.hex() if one.key.digest else None,
            "status": one.status,
            "figures": one.figures_digest,
            "valid_until": iso(one.valid_until) if one.valid_until else None,
        }
        for one in calibrations_read(system_pk, keys)
    )


def judges_that_decide(
    read: Iterable[ReadCalibration], slots: Iterable[DecidedSlot]
) -> tuple[JudgeThatDecides, ...]:
    """The judge versions whose votes decide slots, each with its figures and how many it decides."""
    from reviews.core.calibration import parse_figures

    n_trials: dict[JudgeKey, int] = {}
    for each in slots:
        if each.slot.is_counted:
            for key in each.judges:
                n_trials[key] = n_trials.get(key, 0) + 1
    figures = {one.key: parse_figures(_document(one.figures)) for one in read}
    return tuple(
        JudgeThatDecides(key.judge, key.version, key.criterion, figures.get(key), n)
        for key, n in sorted(n_trials.items(), key=lambda item: _judge_order(item[0]))
    )


def _judge_order(key: JudgeKey) -> tuple[str, str, str, bytes]:
    return (key.judge, key.version, key.criterion, key.digest or b"")


def _document(figures: Any) -> Any:
    import json

    return json.loads(figures) if isinstance(figures, str) else figures
