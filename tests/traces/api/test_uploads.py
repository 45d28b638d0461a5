"""The door for programs: codes, receipts, ledgers, and nothing that is not one's own."""

from __future__ import annotations

import gzip
import io
import json
import uuid
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import zstandard
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from evalsite.pipeline import process_upload
from tests.support.cast import Cast
from tests.support.evidence import jsonl, record
from tests.support.keys import header, new_key
from traces.api import uploads as api
from traces.models import ApiKey, Member, Role, Scope, Trial, Upload
from traces.services.people import revoke_api_key, set_member
from traces.services.uploads import stored_path, uploads_root

pytestmark = pytest.mark.django_db

URL = "/api/v1/uploads"
GOOD = jsonl([record("t1", 0), record("t1", 1)])


@pytest.fixture(autouse=True)
def _fresh_throttle() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


def send(client: Client, body: bytes, headers: dict[str, str], **more: Any) -> Any:
    kind = more.pop("content_type", "application/x-ndjson")
    query = more.pop("query", "?release=1.0")
    return client.post(URL + query, body, content_type=kind, **headers, **more)


def staged_files() -> list[str]:
    return [path.name for path in uploads_root().glob("staged-*")]


def codes(answer: Any) -> tuple[int, str]:
    return (answer.status_code, answer.json()["code"])


def test_a_raw_body_is_kept_and_gets_a_receipt(client: Client, cast: Cast) -> None:
    answer = send(client, GOOD, header(cast.system, cast.engineer))

    assert answer.status_code == 202
    upload = Upload.objects.get()
    body = answer.json()
    assert set(body) == {"id", "receipt_url", "status_url"}
    assert body["id"] == str(upload.uuid)
    receipt = f"http://testserver/systems/airline/uploads/{upload.uuid}/"
    assert answer["Location"] == body["receipt_url"] == receipt
    assert body["status_url"] == f"http://testserver{URL}/{upload.uuid}"
    assert stored_path(upload).read_bytes() == GOOD
    assert (upload.by, upload.system, upload.door) == (cast.engineer, cast.system, "api")
    assert upload.api_key is not None
    assert staged_files() == []


def test_a_multipart_body_is_kept_with_its_fields(client: Client, cast: Cast) -> None:
    file = SimpleUploadedFile("night.jsonl", GOOD, "application/x-ndjson")
    fields = {"file": file, "system": cast.system.slug, "release": "2.1", "run": "night"}

    answer = client.post(URL, fields, **header(cast.system, cast.engineer))

    assert answer.status_code == 202
    upload = Upload.objects.select_related("release").get()
    assert upload.release is not None
    assert (upload.release.name, upload.run_name) == ("2.1", "night")
    assert upload.file_name == "night.jsonl"
    assert stored_path(upload).read_bytes() == GOOD


