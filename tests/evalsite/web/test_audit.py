from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_label import label_and_decide
from evalsite.after_review import verdict_and_decide
from evalsite.audit import reading
from evalsite.common.audit import AuditedObject, chain_head, record
from evalsite.models import AuditEvent
from reviews.selectors.blinding import HIDDEN
from tests.support import evidence
from tests.support.cast import Cast
from tests.support.labels import blind_set, seated
from tests.support.visits import n_queries, root, visit
from traces.core.records import VerdictValue
from traces.models import Trial, User

pytestmark = pytest.mark.django_db

HOSTILE = "=HYPERLINK(1)<img src=x onerror=alert(1)>\u202e"
DAY = datetime(2026, 11, 3, 23, 59, 59, tzinfo=UTC)


def log_path(cast: Cast, suffix: str = "/") -> str:
    return f"{root(cast.system)}audit{suffix}"


def add(cast: Cast, n: int = 1, **more: Any) -> None:
    for number in range(n):
        values: dict[str, Any] = {
            "act": "flag.raised",
            "by_pk": cast.viewer.pk,
            "at": timezone.now(),
            "obj": AuditedObject("flag", "77", f"Flag {number}"),
            **more,
        }
        record(values.pop("act"), system_pk=cast.system.pk, **values)


def test_every_member_reads_the_log_newest_first(cast: Cast, client: Client) -> None:
    add(cast, 2, before={"state": "open"}, after={"state": "closed", "n_cases": 2}, reason="Why.")
    for user in cast.members().values():
        page = visit(client, user, log_path(cast))
        first, second = page.rows[:2]
        assert (first.seq, second.seq) == (second.seq + 1, first.seq - 1)
        assert (first.who, first.role, first.did) == ("viewer", "viewer", "flagged a trial")
        assert (first.object.label, first.reason, first.source) == ("Flag 1", "Why.", "command")
        assert [(c.name, c.before, c.after, c.has_before) for c in first.changes] == [
            ("state", "open", "closed", True),
            ("number of cases", "", "2", False),
        ]


def test_others_find_nothing(cast: Cast, client: Client) -> None:
    client.force_login(cast.outsider)
    for suffix in ("/", "/1/", ".csv", ".json"):
        assert client.get(log_path(cast, suffix)).status_code == 404
    client.force_login(cast.viewer)
    for seq in (0, 10**6, 2**63, 10**30):
        assert client.get(log_path(cast, f"/{seq}/")).status_code == 404


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"act": "flag."}, [2]),
        ({"act": "flag.closed"}, []),
        ({"by": "viewer"}, [1, 2]),
        ({"by": "operator"}, [3]),
        ({"by": "nonsense"}, []),
        ({"kind": "run"}, [3]),
        ({"kind": "flag", "id": "78"}, [2]),
        ({"source": "command"}, [1, 2, 3]),
        ({"source": "api"}, []),
        ({"to": "2026-11-03"}, [1]),
        ({"from": "2026-11-04", "kind": "task"}, []),
        ({"from": "nonsense", "act": "nonsense", "source": "x", "kind": "task"}, [1]),
    ],
)
def test_the_address_narrows_the_log_and_its_files(
    cast: Cast, client: Client, query: dict[str, str], expected: list[int]
) -> None:
    start = chain_head(cast.system.pk).seq
    add(cast, act="task.exposed", at=DAY, obj=AuditedObject("task", "5", "t5"))
    add(cast, obj=AuditedObject("flag", "78", "Flag"))
    add(cast, act="run.declared", by_pk=None, obj=AuditedObject("run", "6", "r6"))
    if query.get("by") == "viewer":
        query = {**query, "by": str(cast.viewer.uuid)}
    page = visit(client, cast.owner, log_path(cast), **query)
    assert [row.seq - start for row in reversed(page.rows) if row.seq > start] == expected
    assert (page.empty is not None) == (not page.rows)
    text = client.get(page.csv_url).getvalue().decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [int(row["seq"]) for row in rows] == [row.seq for row in page.rows]
    entries = json.loads(client.get(page.json_url).getvalue())  # type: ignore[attr-defined]
    assert [entry["seq"] for entry in entries] == [row.seq for row in page.rows]


