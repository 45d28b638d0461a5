"""One of everything that gates, signatures, members and the audit log have an address for."""

from __future__ import annotations

import hashlib
from datetime import timedelta

from django.utils import timezone

from evalsite.models import AuditEvent
from reviews.core.gate.states import Meaning
from reviews.models import (
    EvidenceManifest,
    GateAlert,
    RiskTier,
    RunExclusion,
    SignOff,
    ThresholdSet,
)
from traces.models import ApiKey, Invitation, Role, Scope, Trial, User

THRESHOLDS = {
    "version": 1,
    "owners": 1,
    "checks": {
        "prohibited": {"at_most": 0},
        "unresolved": {"at_most": 0},
        "fewest_trials": {"at_least": 1},
        "declared": {},
    },
}


def gates_of(trial: Trial, by: User, *, number: int) -> dict[str, object]:
    """A tier with thresholds, a signature, an alert and the rest, under one number."""
    system, now = trial.system, timezone.now()
    tier = RiskTier.objects.create(system=system, name="payments", made_by=by, made_at=now)
    ThresholdSet.objects.create(
        tier=tier,
        number=number,
        document=THRESHOLDS,
        digest="0" * 64,
        reason="x",
        by=by,
        made_at=now,
        in_force_from=now,
    )
    digest = hashlib.sha256(str(trial.uuid).encode()).hexdigest()
    sign_off = SignOff.objects.create(
        system=system,
        release=trial.release,
        manifest=EvidenceManifest.objects.create(digest=digest, content=b""),
        revision=1,
        meaning=Meaning.REJECTED.value,
        by=by,
        printed_name=by.printed_name,
        role=Role.OWNER.value,
        signed_at=now,
        reason="x",
        next_action="x",
        n_needed=1,
        key_id="k",
        envelope="{}",
    )
    RunExclusion.objects.create(run=trial.run, reason="x", by=by, left_out_at=now)
    key = ApiKey.objects.create(
        system=system,
        user=by,
        name="ci",
        prefix=str(system.pk).zfill(12),
        secret_sha256=bytes(32),
        scopes=[Scope.READ.value],
        expires_at=now + timedelta(days=1),
    )
    invitation = Invitation.objects.create(
        system=system,
        role=Role.VIEWER.value,
        note="x",
        secret_sha256=bytes(32),
        made_by=by,
        made_at=now,
        expires_at=now + timedelta(days=1),
    )
    event = AuditEvent.objects.create(
        system=system,
        seq=number,
        at=now,
        actor=by,
        act="run.left_out",
        object_kind="run",
        object_id=str(trial.run.uuid),
        source="page",
        previous="",
        hash="0" * 64,
        key_id="k",
        tag="0" * 64,
    )
    alert = GateAlert.objects.create(
        system=system,
        release=trial.release,
        trial=trial,
        harm="money",
        tier_name=tier.name,
        raised_at=now,
    )
    return {
        "tier": tier.uuid,
        "kind": "prohibited",
        "sign_off": sign_off.uuid,
        "alert": alert.uuid,
        "seq": event.seq,
        "person": by.uuid,
        "invitation": invitation.uuid,
        "key": key.uuid,
    }
