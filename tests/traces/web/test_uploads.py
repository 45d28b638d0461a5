from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from evalsite.pipeline import process_upload
from tests.support.cast import Cast
from tests.support.evidence import ingest, jsonl, receive, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import System, Trial, Upload

pytestmark = pytest.mark.django_db

GOOD = jsonl([record("t1", 0)])


def new_path(system: System) -> str:
    return f"{root(system)}uploads/new/"


def send(client: Client, system: System, *bodies: bytes, **fields: str) -> Any:
    files = [SimpleUploadedFile(f"f{n}.jsonl", body) for n, body in enumerate(bodies)]
    return client.post(new_path(system), {"files": files, **fields})


def receipt(system: System, upload: Upload) -> str:
    return f"{root(system)}uploads/{upload.uuid}/"


def test_an_upload_is_stored_and_leads_to_its_receipt(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    answer = send(client, cast.system, GOOD, release="2.4.0", run="night", format="auto")
    upload = Upload.objects.get()

    assert (answer.status_code, answer["Location"]) == (302, receipt(cast.system, upload))
    assert (upload.by, upload.door, upload.run_name) == (cast.engineer, "page", "night")
    assert (upload.release.name, upload.file_name) == ("2.4.0", "f0.jsonl")
    waiting = visit(client, cast.engineer, answer["Location"])
    assert (waiting.state, waiting.poll_url) == ("received", receipt(cast.system, upload))

    process_upload(upload.pk)
    page = visit(client, cast.engineer, answer["Location"])
    assert (page.state, page.poll_url, page.percent) == ("done", "", 100)
    assert (page.n_received, page.n_stored, page.n_trials, page.n_verdicts) == (1, 1, 1, 1)
    assert [link.label for link in page.landed] == [
        "1 trial",
        "release 2.4.0",
        "run night",
        "task t1",
    ]
    trials = visit(client, cast.engineer, page.landed[0].href)
    assert [row.label for row in trials.rows] == ["0"]


def test_several_files_lead_to_the_list(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    answer = send(client, cast.system, GOOD, GOOD, release="1")

    assert (answer.status_code, answer["Location"]) == (302, f"{root(cast.system)}uploads/")
    assert "2 files stored for good." in client.get(answer["Location"]).content.decode()


def test_no_file_is_an_invalid_form(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    answer = client.post(new_path(cast.system), {"release": "1"})
    assert answer.status_code == 422
    assert "This field is required." in answer.content.decode()


@pytest.mark.parametrize(
    ("body", "fields", "status"),
    [
        (b"", {}, 400),
        (b"<html>", {}, 400),
        (GOOD, {"release": "a\u202eb"}, 400),
        (GOOD, {"format": "nonsense"}, 422),
    ],
)
def test_what_cannot_be_taken_is_refused_in_a_sentence(
    body: bytes, fields: dict[str, str], status: int, client: Client, cast: Cast
) -> None:
    client.force_login(cast.engineer)
    answer = send(client, cast.system, body, **fields)

    assert answer.status_code == status
    assert 'role="alert"' in answer.content.decode() or "errors" in answer.content.decode()
    assert Upload.objects.count() == 0


def test_too_large_is_413(client: Client, cast: Cast, settings: Settings) -> None:
    settings.EVALSITE_UPLOAD_MAX_BYTES = 10
    client.force_login(cast.engineer)
    answer = send(client, cast.system, GOOD)
    assert answer.status_code == 413
    assert "larger than this door takes" in answer.content.decode()


def test_a_full_backlog_is_503_with_a_time(client: Client, cast: Cast, settings: Settings) -> None:
    settings.EVALSITE_MAX_WAITING_UPLOADS = 0
    client.force_login(cast.engineer)
    answer = send(client, cast.system, GOOD)
    assert (answer.status_code, answer["Retry-After"]) == (503, "10")


def test_a_good_file_stays_though_another_is_refused(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    answer = send(client, cast.system, GOOD, b"")
    text = answer.content.decode()

    assert answer.status_code == 400
    assert "f0.jsonl is stored for good." in text
    assert "f1.jsonl: " in text
    assert Upload.objects.count() == 1


def test_the_form_offers_known_releases(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release='a"><b>')
    client.force_login(cast.engineer)
    text = client.get(new_path(cast.system)).content.decode()

    assert 'list="release-choices"' in text
    assert '<option value="a&quot;&gt;&lt;b&gt;"></option>' in text


def test_a_receipt_names_each_line_with_its_reason(client: Client, cast: Cast) -> None:
    odd = record("t1", 1, verdicts=[verdict("pass"), {"grader": 3}])
    body = jsonl([record("t1", 0)]) + b'{"a": NaN}\n' + jsonl([odd])
    job = ingest(cast.system, body)
    client.force_login(cast.viewer)
    page = visit(client, cast.viewer, receipt(cast.system, job.upload))
    lines = [(line.number, line.outcome) for line in page.lines]

    assert lines == [(2, "refused"), (3, "partly")]
    assert page.n_received == page.n_stored + page.n_duplicate + page.n_conflict + page.n_refused
    raw = client.get(page.lines[0].raw_url)
    assert b"".join(raw.streaming_content) == b'{"a": NaN}'
    assert raw["Content-Disposition"].startswith("attachment;")
    trial = Trial.objects.get(label="1")
    assert page.lines[1].href == f"{root(cast.system)}trials/{trial.uuid}/"


def test_the_ledger_comes_in_pages(client: Client, cast: Cast) -> None:
    job = ingest(cast.system, GOOD + b"nonsense\n" * 205)
    path = receipt(cast.system, job.upload)
    first = visit(client, cast.viewer, path)
    second = visit(client, cast.viewer, first.lines_pager.next_url.removesuffix("#lines"))
    third = visit(client, cast.viewer, second.lines_pager.next_url.removesuffix("#lines"))
    back = visit(client, cast.viewer, third.lines_pager.previous_url.removesuffix("#lines"))

    assert [len(page.lines) for page in (first, second, third)] == [100, 100, 5]
    assert third.lines[-1].number == 206
    assert third.lines_pager.next_url == ""
    assert back.lines == second.lines


@pytest.mark.parametrize("name", ["plain.jsonl", "../../etc/passwd", 'a"\r\nX: y.txt', "\u202e"])
def test_the_bytes_come_back_unchanged_under_a_harmless_name(
    name: str, client: Client, cast: Cast
) -> None:
    body = gzip.compress(GOOD)
    upload = receive(cast.system, body, file_name=name)
    client.force_login(cast.viewer)
    answer = client.get(receipt(cast.system, upload) + "raw")

    assert b"".join(answer.streaming_content) == body
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9._-]+"', answer["Content-Disposition"])
    assert (answer["X-Content-Type-Options"], answer["Content-Length"]) == (
        "nosniff",
        str(len(body)),
    )


def test_an_unreadable_upload_says_so(client: Client, cast: Cast) -> None:
    upload = receive(cast.system, b"<html>")
    process_upload(upload.pk)
    page = visit(client, cast.viewer, receipt(cast.system, upload))
    assert (page.state, page.n_received) == ("failed", 0)
    assert page.failure


def test_uploads_are_listed_newest_first(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], file_name="first.jsonl", by=cast.engineer)
    ingest(cast.system, [record("t1", 1)], file_name="second.jsonl")
    page = visit(client, cast.viewer, f"{root(cast.system)}uploads/")

    assert [(row.name, row.by, row.n_stored) for row in page.rows] == [
        ("second.jsonl", "operator", 1),
        ("first.jsonl", "engineer", 1),
    ]
    assert page.new_url == ""
    assert "Only an engineer" in page.why_not


def test_query_counts_of_uploads_do_not_grow(client: Client, cast: Cast) -> None:
    job = ingest(cast.system, [record("t1", 0), {"odd": 0}])
    client.force_login(cast.viewer)
    listed = f"{root(cast.system)}uploads/"
    one = n_queries(client, listed)
    receipt_of_one = n_queries(client, receipt(cast.system, job.upload))
    more = ingest(cast.system, [record("t2", 0), record("t3", 0), {"odd": 1}, {"odd": 2}, {}])
    ingest(cast.system, [record("t4", 0)])

    assert (one, n_queries(client, listed)) == (5, 5)
    assert (receipt_of_one, n_queries(client, receipt(cast.system, more.upload))) == (8, 8)


def test_exports_hold_every_trial(client: Client, cast: Cast) -> None:
    records = [record("t1", 0, calls=(("x", {"a": "=1+1"}),)), record("=cmd", 1)]
    ingest(cast.system, records)
    client.force_login(cast.viewer)
    csv = client.get(f"{root(cast.system)}trials.csv")
    lines = client.get(f"{root(cast.system)}trials.jsonl", {"release": "1.0"})

    assert "'=cmd" in b"".join(csv.streaming_content).decode()
    assert [
        json.loads(line)["task_id"] for line in b"".join(lines.streaming_content).splitlines()
    ] == [
        "t1",
        "=cmd",
    ]
    assert csv["Content-Disposition"] == 'attachment; filename="airline-trials.csv"'
    assert client.get(f"{root(cast.system)}trials.csv", {"release": "9"}).status_code == 404
    assert client.get(f"{root(cast.system)}trials.csv", {"run": "9"}).status_code == 404
    assert client.get(f"{root(cast.system)}trials.csv", {"run": "default"}).status_code == 200
