"""Signatures on releases as they are stored, and as the states read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import connection

from reviews.core.gate.signing import Signature, Terms
from reviews.core.gate.states import Meaning
from reviews.models import SignOff, SignOffVoid
from reviews.permissions.sign_offs import SignedRelease
from reviews.selectors.gate_basis import GateSubject, basis_at, basis_at_start, gate_subject
from traces.models import Member


def sign_offs_of(release_pk: int) -> list[SignOff]:
    """The signatures on a release, oldest first, with who and what they are about. One query."""
    return list(
        SignOff.objects.filter(release=release_pk)
        .select_related("by", "manifest", "void__by")
        .defer("manifest__content")
        .order_by("pk")
    )


def void_of(row: SignOff) -> SignOffVoid | None:
    """The void of a signature that was read with it."""
    return getattr(row, "void", None)


def terms_of(row: SignOff) -> Terms:
    """The words of a stored signature."""
    return Terms(
        meaning=Meaning(row.meaning),
        intended_use=row.intended_use,
        scope=row.scope,
        expires_on=row.expires_on,
        reason=row.reason,
        next_action=row.next_action,
        waived_tier=row.waived_tier,
        waived_check=row.waived_check,
    )


def signatures_of(rows: Sequence[SignOff]) -> tuple[Signature, ...]:
    """Stored signatures as the states read them, with the order in which all of it happened."""
    acts: list[tuple[datetime, int, int]] = []
    for row in rows:
        acts.append((row.signed_at, 0, row.pk))
        if void := void_of(row):
            acts.append((void.voided_at, 1, row.pk))
    order = {(kind, pk): n for n, (_, kind, pk) in enumerate(sorted(acts))}
    found = [
        Signature(
            key=row.pk,
            by=row.by_id,
            digest=row.manifest.digest,
            terms=terms_of(row),
            n_needed=row.n_needed,
            order=order[0, row.pk],
            voided_order=order.get((1, row.pk)),
        )
        for row in rows
    ]
    return tuple(found)


def without(signatures: Iterable[Signature], key: int) -> tuple[Signature, ...]:
    """Signatures as they would stand if one were void."""
    return tuple(replace(each, voided_order=-1) if each.key == key else each for each in signatures)


def roles_now(system_pk: int, user_pks: Iterable[int]) -> Mapping[int, str]:
    """The roles that people have in a system now. One query."""
    rows = Member.objects.filter(system=system_pk, user__in=set(user_pks))
    return dict(rows.values_list("user_id", "role"))


_TASKS = """
SELECT t.task_id FROM traces_run r JOIN traces_trial t ON t.run_id = r.id
WHERE r.release_id = %(release)s
UNION SELECT d.task_id FROM traces_run r JOIN traces_runtask d ON d.run_id = r.id
WHERE r.release_id = %(release)s
"""


def signed_release(release_pk: int) -> tuple[SignedRelease, GateSubject]:
    """A release with the contract versions that its gate applies. At most 7 queries."""
    subject = gate_subject(release_pk)
    with connection.cursor() as cursor:
        cursor.execute(_TASKS, {"release": release_pk})
        tasks = [task for (task,) in cursor.fetchall()]
    moved = subject.reevaluation
    basis = basis_at(subject, tasks, moved.made_at) if moved else basis_at_start(subject, tasks)
    contracts = tuple(sorted(set(basis.contract_of.values())))
    return SignedRelease(subject.pk, subject.system_pk, contracts), subject
