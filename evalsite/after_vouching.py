"""Vouching for imported human verdicts, and the trials that it decides anew."""

from __future__ import annotations

from datetime import datetime

from evalsite.after_review import decided_again, evidence_locked
from reviews.models import Verdict
from reviews.services.vouching import vouch_for
from traces.models import System, Trial, User


def vouch_and_decide(
    system: System,
    group: tuple[int, int, int],
    *,
    reason: str,
    by: User,
    now: datetime,
    trial: Trial | None = None,
) -> int:
    """Vouch for one person's verdicts on a criterion out of one upload; the trials follow.

    `group` is grader version, criterion and upload. With `trial` only the verdicts on it. Returns
    how many trials were decided anew. Raises what `reviews.services.vouching.vouch_for` raises.
    """
    grader_version, criterion, upload = group
    rows = Verdict.objects.filter(
        trial__system=system, grader_version=grader_version, criterion=criterion, upload=upload
    )
    if trial is not None:
        rows = rows.filter(trial=trial)
    found = dict(rows.order_by("pk").values_list("pk", "trial_id"))
    with evidence_locked(system, set(found.values())):
        trials = vouch_for(system, found, reason=reason, by=by, now=now)
        decided_again(trials, system, now=now)
    return len(trials)
