"""What the API is said to be, against what it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.test import Client

from evalsite.api_docs import _operations
from traces.api.uploads import UploadCreate

pytestmark = pytest.mark.django_db

DOORS = Path(__file__).resolve().parents[2] / "docs" / "doors.md"
ADDRESS = re.compile(r"`(GET|POST) (/api/v1/[^`]+)`")


def test_the_page_and_the_handbook_list_every_address(client: Client) -> None:
    schema = client.get("/api/schema").json()
    known = {(act.upper(), path) for path, acts in schema["paths"].items() for act in acts}

    assert set(ADDRESS.findall(DOORS.read_text())) == known
    assert {(one.method, one.path) for one in _operations()} == known


def test_the_page_shows_parameters_bodies_and_answers(client: Client) -> None:
    answer = client.get("/api/docs")

    assert answer.status_code == 200
    text = answer.content.decode()
    for words in (
        "POST /api/v1/uploads",
        "Idempotency-Key",
        "A header.",
        "multipart/form-data",
        "the file itself",
        "Unsupported Media Type",
        "May be given several times.",
        "One of: csv, jsonl.",
        "system, release, name, trials, tasks",
    ):
        assert words in text, words
    assert client.post("/api/docs").status_code == 405


def test_the_handbook_names_commands_and_codes_that_there_are(client: Client) -> None:
    text = DOORS.read_text()
    commands = set(re.findall(r"`manage\.py ([a-z_]+)", text))
    assert commands <= set(get_commands())
    assert commands == {
        "ingest", "run", "paths", "figures", "export", "member", "apikey", "rebuild",
        "match", "overview", "rules", "contracts", "cases", "suggest", "refund_desk",
        "probes", "judge", "judges", "labels", "disputes", "gate", "thresholds",
        "verify", "keys", "audit", "database_roles",
    }  # fmt: skip
    schema = client.get("/api/schema").json()
    answers = schema["paths"]["/api/v1/uploads"]["post"]["responses"]
    assert set(re.findall(r"^\| (\d{3}) \|", text, re.MULTILINE)) == set(answers)
    assert UploadCreate.__doc__
