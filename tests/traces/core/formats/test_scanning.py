from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.formats.reading import MemoryStream
from traces.core.formats import scanning
from traces.core.formats.scanning import document_parts, json_lines, record_slices, stretch
from traces.core.limits import Limits

STEPS = st.sampled_from([1, 2, 3, 7, 64, 10**6])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a"\\{}[],:\u2028é\n', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def parts(data: bytes, split: tuple[str, ...] = (), step: int = 10**6, **limits: int) -> list[Any]:
    found = document_parts(MemoryStream(data, step), split, Limits(**limits))
    return [
        (p.key, p.number, p.refusal.code if p.refusal else json.loads(p.data), data[p.offset : p.offset + p.length].strip() == p.data)
        for p in found
    ]  # fmt: skip


def lines(data: bytes, step: int = 10**6, **limits: int) -> list[Any]:
    found = json_lines(MemoryStream(data, step), Limits(**limits))
    return [(p.number, p.offset, p.refusal.code if p.refusal else p.data) for p in found]


@pytest.mark.parametrize("step", [1, 3, 10**6])
def test_json_lines_end_at_line_feeds_only(step: int) -> None:
    data = b"\xef\xbb\xbf{1}\r\n\n  \t\n" + "{\u2028\x85\x0b}".encode() + b"\n\n{3}"
    assert lines(data, step) == [
        (1, 3, b"{1}"), (4, 13, "{\u2028\x85\x0b}".encode()), (6, 23, b"{3}"),
    ]  # fmt: skip
    assert lines(b"", step) == []


@pytest.mark.parametrize("step", [1, 5, 10**6])
def test_json_lines_too_large_is_refused_and_the_others_are_read(step: int) -> None:
    data = b"ab\n" + b"x" * 30 + b"\ncd\n" + b"y" * 11 + b"\n" + b"z" * 40
    assert lines(data, step, record_bytes=10) == [
        (1, 0, b"ab"), (2, 3, "record-too-large"), (3, 34, b"cd"), (4, 37, "record-too-large"),
        (5, 49, "record-too-large"),
    ]  # fmt: skip


@given(st.lists(VALUES, max_size=5), STEPS)
def test_json_lines_any_values_come_back(values: list[Any], step: int) -> None:
    data = b"\n".join(json.dumps(value).encode() for value in values)
    assert [json.loads(line) for _, _, line in lines(data, step)] == values


@given(st.lists(VALUES, max_size=5), STEPS, st.sampled_from([None, 1]))
def test_document_parts_array_gives_its_elements(
    values: list[Any], step: int, indent: int | None
) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    assert parts(data, step=step) == [(None, n, v, True) for n, v in enumerate(values, 1)]


@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.lists(VALUES, max_size=4), STEPS
)
def test_document_parts_object_gives_members_and_split_elements(
    members: dict[str, Any], values: list[Any], step: int
) -> None:
    document = {**members, "split here": values}
    expected = [(k, 0, v, True) for k, v in members.items() if k != "split here"]
    expected += [("split here", n, v, True) for n, v in enumerate(values, 1)]
    data = json.dumps(document).encode()
    assert sorted(map(repr, parts(data, ("split here",), step))) == sorted(map(repr, expected))


def test_document_parts_split_key_that_is_no_array_is_a_member() -> None:
    assert parts(b'{"s": {"a": 1}}', ("s",)) == [("s", 0, {"a": 1}, True)]
    assert parts(b'\xef\xbb\xbf {"s": []}', ("s",)) == []
    assert parts(b"\xef\xbb\xbf[1]", step=1) == [(None, 1, 1, True)]
    assert parts(b"{ }") == []


