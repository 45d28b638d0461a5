"""Flags: raised by people and by the product, closed with a reason. None is ever taken back."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction

from evalsite.common.formatting import time_text
from reviews.core.disposition import GivenVerdict
from reviews.core.notices import NoticedTrial, notices_on
from reviews.models import Flag, FlagClosing, FlagCode
from reviews.permissions.flags import closing_refusal, flagging_refusal, role_in
from traces.core.text_marks import clean_text, count_marks
from traces.models import Trial, User

log = logging.getLogger("evalsite.flags")

LONGEST_REASON = 2_000  # characters


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
    log.info(
        "flag raised",
        extra={"flag": str(flag.uuid), "trial": str(trial.uuid), "by": by.username},
    )
    return flag


@transaction.atomic
def close_flag(flag: Flag, *, reason: str, by: User, now: datetime) -> FlagClosing:
    """Say why a flag needs no further look. A flag is closed once and stays visible.

    Raises `FlagDeniedError` when the person may not, and `FlagError` when it is closed already,
    and without a reason or with one that is too long.
    """
    # The lock keeps two closings apart: the later one sees the earlier one below.
    flag = Flag.objects.select_for_update(no_key=True).get(pk=flag.pk)
    if refusal := closing_refusal(role_in(flag.system_id, by), is_own=flag.by_id == by.pk):
        raise FlagDeniedError(refusal)
    earlier = FlagClosing.objects.select_related("by").filter(flag=flag).first()
    if earlier is not None:
        raise FlagError(closed_sentence(earlier.by.printed_name, earlier.closed_at))
    closing = FlagClosing.objects.create(flag=flag, reason=_reason(reason), by=by, closed_at=now)
    log.info("flag closed", extra={"flag": str(flag.uuid), "by": by.username})
    return closing


def closed_sentence(by_name: str, closed_at: datetime) -> str:
    """Why a flag cannot be closed again."""
    return f"{by_name} closed this flag at {time_text(closed_at)}; it is closed once."


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
