"""YAML texts come to values with places, or to findings; hostile ones at once."""

from decimal import Decimal

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from traces.core.contracts.documents import (
    DEEPEST,
    FAST_LOADER,
    MOST_DOCUMENT_BYTES,
    MOST_DOCUMENTS,
    MOST_NODES,
    MOST_TEXT_BYTES,
    PURE_LOADER,
    Document,
    Loader,
    UnreadableTextError,
    chunks_of,
    decoded,
    document_of,
)
from traces.core.contracts.places import MOST_FINDINGS, Path, Place, field_of, quoted
from traces.core.values import Json

LOADERS = pytest.mark.parametrize("loader", [FAST_LOADER, PURE_LOADER], ids=["fast", "pure"])


def read(text: str, loader: Loader = FAST_LOADER) -> Document:
    (chunk,) = chunks_of(text)
    return document_of(chunk, loader)


def faults(document: Document) -> list[tuple[int, int, str, str]]:
    found = document.findings.in_order()
    return [(item.line, item.column, item.code, item.field) for item in found]


def test_the_fast_parser_is_there() -> None:
    assert FAST_LOADER is yaml.CSafeLoader
    assert PURE_LOADER is yaml.SafeLoader


VALUES: list[tuple[str, Json]] = [
    ("a: 1\nb: [x, 'y', \"z\", 1.50]\n", {"a": 1, "b": ["x", "y", "z", Decimal("1.50")]}),
    ("{a: {b: c}, d: }", {"a": {"b": "c"}, "d": None}),
    ("a: |\n  x\n  y\nb: >\n  x\n  y\n", {"a": "x\ny\n", "b": "x y\n"}),
    ("a: 'true'\nb: \"1\"\n\"1\": 2\n'<<': 3\n", {"a": "true", "b": "1", "1": 2, "<<": 3}),
    ("a: yes\nb: no\nc: 2024-01-01\n", {"a": "yes", "b": "no", "c": "2024-01-01"}),
    ("? a\n: 1\n", {"a": 1}),
    ("a: '\\d'\nb: \"\\t\\u263a\"\n", {"a": "\\d", "b": "\t☺"}),
    ("- 1\n- - 2\n", [1, [2]]),
    ("x", "x"),
    ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
    ("a: 1\rb: 2\r", {"a": 1, "b": 2}),
    ("a:\n  # c\n  b: 1 # d\n", {"a": {"b": 1}}),
    ("ключ: 😀\n", {"ключ": "😀"}),
    ("", None),
]


@LOADERS
@pytest.mark.parametrize(("text", "value"), VALUES[:-1], ids=range(len(VALUES) - 1))
def test_values_are_read(text: str, value: Json, loader: Loader) -> None:
    document = read(text, loader)

    assert (document.value, faults(document), document.is_whole) == (value, [], True)


