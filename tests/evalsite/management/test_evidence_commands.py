"""`ingest`, `paths`, `figures`, `export` and `rebuild`."""

from __future__ import annotations

import io
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evalsite.management.commands import ingest as command
from tests.support.cast import Cast
from tests.support.evidence import jsonl, receive, record, verdict
from traces.models import (
    Member,
    Run,
    System,
    TaskFigures,
    TrajectoryPaths,
    Trial,
    TrialDisposition,
    Upload,
)

pytestmark = pytest.mark.django_db


def run(*words: str) -> tuple[int, str]:
    """Exit code and output."""
    out, code = io.StringIO(), 0
    try:
        call_command(*words, stdout=out)
    except SystemExit as error:
        code = int(error.code or 0)
    return code, out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(jsonl([record("t1", 0), record("t1", 1, verdicts=[verdict("fail")])]))
    return path


def ingest(*words: str | Path) -> tuple[int, str]:
    return run("ingest", *map(str, words), "--system", "Airline", "--release", "1.0")


def test_ingest_makes_system_and_release_without_an_owner(db: None, file: Path) -> None:
    code, text = ingest(file, "--run", "night")

    assert code == 0
    assert "2 received, 2 stored, 0 duplicate, 0 conflict, 0 refused" in text
    assert System.objects.get().created_by is None
    assert Member.objects.count() == 0
    assert Run.objects.get().name == "night"
    assert Upload.objects.get().by is None


def test_ingest_records_who_uploads(cast: Cast, file: Path) -> None:
    assert ingest(file, "--by", "engineer")[0] == 0
    assert Upload.objects.get().by == cast.engineer
    with pytest.raises(CommandError, match="There is no person 'nobody'"):
        ingest(file, "--by", "nobody")


def test_ingest_again_is_a_no_op_and_exits_0(db: None, file: Path) -> None:
    ingest(file)
    code, text = ingest(file)
    assert code == 0
    assert "0 stored, 2 duplicate" in text
    assert Trial.objects.count() == 2


def test_ingest_names_each_refused_record_and_exits_1(db: None, file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"{broken\n" + b'{"task_id": "t\xe2\x80\xae"}\n')

    code, text = ingest(file)

    assert code == 1
    lines = [line.strip() for line in text.splitlines() if " refused" in line and "record" in line]
    assert len(lines) == 2
    assert lines[0].startswith("record 3 refused")
    assert lines[1].startswith("record 4 refused at ")
    assert "\u202e" not in text


def test_ingest_of_other_content_exits_1_and_keeps_the_first(db: None, file: Path) -> None:
    ingest(file)
    digests = set(Trial.objects.values_list("digest", flat=True))
    file.write_bytes(jsonl([record("t1", 0, result="other")]))

    code, text = ingest(file)

    assert code == 1
    assert "record 1 conflict" in text
    assert set(Trial.objects.values_list("digest", flat=True)) == digests


def test_ingest_of_nothing_readable_exits_2(db: None, tmp_path: Path, file: Path) -> None:
    page, nothing = tmp_path / "page.html", tmp_path / "none"
    page.write_text("<html>502</html>")

    assert ingest(page)[0] == ingest(nothing)[0] == ingest(tmp_path)[0] == 2
    assert "HTML" in ingest(page)[1]
    assert "No such file" in ingest(nothing)[1]
    assert "pack it" in ingest(tmp_path)[1]
    assert ingest(page, nothing, file)[0] == 1
    assert Trial.objects.count() == 2


def test_ingest_of_records_that_are_all_refused_exits_1_and_of_no_json_2(
    db: None, file: Path
) -> None:
    file.write_bytes(jsonl([record("t1", 0, agent={"version": "9"})]))
    assert ingest(file)[0] == 1
    file.write_bytes(b'{"task_id": \n' * 30)
    assert ingest(file)[0] == 2


def test_ingest_of_an_absent_file_makes_no_system(db: None, tmp_path: Path) -> None:
    ingest(tmp_path / "none")
    assert System.objects.count() == 0


@pytest.mark.parametrize("words", [("--by", "nobody"), ("--system", "!!!")])
def test_ingest_for_nobody_or_into_nothing_ends_with_2(
    words: tuple[str, str], db: None, file: Path
) -> None:
    with pytest.raises(CommandError) as error:
        ingest(file, *words) if words[0] == "--by" else run("ingest", str(file), *words)

    assert error.value.returncode == 2
    assert Upload.objects.count() == 0


def test_ingest_reads_what_another_program_pipes_in(db: None, tmp_path: Path, file: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(file.read_bytes()), daemon=True)
    writer.start()

    assert ingest(pipe)[0] == 0

    writer.join(5)
    assert (writer.is_alive(), Trial.objects.count()) == (False, 2)


def test_an_operators_file_may_be_larger_than_an_upload(
    db: None, file: Path, settings: Any
) -> None:
    settings.EVALSITE_LIMITS = replace(settings.EVALSITE_LIMITS, inflated_bytes=100)
    assert ingest(file)[0] == 0
    assert Trial.objects.count() == 2


def test_ingest_prints_the_ledger_of_several_files_as_json(
    db: None, file: Path, tmp_path: Path
) -> None:
    second = tmp_path / "second.jsonl"
    second.write_bytes(jsonl([record("t1", 0), record("t2", 0)]) + b"[]\n")

    code, text = ingest(file, second, "--json")

    document = json.loads(text)
    assert code == 1
    files = document.pop("files")
    assert document == {
        "received": 5,
        "stored": 3,
        "duplicate": 1,
        "conflict": 0,
        "refused": 1,
        "trials": 3,
        "verdicts": 3,
        "verdicts_refused": 0,
        "waiting": 0,
        "warnings": 0,
    }
    assert [one["state"] for one in files] == ["done", "done"]
    (line,) = files[1]["lines"]
    assert (line["number"], line["outcome"]) == (3, "refused")


