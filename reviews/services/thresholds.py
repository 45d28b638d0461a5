"""New versions of a tier's thresholds."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import time_text
from evalsite.common.gate_marks import touch_gates
from reviews.core.gate.model import Thresholds
from reviews.core.gate.thresholds import (
    parse_thresholds,
    thresholds_digest,
    thresholds_document,
)
from reviews.models import RiskTier, ThresholdSet
from reviews.permissions.flags import role_in
from reviews.permissions.thresholds import thresholds_refusal
from reviews.services.tiers import (
    TierDeniedError,
    TierError,
    check_in_use,
    lock_gates_of,
    reason_of,
)
from traces.models import User

log = logging.getLogger("evalsite.thresholds")


class ThresholdConflictError(TierError):
    """Another version came since the person looked."""


@transaction.atomic
def make_threshold_set(
    tier: RiskTier,
    thresholds: Thresholds,
    *,
    reason: str,
    in_force_from: datetime | None,
    by: User,
    now: datetime,
    seen_number: int,
) -> ThresholdSet:
    """Put a further version of a tier's thresholds in force, from an instant on.

    `in_force_from` None: from now on. `seen_number` is that of the newest version that the person
    saw, 0 for none. Runs that began before keep the version that was in force then. Raises
    `TierDeniedError` when the person may not, `ThresholdConflictError` when another version came
    meanwhile, and `TierError` for thresholds that cannot be, a time that has passed, a tier that
    is retired, the same thresholds again, and without a reason.
    """
    if refusal := thresholds_refusal(role_in(tier.system_id, by)):
        raise TierDeniedError(refusal)
    document = thresholds_document(thresholds)
    read = parse_thresholds(document)
    if not isinstance(read, Thresholds):
        raise TierError(" ".join(problem.sentence for problem in read))
    why = reason_of(reason)
    since = in_force_from or now
    if since < now:
        raise TierError(
            f"Thresholds are in force from now or from a later time on, never from one that has "
            f"passed: {time_text(since)}."
        )
    releases = lock_gates_of(tier.system_id)
    check_in_use(tier)
    newest = _newest(tier)
    _check_seen(newest, seen_number)
    digest = thresholds_digest(thresholds)
    if newest and newest.digest == digest and newest.in_force_from <= since:
        raise TierError(f"These are the thresholds of version {newest.number} already.")
    row = ThresholdSet.objects.create(
        tier=tier,
        number=newest.number + 1 if newest else 1,
        document=document,
        digest=digest,
        reason=why,
        by=by,
        made_at=now,
        in_force_from=since,
    )
    touch_gates(releases, now=now)
    record(
        "threshold_set.made",
        system_pk=tier.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject(
            "threshold_set", str(row.uuid), f"tier {tier.name}, version {row.number}"
        ),
        before={"number": newest.number, "digest": newest.digest, "thresholds": newest.document}
        if newest
        else None,
        after={
            "number": row.number,
            "digest": digest,
            "in_force_from": since,
            "thresholds": document,
        },
        reason=why,
        rows=[("reviews_thresholdset", row.pk)],
    )
    log.info("thresholds set", extra={"tier": tier.pk, "number": row.number, "by": by.username})
    return row


def _newest(tier: RiskTier) -> ThresholdSet | None:
    rows = ThresholdSet.objects.filter(tier=tier).select_related("by").order_by("-number")
    return rows.first()


def _check_seen(newest: ThresholdSet | None, seen: int) -> None:
    if newest and newest.number != seen:
        name = newest.by.printed_name if newest.by else "The operator"
        raise ThresholdConflictError(
            f"{name} set version {newest.number} at {time_text(newest.made_at)}, after you opened "
            "this page. Look at it, then decide again."
        )
    if newest is None and seen:
        raise ThresholdConflictError("That version of these thresholds does not exist.")
