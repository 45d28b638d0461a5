"""Rubrics: new texts, and requests for one that were opened by adjudications."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import time_text
from reviews.models import Adjudication, Rubric, RubricRequest, RubricVersion
from reviews.permissions.flags import role_in
from reviews.permissions.rubrics import rubric_refusal
from traces.core.text_marks import clean_text, count_marks
from traces.models import System, User

log = logging.getLogger("evalsite.rubrics")

LONGEST_NAME = 200  # characters, as contracts take it
LONGEST_TEXT = 20_000
LONGEST_REASON = 2_000


class RubricError(Exception):
    """A refusal, with its sentence for people."""


class RubricDeniedError(RubricError):
    """Somebody who may not do that."""


@transaction.atomic
def write_version(
    system: System,
    *,
    name: str,
    version: str,
    text: str,
    reason: str,
    by: User,
    now: datetime,
    answers: Iterable[int] = (),
) -> RubricVersion:
    """Store one text of a rubric; the first one makes the rubric.

    `answers` are ids of open requests on it that the text answers, and so closes. It decides
    nothing until a contract names it. The same version with the same text again adds nothing.
    Raises `RubricDeniedError` when the person may not, and `RubricError` for a version that has
    another text, an empty or too long field, and a request that is not open or of another rubric.
    """
    if refusal := rubric_refusal(role_in(system.pk, by)):
        raise RubricDeniedError(refusal)
    named = _field(name, "The name of a rubric", LONGEST_NAME)
    label = _field(version, "The version of a rubric", LONGEST_NAME)
    body = _field(text, "The text of a rubric", LONGEST_TEXT)
    why = _field(reason, "A reason", LONGEST_REASON)
    # The lock of the system keeps two writers of one version apart.
    System.objects.select_for_update(no_key=True).get(pk=system.pk)
    rubric, _ = Rubric.objects.get_or_create(system=system, name=named)
    earlier = RubricVersion.objects.select_related("by").filter(rubric=rubric, version=label)
    for row in earlier:
        if row.text == body:
            return row
        raise RubricError(
            f"{row.by.printed_name} wrote another text of version {label} at "
            f"{time_text(row.created_at)}. A version is never changed: give this text another one."
        )
    requests = _open_requests(rubric, answers)
    row = RubricVersion.objects.create(
        rubric=rubric, version=label, text=body, reason=why, by=by, created_at=now
    )
    for asked in requests:
        asked.answered_by, asked.closed_at, asked.closed_by = row, now, by
        asked.save(update_fields=["answered_by", "closed_at", "closed_by"])
    record(
        "rubric.written",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("rubric", str(rubric.pk), f"{named} {label}"),
        after={"version": label, "answers": [asked.pk for asked in requests]},
        reason=why,
        rows=[("reviews_rubricversion", row.pk)],
    )
    log.info("rubric written", extra={"rubric": rubric.pk, "version": row.pk, "by": by.username})
    return row


def _open_requests(rubric: Rubric, ids: Iterable[int]) -> list[RubricRequest]:
    wanted = sorted(set(ids))
    found = list(
        RubricRequest.objects.select_for_update()
        .filter(system=rubric.system_id, criterion=rubric.name, pk__in=wanted, closed_at=None)
        .order_by("pk")
    )
    if len(found) != len(wanted):
        raise RubricError(
            "A request that this text should answer is closed already, or asks about another "
            "rubric. Look at the open ones again."
        )
    return found


def open_request(adjudication: Adjudication) -> RubricRequest:
    """Ask for a clearer text: part of the transaction that finds a rubric unclear."""
    request, _ = RubricRequest.objects.get_or_create(
        adjudication=adjudication,
        defaults={
            "system_id": adjudication.system_id,
            "criterion": adjudication.criterion.name,
            "rubric_version": adjudication.rubric_version,
            "reason": adjudication.reason,
            "by": adjudication.by,
            "opened_at": adjudication.decided_at,
        },
    )
    return request


@transaction.atomic
def close_request(asked: RubricRequest, *, reason: str, by: User, now: datetime) -> RubricRequest:
    """Close a request without a new text, and say why.

    Raises `RubricDeniedError` when the person may not, and `RubricError` for one that is closed,
    and without a reason or with one that is too long.
    """
    if refusal := rubric_refusal(role_in(asked.system_id, by)):
        raise RubricDeniedError(refusal)
    row = RubricRequest.objects.select_for_update().get(pk=asked.pk)
    if row.closed_at is not None:
        raise RubricError(f"This request was closed at {time_text(row.closed_at)}.")
    row.closing_reason = _field(reason, "A reason", LONGEST_REASON)
    row.closed_at, row.closed_by = now, by
    row.save(update_fields=["closing_reason", "closed_at", "closed_by"])
    record(
        "rubric.request_closed",
        system_pk=row.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("rubric_request", str(row.pk), f"Request on {row.criterion}"),
        reason=row.closing_reason,
    )
    log.info("rubric request closed", extra={"request": row.pk, "by": by.username})
    return row


def _field(text: str, what: str, longest: int) -> str:
    cleaned = clean_text(text).replace("\r\n", "\n").strip()
    if count_marks(cleaned) >= len("".join(cleaned.split())):
        raise RubricError(f"{what} is missing.")
    if len(cleaned) > longest:
        raise RubricError(f"{what} has at most {longest:,} characters.")
    return cleaned
