"""`match`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evalsite.management.commands import match as command

ROOT = Path(__file__).parents[3]
FILE = ROOT / "tests" / "data" / "14_agentevals" / "trajectory_match_cases.json"


def match(*words: str | Path) -> str:
    out = io.StringIO()
    call_command("match", *map(str, words), stdout=out)
    return out.getvalue()


def case(case_id: str, **fields: Any) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "a", "arguments": "{}"}}
    messages = [{"role": "assistant", "tool_calls": [call]}]
    return {
        "id": case_id,
        "trajectory_match_mode": "strict",
        "outputs": messages,
        "reference_outputs": messages,
        **fields,
    }


def written(folder: Path, cases: object) -> Path:
    path = folder / "cases.json"
    path.write_text(json.dumps(cases))
    return path


def test_match_agrees_with_every_portable_case() -> None:
    recorded = json.loads(FILE.read_text())
    portable = [each for each in recorded if each["portable"]]
    scores = json.loads(match(FILE, "--json"))

    assert len(portable) == 30
    assert [each["id"] for each in scores] == [each["id"] for each in recorded]
    told = {each["id"]: each["score"] for each in scores if each["score"] is not None}
    assert told == {each["id"]: each["expected_score"] for each in portable}
    assert [each for each in scores if each["id"] == "case_29"] == [
        {
            "id": "case_29",
            "score": None,
            "reason": "The arguments of “get_weather” are compared by a Python function.",
        }
    ]
    assert scores[0] == {"id": "case_01", "score": True}


def test_match_prints_a_table(tmp_path: Path) -> None:
    function = {"tool_args_match_overrides": {"a": {"callable": "f"}}}
    cases = [
        case("one", expected_score=True),
        case("another\u202e", outputs=[], trajectory_match_mode="superset", expected_score=True),
        case("third", expected_score=None, **function),
    ]

    assert match(written(tmp_path, cases)).splitlines() == [
        "one              strict     match",
        "another[U+202E]  superset   no match     the file expects match",
        (
            "third            strict     cannot tell  "
            "The arguments of “a” are compared by a Python function."
        ),
        "3 cases: 1 match, 1 do not, 1 cannot be told; 1 of 2 as the file expects",
    ]
    assert match(written(tmp_path, [])) == (
        "0 cases: 0 match, 0 do not, 0 cannot be told; 0 of 0 as the file expects\n"
    )


def test_match_needs_no_database() -> None:
    environment = {**os.environ, "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none"}
    ran = subprocess.run(
        [sys.executable, "manage.py", "match", "-", "--json"],
        cwd=ROOT,
        env=environment,
        input=json.dumps([case("c1")]).encode(),
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (
        0,
        b'[{"id": "c1", "score": true}]\n',
        b"",
    )


def test_match_names_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as error:
        match(written(tmp_path, [case("c1"), case("c2", trajectory_match_mode="x"), 1]))
    assert str(error.value).splitlines() == [
        (
            "Case 2 (“c2”), trajectory_match_mode: one of strict, unordered, subset, superset is"
            " needed, not “x”."
        ),
        "Case 3: an object is needed, not a number.",
    ]
    with pytest.raises(CommandError, match=r"And 5 more\.\Z"):
        match(written(tmp_path, [1] * 25))


def test_match_says_why_a_file_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="none cannot be read: No such file or directory"):
        match(tmp_path / "none")
    with pytest.raises(CommandError, match="cannot be read: Is a directory"):
        match(tmp_path)
    with pytest.raises(CommandError, match="cannot be read: no such name is possible"):
        match("a\x00b")
    monkeypatch.setattr(command, "MOST_BYTES", 1)
    with pytest.raises(CommandError, match=r"cases\.json is larger than 0 MiB\."):
        match(written(tmp_path, []))
