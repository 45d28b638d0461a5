from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from evalsite.common.acting import Acting, Source, acting_as
from evalsite.common.audit import (
    AuditedObject,
    ChainHead,
    chain_head,
    event_tag,
    record,
    written_last,
)
from evalsite.common.row_digests import COLUMNS, row_digests
from evalsite.models import AuditEvent, AuditHead
from evalsite.signing_keys import audit_key
from tests.support.cast import Cast
from traces.models import RulesVersion

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 12, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def record_one(cast: Cast, act: str = "flag.raised", **more: object) -> None:
    record(
        act,
        system_pk=cast.system.pk,
        by_pk=cast.engineer.pk,
        at=NOW,
        obj=AuditedObject("flag", "7", "A flag"),
        **more,  # type: ignore[arg-type]
    )


def events(cast: Cast) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(system=cast.system).order_by("seq"))


def test_record_keeps_who_in_which_role_what_why_and_by_which_way(cast: Cast) -> None:
    before = chain_head(cast.system.pk).seq
    with acting_as(Acting(Source.API, key_name="nightly", request_id="r-1")):
        record_one(cast, before={"a": 1}, after={"b": NOW}, reason="seen \x00 twice")
    row = events(cast)[-1]
    assert (row.seq, row.at, row.actor, row.actor_name, row.role) == (
        before + 1,
        NOW,
        cast.engineer,
        "engineer",
        "engineer",
    )
    assert (row.act, row.object_kind, row.object_id, row.object_label) == (
        "flag.raised",
        "flag",
        "7",
        "A flag",
    )
    assert (row.before, row.after) == ('{"a":1}', '{"b":"2026-12-01T12:00:00.250000Z"}')
    assert (row.reason, row.source, row.key_name, row.request_id) == (
        "seen \ufffd twice",
        "api",
        "nightly",
        "r-1",
    )


def test_record_chains_and_tags_each_event(cast: Cast) -> None:
    record_one(cast)
    record_one(cast)
    first, second = events(cast)[-2:]
    key_id, key = audit_key()
    assert second.previous == first.hash
    assert (second.key_id, second.tag) == (key_id, event_tag(key, second.hash))
    assert chain_head(cast.system.pk) == ChainHead(second.seq, second.hash)


def test_record_costs_two_queries(cast: Cast) -> None:
    record_one(cast)
    with CaptureQueriesContext(connection) as seen, transaction.atomic():
        record_one(cast)
    assert len([q for q in seen if "SAVEPOINT" not in q["sql"]]) == 2


def test_record_keeps_the_digests_of_rows(cast: Cast) -> None:
    row = RulesVersion.objects.get(system=cast.system)
    record_one(cast, rows=[("traces_rulesversion", row.pk)])
    digest = row_digests([("traces_rulesversion", row.pk)])["traces_rulesversion", row.pk]
    assert json.loads(events(cast)[-1].rows) == [["traces_rulesversion", 1, row.pk, digest]]


def test_record_of_a_first_act_tells_the_site(cast: Cast) -> None:
    record_one(cast)
    assert AuditHead.objects.get(system=cast.system).seq == len(events(cast))
    told = AuditEvent.objects.filter(system=None, act="audit_log.begun")
    assert told.filter(object_id=str(cast.system.pk)).count() == 1


def test_record_by_nobody_is_the_operators(cast: Cast) -> None:
    record("upload.accepted", system_pk=None, by_pk=None, at=NOW, obj=AuditedObject("upload", "1"))
    row = AuditEvent.objects.filter(system=None).latest("seq")
    assert (row.actor, row.actor_name, row.role, row.source) == (None, "", "", "command")


def test_written_last_writes_at_the_end_of_the_outermost_block(cast: Cast) -> None:
    n = len(events(cast))
    with written_last():
        with written_last():
            record_one(cast, "a.first")
        record_one(cast, "a.second")
        assert len(events(cast)) == n
    assert [row.act for row in events(cast)][n:] == ["a.first", "a.second"]


def test_written_last_drops_what_an_exception_undid(cast: Cast) -> None:
    n = len(events(cast))
    with written_last():
        with pytest.raises(ValueError, match="no"), written_last():
            record_one(cast, "a.undone")
            raise ValueError("no")
        record_one(cast, "a.kept")
    assert [row.act for row in events(cast)][n:] == ["a.kept"]


def test_every_listed_table_can_be_digested() -> None:
    assert row_digests((table, 0) for table in COLUMNS) == {}
