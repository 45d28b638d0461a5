"""The generated trials have the shape of the airline data that they stand for."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import pytest

from evalsite.benchmarks.generator import trials
from traces.core.formats import read_upload
from traces.core.records import ParsedTrial

N = 400


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return list(trials(n_trials=N, n_tasks=50))


def test_same_seed_same_bytes(lines: Sequence[bytes]) -> None:
    assert list(trials(n_trials=60, n_tasks=50)) == lines[:60]
    assert list(trials(n_trials=1, n_tasks=50, seed=1)) != lines[:1]


def test_each_trial_has_an_identity_of_its_own(lines: Sequence[bytes]) -> None:
    records = [json.loads(line) for line in lines]

    keys = {(r["task_id"], r["agent"]["version"], r["trial"]) for r in records}

    assert len(keys) == N
    assert len({r["task_id"] for r in records}) == 50
    assert len({r["agent"]["version"] for r in records}) == 5


def test_sizes_and_counts_are_those_of_the_airline_data(lines: Sequence[bytes]) -> None:
    messages = [json.loads(line)["messages"] for line in lines]
    calls = [sum(len(m.get("tool_calls", ())) for m in transcript) for transcript in messages]

    assert 18_000 < mean(map(len, lines)) < 22_000
    assert 24 < mean(map(len, messages)) < 32
    assert 7 < mean(calls) < 10


def test_text_has_the_entropy_of_the_airline_data(lines: Sequence[bytes]) -> None:
    # Measured on the five real agents in native form: 4.16 to 4.88 for a trial, mean 4.54;
    # 5.69 to 6.38 for a file, mean 6.09.
    text = b"".join(lines)

    each = len(text) / sum(len(zlib.compress(line)) for line in lines)
    whole = len(text) / len(zlib.compress(text))

    assert each == pytest.approx(4.54, rel=0.1)
    assert whole == pytest.approx(6.09, rel=0.1)


def test_the_native_reader_takes_them_without_a_word(
    lines: Sequence[bytes], tmp_path: Path
) -> None:
    file = tmp_path / "trials.jsonl"
    file.write_bytes(b"".join(lines))

    items = list(read_upload(file))

    assert [item.refusals + item.warnings for item in items] == [()] * N
    trials_read = [item.content for item in items if isinstance(item.content, ParsedTrial)]
    assert len(trials_read) == N
    assert all(trial.trajectory for trial in trials_read)
