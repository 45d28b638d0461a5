"""The trials of a task as a prefix tree: where they part, and where failing ones leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Crumb, Figure
from evalsite.web.task_filters import TaskFilters
from evalsite.web.task_tabs import TaskTab, task_tabs
from traces.core.paths import PathLevel
from traces.core.prefix_tree import BranchCounts, CutRow, Parting, PartingStep, TreeRow
from traces.core.rules import RuleSet
from traces.core.shown_json import shown_json
from traces.core.trajectory import ArgumentsForm
from traces.selectors.releases import NO_RELEASE
from traces.selectors.rules import rules_of
from traces.selectors.task_detail import TaskDetail, task_detail
from traces.selectors.task_tree import (
    MOST_ROWS,
    TREE_LEVELS,
    TaskTree,
    TreeTrial,
)
from traces.selectors.task_tree import task_tree as stored_tree
from traces.selectors.trajectories import StoredCall
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.levels import ChosenLevel, path_switches
from traces.web.rows import STATES, rate_figure, trial_label
from traces.web.shell import system_shell
from traces.web.tool_names import MESSAGE_LABEL, ToolLook, tool_looks
from traces.web.work_notices import work_notices

MOST_ROWS_OF_ALL = 600
MOST_PLACES = 6
MOST_GUIDES = 16
MOST_GUIDES_WHEN_NARROW = 4
_FIRST_CELLS = 6
_LAST_CELLS = 3
_LONGEST_OPENING = 120


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for."""

    chosen: ChosenLevel
    filters: TaskFilters
    is_whole: bool

    @classmethod
    def of(cls, request: SystemRequest, task: TaskDetail) -> _Asked:
        chosen = ChosenLevel.of(request.GET, default=PathLevel.SEQUENCE)
        if chosen.level not in TREE_LEVELS:
            chosen = ChosenLevel(PathLevel.SEQUENCE, chosen.messages)
        return cls(chosen, TaskFilters.of(request, task), request.GET.get("all") == "1")

    @property
    def values(self) -> dict[str, Value]:
        return {**self.chosen.values, **self.filters.values}


@require_GET
@in_system()
def task_tree(request: SystemRequest, task: UUID) -> HttpResponse:
    """Where trials part, with what became of them."""
    system = request.access.system
    found = task_detail(system.pk, task)
    if found is None:
        raise Http404("There is no such task in this system.")
    at = Addresses.of(system.slug)
    asked = _Asked.of(request, found)
    filters = asked.filters
    rules = rules_of(system)
    stored = stored_tree(
        filters.trials(system.shown_rules_id),
        level=asked.chosen.level,
        messages=asked.chosen.messages,
        rules=rules,
        task_id=found.task_id,
        most_rows=MOST_ROWS_OF_ALL if asked.is_whole else MOST_ROWS,
    )
    here = at.tree(found.uuid)
    looks = _looks(stored, rules)
    is_of_several = len(filters.releases or filters.every_release) > 1
    rows = tuple(_rows(stored, looks, at, with_release=is_of_several))
    places = _places(stored)
    page = pages.TaskTreePage(
        shell=system_shell(request.access, section="Tasks"),
        crumbs=_crumbs(system.name, found, asked, at),
        task_id=found.task_id,
        title=found.title,
        tabs=task_tabs(at, found.uuid, current=TaskTab.TREE, values=asked.values),
        facts=_facts(found, asked),
        figures=_figures(stored),
        action=here,
        releases=filters.release_options,
        releases_label=filters.releases_label,
        hidden=tuple(
            pages.Hidden(name, str(value))
            for name, value in asked.values.items()
            if name != "release" and value
        ),
        versions=filters.version_choices(here, asked.values),
        switches=_switches(asked, here),
        words=_words(stored),
        places=places[:MOST_PLACES],
        n_more_places=max(0, len(places) - MOST_PLACES),
        rows=rows if stored.tree.counts.n_trials else (),
        has_errors=stored.tree.counts.n_error > 0,
        tools=tuple(look.key for look in looks.values()),
        note=_note(stored, rows),
        more=_more(stored, asked, here),
        notices=(*work_notices(system.pk), *_notices(found, stored, filters)),
        empty=None if stored.tree.counts.n_trials else _empty(asked, here),
    )
    return render(request, "traces/task_tree.html", {"page": page})


