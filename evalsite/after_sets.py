"""What people do to calibration sets, and the calibrations and trials that follow from it."""

from __future__ import annotations

from datetime import datetime

from evalsite.after_calibration import all_evidence_locked, calibrations_and_decide
from reviews.models import CalibrationItem, CalibrationSet, SetVouch
from reviews.services.calibration_sets import complete_if_done, vouch_for_set, withdraw_item
from traces.models import User


def withdraw_and_complete(item: CalibrationItem, *, reason: str, by: User, now: datetime) -> bool:
    """Take an item out of its set (`withdraw_item`). Whether that completed the set.

    A set that is complete by it is read for calibrations at once.
    """
    of = CalibrationSet.objects.select_related("system", "criterion").get(pk=item.set_id)
    with all_evidence_locked(of.system):
        withdraw_item(item, reason=reason, by=by, now=now)
        is_complete = complete_if_done(of, now=now)
        if is_complete:
            calibrations_and_decide(of.system, of.criterion, of.criterion_digest, now=now)
    return is_complete


def vouch_and_decide(
    calibration_set: CalibrationSet, *, reason: str, by: User, now: datetime
) -> SetVouch:
    """Vouch for imported labels (`vouch_for_set`): judges are held against them from now on."""
    of = CalibrationSet.objects.select_related("system", "criterion").get(pk=calibration_set.pk)
    with all_evidence_locked(of.system):
        vouch = vouch_for_set(of, reason=reason, by=by, now=now)
        calibrations_and_decide(of.system, of.criterion, of.criterion_digest, now=now, by=by)
    return vouch
