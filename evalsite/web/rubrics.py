"""Rubrics: the texts of what criteria ask, by version, and requests for clearer ones."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Crumb
from reviews.models import Rubric, RubricRequest
from reviews.permissions.rubrics import NOT_A_WRITER
from reviews.selectors.rubrics import (
    AskedText,
    ListedRubric,
    RubricText,
    RubricUse,
    asked_texts,
    listed_rubrics,
    rubric_texts,
    rubric_uses,
)
from reviews.services.rubrics import (
    LONGEST_NAME,
    LONGEST_REASON,
    LONGEST_TEXT,
    RubricDeniedError,
    RubricError,
    close_request,
    write_version,
)
from traces.core.text_marks import clean_text, marked_text
from traces.models import System
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import text_in
from traces.web.pages.rubrics import (
    RequestLine,
    RubricForm,
    RubricLine,
    RubricListPage,
    RubricPage,
    RubricTextLine,
    RubricUseLine,
)
from traces.web.shell import system_shell

_NO_RUBRIC = "There is no such rubric in this system."
_NO_REQUEST = "There is no such request in this system."
_SENTENCE = (
    "A version is never changed. It decides nothing by itself: a contract that names the rubric in "
    "this version brings it into effect, when another person approves that contract."
)


class TextForm(forms.Form):
    """One text of a rubric."""

    name = forms.CharField(
        max_length=LONGEST_NAME,
        help_text="As contracts name it, such as truthful.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    version = forms.CharField(
        max_length=LONGEST_NAME,
        help_text="As contracts name it, such as 2.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    text = forms.CharField(
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="When it passes, when it fails, and when the evidence does not tell.",
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What is clearer than before, or why it is written.",
    )


class VersionForm(TextForm):
    """A further text of a rubric that has its name already."""

    name = None  # type: ignore[assignment]


class ClosingForm(forms.Form):
    """Why a request needs no new text."""

    reason = forms.CharField(max_length=LONGEST_REASON)


@require_GET
@in_system()
def rubric_list(request: SystemRequest) -> HttpResponse:
    """The rubrics of a system, those too that only contracts name."""
    name = text_in(request, "name", most=LONGEST_NAME)
    return _list(request, TextForm(initial={"name": name}))


def _list(request: SystemRequest, form: TextForm, *, status: int = 200) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    rows = listed_rubrics(access.system.pk)
    page = RubricListPage(
        shell=system_shell(access, section="Rubrics"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Rubrics")),
        rows=tuple(_line(row, at) for row in rows),
        requests=_requests(request, asked_texts(access.system.pk)),
        new=_form(request, form, at.new_rubric, "Write a rubric", ()),
        empty=None if rows else _nothing(),
    )
    return render(request, "reviews/rubric_list.html", {"page": page}, status=status)


def _nothing() -> pages.Empty:
    return pages.Empty(
        heading="No rubric yet",
        sentence="A rubric is a question that people and judges answer, such as whether a reply "
        "states only what the records show. Contracts name rubrics; their texts stand here.",
    )


def _line(row: ListedRubric, at: Addresses) -> RubricLine:
    href = at.rubric(row.pk) if row.pk else address(at.rubrics, {"name": row.name}, place="#write")
    texts = (
        f"{counted(row.n_versions, 'text')}, newest {row.newest}" if row.n_versions else "no text"
    )
    badges = []
    if row.n_requests:
        badges.append(pages.Badge(counted(row.n_requests, "request"), "waiting"))
    if row.pk is None:
        badges.append(pages.Badge("not written down", "unresolved"))
    return RubricLine(
        name=pages.Link(row.name, href),
        texts=texts,
        used=", ".join(_use_words(use) for use in row.uses) or "no contract in effect",
        badges=tuple(badges),
    )


def _use_words(use: RubricUse) -> str:
    named = f"version {use.version}" if use.version else "without a version"
    return f"{named} in {counted(use.n_tasks, 'task')}"


@require_GET
@in_system()
def rubric_page(request: SystemRequest, rubric: int) -> HttpResponse:
    """One rubric: who asks for it, its texts, and requests for clearer ones."""
    return _page(request, _stored(request.access.system, rubric), VersionForm())


def _stored(system: System, pk: int) -> Rubric:
    found = Rubric.objects.filter(system=system, pk=pk).first()
    if found is None:
        raise Http404(_NO_RUBRIC)
    return found


def _page(
    request: SystemRequest, rubric: Rubric, form: VersionForm, *, status: int = 200
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    uses = rubric_uses(access.system.pk).get(rubric.name, ())
    texts = rubric_texts(rubric.pk)
    waiting = _requests(request, asked_texts(access.system.pk, [rubric.name]))
    done = _requests(request, asked_texts(access.system.pk, [rubric.name], is_open=False))
    page = RubricPage(
        shell=system_shell(access, section="Rubrics"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Rubrics", at.rubrics),
            Crumb(rubric.name),
        ),
        name=rubric.name,
        uses=tuple(_use(use, texts, at) for use in uses),
        texts=tuple(_text(text, uses) for text in texts),
        requests=(*waiting, *done),
        new=_form(request, form, at.rubric_version(rubric.pk), "Write another version", waiting),
        judges=pages.Link("Judges of this rubric", address(at.judges, {"criterion": rubric.name})),
    )
    return render(request, "reviews/rubric_detail.html", {"page": page}, status=status)


def _use(use: RubricUse, texts: tuple[RubricText, ...], at: Addresses) -> RubricUseLine:
    has_text = any(text.version == use.version for text in texts)
    more = use.n_tasks - len(use.tasks)
    return RubricUseLine(
        version=use.version,
        question=use.question,
        n_tasks=use.n_tasks,
        tasks=tuple(pages.Link(name, at.contract_of(task)) for name, task in use.tasks),
        more=f"and {more:,} more" if more else "",
        note="" if has_text else "The text of this version is not written down here.",
    )


def _text(text: RubricText, uses: tuple[RubricUse, ...]) -> RubricTextLine:
    n = sum(use.n_tasks for use in uses if use.version == text.version)
    return RubricTextLine(
        version=text.version,
        text=text.text,
        reason=text.reason,
        by=text.by_name,
        at=text.created_at,
        used=f"asked for by {counted(n, 'task')}" if n else "no contract in effect asks for it",
    )


def _requests(request: SystemRequest, found: tuple[AskedText, ...]) -> tuple[RequestLine, ...]:
    at = Addresses.of(request.access.system.slug)
    may = request.access.may(Act.WRITE_RUBRIC)
    return tuple(
        RequestLine(
            id=one.pk,
            criterion=pages.Link(one.criterion, address(at.rubrics, {"name": one.criterion})),
            version=one.rubric_version,
            reason=one.reason,
            by=one.by_name,
            at=one.opened_at,
            trial=pages.Link(f"{one.task_id}, trial {one.trial_label}", at.trial(one.trial_uuid)),
            outcome=_outcome(one),
            close_url=at.rubric_request(one.pk) if may and one.closed_at is None else "",
        )
        for one in found
    )


def _outcome(one: AskedText) -> str:
    if one.closed_at is None:
        return ""
    if one.answer:
        return f"answered by version {one.answer}, {one.closed_by}"
    return f"closed by {one.closed_by}: {one.closing_reason}"


def _form(
    request: SystemRequest,
    form: TextForm,
    action: str,
    heading: str,
    waiting: tuple[RequestLine, ...],
) -> RubricForm:
    chosen = _answers(request) if form.is_bound else [one.id for one in waiting]
    return RubricForm(
        form=form,
        action=action,
        heading=heading,
        sentence=_SENTENCE,
        answers=waiting,
        chosen=frozenset(chosen),
        why_not="" if request.access.may(Act.WRITE_RUBRIC) else NOT_A_WRITER,
    )


@require_POST
@in_system(Act.WRITE_RUBRIC)
def rubric_new(request: SystemRequest) -> HttpResponse:
    """Write the first text of a rubric, or a further one by its name."""
    form = TextForm(request.POST)
    if form.is_valid() and (stored := _write(request, form, form.cleaned_data["name"])):
        return stored
    return _list(request, form, status=422)


@require_POST
@in_system(Act.WRITE_RUBRIC)
def rubric_version(request: SystemRequest, rubric: int) -> HttpResponse:
    """Write a further text of a rubric."""
    found = _stored(request.access.system, rubric)
    form = VersionForm(request.POST)
    if form.is_valid() and (stored := _write(request, form, found.name)):
        return stored
    return _page(request, found, form, status=422)


def _write(request: SystemRequest, form: TextForm, name: str) -> HttpResponse | None:
    access = request.access
    try:
        row = write_version(
            access.system,
            name=name,
            version=form.cleaned_data["version"],
            text=form.cleaned_data["text"],
            reason=form.cleaned_data["reason"],
            by=access.user,
            now=timezone.now(),
            answers=_answers(request),
        )
    except RubricDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except RubricError as error:
        form.add_error(None, str(error))
        return None
    named = marked_text(clean_text(row.rubric.name))
    messages.success(
        request,
        f"Version {marked_text(row.version)} of {named} is written down. "
        "Name it in a contract to bring it into effect.",
    )
    return redirect(Addresses.of(access.system.slug).rubric(row.rubric_id))


def _answers(request: SystemRequest) -> list[int]:
    """Ids of the requests that a text should answer."""
    sent = request.POST.getlist("answers")
    return [int(text) for text in sent if text.isascii() and text.isdigit() and len(text) < 19]


@require_POST
@in_system(Act.WRITE_RUBRIC)
def rubric_request_close(request: SystemRequest, asked: int) -> HttpResponse:
    """Close a request for a clearer text without one, and say why."""
    access = request.access
    at = Addresses.of(access.system.slug)
    row = RubricRequest.objects.filter(system=access.system, pk=asked).first()
    if row is None:
        raise Http404(_NO_REQUEST)
    form = ClosingForm(request.POST)
    try:
        if not form.is_valid():
            raise RubricError(str(form.errors["reason"][0]))
        close_request(row, reason=form.cleaned_data["reason"], by=access.user, now=timezone.now())
    except RubricDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except RubricError as error:
        messages.error(request, f"The request stays: {error}")
    else:
        messages.success(request, "The request is closed.")
    rubric = Rubric.objects.filter(system=access.system, name=row.criterion).first()
    return redirect(at.rubric(rubric.pk) if rubric else at.rubrics)
