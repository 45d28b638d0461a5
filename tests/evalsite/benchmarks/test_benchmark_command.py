"""The benchmark measures the real way in, on a database of its own."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection


def run(capsys: pytest.CaptureFixture[str], blocker: Any, *arguments: str) -> str:
    with blocker.unblock():
        call_command("benchmark", *arguments)
    return capsys.readouterr().out


def test_benchmark_ingest_reports_rate_limit_and_rest(
    capsys: pytest.CaptureFixture[str], django_db_blocker: Any
) -> None:
    name = connection.settings_dict["NAME"]

    report = run(capsys, django_db_blocker, "ingest", "--trials", "30", "--tasks", "5")

    assert connection.settings_dict["NAME"] == name
    lines = report.splitlines()
    assert lines[0].startswith("30 trials, ")
    assert lines[1].startswith("committed and queryable: ")
    assert [line.split(":")[0] for line in lines[2:5]] == [
        "bare limit, parse, compress and COPY the same rows",
        "bare limit, parse and COPY the same rows as ready-made bytes",
        "bare limit, parse and COPY each record as jsonb",
    ]
    assert "where the time goes:" in lines


def test_benchmark_ingest_as_json_with_profile(
    capsys: pytest.CaptureFixture[str], django_db_blocker: Any
) -> None:
    arguments = ["ingest", "--trials", "4", "--tasks", "2", "--rounds", "2", "--json", "--profile"]

    text = run(capsys, django_db_blocker, *arguments)

    result, end = json.JSONDecoder().raw_decode(text)
    assert (result["n_trials"], {bare["name"] for bare in result["bare"]}) == (
        4,
        {"made", "ready", "records"},
    )
    assert result["database_bytes"]["traces_trial"] > 0
    assert "function calls" in text[end:]
