"""Stored trials as the checks of contracts see them: transcript, record and additions.

A trial is read whole, so trials come a few at a time: memory is bounded by the compressed size of
what is read together, unless one trial alone has more.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

from django.db import connection

from evalsite.common import blobs
from traces.core.additions import Addition, StoredEvidence, filled, parse_addition
from traces.core.canonical import digest_of
from traces.core.records import TrialStatus
from traces.core.rules import RejectionSettings
from traces.core.transcript import DEFAULT_REJECTION, transcript_of
from traces.core.values import JsonObject

_EVERY_DIGIT = Context(prec=100)

MOST_TRIALS = 200  # read together
MOST_BYTES = 4 * 1024 * 1024  # of compressed transcripts and records, read together


@dataclass(frozen=True, slots=True)
class TrialEvidenceRows:
    """One trial with everything that was recorded of it and added to it."""

    trial_pk: int
    task_pk: int
    digest: uuid.UUID  # of the record
    recorded: StoredEvidence
    additions: tuple[tuple[Addition, uuid.UUID], ...]  # with their digests, the earliest first
    rejection: RejectionSettings

    @property
    def evidence_order(self) -> int:
        """How many additions there are."""
        return len(self.additions)

    def evidence(self, order: int) -> StoredEvidence:
        """The evidence as it was after so many additions."""
        added = [addition for addition, _ in self.additions[:order]]
        return filled(self.recorded, added, self.rejection) if added else self.recorded

    def evidence_digest(self, order: int) -> uuid.UUID:
        """What names the evidence after so many additions: the record's own digest without any."""
        if order == 0:
            return self.digest
        parts = [self.digest.hex, *(digest.hex for _, digest in self.additions[:order])]
        return uuid.UUID(bytes=digest_of([*parts]))


def trial_evidence(
    trial_ids: Iterable[int], rejection: RejectionSettings = DEFAULT_REJECTION
) -> Iterator[TrialEvidenceRows]:
    """Trials by id with their evidence: one query for their sizes, three for each few of them.

    The order is that of the ids given; ids of no trial are left out.
    """
    wanted = list(dict.fromkeys(trial_ids))
    for few in _portions(wanted):
        yield from _read(few, rejection)


_SIZES = """
SELECT r.trial_id, octet_length(r.content) + coalesce((SELECT sum(octet_length(c.content))
    FROM traces_transcriptchunk c WHERE c.trial_id = r.trial_id), 0)
FROM traces_trialrecord r WHERE r.trial_id = ANY(%s)
"""


def _portions(wanted: Sequence[int]) -> Iterator[list[int]]:
    if not wanted:
        return
    with connection.cursor() as cursor:
        cursor.execute(_SIZES, [list(wanted)])
        sizes = dict(cursor.fetchall())
    few: list[int] = []
    n_bytes = 0
    for pk in wanted:
        size = int(sizes.get(pk, 0))
        if few and (len(few) >= MOST_TRIALS or n_bytes + size > MOST_BYTES):
            yield few
            few, n_bytes = [], 0
        few.append(pk)
        n_bytes += size
    yield few


_TRIALS = """
SELECT t.id, t.task_id, t.digest, t.status, t.cost_usd, t.input_tokens, t.output_tokens, t.seconds,
       r.content
FROM traces_trial t JOIN traces_trialrecord r ON r.trial_id = t.id WHERE t.id = ANY(%s)
"""
_CHUNKS = """
SELECT trial_id, content FROM traces_transcriptchunk WHERE trial_id = ANY(%s)
ORDER BY trial_id, first_step
"""
_ADDITIONS = """
SELECT trial_id, content, digest FROM traces_evidenceaddition WHERE trial_id = ANY(%s)
ORDER BY trial_id, "order"
"""


def _read(few: list[int], rejection: RejectionSettings) -> Iterator[TrialEvidenceRows]:
    messages: dict[int, list[JsonObject]] = {}
    additions: dict[int, list[tuple[Addition, uuid.UUID]]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_TRIALS, [few])
        rows = {row[0]: row[1:] for row in cursor.fetchall()}
        cursor.execute(_CHUNKS, [few])
        for pk, content in cursor.fetchall():
            messages.setdefault(pk, []).extend(blobs.unpack(content))
        cursor.execute(_ADDITIONS, [few])
        for pk, content, digest in cursor.fetchall():
            additions.setdefault(pk, []).append((_addition(content), digest))
    for pk in few:
        if pk in rows:
            task, digest, *row = rows[pk]
            yield TrialEvidenceRows(
                trial_pk=pk,
                task_pk=task,
                digest=digest,
                recorded=_recorded(row, messages.pop(pk, []), rejection),
                additions=tuple(additions.get(pk, ())),
                rejection=rejection,
            )


def _addition(content: bytes) -> Addition:
    """A stored addition, which was whole when it was added."""
    addition, findings = parse_addition(blobs.unpack(content))
    if findings:
        raise ValueError(f"stored evidence is not whole: {findings[0].sentence}")
    return addition


def _recorded(
    row: Sequence[Any], messages: list[JsonObject], rejection: RejectionSettings
) -> StoredEvidence:
    status, cost, n_in, n_out, seconds, content = row
    rest = blobs.unpack(content)["rest"]
    facts = rest.get("facts")
    return StoredEvidence(
        status=TrialStatus(status),
        messages=tuple(messages),
        steps=transcript_of(messages, rejection),
        facts=facts if isinstance(facts, dict) else None,
        initial_state=rest.get("initial_state"),
        final_state=rest.get("final_state"),
        expected_state=rest.get("expected_state"),
        cost_usd=_plain(cost),
        tokens=None if n_in is None or n_out is None else n_in + n_out,
        seconds=_plain(seconds),
    )


def _plain(value: Decimal | None) -> Decimal | None:
    """A stored number without the zeros that its column adds."""
    return None if value is None else value.normalize(_EVERY_DIGIT)
