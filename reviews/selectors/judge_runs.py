"""Judge runs as their pages show them, and what a new one can ask about."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import connection

from reviews.models import Criterion, RubricVersion
from reviews.selectors.calibration_candidates import LabelCriterion, criteria_to_label
from traces.models import System, WorkState

PAGE = 50
ITEMS = 100


@dataclass(frozen=True, slots=True)
class JudgeRunRow:
    """A judge run with who asked for it and how far it is."""

    pk: int
    number: int
    state: WorkState
    criterion_pk: int
    criterion: str
    rubric_version: str
    judge_pk: int
    judge: str
    version: str
    model: str
    endpoint: str
    probes: int | None  # number of the batch; None: stored trials
    n_done: int
    n_total: int | None
    n_errors: int
    cost_usd: Decimal
    reason: str
    by_name: str
    failure: str
    asked_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancelled_by: str

    @property
    def is_open(self) -> bool:
        """Whether a worker has still to do with it."""
        return self.state in (WorkState.WAITING, WorkState.WORKING)


_ROWS = """
SELECT r.id, r.number, r.state, r.criterion_id, c.name, r.rubric_version, gv.id, g.name, gv.version,
       r.model, r.endpoint, b.number, r.n_done, r.n_total, r.n_errors, r.cost_usd, r.reason,
       coalesce(nullif(trim(u.first_name || ' ' || u.last_name), ''), u.username),
       r.failure, r.asked_at, r.started_at, r.finished_at,
       coalesce(nullif(trim(x.first_name || ' ' || x.last_name), ''), x.username, '')
FROM reviews_judgerun r
JOIN reviews_criterion c ON c.id = r.criterion_id
JOIN reviews_graderversion gv ON gv.id = r.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id
JOIN traces_user u ON u.id = r.by_id
LEFT JOIN traces_user x ON x.id = r.cancelled_by_id
LEFT JOIN reviews_probebatch b ON b.id = r.probes_id
WHERE r.system_id = %s AND {where} ORDER BY r.number DESC LIMIT %s
"""


def judge_run_rows(system: System, *, before: int | None = None) -> tuple[JudgeRunRow, ...]:
    """Judge runs, newest first, one more than a page shows; `before` is the last one's number."""
    where = "(%s::int IS NULL OR r.number < %s)"
    return _rows(where, [system.pk, before, before, PAGE + 1])


def judge_run_row(system: System, number: int) -> JudgeRunRow | None:
    """One judge run of a system."""
    found = _rows("r.number = %s", [system.pk, number, 1])
    return found[0] if found else None


def _rows(where: str, parameters: list[int | None]) -> tuple[JudgeRunRow, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_ROWS.format(where=where), parameters)
        return tuple(
            JudgeRunRow(pk, number, WorkState(state), *rest)
            for pk, number, state, *rest in cursor.fetchall()
        )


@dataclass(frozen=True, slots=True)
class JudgeRunTotals:
    """What came of the items of a run so far."""

    by_value: tuple[tuple[str, int], ...]  # pass, fail, unknown, error
    by_failure: tuple[tuple[str, int], ...]  # why items ended as errors, the most frequent first
    input_tokens: int
    output_tokens: int
    n_with_cost: int
    n_tries: int


MOST_FAILURES = 20


def judge_run_totals(run_pk: int) -> JudgeRunTotals:
    """What came of the items of a run so far, in three queries."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT value, count(*) FROM reviews_judgerunitem"
            " WHERE run_id = %s AND value <> '' GROUP BY value",
            [run_pk],
        )
        by_value = dict(cursor.fetchall())
        cursor.execute(
            "SELECT failure, count(*) FROM reviews_judgerunitem"
            " WHERE run_id = %s AND failure <> '' GROUP BY failure ORDER BY 2 DESC, 1 LIMIT %s",
            [run_pk, MOST_FAILURES],
        )
        failures = tuple(cursor.fetchall())
        cursor.execute(
            "SELECT coalesce(sum(tokens[1]), 0), coalesce(sum(tokens[2]), 0), count(cost_usd),"
            " coalesce(sum(n_tries), 0) FROM reviews_judgerunitem WHERE run_id = %s",
            [run_pk],
        )
        sent, answered, n_with_cost, n_tries = cursor.fetchone()
    return JudgeRunTotals(
        by_value=tuple(
            (value, by_value[value])
            for value in ("pass", "fail", "unknown", "error")
            if value in by_value
        ),
        by_failure=failures,
        input_tokens=int(sent),
        output_tokens=int(answered),
        n_with_cost=n_with_cost,
        n_tries=int(n_tries),
    )


@dataclass(frozen=True, slots=True)
class JudgeRunItemRow:
    """One trial or probe of a run, and what came of it."""

    position: int
    trial_pk: int | None
    trial_uuid: uuid.UUID | None
    task_id: str
    trial_label: str
    attempt: int
    release: str
    probe: int | None  # its position in the batch
    value: str  # "" until it is answered, and where it was not asked
    failure: str
    n_tries: int
    cost_usd: Decimal | None
    seconds: Decimal | None
    done_at: datetime | None


def judge_run_items(
    run_pk: int, *, after: int = 0, only_errors: bool = False
) -> tuple[JudgeRunItemRow, ...]:
    """Items of a run by position, one more than a page shows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT i.position, t.id, t.uuid, coalesce(k.task_id, ''), coalesce(t.label, ''),"
            " coalesce(t.attempt, 0), coalesce(r.name, ''), p.position, i.value, left(i.failure, 500), i.n_tries,"
            " i.cost_usd, i.seconds, i.done_at"
            " FROM reviews_judgerunitem i LEFT JOIN traces_trial t ON t.id = i.trial_id"
            " LEFT JOIN traces_task k ON k.id = t.task_id"
            " LEFT JOIN traces_release r ON r.id = t.release_id"
            " LEFT JOIN reviews_probe p ON p.id = i.probe_id"
            " WHERE i.run_id = %s AND i.position > %s AND (NOT %s OR i.failure <> '')"
            " ORDER BY i.position LIMIT %s",
            [run_pk, after, only_errors, ITEMS + 1],
        )
        return tuple(JudgeRunItemRow(*row) for row in cursor.fetchall())