FAULTS: list[tuple[str, list[tuple[int, int, str, str]]]] = [
    # What YAML has and contracts have not
    ("a: !!python/object/apply:os.system ['x']\n", [(1, 4, "tag", "a")]),
    ("a: !!str 1\nb: !x {c: !y d}\n",
     [(1, 4, "tag", "a"), (2, 4, "tag", "b"), (2, 11, "tag", "b.c")]),
    ("!!map\na: 1\n", [(1, 1, "tag", "")]),
    ("!!str a: 1\n", [(1, 1, "tag", "")]),
    ("a: ! x\n", [(1, 4, "tag", "a")]),
    ("a: !q!x y\n", [(1, 4, "tag", "")]),
    ("a: &x 1\nb: *x\n", [(1, 4, "anchor", "a"), (2, 4, "alias", "b")]),
    ("&x a: 1\n*x : 2\n", [(1, 1, "anchor", ""), (2, 1, "alias", "")]),
    ("a: *never\n", [(1, 4, "alias", "a")]),
    ("<<: {a: 1}\nb: 2\n", [(1, 1, "merge-key", "")]),
    ("<<: [*a, *b]\n", [(1, 1, "merge-key", "")]),
    # Names
    ("a: 1\na: 2\n", [(2, 1, "duplicate-key", "a")]),
    ("a: {b: [{c: 1, c: {d: [1, {}]}}]}\n", [(1, 16, "duplicate-key", "a.b[0].c")]),
    ("a: 1\n'a': *b\n", [(2, 1, "duplicate-key", "a")]),
    ("1: a\ntrue: {b: [c]}\nnull: d\n~: e\n1.5: g\n",
     [(line, 1, "name-not-text", "") for line in range(1, 6)]),
    ("[a, {b: c}]: 1\n? {d: e}\n: 2\n", [(1, 1, "name-not-text", ""), (2, 3, "name-not-text", "")]),
    (".nan: 1\n", [(1, 1, "not-finite", ""), (1, 1, "name-not-text", "")]),
    # Scalars
    ("a: [.inf, -.INF, .nan]\n", [(1, c, "not-finite", f"a[{i}]") for i, c in enumerate((5, 11, 18))]),
    ("a: " + "9" * 5_000, [(1, 4, "number-too-long", "a")]),
    ('a: "\\0"\n', [(1, 4, "bad-character", "a")]),
    ('"\\0": 1\n', [(1, 1, "bad-character", "")]),
    # Structure
    ("a: b: c\n", [(1, 5, "stray-colon", "")]),
    ("a: 'b\n", [(1, 4, "not-closed", "")]),
    ('a: "b\nc: d\n', [(1, 4, "not-closed", "")]),
    ("a: [1, 2\nb: 3\n", [(2, 2, "open-bracket", "")]),
    ('a: {b: text.contains("x")}\n', []),
    ('a: {b: "x"y}\n', [(1, 11, "open-bracket", "")]),
    ("a: 1\n b: 2\n", [(2, 3, "stray-colon", "")]),
    (" a: 1\nb: 2\n", [(2, 1, "indentation", "")]),
    ("a:\n  - 1\n  b: 2\n", [(3, 3, "indentation", "")]),
    ("a: 1\n- b\n", [(2, 1, "indentation", "")]),
    ("a: - b\n", [(1, 4, "stray-dash", "")]),
    ("a: @b\n", [(1, 4, "stray-character", "")]),
    ("a: `b`\n", [(1, 4, "stray-character", "")]),
    ("a: 1\nb\n", [(2, 1, "missing-colon", "")]),
    ("a: 1}\n", []),
    ("{a: 1}}\n", [(1, 7, "indentation", "")]),
    ("%YAML 1.2\na: 1\n", [(2, 1, "indentation", "")]),
    ('a: "\\q"\n', [(1, 4, "bad-escape", "")]),
    ('a: "\\xZZ"\n', [(1, 4, "bad-escape", "")]),
    ("a: !<x y\n", [(1, 7, "not-yaml", "")]),
    # Characters
    ("a:\t1\n", [(1, 3, "bad-character", "")]),
    ("a: 1\n\tb: 2\n", [(2, 1, "bad-character", "")]),
    ("a: x\x00y\n\nb: \x1b[0m\x7f\n",
     [(1, 5, "bad-character", ""), (3, 4, "bad-character", ""), (3, 8, "bad-character", "")]),
    ("a: \ud800\n", [(1, 4, "bad-character", "")]),
    ("a: x\u2028b: 1\n", [(1, 5, "bad-character", "")]),
    ("a: \ufeffx\n", [(1, 4, "bad-character", "")]),
    ("x" + "\t" * 500, [(1, column, "bad-character", "") for column in range(2, 12)]),
]  # fmt: skip


@LOADERS
@pytest.mark.parametrize(("text", "found"), FAULTS, ids=range(len(FAULTS)))
def test_each_fault_has_its_place(
    text: str, found: list[tuple[int, int, str, str]], loader: Loader
) -> None:
    document = read(text, loader)

    assert faults(document) == found
    for finding in document.findings.items:
        assert finding.sentence.endswith(".")


@LOADERS
@pytest.mark.parametrize(
    "text",
    ['a: "\\ud800"\n', 'a: "\\U00110000"\n', 'a: "\\uDFFFx"\n'],
    ids=["surrogate", "beyond", "half"],
)
def test_an_escape_for_no_character_is_a_finding(text: str, loader: Loader) -> None:
    (finding,) = read(text, loader).findings.items

    assert (finding.line, finding.code) == (1, "bad-character")


