"""Checks a chain of audit events: what was changed, removed, swapped or put in is named."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from evalsite.common.audit import (
    ChainHead,
    chain_head,
    event_hash,
    event_tag,
    head_tag,
    time_word,
)
from evalsite.common.row_digests import COLUMNS, COLUMNS_VERSION, RowRef, row_digests
from evalsite.models import AuditHead
from evalsite.signing_keys import audit_keys
from traces.models import System

BATCH = 500  # events in memory at a time
_START = ChainHead(0, "")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it was written. `seq` is the event's number in its chain."""

    seq: int
    code: str
    sentence: str


def verify_chain(
    system: System | None,
    *,
    noted: ChainHead | None = None,
    keys: Mapping[str, bytes] | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with the chain of a system, or of the site where it is None; () when sound.

    `noted` is a head that was written down elsewhere, such as in a signed file: the chain has to
    hold that event. `keys` are the keys of tags, by id; those of this site unless given.
    """
    return tuple(findings_of(system, noted=noted, keys=keys))


def findings_of(
    system: System | None,
    *,
    noted: ChainHead | None = None,
    keys: Mapping[str, bytes] | None = None,
) -> Iterator[Finding]:
    """Like `verify_chain`, as they are found: a portion of the events is in memory at a time."""
    check = _Check(system.pk if system else None, audit_keys() if keys is None else keys, noted)
    for batch in _batches(check.system_pk):
        for row in batch:
            yield from check.event(row)
        yield from check.rows(batch)
    yield from check.end()


_COLUMNS = (
    "id, uuid, system_id AS system, seq, at, actor_id AS actor, actor_name, role, act,"
    " object_kind, object_id, object_label, before, after, reason, source, key_name, request_id,"
    " rows, previous, hash, key_id, tag"
)


def _batches(system_pk: int | None) -> Iterator[list[dict[str, Any]]]:
    """The events of a chain by number, some at a time."""
    which = "system_id IS NULL" if system_pk is None else "system_id = %(system)s"
    # By number and id, so that two events of one number are both seen.
    sql = (
        f"SELECT {_COLUMNS} FROM evalsite_auditevent"  # noqa: S608
        f" WHERE {which} AND (seq, id) > (%(seq)s, %(id)s) ORDER BY seq, id LIMIT {BATCH}"
    )
    seq, pk = -(2**62), 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(sql, {"system": system_pk, "seq": seq, "id": pk})
            names = [column.name for column in cursor.description]
            batch = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        if not batch:
            return
        yield batch
        seq, pk = batch[-1]["seq"], batch[-1]["id"]


@dataclass(slots=True)
class _Check:
    """Goes along a chain."""

    system_pk: int | None
    keys: Mapping[str, bytes]
    noted: ChainHead | None
    last: ChainHead = _START

    def event(self, row: Mapping[str, Any]) -> Iterator[Finding]:
        """What is wrong with the next event, and with its place."""
        seq: int = row["seq"]
        yield from self._place(row)
        if event_hash(row) != row["hash"]:
            sentence = f"Event {seq:,} ({row['act']}, {time_word(row['at'])}) was changed."
            yield Finding(seq, "changed", sentence)
        yield from self._tag_of(row)
        noted = self.noted
        if noted is not None and seq == noted.seq and row["hash"] != noted.hash:
            sentence = f"Event {seq:,} is not the one that was noted elsewhere."
            yield Finding(seq, "forked", sentence)
        if seq > self.last.seq:
            self.last = ChainHead(seq, row["hash"])

    def _place(self, row: Mapping[str, Any]) -> Iterator[Finding]:
        seq, expected = row["seq"], self.last.seq + 1
        if seq > expected:
            missing = f"{expected:,}" if seq == expected + 1 else f"{expected:,} to {seq - 1:,}"
            is_one = seq == expected + 1
            sentence = (
                f"Event {missing} is missing." if is_one else f"Events {missing} are missing."
            )
            yield Finding(expected, "missing", sentence)
        elif seq < expected:
            yield Finding(seq, "extra", f"There is an event too many with the number {seq:,}.")
        elif row["previous"] != self.last.hash:
            sentence = f"Event {seq:,} does not follow the event that stands before it."
            yield Finding(seq, "unchained", sentence)

    def _tag_of(self, row: Mapping[str, Any]) -> Iterator[Finding]:
        seq, key = row["seq"], self.keys.get(row["key_id"])
        if key is None:
            sentence = f"Event {seq:,} is tagged with a key that is not known here."
            yield Finding(seq, "unknown-key", sentence)
        elif not hmac.compare_digest(event_tag(key, row["hash"]), row["tag"]):
            yield Finding(seq, "wrong-tag", f"The tag of event {seq:,} was not made with its key.")

    def rows(self, batch: list[dict[str, Any]]) -> Iterator[Finding]:
        """The rows that events name, where they are others by now."""
        named = [(row, ref, digest) for row in batch for ref, digest in _named(row)]
        found = row_digests({ref for _, ref, _ in named})
        for row, (table, pk), digest in named:
            now = found.get((table, pk))
            if now == digest:
                continue
            what = "is gone" if now is None else "was changed since"
            sentence = f"Row {pk:,} of {table}, written by event {row['seq']:,}, {what}."
            yield Finding(row["seq"], "row-gone" if now is None else "row-changed", sentence)

    def end(self) -> Iterator[Finding]:
        """Whether the chain ends where its head says, and where it was noted to go on."""
        head = AuditHead.objects.filter(system=self.system_pk).first()
        if head is None:
            yield from self._without_head()
        else:
            yield from self._head(head)
        noted = self.noted
        if noted is not None and noted.seq > self.last.seq:
            sentence = (
                f"The chain ends early: at event {self.last.seq:,}, "
                f"and event {noted.seq:,} was noted elsewhere."
            )
            yield Finding(noted.seq, "ends-early", sentence)

    def _without_head(self) -> Iterator[Finding]:
        if self.last.seq:
            yield Finding(self.last.seq, "no-head", "The chain has events and no head.")
        elif _had_chain(self.system_pk):
            yield Finding(0, "chain-gone", "The whole chain is gone.")

    def _head(self, head: AuditHead) -> Iterator[Finding]:
        key = self.keys.get(head.key_id)
        if key is None:
            sentence = "The head of the chain is tagged with a key that is not known here."
            yield Finding(head.seq, "unknown-key", sentence)
        elif not hmac.compare_digest(head_tag(key, self.system_pk, head.seq, head.hash), head.tag):
            sentence = "The tag of the chain's head was not made with its key."
            yield Finding(head.seq, "wrong-tag", sentence)
        if (head.seq, head.hash) == (self.last.seq, self.last.hash):
            return
        if head.seq > self.last.seq:
            sentence = (
                f"The chain ends early: at event {self.last.seq:,}, and its head names event "
                f"{head.seq:,}."
            )
        else:
            sentence = f"The head of the chain does not name its last event, {self.last.seq:,}."
        yield Finding(head.seq, "ends-early" if head.seq > self.last.seq else "head", sentence)


def _named(row: Mapping[str, Any]) -> Iterator[tuple[RowRef, str]]:
    """The rows of an event with their digests. Lists of other versions are not compared."""
    try:
        entries = json.loads(row["rows"]) if row["rows"] else []
        for table, version, pk, digest in entries:
            if version == COLUMNS_VERSION and table in COLUMNS and isinstance(pk, int):
                yield (table, pk), digest
    except (ValueError, TypeError):
        return  # the event was changed, which its hash tells


def _had_chain(system_pk: int | None) -> bool:
    """Whether the other chains tell of this one, which is not there."""
    if system_pk is None:
        return AuditHead.objects.exclude(system=None).exists()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM evalsite_auditevent WHERE system_id IS NULL"
            " AND act = 'audit_log.begun' AND object_id = %s)",
            [str(system_pk)],
        )
        return bool(cursor.fetchone()[0])


__all__ = ["BATCH", "ChainHead", "Finding", "chain_head", "findings_of", "verify_chain"]