def _looks(stored: TaskTree, rules: RuleSet) -> dict[str, ToolLook]:
    """The tools of the steps that are drawn, in the order of the rows."""
    drawn = (
        stored.tools[label]
        for row in stored.tree.rows
        if isinstance(row, TreeRow)
        for label in (*_first_of(row), *_last_of(row))
    )
    return tool_looks((name for name in drawn if name), rules)


def _first_of(row: TreeRow) -> tuple[int, ...]:
    fits = len(row.labels) <= _FIRST_CELLS + _LAST_CELLS + 1
    return row.labels if fits else row.labels[:_FIRST_CELLS]


def _last_of(row: TreeRow) -> tuple[int, ...]:
    return () if len(_first_of(row)) == len(row.labels) else row.labels[-_LAST_CELLS:]


def _rows(
    stored: TaskTree, looks: Mapping[str, ToolLook], at: Addresses, *, with_release: bool
) -> Iterable[pages.BranchRow]:
    goes_on: list[bool] = []  # for each level above: whether another row of it follows
    for number, row in enumerate(stored.tree.rows, 1):
        del goes_on[row.depth :]
        goes_on.append(isinstance(row, TreeRow) and not row.is_last)
        guides = _guides(goes_on)
        if isinstance(row, CutRow):
            yield pages.BranchRow(
                anchor=f"branch-{number}",
                level=row.depth + 1,
                guides=guides,
                steps="",
                cells=(),
                n_between=0,
                last_cells=(),
                opening="",
                counts=_counts(row.through, stored),
                words=f"{counted(row.n_branches, 'more branch', 'more branches')}, not drawn",
                is_deep=row.depth > MOST_GUIDES,
                is_deep_when_narrow=row.depth > MOST_GUIDES_WHEN_NARROW,
            )
            continue
        first, last = _first_of(row), _last_of(row)
        yield pages.BranchRow(
            anchor=f"branch-{number}",
            level=row.depth + 1,
            guides=guides,
            steps=_steps(row),
            cells=tuple(_cell(stored.tools[label], looks) for label in first),
            n_between=len(row.labels) - len(first) - len(last),
            last_cells=tuple(_cell(stored.tools[label], looks) for label in last),
            opening=_opening(stored.openings.get(row.labels[0])) if row.labels else "",
            counts=_counts(row.through, stored),
            parting=_parting(row),
            ends=_ends(row),
            trials=tuple(
                _trial(trial, row, at, with_release=with_release)
                for path in row.ends
                for trial in stored.ends[path]
            ),
            words="" if row.labels else _start_words(stored),
            is_deep=row.depth > MOST_GUIDES,
            is_deep_when_narrow=row.depth > MOST_GUIDES_WHEN_NARROW,
        )


def _guides(goes_on: Sequence[bool]) -> tuple[str, ...]:
    """The lines that lead to a row, those of the nearest levels; the first level has none."""
    if len(goes_on) < 2:
        return ()
    lines = ["line" if each else "none" for each in goes_on[1:-1]]
    lines.append("tee" if goes_on[-1] else "corner")
    return tuple(lines[-MOST_GUIDES:])


def _steps(row: TreeRow) -> str:
    first, last = row.first + 1, row.first + len(row.labels)
    if not row.labels:
        return ""
    return f"{first:,}" if first == last else f"{first:,}-{last:,}"


def _start_words(stored: TaskTree) -> str:
    return "Start" if stored.tree.n_branches > 1 else "No action"


def _cell(tool: str, looks: Mapping[str, ToolLook]) -> pages.PathCell:
    if not tool:
        return pages.PathCell(MESSAGE_LABEL, "", kind="message")
    look = looks[tool]
    return pages.PathCell(look.label, look.name, colour=look.colour, kind=look.kind)


def _opening(call: StoredCall | None) -> str:
    """The arguments of a call in one line."""
    if call is None or call.form is ArgumentsForm.ABSENT:
        return ""
    arguments = call.arguments
    if isinstance(arguments, dict) and call.form is ArgumentsForm.JSON:
        text = ", ".join(f"{name}: {shown_json(value)}" for name, value in arguments.items())
    else:
        text = call.text
    return text if len(text) <= _LONGEST_OPENING else f"{text[: _LONGEST_OPENING - 1]}…"


