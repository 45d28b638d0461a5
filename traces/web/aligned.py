"""The aligned view of a task's paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from evalsite.common.formatting import counted
from traces.core.rules import RuleKind
from traces.selectors.path_layout import (
    LaidStep,
    MergedValues,
    OtherArguments,
    PathLayout,
    PathMembers,
)
from traces.selectors.task_detail import GroupRow
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.levels import ChosenLevel
from traces.web.rows import STATES, trial_label
from traces.web.tool_names import MESSAGE_LABEL, ToolLook

LONGEST_EXAMPLE = 160
LONGEST_ARGUMENT = 40
RULE_NAMES = {
    RuleKind.IGNORE: "ignored",
    RuleKind.ROUND_TO: "rounded",
    RuleKind.ARITHMETIC: "arithmetic value",
    RuleKind.TEXT: "wording",
    RuleKind.DATETIME: "time",
    RuleKind.UNORDERED: "any order",
    RuleKind.DEFAULT: "default value",
    RuleKind.ALIAS: "declared equal",
}


@dataclass(frozen=True, slots=True)
class PathMarks:
    """What is known of a path beside its trials."""

    badges: tuple[pages.Badge, ...] = ()
    accept_url: str = ""  # the form that accepts it


def path_name(rank: int) -> str:
    """The name of a path by its rank from 1: A to Z, then AA."""
    name = ""
    while rank > 0:
        rank, letter = divmod(rank - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def members_of(groups: Sequence[GroupRow]) -> tuple[PathMembers, ...]:
    """The groups as a layout takes them."""
    return tuple(PathMembers(group.representative, group.members) for group in groups)


def group_key(group: GroupRow) -> str:
    """What names a group in an address: its path's key, or a trial where it did not pass."""
    return group.key.hex if STATES[group.value] == "pass" else group.trials[0].uuid.hex


def path_groups(
    groups: Sequence[GroupRow],
    rows: Sequence[tuple[LaidStep | None, ...]],
    *,
    at: Addresses,
    looks: Mapping[str, ToolLook],
    releases: Mapping[int, str],
    chosen: ChosenLevel,
    n_pass: int,
    picked: frozenset[str],
    not_comparable: Sequence[bool] = (),
    marks: Mapping[UUID, PathMarks] | None = None,
) -> tuple[pages.PathGroup, ...]:
    """Groups with their cells, in the order given; `marks` by key of their paths."""
    names = tuple(map(_name, groups))
    comparable = [*not_comparable, *[False] * (len(groups) - len(not_comparable))]
    return tuple(
        pages.PathGroup(
            key=group_key(group),
            name=_name(group),
            state=STATES[group.value],
            n_trials=group.n_trials,
            share=100 * group.n_trials // n_pass if n_pass else 0,
            trials=tuple(
                pages.Link(
                    trial_label(trial.label, trial.attempt),
                    at.trial(trial.uuid),
                    title=releases.get(trial.release_pk, ""),
                )
                for trial in group.trials
            ),
            n_more_trials=group.n_trials - len(group.trials),
            releases=tuple(releases[pk] for pk in group.release_pks if pk in releases),
            finer=_finer(group, chosen),
            n_tool_calls=group.n_tool_calls,
            cost_usd=group.cost_median,
            cells=path_cells(
                row,
                looks,
                trial=at.trial(group.trials[0].uuid),
                names=names,
            ),
            note="A call was recorded without its arguments: it is a path of its own where "
            "arguments count."
            if lacks
            else "",
            badges=mark.badges,
            accept_url=mark.accept_url,
            is_picked=group_key(group) in picked,
        )
        for group, row, lacks in zip(groups, rows, comparable, strict=True)
        for mark in [(marks or {}).get(group.key, PathMarks())]
    )


def _name(group: GroupRow) -> str:
    if STATES[group.value] == "pass":
        return path_name(group.rank)
    first = group.trials[0]
    more = f" and {group.n_trials - 1} more" if group.n_trials > 1 else ""
    return f"Trial {trial_label(first.label, first.attempt)}{more}"


def _finer(group: GroupRow, chosen: ChosenLevel) -> str:
    return "" if chosen.level.value == "exact" else counted(group.n_finer, "exact path")


def path_cells(
    row: Sequence[LaidStep | None],
    looks: Mapping[str, ToolLook],
    *,
    trial: str,
    names: Sequence[str] = (),
) -> tuple[pages.PathCell | None, ...]:
    """The steps of a path in their columns. `trial` is the address of the trial that shows it.

    `names` are those of all paths of a layout that compares arguments.
    """
    return tuple(None if step is None else _cell(step, looks, trial, names) for step in row)


def _cell(
    step: LaidStep, looks: Mapping[str, ToolLook], trial: str, names: Sequence[str]
) -> pages.PathCell:
    href = f"{trial}?agent={step.agent_message}"
    if not step.tool:
        return pages.PathCell(MESSAGE_LABEL, "", href=href, kind="message", leaves=step.leaves)
    look = looks[step.tool]
    return pages.PathCell(
        look.label,
        look.name,
        href=href,
        colour=look.colour,
        kind=look.kind,
        differs=step.differs,
        n_rejected=step.n_rejected,
        n_not_rejected=step.n_not_rejected,
        other=_other_words(step.others, names) if step.others else "",
        leaves=step.leaves,
    )


def _other_words(others: OtherArguments, names: Sequence[str]) -> str:
    path = f"from path {names[others.path]}"
    if not others.names:
        return f"arguments differ {path}"
    listed = [_short(name, LONGEST_ARGUMENT) for name in others.names]
    if others.n_more:
        listed.append(f"{others.n_more} more")
    words = " and ".join(part for part in (", ".join(listed[:-1]), listed[-1]) if part)
    return f"{words} {'differ' if len(listed) > 1 else 'differs'} {path}"


def merges(found: Sequence[MergedValues], groups: Sequence[GroupRow]) -> tuple[pages.Merge, ...]:
    """What rules took as equal inside the shown paths."""
    return tuple(
        pages.Merge(
            tool=merge.rule.tool,
            argument=merge.argument,
            rule=RULE_NAMES[merge.rule.kind],
            n_values=merge.n_values,
            value=merge.value,
            examples=tuple(_short(example) for example in merge.examples),
            reason=merge.rule.reason,
            path=_name(groups[merge.path]),
        )
        for merge in found
    )


def _short(text: str, longest: int = LONGEST_EXAMPLE) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def layout_note(layout: PathLayout, *, n_more_overlaid: int = 0) -> str:
    """What the aligned view leaves out."""
    notes: list[str] = []
    if layout.cut_at:
        notes.append(f"Longer paths are cut after {layout.cut_at} steps; compare shows all.")
    if n_more_overlaid:
        notes.append(
            f"{counted(n_more_overlaid, 'more trial')} that did not pass are in the list below."
        )
    return " ".join(notes)
