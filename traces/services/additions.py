"""Evidence that is added to a stored trial. The trial, its digest and its record never change."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime

from django.db import transaction

from evalsite.common import blobs
from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import limit_text
from traces.core.additions import Addition, addition_document, parse_addition, unfit_parts
from traces.core.canonical import digest_of
from traces.core.limits import DEFAULT_LIMITS, MIB, Limits
from traces.core.records import Finding
from traces.core.strict_json import StrictJsonError, loads
from traces.core.text_marks import clean_text, count_marks
from traces.core.values import Json
from traces.models import (
    ApiKey,
    EvidenceAddition,
    Member,
    Release,
    Role,
    System,
    Trial,
    User,
)
from traces.permissions.additions import addition_refusal
from traces.selectors.rules import rules_of
from traces.selectors.trial_evidence import trial_evidence

log = logging.getLogger("evalsite.additions")

MOST_BYTES = 8 * MIB  # of the JSON that fills a trial
MOST_ADDITIONS = 100  # to one trial
LONGEST_SOURCE = 500  # characters
LONGEST_REASON = 2_000
_MOST_FINDINGS = 20


class AdditionError(Exception):
    """A refusal. `findings` names each place and reason; the text is the first sentence."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings[0].sentence)
        self.findings = findings[:_MOST_FINDINGS]

    @property
    def code(self) -> str:
        """The code of the first finding."""
        return self.findings[0].code


class AdditionDeniedError(AdditionError):
    """Somebody who may not do that."""


def addition_of(text: bytes, limits: Limits = DEFAULT_LIMITS) -> Addition:
    """The addition that JSON text spells. Raises `AdditionError`, which names the place."""
    if len(text) > MOST_BYTES:
        sentence = f"Added evidence has at most {limit_text(MOST_BYTES)}."
        raise AdditionError(Finding("too-large", "", sentence))
    try:
        document = loads(text, limits)
    except StrictJsonError as error:
        raise AdditionError(Finding(error.code, error.place, error.sentence)) from None
    return addition_from(document)


def addition_from(document: Json) -> Addition:
    """The addition of a JSON value. Raises `AdditionError`, which names the place."""
    addition, findings = parse_addition(document)
    if findings:
        raise AdditionError(*findings)
    return addition


@transaction.atomic
def add_evidence(
    trial: Trial,
    addition: Addition,
    *,
    source: str,
    reason: str,
    by: User,
    now: datetime,
    api_key: ApiKey | None = None,
) -> EvidenceAddition:
    """Keep evidence that a trial's record lacks, with where it comes from and why it is added.

    The same addition again, by whomever, is the first one again. Raises `AdditionDeniedError`
    unless `by` is an engineer of the system, and `AdditionError` where it fills a part that was
    recorded or added before, names a call that does not exist, or lacks source or reason. The
    caller grades and decides the trial anew.
    """
    # The release's lock, as every writer of its evidence takes it; it parts two additions as well.
    Release.objects.select_for_update(no_key=True).get(pk=trial.release_id)
    if refusal := addition_refusal(_role(trial.system_id, by)):
        raise AdditionDeniedError(Finding("not-allowed", "", refusal))
    digest = uuid.UUID(bytes=digest_of(addition_document(addition)))
    if earlier := EvidenceAddition.objects.filter(trial=trial, digest=digest).first():
        return earlier
    system = System.objects.select_related("shown_rules").get(pk=trial.system_id)
    (rows,) = trial_evidence([trial.pk], rules_of(system).rejection)
    order = rows.evidence_order + 1
    if findings := unfit_parts(rows.evidence(rows.evidence_order), addition):
        raise AdditionError(*findings)
    if order > MOST_ADDITIONS:
        sentence = f"A trial takes at most {MOST_ADDITIONS} additions."
        raise AdditionError(Finding("too-many", "", sentence))
    row = EvidenceAddition.objects.create(
        trial=trial,
        order=order,
        parts=[part.value for part in addition.parts],
        content=blobs.pack(addition_document(addition)),
        source=_said(source, "source", LONGEST_SOURCE),
        reason=_said(reason, "reason", LONGEST_REASON),
        digest=digest,
        by=by,
        api_key=api_key,
        added_at=now,
    )
    record(
        "evidence.added",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("trial", str(trial.uuid), trial.label),
        after={"addition": str(row.uuid), "parts": row.parts, "source": row.source},
        reason=row.reason,
        rows=[("traces_evidenceaddition", row.pk)],
    )
    log.info(
        "evidence added",
        extra={"addition": str(row.uuid), "trial": str(trial.uuid), "by": by.username},
    )
    return row


_NOTHING_SAID = {
    "source": "Say where it was read: “inspection api, by hand”.",
    "reason": "Say why: the reason is what the next person reads.",
}


def _said(text: str, place: str, most: int) -> str:
    said = clean_text(text).strip()
    if count_marks(said) >= len("".join(said.split())):
        raise AdditionError(Finding("missing-field", place, _NOTHING_SAID[place]))
    if len(said) > most:
        raise AdditionError(
            Finding("too-long", place, f"A {place} has at most {most:,} characters.")
        )
    return said


def _role(system_id: int, user: User) -> Role | None:
    row = Member.objects.filter(system=system_id, user=user, user__is_active=True).first()
    return None if row is None else Role(row.role)