def test_pages_follow_one_another(
    cast: Cast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(cast, 120)
    last = chain_head(cast.system.pk).seq
    first = visit(client, cast.owner, log_path(cast))
    second = visit(client, cast.owner, first.pager.next_url)
    assert [row.seq for row in second.rows] == list(range(last - 50, last - 100, -1))
    back = visit(client, cast.owner, second.pager.previous_url)
    assert [row.seq for row in back.rows] == [row.seq for row in first.rows]
    monkeypatch.setattr(reading, "STREAMED", 50)
    entries = json.loads(client.get(log_path(cast, ".json")).getvalue())  # type: ignore[attr-defined]
    assert [entry["seq"] for entry in entries] == list(range(last, 0, -1))


def test_the_log_takes_the_same_queries_for_one_event_and_for_many(
    cast: Cast, client: Client
) -> None:
    client.force_login(cast.reviewer)
    add(cast, act="task.exposed")
    one = n_queries(client, log_path(cast), act="task.")
    add(cast, 3, act="task.exposed")
    assert (one, n_queries(client, log_path(cast), act="task.")) == (7, 7)


def test_hostile_text_acts_nowhere(cast: Cast, client: Client) -> None:
    add(cast, obj=AuditedObject("flag", HOSTILE, HOSTILE), after={HOSTILE: HOSTILE}, reason=HOSTILE)
    seq = chain_head(cast.system.pk).seq
    client.force_login(cast.viewer)
    for path in (log_path(cast), log_path(cast, f"/{seq}/"), f"{log_path(cast)}?id={HOSTILE}"):
        body = client.get(path).content.decode()
        assert "<img" not in body
        assert "\u202e" not in body
    text = client.get(log_path(cast, ".csv")).getvalue().decode()  # type: ignore[attr-defined]
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["reason"].startswith("'=")
    assert not any(str(cell).startswith("=") for row in rows for cell in row.values())


def test_one_event_shows_everything_and_its_place(cast: Cast, client: Client) -> None:
    add(cast, reason="x" * 5_000)
    event = AuditEvent.objects.filter(system=cast.system).latest("seq")
    listed = visit(client, cast.viewer, log_path(cast)).rows[0]
    assert (len(listed.reason), listed.is_cut) == (300, True)
    page = visit(client, cast.viewer, listed.href)
    assert page.line.reason == event.reason
    assert {fact.name: fact.value for fact in page.chain} == {
        "Number": f"{event.seq:,}",
        "Hash": event.hash,
        "Hash of the event before it": event.previous,
        "Tag": event.tag,
        "Key of the tag": event.key_id,
    }
    assert page.next_url == ""
    assert visit(client, cast.viewer, page.previous_url).next_url == listed.href
    history = visit(client, cast.viewer, page.history_url)
    assert {row.object.label for row in history.rows} == {"Flag 0"}


def test_a_request_is_named_in_its_event(cast: Cast, client: Client) -> None:
    evidence.ingest(cast.system, [evidence.record()])
    trial = Trial.objects.get()
    client.force_login(cast.viewer)
    answer = client.post(f"{root(cast.system)}trials/{trial.uuid}/flag/", {"reason": "Look."})
    event = AuditEvent.objects.get(act="flag.raised")
    assert (event.source, event.request_id) == ("page", answer["X-Request-Id"])
    page = visit(client, cast.viewer, f"{root(cast.system)}trials/{trial.uuid}/")
    assert page
    body = client.get(f"{root(cast.system)}trials/{trial.uuid}/").content.decode()
    assert f"{log_path(cast)}?kind=trial&amp;id={trial.uuid}" in body


def test_a_blind_label_tells_nobody_what_was_said(cast: Cast, client: Client) -> None:
    of = blind_set(cast, 1)
    now = timezone.now()
    item = seated(of, cast.reviewer, now).item
    label_and_decide(
        item, value=VerdictValue.FAIL, reason="SECRET", steps=[1], by=cast.reviewer, now=now
    )
    (event,) = AuditEvent.objects.filter(act__startswith="label.")
    assert json.loads(event.after) == {"item": 1, "trial": str(item.trial.uuid)}
    assert not AuditEvent.objects.filter(act__startswith="verdict.").exists()
    for user in cast.members().values():
        client.force_login(user)
        text = client.get(log_path(cast, ".json")).getvalue().decode()  # type: ignore[attr-defined]
        assert "SECRET" not in text


def test_a_verdict_is_kept_from_who_may_still_label_its_trial(cast: Cast, client: Client) -> None:
    blind_set(cast, 1)
    trial = Trial.objects.get()
    verdict_and_decide(
        trial,
        criterion="tone",
        value=VerdictValue.FAIL,
        reason="SECRET",
        steps=[1],
        by=cast.second_reviewer,
        now=timezone.now(),
    )
    event = AuditEvent.objects.get(act="verdict.given")
    paths = [log_path(cast, suffix) for suffix in ("/", f"/{event.seq}/", ".csv", ".json")]

    def said(user: User) -> list[bool]:
        client.force_login(user)
        return ["SECRET" in b"".join(client.get(path)).decode() for path in paths]

    assert said(cast.reviewer) == [False] * 4
    assert said(cast.owner) == said(cast.second_reviewer) == [True] * 4
    client.force_login(cast.reviewer)
    assert visit(client, cast.reviewer, paths[1]).line.hidden == HIDDEN
