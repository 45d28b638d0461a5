"""The releases of a system."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb
from traces.selectors.releases import ReleaseRow, release_row, release_rows
from traces.selectors.runs import run_rows
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, pager_of
from traces.web.rows import counted_figures, facts_of, pretty, run_row
from traces.web.shell import system_shell

_LONGEST_DETAIL = 120


@require_GET
@in_system()
def release_list(request: SystemRequest) -> HttpResponse:
    """The releases of a system, newest first."""
    system = request.access.system
    at = Addresses.of(system.slug)
    found = release_rows(
        system.pk, after=number_in(request, "after"), before=number_in(request, "before")
    )
    page = pages.ReleaseListPage(
        shell=system_shell(request.access, section="Releases"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Releases")),
        rows=tuple(_row(row, at) for row in found.rows),
        pager=pager_of(found, at.releases, {}),
        empty=None
        if found.rows
        else pages.Empty(
            heading="No release yet",
            sentence="A release is made when evidence names it. Upload trials of one.",
            act=pages.Link("Upload traces", at.new_upload),
        ),
    )
    return render(request, "traces/release_list.html", {"page": page})


def _row(row: ReleaseRow, at: Addresses) -> pages.ReleaseRow:
    return pages.ReleaseRow(
        name=row.label,
        href=at.release(row.uuid),
        detail=_detail(row),
        n_runs=row.n_runs,
        n_tasks=row.n_tasks,
        n_error=row.n_error,
        counts=pages.Counts(row.n_pass, row.n_graded, row.n_run),
        created_at=row.created_at,
    )


def _detail(row: ReleaseRow) -> str:
    """Model and agent, from the version record."""
    telling = [
        fact.value
        for fact in facts_of(row.details)
        if fact.name.rsplit(".", 1)[-1] in ("model", "llm", "implementation", "name")
    ]
    return ", ".join(dict.fromkeys(telling))[:_LONGEST_DETAIL]


@require_GET
@in_system()
def release_detail(request: SystemRequest, release: UUID) -> HttpResponse:
    """A release: its version record and its runs."""
    system = request.access.system
    row = release_row(system.pk, release)
    if row is None:
        raise Http404("There is no such release in this system.")
    at = Addresses.of(system.slug)
    runs = run_rows(system.pk, release_pk=row.pk)
    more = (
        (pages.Notice(f"The newest {len(runs.rows)} runs of {row.n_runs} are listed here."),)
        if runs.next_after
        else ()
    )
    left_out = (
        (
            pages.Notice(
                f"{counted(row.n_left_out, 'trial')} of production or with an injected fault "
                "stand in no figure here."
            ),
        )
        if row.n_left_out
        else ()
    )
    page = pages.ReleasePage(
        shell=system_shell(request.access, section="Releases"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Releases", at.releases), Crumb(row.label)),
        name=row.label,
        sentence=f"{counted(row.n_runs, 'run')} over {counted(row.n_tasks, 'task')}, "
        f"known since {time_text(row.created_at)}.",
        figures=counted_figures(
            n_pass=row.n_pass,
            n_fail=row.n_fail,
            n_unresolved=row.n_unresolved,
            n_error=row.n_error,
            n_missing=sum(run.n_missing for run in runs.rows),
        ),
        facts=facts_of(row.details),
        record=pretty(row.details),
        runs=tuple(run_row(run, at) for run in runs.rows),
        tasks_url=address(at.tasks, {"release": row.uuid}),
        notices=(*left_out, *more),
    )
    return render(request, "traces/release_detail.html", {"page": page})
