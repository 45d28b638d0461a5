"""A release: its version record, its runs, and how it compares."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb
from evalsite.web.gate_found import EVIDENCE, release_tabs
from evalsite.web.novelty import novelty_panel
from evalsite.web.release_comparison import comparison_part
from traces.selectors.releases import release_row
from traces.selectors.runs import run_rows
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.releases import left_out_words
from traces.web.rows import counted_figures, facts_of, pretty, run_row
from traces.web.shell import system_shell
from traces.web.work_notices import work_notices


@require_GET
@in_system()
def release_page(request: SystemRequest, release: UUID) -> HttpResponse:
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
    words = left_out_words([row])
    left_out = (pages.Notice(f"{words}; only the counts of runs hold them."),) if words else ()
    page = pages.ReleasePage(
        shell=system_shell(request.access, section="Releases"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Releases", at.releases), Crumb(row.label)),
        name=row.label,
        tabs=release_tabs(at, row.uuid, current=EVIDENCE),
        sentence=f"{counted(row.n_runs, 'run')} over {counted(row.n_tasks, 'task')}, "
        f"known since {time_text(row.created_at)}.",
        figures=counted_figures(
            n_pass=row.n_pass,
            n_fail=row.n_fail,
            n_unresolved=row.n_unresolved,
            n_error=row.n_error,
            n_missing=row.n_missing,
        ),
        comparison=comparison_part(request, row),
        novelty=novelty_panel(request, row.pk, row.uuid),
        facts=facts_of(row.details),
        record=pretty(row.details),
        runs=tuple(run_row(run, at) for run in runs.rows),
        tasks_url=address(at.tasks, {"release": row.uuid}),
        notices=(*work_notices(system.pk), *left_out, *more),
    )
    return render(request, "traces/release_detail.html", {"page": page})
