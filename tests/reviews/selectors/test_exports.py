"""Evidence written out: the same digests when it comes in again, and no formula in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsite import sample_loader
from reviews.models import Verdict
from reviews.selectors import exports
from reviews.selectors.exports import (
    CSV_COLUMNS,
    ExportSelection,
    csv_rows,
    jsonl_lines,
    plain_decimal,
    record_text,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, jsonl, ledger, record, verdict
from traces.core.records import Disposition
from traces.models import Release, Run, System, Trial, TrialDisposition
from traces.services.people import create_system

pytestmark = pytest.mark.django_db


def exported(system: System, **more: Any) -> bytes:
    return "".join(jsonl_lines(ExportSelection(system, **more))).encode("ascii")


def table(system: System, **more: Any) -> list[dict[str, str]]:
    text = "".join(csv_rows(ExportSelection(system, **more)))
    return list(csv.DictReader(io.StringIO(text, newline="")))


def digests(system: System) -> dict[tuple[str, str, int], tuple[str, list[str]]]:
    return {
        (trial.task.task_id, trial.label, trial.attempt): (
            trial.digest.hex,
            sorted(v.digest.hex for v in Verdict.objects.filter(trial=trial)),
        )
        for trial in Trial.objects.select_related("task").filter(task__system=system)
    }


def dispositions(system: System) -> dict[tuple[str, str], str]:
    rows = TrialDisposition.objects.filter(trial__task__system=system)
    return {
        (task, label): value
        for task, label, value in rows.values_list("trial__task__task_id", "trial__label", "value")
    }


ODD = [
    record("t1", 0, result="nul \x00 and half \ud83d of a pair"),
    record("t1", 1, calls=[("calculate", {"expression": "107505301260286111 * 3", "n": 10**30})]),
    record(
        "t1",
        "2",
        verdicts=[
            verdict("PASS", id="v1", score=1.50, rationale="= done", evidence=[{"step": 2}]),
            verdict(
                "fail", criterion="tone", kind="human", mandatory=False, **{"class": "semantic"}
            ),
            verdict("maybe", grader="judge", kind="model", cost=0.1),
            verdict("pass", id="v2", overrides="v1"),
        ],
        facts={"a": None},
        final_state={"n": 1.0},
        unknown_field={"kept": [1, 2.50, "x"]},
        usage={"cost_usd": 0.10, "input_tokens": 3},
        run="night",
    ),
    record("t1", 3, error="sandbox lost", verdicts=[]),
    record("\u65e5\u672c", "caf\u00e9", agent={"name": "a", "version": "1.0", "model": "m"}),
]


def test_json_lines_come_in_again_with_the_same_digests(cast: Cast) -> None:
    assert ledger(ingest(cast.system, ODD)) == (5, 5, 0, 0, 0)
    out = exported(cast.system)

    assert ledger(ingest(cast.system, out)) == (5, 0, 5, 0, 0)
    elsewhere = create_system("Copy", by=None)
    assert ledger(ingest(elsewhere, out)) == (5, 5, 0, 0, 0)

    assert digests(elsewhere) == digests(cast.system)
    assert dispositions(elsewhere) == dispositions(cast.system)
    assert exported(elsewhere) == out


def test_public_data_comes_in_again_with_the_same_digests(cast: Cast) -> None:
    for path in (
        "tau_bench_airline/gpt-4o-airline.tasks00-24.json.gz",
        "tau2_airline/qwen2.5-7b.json.gz",
    ):
        system = create_system(path, slug=path[:8].replace("_", "-"), by=None)
        first = ingest(system, (sample_loader.FOLDER / path).read_bytes())
        copy = create_system(f"copy of {path}", by=None)

        again = ingest(copy, exported(system))

        assert again.n_stored == first.n_trials
        assert digests(copy) == digests(system)
        assert dispositions(copy) == dispositions(system)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(json_values, json_values, st.text(max_size=20)), min_size=1, max_size=4))
def test_any_record_comes_in_again_with_the_same_digest(
    cast: Cast, contents: list[tuple[Any, Any, str]]
) -> None:
    records = [
        record("t", n, calls=[("f", {"x": argument})], result=words, final_state=state)
        for n, (argument, state, words) in enumerate(contents)
    ]
    number = System.objects.count()
    system = create_system(f"System {number}", by=None)
    assert ingest(system, records).n_stored == len(records)

    again = ingest(system, exported(system))

    assert ledger(again) == (len(records), 0, len(records), 0, 0)


def test_an_export_is_of_one_release_or_run(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0), record("t1", 1, run="night")], release="2.0")
    second = Release.objects.get(name="2.0")

    assert len(exported(cast.system).splitlines()) == 3
    assert len(exported(cast.system, release=second).splitlines()) == 2
    night = Run.objects.get(name="night")
    assert [row["trial"] for row in table(cast.system, run=night)] == ["1"]


def test_batches_do_not_change_the_export(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(cast.system, [record("t1", n) for n in range(7)])
    lines, rows = exported(cast.system), table(cast.system)

    monkeypatch.setattr(exports, "BATCH_TRIALS", 3)
    monkeypatch.setattr(exports, "BATCH_BYTES", 1)

    assert (exported(cast.system), table(cast.system)) == (lines, rows)
    assert len(rows) == 7


def test_csv_has_a_row_for_each_trial_with_its_numbers(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record(
                "t1",
                0,
                usage={"cost_usd": 0.0410, "input_tokens": 12, "output_tokens": 3},
                started_at="2026-11-30T10:00:00Z",
                ended_at="2026-11-30T10:00:02.5Z",
                fault={"kind": "timeout", "step": 1},
            ),
            record("t1", 1, error="lost"),
        ],
    )
    trial = Trial.objects.get(label="0")

    row, broken = table(cast.system)

    assert tuple(row) == CSV_COLUMNS
    paths = {name: value for name, value in row.items() if name.startswith("path_")}
    assert all(value.startswith("path-") for value in paths.values())
    assert {name: value for name, value in row.items() if name not in paths} == {
        "task": "t1",
        "family": "",
        "split": "",
        "release": "1.0",
        "run": "default",
        "trial": "0",
        "attempt": "1",
        "stands": "yes",
        "status": "completed",
        "disposition": "pass",
        "failed_classes": "",
        "next_actions": "",
        "environment": "test",
        "has_fault": "yes",
        "error": "",
        "termination": "",
        "started_at": "2026-11-30T10:00:00+00:00",
        "ended_at": "2026-11-30T10:00:02.500000+00:00",
        "seconds": "2.5",
        "cost_usd": "0.041",
        "input_tokens": "12",
        "output_tokens": "3",
        "messages": "4",
        "tool_calls": "1",
        "rejected_calls": "0",
        "final_agent_message": "Done.",
        "id": str(trial.uuid),
    }
    assert broken["disposition"] == Disposition.HARNESS_ERROR.value
    assert broken["error"] == "lost"
    assert broken["cost_usd"] == ""


def test_csv_cells_are_no_formulas(cast: Cast) -> None:
    words = ["=1+1", "+x", "-x", "@x", "\t=x", "\r=x", 'a\nb,"c"', "x" * 66_000, "\u2028=1"]
    records = []
    for n, text in enumerate(words):
        one = record("t1", n)
        one["messages"][-1]["content"] = text
        records.append(one)
    records.append(record("=cmd", "@SUM(A1)", error="-1+1"))
    ingest(cast.system, records)

    rows = table(cast.system)

    assert len(rows) == len(words) + 1
    assert all(None not in row and None not in row.values() for row in rows)
    for row in rows:
        for name in ("task", "trial", "error", "final_agent_message"):
            assert not row[name].lstrip().startswith(("=", "+", "-", "@"))
    assert rows[6]["final_agent_message"] == words[6]
    assert rows[7]["final_agent_message"] == words[7]


def test_the_last_words_of_an_agent_are_found_behind_calls(cast: Cast) -> None:
    silent = record("t1", 0)
    silent["messages"] = [silent["messages"][0]]
    early = record("t1", 1)
    early["messages"] = [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}],
        },
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "Thanks"},
    ]
    ingest(cast.system, [silent, early])

    assert [row["final_agent_message"] for row in table(cast.system)] == ["", "One\ntwo"]


def test_numbers_lose_the_zeros_of_their_column_and_nothing_else() -> None:
    given = ["1.000", "100", "0.0410", "-3.50", "0E-20", "12345678901234567890.10"]
    shown = [str(plain_decimal(Decimal(text))) for text in given]
    assert shown == ["1", "100", "0.041", "-3.5", "0", "12345678901234567890.1"]
    assert plain_decimal(None) is None


def test_a_record_is_written_digit_for_digit(cast: Cast) -> None:
    body = jsonl([record("t1", 0)]).replace(
        b'"task_id"', b'"exact": 0.1000000000000000055, "big": 9007199254740993, "task_id"'
    )
    ingest(cast.system, body)

    text = record_text(Trial.objects.get())

    assert '"big":9007199254740993' in text
    assert "0.1000000000000000055" in text
    assert json.loads(text)["task_id"] == "t1"