@pytest.mark.parametrize(
    ("body", "more"),
    [
        (gzip.compress(GOOD, mtime=0), {"HTTP_CONTENT_ENCODING": "gzip"}),
        (zstandard.compress(GOOD), {"HTTP_CONTENT_ENCODING": "zstd"}),
        (gzip.compress(GOOD, mtime=0), {"content_type": "application/gzip"}),
        (zstandard.compress(GOOD), {"content_type": "application/zstd"}),
        (GOOD, {"HTTP_CONTENT_ENCODING": "identity"}),
    ],
)
def test_a_compressed_body_is_kept_as_sent_and_read(
    client: Client, cast: Cast, body: bytes, more: dict[str, Any]
) -> None:
    headers = header(cast.system, cast.engineer)

    answer = send(client, body, headers, **more)

    assert answer.status_code == 202
    upload = Upload.objects.get()
    process_upload(upload.pk)
    assert Trial.objects.count() == 2
    raw = client.get(f"{URL}/{upload.uuid}/raw", **headers)
    assert b"".join(raw.streaming_content) == body  # type: ignore[attr-defined]
    assert raw["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"HTTP_AUTHORIZATION": "Bearer evs_none_of_mine"},
        {"HTTP_AUTHORIZATION": "Bearer "},
        {"HTTP_AUTHORIZATION": "Basic b3duZXI6cGFzc3dvcmQ="},
        {"HTTP_AUTHORIZATION": "Bearer evs_\u00e9\u00e9"},
    ],
)
def test_no_right_key_answers_401_before_the_body_is_read(
    client: Client, cast: Cast, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("the body was looked at")

    monkeypatch.setattr(api, "body_of", never)

    answer = send(client, GOOD, given)

    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")
    assert Upload.objects.count() == 0


def test_a_session_does_not_upload(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)

    assert send(client, GOOD, {}, query=f"?system={cast.system.slug}").status_code == 401


def test_an_ended_key_answers_401(client: Client, cast: Cast) -> None:
    key, headers = new_key(cast.system, cast.engineer)
    revoke_api_key(key, now=timezone.now())
    assert send(client, GOOD, headers).status_code == 401

    key, headers = new_key(cast.system, cast.engineer)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    assert send(client, GOOD, headers).status_code == 401

    _, headers = new_key(cast.system, cast.engineer)
    Member.objects.filter(system=cast.system, user=cast.engineer).delete()
    assert send(client, GOOD, headers).status_code == 401


def test_a_key_of_somebody_who_is_no_engineer_any_more_answers_403(
    client: Client, cast: Cast
) -> None:
    headers = header(cast.system, cast.engineer)
    set_member(cast.system, cast.engineer, Role.VIEWER)

    answer = send(client, GOOD, headers)

    assert codes(answer) == (403, "permission-denied")
    assert answer.json()["detail"].startswith("Only an engineer")


def test_a_key_without_the_scope_answers_403(client: Client, cast: Cast) -> None:
    answer = send(client, GOOD, header(cast.system, cast.engineer, Scope.READ))
    assert codes(answer) == (403, "permission-denied")

    ingest_only = header(cast.system, cast.engineer, Scope.INGEST)
    upload = send(client, GOOD, ingest_only).json()["id"]
    assert client.get(f"{URL}/{upload}", **ingest_only).status_code == 403


def test_another_system_answers_404_like_an_absent_one(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer)
    foreign = send(client, GOOD, headers, query=f"?system={cast.other_system.slug}")
    absent = send(client, GOOD, headers, query="?system=nowhere")
    in_fields = client.post(
        URL,
        {"file": SimpleUploadedFile("a.jsonl", GOOD), "system": cast.other_system.slug},
        **headers,
    )

    assert codes(foreign) == codes(absent) == codes(in_fields) == (404, "not-found")
    assert foreign.json() == absent.json()
    assert Upload.objects.count() == 0


def test_objects_of_another_system_answer_404(client: Client, cast: Cast) -> None:
    mine = send(client, GOOD, header(cast.system, cast.engineer)).json()["id"]
    set_member(cast.other_system, cast.engineer, Role.ENGINEER)
    theirs = header(cast.other_system, cast.engineer)

    for suffix in ("", "/lines", "/raw"):
        foreign = client.get(f"{URL}/{mine}{suffix}", **theirs)
        absent = client.get(f"{URL}/{uuid.uuid4()}{suffix}", **theirs)
        assert codes(foreign) == codes(absent) == (404, "not-found")
        assert foreign.json() == absent.json()


@pytest.mark.parametrize("kind", ["application/x-protobuf", "text/html", "image/png"])
def test_an_unknown_type_answers_415(client: Client, cast: Cast, kind: str) -> None:
    answer = send(client, GOOD, header(cast.system, cast.engineer), content_type=kind)
    assert codes(answer) == (415, "unknown-type")


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip"])
def test_an_unknown_encoding_answers_415(client: Client, cast: Cast, encoding: str) -> None:
    headers = header(cast.system, cast.engineer) | {"HTTP_CONTENT_ENCODING": encoding}
    assert codes(send(client, GOOD, headers)) == (415, "unknown-encoding")


def test_a_body_of_another_encoding_than_it_says_answers_400(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer) | {"HTTP_CONTENT_ENCODING": "gzip"}
    assert codes(send(client, GOOD, headers)) == (400, "wrong-encoding")
    assert staged_files() == []


def test_too_many_bytes_answer_413_plain_and_inflated(
    client: Client, cast: Cast, settings: Any
) -> None:
    settings.EVALSITE_API_MAX_BYTES = 100_000
    headers = header(cast.system, cast.engineer)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", b" " * 200_000)

    plain = send(client, b" " * 100_001, headers)
    bomb = send(client, gzip.compress(b" " * 200_000), headers)
    archive_bomb = send(client, packed.getvalue(), headers, content_type="application/zip")
    in_form = client.post(URL, {"file": SimpleUploadedFile("a", b" " * 100_001)}, **headers)

    for answer in (plain, bomb, archive_bomb, in_form):
        assert codes(answer) == (413, "too-large")
        assert "Retry-After" not in answer
    assert Upload.objects.count() == 0
    assert staged_files() == []


def test_a_body_of_unknown_length_is_read_where_the_server_ends_it(
    client: Client, cast: Cast, settings: Any
) -> None:
    settings.EVALSITE_API_MAX_BYTES = len(GOOD)
    headers = header(cast.system, cast.engineer)

    def chunked(body: bytes, **more: Any) -> Any:
        return client.generic(
            "POST",
            URL + "?release=1.0",
            b"",
            **headers,
            **{
                "CONTENT_TYPE": more.pop("content_type", "application/x-ndjson"),
                "CONTENT_LENGTH": "",
                "HTTP_TRANSFER_ENCODING": "chunked",
                "wsgi.input": io.BytesIO(body),
                "wsgi.input_terminated": True,
            },
            **more,
        )

    assert chunked(GOOD).status_code == 202
    assert stored_path(Upload.objects.get()).read_bytes() == GOOD
    assert codes(chunked(GOOD + b"\n")) == (413, "too-large")
    in_form = chunked(b"", content_type="multipart/form-data; boundary=x")
    assert codes(in_form) == (411, "length-missing")
    headers["HTTP_TRANSFER_ENCODING"] = "chunked"
    assert codes(send(client, GOOD, headers)) == (411, "length-missing")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"<!doctype html><html><body>502 Bad Gateway</body></html>", "HTML"),
        (b"{not json", "JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", ""),
        (b"just words\n", ""),
    ],
)
def test_what_cannot_be_read_answers_400_and_says_what_it_looks_like(
    client: Client, cast: Cast, body: bytes, words: str
) -> None:
    answer = send(client, body, header(cast.system, cast.engineer))

    assert answer.status_code == 400
    assert words in answer.json()["detail"]
    assert Upload.objects.count() == 0
    assert staged_files() == []


