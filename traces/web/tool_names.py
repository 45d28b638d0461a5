"""How the tools of a page are told apart: a short label and a colour each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from traces.core.rules import RuleSet
from traces.core.text_marks import marked_text
from traces.web.pages import ToolKey

N_COLOURS = 12
LONGEST_LABEL = 12
MESSAGE_LABEL = "msg"
_WORDS = re.compile(r"[^\W_]+")
_CAPITALS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Words that say little: nearly every tool gets, lists or updates something.
_PLAIN = frozenset(
    (
        *("get", "set", "list", "fetch", "find", "lookup", "read", "show", "update", "modify"),
        *("change", "create", "add", "delete", "remove", "do", "make", "send", "run", "call"),
        *("the", "a", "of", "to", "for", "by", "all", "detail", "details", "info", "data"),
        *("tool", "api"),
    )
)


@dataclass(frozen=True, slots=True)
class ToolLook:
    """How one tool looks on a page."""

    name: str
    label: str
    colour: int
    kind: str  # read | write | handoff

    @property
    def key(self) -> ToolKey:
        """Its entry in the legend."""
        return ToolKey(self.label, self.name, self.colour, self.kind)


def tool_looks(names: Iterable[str], rules: RuleSet) -> dict[str, ToolLook]:
    """Labels and colours for tools in the order of their use; no two labels are the same."""
    looks: dict[str, ToolLook] = {}
    taken: set[str] = set()
    for name in names:
        if name in looks:
            continue
        label = _free_label(name, taken)
        taken.add(label)
        looks[name] = ToolLook(name, label, len(looks) % N_COLOURS, rules.kind_of(name).value)
    return looks


def _free_label(name: str, taken: set[str]) -> str:
    for label in _candidates(name):
        if label not in taken:
            return label
    stem = next(iter(_candidates(name)))
    number = 2
    while True:
        suffix = str(number)
        label = _cut(stem, LONGEST_LABEL - len(suffix)) + suffix
        if label not in taken:
            return label
        number += 1


def _candidates(name: str) -> Iterable[str]:
    """Labels from the most to the least wanted."""
    words = [word.lower() for word in _WORDS.findall(_CAPITALS.sub(" ", name[:200]))]
    telling = [word for word in words if word not in _PLAIN] or words
    if not telling:
        yield _cut(marked_text(name)) or "(none)"
        return
    yield from map(_cut, telling)
    yield _cut("".join(word[0] for word in words))


def _cut(text: str, longest: int = LONGEST_LABEL) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
