from decimal import Decimal

from traces.core.shown_json import shown_json


def test_letters_of_every_script_stay_readable() -> None:
    assert shown_json({"city": "Zürich 東京", "n": 1.5}) == '{"city": "Zürich 東京", "n": 1.5}'


def test_every_digit_is_kept() -> None:
    value = {"é": [Decimal("0.10000000000000000000001"), 10**30, None, True, "x"]}
    assert shown_json(value) == (
        '{"é": [0.10000000000000000000001, 1000000000000000000000000000000, null, true, "x"]}'
    )


def test_plain_values_are_written_as_json() -> None:
    assert [shown_json(value) for value in (None, False, 3, "a\x1b", [], {})] == [
        "null",
        "false",
        "3",
        '"a\\u001b"',
        "[]",
        "{}",
    ]
