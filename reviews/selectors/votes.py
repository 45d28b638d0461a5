"""Stored verdicts as the disposition reads them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from django.db import connection

from reviews.core.disposition import GivenVerdict
from traces.core.records import CriterionClass, GraderKind, VerdictValue

_KINDS = {kind.value: kind for kind in GraderKind}
_VALUES = {value.value: value for value in VerdictValue}
_CLASSES = {name.value: name for name in CriterionClass}


def given_verdicts(trial_ids: Iterable[int]) -> dict[int, tuple[GivenVerdict, ...]]:
    """All verdicts of some trials in one query, those of a trial in the order they came."""
    found: dict[int, list[GivenVerdict]] = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT v.trial_id, v.id, g.name, gv.version, g.kind, c.name, v.value,"
            " v.criterion_class, v.is_mandatory, v.by_id IS NULL, v.raw_word, v.score,"
            " v.cited_steps"
            # LATERAL with OFFSET: an index look-up a trial, never a scan of the whole table.
            " FROM unnest(%s::bigint[]) AS w(id) CROSS JOIN LATERAL"
            " (SELECT * FROM reviews_verdict WHERE trial_id = w.id OFFSET 0) v"
            " JOIN reviews_graderversion gv ON gv.id = v.grader_version_id"
            " JOIN reviews_grader g ON g.id = gv.grader_id"
            " JOIN reviews_criterion c ON c.id = v.criterion_id"
            " ORDER BY v.trial_id, v.id",
            [list(trial_ids)],
        )
        for trial_id, *row in cursor.fetchall():
            found.setdefault(trial_id, []).append(_given(*row))
    return {trial_id: tuple(verdicts) for trial_id, verdicts in found.items()}


def _given(
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
) -> GivenVerdict:
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
        raw_word=raw_word,
        score=score,
        cited_steps=tuple(cited),
    )
