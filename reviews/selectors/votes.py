"""Stored verdicts as the disposition reads them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.db import connection

from evalsite.common import blobs
from reviews.core.calibrations import CalibrationKey, Calibrations
from reviews.core.check_verdicts import notes_of
from reviews.core.checks.results import CHECKS_VERSION
from reviews.core.disposition import Adjudication, AdjudicationRuling, GivenVerdict, Mark
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE_KEY, CheckNotes, MarkedCriterion
from reviews.models import CheckMark
from traces.core.records import CriterionClass, GraderKind, VerdictValue

_KINDS = {kind.value: kind for kind in GraderKind}
_VALUES = {value.value: value for value in VerdictValue}
_CLASSES = {name.value: name for name in CriterionClass}

_PLAIN_COLUMNS = (
    "v.id, g.name, gv.version, g.kind, c.name, v.value, v.criterion_class, v.is_mandatory,"
    " v.by_id IS NULL AND v.contract_id IS NULL, v.raw_word, v.score, v.cited_steps,"
    " v.contract_id, v.criterion_digest, v.evidence_order, v.corrects_id, v.created_at,"
    " g.kind = 'human' AND EXISTS (SELECT FROM reviews_vouch w WHERE w.verdict_id = v.id),"
    " g.kind = 'human' AND EXISTS (SELECT FROM reviews_label l WHERE l.verdict_id = v.id)"
)
GIVEN_COLUMNS = (
    _PLAIN_COLUMNS + ", CASE WHEN v.extra LIKE '%%\"rubric_version\"%%' THEN v.extra END"
)
"""What `given_of` reads of a verdict `v`, its criterion `c` and its grader `g` in version `gv`."""

N_GIVEN = 20
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
    given_at: datetime,
    is_vouched: bool,  # noqa: FBT001 - a column
    is_label: bool,  # noqa: FBT001 - a column
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
        is_vouched=is_vouched,
        is_blind_label=is_label,
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
        given_at=given_at,
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
    adjudications: list[Adjudication] = field(default_factory=list)
    n_additions: int = 0  # to the evidence, where there is an adjudication

    def evidence_order(self, contract_pk: int | None) -> int:
        """How much evidence there is: as the latest grading under a contract saw it, or more."""
        seen = self.seen.get(contract_pk) if contract_pk is not None else None
        return max(seen.evidence_order if seen else 0, self.n_additions)


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
    """All verdicts and adjudications of some trials, and what their gradings noted.

    In two queries. `have_contracts` False: their tasks have none, so that all votes under a contract are silent.
    """
    found: dict[int, TrialVotes] = {}
    wanted = list(trial_ids)
    with connection.cursor() as cursor:
        cursor.execute(_VOTES if have_contracts else _PLAIN_VOTES, [wanted])
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
    for trial_id, n_additions, one in adjudications_on(wanted):
        votes = found.setdefault(trial_id, TrialVotes())
        votes.adjudications.append(one)
        votes.n_additions = n_additions
    return found


_RULINGS = {ruling.value: ruling for ruling in AdjudicationRuling}


def adjudications_on(trial_ids: Iterable[int]) -> list[tuple[int, int, Adjudication]]:
    """The adjudications of some trials in the order they came, in one query.

    Each with its trial and how many additions there are to the trial's evidence by now.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT a.trial_id, (SELECT count(*) FROM traces_evidenceaddition e"
            " WHERE e.trial_id = a.trial_id), a.id, c.name, a.ruling, a.rubric_version, a.criterion_digest,"
            " a.evidence_order, a.replaces_id, a.is_by_party"
            " FROM reviews_adjudication a JOIN reviews_criterion c ON c.id = a.criterion_id"
            " WHERE a.trial_id = ANY(%s) ORDER BY a.id",
            [list(trial_ids)],
        )
        return [
            (
                trial,
                n_additions,
                Adjudication(
                    id=str(pk),
                    criterion=criterion,
                    ruling=_RULINGS[ruling],
                    rubric_version=rubric or None,
                    criterion_digest=None if digest is None else digest.bytes,
                    evidence_order=order,
                    replaces=None if replaces is None else str(replaces),
                    is_by_party=by_party,
                ),
            )
            for trial, n_additions, pk, criterion, ruling, rubric, digest, order, replaces, by_party in cursor.fetchall()
        ]


_CALIBRATED = """
SELECT w.system_id, w.name, w.version, w.criterion, w.criterion_digest, w.valid_until FROM (
    SELECT DISTINCT ON (b.grader_version_id, b.criterion_id, b.criterion_digest)
        b.system_id, g.name, gv.version, c.name AS criterion, b.criterion_digest, b.status,
        b.valid_until
    FROM reviews_calibration b
    JOIN reviews_graderversion gv ON gv.id = b.grader_version_id
    JOIN reviews_grader g ON g.id = gv.grader_id
    JOIN reviews_criterion c ON c.id = b.criterion_id
    WHERE b.system_id = ANY(%s)
    ORDER BY b.grader_version_id, b.criterion_id, b.criterion_digest, b.id DESC
) w WHERE w.status = 'calibrated'
"""


def calibrations_in(system_ids: Iterable[int]) -> dict[int, Calibrations]:
    """The calibrations that hold in each of some systems, in one query."""
    wanted = sorted(set(system_ids))
    until: dict[int, dict[CalibrationKey, datetime]] = {pk: {} for pk in wanted}
    with connection.cursor() as cursor:
        cursor.execute(_CALIBRATED, [wanted])
        for system, grader, version, criterion, digest, valid_until in cursor.fetchall():
            key = (grader, version, criterion, None if digest is None else digest.bytes)
            until[system][key] = valid_until
    return {pk: Calibrations(found) for pk, found in until.items()}


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