@pytest.mark.parametrize(
    "query",
    ["?format=otlp", "?release=%00", "?release=" + "r" * 600, "?run=a%E2%80%AEb", "?release=%0A"],
)
def test_names_that_cannot_be_names_answer_400(client: Client, cast: Cast, query: str) -> None:
    assert send(client, GOOD, header(cast.system, cast.engineer), query=query).status_code == 400


def test_the_same_idempotency_key_gives_the_same_receipt(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer) | {"HTTP_IDEMPOTENCY_KEY": "night-14"}

    first, again = send(client, GOOD, headers), send(client, GOOD, headers)
    other_body = send(client, jsonl([record("t9", 0)]), headers)
    other_release = send(client, GOOD, headers, query="?release=2.0")

    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json() == again.json()
    assert codes(other_body) == codes(other_release) == (409, "idempotency-key-reused")
    assert Upload.objects.count() == 1


def test_too_many_uploads_answer_429(client: Client, cast: Cast, settings: Any) -> None:
    settings.EVALSITE_UPLOADS_PER_MINUTE = 2
    headers = header(cast.system, cast.engineer)

    answers = [send(client, GOOD, headers) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert codes(answers[2]) == (429, "throttled")
    assert 0 < int(answers[2]["Retry-After"]) <= 60


def test_a_full_backlog_answers_503(client: Client, cast: Cast, settings: Any) -> None:
    settings.EVALSITE_MAX_WAITING_UPLOADS = 1
    headers = header(cast.system, cast.engineer)

    assert send(client, GOOD, headers).status_code == 202
    answer = send(client, GOOD, headers)

    assert codes(answer) == (503, "backlog-full")
    assert int(answer["Retry-After"]) > 0


def test_a_full_disk_answers_503(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("traces.services.uploads.os.fsync", full)

    answer = send(client, GOOD, header(cast.system, cast.engineer))

    assert codes(answer) == (503, "disk-full")
    assert int(answer["Retry-After"]) > 0
    assert staged_files() == []


def test_a_database_that_is_away_answers_503(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = header(cast.system, cast.engineer)

    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("server closed the connection")

    monkeypatch.setattr("traces.services.acceptance.receive_upload", away)

    answer = send(client, GOOD, headers)

    assert codes(answer) == (503, "unavailable")
    assert int(answer["Retry-After"]) > 0
    assert staged_files() == []


def test_a_broker_that_is_away_loses_nothing(
    client: Client,
    cast: Cast,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise ConnectionError("refused")

    monkeypatch.setattr("celery.app.base.Celery.send_task", away)

    with django_capture_on_commit_callbacks(execute=True):
        answer = send(client, GOOD, header(cast.system, cast.engineer))

    assert answer.status_code == 202
    assert Upload.objects.count() == 1


def test_the_status_shows_the_ledger_and_its_lines(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = header(cast.system, cast.engineer)
    body = GOOD + b"{broken\n" + b'{"task_id": "t2"}\n' + GOOD.split(b"\n")[0] + b"\n"
    upload_id = send(client, body, headers).json()["id"]
    assert client.get(f"{URL}/{upload_id}", **headers).json()["state"] == "received"
    process_upload(Upload.objects.get().pk)

    shown = client.get(f"{URL}/{upload_id}", **headers).json()

    assert shown["state"] == "done"
    assert shown["system"] == cast.system.slug
    assert shown["by"] == "engineer"
    assert shown["ledger"] == {
        "received": 5,
        "stored": 2,
        "duplicate": 1,
        "conflict": 0,
        "refused": 2,
        "trials": 2,
        "verdicts": 2,
        "verdicts_refused": 0,
        "verdicts_waiting": 0,
        "warnings": 0,
    }
    monkeypatch.setattr(api, "PAGE_LINES", 1)
    first = client.get(shown["lines_url"], **headers).json()
    second = client.get(first["next"], **headers).json()
    assert [line["number"] for line in first["lines"] + second["lines"]] == [3, 4]
    assert second["next"] is None
    assert client.get(shown["lines_url"] + "?after=x", **headers).status_code == 400


def test_a_member_reads_by_session(client: Client, cast: Cast) -> None:
    upload_id = send(client, GOOD, header(cast.system, cast.engineer)).json()["id"]

    client.force_login(cast.viewer)
    assert client.get(f"{URL}/{upload_id}").status_code == 200
    client.force_login(cast.outsider)
    assert client.get(f"{URL}/{upload_id}").status_code == 404


def test_a_use_of_the_key_is_noted_at_most_once_a_minute(client: Client, cast: Cast) -> None:
    key, headers = new_key(cast.system, cast.engineer)
    send(client, GOOD, headers)
    key.refresh_from_db()
    first = key.last_used_at
    send(client, GOOD, headers)
    key.refresh_from_db()

    assert first is not None
    assert key.last_used_at == first


def test_a_broken_multipart_body_answers_400(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer)
    broken = send(
        client, b"--x\r\nnonsense", headers, content_type="multipart/form-data; boundary=x"
    )
    no_boundary = send(client, b"x", headers, content_type="multipart/form-data")
    no_file = client.post(URL, {"release": "1"}, **headers)

    assert [answer.status_code for answer in (broken, no_boundary, no_file)] == [400, 400, 400]


def test_a_multipart_body_is_not_encoded_and_has_few_fields(client: Client, cast: Cast) -> None:
    headers = header(cast.system, cast.engineer)
    file = SimpleUploadedFile("a.jsonl", GOOD)
    encoded = client.post(URL, {"file": file}, HTTP_CONTENT_ENCODING="gzip", **headers)
    many = client.post(URL, {f"field{n}": "x" for n in range(2_001)}, **headers)

    assert codes(encoded) == (415, "unknown-encoding")
    assert codes(many) == (413, "too-large")


def test_answers_are_json(client: Client, cast: Cast) -> None:
    answer = client.put(URL, GOOD, **header(cast.system, cast.engineer))
    assert codes(answer) == (405, "method-not-allowed")
    assert json.loads(answer.content)["detail"]