@pytest.mark.parametrize("step", [1, 4, 10**6])
@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'[{"a":1},{"b":', [{"a": 1}, "cut-short"]),
        (b'[{"a":1},{"b":"x', [{"a": 1}, "cut-short"]),
        (b'[{"a":1},{"b":"x\\', [{"a": 1}, "cut-short"]),
        (b'[{"a":1},"x', [{"a": 1}, "cut-short"]),
        (b'[{"a":1},1', [{"a": 1}, "cut-short"]),
        (b'[{"a":1}', [{"a": 1}, "cut-short"]),
        (b'[{"a":1} 7]', [{"a": 1}, "not-json"]),
        (b'[{"a":1}] x', [{"a": 1}, "trailing-data"]),
        (b'{"a":1,"b', [1, "cut-short"]),
        (b'{"a":1,"b"', [1, "cut-short"]),
        (b'{"a":1,"b" 2}', [1, "not-json"]),
        (b'{"a":1,', [1, "cut-short"]),
        (b'{"a":1,7:1}', [1, "not-json"]),
        (b'{"a":1,"\\x":1}', [1, "not-json"]),
        (b'{"a":1,"a":2}', [1, "duplicate-key"]),
        (b'{"a":1,"b":2,"c":3}', [1, 2, "too-many-keys"]),
        (b'{"a":', ["cut-short"]),
        (b"7", ["not-json"]),
        (b"", ["not-json"]),
    ],
)
def test_document_parts_broken_gives_the_good_parts_and_one_refusal(
    data: bytes, found: list[Any], step: int
) -> None:
    assert [what for _, _, what, _ in parts(data, step=step, keys=2)] == found


@pytest.mark.parametrize("step", [3, 10**6])
def test_document_parts_too_large_is_refused_and_the_others_are_read(step: int) -> None:
    data = b'[{"a":1},{"b":"' + b"x" * 100 + b'"},[2],"' + b"y" * 100 + b'"]'
    assert [(n, what) for _, n, what, _ in parts(data, step=step, record_bytes=20)] == [
        (1, {"a": 1}), (2, "record-too-large"), (3, [2]), (4, "record-too-large"),
    ]  # fmt: skip
    member = b'{"a":"' + b"x" * 100 + b'","b":2}'
    assert [(k, what) for k, _, what, _ in parts(member, step=step, record_bytes=20)] == [
        ("a", "record-too-large"), ("b", 2),
    ]  # fmt: skip


def test_document_parts_bad_element_takes_no_other_with_it() -> None:
    data = b'[{"a":1},{"b":},[{]],{"c":3}]'
    raw = [bytes(p.data) for p in document_parts(MemoryStream(data))]
    assert raw == [b'{"a":1}', b'{"b":}', b"[{]]", b'{"c":3}']


def test_document_parts_refusal_says_after_which_record() -> None:
    (*_, last) = document_parts(MemoryStream(b'[{"a":1},{"b":'))
    assert last.number == 2
    assert last.refusal is not None
    assert last.refusal.sentence == (
        "The file is cut short: it ends at byte 14, inside or after record 2."
    )


def test_document_parts_holds_no_more_than_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "BLOCK_BYTES", 1024)
    data = b"[" + b",".join(b'{"a":"%s"}' % (b"x" * 5000) for _ in range(200)) + b"]"
    document = scanning._Document(MemoryStream(data), frozenset(), Limits(record_bytes=100))  # noqa: SLF001
    held = [len(document.buffer) + sum(map(len, document.held)) for _ in document.parts()]
    assert len(held) == 200
    assert max(held) < 4096


@pytest.mark.parametrize("step", [1, 10**6])
def test_record_slices_takes_an_array_or_one_object(step: int) -> None:
    def found(data: bytes, **limits: int) -> list[Any]:
        slices = record_slices(MemoryStream(data, step), Limits(**limits))
        return [(s.number, s.refusal.code if s.refusal else s.data) for s in slices]

    assert found(b' \n[{"a":1},2]') == [(1, b'{"a":1}'), (2, b"2")]
    assert found(b'\xef\xbb\xbf\n{"a":\n1}') == [(1, b'\xef\xbb\xbf\n{"a":\n1}')]
    assert found(b'{"a":"xxxxxxxxxx"}', record_bytes=10) == [(1, "record-too-large")]
    assert found(b"") == [(1, "not-json")]


def test_stretch_gives_the_bytes_from_an_offset_on() -> None:
    assert stretch(MemoryStream(b"0123456789", 3), 4, 5) == b"45678"
    assert stretch(MemoryStream(b"0123456789", 3), 8, 5) == b"89"
    assert stretch(MemoryStream(b"0123456789", 3), 20, 5) == b""
