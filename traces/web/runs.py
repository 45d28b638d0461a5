"""The runs of a system: what was declared, what came, and what is missing."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Choice, Crumb
from traces.core.records import Disposition
from traces.selectors.releases import NO_RELEASE, release_names
from traces.selectors.runs import RunRow, missing_tasks, run_rows, run_uploads
from traces.selectors.runs import run_row as stored_run
from traces.selectors.trial_list import TrialFilter, listed_trials
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, pager_of, uuid_of
from traces.web.rows import counted_figures, facts_of, run_row, trial_row
from traces.web.shell import system_shell

LISTED_MISSING = 50
LISTED_ERRORS = 20
LISTED_UPLOADS = 20


@require_GET
@in_system()
def run_list(request: SystemRequest) -> HttpResponse:
    """The runs of a system, newest first."""
    system = request.access.system
    at = Addresses.of(system.slug)
    releases = release_names(system.pk)
    asked = uuid_of(request.GET.get("release", ""))
    chosen = next((release for release in releases if release.uuid == asked), None)
    found = run_rows(
        system.pk,
        release_pk=chosen.pk if chosen else None,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    page = pages.RunListPage(
        shell=system_shell(request.access, section="Runs"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Runs")),
        rows=tuple(run_row(row, at) for row in found.rows),
        releases=(
            Choice("All releases", at.runs, is_current=chosen is None),
            *(
                Choice(
                    release.label,
                    address(at.runs, {"release": release.uuid}),
                    is_current=release is chosen,
                )
                for release in releases
            ),
        ),
        release_label=chosen.label if chosen else "All releases",
        pager=pager_of(found, at.runs, {"release": chosen.uuid if chosen else None}),
        empty=None if found.rows else _no_runs(request, at),
    )
    return render(request, "traces/run_list.html", {"page": page})


def _no_runs(request: SystemRequest, at: Addresses) -> pages.Empty:
    slug = request.access.system.slug
    return pages.Empty(
        heading="No run yet",
        sentence="A run begins with its first trial, or when it is declared, so that missing "
        "trials are seen.",
        act=pages.Link("Upload traces", at.new_upload)
        if request.access.may(Act.CONTRIBUTE)
        else None,
        command=f"python3 manage.py run declare --system {slug} --release R --name N --trials 5",
    )


@require_GET
@in_system()
def run_detail(request: SystemRequest, run: UUID) -> HttpResponse:
    """One run: figures, missing trials, harness errors, trials and uploads."""
    system = request.access.system
    row = stored_run(system.pk, run)
    if row is None:
        raise Http404("There is no such run in this system.")
    at = Addresses.of(system.slug)
    here = at.run(row.uuid)
    missing, n_missing_tasks = missing_tasks(row.pk, n=LISTED_MISSING)
    errors = listed_trials(
        TrialFilter(system.pk, run_pk=row.pk, disposition=Disposition.HARNESS_ERROR),
        n=LISTED_ERRORS,
    )
    trials = listed_trials(
        TrialFilter(system.pk, run_pk=row.pk),
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    page = pages.RunPage(
        shell=system_shell(request.access, section="Runs"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Runs", at.runs), Crumb(row.name)),
        name=row.name,
        sentence=_sentence(row),
        figures=counted_figures(
            n_pass=row.n_pass,
            n_fail=row.n_fail,
            n_unresolved=row.n_unresolved,
            n_error=row.n_error,
            n_missing=row.n_missing,
        ),
        n_declared=row.n_declared,
        n_present=row.n_present,
        missing=tuple(
            pages.MissingRow(
                pages.Link(each.task_id, at.task(each.uuid)), each.n_declared, each.n_present
            )
            for each in missing
        ),
        n_more_missing=n_missing_tasks - len(missing),
        errors=tuple(trial_row(trial, at) for trial in errors.rows),
        n_more_errors=max(0, row.n_error - len(errors.rows)),
        trials=tuple(trial_row(trial, at) for trial in trials.rows),
        trials_pager=pager_of(trials, here, {}, place="#trials"),
        facts=facts_of(row.details),
        uploads=tuple(
            pages.UploadLink(
                each.file_name,
                at.upload(each.uuid),
                each.received_at,
                counted(each.n_trials, "trial")
                + (f", {each.n_refused:,} refused" if each.n_refused else ""),
            )
            for each in run_uploads(row.pk, n=LISTED_UPLOADS)
        ),
        tasks_url=address(at.tasks, {"release": row.release_uuid}),
    )
    return render(request, "traces/run_detail.html", {"page": page})


def _sentence(row: RunRow) -> str:
    release = row.release_name or NO_RELEASE
    if row.declared_at is None:
        return (
            f"Against {release}, begun {time_text(row.begun_at)}. It was not declared, so "
            "nobody can say whether trials are missing."
        )
    return (
        f"Against {release}, declared {time_text(row.declared_at)} with "
        f"{counted(row.declared_trials or 0, 'trial')} for each of "
        f"{counted(row.n_tasks, 'task')}."
    )
