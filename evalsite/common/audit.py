"""The log of acts: one event for each, chained to the one before it and tagged with a key.

The events of a system form a chain, those of the site itself another. Whoever adds one holds the
chain's head until their transaction ends, so an event is written last, after every other lock:
inside `written_last` it waits for the end of the block. An event and its act are one transaction.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection, transaction

from evalsite.common.acting import Acting, Source, acting_as, acting_now
from evalsite.common.row_digests import COLUMNS_VERSION, RowRef, row_digests

EVENT_VERSION = 1
"""Changes when the text that an event's hash covers changes."""

MOST_ROWS = 100  # of an event, each by its digest
MOST_NAMED = 100  # ids of what one act did to many
_LONGEST_LABEL = 600
_LONGEST_ID = 64
_LONGEST_NAME = 320

__all__ = [
    "EVENT_VERSION",
    "MOST_NAMED",
    "Acting",
    "AuditedObject",
    "ChainHead",
    "Source",
    "acting_as",
    "acting_now",
    "chain_head",
    "event_hash",
    "event_tag",
    "head_tag",
    "record",
    "time_word",
    "use_key",
    "written_last",
]


@dataclass(frozen=True, slots=True)
class AuditedObject:
    """What an act was done to: its kind, its UUID, number or key, and how people name it."""

    kind: str
    id: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class ChainHead:
    """How far a chain goes: the number of its last event and that event's hash."""

    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class _Event:
    """An act that waits to be written."""

    act: str
    system_pk: int | None
    by_pk: int | None
    at: datetime
    obj: AuditedObject
    before: str
    after: str
    reason: str
    rows: tuple[RowRef, ...]
    role: str | None
    acting: Acting


def _no_key() -> tuple[str, bytes]:
    raise RuntimeError("no key of the audit log is set: evalsite.apps does that")


_key: Callable[[], tuple[str, bytes]] = _no_key
_waiting: ContextVar[list[_Event] | None] = ContextVar("audit_waiting", default=None)


def use_key(key: Callable[[], tuple[str, bytes]]) -> None:
    """Say where the id and the bytes of the key that tags events come from."""
    global _key  # noqa: PLW0603 - set once, when the site starts
    _key = key


@contextlib.contextmanager
def written_last() -> Iterator[None]:
    """Keep the events of the acts inside back until its end, as that is when every lock is held.

    Stands inside the acts' transaction. Of blocks in one another the outermost writes.
    """
    outer = _waiting.get()
    events: list[_Event] = []
    token = _waiting.set(events)
    try:
        yield
    finally:
        _waiting.reset(token)
    # Not reached by an exception: the acts did not happen.
    if outer is not None:
        outer += events
        return
    for event in events:
        _write(event)


def record(
    act: str,
    *,
    system_pk: int | None,
    by_pk: int | None,
    at: datetime,
    obj: AuditedObject,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    reason: str = "",
    rows: Iterable[RowRef] = (),
    role: str | None = None,
) -> None:
    """Add one act to the log of a system, or of the site where `system_pk` is None.

    Call it at the end of the act, inside its transaction. `by_pk` None: the operator. `before` and
    `after` hold neither the content of traces nor secrets. `rows` are the append-only rows that
    the act wrote, the first `MOST_ROWS` of which are kept by their digest. Name and role of the
    actor are those of now; `role` names another where the act itself changed it. 2 queries, and
    one more for each table of `rows`.
    """
    event = _Event(
        act=act,
        system_pk=system_pk,
        by_pk=by_pk,
        at=at,
        obj=obj,
        before=_text(before),
        after=_text(after),
        reason=_clean(reason),
        rows=tuple(rows),
        role=role,
        acting=acting_now(),
    )
    waiting = _waiting.get()
    if waiting is not None:
        waiting.append(event)
    else:
        _write(event)


def _text(value: Mapping[str, Any] | None) -> str:
    return "" if value is None else canonical_json(value)


def canonical_json(value: Any) -> str:
    """ASCII JSON with sorted names and no blanks. Times and other values as their text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_plain)


def _plain(value: object) -> str:
    return time_word(value) if isinstance(value, datetime) else str(value)


def time_word(at: datetime) -> str:
    """An instant in UTC with microseconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _clean(text: str) -> str:
    """Text as PostgreSQL keeps it: no NUL, no half of a character pair."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


_FIELDS = (
    "uuid",
    "system",
    "seq",
    "at",
    "actor",
    "actor_name",
    "role",
    "act",
    "object_kind",
    "object_id",
    "object_label",
    "before",
    "after",
    "reason",
    "source",
    "key_name",
    "request_id",
    "rows",
    "previous",
)


def event_hash(values: Mapping[str, Any]) -> str:
    """The hash of an event: over every field of it and the hash of the event before it."""
    content = {name: values[name] for name in _FIELDS}
    content["at"], content["uuid"] = time_word(values["at"]), str(values["uuid"])
    content["version"] = EVENT_VERSION
    return hashlib.sha256(canonical_json(content).encode("ascii")).hexdigest()


def event_tag(key: bytes, event_hash: str) -> str:
    """The tag of an event, which nobody makes without the key."""
    return _tag(key, f"event {event_hash}")


def head_tag(key: bytes, system_pk: int | None, seq: int, last_hash: str) -> str:
    """The tag of a chain's head."""
    return _tag(key, f"head {system_pk or 'site'} {seq} {last_hash}")


