"""Writing contracts: the editor and the form that takes a file."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common import blobs
from evalsite.common.formatting import counted, limit_text
from evalsite.common.shell import Crumb
from evalsite.web.contract_rows import code_lines
from reviews.core.contract_drafts import ContractSource, DraftFinding
from reviews.permissions.contracts import open_proposals_for
from reviews.selectors.contracts import VersionRow, version_in_effect, version_row
from reviews.services.contracts import ContractFindingsError, ContractsError, draft_contracts
from traces.core.contracts.documents import MOST_TEXT_BYTES
from traces.core.contracts.drafting import draft_of
from traces.core.text_marks import clean_text
from traces.core.values import JsonObject
from traces.models import ContractPreview, Task, TaskVersion
from traces.tasks import hint_contract_preview
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import uuid_of
from traces.web.shell import system_shell

_ROWS = 28
_NEW_TASK = "new-task"


class ContractForm(forms.Form):
    """The text of a contract; several documents are taken, too."""

    text = forms.CharField(
        label="Contract",
        strip=False,
        max_length=MOST_TEXT_BYTES,
        widget=forms.Textarea(
            attrs={
                "rows": _ROWS,
                "wrap": "off",
                "spellcheck": "false",
                "autocapitalize": "off",
                "autocomplete": "off",
                "class": "mono",
            }
        ),
        error_messages={"required": "Write a contract first."},
    )

    def clean_text(self) -> str:
        """The text with plain line ends: a browser sends both characters."""
        text: str = self.cleaned_data["text"]
        return text.replace("\r\n", "\n")


class ContractFileForm(forms.Form):
    """A file with one or many contracts."""

    file = forms.FileField(
        label="YAML file",
        help_text=f"One document a task, parted by lines of ---; at most "
        f"{limit_text(MOST_TEXT_BYTES)}.",
        error_messages={
            "required": "Choose a file.",
            "empty": "The file is empty: there is no contract in it.",
        },
        widget=forms.ClearableFileInput(attrs={"accept": ".yaml,.yml,text/yaml,application/yaml"}),
    )


@dataclass(frozen=True, slots=True)
class _Start:
    """What the editor begins with."""

    task: Task | None = None
    text: str = ""
    heading: str = "New contract"
    sentence: str = ""
    hidden: tuple[pages.Hidden, ...] = ()


@require_http_methods(["GET", "POST"])
@in_system(Act.CONTRIBUTE)
def contract_form(request: SystemRequest) -> HttpResponse:
    """The editor: of a task's contract, of a version, of a draft, or of a new contract."""
    start = _start(request)
    if request.method != "POST":
        return _editor(request, start, ContractForm(initial={"text": start.text}))
    form = ContractForm(request.POST)
    if not form.is_valid():
        return _editor(request, start, form)
    text = form.cleaned_data["text"]
    try:
        preview = _drafted(request, [ContractSource("", text)])
    except ContractFindingsError as error:
        return _editor(request, start, form, findings=error.findings, text=text)
    except ContractsError as error:
        return _editor(request, start, form, error=str(error))
    return redirect("contract-preview", slug=request.access.system.slug, preview=preview.uuid)


@require_http_methods(["GET", "POST"])
@in_system(Act.CONTRIBUTE)
def contract_load(request: SystemRequest) -> HttpResponse:
    """The form that takes a file of contracts."""
    if request.method != "POST":
        return _loader(request, ContractFileForm())
    form = ContractFileForm(request.POST, request.FILES)
    if not form.is_valid():
        return _loader(request, form)
    file = form.cleaned_data["file"]
    # One byte more than is taken is enough to refuse the whole.
    content: bytes = file.read(MOST_TEXT_BYTES + 1)
    try:
        preview = _drafted(request, [ContractSource("", content)])
    except ContractFindingsError as error:
        text = content.decode(errors="replace")
        return _loader(request, form, findings=error.findings, text=text, name=file.name)
    except ContractsError as error:
        return _loader(request, form, error=str(error))
    return redirect("contract-preview", slug=request.access.system.slug, preview=preview.uuid)


def _drafted(request: SystemRequest, sources: Iterable[ContractSource]) -> ContractPreview:
    preview = draft_contracts(
        request.access.system, sources, by=request.access.user, now=timezone.now()
    )
    hint_contract_preview(preview.pk)
    return preview


def _start(request: SystemRequest) -> _Start:
    """What the address names; a form that is sent back names the same."""
    system = request.access.system
    asked = request.POST if request.method == "POST" else request.GET
    task = _task(request, asked.get("task", ""))
    version = asked.get("version", "")
    preview = asked.get("preview", "")
    if version:
        row = version_row(system.pk, uuid_of(version) or uuid.uuid4())
        if row is None:
            raise Http404("There is no such version of a contract in this system.")
        return _start_of(task, row, f"A copy of version {row.number}.", version=version)
    if preview:
        return _start_of_draft(request, task, preview, asked.get("of", ""))
    if task is None:
        return _Start(
            text=draft_of(_NEW_TASK, None),
            sentence="Name the task that it is for; a task that does not exist yet is made when "
            "the contract is proposed.",
        )
    row = version_in_effect(system.pk, task.pk)
    if row is not None:
        return _start_of(task, row, f"Version {row.number} is in effect.")
    return _Start(
        task=task,
        text=draft_of(task.task_id, _definition(task)),
        heading=_heading(task),
        sentence="A first draft, made from the task's definition.",
        hidden=(pages.Hidden("task", str(task.uuid)),),
    )


