"""Contracts checked, loaded and exported by command."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.support.cast import Cast
from tests.support.contract_drafts import in_effect, planted, text_of
from tests.support.evidence import ingest, record
from traces.models import ContractPreview, ContractProposal

pytestmark = pytest.mark.django_db

CASES = Path(__file__).parents[2] / "data" / "cases"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    return cast


def ran(*words: str) -> tuple[int, list[str]]:
    """The exit code and what is printed."""
    out = io.StringIO()
    try:
        call_command("contracts", *words, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue().splitlines()
    except CommandError as error:
        return error.returncode, [*out.getvalue().splitlines(), str(error)]
    return 0, out.getvalue().splitlines()


def written(folder: Path, text: str, name: str = "a.yaml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_a_check_names_file_line_column_and_field(tmp_path: Path) -> None:
    good = written(tmp_path, text_of("t1"), "good.yaml")
    bad = written(tmp_path, text_of("t2", rest="budget: {turns: -1}\n"), "bad.yaml")
    code, lines = ran("check", good, bad)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"{bad}:4:17: budget.turns: ")


def test_a_check_prints_each_grader_test(tmp_path: Path) -> None:
    text = text_of(
        rest=planted() + planted("fail", name="a wrong one").removeprefix("grader_tests:\n")
    )
    code, lines = ran("check", written(tmp_path, text))
    assert code == 1
    assert lines[0] == "met  t1: a right one"
    assert lines[1] == "NOT MET  t1: a wrong one"
    assert lines[2].startswith("         looked: fail expected, pass found.")
    assert lines[3] == "1 contract without mistakes; 1 of 2 grader tests met."
    assert ran("check", written(tmp_path, text_of(rest=planted()))) == (
        0,
        ["met  t1: a right one", "1 contract without mistakes; 1 of 1 grader test met."],
    )


def test_a_check_against_a_system_knows_its_tools(filled: Cast, tmp_path: Path) -> None:
    path = written(tmp_path, "task: t1\nrequired:\n  - {id: a, call: nobody}\n")
    assert ran("check", path)[0] == 0
    code, lines = ran("check", path, "--system", "airline")
    assert code == 1
    assert 'No tool "nobody" is known' in lines[0]


def test_a_file_that_cannot_be_read_ends_with_two(tmp_path: Path) -> None:
    code, lines = ran("check", str(tmp_path / "none.yaml"))
    assert (code, lines) == (
        2,
        [f"{tmp_path / 'none.yaml'} cannot be read: No such file or directory."],
    )
    assert ran("check", "a\x00b")[0] == 2


def test_files_are_drafted(filled: Cast, tmp_path: Path) -> None:
    one, two = (written(tmp_path, text_of(task), f"{task}.yaml") for task in ("t1", "t2"))
    code, lines = ran("load", "airline", one, two, "--by", "engineer")
    preview = ContractPreview.objects.get()
    assert code == 0
    at = f"/systems/airline/contracts/previews/{preview.uuid}/"
    assert lines == [f"2 contracts drafted; {at} shows what they would change."]
    assert set(preview.texts) == {"t1", "t2"}


def test_files_are_proposed_with_what_they_change(filled: Cast, tmp_path: Path) -> None:
    path = written(tmp_path, text_of())
    code, lines = ran("load", "airline", path, "--by", "engineer", "--propose", "--reason", "So.")
    assert code == 0
    assert lines[-1] == (
        "Proposal 1: 1 contract; somebody else decides at /systems/airline/contracts/proposals/1/."
    )
    assert ContractProposal.objects.get().reason == "So."


def test_what_cannot_be_loaded_is_said(filled: Cast, tmp_path: Path) -> None:
    path = written(tmp_path, text_of())
    bad = written(tmp_path, "task: t1\nrequired: 3\n", "bad.yaml")
    assert ran("load", "airline", path, "--by", "engineer", "--propose")[1] == [
        "A proposal needs a reason: --reason R."
    ]
    code, lines = ran("load", "airline", bad, "--by", "engineer")
    assert (code, lines[-1]) == (1, "Nothing was loaded.")
    assert lines[0].startswith(f"{bad}:2:11: required: ")
    assert ran("load", "airline", path, "--by", "reviewer") == (
        1,
        ["Only an engineer of this system proposes contracts."],
    )
    assert not ContractPreview.objects.exists()


def test_contracts_in_effect_are_exported(filled: Cast, tmp_path: Path) -> None:
    assert ran("export", "airline")[1] == ["airline has no contract in effect."]
    in_effect(filled, text_of("t1"), text_of("t2"))
    whole = f"{text_of('t1')}---\n{text_of('t2')}"
    assert ran("export", "airline") == (0, whole.splitlines())
    target = tmp_path / "out.yaml"
    assert ran("export", "airline", "--output", str(target)) == (0, [])
    assert target.read_text() == whole
    code, lines = ran("export", "airline", "--output", str(tmp_path))
    assert (code, lines) == (1, [f"{tmp_path} cannot be written: Is a directory."])


@pytest.mark.parametrize("path", sorted(CASES.glob("contract-*.yaml")), ids=lambda path: path.stem)
def test_hostile_contracts_are_refused_at_once_with_their_line(filled: Cast, path: Path) -> None:
    began = time.monotonic()
    code, lines = ran("check", str(path))
    assert time.monotonic() - began < 2
    assert code == 1
    assert all(line.startswith(f"{path}:") for line in lines)
    assert ran("load", "airline", str(path), "--by", "engineer")[0] == 1
    assert not Path("/tmp/pwned_by_contract").exists()
