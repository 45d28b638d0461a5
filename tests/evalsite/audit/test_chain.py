from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import connection

from evalsite.audit import chain
from evalsite.audit.chain import ChainHead, Finding, chain_head, verify_chain
from evalsite.common.audit import AuditedObject, record
from evalsite.models import AuditEvent
from evalsite.signing_keys import KeyKind, audit_keys, rotate
from tests.support.cast import Cast
from traces.models import RulesVersion

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 12, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def superuser(sql: str, *values: object) -> None:
    """An edit made directly in the database, past every trigger."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, values)
        assert cursor.rowcount
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


@pytest.fixture
def log(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Cast:
    """A chain with some events, read in several portions."""
    monkeypatch.setattr(chain, "BATCH", 3)
    row = RulesVersion.objects.get(system=cast.system)
    while chain_head(cast.system.pk).seq < 8:
        record(
            "flag.raised",
            system_pk=cast.system.pk,
            by_pk=cast.engineer.pk,
            at=NOW,
            obj=AuditedObject("flag", "7", "A flag"),
            before={"state": "open"},
            reason="seen",
            rows=[("traces_rulesversion", row.pk)],
        )
    return cast


def codes(cast: Cast, noted: ChainHead | None = None) -> list[tuple[int, str]]:
    return [(each.seq, each.code) for each in verify_chain(cast.system, noted=noted)]


def test_a_chain_that_nobody_touched_is_sound(log: Cast) -> None:
    assert verify_chain(log.system) == ()
    assert verify_chain(log.system, noted=chain_head(log.system.pk)) == ()
    assert verify_chain(log.other_system) == ()
    assert verify_chain(None) == ()


def test_a_chain_stays_sound_when_keys_rotate(log: Cast) -> None:
    rotate(KeyKind.AUDIT)
    record(
        "flag.raised",
        system_pk=log.system.pk,
        by_pk=log.engineer.pk,
        at=NOW,
        obj=AuditedObject("flag", "8"),
    )
    assert verify_chain(log.system) == ()
    newest = next(iter(audit_keys()))
    last = AuditEvent.objects.filter(system=log.system).latest("seq")
    assert last.key_id == newest
    assert codes(log) == []


COLUMNS = {
    "uuid": "gen_random_uuid()",
    "at": "at + interval '1 microsecond'",
    "actor_id": "NULL",
    "actor_name": "'somebody'",
    "role": "'owner'",
    "act": "'flag.closed'",
    "object_kind": "'trial'",
    "object_id": "'9'",
    "object_label": "'Another'",
    "before": "''",
    "after": "'{}'",
    "reason": "reason || ' '",
    "source": "'api'",
    "key_name": "'k'",
    "request_id": "'r'",
    "rows": "''",
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_change_of_any_field_is_named(log: Cast, column: str) -> None:
    superuser(
        f"UPDATE evalsite_auditevent SET {column} = {COLUMNS[column]}"
        " WHERE system_id = %s AND seq = 7",
        log.system.pk,
    )
    (found,) = verify_chain(log.system)
    assert (found.seq, found.code) == (7, "changed")
    assert found.sentence.startswith("Event 7 (")


DELETE = "DELETE FROM evalsite_auditevent WHERE system_id = %s AND seq"
SWAP = """UPDATE evalsite_auditevent SET seq = CASE seq WHEN 4 THEN 1005 ELSE 1004 END
          WHERE system_id = %s AND seq IN (4, 5)"""


def _swap(pk: int) -> None:
    superuser(SWAP, pk)
    superuser("UPDATE evalsite_auditevent SET seq = seq - 1000 WHERE system_id = %s"
              " AND seq > 1000", pk)  # fmt: skip


def _delete_all(pk: int) -> None:
    superuser(f"{DELETE} > 0", pk)
    superuser("DELETE FROM evalsite_audithead WHERE system_id = %s", pk)


EDITS: dict[str, tuple[Callable[[int], None], list[tuple[int, str]]]] = {
    "one in the middle removed": (lambda pk: superuser(f"{DELETE} = 5", pk), [(5, "missing")]),
    "two removed": (lambda pk: superuser(f"{DELETE} IN (4, 5)", pk), [(4, "missing")]),
    "the first removed": (lambda pk: superuser(f"{DELETE} = 1", pk), [(1, "missing")]),
    "the newest removed": (lambda pk: superuser(f"{DELETE} = 8", pk), [(8, "ends-early")]),
    "all events removed": (lambda pk: superuser(f"{DELETE} > 0", pk), [(8, "ends-early")]),
    "the whole chain removed": (_delete_all, [(0, "chain-gone")]),
    "two swapped": (
        _swap,
        [(4, "unchained"), (4, "changed"), (5, "unchained"), (5, "changed"), (6, "unchained")],
    ),
    "the head removed": (
        lambda pk: superuser("DELETE FROM evalsite_audithead WHERE system_id = %s", pk),
        [(8, "no-head")],
    ),
    "the head set back": (
        lambda pk: superuser(
            "UPDATE evalsite_audithead h SET seq = 7, hash = e.hash FROM evalsite_auditevent e"
            " WHERE h.system_id = %s AND e.system_id = h.system_id AND e.seq = 7",
            pk,
        ),
        [(7, "wrong-tag"), (7, "head")],
    ),
    "a tag replaced": (
        lambda pk: superuser(
            "UPDATE evalsite_auditevent SET tag = repeat('0', 64) WHERE system_id = %s AND seq = 5",
            pk,
        ),
        [(5, "wrong-tag")],
    ),
    "a key that nobody has": (
        lambda pk: superuser(
            "UPDATE evalsite_auditevent SET key_id = 'mine' WHERE system_id = %s AND seq = 5", pk
        ),
        [(5, "unknown-key")],
    ),
    "an event of its own put in": (
        lambda pk: superuser(
            "INSERT INTO evalsite_auditevent (uuid, system_id, seq, at, actor_name, role, act,"
            " object_kind, object_id, object_label, before, after, reason, source, key_name,"
            " request_id, rows, previous, hash, key_id, tag) SELECT gen_random_uuid(), system_id,"
            " 0, at, actor_name, role, act, object_kind, object_id, object_label, before, after,"
            " reason, source, key_name, request_id, '', previous, hash, key_id, tag"
            " FROM evalsite_auditevent WHERE system_id = %s AND seq = 5",
            pk,
        ),
        [(0, "extra"), (0, "changed")],
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_done_to_a_chain_is_named(log: Cast, edit: str) -> None:
    act, expected = EDITS[edit]
    act(log.system.pk)
    assert codes(log) == expected
    assert verify_chain(log.other_system) == ()
    assert verify_chain(None) == ()


def test_a_hash_that_was_made_again_is_named_by_its_tag(log: Cast) -> None:
    row = AuditEvent.objects.get(system=log.system, seq=8)
    row.reason = "other"
    values = {
        "uuid": row.uuid,
        "at": row.at,
        "system": row.system_id,
        "actor": row.actor_id,
    } | {
        name: getattr(row, name)
        for name in [
            "seq",
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
        ]
    }
    forged = chain.event_hash(values)
    superuser(
        "UPDATE evalsite_auditevent SET reason = 'other', hash = %s WHERE system_id = %s"
        " AND seq = 8",
        forged,
        log.system.pk,
    )
    superuser("UPDATE evalsite_audithead SET hash = %s WHERE system_id = %s", forged, log.system.pk)
    assert codes(log) == [(8, "wrong-tag"), (8, "wrong-tag")]


def test_a_row_that_an_event_names_is_compared(log: Cast) -> None:
    row = RulesVersion.objects.get(system=log.system)
    superuser("UPDATE traces_rulesversion SET reason = 'x' WHERE id = %s", row.pk)
    found = verify_chain(log.system)
    named = AuditEvent.objects.filter(system=log.system, rows__contains="rulesversion")
    assert [(each.seq, each.code) for each in found] == [
        (each.seq, "row-changed") for each in named.order_by("seq")
    ]


def test_a_chain_that_was_cut_and_written_on_is_named_by_a_noted_head(log: Cast) -> None:
    noted = chain_head(log.system.pk)
    fork = ChainHead(noted.seq - 1, "0" * 64)
    later = ChainHead(noted.seq + 3, "0" * 64)
    assert codes(log, fork) == [(fork.seq, "forked")]
    assert verify_chain(log.system, noted=later) == (
        Finding(
            later.seq,
            "ends-early",
            "The chain ends early: at event 8, and event 11 was noted elsewhere.",
        ),
    )


def test_a_key_that_was_lost_is_named_on_every_event(log: Cast) -> None:
    found = verify_chain(log.system, keys={})
    assert [each.code for each in found] == ["unknown-key"] * (8 + 1)
