"""What reviewers decided about disputes on a trial: who, when, why, and what was corrected."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection

from reviews.core.disposition import (
    Adjudication,
    AdjudicationRuling,
    Requirement,
    chain_on,
    heads_on,
)


@dataclass(frozen=True, slots=True)
class HeldRuling:
    """One adjudication: what the disposition reads of it, and what people read."""

    given: Adjudication
    uuid: UUID
    reason: str
    cited_steps: tuple[int, ...]
    by_name: str
    by_pk: int
    at: datetime
    is_label: bool  # the third blind label of an item, whose first two differ
    dispute: UUID | None  # the dispute's page, where there is one
    is_replaced: bool  # a later one corrects it


_RULINGS = {ruling.value: ruling for ruling in AdjudicationRuling}
_ON_TRIAL = """
SELECT a.id, c.name, a.ruling, a.rubric_version, a.criterion_digest, a.evidence_order,
       a.replaces_id, a.is_by_party, a.uuid, a.reason, a.cited_steps,
       coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username), p.id,
       a.decided_at, EXISTS (SELECT FROM reviews_label l WHERE l.adjudication_id = a.id),
       d.uuid, EXISTS (SELECT FROM reviews_adjudication r WHERE r.replaces_id = a.id)
FROM reviews_adjudication a
JOIN reviews_criterion c ON c.id = a.criterion_id
JOIN traces_user p ON p.id = a.by_id
LEFT JOIN reviews_dispute d ON d.trial_id = a.trial_id AND d.criterion = c.name
WHERE a.trial_id = %s ORDER BY a.id
"""


def rulings_on(trial_pk: int) -> tuple[HeldRuling, ...]:
    """The adjudications of a trial in the order they came, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_ON_TRIAL, [trial_pk])
        return tuple(_held(*row) for row in cursor.fetchall())


def rulings_about(
    rulings: Iterable[HeldRuling], requirement: Requirement
) -> tuple[HeldRuling, ...]:
    """Those that are the chain of a requirement. What another wording corrected stands here."""
    held = tuple(rulings)
    given = [each.given for each in held]
    chain = {each.id for each in chain_on(requirement, given)}
    heads = {each.id for each in heads_on(requirement, given)}
    return tuple(
        replace(each, is_replaced=each.given.id not in heads)
        for each in held
        if each.given.id in chain
    )


def _held(
    pk: int,
    criterion: str,
    ruling: str,
    rubric: str,
    digest: UUID | None,
    evidence_order: int,
    replaces: int | None,
    is_by_party: bool,  # noqa: FBT001 - a column
    identity: UUID,
    reason: str,
    cited: list[int],
    by_name: str,
    by_pk: int,
    at: datetime,
    is_label: bool,  # noqa: FBT001 - a column
    dispute: UUID | None,
    is_replaced: bool,  # noqa: FBT001 - a column
) -> HeldRuling:
    given = Adjudication(
        id=str(pk),
        criterion=criterion,
        ruling=_RULINGS[ruling],
        rubric_version=rubric or None,
        criterion_digest=None if digest is None else digest.bytes,
        evidence_order=evidence_order,
        replaces=None if replaces is None else str(replaces),
        is_by_party=is_by_party,
    )
    return HeldRuling(
        given=given,
        uuid=identity,
        reason=reason,
        cited_steps=tuple(cited),
        by_name=by_name,
        by_pk=by_pk,
        at=at,
        is_label=is_label,
        dispute=dispute,
        is_replaced=is_replaced,
    )
