"""The list of tasks: passes, distinct passing paths, and the figures over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Choice, Crumb, Figure, Option
from evalsite.web.estimates import (
    Estimate,
    estimate_text,
    pass_at_estimates,
    pass_hat_estimates,
)
from traces.charts.figures import passes_against_k, paths_per_task
from traces.core.paths import PathLevel
from traces.models import Split
from traces.selectors.releases import ReleaseName, release_names
from traces.selectors.task_list import (
    TaskChoices,
    TaskFilter,
    TaskOrder,
    TaskRow,
    TaskTotals,
    task_choices,
    task_rows,
    task_totals,
)
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, pager_of, text_in, uuid_of
from traces.web.levels import ChosenLevel, path_switches
from traces.web.rows import rate_figure
from traces.web.shell import system_shell
from traces.web.work_notices import work_notices

_SPLITS = {
    Split.TUNING.value: "tuning",
    Split.HELD_OUT.value: "held out",
    Split.REGRESSION.value: "regression",
    "none": "no split",
}
_COLUMNS = (
    (TaskOrder.TASK, "Task", False),
    (None, "Title", False),
    (TaskOrder.FAMILY, "Family", False),
    (TaskOrder.SPLIT, "Split", False),
    (TaskOrder.PATHS, "Paths", True),
    (TaskOrder.RATE, "Passed / graded / run", True),
    (TaskOrder.FAILED, "Failed", True),
    (TaskOrder.UNRESOLVED, "Unresolved", True),
    (TaskOrder.HARNESS_ERRORS, "Harness errors", True),
)
_MOST_HEAT = 6


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for."""

    chosen: ChosenLevel
    is_table: bool
    release: ReleaseName | None
    family: str
    split: str
    words: str
    order: TaskOrder
    descending: bool

    @classmethod
    def of(cls, request: SystemRequest, releases: Sequence[ReleaseName]) -> _Asked:
        query = request.GET
        release = uuid_of(query.get("release", ""))
        split = query.get("split", "")
        sort = query.get("sort", "")
        order = sort.removeprefix("-")
        return cls(
            chosen=ChosenLevel.of(query, default=PathLevel.EXACT),
            is_table=query.get("view") == "table",
            release=next((each for each in releases if each.uuid == release), None),
            family=text_in(request, "family"),
            split=split if split in _SPLITS else "",
            words=text_in(request, "q"),
            order=TaskOrder(order) if order in set(TaskOrder) else TaskOrder.TASK,
            descending=sort.startswith("-"),
        )

    @property
    def sort(self) -> str:
        sign = "-" if self.descending else ""
        return "" if (self.order, sign) == (TaskOrder.TASK, "") else f"{sign}{self.order.value}"

    @property
    def shape(self) -> dict[str, Value]:
        """Level, view and order: what a filter form carries along."""
        return {
            **self.chosen.values,
            "view": "table" if self.is_table else "",
            "sort": self.sort,
        }

    @property
    def filters(self) -> dict[str, Value]:
        return {
            "release": str(self.release.uuid) if self.release else "",
            "family": self.family,
            "split": self.split,
            "q": self.words,
        }

    @property
    def values(self) -> dict[str, Value]:
        return {**self.shape, **self.filters}

    def task_filter(self, system_id: int) -> TaskFilter:
        return TaskFilter(
            system_id,
            release_id=self.release.pk if self.release else None,
            family=self.family,
            split=self.split,
            words=self.words,
        )


@require_GET
@in_system()
def system_start(request: SystemRequest) -> HttpResponse:
    """A system starts with its tasks."""
    return redirect("task-list", slug=request.access.system.slug)