def _task(request: SystemRequest, text: str) -> Task | None:
    if not text:
        return None
    task = Task.objects.filter(
        system=request.access.system, uuid=uuid_of(text) or uuid.uuid4()
    ).first()
    if task is None:
        raise Http404("There is no such task in this system.")
    return task


def _heading(task: Task) -> str:
    return f"Contract of task {task.task_id}"


def _start_of(task: Task | None, row: VersionRow, sentence: str, *, version: str = "") -> _Start:
    hidden = [pages.Hidden("task", str(row.task_uuid))]
    if version:
        hidden.append(pages.Hidden("version", version))
    return _Start(
        task=task,
        text=row.text,
        heading=f"Contract of task {row.task_id}",
        sentence=sentence,
        hidden=tuple(hidden),
    )


def _start_of_draft(request: SystemRequest, task: Task | None, preview: str, of: str) -> _Start:
    drafted = ContractPreview.objects.filter(
        system=request.access.system, uuid=uuid_of(preview) or uuid.uuid4()
    ).first()
    text = drafted.texts.get(of) if drafted else None
    if text is None:
        raise Http404("There is no such draft in this system.")
    hidden = [pages.Hidden("preview", preview), pages.Hidden("of", of)]
    if task:
        hidden.append(pages.Hidden("task", str(task.uuid)))
    return _Start(
        task=task,
        text=text,
        heading=f"Contract of task {of}",
        sentence="As it was previewed.",
        hidden=tuple(hidden),
    )


def _definition(task: Task) -> JsonObject | None:
    newest = TaskVersion.objects.filter(task=task).order_by("-number").first()
    definition = blobs.unpack(newest.definition) if newest else None
    return definition if isinstance(definition, dict) else None


def _editor(
    request: SystemRequest,
    start: _Start,
    form: ContractForm,
    *,
    error: str = "",
    findings: tuple[DraftFinding, ...] = (),
    text: str = "",
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    cancel = at.contract_of(start.task.uuid) if start.task else at.contracts
    others = open_proposals_for(access.system.pk, [start.task.task_id]) if start.task else ()
    page = pages.ContractFormPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            *([Crumb(start.task.task_id, cancel)] if start.task else []),
            Crumb("Edit" if start.task else "New"),
        ),
        heading=start.heading,
        sentence=start.sentence,
        action=at.contract_form,
        cancel_url=cancel,
        form=form,
        hidden=start.hidden,
        notices=tuple(pages.Notice(other.sentence) for other in others),
        error=error,
        findings=tuple(_finding_lines(findings)),
        findings_words=_findings_words(findings),
        wrong=" ".join(sorted({str(each.line) for each in findings if each.line}, key=int)),
        lines=code_lines(text, _notes(findings)) if findings else (),
        schema_url=reverse("contract-schema"),
        other=pages.Link("Load a file", at.contract_load),
        is_file=False,
    )
    status = 422 if form.is_bound else 200
    return render(request, "traces/contract_form.html", {"page": page}, status=status)


def _loader(
    request: SystemRequest,
    form: ContractFileForm,
    *,
    error: str = "",
    findings: tuple[DraftFinding, ...] = (),
    text: str = "",
    name: str = "",
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    page = pages.ContractFormPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            Crumb("Load a file"),
        ),
        heading="Load contracts from a file",
        sentence="Contracts that say the same as the version in effect are left out. The next page "
        "shows what the others would change; nothing changes before somebody else approves it.",
        action=at.contract_load,
        cancel_url=at.contracts,
        form=form,
        hidden=(),
        notices=(),
        error=error,
        findings=tuple(_finding_lines(findings)),
        findings_words=_findings_words(findings, name),
        wrong="",
        lines=code_lines(text, _notes(findings)) if findings else (),
        schema_url=reverse("contract-schema"),
        other=pages.Link("Write one here instead", at.contract_form),
        is_file=True,
    )
    status = 422 if form.is_bound else 200
    return render(request, "traces/contract_form.html", {"page": page}, status=status)


def _finding_lines(findings: Iterable[DraftFinding]) -> Iterator[pages.FindingLine]:
    for finding in findings:
        numbers = [
            f"{word} {number}"
            for word, number in (("line", finding.line), ("column", finding.column))
            if number
        ]
        yield pages.FindingLine(
            place=", ".join(numbers).capitalize(),
            field=finding.field,
            href=f"#line-{finding.line}" if finding.line else "",
            line=finding.line,
            column=finding.column,
            sentence=finding.sentence,
        )


def _findings_words(findings: tuple[DraftFinding, ...], name: str = "") -> str:
    if not findings:
        return ""
    where = f" in {clean_text(name)}" if name else ""
    verb = "has" if len(findings) == 1 else "have"
    return f"{counted(len(findings), 'place')}{where} {verb} to be mended. Nothing was kept."


def _notes(findings: Iterable[DraftFinding]) -> dict[int, list[str]]:
    notes: dict[int, list[str]] = {}
    for finding in findings:
        notes.setdefault(finding.line, []).append(finding.sentence)
    return notes
