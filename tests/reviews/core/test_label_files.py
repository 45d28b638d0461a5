from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from reviews.core.consensus import Consensus
from reviews.core.label_files import (
    MOST_BYTES,
    MOST_LABELS,
    FileLabel,
    ImportedItem,
    LabelFileError,
    PlacedLabel,
    ReadLabels,
    RefusedLine,
    SortedLabels,
    TrialName,
    read_labels,
    sorted_by_trial,
)
from traces.core.records import VerdictValue

PASS, FAIL, UNKNOWN = VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN
T1 = TrialName(task_id="t1", trial="0")


def jsonl(*lines: object) -> bytes:
    return "\n".join(json.dumps(line) for line in lines).encode()


def one(**changed: Any) -> dict[str, Any]:
    return {"task_id": "t1", "trial": 0, "labeller": "rater_1", "value": "pass"} | changed


def refusal(**changed: Any) -> str:
    read = read_labels(jsonl(one(**changed)))
    assert read.labels == ()
    return read.refused[0].sentence


def test_a_line_of_json_is_a_label() -> None:
    identity = uuid.UUID(int=7)
    line = one(
        run="nightly",
        release="1.0",
        attempt=2,
        trial_id=str(identity),
        external_id="x-1",
        value=" Compliant ",
        reason=" So. ",
        steps=[4, 2, 2],
        more={"kept": "aside"},
    )

    assert read_labels(jsonl(line)) == ReadLabels(
        (
            FileLabel(
                1,
                TrialName("t1", "0", "nightly", "1.0", 2, identity, "x-1"),
                "rater_1",
                PASS,
                "So.",
                (2, 4),
            ),
        )
    )


def test_good_lines_land_and_bad_ones_are_told_by_number() -> None:
    data = b"\n".join(
        [
            jsonl(one()),
            b"",
            jsonl(one(value="maybe")),
            b"{not json",
            jsonl([1]),
            jsonl(one(labeller="rater_2", value="FAILED")),
        ]
    )

    read = read_labels(data)

    assert [(label.line, label.labeller, label.value) for label in read.labels] == [
        (1, "rater_1", PASS),
        (6, "rater_2", FAIL),
    ]
    assert [line.line for line in read.refused] == [3, 4, 5]
    assert read.refused[0].sentence == "The word “maybe” stands for no pass, fail or unknown."
    assert read.refused[2].sentence == "A line is one JSON object."


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"value": None}, "It has no value: pass, fail or unknown."),
        ({"value": "error"}, "The word “error” stands for no pass, fail or unknown."),
        ({"value": True}, "The word “True” stands for no pass, fail or unknown."),
        ({"value": "x" * 70}, f"The word “{'x' * 60}…” stands for no pass, fail or unknown."),
        ({"labeller": ""}, "It names no labeller."),
        ({"labeller": " \u200b"}, "It names no labeller."),
        ({"labeller": 7}, "`labeller` is a text."),
        ({"labeller": "x" * 201}, "The name of a labeller has at most 200 characters."),
        ({"reason": "x" * 4_001}, "A reason has at most 4,000 characters."),
        ({"reason": {"a": 1}}, "`reason` is a text."),
        ({"steps": 3}, "`steps` is a list of step numbers."),
        ({"steps": [0]}, "`steps` is a list of step numbers."),
        ({"steps": [True]}, "`steps` is a list of step numbers."),
        ({"steps": [1.5]}, "`steps` is a list of step numbers."),
        ({"steps": [10**9]}, "`steps` is a list of step numbers."),
        ({"steps": list(range(1, 52))}, "A label cites at most 50 steps."),
        ({"attempt": 0}, "`attempt` is a whole number from 1."),
        ({"attempt": "x"}, "`attempt` is a whole number from 1."),
        ({"trial_id": "x"}, "`trial_id` is no id of a trial; give it as it stands here."),
        ({"task_id": "x" * 513}, "`task_id` has at most 512 characters."),
        ({"trial": True}, "`trial` is a text."),
        (
            {"trial": None},
            "It names no trial: give task_id and trial, trial_id, or external_id.",
        ),
        ({"withdrawn": "Cut."}, "This item was withdrawn from the set that the file is of."),
        ({"labels": "none"}, "`labels` is a list of objects."),
        ({"labels": [3]}, "`labels` is a list of objects."),
    ],
)
def test_a_line_is_refused(changed: dict[str, Any], sentence: str) -> None:
    assert refusal(**changed) == sentence


def test_deeply_nested_and_doubled_content_is_refused_by_line() -> None:
    deep = b'{"task_id": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    twice = b'{"task_id": "t1", "task_id": "t2"}'

    read = read_labels(deep + b"\n" + twice)

    assert [line.line for line in read.refused] == [1, 2]


def test_several_labels_of_a_trial_stand_in_one_line() -> None:
    line = one(labels=[{"labeller": "a", "value": "pass"}, {"labeller": "b", "value": "?"}])

    read = read_labels(jsonl(line, one(labels=[])))

    assert read.labels == (FileLabel(1, T1, "a", PASS),)
    assert [line.line for line in read.refused] == [1]


