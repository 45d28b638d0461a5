"""The last signed release before another: what a gate's regression check compares with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.core.gate.signing import Decision, Signature, Terms, last_approval
from reviews.core.gate.states import Meaning
from reviews.selectors.gate_basis import GateSubject


@dataclass(frozen=True, slots=True)
class SignedRelease:
    """A release with the approval that stands: its last signature, and what it covers."""

    release_pk: int
    release: str
    release_uuid: UUID
    sign_off_pk: int
    sign_off: UUID
    digest: str
    signed_at: datetime


_SIGNATURES = """
SELECT s.id, s.uuid, s.release_id, r.name, r.uuid, s.by_id, m.digest, s.meaning, s.intended_use,
       s.scope, s.expires_on, s.reason, s.next_action, s.waived_tier, s.waived_check, s.n_needed,
       s.signed_at
FROM reviews_signoff s
JOIN traces_release r ON r.id = s.release_id
JOIN reviews_evidencemanifest m ON m.id = s.manifest_id
WHERE s.system_id = %s AND NOT EXISTS (
    SELECT FROM reviews_signoffvoid v WHERE v.sign_off_id = s.id
)
ORDER BY s.id
"""


def approved_releases(system_pk: int) -> tuple[SignedRelease, ...]:
    """The releases of a system whose approval stands, by their approval. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_SIGNATURES, [system_pk])
        rows = cursor.fetchall()
    by_release: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_release.setdefault(row[2], []).append(row)
    found = [_approved(signed) for signed in by_release.values()]
    return tuple(sorted((each for each in found if each), key=lambda each: each.sign_off_pk))


def _approved(rows: Sequence[tuple[Any, ...]]) -> SignedRelease | None:
    decision = last_approval(_signature(*row) for row in rows)
    if decision is None:
        return None
    last = _last(decision)
    (row,) = (row for row in rows if row[0] == last)
    return SignedRelease(row[2], row[3], row[4], row[0], row[1], row[6], row[-1])


def _last(decision: Decision) -> int:
    return max(signature.key for signature in decision.signatures)


def _signature(
    pk: int,
    _uuid: UUID,
    _release: int,
    _name: str,
    _release_uuid: UUID,
    by: int,
    digest: str,
    meaning: str,
    intended_use: str,
    scope: str,
    expires_on: Any,
    reason: str,
    next_action: str,
    waived_tier: str,
    waived_check: str,
    n_needed: int,
    _signed_at: datetime,
) -> Signature:
    terms = Terms(
        Meaning(meaning),
        intended_use,
        scope,
        expires_on,
        reason,
        next_action,
        waived_tier,
        waived_check,
    )
    return Signature(pk, by, digest, terms, n_needed, order=pk)


def baseline_of(subject: GateSubject, approved: Iterable[SignedRelease]) -> SignedRelease | None:
    """The last signed release beside this one: before this one's own approval, where it has one."""
    known = tuple(approved)
    own = [each.sign_off_pk for each in known if each.release_pk == subject.pk]
    others = [
        each
        for each in known
        if each.release_pk != subject.pk and (not own or each.sign_off_pk < own[0])
    ]
    return others[-1] if others else None
