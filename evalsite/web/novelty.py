"""What a release does with accepted paths, and which of its passing paths are new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from evalsite.access import SystemRequest
from evalsite.common.formatting import counted
from reviews.core.accepted_paths import Taking, accepted_name
from reviews.selectors.novelty import ReleaseNovelty, TaskNovelty, release_novelty
from traces.core.paths import PathLevel
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, uuid_of
from traces.web.levels import ChosenLevel, path_switches
from traces.web.pages.accepted import NoveltyList, NoveltyPanel, NoveltyRow

LISTED_TASKS = 20


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address of a release's page asks for."""

    request: SystemRequest
    release: UUID
    chosen: ChosenLevel

    @property
    def at(self) -> Addresses:
        return Addresses.of(self.request.access.system.slug)

    def first(self, name: str) -> int:
        """The place, from 0, of the first task of a list."""
        return max((number_in(self.request, name) or 1) - 1, 0)

    def here(self, **values: Value) -> str:
        """The panel at the same level, the page still against the same other release."""
        against = uuid_of(self.request.GET.get("against", ""))
        kept = {**self.chosen.values, "against": against, **values}
        return address(self.at.release(self.release), kept, place="#novelty")


def novelty_panel(request: SystemRequest, release_pk: int, release: UUID) -> NoveltyPanel:
    """The panel of a release's page. The address says at which level, and where a list begins."""
    asked = _Asked(request, release, ChosenLevel.of(request.GET, default=PathLevel.SEQUENCE))
    found = release_novelty(request.access.system, release_pk, path_key=asked.chosen.key)
    lists = [_lost(found, asked)]
    if found.has_earlier:
        lists = [_new(found, asked), *lists, _seen(found, asked)]
    return NoveltyPanel(
        switches=path_switches(asked.chosen, href=lambda level: asked.here(**level)),
        lists=tuple(each for each in lists if each.rows),
        notes=_notes(found),
    )


def _new(found: ReleaseNovelty, asked: _Asked) -> NoveltyList:
    tasks = [task for task in found.tasks if task.n_new]
    by = "a path" if sum(task.n_new for task in tasks) == 1 else "paths"
    return _list(
        f"{_pass(tasks)} by {by} that no one has seen",
        tasks,
        lambda task: _several(task.n_new),
        name="new",
        asked=asked,
    )


def _lost(found: ReleaseNovelty, asked: _Asked) -> NoveltyList:
    tasks = [task for task in found.tasks if task.numbers(Taking.NO_LONGER)]
    n = sum(len(task.merged(Taking.NO_LONGER)) for task in tasks)
    verb = "is" if n == 1 else "are"
    return _list(
        f"{counted(n, 'accepted path')} {verb} no longer taken",
        tasks,
        lambda task: ", ".join(map(accepted_name, task.merged(Taking.NO_LONGER))),
        name="lost",
        asked=asked,
    )


def _seen(found: ReleaseNovelty, asked: _Asked) -> NoveltyList:
    tasks = [task for task in found.tasks if task.n_seen]
    is_one = sum(task.n_seen for task in tasks) == 1
    by = "a path that was seen before and is" if is_one else "paths that were seen before and are"
    return _list(
        f"{_pass(tasks)} by {by} not, or not wholly, accepted",
        tasks,
        lambda task: _several(task.n_seen),
        name="seen",
        asked=asked,
    )


def _pass(tasks: Sequence[TaskNovelty]) -> str:
    return f"{counted(len(tasks), 'task')} {'passes' if len(tasks) == 1 else 'pass'}"


def _list(
    sentence: str,
    tasks: Sequence[TaskNovelty],
    words: Callable[[TaskNovelty], str],
    *,
    name: str,
    asked: _Asked,
) -> NoveltyList:
    """Tasks from the place on that the address gives under the list's name."""
    skip = asked.first(name) if asked.first(name) < len(tasks) else 0
    shown, n = tasks[skip : skip + LISTED_TASKS], len(tasks)
    last = skip + len(shown)
    values: dict[str, Value] = {**asked.chosen.values, "release": str(asked.release)}
    more = None
    if last < n:
        more = pages.Link(f"The next of {n:,} tasks", asked.here(**{name: last + 1}))
    elif skip:
        more = pages.Link("From the first task on", asked.here())
    return NoveltyList(
        name=name,
        sentence=sentence,
        rows=tuple(
            NoveltyRow(
                pages.Link(task.task_id, address(asked.at.task(task.uuid), values)), words(task)
            )
            for task in shown
        ),
        more=more,
    )


def _notes(found: ReleaseNovelty) -> tuple[str, ...]:
    """What is said in plain sentences."""
    if not found.tasks:
        return ("This release has no trial that figures count.",)

    def n_of(taking: Taking) -> int:
        return sum(len(task.merged(taking)) for task in found.tasks)

    notes: list[str] = []
    if not found.has_earlier:
        notes.append("No earlier release has trials, so no path can be called new.")
    elif not any(task.n_new for task in found.tasks):
        notes.append("Every path by which it passes was seen before.")
    n_taken = n_of(Taking.TAKEN)
    if n_taken:
        notes.append(f"{counted(n_taken, 'accepted path')} {_is(n_taken)} taken.")
    if n := n_of(Taking.NOT_YET):
        notes.append(f"{counted(n, 'accepted path')} {_is(n)} not taken yet.")
    if n := n_of(Taking.CANNOT_TELL):
        notes.append(
            f"Of {counted(n, 'accepted path')} nothing can be told: no trial of the task is graded."
        )
    without = sum(not task.accepted for task in found.tasks)
    if without:
        has = "has" if without == 1 else "have"
        notes.append(f"{without:,} of {counted(len(found.tasks), 'task')} {has} no accepted path.")
    return tuple(notes)


def _several(n: int) -> str:
    return f"{n:,} paths" if n > 1 else ""


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
