"""The releases of a system."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Crumb
from traces.selectors.releases import ReleaseRow, release_rows
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import number_in, pager_of
from traces.web.rows import facts_of
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
    words = left_out_words(found.rows)
    page = pages.ReleaseListPage(
        shell=system_shell(request.access, section="Releases"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Releases")),
        rows=tuple(_row(row, at) for row in found.rows),
        notices=(pages.Notice(f"{words}."),) if words else (),
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


def left_out_words(rows: Sequence[ReleaseRow]) -> str:
    """Which trials of some releases stand in no figure, as a sentence without its full stop."""
    kinds = (
        (sum(row.n_left_out for row in rows), "of production or with an injected fault"),
        (sum(row.n_tuning for row in rows), "of split tuning"),
    )
    told = [(n, kind) for n, kind in kinds if n]
    if not told:
        return ""
    (first, kind), *rest = told
    parts = [f"{counted(first, 'trial')} {kind}", *(f"{n:,} {other}" for n, other in rest)]
    verb = "stands" if sum(n for n, _ in told) == 1 else "stand"
    return f"{' and '.join(parts)} {verb} in no figure here"


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
