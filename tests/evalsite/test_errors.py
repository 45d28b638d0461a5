from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.test import Client
from pytest_django import Settings

from tests.support.cast import Cast

pytestmark = pytest.mark.django_db


def test_pages_are_kept_out_of_caches(client: Client, cast: Cast) -> None:
    client.force_login(cast.viewer)
    answer = client.get("/systems/airline/tasks/")

    assert answer["Cache-Control"] == "private, no-store"
    assert "HX-Request" in answer["Vary"]


def test_a_database_that_is_away_is_503_with_a_time_to_come_again(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(cast.viewer)
    client.raise_request_exception = False

    def away(*_: object, **__: object) -> None:
        raise OperationalError("the connection is lost")

    with connection.execute_wrapper(away):
        answer = client.get("/systems/airline/tasks/")

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert "no-store" in answer["Cache-Control"]


def test_a_folder_of_uploads_that_is_away_is_503(
    client: Client, cast: Cast, settings: Settings, tmp_path: Path
) -> None:
    settings.EVALSITE_UPLOADS = tmp_path / "in the way"
    settings.EVALSITE_UPLOADS.write_text("")
    client.force_login(cast.engineer)
    client.raise_request_exception = False
    file = SimpleUploadedFile("trials.jsonl", b'{"task_id": "1"}')

    answer = client.post("/systems/airline/uploads/new/", {"files": file})

    assert (answer.status_code, answer["Retry-After"]) == (503, "5")


def test_a_fault_of_our_own_is_500(client: Client, cast: Cast) -> None:
    client.force_login(cast.viewer)
    client.raise_request_exception = False

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    with connection.execute_wrapper(broken):
        answer = client.get("/systems/airline/tasks/")

    assert answer.status_code == 500
    assert "Retry-After" not in answer


@pytest.mark.parametrize("length", ["99999999999", "-1", "many"])
def test_a_body_that_no_page_takes_is_refused_unread(
    length: str, client: Client, cast: Cast, settings: Settings
) -> None:
    settings.EVALSITE_UPLOAD_MAX_BYTES = 1000
    client.force_login(cast.engineer)
    answer = client.post("/systems/airline/uploads/new/", CONTENT_LENGTH=length)
    assert answer.status_code == 413


def test_a_broken_policy_is_logged_without_its_content(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    report = {"csp-report": {"effective-directive": "script-src", "blocked-uri": "secret"}}
    with caplog.at_level(logging.WARNING, logger="evalsite.csp"):
        answer = client.post(
            "/csp-report", json.dumps(report), content_type="application/csp-report"
        )

    assert answer.status_code == 204
    assert [record.directive for record in caplog.records] == ["script-src"]  # type: ignore[attr-defined]
    assert "secret" not in caplog.text


@pytest.mark.parametrize("body", ["", "[]", "{", '{"csp-report": 3}', "[" * 5000])
def test_an_odd_report_is_taken_too(body: str, client: Client) -> None:
    answer = client.post("/csp-report", body, content_type="application/csp-report")
    assert answer.status_code == 204


def test_a_report_by_get_is_refused(client: Client) -> None:
    assert client.get("/csp-report").status_code == 405


def test_a_form_in_a_charset_that_django_does_not_read_is_refused() -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.get("/sign-in/")  # gives the cookie, without which the body is not looked at
    answer = client.post(
        "/sign-in/", b"a=b", content_type="application/x-www-form-urlencoded; charset=utf-16"
    )

    assert answer.status_code == 400
    assert "This request could not be read" in answer.content.decode()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {"host": "evil.example"}, 400),
        ("/systems/airline", {}, 301),
        ("/nothing/", {}, 404),
        ("/sign-in/", {"content-length": "9" * 18}, 413),
        ("/sign-in/", {"content-length": "\xb2"}, 413),
        ("/api/v1/paths", {}, 401),
        ("/health", {}, 503),
    ],
)
def test_every_answer_carries_the_headers_of_safety(
    path: str, headers: dict[str, str], status: int, client: Client
) -> None:
    client.raise_request_exception = False
    given = {f"HTTP_{name.upper()}": value for name, value in headers.items()}
    length = {"CONTENT_LENGTH": given.pop("HTTP_CONTENT-LENGTH")} if status == 413 else {}

    answer = client.get(path, **given, **length)

    assert answer.status_code == status
    assert "frame-ancestors 'none'" in answer["Content-Security-Policy"]
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer["Cache-Control"]
