"""The benchmark measures the real way in and the real pages, on a database of its own."""

import json
import re
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from evalsite.benchmarks.bare import BareLimit
from evalsite.benchmarks.grading import GradingResult
from evalsite.benchmarks.ingest import IngestResult
from evalsite.management.commands.benchmark import grading_report, ingest_report
from tests.support.databases import copy_tables


def run(capsys: pytest.CaptureFixture[str], blocker: Any, *arguments: str) -> str:
    with blocker.unblock():
        call_command("benchmark", *arguments)
    return capsys.readouterr().out


@pytest.fixture
def tables_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a scratch database are copied; the benchmark of ingest has them made anew."""

    def create(**options: Any) -> str:
        name: str = connection.settings_dict["TEST"]["NAME"]
        connection.close()
        copy_tables(name)
        settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
        return name

    monkeypatch.setattr(connection.creation, "create_test_db", create)


def test_ingest_report_names_rate_limits_and_where_the_time_goes() -> None:
    result = IngestResult(
        n_trials=1000,
        n_verdicts=4000,
        n_bytes=20_000_000,
        seconds=2.0,
        processor_seconds=1.5,
        reader_seconds=0.25,
        stages={"read": 0.5, "store": 1.0},
        bare=(BareLimit("made", 1.0, 0.7),),
        peak_bytes=150_000_000,
        base_bytes=90_000_000,
        database_bytes={"traces_trial": 500_000, "traces_transcriptchunk": 5_000_000},
    )

    assert ingest_report(result) == [
        "1,000 trials, 4,000 verdicts, 20.0 kB a trial",
        (
            "committed and queryable: 2.00 s, 500 trials a second "
            "(processor 1.50 s, and 0.25 s to read)"
        ),
        (
            "bare limit, parse, compress and COPY the same rows: 1000 trials a second "
            "(processor 0.70 s); reached 50% of it"
        ),
        "where the time goes:",
        "     1.00 s   50%  store",
        "     0.50 s   25%  read",
        "     0.50 s   25%  the rest",
        "peak memory: 150.0 MB (90.0 MB before the first record)",
        "database: 5.5 kB a trial",
        "     5.0 kB a trial  traces_transcriptchunk",
        "      500 B a trial  traces_trial",
    ]


def test_benchmark_ingest_leaves_the_installed_database_alone(
    capsys: pytest.CaptureFixture[str], django_db_blocker: Any
) -> None:
    name = connection.settings_dict["NAME"]
    arguments = ["--trials", "4", "--tasks", "2", "--rounds", "2", "--json", "--profile"]

    text = run(capsys, django_db_blocker, "ingest", *arguments)

    assert connection.settings_dict["NAME"] == name
    result, end = json.JSONDecoder().raw_decode(text)
    assert (result["n_trials"], [bare["name"] for bare in result["bare"]]) == (
        4,
        ["made", "ready", "records"],
    )
    assert result["database_bytes"]["traces_trial"] > 0
    assert "function calls" in text[end:]


@pytest.mark.usefixtures("tables_copied")
def test_benchmark_pages_reports_queries_bytes_and_time(
    capsys: pytest.CaptureFixture[str], django_db_blocker: Any
) -> None:
    report = run(capsys, django_db_blocker, "pages", "--trials", "10", "--tasks", "2")

    lines = report.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "overview",
        "production",
        "tasks page",
        "task page",
        "tree",
        "diagnostics",
        "accepted paths",
        "compare",
        "trial page",
        "release page",
        "rules",
        "preview of rules",
        "flags",
        "receipt",
    ]
    for line in lines:
        found = re.search(r": 200, (\d+) queries \((\d+) with 3 trials\), .* times the bare", line)
        assert found, line
        assert found[1] == found[2]


@pytest.mark.usefixtures("tables_copied")
def test_benchmark_rules_reports_rates_beside_a_bare_read(
    capsys: pytest.CaptureFixture[str], django_db_blocker: Any
) -> None:
    report = run(capsys, django_db_blocker, "rules", "--trials", "12", "--tasks", "2")

    assert [
        re.sub(r"[0-9][0-9.,]*", "n", line).replace("kB", "MB") for line in report.splitlines()
    ] == [
        f"{name}: n {unit} in n s (processor n s), n a second, "
        "n times a bare read of all passing trials; peak memory n MB"
        for name, unit in (
            ("preview of a rule", "passing trials"),
            ("preview of an ignored text", "passing trials"),
            ("preview of tool kinds", "passing trials"),
            ("suggestions", "passing trials"),
            ("work on an approved version", "trajectories"),
        )
    ]


def test_grading_report_names_rate_stages_and_ratios() -> None:
    result = GradingResult(
        n_trials=1000,
        n_tasks=10,
        n_verdicts=11_000,
        seconds=4.0,
        processor_seconds=3.0,
        stages={"check them": 1.0, "write the verdicts": 2.0},
        bare_seconds=0.5,
        ingest_seconds=2.0,
        graded_ingest_seconds=5.0,
        pages={"tasks page": (20.0, 30.0)},
        peak_bytes=150_000_000,
    )

    assert grading_report(result) == [
        "1,000 trials of 10 tasks, 10 checks each, 11,000 verdicts",
        (
            "regraded and in effect: 4.00 s, 250 trials a second (processor 3.00 s), "
            "8.0 times a bare write of the same rows"
        ),
        "ingest with contracts in effect takes 2.50 times what it takes without",
        "where the time of the regrade goes:",
        "     2.00 s   50%  write the verdicts",
        "     1.00 s   25%  check them",
        "     1.00 s   25%  the rest",
        "pages while a worker regrades all trials:",
        "  tasks page: 1.50 times as long (30.0 ms, 20.0 ms)",
        "peak memory: 150.0 MB",
    ]


@pytest.mark.usefixtures("tables_copied")
def test_benchmark_grading_measures_a_regrade_and_pages_meanwhile(
    capsys: pytest.CaptureFixture[str], django_db_blocker: Any
) -> None:
    text = run(capsys, django_db_blocker, "grading", "--trials", "6", "--tasks", "2", "--json")

    result = json.loads(text)
    assert (result["n_trials"], result["n_tasks"]) == (6, 2)
    assert result["n_verdicts"] >= 6 * 10
    assert set(result["stages"]) == {
        "check them",
        "count the figures",
        "decide the trials",
        "read transcripts and states",
        "write the verdicts",
    }
    assert all(alone > 0 and meanwhile > 0 for alone, meanwhile in result["pages"].values())
