"""Marking a check, fixture or rubric that is at fault, and withdrawing a mark."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.after_review import mark_and_decide, withdraw_and_decide
from evalsite.common.shell import Crumb
from evalsite.web.flag_rows import disposition_badge, trial_link
from reviews.core.disposition import Mark
from reviews.core.requirements import FIXTURE
from reviews.models import Case, CheckMark
from reviews.permissions.marks import mark_withdrawal_refusal, marking_refusal
from reviews.selectors.blinding import hidden_criteria
from reviews.selectors.flags import FlaggableTrial, flaggable_trial
from reviews.selectors.marks import HeldMark, Markable, held_marks, markable_of, written_by
from reviews.services.marks import (
    LONGEST_REASON,
    MarkDeniedError,
    MarkError,
    contract_word,
    name_of,
)
from traces.core.text_marks import clean_text
from traces.models import Role, Trial
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import uuid_of
from traces.web.pages.cases import CaseMark, MarkChoice, MarkFormPage
from traces.web.shell import system_shell

_NO_TRIAL = "There is no such trial in this system."
_NO_MARK = "There is no such mark in this system."
_FIXTURE_NOTE = (
    "How the trials of the task start. It opens all checks but prohibitions and budgets."
)
_KINDS = {
    "check": "check",
    "rubric": "rubric",
    "external": "decided outside",
    "imported": "from files",
}


class MarkForm(forms.Form):
    """What is at fault, how, and why."""

    criterion = forms.CharField(
        required=False, max_length=512, strip=False, widget=forms.HiddenInput
    )
    mark = forms.ChoiceField(
        choices=[
            (Mark.DEFECTIVE.value, "Defective: it decides wrongly"),
            (Mark.AMBIGUOUS.value, "Ambiguous: nobody can tell what it asks"),
        ],
        widget=forms.RadioSelect,
        error_messages={"required": "Say what is wrong with it."},
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What is wrong, and at which step of this trial it shows.",
    )
    seen = forms.CharField(required=False, max_length=60)


class WithdrawalForm(forms.Form):
    """Why a mark no longer holds."""

    reason = forms.CharField(max_length=LONGEST_REASON)


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.REVIEW)
def mark_form(request: SystemRequest, trial: UUID) -> HttpResponse:
    """Mark a criterion of a trial's task, or its fixture; the task's trials are decided anew."""
    access = request.access
    found = flaggable_trial(access.system.pk, trial)
    if found is None:
        raise Http404(_NO_TRIAL)
    is_sent = request.method == "POST"
    chosen = request.POST.get("criterion") if is_sent else request.GET.get("criterion")
    form = MarkForm(request.POST if is_sent else None)
    stored = Trial.objects.select_related("task__system").get(pk=found.pk)
    if is_sent and chosen is None:
        form.add_error(None, "Choose what is at fault.")
    if form.is_valid():
        try:
            mark = mark_and_decide(
                stored,
                criterion=form.cleaned_data["criterion"],
                mark=Mark(form.cleaned_data["mark"]),
                reason=form.cleaned_data["reason"],
                by=access.user,
                now=timezone.now(),
                seen=form.cleaned_data["seen"],
            )
        except MarkError as error:
            form.add_error(None, str(error))
        else:
            words = clean_text(name_of(mark.criterion)).capitalize()
            messages.success(
                request,
                f"{words} is marked as {mark.mark}. An engineer mends the contract; until then "
                "the task's trials wait for it.",
            )
            return redirect(_back(request, found))
    page = _page(request, found, stored, form, chosen)
    return render(
        request, "reviews/mark_form.html", {"page": page}, status=422 if form.is_bound else 200
    )


@require_POST
@in_system(Act.REVIEW)
def mark_withdraw(request: SystemRequest, mark: UUID) -> HttpResponse:
    """Say why a mark no longer holds; the task's trials are decided anew."""
    access = request.access
    row = (
        CheckMark.objects.select_related("task__system", "trial")
        .filter(system=access.system, uuid=mark)
        .first()
    )
    if row is None:
        raise Http404(_NO_MARK)
    at = Addresses.of(access.system.slug)
    form = WithdrawalForm(request.POST)
    back = address(at.mark_form(row.trial.uuid), _case_value(request)) if row.trial else at.cases
    try:
        if not form.is_valid():
            raise MarkError(str(form.errors["reason"][0]))
        withdraw_and_decide(
            row, reason=form.cleaned_data["reason"], by=access.user, now=timezone.now()
        )
    except MarkDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except MarkError as error:
        messages.error(request, f"The mark stays: {error}")
    else:
        messages.success(request, "The mark is withdrawn; the task's trials are decided anew.")
    return redirect(back)