def _counts(counts: BranchCounts, stored: TaskTree) -> pages.BranchCounts:
    by_state = (
        ("pass", counts.n_pass),
        ("fail", counts.n_fail),
        ("unresolved", counts.n_unresolved),
        ("harness-error", counts.n_error),
    )
    whole = stored.tree.counts.n_trials
    parts: list[pages.BarPart] = []
    before = 0
    for state, n in by_state:
        if n:
            parts.append(
                pages.BarPart(state, f"{100 * before / whole:.2f}", f"{100 * n / whole:.2f}")
            )
        before += n
    return pages.BranchCounts(
        counts.n_trials,
        counts.n_pass,
        counts.n_fail,
        counts.n_unresolved,
        counts.n_error,
        tuple(parts),
    )


def _parting(row: TreeRow) -> str:
    match row.parting:
        case Parting.LEAVES:
            n = row.through.n_fail
            verb = "leaves" if n == 1 else "leave"
            return f"{counted(n, 'failing trial')} {verb} the passing paths here"
        case Parting.STOPS_SHORT:
            n = row.ending.n_fail
            verb = "stops" if n == 1 else "stop"
            return f"{counted(n, 'failing trial')} {verb} here, passing ones go on"
        case _:
            return ""


def _ends(row: TreeRow) -> str:
    n = row.ending.n_trials
    if not n or (n == 1 and row.is_leaf):
        return ""
    return f"{n:,} {'ends' if n == 1 else 'end'} here:"


def _trial(
    trial: TreeTrial, row: TreeRow, at: Addresses, *, with_release: bool
) -> pages.BranchTrial:
    """A link to the action with which the branch begins; where a trial stops short, to its last."""
    place = row.first if row.is_leaf and row.depth else row.first + len(row.labels) - 1
    message = trial.message(place)
    return pages.BranchTrial(
        label=trial_label(trial.label, trial.attempt),
        href=address(at.trial(trial.uuid), {"agent": message}),
        state=STATES[trial.value],
        release=(trial.release_name or NO_RELEASE) if with_release else "",
        n_more=trial.n_trials - 1,
    )


def _places(stored: TaskTree) -> tuple[pages.PartingPlace, ...]:
    """The actions at which failing trials part from the passing paths, most trials first."""
    anchors: dict[int, str] = {}  # of the first row at each step
    for number, row in enumerate(stored.tree.rows, 1):
        if isinstance(row, TreeRow) and row.parting is not Parting.NONE:
            leaves = row.parting is Parting.LEAVES
            step = row.first if leaves else row.first + len(row.labels)
            anchors.setdefault(step, f"#branch-{number}")
    order = sorted(stored.tree.partings, key=lambda at: -at.n_left - at.n_stopped_short)
    return tuple(
        pages.PartingPlace(f"action {at.step + 1:,}", anchors.get(at.step, ""), _parting_words(at))
        for at in order
    )


def _parting_words(at: PartingStep) -> str:
    words: list[str] = []
    if at.n_left:
        words.append(f"{at.n_left:,} {'leaves' if at.n_left == 1 else 'leave'}")
    if at.n_stopped_short:
        verb = "stops" if at.n_stopped_short == 1 else "stop"
        words.append(f"{at.n_stopped_short:,} {verb} before it")
    return ", ".join(words)


