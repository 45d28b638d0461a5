"""The views of one task, as a strip of links under its head."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from uuid import UUID

from evalsite.common.shell import Choice
from traces.web.addresses import Addresses, Value, address


class TaskTab(StrEnum):
    """The views of a task."""

    PATHS = "Paths"
    TREE = "Tree"
    ACCEPTED = "Accepted paths"
    DIAGNOSTICS = "Diagnostics"


_HELP = {
    TaskTab.PATHS: "The passing paths under each other, a column a step.",
    TaskTab.TREE: "Where trials part, step by step, with what became of them.",
    TaskTab.ACCEPTED: "The paths that people have looked at and hold to be valid.",
    TaskTab.DIAGNOSTICS: "Match modes against a reference. They decide nothing.",
}


def task_tabs(
    at: Addresses, task: UUID, *, current: TaskTab, values: Mapping[str, Value]
) -> tuple[Choice, ...]:
    """The strip. `values` are the level, messages, releases and version that all views keep."""
    targets = {
        TaskTab.PATHS: at.task(task),
        TaskTab.TREE: at.tree(task),
        TaskTab.ACCEPTED: at.register(task),
        TaskTab.DIAGNOSTICS: at.diagnostics(task),
    }
    return tuple(
        Choice(tab.value, address(target, values), is_current=tab is current, help=_HELP[tab])
        for tab, target in targets.items()
    )