def test_ingest_refuses_an_unknown_format_and_a_system_without_a_name(db: None, file: Path) -> None:
    code, text = ingest(file, "--format", "otlp")
    assert (code, "Unknown format" in text) == (2, True)
    with pytest.raises(CommandError, match="no letters or digits"):
        run("ingest", str(file), "--system", "!!!")


def test_ingest_waits_for_a_worker_that_took_the_upload(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = receive(cast.system, jsonl([record("t1", 0)]))
    original, calls = command.process_upload, 0

    def taken_at_first(upload_id: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            original(upload_id)

    monkeypatch.setattr(command, "process_upload", taken_at_first)
    monkeypatch.setattr(command, "_WAIT_SECONDS", 0.0)

    assert command._finished_job(upload).state == "done"


def test_tables_for_people(db: None, file: Path) -> None:
    ingest(file)

    assert run("paths", "--system", "airline", "--level", "exact")[1].splitlines() == [
        "Airline: passing paths at the level exact, with agent messages",
        "all versions of a task together; passed / graded / run",
        "t1: 1 / 2 / 2, 1 paths",
        "     1  0",
    ]
    assert run("figures", "--system", "airline")[1].splitlines() == [
        "1 tasks; passed / graded / run: 1 / 2 / 2; rate 50.0 % (1/2)",
        "range of the rate, from all unknown ones fail to all pass: 50.0 % to 50.0 %",
        "   k    pass^k    pass@k   over tasks   left out, as they have fewer than k trials",
        "   1    50.0 %    50.0 %            1   ",
        "   2     0.0 %   100.0 %            1   ",
    ]


def test_figures_name_what_is_left_out(db: None, file: Path) -> None:
    file.write_bytes(
        jsonl(
            [
                *(record("t1", n) for n in range(2)),
                *(record(f"u{n}", 0) for n in range(12)),
                record("t2", 0, environment="production"),
            ]
        )
    )
    ingest(file)
    text = run("figures", "--system", "airline", "--release", "1.0")[1]
    assert "1 trials are left out: production" in text
    assert "and 2 more" in text


@pytest.mark.parametrize("name", ["paths", "figures", "export"])
def test_a_system_or_release_that_is_not_there_is_named(cast: Cast, name: str) -> None:
    with pytest.raises(CommandError, match="There is no system 'nowhere'"):
        run(name, "--system", "nowhere")
    with pytest.raises(CommandError, match="release"):
        run(name, "--system", "airline", "--release", "9")


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_paths_name_a_task_that_is_not_there(db: None, file: Path, more: list[str]) -> None:
    ingest(file)
    words = ["paths", "--system", "airline", *more]
    assert run(*words, "--task", "t1")[0] == 0
    with pytest.raises(CommandError) as refused:
        run(*words, "--task", "nosuch\x1b[2J")
    assert str(refused.value) == "airline has no trial of the task 'nosuch[U+001B][2J'."
    with pytest.raises(CommandError, match="no trial of these releases of the task 'nosuch'"):
        run(*words, "--task", "nosuch", "--release", "1.0")


def test_export_writes_to_a_file_or_to_standard_output(
    db: None, file: Path, tmp_path: Path
) -> None:
    ingest(file)
    kept = tmp_path / "out.csv"

    run("export", "--system", "airline", "--format", "csv", "--output", str(kept))
    text = run("export", "--system", "airline", "--release", "1.0")[1]

    assert kept.read_bytes().count(b"\r\n") == 3
    assert [json.loads(line)["trial"] for line in text.splitlines()] == [0, 1]
    with pytest.raises(CommandError, match="cannot be written"):
        run("export", "--system", "airline", "--output", str(tmp_path))


def projections() -> tuple[Any, ...]:
    figures = TaskFigures.objects.order_by("task_id", "release_id").values(
        "task_id", "release_id", "n_run", "n_pass", "n_fail", "n_error", "n_left_out", "n_paths"
    )
    dispositions = TrialDisposition.objects.order_by("trial_id").values(
        "trial_id", "value", "failed_classes", "next_actions", "stands"
    )
    paths = TrajectoryPaths.objects.order_by("trajectory_id").values_list(
        "trajectory_id", "rules_id", "tool_set", "effects", "reads_any_order_msg", "equivalent",
        "exact", "exact_msg",
    )  # fmt: skip
    return list(figures), list(dispositions), list(paths)


def test_rebuild_makes_the_same_projections_again(cast: Cast, file: Path) -> None:
    without_arguments = record("t3", 0)
    for message in without_arguments["messages"]:
        for call in message.get("tool_calls", ()):
            del call["function"]["arguments"]
    file.write_bytes(
        jsonl(
            [
                record("t1", 0, calls=[("a", {"x": 1}), ("b", {"y": [True, None]})]),
                record("t1", 1, verdicts=[verdict("fail")]),
                record("t1", 2, error="lost"),
                record("t1", 2, attempt=2),
                record("t2", 0, calls=[]),
                without_arguments,
                without_arguments | {"trial": 1},
            ]
        ).replace(b'{\\"x\\": 1}', b"{broken")
    )
    ingest(file)
    before = projections()
    TrajectoryPaths.objects.filter(trajectory__task__task_id="t1").delete()
    TaskFigures.objects.all().delete()
    TrialDisposition.objects.update(value="unresolved", failed_classes=[], stands=False)

    code, text = run("rebuild")

    assert code == 0
    assert projections() == before
    assert "3 tasks have their figures" in text
    run("rebuild", "--system", "airline")
    assert projections() == before
