"""Disputes follow the verdicts: opened, brought up to date and closed as trials are decided.

A dispute is a projection: its row says what the verdicts on its trial add up to, however often and
in whatever order trials are decided. It keeps its address and the time at which it opened.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection
from psycopg.types.json import Jsonb

from evalsite.common.copying import copy_rows
from reviews.core.disposition import Adjudication, Decision, GivenVerdict
from reviews.core.disputes import FoundDispute, JudgedTrial, Side, disputes_of
from reviews.models import DisputeState
from traces.core.records import CriterionClass, GraderKind, VerdictValue
from traces.core.text_marks import clean_text

log = logging.getLogger("evalsite.disputes")

MOST_SIDES = 24  # graders that a row tells of; how many more there are it says
MOST_JUDGES = 50  # judge versions under which a dispute is found
LONGEST_GRADER = 200  # characters of a name or version, as lists show it
LONGEST_CRITERION = 512
LONGEST_VERSION = 200  # of a rubric

_OPEN, _ADJUDICATED, _OVER = (state.value for state in DisputeState)
_CLASS_RANK = {name: rank for rank, name in enumerate(CriterionClass)}


@dataclass(frozen=True, slots=True)
class DecidedDisputes:
    """A decided trial, as far as disputes on it depend on it."""

    trial_id: int
    system_id: int
    task_id: int
    release_id: int
    stands: bool
    decision: Decision
    verdicts: Sequence[GivenVerdict]  # calibrated judges are marked as such
    adjudications: tuple[Adjudication, ...]
    evidence_order: int
    is_completed: bool = True  # False: its harness broke


@dataclass(frozen=True, slots=True)
class _Content:
    """What the row of a dispute says of its verdicts."""

    criterion_class: str
    class_rank: int
    criterion_digest: str | None
    rubric_version: str
    kinds: tuple[str, ...]
    judges: tuple[str, ...]
    says: dict[str, Any]
    is_counting: bool
    decides: bool
    stands: bool
    state: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A stored dispute."""

    id: int
    trial_id: int
    criterion: str
    content: _Content


def follow_disputes(decided: Iterable[DecidedDisputes], *, now: datetime) -> int:
    """Open, change and close the disputes of decided trials. Returns how many it touched.

    Part of the transaction that decides the trials, under the locks of their releases. A trial
    given twice counts as it was given last. Three statements at most, however many trials.
    """
    by_trial = {one.trial_id: one for one in decided}
    if not by_trial:
        return 0
    found = {
        (one.trial_id, clean_text(each.criterion)[:LONGEST_CRITERION]): _content(each, one)
        for one in by_trial.values()
        for each in disputes_of(_judged(one))
    }
    stored = _stored(by_trial)
    changed: list[_Row] = []
    for row in stored:
        content = found.pop((row.trial_id, row.criterion), None)
        stands = by_trial[row.trial_id].stands
        moved = content or replace(row.content, state=_OVER, decides=False, stands=stands)
        if moved != row.content:
            changed.append(replace(row, content=moved))
    _open_new([(by_trial[trial], name, one) for (trial, name), one in found.items()], now)
    _update(changed, now)
    if found or changed:
        log.info("disputes follow", extra={"n_new": len(found), "n_changed": len(changed)})
    return len(found) + len(changed)


def follow_standing(stands: Iterable[tuple[int, bool]]) -> None:
    """Which attempt stands for its slot, of trials that are not decided now. One statement.

    An attempt that is followed by another one broke, so that no dispute on it decides anything.
    """
    rows = list(stands)
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE reviews_dispute d SET stands = w.stands, decides = d.decides AND w.stands"
            " FROM unnest(%s::int8[], %s::bool[]) AS w(trial_id, stands)"
            " WHERE d.trial_id = w.trial_id AND d.stands <> w.stands",
            [[pk for pk, _ in rows], [stands for _, stands in rows]],
        )


def _judged(one: DecidedDisputes) -> JudgedTrial:
    return JudgedTrial(
        standings=one.decision.standings,
        verdicts=one.verdicts,
        adjudications=one.adjudications,
        evidence_order=one.evidence_order,
        is_completed=one.is_completed,
        stands=one.stands,
    )


def _content(found: FoundDispute, one: DecidedDisputes) -> _Content:
    judges = [s for s in found.sides if s.kind is GraderKind.MODEL and s.has_opinion]
    return _Content(
        criterion_class=found.criterion_class.value,
        class_rank=_CLASS_RANK[found.criterion_class],
        criterion_digest=str(uuid.UUID(bytes=found.criterion_digest))
        if found.criterion_digest
        else None,
        rubric_version=clean_text(found.rubric_version or "")[:LONGEST_VERSION],
        kinds=tuple(kind.value for kind in found.kinds),
        judges=tuple(judge_key(s.grader, s.grader_version) for s in judges[:MOST_JUDGES]),
        says=_says(found, judges[:MOST_JUDGES]),
        is_counting=found.is_counting,
        decides=found.decides,
        stands=one.stands,
        state=_ADJUDICATED if found.ruling else _OPEN,
    )


