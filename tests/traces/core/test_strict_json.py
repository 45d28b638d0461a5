from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core import strict_json
from traces.core.limits import Limits
from traces.core.strict_json import (
    StrictJsonError,
    decoded,
    loads,
    loads_text,
    loads_tolerant,
    member_place,
)

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def fault(text: str | bytes, limits: Limits = Limits()) -> tuple[str, str, str]:  # noqa: B008
    with pytest.raises(StrictJsonError) as error:
        loads_text(text, limits) if isinstance(text, str) else loads(text, limits)
    return error.value.code, error.value.place, error.value.sentence


@given(JSON_VALUES)
def test_loads_valid_value_as_the_standard_parser_does(value: Any) -> None:
    text = json.dumps(value)
    assert loads(text.encode()) == json.loads(text)
    assert loads(json.dumps(value, indent=1, ensure_ascii=True).encode()) == json.loads(text)


@given(st.text(alphabet='{}[]",:\\0123456789.eE+-truefalsn NaIity\x00é', max_size=40))
def test_loads_text_any_text_is_read_as_the_standard_parser_does_or_refused(text: str) -> None:
    try:
        value = loads_text(text)
    except StrictJsonError:
        return
    assert json.loads(text) == value or isinstance(value, Decimal | list | dict)


@pytest.mark.parametrize(
    ("text", "code", "place", "sentence"),
    [
        ('{"a":1,"b":[1,{"c":2,"c":3}]}', "duplicate-key", "b[1].c", 'Duplicate key "c" at b[1].'),
        ('{"trial":1,"trial":2}', "duplicate-key", "trial", 'Duplicate key "trial".'),
        ('{"a":NaN}', "not-finite", "a", "NaN or Infinity at a is not a JSON number."),
        ("-Infinity", "not-finite", "", "NaN or Infinity is not a JSON number."),
        ("[1,2", "cut-short", "[1]", "The text is cut short: it ends at [1], unfinished."),
        ('{"a":"x\\"y', "cut-short", "a", "The text is cut short: it ends at a, unfinished."),
        ('{"a":"x\\', "cut-short", "a", "The text is cut short: it ends at a, unfinished."),
        ('{"a":"x\\u00', "cut-short", "a", "The text is cut short: it ends at a, unfinished."),
        ('{"a', "cut-short", "", "The text is cut short: it ends, unfinished."),
        ("[tru", "cut-short", "[0]", "The text is cut short: it ends at [0], unfinished."),
        ("[1.", "cut-short", "[0]", "The text is cut short: it ends at [0], unfinished."),
        ('{"a" 1}', "not-json", "a", 'Not JSON: unexpected "1" at character 6 at a.'),
        ('{"a":01}', "not-json", "a", 'Not JSON: unexpected "1" at character 7 at a.'),
        ("[1,]", "not-json", "[1]", 'Not JSON: unexpected "]" at character 4 at [1].'),
        ("[1}", "not-json", "[0]", 'Not JSON: unexpected "}" at character 3 at [0].'),
        ("{,}", "not-json", "", 'Not JSON: unexpected "," at character 2.'),
        ('{"a":1,}', "not-json", "", 'Not JSON: unexpected "}" at character 8.'),
        ('"\x01"', "not-json", "", 'Not JSON: unexpected "\\"" at character 1.'),
        ("<html>", "not-json", "", 'Not JSON: unexpected "<" at character 1.'),
        (
            "1 2",
            "trailing-data",
            "",
            'Not JSON: there is more after the value, "2" at character 3.',
        ),
        (
            "1 \x01",
            "trailing-data",
            "",
            'Not JSON: there is more after the value, "\\u0001" at character 3.',
        ),
        (" \r\n", "empty", "", "The text is empty."),
        (
            '{"a b":{"c":NaN}}',
            "not-finite",
            '["a b"].c',
            'NaN or Infinity at ["a b"].c is not a JSON number.',
        ),
    ],
)
def test_loads_text_broken_names_the_place(text: str, code: str, place: str, sentence: str) -> None:
    assert fault(text) == (code, place, sentence)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("9" * 4001, ""),
        ('{"a":' + "9" * 5000 + "}", "a"),
        ("[-" + "9" * 4001 + "]", "[0]"),
        ("[0." + "1" * 4000 + "]", "[0]"),
        ("[1e4001]", "[0]"),
        ("[1e9999999999999999999999]", "[0]"),
        ("[1E-5000]", "[0]"),
    ],
)
def test_loads_text_number_over_the_limit_is_refused(text: str, place: str) -> None:
    code, at, sentence = fault(text)
    assert (code, at) == ("number-too-long", place)
    assert sentence.startswith("Number too long")


def test_loads_text_exponents_may_not_make_a_text_many_times_longer() -> None:
    assert loads_text("[1e999, -1e300]") == [Decimal("1e999"), -1e300]
    assert loads_text("[" + "1.5," * 1000 + "1e300]")
    for text in ("[" + "1e300," * 100 + "1]", "[" + "1e3999," * 100 + "1]", "1e3999"):
        assert fault(text) == (
            "number-too-long",
            "",
            "Number too long: exponents stand for too many digits in a text of this length.",
        )


def test_loads_text_many_digits_in_a_text_are_no_number() -> None:
    assert loads_text('"' + "9" * 9000 + '"') == "9" * 9000


