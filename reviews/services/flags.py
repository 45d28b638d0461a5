"""Flags: raised by people and by the product, closed with a reason. None is ever taken back."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from evalsite.common.audit import MOST_NAMED, AuditedObject, record
from evalsite.common.formatting import time_text
from reviews.core.disposition import GivenVerdict
from reviews.core.notices import NoticedTrial, notices_on
from reviews.models import Flag, FlagClosing, FlagCode
from reviews.permissions.flags import (
    brought_evidence,
    closing_refusal,
    flagging_refusal,
    role_in,
)
from traces.core.text_marks import clean_text, count_marks
from traces.models import Role, Trial, User

log = logging.getLogger("evalsite.flags")

LONGEST_REASON = 2_000  # characters
NOT_OF_TRIAL = "A chosen flag is not one of this trial. Nothing was closed."


class FlagError(Exception):
    """A refusal, with its sentence for people."""


class FlagDeniedError(FlagError):
    """Somebody who may not do that."""


@dataclass(frozen=True, slots=True)
class DecidedTrial:
    """A trial with all its verdicts, as they stand when it is decided."""

    pk: int
    system_id: int
    facts: NoticedTrial
    verdicts: Sequence[GivenVerdict]


@transaction.atomic
def flag_trial(trial: Trial, *, reason: str, by: User, now: datetime) -> Flag:
    """Ask for a second look at a trial. It changes no disposition.

    Raises `FlagDeniedError` when the person is no member of the system, and `FlagError` without a
    reason or with one that is too long.
    """
    if refusal := flagging_refusal(role_in(trial.system_id, by)):
        raise FlagDeniedError(refusal)
    flag = Flag.objects.create(
        system_id=trial.system_id,
        trial=trial,
        code=FlagCode.PERSON.value,
        key=uuid.uuid4(),
        reason=_reason(reason),
        by=by,
        raised_at=now,
    )
    record(
        "flag.raised",
        system_pk=flag.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("flag", str(flag.uuid), f"Flag on trial {trial.label}"),
        after={"trial": str(trial.uuid)},
        reason=flag.reason,
        rows=[("reviews_flag", flag.pk)],
    )
    log.info(
        "flag raised",
        extra={"flag": str(flag.uuid), "trial": str(trial.uuid), "by": by.username},
    )
    return flag


def close_flag(flag: Flag, *, reason: str, by: User, now: datetime) -> FlagClosing:
    """Say why a flag needs no further look. A flag is closed once and stays visible.

    Raises `FlagDeniedError` when the person may not, and `FlagError` when it is closed already,
    and without a reason or with one that is too long.
    """
    return close_flags([flag], reason=reason, by=by, now=now)[0]


@transaction.atomic
def close_flags(
    flags: Iterable[Flag], *, reason: str, by: User, now: datetime
) -> tuple[FlagClosing, ...]:
    """Close flags of one trial with the same reason: all of them or none, each by a row of its own.

    Returns the closings in the order in which the flags were raised. Raises `FlagDeniedError` when
    the person may not close one of them, and `FlagError` when they are not flags of one trial,
    when one is closed already, and without a reason or with one that is too long.
    """
    # The locks keep two closings apart: the later one sees the earlier one below. They are taken
    # in one order, so that two people who chose the same flags never wait in a circle.
    locked = list(
        Flag.objects.select_for_update(no_key=True, of=("self",))
        .select_related("trial")
        .filter(pk__in={flag.pk for flag in flags})
        .order_by("pk")
    )
    if len({(flag.system_id, flag.trial_id) for flag in locked}) != 1:
        raise FlagError(NOT_OF_TRIAL)
    if refusal := _closing_refusal(locked, by):
        raise FlagDeniedError(refusal)
    earlier = FlagClosing.objects.select_related("by").filter(flag__in=locked).order_by("pk")
    if found := earlier.first():
        sentence = closed_sentence if len(locked) == 1 else closed_among_sentence
        raise FlagError(sentence(found.by.printed_name, found.closed_at))
    why = _reason(reason)
    closings = FlagClosing.objects.bulk_create(
        [FlagClosing(flag=flag, reason=why, by=by, closed_at=now) for flag in locked]
    )
    first = locked[0]
    record(
        "flag.closed",
        system_pk=first.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("flag", str(first.uuid), f"Flag on trial {first.trial.label}")
        if len(locked) == 1
        else AuditedObject(
            "trial", str(first.trial.uuid), f"{len(locked)} flags on trial {first.trial.label}"
        ),
        after={
            "trial": str(first.trial.uuid),
            "flags": [str(flag.uuid) for flag in locked[:MOST_NAMED]],
        },
        reason=why,
        rows=[("reviews_flagclosing", flag.pk) for flag in locked],
    )
    for flag in locked:
        log.info("flag closed", extra={"flag": str(flag.uuid), "by": by.username})
    return tuple(closings)


def _closing_refusal(flags: Sequence[Flag], by: User) -> str:
    """Why a person may not close one of these flags of a trial; "" when they may close them all."""
    role = role_in(flags[0].system_id, by)
    is_reviewer = role is Role.REVIEWER
    has_brought = is_reviewer and brought_evidence(flags[0].trial.release_id, by)
    refusals = (
        closing_refusal(role, is_own=flag.by_id == by.pk, has_brought=has_brought) for flag in flags
    )
    return next(filter(None, refusals), "")


def closed_sentence(by_name: str, closed_at: datetime) -> str:
    """Why a flag cannot be closed again."""
    return f"{by_name} closed this flag at {time_text(closed_at)}; it is closed once."


def closed_among_sentence(by_name: str, closed_at: datetime) -> str:
    """Why none of several flags is closed: somebody closed one of them meanwhile."""
    return (
        f"{by_name} closed one of these flags at {time_text(closed_at)}; it is closed once. "
        "Nothing was closed now."
    )


def raise_product_flags(trials: Iterable[DecidedTrial], *, now: datetime) -> int:
    """Flag trials that have something odd about them, each reason once. Returns how many are new.

    What was flagged stays flagged, also when later verdicts make the reason go away: somebody
    closes it who looked. One query when there is anything to flag, none otherwise.
    """
    rows = {
        (trial.pk, notice.key): (
            uuid.uuid4(),
            trial.system_id,
            trial.pk,
            notice.code.value,
            uuid.UUID(bytes=notice.key),
            _cut(clean_text(notice.sentence)),
            clean_text(notice.criterion),
        )
        # In one order, so that two writers wait for each other and never in a circle.
        for trial in sorted(trials, key=lambda trial: trial.pk)
        for notice in notices_on(trial.facts, trial.verdicts)
        if notice.code.flags
    }
    if not rows:
        return 0
    columns = [list(column) for column in zip(*rows.values(), strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(_RAISE, [now, *columns])
        n_raised: int = cursor.rowcount
    if n_raised:
        log.info("trials flagged", extra={"n_flags": n_raised})
    return n_raised


_RAISE = """
INSERT INTO reviews_flag (uuid, system_id, trial_id, code, key, reason, criterion, raised_at)
SELECT w.*, %s FROM unnest(%s::uuid[], %s::bigint[], %s::bigint[], %s::text[], %s::uuid[],
                       %s::text[], %s::text[]) AS w
ON CONFLICT (trial_id, key) DO NOTHING
"""


def _reason(text: str) -> str:
    reason = clean_text(text).strip()
    if count_marks(reason) >= len("".join(reason.split())):
        raise FlagError("Say why: the reason is what the next person reads.")
    if len(reason) > LONGEST_REASON:
        raise FlagError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 1]}…"
