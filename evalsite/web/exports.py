"""Trials as files: CSV for spreadsheets, JSON Lines for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.http import Http404, HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from reviews.api.figures import trials_of
from reviews.selectors.exports import ExportSelection, csv_rows, jsonl_lines
from reviews.services.seats import reveal_in
from traces.core.canonical import nfc
from traces.models import Release, Role, Run
from traces.web.asking import text_in
from traces.web.downloads import attachment


@require_GET
@in_system()
def trials_csv(request: SystemRequest) -> HttpResponseBase:
    """The trials of a system, a release or a run, one a line; safe to open in a spreadsheet."""
    name = f"{request.access.system.slug}-trials.csv"
    rows = _encoded(csv_rows(_selection(request)))
    return attachment(rows, file_name=name, content_type="text/csv; charset=utf-8")


@require_GET
@in_system()
def trials_jsonl(request: SystemRequest) -> HttpResponseBase:
    """The trials of a system, a release or a run in native form, with their verdicts.

    A reviewer has seen these verdicts from then on, and labels none of the trials blind.
    """
    name = f"{request.access.system.slug}-trials.jsonl"
    selection = _selection(request)
    if request.access.role is Role.REVIEWER:
        reveal_in(trials_of(selection), where="export", by=request.access.user, now=timezone.now())
    lines = _encoded(jsonl_lines(selection))
    return attachment(lines, file_name=name, content_type="application/x-ndjson")


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    return (line.encode() for line in lines)


def _selection(request: SystemRequest) -> ExportSelection:
    system = request.access.system
    release: Release | None = None
    if name := text_in(request, "release"):
        release = Release.objects.filter(system=system, name=nfc(name)).first()
        if release is None:
            raise Http404("There is no such release in this system.")
    run: Run | None = None
    if name := text_in(request, "run"):
        runs = Run.objects.filter(release__system=system, name=nfc(name))
        run = (runs.filter(release=release) if release else runs).order_by("pk").first()
        if run is None:
            raise Http404("There is no such run in this system.")
    return ExportSelection(system, release, run)
