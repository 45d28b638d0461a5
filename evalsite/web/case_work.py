"""What people do to a case."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.web.case_filters import CaseFilters
from evalsite.web.case_forms import AsideForm, CaseForms, CommentForm, DueForm, RerunForm
from evalsite.web.case_page import case_page
from evalsite.web.cases import NO_CASE
from reviews.models import Case
from reviews.selectors.cases import Place, case_of, case_workers
from reviews.services.cases import (
    MOST_ASSIGNED,
    NOT_OF_SYSTEM,
    Assigned,
    CaseDeniedError,
    CaseError,
    ask_rerun,
    assign_cases,
    comment_on_case,
    set_aside,
    set_due,
    take_up,
)
from traces.models import User
from traces.web.addresses import Addresses, address
from traces.web.asking import uuid_of

ME = "me"
CHOOSE_CASES = "Choose a case first: tick its box, or go to it with j and k."
NOT_A_WORKER = "Cases are assigned to engineers and reviewers of this system."


@require_POST
@in_system(Act.WORK)
def case_assign(request: SystemRequest, case: UUID) -> HttpResponse:
    """Give one case to a member, or to nobody."""
    found = _case(request, case)
    try:
        to = _person(request, request.POST.get("to", ""))
        outcome = assign_cases(
            [found],
            to=to,
            by=request.access.user,
            now=timezone.now(),
            seen={found.pk: _seen(request.POST.get("seen", ""))} if "seen" in request.POST else {},
        )
    except CaseError as error:
        return _answer(request, case, CaseForms(assign_errors=(str(error),)))
    if outcome.refusals:
        return _answer(request, case, CaseForms(assign_errors=outcome.refusals))
    return _back(request, case, f"The case is {_whose(request, to)} now.")


def _whose(request: SystemRequest, to: User | None) -> str:
    if to is None:
        return "nobody's"
    return "yours" if to.pk == request.access.user.pk else f"{to.printed_name}'s"


@require_POST
@in_system(Act.WORK)
def cases_assign(request: SystemRequest) -> HttpResponse:
    """Give the ticked cases of the queue to a member, as far as that member works them."""
    access = request.access
    pairs = [value.partition(":") for value in request.POST.getlist("case")[: MOST_ASSIGNED + 1]]
    seen = {uuid_of(case): uuid_of(holder) for case, _, holder in pairs}
    try:
        if not seen:
            raise CaseError(CHOOSE_CASES)
        to = _person(request, request.POST.get("to", "") or request.POST.get("person", ""))
        wanted = [identity for identity in seen if identity is not None]
        found = {
            case.uuid: case for case in Case.objects.filter(system=access.system, uuid__in=wanted)
        }
        if len(found) != len(seen):
            raise CaseError(NOT_OF_SYSTEM)
        holders = {
            person.uuid: person.pk
            for person in User.objects.filter(uuid__in=[h for h in seen.values() if h])
        }
        outcome = assign_cases(
            found.values(),
            to=to,
            by=access.user,
            now=timezone.now(),
            seen={
                case.pk: holders.get(holder) if (holder := seen[identity]) else None
                for identity, case in found.items()
            },
        )
    except CaseError as error:
        messages.error(request, str(error))
    else:
        _say(request, outcome, to)
    filters = CaseFilters.of(request, now=timezone.now())
    place = {n: request.GET[n] for n in ("after", "before") if Place.of(request.GET.get(n, ""))}
    first = next((f"#case-{identity}" for identity in seen if identity), "")
    here = address(Addresses.of(access.system.slug).cases, {**filters.values, **place}, place=first)
    return redirect(here)


def _say(request: SystemRequest, outcome: Assigned, to: User | None) -> None:
    if outcome.n_assigned:
        verb = "is" if outcome.n_assigned == 1 else "are"
        words = f"{counted(outcome.n_assigned, 'case')} {verb} {_whose(request, to)} now."
        messages.success(request, words)
    elif not outcome.refusals:
        messages.info(request, f"Nothing changed: the chosen are {_whose(request, to)} already.")
    for refusal in outcome.refusals:
        messages.warning(request, refusal)


@require_POST
@in_system(Act.WORK)
def case_due(request: SystemRequest, case: UUID) -> HttpResponse:
    """Say until when a case should be settled."""
    form = DueForm(request.POST, auto_id="id_due_%s")

    def act(found: Case) -> str:
        day = form.cleaned_data["due_on"]
        set_due(found, day, by=request.access.user, now=timezone.now())
        return "The due date is set." if day else "The case has no due date now."

    return _act(request, case, form, CaseForms(due=form), act, field="due_on")


@require_POST
@in_system(Act.FLAG)
def case_comment(request: SystemRequest, case: UUID) -> HttpResponse:
    """Say something about a case."""
    form = CommentForm(request.POST, auto_id="id_comment_%s")

    def act(found: Case) -> str:
        text = form.cleaned_data["comment"]
        comment_on_case(found, text, by=request.access.user, now=timezone.now())
        return "Your comment stands in the history."

    return _act(request, case, form, CaseForms(comment=form), act, field="comment")


@require_POST
@in_system(Act.WORK)
def case_set_aside(request: SystemRequest, case: UUID) -> HttpResponse:
    """Close a case by hand, with a reason."""
    form = AsideForm(request.POST, auto_id="id_aside_%s")

    def act(found: Case) -> str:
        reason = form.cleaned_data["reason"]
        set_aside(found, reason=reason, by=request.access.user, now=timezone.now())
        return "The case is set aside."

    return _act(request, case, form, CaseForms(aside=form), act, field="reason")


@require_POST
@in_system(Act.WORK)
def case_take_up(request: SystemRequest, case: UUID) -> HttpResponse:
    """Open a case again that was set aside."""
    found = _case(request, case)
    try:
        take_up(found, by=request.access.user, now=timezone.now())
    except CaseError as error:
        messages.error(request, str(error))
        return _to(request, case)
    return _back(request, case, "The case is open again.")


@require_POST
@in_system(Act.WORK)
def case_rerun(request: SystemRequest, case: UUID) -> HttpResponse:
    """Ask for a further attempt of the trial, with a reason."""
    form = RerunForm(request.POST, auto_id="id_rerun_%s")

    def act(found: Case) -> str:
        reason = form.cleaned_data["reason"]
        ask_rerun(found, reason=reason, by=request.access.user, now=timezone.now())
        return "The rerun is asked for. The case closes when a further attempt comes."

    return _act(request, case, form, CaseForms(rerun=form), act, field="reason")


def _act(
    request: SystemRequest,
    case: UUID,
    form: Form,
    forms: CaseForms,
    act: Callable[[Case], str],
    *,
    field: str,
) -> HttpResponse:
    """Do what a form asks for, or show it again with what is wrong."""
    found = _case(request, case)
    if form.is_valid():
        try:
            said = act(found)
        except CaseDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except CaseError as error:
            form.add_error(field, str(error))
        else:
            return _back(request, case, said)
    return _answer(request, case, forms)


def _case(request: SystemRequest, identity: UUID) -> Case:
    found = Case.objects.filter(system=request.access.system, uuid=identity).first()
    if found is None:
        raise Http404(NO_CASE)
    return found


def _person(request: SystemRequest, word: str) -> User | None:
    """The member that a form names: "" for nobody. Raises `CaseError` for anybody else."""
    if word in {"", "nobody"}:
        return None
    if word == ME:
        return request.access.user
    identity = uuid_of(word)
    worker = next((w for w in case_workers(request.access.system.pk) if w.uuid == identity), None)
    if worker is None:
        raise CaseError(NOT_A_WORKER)
    return User.objects.get(pk=worker.pk)


def _seen(word: str) -> int | None:
    identity = uuid_of(word)
    return (
        User.objects.filter(uuid=identity).values_list("pk", flat=True).first()
        if identity
        else None
    )


def _answer(request: SystemRequest, identity: UUID, forms: CaseForms) -> HttpResponse:
    found = case_of(request.access.system.pk, identity)
    if found is None:
        raise Http404(NO_CASE)
    page = case_page(request, found, CaseFilters.of(request, now=timezone.now()), forms)
    return render(request, "reviews/case_detail.html", {"page": page}, status=422)


def _to(request: SystemRequest, identity: UUID) -> HttpResponse:
    filters = CaseFilters.of(request, now=timezone.now())
    return redirect(f"{Addresses.of(request.access.system.slug).case(identity)}{filters.query()}")


def _back(request: SystemRequest, identity: UUID, said: str) -> HttpResponse:
    messages.success(request, said)
    return _to(request, identity)
