"""The switch between path levels, kept in the address of a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evalsite.common.shell import Choice
from traces.core.paths import PathLevel
from traces.selectors.paths import key_name
from traces.web.pages import PathSwitches

_FRONT = (PathLevel.SEQUENCE, PathLevel.EQUIVALENT, PathLevel.EXACT)
LEVEL_NAMES = {
    PathLevel.TOOL_SET: "Tool set",
    PathLevel.EFFECTS: "Effects",
    PathLevel.READS_ANY_ORDER: "Reads in any order",
    PathLevel.SEQUENCE: "Sequence",
    PathLevel.EQUIVALENT: "Equivalent",
    PathLevel.EXACT: "Exact",
}
LEVEL_HELP = {
    PathLevel.TOOL_SET: "The same path when they use the same set of tools.",
    PathLevel.EFFECTS: "The same path when their committed writes are the same, in order.",
    PathLevel.READS_ANY_ORDER: "As sequence, but neighbouring reads may come in any order.",
    PathLevel.SEQUENCE: "The same path when their steps have the same names in order.",
    PathLevel.EQUIVALENT: "As sequence, and the arguments are equal under the declared rules.",
    PathLevel.EXACT: "As sequence, and the arguments are equal.",
}
_PLURALS = {
    PathLevel.TOOL_SET: ("tool set", "tool sets"),
    PathLevel.EFFECTS: ("set of effects", "sets of effects"),
    PathLevel.READS_ANY_ORDER: ("path, reads in any order", "paths, reads in any order"),
    PathLevel.SEQUENCE: ("sequence", "sequences"),
    PathLevel.EQUIVALENT: ("equivalent path", "equivalent paths"),
    PathLevel.EXACT: ("exact path", "exact paths"),
}


@dataclass(frozen=True, slots=True)
class ChosenLevel:
    """A level, and whether agent messages count as steps."""

    level: PathLevel
    messages: bool

    @classmethod
    def of(cls, query: Mapping[str, str], *, default: PathLevel) -> ChosenLevel:
        """What an address asks for; a level that does not exist gives the default."""
        asked = query.get("level", "")
        level = PathLevel(asked) if asked in set(PathLevel) else default
        return cls(level, query.get("messages") == "1")

    @property
    def key(self) -> str:
        """The column of its path keys."""
        return key_name(self.level, messages=self.messages)

    @property
    def values(self) -> dict[str, str]:
        """What an address says of it."""
        return {"level": self.level.value, "messages": "1" if self.messages else ""}

    def words(self, n: int) -> str:
        """So many paths at this level: "4 sequences"."""
        one, many = _PLURALS[self.level]
        return f"{n:,} {one if n == 1 else many}"


def path_switches(
    chosen: ChosenLevel,
    *,
    href: Callable[[dict[str, str]], str],
    counts: Callable[[str], int] | None = None,
) -> PathSwitches:
    """The switch of levels. `href` makes an address, `counts` the number of paths of a column."""

    def choice(level: PathLevel) -> Choice:
        target = ChosenLevel(level, chosen.messages)
        return Choice(
            label=LEVEL_NAMES[level],
            href=href(target.values),
            is_current=level is chosen.level,
            count=counts(target.key) if counts else None,
            help=LEVEL_HELP[level],
        )

    return PathSwitches(
        levels=tuple(choice(level) for level in _FRONT),
        more_levels=tuple(choice(level) for level in PathLevel if level not in _FRONT),
        messages=(
            Choice(
                "Tool calls only",
                href(ChosenLevel(chosen.level, messages=False).values),
                is_current=not chosen.messages,
                help="Agent messages do not count as steps.",
            ),
            Choice(
                "With messages",
                href(ChosenLevel(chosen.level, messages=True).values),
                is_current=chosen.messages,
                help="An agent message without a call counts as a step; its wording does not.",
            ),
        ),
    )