def criteria_to_judge(system_pk: int) -> tuple[LabelCriterion, ...]:
    """The criteria that a judge can be asked: those with a question, by name. Five queries.

    The question is that of the contract; where that has none, and without a contract, it is the
    text of the system's rubric of the same name: of the version that the contract names, else the
    newest one.
    """
    found = criteria_to_label(system_pk)
    texts = _rubric_texts(system_pk, {each.name for each in found if not each.question})
    asked = (each if each.question else _with_text(each, texts) for each in found)
    return tuple(each for each in asked if each.question)


def _rubric_texts(system_pk: int, names: set[str]) -> dict[str, dict[str, str]]:
    """Texts of rubrics by name and version, the newest last."""
    rows = (
        RubricVersion.objects.filter(rubric__system=system_pk, rubric__name__in=names)
        .order_by("pk")
        .values_list("rubric__name", "version", "text")
    )
    found: dict[str, dict[str, str]] = {}
    for name, version, text in rows:
        found.setdefault(name, {})[version] = text
    return found


def _with_text(criterion: LabelCriterion, texts: dict[str, dict[str, str]]) -> LabelCriterion:
    versions = texts.get(criterion.name, {})
    if not versions:
        return criterion
    if criterion.rubric_version:
        return replace(criterion, question=versions.get(criterion.rubric_version, ""))
    version = next(reversed(versions))
    return replace(criterion, question=versions[version], rubric_version=version)


_TRIALS = """
SELECT t.id FROM traces_trial t
JOIN traces_task k ON k.id = t.task_id
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
WHERE t.system_id = %(system)s AND t.status = 'completed'
  AND (k.contract_id = ANY(%(contracts)s) OR %(digest)s::uuid IS NULL AND k.contract_id IS NULL
       AND EXISTS (SELECT FROM reviews_verdict v WHERE v.trial_id = t.id
                   AND v.criterion_id = %(criterion)s::int))
  AND (%(release)s::bigint IS NULL OR t.release_id = %(release)s)
  AND (%(family)s = '' OR k.family = %(family)s)
  AND (%(trials)s::uuid[] IS NULL OR t.uuid = ANY(%(trials)s))
  AND NOT (%(judge)s::int IS NOT NULL AND EXISTS (
      SELECT FROM reviews_verdict v WHERE v.trial_id = t.id AND v.criterion_id = %(criterion)s::int
        AND v.grader_version_id = %(judge)s AND v.value <> 'error'
        AND v.criterion_digest IS NOT DISTINCT FROM %(digest)s::uuid))
ORDER BY k.sort_key, k.id, t.id LIMIT %(most)s
"""


def trials_to_judge(
    system: System,
    criterion: LabelCriterion,
    *,
    release_pk: int | None = None,
    family: str = "",
    trials: Sequence[uuid.UUID] | None = None,
    unasked_of: int | None = None,
    most: int,
) -> Sequence[int]:
    """Completed trials that stand for their slots and are asked for the criterion now, by task.

    `trials` names the only ones to look at. `unasked_of` names a judge version: trials on which it said something but error are left out.
    """
    row = Criterion.objects.filter(system=system, name=criterion.name).first()
    values: dict[str, Any] = {
        "system": system.pk,
        "criterion": row.pk if row else None,
        "digest": criterion.digest,
        "contracts": list(criterion.contract_pks),
        "release": release_pk,
        "family": family,
        "trials": None if trials is None else list(trials),
        "judge": unasked_of,
        "most": most,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TRIALS, values)
        return [pk for (pk,) in cursor.fetchall()]
