"""Vouching: a reviewer's word that imported human verdicts are what those people said."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from evalsite.common.audit import MOST_NAMED, AuditedObject, record
from reviews.core.disposition import GivenVerdict
from reviews.core.notices import imported_notice
from reviews.models import Flag, FlagClosing, FlagCode, Verdict, Vouch
from reviews.permissions.flags import brought_evidence, role_in
from reviews.permissions.vouching import vouching_refusal
from traces.core.records import GraderKind, VerdictValue
from traces.core.text_marks import clean_text, count_marks
from traces.models import Role, System, Upload, User

log = logging.getLogger("evalsite.vouching")

LONGEST_REASON = 2_000  # characters
BATCH = 2_000
VOUCHED = "Vouched for: {}"


class VouchError(Exception):
    """A refusal, with its sentence for people."""


class VouchDeniedError(VouchError):
    """Somebody who may not do that."""


@transaction.atomic
def vouch_for(
    system: System, verdict_ids: Iterable[int], *, reason: str, by: User, now: datetime
) -> list[int]:
    """Vouch for imported human verdicts of a system. Returns the trials that they are of.

    Those that somebody vouched for already are left as they are. The flags that asked for it are
    closed. Raises `VouchDeniedError` when the person may not vouch for one of them, and
    `VouchError` without a reason or with one that is too long, and when there is nothing to
    vouch for. The caller decides the trials anew.
    """
    role = role_in(system.pk, by)
    if refusal := vouching_refusal(role, has_brought=False):
        raise VouchDeniedError(refusal)
    why = clean_text(reason).strip()
    if count_marks(why) >= len("".join(why.split())):
        raise VouchError("Say how you know that these people said it.")
    if len(why) > LONGEST_REASON:
        raise VouchError(f"A reason has at most {LONGEST_REASON:,} characters.")
    # The lock of the system keeps two vouchings apart: the later one finds nothing left.
    System.objects.select_for_update(no_key=True).get(pk=system.pk)
    verdicts = list(
        Verdict.objects.select_related("grader_version__grader", "criterion", "trial")
        .filter(
            pk__in=list(verdict_ids),
            trial__system=system,
            grader_version__grader__kind=GraderKind.HUMAN.value,
            by=None,
            vouch=None,
        )
        .order_by("pk")
    )
    if not verdicts:
        raise VouchError("There is nothing left here to vouch for.")
    if refusal := _refusal(role, verdicts, by):
        raise VouchDeniedError(refusal)
    Vouch.objects.bulk_create(
        [Vouch(verdict=verdict, reason=why, by=by, vouched_at=now) for verdict in verdicts],
        batch_size=BATCH,
    )
    _close_flags(verdicts, why, by, now)
    first = verdicts[0]
    record(
        "verdict.vouched",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject(
            "criterion",
            str(first.criterion_id),
            f"{first.grader_version.grader.name} on {first.criterion.name}",
        ),
        after={
            "n_verdicts": len(verdicts),
            "verdicts": [verdict.pk for verdict in verdicts[:MOST_NAMED]],
        },
        reason=why,
        rows=[("reviews_vouch", verdict.pk) for verdict in verdicts],
    )
    log.info("verdicts vouched for", extra={"n": len(verdicts), "by": by.username})
    return sorted({verdict.trial_id for verdict in verdicts})


def _refusal(role: Role | None, verdicts: list[Verdict], by: User) -> str:
    uploads = [verdict.upload_id for verdict in verdicts if verdict.upload_id is not None]
    theirs = Q(by=by) | Q(api_key__user=by)
    has_brought = Upload.objects.filter(theirs, pk__in=uploads).exists() or any(
        brought_evidence(release, by)
        for release in sorted({verdict.trial.release_id for verdict in verdicts})
    )
    return vouching_refusal(role, has_brought=has_brought)


def _close_flags(verdicts: list[Verdict], why: str, by: User, now: datetime) -> None:
    """Close the flags that the product raised because nobody vouched."""
    wanted = {(verdict.trial_id, imported_notice(_as_given(verdict)).key) for verdict in verdicts}
    flags = Flag.objects.select_for_update(no_key=True, of=("self",)).filter(
        trial__in={trial for trial, _ in wanted},
        code=FlagCode.IMPORTED_HUMAN_VERDICT.value,
        closing=None,
    )
    FlagClosing.objects.bulk_create(
        [
            FlagClosing(
                flag=flag, reason=VOUCHED.format(why)[:LONGEST_REASON], by=by, closed_at=now
            )
            for flag in flags.order_by("pk")
            if (flag.trial_id, flag.key.bytes) in wanted
        ],
        batch_size=BATCH,
    )


def _as_given(verdict: Verdict) -> GivenVerdict:
    return GivenVerdict(
        id=str(verdict.pk),
        grader=verdict.grader_version.grader.name,
        grader_version=verdict.grader_version.version,
        kind=GraderKind.HUMAN,
        criterion=verdict.criterion.name,
        value=VerdictValue(verdict.value),
    )
