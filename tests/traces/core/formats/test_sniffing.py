from __future__ import annotations

import json
from typing import Any

import pytest

from tests.traces.core.formats.reading import CASES, member_of, record
from traces.core.formats import sniffing
from traces.core.formats.sniffing import Shape, shape_of, shape_of_head, top_keys
from traces.core.records import UnreadableUploadError


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        (json.dumps(record()).encode(), Shape.NATIVE_LINES),
        (b"\xef\xbb\xbf\n" + json.dumps(record()).encode() + b"\n{}", Shape.NATIVE_LINES),
        (b'not json\n{"a":1}\n[1]\n  {"record":"verdicts"}', Shape.NATIVE_LINES),
        (b'{"task_id":"1","trial":0,"messages":[{"role":"user","content":"cut', Shape.NATIVE_LINES),
        (b'{"task_id":"1","mess\n{"task_id":"2","mess', Shape.NATIVE_LINES),
        (json.dumps(record(), indent=1).encode(), Shape.NATIVE_DOCUMENT),
        (b'{"task_id":"1","trial":0,\n"messages":[]}', Shape.NATIVE_DOCUMENT),
        ([record()], Shape.NATIVE_DOCUMENT),
        ([{"task_id": 1, "traj": []}], Shape.TAU_BENCH),
        ({"task_id": 1, "traj": []}, Shape.TAU_BENCH),
        ([None, {"id": "1", "user_scenario": {}}], Shape.TAU2_TASKS),
        ({"timestamp": "t", "info": {"policy": 'long " text {'}}, Shape.TAU2_RESULTS),
        ({"info": {}, "tasks": []}, Shape.TAU2_RESULTS),
        ({"agent": "a", "simulations": []}, Shape.TAU2_RESULTS),
        ({"id": "s", "task_id": "1", "ticks": []}, Shape.TAU2_SIMULATION),
        ({"id": "s", "task_id": "1", "messages": [], "reward_info": None}, Shape.TAU2_SIMULATION),
        ({"total_judged": 1, "entries": []}, Shape.JUDGE_SUMMARY),
        ({"simulation_id": "s", "judge_response": "x"}, Shape.JUDGE_LINES),
        (b'garbage\n{"simulation_id":"s","judge_response":"x"}', Shape.JUDGE_LINES),
        ({"facts": "x" * 600_000} | record(), Shape.NATIVE_LINES),
        ({"messages": ["x" * 600_000], "task_id": "1"}, Shape.NATIVE_LINES),
        ({"tasks": ["x" * 600_000], "info": {}, "simulations": []}, Shape.TAU2_RESULTS),
        (b"x" * 600_000 + b'\n{"task_id":"1","trial":0}', Shape.NATIVE_LINES),
        (b'<p>502</p>\n{"task_id":"1","trial":0}', Shape.NATIVE_LINES),
        (b"[" * 600_000 + b'\n{"task_id":"1","trial":0}', Shape.NATIVE_LINES),
        (b" " * 600_000 + b'\n{"task_id":"1","trial":0}', Shape.NATIVE_LINES),
        (record() | {"timestamp": "t", "info": {}, "agent": {}}, Shape.NATIVE_LINES),
        (record() | {"id": "x", "termination_reason": "y", "verdicts": []}, Shape.NATIVE_LINES),
        (record() | {"traj": [], "simulations": [], "verdicts": []}, Shape.NATIVE_LINES),
    ],
)
def test_shape_of_is_found_by_the_content(content: Any, shape: Shape) -> None:
    assert shape_of(member_of(content)) is shape


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"", "empty", "The file is empty."),
        (b"\xef\xbb\xbf \r\n", "empty", "The file is empty."),
        (b"<!doctype html><html>", "html", "looks like an HTML or XML page"),
        ('{"a":1}'.encode("utf-16"), "utf-16", "only UTF-8 is read"),
        (b"\x89PNG\r\n", "unknown-format", "in no known format"),
        (b'{"entries":[]}', "unknown-format", "in no known format"),
        (b"[1,2]", "unknown-format", "in no known format"),
        (b"{}", "unknown-format", "in no known format"),
    ],
)
def test_shape_of_unknown_content_says_what_it_looks_like(
    content: bytes, code: str, words: str
) -> None:
    with pytest.raises(UnreadableUploadError, match=words) as error:
        shape_of(member_of(content))
    assert error.value.finding.code == code


def test_shape_of_looks_behind_any_number_of_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sniffing, "SNIFFED_BYTES", 16)
    assert shape_of(member_of(b" " * 40 + json.dumps(record()).encode())) is Shape.NATIVE_LINES
    with pytest.raises(UnreadableUploadError, match="empty"):
        shape_of(member_of(b"\n" * 100))


def test_shape_of_cases() -> None:
    html = (CASES / "wrong-format--html-error-page.jsonl").read_bytes()
    with pytest.raises(UnreadableUploadError, match="HTML"):
        shape_of_head(html)
    array = (CASES / "wrong-format--array-instead-of-lines.json").read_bytes()
    assert shape_of_head(array) is Shape.NATIVE_DOCUMENT


def test_top_keys_are_those_of_one_depth_as_far_as_the_text_goes() -> None:
    text = b'{"a":{"b":1},"c\\"":"}{","d":[{"e":2}],"f":"cut'
    assert top_keys(text, 1) == ["a", 'c\\"', "d", "f"]
    assert top_keys(b'[{"a":{"b":1}},{"c":1}]{"d":1}', 2) == ["a", "c"]
    assert top_keys(b"{}]", 1) == []
    many = b"{" + b",".join(b'"%d":0' % n for n in range(10_005)) + b"}"
    assert len(top_keys(many, 1)) == 10_000
