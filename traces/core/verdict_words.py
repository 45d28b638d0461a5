"""The written table of verdict words. What is not in it is an error with the raw word kept."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from traces.core.records import VerdictValue

_WORDS = {
    VerdictValue.PASS: (
        "pass",
        "passed",
        "success",
        "satisfied",
        "satisfactory",
        "compliant",
        "correct",
    ),
    VerdictValue.FAIL: (
        "fail",
        "failed",
        "failure",
        "unsatisfied",
        "unsatisfactory",
        "noncompliant",
        "non-compliant",
        "incorrect",
    ),
    VerdictValue.UNKNOWN: ("unknown", "insufficient_evidence", "insufficient evidence"),
    VerdictValue.ERROR: ("error",),
}

VERDICT_WORDS: Final = MappingProxyType(
    {word: value for value, words in _WORDS.items() for word in words}
)
"""Each known word, in lower case, and the verdict that it stands for."""

_OUTER_BLANKS: Final = " \t\r\n"  # not what Unicode calls blank: a hidden character is no blank


def verdict_of(word: object) -> VerdictValue:
    """The verdict that a word stands for: letter case and outer blanks do not count.

    Anything that is not text, true and 1 included, is an error: it is no word of the table.
    """
    if not isinstance(word, str):
        return VerdictValue.ERROR
    return VERDICT_WORDS.get(word.strip(_OUTER_BLANKS).lower(), VerdictValue.ERROR)
