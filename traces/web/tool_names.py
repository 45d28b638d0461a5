"""How the tools of a page are told apart: a short label and a colour each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from traces.core.rules import RuleSet
from traces.core.text_marks import marked_text
from traces.web.pages import ToolKey

N_COLOURS = 12
LONGEST_LABEL = 12
MESSAGE_LABEL = "msg"
_MOST_WORDS = 8  # of a name that are looked at
_WHOLE_WORD = 6  # the shorter word of a pair is kept whole up to here
_ALIKE = 10  # labels with so many first letters in common are read as one
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
    ordered = tuple(dict.fromkeys(names))
    labels = _labels(ordered)
    return {
        name: ToolLook(name, label, number % N_COLOURS, rules.kind_of(name).value)
        for number, (name, label) in enumerate(zip(ordered, labels, strict=True))
    }


def _labels(names: tuple[str, ...]) -> tuple[str, ...]:
    """A label of readable words for each: such words as no other of these names has."""
    words = [_words(name) for name in names]
    owners = Counter(key for each in words for key in {_key(word) for word in each})
    pair_owners = Counter(
        pair for each in words for pair in {_pair_key(pair) for pair in combinations(each, 2)}
    )
    labels: list[str] = []
    taken: set[str] = set()
    alike: set[str] = set()
    for name, each in zip(names, words, strict=True):
        label = _free_label(tuple(_candidates(name, each, owners, pair_owners)), taken, alike)
        labels.append(label)
        taken.add(label)
        alike.add(_looks(label))
    return tuple(labels)


def _free_label(candidates: tuple[str, ...], taken: set[str], alike: set[str]) -> str:
    for label in candidates:
        if label not in taken and _looks(label) not in alike:
            return label
    for label in candidates:
        if label not in taken and not _is_cut(label):
            return label
    number = 2
    while True:
        suffix = str(number)
        label = _cut(candidates[0], LONGEST_LABEL - len(suffix)) + suffix
        if label not in taken:
            return label
        number += 1


def _words(name: str) -> tuple[str, ...]:
    found = (word.lower() for word in _WORDS.findall(_CAPITALS.sub(" ", name[:200])))
    return tuple(dict.fromkeys(found))[:_MOST_WORDS]


def _candidates(
    name: str,
    words: tuple[str, ...],
    owners: Counter[str],
    pair_owners: Counter[tuple[str, str]],
) -> Iterator[str]:
    """Labels from the most to the least wanted; there is always one."""
    if not words:
        yield _cut(marked_text(name)) or "(none)"
        return
    if len(words) > 1:
        telling = [word for word in words if word not in _PLAIN] or list(words)
        pairs = [pair for pair in combinations(words, 2) if set(pair) & set(telling)]
        yield from (_cut(word) for word in telling if owners[_key(word)] == 1)
        yield from (_paired(*pair) for pair in pairs if pair_owners[_pair_key(pair)] == 1)
        whole = " ".join(words)
        if len(whole) <= LONGEST_LABEL:
            yield whole
        yield from (_paired(*pair) for pair in pairs)
    else:
        yield _cut(words[0])
    yield _ends(" ".join(words))


def _key(word: str) -> str:
    """The same for words that read alike: singular and plural, or a long beginning in common."""
    if word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif len(word) > 3:
        word = word.removesuffix("s")
    return word[:_ALIKE]


def _pair_key(pair: tuple[str, str]) -> tuple[str, str]:
    return _key(pair[0]), _key(pair[1])


def _looks(label: str) -> str:
    """The same for labels that are taken for each other at a glance."""
    return _key(label.replace(".", "").replace("…", ""))


def _is_cut(label: str) -> bool:
    return "…" in label or "." in label


def _paired(first: str, second: str) -> str:
    """Two words, the longer one shortened first: "get subscri."."""
    room = LONGEST_LABEL - 1
    if len(first) + len(second) > room:
        least = min(len(first), len(second), _WHOLE_WORD)
        if len(first) <= len(second):
            first, second = _shortened(first, least), _shortened(second, room - least)
        else:
            first, second = _shortened(first, room - least), _shortened(second, least)
    return f"{first} {second}"


def _shortened(word: str, longest: int) -> str:
    return word if len(word) <= longest else f"{word[: longest - 1]}."


def _ends(text: str) -> str:
    """The beginning and the end of a long text, where names differ at the end alone."""
    if len(text) <= LONGEST_LABEL:
        return text
    half = LONGEST_LABEL // 2
    return f"{text[:half]}…{text[half + 1 - LONGEST_LABEL :]}"


def _cut(text: str, longest: int = LONGEST_LABEL) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
