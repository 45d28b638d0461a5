"""Uploads: the list, the form, and the receipt with its ledger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import bytes_text, counted, limit_text, time_text
from evalsite.common.shell import Crumb
from traces.core.formats import AUTO, FORMATS
from traces.core.text_marks import clean_text
from traces.models import Door, Upload, UploadLine
from traces.selectors.raw_records import raw_record
from traces.selectors.releases import NO_RELEASE, release_names
from traces.selectors.uploads import (
    Landed,
    LedgerPage,
    UploadRow,
    landed_for_good,
    landed_of,
    ledger_lines,
    trials_of_lines,
    upload_row,
    upload_rows,
)
from traces.services.acceptance import Offer, Refusal, accept_upload, file_chunks
from traces.services.uploads import stored_path
from traces.tasks import hint_upload
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, pager_of
from traces.web.downloads import attachment
from traces.web.shell import system_shell

LISTED_LANDED = 10
MOST_FILES = 20
_FORMATS = (
    pages.Fact("native JSON Lines", "one trial or one set of verdicts a line"),
    pages.Fact("tau-bench results", "one JSON file"),
    pages.Fact("tau2-bench results", "one JSON file, or a directory as zip or tar.gz"),
    pages.Fact("tau2 judge verdicts", "by simulation id; they may come before their trials"),
)


@require_GET
@in_system()
def upload_list(request: SystemRequest) -> HttpResponse:
    """The uploads of a system, newest first."""
    access = request.access
    at = Addresses.of(access.system.slug)
    found = upload_rows(
        access.system.pk, after=number_in(request, "after"), before=number_in(request, "before")
    )
    may_upload = access.may(Act.CONTRIBUTE)
    page = pages.UploadListPage(
        shell=system_shell(access, section="Uploads"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Uploads")),
        rows=tuple(_row(row, at) for row in found.rows),
        pager=pager_of(found, at.uploads, {}),
        new_url=at.new_upload if may_upload else "",
        why_not=access.refusal(Act.CONTRIBUTE),
        empty=None
        if found.rows
        else pages.Empty(
            heading="No upload yet",
            sentence="Traces come in as files, by the API or by a command.",
            act=pages.Link("Upload traces", at.new_upload) if may_upload else None,
            command=f"python3 manage.py ingest FILE --system {access.system.slug} --release R",
        ),
    )
    return render(request, "traces/upload_list.html", {"page": page})


def _row(row: UploadRow, at: Addresses) -> pages.UploadRow:
    return pages.UploadRow(
        name=row.file_name,
        href=at.upload(row.uuid),
        state=row.state,
        door=row.door,
        by=_by(row),
        received_at=row.received_at,
        size=row.size,
        n_received=row.n_received,
        n_stored=row.n_stored,
        n_duplicate=row.n_duplicate,
        n_conflict=row.n_conflict,
        n_refused=row.n_refused,
    )


def _by(row: UploadRow) -> str:
    who = row.by_name or "operator"
    return f"{who}, key {row.key_name}" if row.key_name else who


class _Files(forms.ClearableFileInput):
    allow_multiple_selected = True


class _FilesField(forms.FileField):
    """Several files."""

    widget = _Files

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        given = data if isinstance(data, list | tuple) else [data]
        if len(given) > MOST_FILES:
            raise forms.ValidationError(f"At most {MOST_FILES} files at once.")
        # An empty file is refused by the reader, in its own words.
        return [super(_FilesField, self).clean(file, initial) for file in given or [None]]


class _TextWithChoices(forms.TextInput):
    """A text field that offers what is known already."""

    choices: Sequence[str] = ()

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        shown = {**(attrs or {}), "list": f"{name}-choices"} if self.choices else attrs
        options = format_html_join("", '<option value="{}"></option>', ((c,) for c in self.choices))
        field = super().render(name, value, shown, renderer)
        if not self.choices:
            return field
        return format_html('{}<datalist id="{}-choices">{}</datalist>', field, name, options)


class UploadForm(forms.Form):
    """Files, and what they are of."""

    files = _FilesField(label="Files", allow_empty_file=True)  # type: ignore[assignment]
    release = forms.CharField(
        required=False,
        max_length=512,
        widget=_TextWithChoices,
        help_text="Choose one or type a new one. Empty: each record names its own.",
    )
    run = forms.CharField(
        required=False, max_length=512, help_text="Empty: each record's, else the default run."
    )
    format = forms.ChoiceField(
        initial=AUTO,
        required=False,
        choices=[(AUTO, "Find out by looking"), *((name, name) for name in FORMATS)],
    )

    def offered(self, releases: Sequence[str]) -> UploadForm:
        """The form with releases to choose from."""
        widget = self.fields["release"].widget
        assert isinstance(widget, _TextWithChoices)
        widget.choices = releases
        return self


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def upload_new(request: SystemRequest) -> HttpResponse:
    """The upload form; each file that is accepted gets a receipt."""
    form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
    status, retry_after = 200, None
    if request.method == "POST":
        status = 422
        if form.is_valid():
            accepted, refusals = _accept(request, form)
            for refusal, name in refusals:
                form.add_error(None, f"{clean_text(name)}: {refusal.sentence}")
                status, retry_after = refusal.status, refusal.retry_after
            if not refusals:
                return _receipts(request, accepted)
            for upload in accepted:
                messages.success(request, f"{upload.file_name} is stored for good.")
    answer = render(request, "traces/upload_form.html", {"page": _form_page(request, form)})
    answer.status_code = status
    if retry_after is not None:
        answer["Retry-After"] = str(retry_after)
    return answer


def _accept(
    request: SystemRequest, form: UploadForm
) -> tuple[list[Upload], list[tuple[Refusal, str]]]:
    accepted: list[Upload] = []
    refusals: list[tuple[Refusal, str]] = []
    for file in form.cleaned_data["files"]:
        name = file.name or "upload"
        offer = Offer(
            system=request.access.system,
            door=Door.PAGE,
            by=request.access.user,
            file_name=name,
            release=form.cleaned_data["release"],
            run=form.cleaned_data["run"],
            format=form.cleaned_data["format"] or AUTO,
            max_bytes=settings.EVALSITE_UPLOAD_MAX_BYTES,
        )
        outcome = accept_upload(file.chunks(), offer, now=timezone.now())
        if isinstance(outcome, Refusal):
            refusals.append((outcome, name))
        else:
            hint_upload(outcome.pk)
            accepted.append(outcome)
    return accepted, refusals


def _receipts(request: SystemRequest, accepted: Sequence[Upload]) -> HttpResponse:
    slug = request.access.system.slug
    if len(accepted) == 1:
        return redirect("upload-detail", slug=slug, upload=accepted[0].uuid)
    messages.success(request, f"{counted(len(accepted), 'file')} stored for good.")
    return redirect("upload-list", slug=slug)


def _form_page(request: SystemRequest, form: UploadForm) -> pages.UploadFormPage:
    system = request.access.system
    at = Addresses.of(system.slug)
    releases = [release.name for release in release_names(system.pk) if release.name]
    most = limit_text(settings.EVALSITE_UPLOAD_MAX_BYTES)
    return pages.UploadFormPage(
        shell=system_shell(request.access, section="Uploads"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Uploads", at.uploads), Crumb("New")),
        form=form.offered(releases),
        action=at.new_upload,
        limits=f"Up to {most} a file, {MOST_FILES} files at once. JSON Lines, JSON, zip and "
        "tar.gz; each also as gzip or zstd.",
        formats=_FORMATS,
        api_help=f'curl -H "Authorization: Bearer $KEY" -F file=@trials.jsonl -F release=1.0 '
        f"{request.build_absolute_uri('/api/v1/uploads')}",
    )


@require_GET
@in_system()
def upload_detail(request: SystemRequest, upload: UUID) -> HttpResponse:
    """The receipt of an upload: how far it is, and what became of every record."""
    system = request.access.system
    row = upload_row(system.pk, upload)
    if row is None:
        raise Http404("There is no such upload in this system.")
    at = Addresses.of(system.slug)
    lines = ledger_lines(
        row.pk, after=number_in(request, "after"), before=number_in(request, "before")
    )
    trials = trials_of_lines(row.pk, (line.number for line in lines.lines))
    read = landed_of if row.is_moving else landed_for_good
    here = at.upload(row.uuid)
    page = pages.ReceiptPage(
        shell=system_shell(request.access, section="Uploads"),
        crumbs=(
            Crumb(system.name, at.tasks),
            Crumb("Uploads", at.uploads),
            Crumb(row.file_name),
        ),
        name=row.file_name,
        state=row.state,
        sentence=_sentence(row),
        failure=row.failure,
        facts=_facts(row, at),
        percent=_percent(row),
        n_received=row.n_received,
        n_stored=row.n_stored,
        n_duplicate=row.n_duplicate,
        n_conflict=row.n_conflict,
        n_refused=row.n_refused,
        n_trials=row.n_trials,
        n_verdicts=row.n_verdicts,
        n_verdicts_refused=row.n_verdicts_refused,
        n_waiting=row.n_waiting,
        landed=_all_landed(row, read(row.pk, most=LISTED_LANDED), at),
        lines=_lines(row, lines, trials, at),
        lines_words=_lines_words(row, lines),
        lines_pager=pager_of(lines, here, {}, place="#lines"),
        raw_url=at.raw_upload(row.uuid),
        poll_url=request.get_full_path() if row.is_moving else "",
        again_url=at.new_upload if request.access.may(Act.CONTRIBUTE) else "",
    )
    return render(request, "traces/upload_detail.html", {"page": page})


def _sentence(row: UploadRow) -> str:
    match row.state:
        case "received":
            return "Stored for good. It waits for a worker to read it."
        case "processing":
            return f"Stored for good. {counted(row.n_received, 'record')} read so far."
        case "failed":
            return "The bytes are stored for good, but the file could not be read."
        case _:
            return f"Stored for good and read to its end: {counted(row.n_received, 'record')}."


def _percent(row: UploadRow) -> int | None:
    """How much is read. Unpacked bytes are counted, so a packed upload gives no percentage."""
    if not row.is_moving:
        return 100
    if row.state == "received" or row.bytes_read > row.size or not row.size:
        return None
    return min(99, 100 * row.bytes_read // row.size)


def _facts(row: UploadRow, at: Addresses) -> tuple[pages.Fact, ...]:
    facts = [
        pages.Fact("Received", time_text(row.received_at)),
        pages.Fact("By", _by(row)),
        pages.Fact("Door", row.door),
        pages.Fact("Size", bytes_text(row.size)),
        pages.Fact("SHA-256", bytes(row.sha256).hex()),
        pages.Fact("Format", _format(row)),
    ]
    if row.release_uuid is None:
        facts.append(pages.Fact("Release", "each record names its own"))
    else:
        label = row.release_name or NO_RELEASE
        facts.append(pages.Fact("Release", label, at.release(row.release_uuid)))
    facts.append(pages.Fact("Run", row.run_name or "each record's, else the default run"))
    if row.n_warnings:
        facts.append(pages.Fact("Warnings", counted(row.n_warnings, "warning")))
    if row.started_at and row.finished_at:
        seconds = (row.finished_at - row.started_at).total_seconds()
        facts.append(pages.Fact("Read in", f"{seconds:.1f} s"))
    return tuple(facts)


def _format(row: UploadRow) -> str:
    if row.format or row.format_asked != AUTO:
        return row.format or row.format_asked
    return "found out by looking"


def _all_landed(row: UploadRow, found: Sequence[Landed], at: Addresses) -> tuple[pages.Link, ...]:
    if not found:
        return ()
    trials = address(at.trials, {"upload": row.uuid})
    everything = pages.Link(counted(row.n_trials, "trial"), trials)
    return (everything, *(_landed(each, at) for each in found))


def _landed(each: Landed, at: Addresses) -> pages.Link:
    name = each.name or NO_RELEASE
    href = {"task": at.task, "run": at.run, "release": at.release}[each.kind](each.uuid)
    return pages.Link(f"{each.kind} {name}", href, title=counted(each.n_trials, "trial"))


def _lines(
    row: UploadRow, page: LedgerPage, trials: dict[int, UUID], at: Addresses
) -> tuple[pages.LedgerLine, ...]:
    return tuple(
        pages.LedgerLine(
            number=line.number,
            member=line.member,
            outcome=line.outcome,
            place=line.place,
            sentence=line.sentence,
            raw_url=at.raw_line(row.uuid, line.pk),
            href=at.trial(trials[line.number]) if line.number in trials else "",
        )
        for line in page.lines
    )


def _lines_words(row: UploadRow, page: LedgerPage) -> str:
    if not page.lines:
        return "Every record was taken." if not row.is_moving else "Nothing to say so far."
    return "Records that were refused, in conflict, or taken in part, in the order of the file."


def _stored(system_pk: int, identity: UUID) -> Upload:
    upload = Upload.objects.filter(system_id=system_pk, uuid=identity).first()
    if upload is None:
        raise Http404("There is no such upload in this system.")
    return upload


@require_GET
@in_system()
def upload_raw(request: SystemRequest, upload: UUID) -> HttpResponseBase:
    """The bytes of an upload as they came."""
    stored = _stored(request.access.system.pk, upload)
    path = stored_path(stored)
    if not path.is_file():
        raise Http404("The bytes of this upload are gone from the disk.")
    answer = attachment(file_chunks(path), file_name=stored.file_name)
    answer["Content-Length"] = str(stored.size)
    return answer


@require_GET
@in_system()
def upload_line_raw(request: SystemRequest, upload: UUID, line: int) -> HttpResponseBase:
    """One record of an upload as it came."""
    stored = _stored(request.access.system.pk, upload)
    row = UploadLine.objects.filter(upload=stored, pk=line).first()
    if row is None or not stored_path(stored).is_file():
        raise Http404("There is no such line in this upload.")
    return attachment(
        raw_record(stored_path(stored), member=row.member, offset=row.offset, length=row.length),
        file_name=f"record-{row.number}.txt",
        content_type="text/plain; charset=utf-8",
    )