LAUGHS = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)
HOSTILE = {
    "billion-laughs": (LAUGHS, "alias"),
    "anchors": ("a: " + "&x " * 80_000, "anchor"),
    "anchored-list": ("&a [" * 60_000, "anchor"),
    "deep-lists": ("[" * 200_000, None),
    "deep-mappings": ("{a: " * 50_000, "too-deep"),
    "deep-block": ("- " * 100_000, "too-deep"),
    "deep-lines": ("".join(f"{' ' * n}a:\n" for n in range(500)), "too-deep"),
    "deep-name": ("? " + "[" * 900 + "]" * 900 + "\n: 1\n", None),
    "deep-duplicate": ("a: 1\na: " + "[" * 900 + "]" * 900 + "\n", "duplicate-key"),
    "question-marks": ("? " * 100_000, None),
    "many-keys": ("".join(f"k{n}: 1\n" for n in range(20_000)), "too-many-nodes"),
    "hundred-thousand-keys": ("".join(f"k{n}: 1\n" for n in range(100_000)), "document-too-large"),
    "many-items": ("a: [" + "1," * 120_000 + "]", "too-many-nodes"),
    "many-in-a-duplicate": ("a: 1\na: [" + "1," * 120_000 + "]", "too-many-nodes"),
    "many-in-a-name": ("? [" + "1," * 120_000 + "]\n: 1\n", "too-many-nodes"),
    "long-number": ("a: " + "9" * 200_000, "number-too-long"),
    "long-exponent": ("a: 1e" + "9" * 200_000, "number-too-long"),
    "long-tag": ("a: !" + "x" * 200_000 + " 1", "tag"),
    "open-quote": ('a: "' + "x\n " * 80_000, "not-closed"),
    "quotes": ('"' * 200_000, "indentation"),
    "colons": ("a:" * 100_000, "stray-colon"),
    "long-name": ("x" * 2_000 + ": 1\n", "stray-colon"),
    "huge": ("a: " + "x" * MOST_DOCUMENT_BYTES, "document-too-large"),
}


@LOADERS
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_is_refused(name: str, loader: Loader) -> None:
    text, code = HOSTILE[name]

    document = read(text, loader)

    codes = {finding.code for finding in document.findings.items}
    assert codes
    assert code is None or code in codes
    assert len(document.findings.items) <= MOST_FINDINGS


@LOADERS
@pytest.mark.parametrize(
    "text",
    [
        "a: " + "x " * 120_000,
        "a: |\n" + " x\n" * 80_000,
        "a: >\n" + " x\n\n" * 60_000,
        "x\n" * 120_000,
    ],
    ids=["one-line", "literal", "folded", "many-lines"],
)
def test_a_long_text_is_read(text: str, loader: Loader) -> None:
    assert faults(read(text, loader)) == []


def test_as_deep_and_as_many_as_allowed() -> None:
    deep = "[" * DEEPEST + "]" * DEEPEST
    many = "a: [" + ",".join("1" * (MOST_NODES - 3)) + "]"

    assert faults(read(deep)) == []
    assert faults(read(f"[{deep}]")) == [(1, DEEPEST + 1, "too-deep", "[0]" * DEEPEST)]
    assert faults(read(many)) == []
    assert [fault[2] for fault in faults(read(many.replace("]", ",1]")))] == ["too-many-nodes"]


def test_findings_stop_at_their_bound() -> None:
    document = read("a: [" + "*x," * 400 + "]")

    assert len(document.findings.items) == MOST_FINDINGS
    assert not document.is_whole


def test_places_are_those_of_names_and_values() -> None:
    places = read("a: 1\nb:\n  - c: 2\n    d:\n").findings.places

    def at(*path: str | int) -> tuple[Place, Place]:
        return places.of(path), places.of(path, name=True)

    assert at("a") == ((1, 4), (1, 1))
    assert at("b", 0, "c") == ((3, 8), (3, 5))
    assert at("b", 0, "e") == ((3, 5), (3, 5))  # the mapping where it is missing
    assert at("b", 7) == ((2, 1), (2, 1))
    assert at() == ((1, 1), (1, 1))
    assert places.by_field()["b[0].c"] == (3, 8)


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ((), ""),
        (("required", 1, "where"), "required[1].where"),
        (("outcome", 0, "changes", "/refunds/-"), 'outcome[0].changes["/refunds/-"]'),
        (("facts", 'a"b\x1b\n'), 'facts["a\'b[U+001B]⏎"]'),
        (("x" * 200,), "x" * 200),
        (("/" * 200,), f'["{"/" * 79}…"]'),
    ],
    ids=range(6),
)
def test_a_path_is_written_for_people(path: Path, field: str) -> None:
    assert field_of(path) == field


def test_a_text_is_quoted_on_one_line() -> None:
    assert quoted("a\nb") == '"a⏎b"'


# Texts of many documents


