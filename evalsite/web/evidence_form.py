"""Adding evidence that a trial did not record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.after_review import add_evidence_to
from evalsite.common.formatting import counted, limit_text
from evalsite.common.shell import Crumb
from evalsite.web.flag_rows import disposition_badge, trial_link
from reviews.models import Case
from reviews.selectors.flags import FlaggableTrial, flaggable_trial
from traces.core.additions import AdditionPart, StoredEvidence
from traces.core.contracts.model import EvidencePart
from traces.core.records import Disposition, Finding
from traces.core.text_marks import clean_text
from traces.models import Door, EvidenceAddition, Trial
from traces.selectors.contracts import contracts_in_effect
from traces.selectors.reading_limits import reading_limits
from traces.selectors.rules import rules_of
from traces.selectors.trial_evidence import trial_evidence
from traces.services.additions import (
    LONGEST_REASON,
    LONGEST_SOURCE,
    MOST_BYTES,
    AdditionDeniedError,
    AdditionError,
    addition_of,
)
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import uuid_of
from traces.web.pages.cases import AdditionRow, EvidenceFormPage, MissingPart
from traces.web.shell import system_shell

LISTED_CALLS = 20
_NO_TRIAL = "There is no such trial in this system."
_PARTS = {
    AdditionPart.INITIAL_STATE: ("The state before the run", EvidencePart.INITIAL_STATE),
    AdditionPart.FINAL_STATE: ("The state after the run", EvidencePart.FINAL_STATE),
    AdditionPart.FACTS: ("Facts of the trial", EvidencePart.FACTS),
    AdditionPart.RESULTS: ("Results of tool calls", EvidencePart.TOOL_RESULTS),
    AdditionPart.COST_USD: ("Cost in US dollars", EvidencePart.COST),
    AdditionPart.TOKENS: ("Tokens, input and output together", EvidencePart.TOKENS),
    AdditionPart.SECONDS: ("Duration in seconds", EvidencePart.TIMES),
}
_NOW = {
    Disposition.PASS.value: "The trial passes now.",
    Disposition.FAIL.value: "The trial fails now.",
}
_BOTH = "Give the evidence as text or as a file, not both."
_NEITHER = "Give the evidence: a JSON object of what is missing."


class EvidenceForm(forms.Form):
    """What a trial did not record, where it was read, and why it is added."""

    evidence = forms.CharField(
        required=False,
        max_length=MOST_BYTES,
        widget=forms.Textarea(attrs={"rows": 12, "class": "evidence-json", "spellcheck": "false"}),
        label="Evidence",
        help_text="A JSON object of the missing parts alone, as in the example.",
    )
    file = forms.FileField(
        required=False,
        label="Or a JSON file",
        help_text=f"At most {limit_text(MOST_BYTES)}.",
    )
    source = forms.CharField(
        max_length=LONGEST_SOURCE,
        help_text="Where it was read, and how: “inspection api, by hand”.",
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Why the trial did not record it, and why this is what it would have recorded.",
    )

    def content(self) -> bytes:
        """The JSON text. Raises `AdditionError` without one, or with two."""
        text: str = self.cleaned_data["evidence"].strip()
        file: UploadedFile[Any] | None = self.cleaned_data["file"]
        if text and file:
            raise AdditionError(Finding("two-documents", "", _BOTH))
        if file is not None:
            if (file.size or 0) > MOST_BYTES:
                sentence = f"Added evidence has at most {limit_text(MOST_BYTES)}."
                raise AdditionError(Finding("too-large", "", sentence))
            data: bytes = file.read()
            return data
        if not text:
            raise AdditionError(Finding("empty", "", _NEITHER))
        return text.encode("utf-8", "surrogatepass")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def evidence_form(request: SystemRequest, trial: UUID) -> HttpResponse:
    """Show what a trial lacks; POST adds it, with its source. The trial itself never changes."""
    access = request.access
    found = flaggable_trial(access.system.pk, trial)
    if found is None:
        raise Http404(_NO_TRIAL)
    form = EvidenceForm(*((request.POST, request.FILES) if request.method == "POST" else ()))
    findings: Sequence[Finding] = ()
    if form.is_valid():
        try:
            row = add_evidence_to(
                Trial.objects.get(pk=found.pk),
                addition_of(form.content(), reading_limits(Door.PAGE)),
                source=form.cleaned_data["source"],
                reason=form.cleaned_data["reason"],
                by=access.user,
                now=timezone.now(),
            )
        except AdditionDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except AdditionError as error:
            findings = error.findings
        else:
            words = f"{counted(len(row.parts), 'part')} of the evidence is added"
            messages.success(request, f"{words}. {_outcome(found)}")
            return redirect(_back(request, found))
    page = _page(request, found, form, findings)
    return render(
        request, "reviews/evidence_form.html", {"page": page}, status=422 if form.is_bound else 200
    )


def _outcome(found: FlaggableTrial) -> str:
    """What the trial comes to on the evidence that there is now."""
    row = Trial.objects.filter(pk=found.pk).values_list("disposition__value", flat=True).first()
    return _NOW.get(row or "", "The trial is not decided yet.")


def _back(request: SystemRequest, found: FlaggableTrial) -> str:
    """The case that the form was opened from, else the trial."""
    at = Addresses.of(request.access.system.slug)
    query: QueryDict = request.GET
    wanted = uuid_of(query.get("case", ""))
    cases = Case.objects.filter(trial=found.pk, uuid=wanted) if wanted else Case.objects.none()
    case = cases.values_list("uuid", flat=True).first()
    return at.case(case) if case else at.trial(found.trial.uuid)


def _page(
    request: SystemRequest, found: FlaggableTrial, form: EvidenceForm, findings: Sequence[Finding]
) -> EvidenceFormPage:
    access = request.access
    system, at = access.system, Addresses.of(access.system.slug)
    (rows,) = trial_evidence([found.pk], rules_of(system).rejection)
    recorded, evidence = rows.recorded, rows.evidence(rows.evidence_order)
    contract = contracts_in_effect([rows.task_pk]).get(rows.task_pk)
    declared = contract.contract.evidence if contract else ()
    calls = [
        (call.step, call.index)
        for step in evidence.steps
        for call in step.calls
        if call.result_step is None
    ]
    link = trial_link(found.trial, at)
    here = at.evidence_form(found.trial.uuid)
    query = request.META.get("QUERY_STRING", "")
    return EvidenceFormPage(
        shell=system_shell(access, section="Cases"),
        crumbs=(
            Crumb(system.name, at.tasks),
            Crumb(found.trial.task_id, at.task(found.trial.task_uuid)),
            Crumb(f"trial {link.label}", link.href),
            Crumb("Add evidence"),
        ),
        trial=link,
        disposition=disposition_badge(found.trial),
        parts=tuple(
            _part(part, recorded, evidence, n_open=len(calls), declared=declared) for part in _PARTS
        ),
        open_calls=tuple(
            pages.Link(f"step {step:,}, call {index + 1}", at.step(found.trial.uuid, step))
            for step, index in calls[:LISTED_CALLS]
            if step <= len(recorded.steps)
        ),
        n_more_calls=max(len(calls) - LISTED_CALLS, 0),
        example=_example(evidence, calls),
        additions=_additions(found.pk),
        form=form,
        action=f"{here}?{query}" if query else here,
        back=_back(request, found),
        findings=tuple(
            pages.Fact(clean_text(each.place), clean_text(each.sentence)) for each in findings
        ),
    )


def _part(
    part: AdditionPart,
    recorded: StoredEvidence,
    evidence: StoredEvidence,
    *,
    n_open: int,
    declared: Sequence[EvidencePart],
) -> MissingPart:
    words, declaration = _PARTS[part]
    state, detail = "missing", ""
    match part:
        case AdditionPart.RESULTS:
            n_calls = sum(len(step.calls) for step in evidence.steps)
            state = "missing" if n_open else "recorded"
            detail = f"{n_open:,} of {counted(n_calls, 'call')} without a result" if n_open else ""
            if not n_calls:
                state, detail = "recorded", "the agent made no call"
        case AdditionPart.FACTS:
            names = sorted(evidence.facts or {})
            detail = ", ".join(clean_text(name) for name in names[:LISTED_CALLS])
            state = "recorded" if names else "missing"
        case _:
            if getattr(evidence, part.value) is not None:
                is_added = getattr(recorded, part.value) is None
                state = "added" if is_added else "recorded"
    return MissingPart(part.value, words, state, detail, is_declared=declaration in declared)


def _example(evidence: StoredEvidence, calls: Sequence[tuple[int, int]]) -> str:
    """JSON of what is missing, to be filled in."""
    example: dict[str, object] = {}
    if evidence.initial_state is None:
        example["initial_state"] = {"orders": {}}
    if evidence.final_state is None:
        example["final_state"] = {"orders": {}}
    if not evidence.facts:
        example["facts"] = {"customer_id": "C-17"}
    if calls:
        step, index = calls[0]
        example["results"] = [{"step": step, "index": index, "content": "…"}]
    numbers = {"cost_usd": 0.041, "tokens": 1200, "seconds": 31.5}
    for name, value in numbers.items():
        stored: Decimal | int | None = getattr(evidence, name)
        if stored is None:
            example[name] = value
    return json.dumps(example, indent=2, ensure_ascii=False) if example else ""


def _additions(trial_pk: int) -> tuple[AdditionRow, ...]:
    rows = EvidenceAddition.objects.select_related("by").defer("content").filter(trial=trial_pk)
    return tuple(
        AdditionRow(
            order=row.order,
            parts=", ".join(part.replace("_", " ") for part in row.parts),
            source=row.source,
            reason=row.reason,
            by=row.by.printed_name,
            at=row.added_at,
            digest=row.digest.hex,
        )
        for row in rows.order_by("order")
    )