CSV = """\
Task_ID,trial, labeller ,value,reason,steps,other
t1,0,rater_1,pass,"said
in two lines",2 5,x
t1,0,rater_2,nope,,,
t1,1,,,,,
,,,,,,
'=t2,1,'+rater,fail,'=1+1,"3;4,9",
"""


def test_a_csv_is_read_by_the_names_of_its_head() -> None:
    read = read_labels(b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode())

    assert read.labels == (
        FileLabel(2, T1, "rater_1", PASS, "said\r\nin two lines", (2, 5)),
        FileLabel(7, TrialName(task_id="=t2", trial="1"), "+rater", FAIL, "=1+1", (3, 4, 9)),
    )
    assert read.refused == (RefusedLine(4, "The word “nope” stands for no pass, fail or unknown."),)


def test_a_csv_line_is_refused_where_it_is_longer_than_the_head_or_withdrawn() -> None:
    data = "external_id,labeller,value,withdrawn\nx,a,pass,,,\ny,a,pass,Cut.\n'q,a,pass\n"

    read = read_labels(data.encode())

    assert read.labels == (FileLabel(4, TrialName(external_id="'q"), "a", PASS),)
    assert [line.sentence for line in read.refused] == [
        "The line has 6 cells and the head 4.",
        "This item was withdrawn from the set that the file is of.",
    ]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "The file is empty: there is no label in it."),
        (b"\xef\xbb\xbf \n", "The file is empty: there is no label in it."),
        (
            b"task_id,trial\nt1,0",
            (
                "The file is neither JSON Lines nor CSV with a head: its first line names no column "
                "labeller and no column value."
            ),
        ),
        (
            b"labeller,trial\nt1,0",
            (
                "The file is neither JSON Lines nor CSV with a head: its first line names no column "
                "value."
            ),
        ),
        (b"labeller,value,value\n", "The first line names the column value twice."),
        (b"x" * (MOST_BYTES + 1), "A file of labels has at most 8 MiB."),
        (
            "labeller,value".encode("utf-16"),
            "The text is UTF-16 or UTF-32; only UTF-8 is read. Save it as UTF-8.",
        ),
        (b"{}\n" * (MOST_LABELS + 1), "A file of labels has at most 20,000 labels."),
    ],
)
def test_a_file_is_refused(data: bytes, sentence: str) -> None:
    with pytest.raises(LabelFileError) as raised:
        read_labels(data)
    assert str(raised.value) == sentence


@pytest.mark.parametrize(
    "cell", [b'"never closed', b"x" * 200_000], ids=["open quote", "a very long cell"]
)
def test_what_is_no_csv_is_refused_with_its_line(cell: bytes) -> None:
    with pytest.raises(LabelFileError, match="is not CSV"):
        read_labels(b"labeller,value,reason\na,pass," + cell)


def label(labeller: str, value: VerdictValue = PASS, line: int = 1) -> FileLabel:
    return FileLabel(line, T1, labeller, value)


def test_labels_are_sorted_by_trial_with_people_in_one_order() -> None:
    placed = [
        PlacedLabel(label("a"), 1),
        PlacedLabel(label("b", FAIL), 1),
        PlacedLabel(label("b"), 2),
        PlacedLabel(label("a"), 2),
        PlacedLabel(label("c", UNKNOWN), 3),
        *(PlacedLabel(label(who, FAIL if who == "b" else PASS), 4) for who in "abc"),
    ]

    assert sorted_by_trial(placed) == SortedLabels(
        (
            ImportedItem(1, (label("a"), label("b", FAIL)), Consensus.SPLIT),
            ImportedItem(2, (label("a"), label("b")), Consensus.PASS),
            ImportedItem(3, (label("c", UNKNOWN),), Consensus.UNKNOWN),
            ImportedItem(4, (label("a"), label("b", FAIL), label("c")), Consensus.PASS),
        )
    )


def test_a_labeller_speaks_once_and_three_people_are_enough() -> None:
    placed = [
        *(PlacedLabel(label(who, line=n), 1) for n, who in enumerate("abc", start=1)),
        PlacedLabel(label("a", line=4), 1),
        PlacedLabel(label("b", FAIL, line=5), 1),
        PlacedLabel(label("d", line=6), 1),
        PlacedLabel(label("a", FAIL, line=0), 2),
        PlacedLabel(label("a", line=0), 2),
    ]

    found = sorted_by_trial(placed)

    assert [len(item.labels) for item in found.items] == [3, 1]
    assert found.refused == (
        RefusedLine(4, "“a” said the same of this trial in line 1 already."),
        RefusedLine(5, "“b” said pass of this trial in line 2 already."),
        RefusedLine(6, "This trial has 3 labels already; no more are taken."),
        RefusedLine(0, "“a” said fail of this trial already."),
    )
    assert sorted_by_trial([]) == SortedLabels()