def lines_and_texts(text: str) -> list[tuple[int, str]]:
    return [(chunk.line, chunk.text) for chunk in chunks_of(text)]


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("a: 1", [(1, "a: 1\n")]),
        ("---\na: 1\n", [(2, "a: 1\n")]),
        ("a: 1\n---\nb: 2\n", [(1, "a: 1\n"), (3, "b: 2\n")]),
        (
            "# c\n---\n# d\na: 1\n...\n---   # e\nb: 2\n...\n# f\n",
            [(3, "# d\na: 1\n"), (7, "b: 2\n")],
        ),
        ("---\n---\n\n  \n---", []),
        ("%YAML 1.2\n---\na: 1\n", [(3, "a: 1\n")]),
        ("%YAML 1.2 # c\n--- \na: 1\n", [(3, "a: 1\n")]),
        ("%TAG ! x\n---\na: 1\n", [(1, "%TAG ! x\n"), (3, "a: 1\n")]),
        ("a: |\n  ---\n  ...\n", [(1, "a: |\n  ---\n  ...\n")]),
        ("---a: 1\n", [(1, "---a: 1\n")]),
        ("a: 1\r\n---\r\nb: 2\r\n", [(1, "a: 1\r\n"), (3, "b: 2\r\n")]),
        ("a: 1\r---\rb: 2\r", [(1, "a: 1\r"), (3, "b: 2\r")]),
        ("", []),
    ],
    ids=range(13),
)
def test_a_text_is_parted_into_documents(text: str, chunks: list[tuple[int, str]]) -> None:
    assert lines_and_texts(text) == chunks


def test_a_document_beside_its_marker_is_refused_and_the_others_are_read() -> None:
    first, second, third = chunks_of("a: 1\n---   {b: 2}\nc: 3\n---\nd: 4\n")

    assert faults(document_of(first)) == []
    assert faults(document_of(second)) == [(2, 7, "beside-marker", "")]
    assert document_of(third).value == {"d": 4}


def test_lines_are_counted_from_the_beginning_of_the_text() -> None:
    _, chunk = chunks_of("a: 1\n---\n\nb: \t2\n")
    _, other = chunks_of("a: 1\n---\n\nb: *x\n")
    _, third = chunks_of("a: 1\n---\n\nb: 'x\n")

    assert faults(document_of(chunk))[0][:2] == (4, 4)
    assert faults(document_of(other))[0][:2] == (4, 4)
    assert faults(document_of(third))[0][:2] == (4, 4)


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        (b"a: 1\nb\xff: 2", (2, 2), "not-utf-8"),
        ("a: é\n".encode("latin-1"), (1, 4), "not-utf-8"),
        ("a: 1".encode("utf-16"), (1, 1), "not-utf-8"),
        (b"x" * (MOST_TEXT_BYTES + 1), (0, 0), "text-too-large"),
        ("x" * (MOST_TEXT_BYTES + 1), (0, 0), "text-too-large"),
        ("---\na: 1\n" * (MOST_DOCUMENTS + 1), (0, 0), "too-many-documents"),
    ],
    ids=["byte", "latin", "utf-16", "large-bytes", "large-text", "documents"],
)
def test_a_text_that_cannot_be_read_as_a_whole(text: str | bytes, place: Place, code: str) -> None:
    with pytest.raises(UnreadableTextError) as caught:
        chunks_of(decoded(text))

    assert (caught.value.place, caught.value.code) == (place, code)


def test_a_byte_order_mark_is_dropped() -> None:
    assert decoded(b"\xef\xbb\xbfa: 1") == decoded("\ufeffa: 1") == "a: 1"


yaml_pieces = st.lists(
    st.sampled_from(
        ["a", "b", "1", ".5", "'", '"', ":", ": ", "- ", "\n", "\n  ", "\n    ", " ", "[", "]", "{",
         "}", ", ", "#", " # c", "|", ">", "|-", "&x ", "*x", "!t ", "!!str ", "? ", "<<: ", "\\",
         "\\x41", "true", "null", "%", "@", "é", "😀", "---", "\r\n", "\t", "~", "''", '""', ",", "="]
    ),
    max_size=14,
).map("".join)  # fmt: skip


@given(yaml_pieces)
@example("a: 'x\n")
@example("? a\n? b\n")
@example("- \n- ")
@example("{? : }")
@example("a: |# b\n  c\n")
@example("a: >-1#\n  c\n")
@example("&x !t |#")
def test_both_parsers_give_the_same_values(text: str) -> None:
    for chunk in chunks_of(text):
        fast, pure = document_of(chunk, FAST_LOADER), document_of(chunk, PURE_LOADER)
        assert (fast.is_whole, fast.value) == (pure.is_whole, pure.value)
        if fast.is_whole:  # empty values have columns of their own
            assert _coarse(fast) == _coarse(pure)


def _coarse(document: Document) -> list[tuple[int, str]]:
    return [(line, code) for line, _, code, _ in faults(document)]
