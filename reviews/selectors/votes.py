"""Stored verdicts as the disposition reads them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from django.db import connection

from evalsite.common import blobs
from reviews.core.check_verdicts import notes_of
from reviews.core.checks.results import CHECKS_VERSION
from reviews.core.disposition import GivenVerdict, Mark
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE_KEY, CheckNotes, MarkedCriterion
from reviews.models import CheckMark
from traces.core.records import CriterionClass, GraderKind, VerdictValue

_KINDS = {kind.value: kind for kind in GraderKind}
_VALUES = {value.value: value for value in VerdictValue}
_CLASSES = {name.value: name for name in CriterionClass}

_PLAIN_COLUMNS = (
    "v.id, g.name, gv.version, g.kind, c.name, v.value, v.criterion_class, v.is_mandatory,"
    " v.by_id IS NULL AND v.contract_id IS NULL, v.raw_word, v.score, v.cited_steps,"
    " v.contract_id, v.criterion_digest, v.evidence_order, v.corrects_id"
)
GIVEN_COLUMNS = (
    _PLAIN_COLUMNS + ", CASE WHEN v.extra LIKE '%%\"rubric_version\"%%' THEN v.extra END"
)
"""What `given_of` reads of a verdict `v`, its criterion `c` and its grader `g` in version `gv`."""

N_GIVEN = 17
"""How many columns these are."""


def given_of(
    pk: int,
    grader: str,
    version: str,
    kind: str,
    criterion: str,
    value: str,
    criterion_class: str,
    mandatory: bool,  # noqa: FBT001 - a column
    imported: bool,  # noqa: FBT001 - a column
    raw_word: str,
    score: Decimal | None,
    cited: list[int],
    contract: int | None,
    digest: uuid.UUID | None,
    evidence_order: int,
    corrects: int | None,
    extra: str | None,
) -> GivenVerdict:
    """One row of `GIVEN_COLUMNS`."""
    return GivenVerdict(
        id=str(pk),
        grader=grader,
        grader_version=version,
        kind=_KINDS[kind],
        criterion=criterion,
        value=_VALUES[value],
        criterion_class=_CLASSES[criterion_class],
        mandatory=mandatory,
        is_imported=imported,
        contract=None if contract is None else str(contract),
        criterion_digest=None if digest is None else digest.bytes,
        evidence_order=evidence_order,
        rubric_version=_rubric_version(extra) if extra else None,
        is_outdated=contract is not None
        and kind == GraderKind.CODE
        and grader == CHECKS_GRADER
        and version != CHECKS_VERSION,
        corrects=None if corrects is None else str(corrects),
        raw_word=raw_word,
        score=score,
        cited_steps=tuple(cited),
    )


def _rubric_version(extra: str) -> str | None:
    """The version of the rubric that a verdict names itself."""
    named = blobs.loads(extra).get("rubric_version")
    if isinstance(named, bool) or not isinstance(named, str | int | float | Decimal):
        return None
    return str(named) or None


@dataclass(frozen=True, slots=True)
class SeenEvidence:
    """What the latest grading of a trial noted of its evidence."""

    evidence_order: int = 0
    missing: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()  # of the fixture: sentences


@dataclass(slots=True)
class TrialVotes:
    """The verdicts on a trial in the order they came, and what its gradings noted beside them."""

    verdicts: list[GivenVerdict] = field(default_factory=list)
    notes: dict[str, CheckNotes] = field(default_factory=dict)  # by the verdict's id
    seen: dict[int, SeenEvidence] = field(default_factory=dict)  # by contract version


def given_verdicts(trial_ids: Iterable[int]) -> dict[int, tuple[GivenVerdict, ...]]:
    """All verdicts of some trials in one query, those of a trial in the order they came."""
    return {pk: tuple(votes.verdicts) for pk, votes in trial_votes(trial_ids).items()}


# LATERAL with OFFSET: an index look-up a trial, never a scan of the whole table.
_FROM = """
FROM unnest(%s::bigint[]) AS w(id)
CROSS JOIN LATERAL (SELECT * FROM reviews_verdict WHERE trial_id = w.id OFFSET 0) v
JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id
JOIN reviews_criterion c ON c.id = v.criterion_id
ORDER BY v.trial_id, v.id
"""
_VOTES = (
    "SELECT v.trial_id, v.key, CASE WHEN v.contract_id IS NOT NULL THEN v.extra ELSE '' END,"
    f" {GIVEN_COLUMNS} {_FROM}"
)
# Without a contract nothing asks for more, and what a judge said may be long.
_PLAIN_VOTES = f"SELECT v.trial_id, '', '', {_PLAIN_COLUMNS}, NULL {_FROM}"


def trial_votes(trial_ids: Iterable[int], *, have_contracts: bool = True) -> dict[int, TrialVotes]:
    """All verdicts of some trials, and what their gradings noted, in one query.

    `have_contracts` False: their tasks have none, so that all votes under a contract are silent.
    """
    found: dict[int, TrialVotes] = {}
    with connection.cursor() as cursor:
        cursor.execute(_VOTES if have_contracts else _PLAIN_VOTES, [list(trial_ids)])
        for trial_id, key, extra, *row in cursor.fetchall():
            votes = found.get(trial_id)
            if votes is None:
                votes = found[trial_id] = TrialVotes()
            given = given_of(*row)
            if given.kind is GraderKind.CODE and given.contract and key.endswith(EVIDENCE_KEY):
                if not given.is_outdated:
                    _note_seen(votes, int(given.contract), given.evidence_order, extra)
                continue
            votes.verdicts.append(given)
            if extra and given.contract is not None and not given.is_outdated:
                votes.notes[given.id] = notes_of(blobs.loads(extra))
    return found


def _note_seen(votes: TrialVotes, contract: int, order: int, extra: str) -> None:
    before = votes.seen.get(contract)
    if before is None or before.evidence_order <= order:
        said = blobs.loads(extra)["evidence"]
        votes.seen[contract] = SeenEvidence(order, tuple(said["missing"]), tuple(said["faults"]))


def marks_on(task_ids: Iterable[int]) -> Mapping[int, tuple[MarkedCriterion, ...]]:
    """The marks that hold on the criteria of some tasks, in one query."""
    rows = (
        CheckMark.objects.filter(task__in=list(task_ids), withdrawal=None)
        .order_by("pk")
        .values_list("task_id", "criterion", "criterion_digest", "mark")
    )
    found: dict[int, list[MarkedCriterion]] = {}
    for task, criterion, digest, mark in rows:
        one = MarkedCriterion(criterion, digest.bytes if digest else None, Mark(mark))
        found.setdefault(task, []).append(one)
    return {task: tuple(marks) for task, marks in found.items()}
