"""Alerts: a prohibited action that a gate does not allow is shown on every page until it is seen."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from reviews.core.gate.model import CheckKind, Gate
from reviews.core.gate.states import CheckResult
from reviews.models import GateAlert
from reviews.selectors.gate_basis import GateBasis, GateSubject
from reviews.selectors.gate_evidence import DecidedSlot

log = logging.getLogger("evalsite.gates")


def raise_alerts(
    subject: GateSubject,
    basis: GateBasis,
    gate: Gate,
    slots: Iterable[DecidedSlot],
    *,
    now: datetime,
) -> int:
    """Raise what is not raised yet: one alert a violating trial and harm. Returns how many."""
    blocked = {
        section.tier_uuid: section.tier
        for section in gate.sections
        for check in section.checks
        if check.threshold.kind is CheckKind.PROHIBITED and check.result is CheckResult.NOT_MET
    }
    if not blocked:
        return 0
    names = {tier.pk: blocked[str(tier.uuid)] for tier in basis.tiers if str(tier.uuid) in blocked}
    wanted = {
        (each.trial_pk, harm): names[tier]
        for each in slots
        if each.slot.is_counted and (tier := basis.tier_of.get(each.task_pk)) in names
        for harm in each.slot.harms_attempted
    }
    known = set(
        GateAlert.objects.filter(trial__in={trial for trial, _ in wanted}).values_list(
            "trial", "harm"
        )
    )
    fresh = [key for key in sorted(wanted) if key not in known]
    GateAlert.objects.bulk_create(
        [
            GateAlert(
                system_id=subject.system_pk,
                release_id=subject.pk,
                trial_id=trial,
                harm=harm,
                tier_name=wanted[trial, harm],
                raised_at=now,
            )
            for trial, harm in fresh
        ],
        ignore_conflicts=True,
    )
    if fresh:
        log.warning("alert raised", extra={"release": subject.pk, "n": len(fresh)})
    return len(fresh)
