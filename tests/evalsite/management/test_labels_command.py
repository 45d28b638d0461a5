from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reviews.models import CalibrationSet, Label
from tests.support.cast import Cast
from tests.support.sets import a_set, items, labelled, stored

pytestmark = pytest.mark.django_db

SAID = ("--name", "Raters", "--source", "A paper.", "--licence", "MIT", "--reason", "So.")


def run(*words: str) -> tuple[int, str]:
    """The exit code and what was written."""
    out = io.StringIO()
    try:
        call_command("labels", *words, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def written(folder: Path, *labels: dict[str, Any]) -> str:
    path = folder / "labels.jsonl"
    path.write_text("\n".join(map(json.dumps, labels)))
    return str(path)


def label_of(trial: int, value: str = "pass") -> dict[str, Any]:
    return {"task_id": "t1", "trial": trial, "labeller": "rater_1", "value": value}


def bring(*words: str, by: str = "engineer") -> tuple[int, str]:
    return run("airline", "import", *words, "--criterion", "outcome", "--by", by, *SAID)


def test_sets_are_listed(cast: Cast) -> None:
    stored(cast, 2)
    assert run("airline", "list") == (0, "No calibration set yet.\ncriterion  outcome\n")
    labelled(items(a_set(cast))[0], (cast.reviewer, "pass"), (cast.second_reviewer, "pass"))

    assert run("airline", "list") == (
        0,
        (
            "1  First set  outcome  random  open  1 of 2 items settled  (reviewer 1, second_reviewer "
            "1)\ncriterion  outcome\n"
        ),
    )


def test_labels_are_brought_in_and_taken_out(cast: Cast, tmp_path: Path) -> None:
    stored(cast, 2)
    file = written(tmp_path, label_of(0), label_of(1, "fail"))

    assert bring(file) == (
        0,
        (
            "2 labels landed in set 1. They count in no calibration until a reviewer vouches for the "
            "set.\n"
        ),
    )
    assert bring(file)[1].startswith("These very labels are there already, as set 1.")
    code, text = run("airline", "export", "1")
    assert (code, [json.loads(line)["consensus"] for line in text.splitlines()]) == (
        0,
        ["pass", "fail"],
    )
    target = tmp_path / "out.csv"
    assert run("airline", "export", "1", "--format", "csv", "--output", str(target)) == (0, "")
    assert len(target.read_text().splitlines()) == 3
    with pytest.raises(CommandError, match="cannot be written"):
        run("airline", "export", "1", "--output", str(tmp_path))
    with pytest.raises(CommandError, match="no such calibration set"):
        run("airline", "export", "9")


def test_lines_that_do_not_land_are_told(cast: Cast, tmp_path: Path) -> None:
    stored(cast, 1)
    file = written(tmp_path, label_of(0), label_of(0, "perhaps\u202e"), label_of(7))

    code, text = bring(file)

    assert code == 1
    assert text.splitlines()[:2] == [
        "line 2: The word “perhaps[U+202E]” stands for no pass, fail or unknown.",
        "line 3: There is no trial “t1 · 7” in this system.",
    ]
    assert Label.objects.count() == 1
    assert bring(written(tmp_path, label_of(7)))[0] == 1


def test_what_cannot_be_is_refused_in_one_sentence(cast: Cast, tmp_path: Path) -> None:
    stored(cast, 1)
    file = written(tmp_path, label_of(0))

    for words, sentence in (
        ((), "Give a file, or --from-verdicts."),
        ((file, "--from-verdicts"), "Give a file, or --from-verdicts."),
        ((str(tmp_path / "none"),), "cannot be read: No such file or directory."),
        (("--from-verdicts",), "No imported verdict of a person is stored on this criterion."),
        ((file, "--criterion", "tone"), "asks for no criterion 'tone' to label"),
    ):
        with pytest.raises(CommandError, match=sentence):
            run("airline", "import", "--criterion", "outcome", *words, "--by", "engineer", *SAID)
    with pytest.raises(CommandError, match="Only an engineer or a reviewer"):
        bring(file, by="owner")
    with pytest.raises(CommandError, match="neither JSON Lines nor CSV"):
        (tmp_path / "odd").write_text("a,b")
        bring(str(tmp_path / "odd"))
    assert not CalibrationSet.objects.exists()
