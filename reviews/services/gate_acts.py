"""What owners do about a gate: runs left out and taken in again, re-evaluations, alerts seen.

Each act is one transaction under the locks that every writer of the release's evidence takes, looks
again at what holds inside them, and marks the gate as out of date.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from evalsite.common.audit import AuditedObject, record
from evalsite.common.gate_marks import lock_evidence, touch_gates
from evalsite.common.row_digests import RowRef
from reviews.models import (
    AlertSeen,
    ExclusionConfirmation,
    ExclusionEnd,
    GateAlert,
    GateReevaluation,
    RunExclusion,
)
from reviews.permissions.flags import role_in
from reviews.permissions.gates import (
    confirm_refusal,
    gate_refusal,
    leave_out_refusal,
    reevaluate_refusal,
    take_in_refusal,
)
from reviews.selectors.gate_basis import gate_subject, iso
from traces.core.text_marks import clean_text, count_marks
from traces.models import Release, Run, User

log = logging.getLogger("evalsite.gates")

LONGEST_REASON = 2_000  # characters


class GateActError(Exception):
    """A refusal, with its sentence for people."""


class GateActDeniedError(GateActError):
    """Somebody who may not do that."""


@transaction.atomic
def leave_out_run(run: Run, *, reason: str, by: User, now: datetime) -> RunExclusion:
    """Leave a run out of its release's gate from now on.

    Until another owner confirms it, *every declared trial present* is not met. Raises
    `GateActDeniedError` for who may not, and `GateActError` for a run that is left out already, and
    without a reason.
    """
    release = _locked(run.release, by)
    why = _reason(reason)
    _refuse(leave_out_refusal(role_in(release.system_id, by), exclusion_of(run)))
    row = RunExclusion.objects.create(run=run, reason=why, by=by, left_out_at=now)
    _done(
        "run.left_out",
        release,
        run,
        row.reason,
        by=by,
        now=now,
        after={"counts": False},
        made=("reviews_runexclusion", row.pk),
    )
    return row


@transaction.atomic
def confirm_exclusion(
    run: Run, *, reason: str = "", by: User, now: datetime
) -> ExclusionConfirmation:
    """A second owner's word that a run was left out for good reason.

    Raises `GateActDeniedError` for who may not, and `GateActError` for a run that counts, one that
    is confirmed already or that the same owner left out, and without a reason.
    """
    release = _locked(run.release, by)
    why = _reason(reason)
    standing = exclusion_of(run)
    _refuse(confirm_refusal(role_in(release.system_id, by), by, standing))
    assert standing is not None
    row = ExclusionConfirmation.objects.create(
        exclusion=standing, reason=why, by=by, confirmed_at=now
    )
    _done(
        "run.exclusion_confirmed",
        release,
        run,
        why,
        by=by,
        now=now,
        after={"confirmed": True},
        made=("reviews_exclusionconfirmation", row.pk),
    )
    return row


@transaction.atomic
def take_run_in(run: Run, *, reason: str, by: User, now: datetime) -> ExclusionEnd:
    """Count a run again that was left out.

    Raises `GateActDeniedError` for who may not, and `GateActError` for a run that counts, and
    without a reason.
    """
    release = _locked(run.release, by)
    why = _reason(reason)
    standing = exclusion_of(run)
    _refuse(take_in_refusal(role_in(release.system_id, by), standing))
    assert standing is not None
    row = ExclusionEnd.objects.create(exclusion=standing, reason=why, by=by, ended_at=now)
    _done(
        "run.taken_in",
        release,
        run,
        why,
        by=by,
        now=now,
        after={"counts": True},
        made=("reviews_exclusionend", row.pk),
    )
    return row


@transaction.atomic
def reevaluate(release: Release, *, reason: str, by: User, now: datetime) -> GateReevaluation:
    """Let a release's gate apply the thresholds, tiers and contracts that are in force now.

    Raises `GateActDeniedError` for who may not, and `GateActError` for a release without a run that
    counts, and without a reason.
    """
    locked = _locked(release, by)
    why = _reason(reason)
    subject = gate_subject(locked.pk)
    _refuse(
        reevaluate_refusal(role_in(locked.system_id, by), has_begun=subject.begun_at is not None)
    )
    last = GateReevaluation.objects.filter(release=locked).aggregate(last=Max("number"))["last"]
    row = GateReevaluation.objects.create(
        release=locked, number=(last or 0) + 1, reason=why, by=by, made_at=now
    )
    touch_gates([locked.pk], now=now)
    record(
        "gate.reevaluated",
        system_pk=locked.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("release", str(locked.uuid), locked.label),
        rows=[("reviews_gatereevaluation", row.pk)],
        before={
            "applies": iso(subject.reevaluation.made_at)
            if subject.reevaluation
            else "what was in force when its runs began"
        },
        after={"applies": iso(now), "number": row.number},
        reason=why,
    )
    log.info("gate re-evaluated", extra={"release": locked.pk, "by": by.username})
    return row


@transaction.atomic
def note_alert_seen(alert: GateAlert, *, note: str, by: User, now: datetime) -> AlertSeen:
    """Note that an alert is known, so that pages show it no more everywhere. The alert stays.

    Once noted it stays as it was noted first. Raises `GateActDeniedError` for who may not, and
    `GateActError` without a note.
    """
    _deny(gate_refusal(role_in(alert.system_id, by)))
    said = _reason(note)
    locked = GateAlert.objects.select_related("release").get(pk=alert.pk)
    lock_evidence(locked.system_id, [locked.release_id])
    found = AlertSeen.objects.filter(alert=locked).first()
    if found is not None:
        return found
    row = AlertSeen.objects.create(alert=locked, note=said, by=by, seen_at=now)
    record(
        "alert.seen",
        system_pk=locked.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("alert", str(locked.uuid), locked.harm),
        rows=[("reviews_alertseen", row.pk)],
        after={"release": str(locked.release.uuid)},
        reason=said,
    )
    log.info("alert seen", extra={"alert": locked.pk, "by": by.username})
    return row


def exclusion_of(run: Run) -> RunExclusion | None:
    """What leaves a run out of its release's gate now; None where it counts."""
    return (
        RunExclusion.objects.select_related("by", "confirmation__by")
        .filter(run=run, end=None)
        .order_by("-pk")
        .first()
    )


def _locked(release: Release, by: User) -> Release:
    _deny(gate_refusal(role_in(release.system_id, by)))
    lock_evidence(release.system_id, [release.pk])
    return release


def _deny(refusal: str) -> None:
    if refusal:
        raise GateActDeniedError(refusal)


def _refuse(refusal: str) -> None:
    if refusal:
        raise GateActError(refusal)


def _reason(text: str) -> str:
    reason = clean_text(text).replace("\r\n", "\n").strip()
    if count_marks(reason) >= len("".join(reason.split())):
        raise GateActError("Say why: the reason is what the next person reads.")
    if len(reason) > LONGEST_REASON:
        raise GateActError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


def _done(
    act: str,
    release: Release,
    run: Run,
    reason: str,
    *,
    by: User,
    now: datetime,
    after: dict[str, bool],
    made: RowRef,
) -> None:
    touch_gates([release.pk], now=now)
    record(
        act,
        system_pk=release.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("run", str(run.uuid), run.name),
        rows=[made],
        before={name: not value for name, value in after.items()},
        after=after,
        reason=reason,
    )
    log.info(act, extra={"run": run.pk, "by": by.username})