def judge_key(name: str, version: str) -> str:
    """A judge version as the rows of disputes name it."""
    return json.dumps([name, version])


# What the judges say, a letter each in the order of `judges`, and what code and people say.
_LETTERS = {VerdictValue.PASS: "p", VerdictValue.FAIL: "f", VerdictValue.UNKNOWN: "u"}


def _says(found: FoundDispute, judges: Sequence[Side]) -> dict[str, Any]:
    shown = found.sides[:MOST_SIDES]
    return {
        "why": found.no_effect.value if found.no_effect else "",
        "ruling": found.ruling.value if found.ruling else "",
        "judges": "".join(_letter(side) for side in judges),
        "code": _letters(found.sides, GraderKind.CODE),
        "people": _letters(found.sides, GraderKind.HUMAN),
        "sides": [_side(side) for side in shown],
        "n_more": len(found.sides) - len(shown),
    }


def _letter(side: Side) -> str:
    """What one grader says: p, f, u, or b where it says both or more."""
    said = [_LETTERS[value] for value in side.values if value in _LETTERS]
    return said[0] if len(said) == 1 else "b"


def _letters(sides: Iterable[Side], kind: GraderKind) -> str:
    said = {value for side in sides if side.kind is kind for value in side.values}
    return "".join(letter for value, letter in _LETTERS.items() if value in said)


def _side(side: Side) -> dict[str, Any]:
    return {
        "kind": side.kind.value,
        "grader": clean_text(side.grader)[:LONGEST_GRADER],
        "version": clean_text(side.grader_version)[:LONGEST_GRADER],
        "values": [value.value for value in side.values],
        "counts": side.counts,
        "imported": side.is_imported,
        "n": side.n,
    }


_STORED = """
SELECT d.id, d.trial_id, d.criterion, d.criterion_class, d.class_rank, d.criterion_digest::text,
       d.rubric_version, d.kinds, d.judges, d.says, d.is_counting, d.decides, d.stands, d.state
FROM reviews_dispute d WHERE d.trial_id = ANY(%s) ORDER BY d.id FOR NO KEY UPDATE
"""


def _stored(trial_ids: Iterable[int]) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(_STORED, [sorted(trial_ids)])
        return [
            _Row(
                pk,
                trial,
                criterion,
                _Content(
                    class_name,
                    rank,
                    digest,
                    rubric,
                    tuple(kinds),
                    tuple(judges),
                    _read(says),
                    *more,
                ),
            )
            for pk, trial, criterion, class_name, rank, digest, rubric, kinds, judges, says, *more in cursor.fetchall()
        ]


def _read(says: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(says) if isinstance(says, str) else says
    return found


_COLUMNS = (
    ("uuid", "uuid"),
    ("system_id", "int8"),
    ("trial_id", "int8"),
    ("task_id", "int8"),
    ("release_id", "int8"),
    ("criterion", "text"),
    ("criterion_class", "text"),
    ("class_rank", "int2"),
    ("criterion_digest", "uuid"),
    ("rubric_version", "text"),
    ("kinds", "varchar[]"),
    ("judges", "text[]"),
    ("says", "jsonb"),
    ("is_counting", "bool"),
    ("decides", "bool"),
    ("stands", "bool"),
    ("state", "text"),
    ("opened_at", "timestamptz"),
    ("closed_at", "timestamptz"),
)


def _open_new(new: Sequence[tuple[DecidedDisputes, str, _Content]], now: datetime) -> None:
    if not new:
        return
    rows = (
        (
            uuid.uuid4(),
            one.system_id,
            one.trial_id,
            one.task_id,
            one.release_id,
            criterion,
            content.criterion_class,
            content.class_rank,
            uuid.UUID(content.criterion_digest) if content.criterion_digest else None,
            content.rubric_version,
            list(content.kinds),
            list(content.judges),
            Jsonb(content.says),
            content.is_counting,
            content.decides,
            content.stands,
            content.state,
            now,
            None if content.state == _OPEN else now,
        )
        for one, criterion, content in new
    )
    copy_rows("reviews_dispute", _COLUMNS, rows)


_UPDATE = """
UPDATE reviews_dispute d SET criterion_class = w.criterion_class, class_rank = w.class_rank,
    criterion_digest = w.criterion_digest, rubric_version = w.rubric_version, kinds = w.kinds,
    judges = w.judges, says = w.says, is_counting = w.is_counting, decides = w.decides,
    stands = w.stands, state = w.state,
    closed_at = CASE WHEN w.state = 'open' THEN NULL WHEN w.state = d.state THEN d.closed_at
                     ELSE %s END
FROM jsonb_to_recordset(%s::jsonb) AS w(id int8, criterion_class text, class_rank int2,
    criterion_digest uuid, rubric_version text, kinds varchar[], judges text[], says jsonb,
    is_counting bool, decides bool, stands bool, state text)
WHERE d.id = w.id
"""


def _update(rows: Sequence[_Row], now: datetime) -> None:
    if not rows:
        return
    documents = [{"id": row.id, **asdict(row.content)} for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE, [now, json.dumps(documents)])