@require_GET
@in_system()
def task_list(request: SystemRequest) -> HttpResponse:
    """The tasks of a system as a grid or a sortable table."""
    access = request.access
    system = access.system
    at = Addresses.of(system.slug)
    releases = release_names(system.pk)
    asked = _Asked.of(request, releases)
    chosen = asked.task_filter(system.pk)
    totals = task_totals(chosen, path_key=asked.chosen.key)
    found = task_rows(
        chosen,
        path_key=asked.chosen.key,
        order=asked.order,
        descending=asked.descending,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    hat = pass_hat_estimates(totals.by_counts)
    page = pages.TaskListPage(
        shell=system_shell(access, section="Tasks"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Tasks")),
        figures=_figures(totals, hat, asked.chosen),
        filter=_filter_form(asked, releases, task_choices(system.pk), at),
        switches=path_switches(
            asked.chosen, href=lambda level: address(at.tasks, {**asked.values, **level})
        ),
        views=tuple(
            Choice(
                label,
                address(at.tasks, {**asked.values, "view": view}),
                is_current=asked.is_table == bool(view),
            )
            for label, view in (("Grid", ""), ("Table", "table"))
        ),
        is_table=asked.is_table,
        columns=_columns(asked, at),
        rows=_rows(found.rows, asked, at),
        words=counted(totals.n_tasks + totals.n_tasks_tuning, "task"),
        pager=pager_of(found, at.tasks, asked.values),
        charts=_charts(found.rows, totals, hat, asked.chosen),
        notices=(*work_notices(system.pk), *_notices(totals)),
        empty=None if found.rows else _empty(asked, access, at),
    )
    return render(request, "traces/task_list.html", {"page": page})


def _figures(
    totals: TaskTotals, hat: Sequence[Estimate], chosen: ChosenLevel
) -> tuple[Figure, ...]:
    figures = [
        rate_figure(totals.n_pass, totals.n_graded, totals.n_run),
        Figure(
            "Passing paths",
            f"{totals.n_paths:,}",
            detail=f"{chosen.words(totals.n_paths).partition(' ')[2]}, "
            f"{counted(totals.n_tasks, 'task')}",
            help="Distinct paths of passing trials, counted task by task.",
        ),
    ]
    if hat:
        # The largest k that most tasks can tell of: beyond it the mean is over other, fewer tasks.
        last = next((each for each in reversed(hat) if each.n_left_out <= each.n_tasks), hat[0])
        over = f"over {last.n_tasks:,} of {counted(last.n_tasks + last.n_left_out, 'task')}"
        left_out = f", {counted(last.n_left_out, 'task')} with fewer" if last.n_left_out else ""
        figures.append(
            Figure(
                f"pass^{last.k}",
                estimate_text(last.value),
                detail=f"{over}; pass^1 {estimate_text(hat[0].value)}" if last.k > 1 else over,
                help=f"The chance that all of {last.k} trials of a task pass: the mean over "
                f"{counted(last.n_tasks, 'task')} with at least {last.k} graded trials{left_out}.",
            )
        )
    figures += [
        Figure(
            "Unresolved",
            f"{totals.n_unresolved:,}",
            state="unresolved" if totals.n_unresolved else "",
            help="Trials that no verdict decides yet.",
        ),
        Figure(
            "Harness errors",
            f"{totals.n_error:,}",
            state="harness-error" if totals.n_error else "",
            help="Trials in which the harness broke: no evidence about the agent.",
        ),
    ]
    return tuple(figures)


def _filter_form(
    asked: _Asked, releases: Sequence[ReleaseName], choices: TaskChoices, at: Addresses
) -> pages.TaskFilter:
    splits = [split or "none" for split in choices.splits]
    return pages.TaskFilter(
        action=at.tasks,
        families=_options("All families", [(f, f) for f in choices.families], asked.family),
        releases=_options(
            "All releases",
            [(str(release.uuid), release.label) for release in releases],
            str(asked.release.uuid) if asked.release else "",
        ),
        splits=_options(
            "All splits", [(split, _SPLITS.get(split, split)) for split in splits], asked.split
        )
        if any(choices.splits)
        else (),
        query=asked.words,
        hidden=tuple(
            pages.Hidden(name, str(value)) for name, value in asked.shape.items() if value
        ),
        clear_url=address(at.tasks, asked.shape) if any(asked.filters.values()) else "",
    )


def _options(everything: str, known: Sequence[tuple[str, str]], current: str) -> tuple[Option, ...]:
    if not known:
        return ()
    return (
        Option("", everything, is_selected=not current),
        *(Option(value, label, is_selected=value == current) for value, label in known),
    )


def _columns(asked: _Asked, at: Addresses) -> tuple[pages.Column, ...]:
    columns: list[pages.Column] = []
    for order, label, is_number in _COLUMNS:
        if order is None:
            columns.append(pages.Column(label))
            continue
        is_current = order is asked.order
        # Numbers are looked at from the top first.
        descending = not asked.descending if is_current else is_number
        sort = f"{'-' if descending else ''}{order.value}"
        ways = {True: "descending", False: "ascending"}
        columns.append(
            pages.Column(
                label,
                href=address(at.tasks, {**asked.values, "sort": sort}),
                sort=ways[asked.descending] if is_current else "",
                is_number=is_number,
            )
        )
    return tuple(columns)


def _rows(rows: Sequence[TaskRow], asked: _Asked, at: Addresses) -> tuple[pages.TaskRow, ...]:
    most = max((row.n_paths for row in rows), default=0)
    values = {
        **asked.chosen.values,
        "release": str(asked.release.uuid) if asked.release else "",
    }
    query = address("", values)
    return tuple(
        pages.TaskRow(
            task_id=row.task_id,
            title=row.title,
            href=f"{at.task(row.uuid)}{query}",
            family=row.family,
            split=_SPLITS.get(row.split, ""),
            n_paths=row.n_paths,
            counts=pages.Counts(row.n_pass, row.n_graded, row.n_run),
            n_fail=row.n_fail,
            n_unresolved=row.n_unresolved,
            n_error=row.n_error,
            heat=_heat(row.n_paths, most),
        )
        for row in rows
    )


def _heat(n_paths: int, most: int) -> int:
    if n_paths <= 1 or most <= 1:
        return 0
    return max(1, _MOST_HEAT * (n_paths - 1) // (most - 1))


def _charts(
    rows: Sequence[TaskRow], totals: TaskTotals, hat: Sequence[Estimate], chosen: ChosenLevel
) -> tuple[pages.Chart, ...]:
    charts: list[pages.Chart] = []
    if any(row.n_paths for row in rows):
        charts.append(
            pages.Chart(
                id="chart-paths",
                title="Paths per task",
                sentence=f"{chosen.words(totals.n_paths)} of passing trials",
                figure=paths_per_task(
                    tuple(row.task_id for row in rows), tuple(row.n_paths for row in rows)
                ),
                columns=("Task", "Paths", "Passed"),
                rows=tuple((row.task_id, str(row.n_paths), str(row.n_pass)) for row in rows),
            )
        )
    if len(hat) > 1:
        at = pass_at_estimates(totals.by_counts)
        charts.append(
            pages.Chart(
                id="chart-pass-k",
                title="pass^k against k",
                sentence="mean over tasks with at least k graded trials",
                figure=passes_against_k(_floats(hat), _floats(at)),
                columns=("k", "pass^k", "pass@k", "tasks"),
                rows=tuple(
                    (
                        str(one.k),
                        estimate_text(one.value),
                        estimate_text(other.value),
                        f"{one.n_tasks:,}",
                    )
                    for one, other in zip(hat, at, strict=True)
                ),
            )
        )
    return tuple(charts)


def _floats(means: Sequence[Estimate]) -> tuple[float | None, ...]:
    return tuple(None if mean.value is None else float(mean.value) for mean in means)


def _notices(totals: TaskTotals) -> tuple[pages.Notice, ...]:
    notices: list[pages.Notice] = []
    if totals.n_left_out:
        notices.append(
            pages.Notice(
                f"{counted(totals.n_left_out, 'trial')} of production or with an injected fault "
                "stand in no figure here."
            )
        )
    if totals.n_tasks_tuning:
        notices.append(
            pages.Notice(
                f"{counted(totals.n_tasks_tuning, 'task')} of split tuning stand in the list, "
                "but in none of the figures above it."
            )
        )
    return tuple(notices)


def _empty(asked: _Asked, access: Access, at: Addresses) -> pages.Empty:
    if any(asked.filters.values()):
        return pages.Empty(
            heading="No task is like that",
            sentence="Take a filter away, or look for another id or title.",
            act=pages.Link("All tasks", address(at.tasks, asked.shape)),
        )
    may_upload = access.may(Act.CONTRIBUTE)
    return pages.Empty(
        heading="No task yet",
        sentence="Tasks come with the trials of them. Upload traces of your agent."
        if may_upload
        else f"Tasks come with the trials of them. {access.refusal(Act.CONTRIBUTE)}",
        act=pages.Link("Upload traces", at.new_upload) if may_upload else None,
        command=f"python3 manage.py ingest FILE --system {access.system.slug} --release R",
    )