def _figures(stored: TaskTree) -> tuple[Figure, ...]:
    tree, counts = stored.tree, stored.tree.counts
    figures = [
        Figure(
            "Trials",
            f"{counts.n_trials:,}",
            detail=counted(counts.n_error, "harness error"),
            help="Last attempts, without production traces and injected faults.",
        ),
        rate_figure(counts.n_pass, counts.n_pass + counts.n_fail, counts.n_trials),
    ]
    if not counts.n_fail:
        return tuple(figures)
    of = f"of {counts.n_fail:,} failing"
    if not counts.n_pass:
        return (*figures, Figure("Failing trials", f"{counts.n_fail:,}", detail="none passes"))
    return (
        *figures,
        Figure(
            "Leave the passing paths",
            f"{tree.n_left:,}",
            detail=of,
            state="fail" if tree.n_left else "",
            help="Failing trials whose next action no passing trial took at that place.",
        ),
        Figure(
            "Stop short",
            f"{tree.n_stopped_short:,}",
            detail=of,
            state="fail" if tree.n_stopped_short else "",
            help="Failing trials that end where every passing trial goes on.",
        ),
        Figure(
            "Fail on a passing path",
            f"{tree.n_alike:,}",
            detail=of,
            state="fail" if tree.n_alike else "",
            help="Failing trials whose actions at this level are those of a passing trial: "
            "the difference lies in what this level does not compare.",
        ),
    )


def _switches(asked: _Asked, here: str) -> pages.PathSwitches:
    """The levels at which a path is a sequence of steps."""
    every = path_switches(asked.chosen, href=lambda level: address(here, {**asked.values, **level}))
    return replace(every, more_levels=())


def _n_branches(stored: TaskTree) -> int:
    """The branches of the whole tree; a start without an action is none."""
    return stored.tree.n_branches - _n_starts(stored)


def _n_drawn(stored: TaskTree) -> int:
    """The branches that have a row of their own."""
    return sum(isinstance(row, TreeRow) for row in stored.tree.rows) - _n_starts(stored)


def _n_starts(stored: TaskTree) -> int:
    """1 where the tree begins with a row without an action, which is always drawn."""
    return sum(isinstance(row, TreeRow) and not row.labels for row in stored.tree.rows[:1])


def _words(stored: TaskTree) -> str:
    n = _n_branches(stored)
    return f"{counted(n, 'branch', 'branches')}, most trials first" if n else "No branch"


def _note(stored: TaskTree, rows: Sequence[pages.BranchRow]) -> str:
    n_drawn, n_branches = _n_drawn(stored), _n_branches(stored)
    notes: list[str] = []
    if n_drawn < n_branches:
        notes.append(f"The {n_drawn:,} branches with the most trials of {n_branches:,} are drawn.")
    if any(row.n_between for row in rows):
        notes.append("Long stretches without a branch are folded.")
    return " ".join(notes)


def _more(stored: TaskTree, asked: _Asked, here: str) -> pages.Link | None:
    n_branches = _n_branches(stored)
    if asked.is_whole or _n_drawn(stored) == n_branches:
        return None
    n = min(n_branches, MOST_ROWS_OF_ALL - _n_starts(stored))
    return pages.Link(f"Draw {n:,} branches", address(here, {**asked.values, "all": "1"}))


def _notices(task: TaskDetail, stored: TaskTree, filters: TaskFilters) -> tuple[pages.Notice, ...]:
    notices: list[pages.Notice] = []
    if filters.pools_versions:
        n = len(task.versions)
        notices.append(pages.Notice(f"All {n} versions of this task are taken together here."))
    if stored.n_left_out:
        notices.append(
            pages.Notice(
                f"{counted(stored.n_left_out, 'trial')} of production or with an injected fault "
                f"{'is' if stored.n_left_out == 1 else 'are'} not in this tree."
            )
        )
    return tuple(notices)


def _empty(asked: _Asked, here: str) -> pages.Empty:
    return pages.Empty(
        heading="No trial here",
        sentence="No trial of this task is of the chosen releases and version.",
        act=pages.Link("All trials of the task", address(here, asked.chosen.values))
        if asked.filters.releases or asked.filters.version
        else None,
    )


def _crumbs(system_name: str, task: TaskDetail, asked: _Asked, at: Addresses) -> tuple[Crumb, ...]:
    return (
        Crumb(system_name, at.tasks),
        Crumb("Tasks", address(at.tasks, asked.chosen.values)),
        Crumb(task.task_id, address(at.task(task.uuid), asked.values)),
        Crumb("Tree"),
    )


def _facts(task: TaskDetail, asked: _Asked) -> tuple[str, ...]:
    facts = [f"task {task.task_id}"]
    if task.family:
        facts.append(f"family {task.family}")
    if asked.filters.version:
        facts.append(f"version {asked.filters.version.number}")
    return tuple(facts)
