"""What owners do about a gate."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.hints import hint_gates
from evalsite.web.gate_found import gate_found, gate_head, gate_of, signing_of
from reviews.services.gate_acts import (
    LONGEST_REASON,
    GateActDeniedError,
    GateActError,
    confirm_exclusion,
    leave_out_run,
    reevaluate,
    take_run_in,
)
from traces.core.text_marks import marked_text
from traces.models import Run
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.pages.gates import LeaveOutPage
from traces.web.shell import system_shell

NO_RUN = "There is no such run in this system."


class LeaveOutForm(forms.Form):
    """Why a run does not count."""

    reason = forms.CharField(
        label="Why it does not count",
        widget=forms.Textarea(attrs={"rows": 3, "maxlength": LONGEST_REASON}),
        help_text="It stands on the gate, in print and in the evidence that is signed.",
        error_messages={"required": "Say why: the reason is what the next person reads."},
    )


@require_POST
@in_system(Act.OWN)
def gate_reevaluate(request: SystemRequest, release: UUID) -> HttpResponse:
    """Let what is in force now count for a release."""
    found = gate_found(request, release)
    return _act(
        request,
        release,
        lambda reason: reevaluate(
            found.release, reason=reason, by=request.access.user, now=timezone.now()
        ),
        "Re-evaluated: the gate applies the thresholds, tiers and contracts of now.",
        place="#other-result",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def run_leave_out(request: SystemRequest, run: UUID) -> HttpResponse:
    """Leave a run out of its release's gate, with a reason."""
    row = _run(request, run)
    at = Addresses.of(request.access.system.slug)
    form = LeaveOutForm(request.POST if request.method == "POST" else None)
    status = 200
    if form.is_bound:
        status = 422
        if form.is_valid():
            try:
                leave_out_run(
                    row,
                    reason=form.cleaned_data["reason"],
                    by=request.access.user,
                    now=timezone.now(),
                )
            except GateActDeniedError as error:
                raise PermissionDenied(str(error)) from error
            except GateActError as error:
                form.add_error(None, str(error))
            else:
                messages.success(
                    request,
                    f"Run {marked_text(row.name)} is left out. A second owner has to confirm it.",
                )
                return redirect(f"{at.gate(row.release.uuid)}#runs")
    found = gate_of(row.release)
    signing = signing_of(request, found, now=timezone.now())
    page = LeaveOutPage(
        shell=system_shell(request.access, section="Releases"),
        head=gate_head(request, found, signing, tab="Leave out a run"),
        run=row.name,
        run_url=at.run(row.uuid),
        facts=(
            pages.Fact("Run", row.name),
            pages.Fact("Began", time_text(row.begun_at)),
            pages.Fact(
                "Declared",
                f"{counted(row.declared_trials, 'trial')} a task" if row.declared_trials else "no",
            ),
        ),
        form=form,
        action=at.leave_out(row.uuid),
        cancel_url=f"{at.gate(row.release.uuid)}#runs",
    )
    return render(request, "reviews/gate_leave_out.html", {"page": page}, status=status)


@require_POST
@in_system(Act.OWN)
def run_confirm(request: SystemRequest, run: UUID) -> HttpResponse:
    """Confirm as a second owner that a run was left out for good reason."""
    row = _run(request, run)
    return _act(
        request,
        row.release.uuid,
        lambda reason: confirm_exclusion(
            row, reason=reason, by=request.access.user, now=timezone.now()
        ),
        f"You confirmed that run {marked_text(row.name)} is left out.",
        place="#runs",
    )


@require_POST
@in_system(Act.OWN)
def run_take_in(request: SystemRequest, run: UUID) -> HttpResponse:
    """Count a run again."""
    row = _run(request, run)
    return _act(
        request,
        row.release.uuid,
        lambda reason: take_run_in(row, reason=reason, by=request.access.user, now=timezone.now()),
        f"Run {marked_text(row.name)} counts again.",
        place="#runs",
    )


def _run(request: SystemRequest, run: UUID) -> Run:
    row = (
        Run.objects.select_related("release__gate", "release__system")
        .filter(release__system=request.access.system, uuid=run)
        .first()
    )
    if row is None:
        raise Http404(NO_RUN)
    return row


def _act(
    request: SystemRequest,
    release: UUID,
    act: Callable[[str], object],
    done: str,
    *,
    place: str,
) -> HttpResponse:
    """Do it, or say on the gate page why not; an act without a reason is answered with 422."""
    try:
        act(request.POST.get("reason", ""))
    except GateActDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except GateActError as error:
        from evalsite.web.gates import refused_gate_page

        return refused_gate_page(request, release, str(error))
    found = gate_found(request, release)
    if not found.is_current:
        hint_gates([found.release.pk])
    messages.success(request, done)
    return redirect(f"{Addresses.of(request.access.system.slug).gate(release)}{place}")
