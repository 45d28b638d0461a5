"""The table of words that are read as verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.common.shell import Shell


@dataclass(frozen=True, slots=True)
class VerdictWordsLine:
    """A verdict and the words that stand for it."""

    verdict: str  # pass | fail | unknown | error
    state: str  # its shape and colour
    meaning: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerdictWordsPage:
    """Which word stands for which verdict."""

    shell: Shell
    lines: tuple[VerdictWordsLine, ...]
