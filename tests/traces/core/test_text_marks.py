from __future__ import annotations

import json
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core.text_marks import (
    Segment,
    clean_text,
    count_marks,
    csv_safe,
    has_lone_surrogate,
    has_marks,
    marked_text,
    may_hold_marks,
    says_nothing,
    visible,
)

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def test_visible_plain_text_is_one_segment() -> None:
    assert visible("two\nlines\tand é 👍🏽 👨\u200d👩") == (
        Segment("two\nlines\tand é 👍🏽 👨\u200d👩"),
    )
    assert visible("") == ()


def test_visible_marks_what_cannot_be_seen() -> None:
    assert visible("a\u202eb\x1b[31mc\x00\ud83d") == (
        Segment("a"),
        Segment("\u202e", "U+202E"),
        Segment("b"),
        Segment("\x1b", "U+001B"),
        Segment("[31mc"),
        Segment("␀", "U+0000"),
        Segment("\ufffd", "U+D83D"),
    )


@pytest.mark.parametrize(
    "character",
    ["\x00", "\x7f", "\x85", "\u00ad", "\u061c", "\u115f", "\u200b", "\u200d", "\u2028", "\u2066",
     "\u3164", "\ufeff", "\U000e0041", "\U000e0101", "\udc00", "\r"],
)  # fmt: skip
def test_has_marks_each_kind_is_found_and_counted(character: str) -> None:
    text = f"é{character}b"
    assert has_marks(text)
    assert count_marks(text) == 1
    assert marked_text(text) == f"é[U+{ord(character):04X}]b"


def test_has_marks_every_control_and_format_character_is_marked() -> None:
    unmarked = {
        f"{code:04X}"
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        and not has_marks(chr(code))
    }
    # Tab, line feed, and format characters of scripts that are seen in what they do.
    assert unmarked <= {
        "0009", "000A", "0600", "0601", "0602", "0603", "0604", "0605", "06DD", "070F", "0890",
        "0891", "08E2", "110BD", "110CD",
        *(f"{code:04X}" for code in range(0x13430, 0x13460)),
        *(f"{code:04X}" for code in range(0x1BCA0, 0x1BCA4)),
    }  # fmt: skip


def test_may_hold_marks_sees_every_character_raw_and_escaped() -> None:
    for code in range(0x110000):
        if has_marks(chr(code)):
            assert may_hold_marks(json.dumps(chr(code)).encode()), hex(code)
            if not 0xD800 <= code < 0xE000 and code >= 0x20:
                assert may_hold_marks(chr(code).encode()), hex(code)


@given(ANY_TEXT)
def test_may_hold_marks_is_never_wrong_on_no(text: str) -> None:
    for data in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        if data.isascii() or not has_lone_surrogate(data):
            assert may_hold_marks(data.encode()) or not has_marks(text)


def test_may_hold_marks_usual_texts_do_not() -> None:
    assert not may_hold_marks("plain “quoted” – naïve £5 日本語 👍".encode())
    assert not may_hold_marks(json.dumps("plain “quoted” – naïve £5 日本語 👍\r\n").encode())


def test_has_marks_line_ends_are_none() -> None:
    assert not has_marks("a\r\nb\n")
    assert count_marks("a\r\nb\n") == 0


@given(ANY_TEXT)
def test_visible_segments_join_to_the_cleaned_text(text: str) -> None:
    assert "".join(segment.text for segment in visible(text)) == clean_text(text)
    assert sum(segment.mark is not None for segment in visible(text)) == count_marks(text)


@given(ANY_TEXT)
def test_clean_text_can_be_stored(text: str) -> None:
    assert b"\x00" not in clean_text(text).encode()
    assert len(clean_text(text)) == len(text)
    assert (
        has_lone_surrogate(text) == (text != text.encode(errors="replace").decode()) or "?" in text
    )


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "＝1", "＋1", "－1", "＠A", "\u200b=1+1",
     " =1", "-5", "\nx"],
)  # fmt: skip
def test_csv_safe_neutralises_formula_like_text(cell: str) -> None:
    assert csv_safe(cell) == f"'{cell}"


@pytest.mark.parametrize(
    ("cell", "written"),
    [(None, ""), (-5, "-5"), (-0.5, "-0.5"), (Decimal("-1.10"), "-1.10"), ("a=b", "a=b"), ("", ""),
     ("a\x00", "a␀")],
)  # fmt: skip
def test_csv_safe_leaves_numbers_and_plain_text(
    cell: str | float | Decimal | None, written: str
) -> None:
    assert csv_safe(cell) == written


@pytest.mark.parametrize(
    ("text", "nothing"),
    [("", True), (" \n\t", True), ("\u200b \u2060", True), ("\u200bx", False), ("x", False)],
)
def test_says_nothing(text: str, nothing: bool) -> None:
    assert says_nothing(text) is nothing
