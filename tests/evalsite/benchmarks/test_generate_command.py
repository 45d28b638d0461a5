import gzip
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evalsite.benchmarks.generator import trials


def test_generate_writes_plain_and_compressed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, packed = tmp_path / "t.jsonl", tmp_path / "t.jsonl.gz"
    for path in (plain, packed):
        call_command("generate", trials=3, tasks=2, out=path)

    expected = b"".join(trials(n_trials=3, n_tasks=2))
    assert plain.read_bytes() == expected
    assert gzip.decompress(packed.read_bytes()) == expected
    said = f"3 trials, {len(expected)} bytes before compression: {plain}"
    assert capsys.readouterr().out.splitlines()[0] == said


def test_generate_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        call_command("generate", trials=2, tasks=2, out=tmp_path / name)

    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_generate_refuses_no_trials(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="at least 1"):
        call_command("generate", trials=0, out=tmp_path / "t.jsonl")


def test_generate_names_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written: No such file"):
        call_command("generate", trials=1, out=tmp_path / "none" / "t.jsonl")