def _tag(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("ascii"), hashlib.sha256).hexdigest()


_HEAD = """
SELECT h.id, h.seq, h.hash,
    coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, ''),
    coalesce(m.role, '')
FROM evalsite_audithead h
LEFT JOIN traces_user p ON p.id = %(by)s
LEFT JOIN traces_member m ON m.user_id = p.id AND m.system_id = h.system_id
WHERE {which} FOR UPDATE OF h
"""
_HEAD_OF_SYSTEM = _HEAD.format(which="h.system_id = %(system)s")
_HEAD_OF_SITE = _HEAD.format(which="h.system_id IS NULL")
_NEW_HEAD = """
INSERT INTO evalsite_audithead (system_id, seq, hash, key_id, tag)
VALUES (%(system)s, 0, '', '', '') ON CONFLICT (system_id) DO NOTHING RETURNING id
"""
_APPEND = """
WITH event AS (
    INSERT INTO evalsite_auditevent (uuid, system_id, seq, at, actor_id, actor_name, role, act,
        object_kind, object_id, object_label, before, after, reason, source, key_name, request_id,
        rows, previous, hash, key_id, tag)
    VALUES (%(uuid)s, %(system)s, %(seq)s, %(at)s, %(actor)s, %(actor_name)s, %(role)s, %(act)s,
        %(object_kind)s, %(object_id)s, %(object_label)s, %(before)s, %(after)s, %(reason)s,
        %(source)s, %(key_name)s, %(request_id)s, %(rows)s, %(previous)s, %(hash)s, %(key_id)s,
        %(tag)s)
)
UPDATE evalsite_audithead SET seq = %(seq)s, hash = %(hash)s, key_id = %(key_id)s,
    tag = %(head_tag)s
WHERE id = %(head)s
"""


@transaction.atomic(savepoint=False)
def _write(event: _Event) -> None:
    rows = _rows_text(event.rows)
    head, seq, previous, name, role = _locked_head(event)
    key_id, key = _key()
    values: dict[str, Any] = {
        "uuid": uuid.uuid4(),
        "system": event.system_pk,
        "seq": seq + 1,
        "at": event.at,
        "actor": event.by_pk,
        "actor_name": name[:_LONGEST_NAME],
        "role": role if event.role is None else event.role,
        "act": event.act,
        "object_kind": event.obj.kind,
        "object_id": _clean(event.obj.id)[:_LONGEST_ID],
        "object_label": _clean(event.obj.label)[:_LONGEST_LABEL],
        "before": event.before,
        "after": event.after,
        "reason": event.reason,
        "source": event.acting.source_text,
        "key_name": _clean(event.acting.key_name),
        "request_id": event.acting.request_id,
        "rows": rows,
        "previous": previous,
    }
    values["hash"] = event_hash(values)
    values["key_id"], values["tag"] = key_id, event_tag(key, values["hash"])
    values["head"] = head
    values["head_tag"] = head_tag(key, event.system_pk, seq + 1, values["hash"])
    with connection.cursor() as cursor:
        cursor.execute(_APPEND, values)
    if seq == 0 and event.system_pk is not None:
        _note_chain(event)


def _locked_head(event: _Event) -> tuple[int, int, str, str, str]:
    """Row, number and hash of the chain's head, held from now on; name and role of the actor."""
    values = {"system": event.system_pk, "by": event.by_pk}
    sql = _HEAD_OF_SITE if event.system_pk is None else _HEAD_OF_SYSTEM
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        found = cursor.fetchone()
        if found is None:
            cursor.execute(_NEW_HEAD, values)
            cursor.execute(sql, values)
            found = cursor.fetchone()
    head, seq, last_hash, name, role = found
    return head, seq, last_hash, name, role


def _note_chain(event: _Event) -> None:
    """Tell the site's chain that a system's begins, so that nobody removes it unseen."""
    _write(
        _Event(
            act="audit_log.begun",
            system_pk=None,
            by_pk=event.by_pk,
            at=event.at,
            obj=AuditedObject("system", str(event.system_pk), ""),
            before="",
            after="",
            reason="",
            rows=(),
            role=None,
            acting=event.acting,
        )
    )


def _rows_text(rows: Sequence[RowRef]) -> str:
    """The digests of the first rows, as `[table, version, key, digest]` each."""
    if not rows:
        return ""
    kept = list(dict.fromkeys(rows))[:MOST_ROWS]
    found = row_digests(kept)
    return canonical_json([[table, COLUMNS_VERSION, pk, found[table, pk]] for table, pk in kept])


def chain_head(system_pk: int | None) -> ChainHead:
    """How far the chain of a system goes now; 0 and "" before its first event. One query."""
    which = "system_id IS NULL" if system_pk is None else "system_id = %s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT seq, hash FROM evalsite_audithead WHERE {which}",  # noqa: S608
            [] if system_pk is None else [system_pk],
        )
        found = cursor.fetchone()
    return ChainHead(*found) if found else ChainHead(0, "")