def _case_value(request: SystemRequest) -> dict[str, str | None]:
    wanted = uuid_of(request.GET.get("case", ""))
    return {"case": str(wanted) if wanted else None}


def _back(request: SystemRequest, found: FlaggableTrial) -> str:
    """The case that the form was opened from, else the trial."""
    at = Addresses.of(request.access.system.slug)
    wanted = uuid_of(request.GET.get("case", ""))
    is_case = wanted is not None and Case.objects.filter(trial=found.pk, uuid=wanted).exists()
    return at.case(wanted) if is_case and wanted else at.trial(found.trial.uuid)


def _page(
    request: SystemRequest,
    found: FlaggableTrial,
    trial: Trial,
    form: MarkForm,
    chosen: str | None,
) -> MarkFormPage:
    access = request.access
    at = Addresses.of(access.system.slug)
    markable = markable_of(trial)
    wrote = written_by(trial.task_id, access.user)
    held = held_marks(trial.task_id)
    link = trial_link(found.trial, at)
    contract = markable.contract
    query = request.META.get("QUERY_STRING", "")
    here = at.mark_form(found.trial.uuid)
    n_trials = Trial.objects.filter(task=trial.task_id).count()
    return MarkFormPage(
        shell=system_shell(access, section="Cases"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb(found.trial.task_id, at.task(found.trial.task_uuid)),
            Crumb(f"trial {link.label}", link.href),
            Crumb("Mark what is at fault"),
        ),
        trial=link,
        task=pages.Link(found.trial.task_id, at.task(found.trial.task_uuid)),
        contract=pages.Link(f"version {contract.number}", at.contract_version(contract.identity))
        if contract
        else None,
        disposition=pages.Badge("hidden")
        if hidden_criteria(access.user.pk, access.role, [trial.pk])
        else disposition_badge(found.trial),
        choices=tuple(
            _choice(each, held, is_chosen=each.criterion == chosen, has_written=_wrote(each, wrote))
            for each in markable.entries
        ),
        marks=tuple(_held(mark, access, at, wrote, _case_value(request)) for mark in held),
        n_trials=n_trials,
        seen=contract_word(trial.task.contract_id),
        form=form,
        action=f"{here}?{query}" if query else here,
        back=_back(request, found),
    )


def _wrote(each: Markable, wrote: frozenset[tuple[str, UUID]]) -> bool:
    return each.digest is not None and (each.criterion, each.digest) in wrote


def _choice(
    each: Markable, held: tuple[HeldMark, ...], *, is_chosen: bool, has_written: bool
) -> MarkChoice:
    marks = [
        mark.mark.value
        for mark in held
        if (mark.criterion, mark.criterion_digest) == (each.criterion, each.digest)
    ]
    notes = [_FIXTURE_NOTE] if each.criterion == FIXTURE else [_KINDS.get(each.kind, each.kind)]
    notes += [] if each.is_mandatory else ["not mandatory"]
    notes += [f"marked {', '.join(marks)} already"] if marks else []
    return MarkChoice(
        value=each.criterion,
        label="The fixture" if each.criterion == FIXTURE else each.criterion,
        note="; ".join(notes),
        is_chosen=is_chosen and not has_written,
        why_not=marking_refusal(Role.REVIEWER, has_written=has_written),
    )


def _held(
    mark: HeldMark,
    access: Access,
    at: Addresses,
    wrote: frozenset[tuple[str, UUID]],
    case: dict[str, str | None],
) -> CaseMark:
    has_written = (
        mark.criterion_digest is not None and (mark.criterion, mark.criterion_digest) in wrote
    )
    return CaseMark(
        criterion=mark.criterion,
        word=mark.mark.value,
        reason=mark.reason,
        by=mark.by_name,
        at=mark.marked_at,
        withdraw_url=address(at.mark_withdraw(mark.uuid), case),
        why_not=mark_withdrawal_refusal(
            access.role, is_own=mark.by_pk == access.user.pk, has_written=has_written
        ),
    )