def test_loads_text_numbers_keep_every_digit() -> None:
    assert loads_text("[9007199254740993, 0.1, 0.10, 1E2, 1e999]") == [
        9007199254740993, 0.1, 0.1, 100.0, Decimal("1e999"),
    ]  # fmt: skip
    assert loads_text("0.10000000000000000001") == Decimal("0.10000000000000000001")
    assert loads_text("9" * 4000) == int("9" * 4000)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_loads_text_nesting_is_allowed_up_to_the_limit(opening: str) -> None:
    closing = "]" if opening == "[" else "}"
    inner = "1" if opening != "[" else ""
    assert loads_text(opening * 64 + inner + closing * 64)
    code, place, sentence = fault(opening * 65 + inner + closing * 65)
    assert code == "too-deep"
    assert sentence.startswith("Nested too deeply (max 64) at ")
    assert place.startswith("[0]" if opening == "[" else "a.a")


def test_loads_text_very_deep_is_refused_and_exhausts_no_stack() -> None:
    assert fault("[" * 100_000)[0] == "too-deep"
    deep = "[" * 50_000 + "]" * 50_000
    assert fault(deep)[0] == "too-deep"
    assert fault(deep, Limits(depth=10**6))[2] == "Nested too deeply (max 1000000)."


def test_loads_text_too_many_keys_is_refused() -> None:
    text = json.dumps({"a": {str(n): n for n in range(4)}})
    assert loads_text(text, Limits(keys=4))
    assert fault(text, Limits(keys=3)) == (
        "too-many-keys", "a", "An object has too many keys (max 3) at a.",
    )  # fmt: skip


def test_loads_text_too_many_objects_and_lists_are_refused() -> None:
    limits = Limits(containers=3)
    assert loads_text('[[],{"a":1}]', limits) == [[], {"a": 1}]
    assert loads_text('["[[[\\"[["]', limits) == ['[[["[[']
    assert fault("[[],[],[]]", limits) == (
        "too-many-values", "", "Too many objects and lists (max 3).",
    )  # fmt: skip


def test_loads_text_too_large_for_the_second_pass_gives_up_the_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strict_json, "MOST_TOKENS", 3)
    sentence = "The text is not JSON as it must be ({}); it is too large to say where."
    assert fault("[1,1,1,1") == ("not-json", "", sentence.format("not-json"))
    assert fault('[1,1,{"a":1,"a":1}]') == ("duplicate-key", "", sentence.format("duplicate-key"))
    assert fault('[1,1,{"a":1,"b":1}]', Limits(keys=1))[0] == "too-many-keys"
    assert fault("[1,1,1,NaN]")[0] == "not-finite"
    assert fault("[1,1,1,1e9999]")[0] == "number-too-long"
    assert fault("[1,1,[[1]]]", Limits(depth=2))[0] == "too-deep"


@pytest.mark.parametrize(
    ("data", "code", "sentence"),
    [
        (b'{"a":"\xff"}', "not-utf8", "The text is not UTF-8: byte 7 cannot be read."),
        ('{"a":1}'.encode("utf-16"), "utf-16", "The text is UTF-16 or UTF-32; only UTF-8 is read. Save it as UTF-8."),
        ('{"a":1}'.encode("utf-16-le"), "utf-16", "The text is UTF-16 or UTF-32; only UTF-8 is read. Save it as UTF-8."),
        (b"\xed\xa0\x80", "not-utf8", "The text is not UTF-8: byte 1 cannot be read."),
    ],
)  # fmt: skip
def test_loads_other_encoding_is_refused_by_name(data: bytes, code: str, sentence: str) -> None:
    assert fault(data) == (code, "", sentence)


def test_decoded_byte_order_mark_is_left_out() -> None:
    assert decoded(b"\xef\xbb\xbf[1]") == "[1]"


def test_loads_tolerant_reads_nan_as_null_only_where_it_is_tolerated() -> None:
    text = '{"usage":{"cost_usd":NaN},"verdicts":[{"score":-Infinity}],"s":"NaN"}'
    places = {"usage.cost_usd", "verdicts[0].score"}
    value, missing = loads_tolerant(text, places.__contains__)
    assert value == {"usage": {"cost_usd": None}, "verdicts": [{"score": None}], "s": "NaN"}
    assert missing == ("usage.cost_usd", "verdicts[0].score")
    assert loads_tolerant('{"a":1}', places.__contains__) == ({"a": 1}, ())


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('{"usage":{"cost_usd":NaN},"x":[NaN]}', "not-finite", "x[0]"),
        ('{"usage":{"cost_usd":NaN},"x":1,"x":1}', "duplicate-key", "x"),
        ("NaN", "not-finite", ""),
        ("[1,", "cut-short", "[1]"),
    ],
)
def test_loads_tolerant_refuses_everything_else(text: str, code: str, place: str) -> None:
    with pytest.raises(StrictJsonError) as error:
        loads_tolerant(text, {"usage.cost_usd"}.__contains__)
    assert (error.value.code, error.value.place) == (code, place)


def test_loads_tolerant_so_many_constants_are_no_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "MOST_CONSTANTS", 2)
    assert loads_tolerant("[NaN,-Infinity]", lambda _: True) == ([None, None], ("[0]", "[1]"))
    with pytest.raises(StrictJsonError):
        loads_tolerant("[NaN,NaN,NaN]", lambda _: True)


def test_member_place_quotes_odd_keys() -> None:
    assert member_place("a", "b-c") == "a.b-c"
    assert member_place("", "b") == "b"
    assert member_place("a", "\u202e") == 'a["\\u202e"]'
    assert member_place("a", "x" * 300) == 'a["' + "x" * 99 + '\\u2026"]'
