from __future__ import annotations

import pytest

from traces.core.records import VerdictValue
from traces.core.verdict_words import VERDICT_WORDS, verdict_of


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("pass", VerdictValue.PASS),
        ("PASS", VerdictValue.PASS),
        ("Pass ", VerdictValue.PASS),
        ("satisfied", VerdictValue.PASS),
        ("compliant", VerdictValue.PASS),
        ("correct", VerdictValue.PASS),
        ("fail", VerdictValue.FAIL),
        ("unsatisfied", VerdictValue.FAIL),
        ("unknown", VerdictValue.UNKNOWN),
        ("error", VerdictValue.ERROR),
        ("partially satisfied", VerdictValue.ERROR),
        ("GRADE: CI", VerdictValue.ERROR),
        ("pass\u200b", VerdictValue.ERROR),
        ("pass\u00a0", VerdictValue.ERROR),
        ("yes", VerdictValue.ERROR),
        ("", VerdictValue.ERROR),
        (True, VerdictValue.ERROR),
        (1, VerdictValue.ERROR),
        (None, VerdictValue.ERROR),
        (["pass"], VerdictValue.ERROR),
    ],
)
def test_verdict_of_only_known_words_count(word: object, value: VerdictValue) -> None:
    assert verdict_of(word) is value


def test_verdict_words_are_written_in_lower_case_and_trimmed() -> None:
    assert all(word == word.strip().lower() for word in VERDICT_WORDS)
