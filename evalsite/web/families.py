"""Families of tasks, their splits, and exposures."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Choice, Crumb, Pager
from evalsite.projections import refresh_figures
from traces.core.text_marks import clean_text, marked_text
from traces.models import Split, Task, Trial
from traces.permissions.families import NOT_AN_ENGINEER
from traces.selectors.families import (
    FEWEST_TRIALS,
    PAGE_FAMILIES,
    FamilyPage,
    FamilyRow,
    Happened,
    RegressionOffer,
    RegressionOffers,
    family_rows,
    family_totals,
    regression_offers,
    splits_of_family,
)
from traces.services.families import (
    LONGEST_REASON,
    SPLIT_WORDS,
    FamilyDeniedError,
    FamilyError,
    moved_words,
)
from traces.services.families import (
    change_split as move_family,
)
from traces.services.families import (
    note_exposure as keep_exposure,
)
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, text_in, uuid_of
from traces.web.pages.families import (
    FamilyForm,
    FamilyLine,
    FamilyListPage,
    OfferLine,
    SplitNote,
)
from traces.web.rows import trial_label
from traces.web.shell import system_shell

_NO_TASK = "There is no such task in this system."
SPLIT_CHOICES = tuple((split.value, SPLIT_WORDS[split.value]) for split in Split)


class SplitForm(forms.Form):
    """Into which split a family goes, and why."""

    split = forms.ChoiceField(
        choices=SPLIT_CHOICES,
        help_text="Tuning: used to improve the agent, in no headline figure. Held out: not looked "
        "at while the agent is changed. Regression: must keep passing.",
        error_messages={"invalid_choice": "A split is tuning, held out or regression."},
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Whoever reads figures of these tasks will see it.",
    )


class ExposureForm(forms.Form):
    """How a held-out failure was used."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What was changed in the agent because of this failure, and in which release.",
    )


@require_GET
@in_system()
def family_list(request: SystemRequest) -> HttpResponse:
    """The families of a system with their splits; with ?show=tasks its tasks without a family."""
    return _page(request, _asked_form(request))


def _page(request: SystemRequest, form: FamilyForm | None, *, status: int = 200) -> HttpResponse:
    access = request.access
    system = access.system
    at = Addresses.of(system.slug)
    lone = request.GET.get("show") == "tasks"
    found = _rows(request, system.pk, lone=lone)
    totals = family_totals(system.pk)
    offers = regression_offers(system.pk)
    may = access.may(Act.CONTRIBUTE)
    page = FamilyListPage(
        shell=system_shell(access, section="Families"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Families")),
        shown=(
            Choice("Families", at.families, is_current=not lone, count=totals.n_families),
            Choice(
                "Tasks without family",
                address(at.families, {"show": "tasks"}),
                is_current=lone,
                count=totals.n_lone,
            ),
        ),
        lone=lone,
        form=form,
        offers_words=_offers_words(offers),
        offers=tuple(_offer(each, offers, at, may=may) for each in offers.offers),
        offers_more=f"and {offers.n_more:,} more" if offers.n_more else "",
        rows=tuple(_line(row, at, may=may) for row in found.rows),
        pager=_pager(found, at, lone=lone),
        empty=None if found.rows else _nothing(at, lone=lone),
    )
    return render(request, "traces/family_list.html", {"page": page}, status=status)


def _rows(request: SystemRequest, system_pk: int, *, lone: bool) -> FamilyPage:
    if lone:
        after, before = number_in(request, "after"), number_in(request, "before")
        places = [None if place is None else str(place) for place in (after, before)]
    else:
        places = [text_in(request, name) or None for name in ("after", "before")]
    return family_rows(system_pk, lone=lone, after=places[0], before=places[1], n=PAGE_FAMILIES)


def _pager(found: FamilyPage, at: Addresses, *, lone: bool) -> Pager:
    show = "tasks" if lone else None
    before, after = found.previous_before, found.next_after
    return Pager(
        "" if before is None else address(at.families, {"show": show, "before": before}),
        "" if after is None else address(at.families, {"show": show, "after": after}),
    )


def split_badges(splits: tuple[str, ...]) -> tuple[pages.Badge, ...]:
    """Splits as badges, the missing one in words."""
    return tuple(pages.Badge(SPLIT_WORDS[split], "" if split else "waiting") for split in splits)


def _line(row: FamilyRow, at: Addresses, *, may: bool) -> FamilyLine:
    change_url, expose_url = "", ""
    if may:
        target: dict[str, Value] = (
            {"task": row.task_uuid} if row.task_uuid else {"family": row.name}
        )
        show: dict[str, Value] = {"show": "tasks"} if row.task_uuid else {}
        change_url = address(at.families, {**show, **target}, place="#form")
        if row.task_uuid and row.splits == (Split.HELD_OUT.value,):
            values: dict[str, Value] = {"show": "tasks", "expose": row.task_uuid}
            expose_url = address(at.families, values, place="#form")
    return FamilyLine(
        name=_name(row.name, row.task_uuid, at),
        splits=split_badges(row.splits),
        is_apart=len(row.splits) > 1,
        n_tasks=row.n_tasks,
        n_trials=row.n_trials,
        change=_note("moved", row.change, at),
        exposure=_note(counted(row.n_exposed, "exposure"), row.exposure, at),
        change_url=change_url,
        expose_url=expose_url,
    )


def _name(name: str, task: UUID | None, at: Addresses) -> pages.Link:
    return pages.Link(name, at.task(task) if task else address(at.tasks, {"family": name}))


def _note(words: str, happened: Happened | None, at: Addresses) -> SplitNote | None:
    if happened is None:
        return None
    trial = happened.trial_uuid
    return SplitNote(
        words=words,
        reason=happened.reason,
        by=happened.by_name or "the operator",
        at=happened.at,
        trial=pages.Link(f"trial {happened.label}", at.trial(trial)) if trial else None,
    )


def _offers_words(offers: RegressionOffers) -> str:
    if not offers.offers:
        return ""
    newest, other = (name for _, name in offers.releases)
    return (
        f"Passed in every trial of releases {newest} and {other}, with at least {FEWEST_TRIALS} "
        "trials a task and release and none missing."
    )


def _offer(
    offer: RegressionOffer, offers: RegressionOffers, at: Addresses, *, may: bool
) -> OfferLine:
    task = offer.task_uuid
    target: dict[str, Value] = {"task": task} if task else {"family": offer.name}
    here = at.task(task) if task else at.tasks
    family: dict[str, Value] = {} if task else {"family": offer.name}
    return OfferLine(
        name=_name(offer.name, task, at),
        splits=split_badges(offer.splits),
        words=f"{'' if task else counted(offer.n_tasks, 'task') + ', '}"
        f"{counted(offer.n_trials, 'passing trial')}",
        evidence=tuple(
            pages.Link(name, address(here, {**family, "release": release}))
            for release, name in offers.releases
        ),
        change_url=address(at.families, {**target, "split": "regression"}, place="#form")
        if may
        else "",
    )


def _nothing(at: Addresses, *, lone: bool) -> pages.Empty:
    if lone:
        return pages.Empty(
            heading="Every task has a family",
            sentence="A task without a family moves between splits alone.",
        )
    return pages.Empty(
        heading="No task has a family yet",
        sentence="Tasks that resemble each other belong to one family and stay in one split. The "
        "family of a task stands in its definition or its contract.",
        act=pages.Link("Tasks without family", address(at.families, {"show": "tasks"})),
    )


def _asked_form(request: SystemRequest) -> FamilyForm | None:
    """The form that the address asks for; None for none."""
    if exposed := _task(request, request.GET.get("expose", "")):
        trial = _trial(exposed, request.GET.get("trial", ""))
        return _exposure_form(request, exposed, trial, ExposureForm())
    split = request.GET.get("split", "")
    if task := _task(request, request.GET.get("task", "")):
        return _split_form(request, SplitForm(initial={"split": split or task.split}), task=task)
    if family := text_in(request, "family", most=200):
        splits = splits_of_family(request.access.system.pk, family)
        form = SplitForm(initial={"split": split or (splits[0] if len(splits) == 1 else "")})
        return _split_form(request, form, family=family)
    return None


def _task(request: SystemRequest, text: str) -> Task | None:
    identity = uuid_of(text)
    if identity is None:
        return None
    return Task.objects.filter(system=request.access.system, uuid=identity).first()


def _trial(task: Task, text: str) -> Trial | None:
    identity = uuid_of(text)
    return Trial.objects.filter(task=task, uuid=identity).first() if identity else None


def _split_form(
    request: SystemRequest, form: SplitForm, *, family: str = "", task: Task | None = None
) -> FamilyForm:
    at = Addresses.of(request.access.system.slug)
    name = f"task {task.task_id}" if task else f"family {family}"
    together = "" if task else " All tasks of a family move together."
    return FamilyForm(
        heading=f"Put {name} into another split",
        sentence=f"The change stays in the record with its reason.{together}",
        form=form,
        action=at.change_split,
        hidden=(pages.Hidden("task", str(task.uuid)) if task else pages.Hidden("family", family),),
        act="Change the split",
        cancel_url=address(at.families, {"show": "tasks" if task else None}),
        why_not="" if request.access.may(Act.CONTRIBUTE) else NOT_AN_ENGINEER,
    )


def _exposure_form(
    request: SystemRequest, task: Task, trial: Trial | None, form: ExposureForm
) -> FamilyForm:
    at = Addresses.of(request.access.system.slug)
    shown = f", trial {trial_label(trial.label, trial.attempt)}" if trial else ""
    return FamilyForm(
        heading=f"A held-out failure was used: task {task.task_id}{shown}",
        sentence="Once a failure of a held-out task was used to change the agent, the task is no "
        "longer unseen. The note stays with the task and its family.",
        form=form,
        action=at.note_exposure(task.uuid),
        hidden=(pages.Hidden("trial", str(trial.uuid)),) if trial else (),
        act="Note the exposure",
        cancel_url=at.trial(trial.uuid) if trial else at.families,
        why_not="" if request.access.may(Act.CONTRIBUTE) else NOT_AN_ENGINEER,
    )


@require_POST
@in_system(Act.CONTRIBUTE)
def change_split(request: SystemRequest) -> HttpResponse:
    """Put a family, or a task without one, into another split."""
    access = request.access
    at = Addresses.of(access.system.slug)
    task = _task(request, request.POST.get("task", ""))
    if task is None and request.POST.get("task"):
        raise Http404(_NO_TASK)
    family = "" if task else clean_text(request.POST.get("family", ""))[:200].strip()
    form = SplitForm(request.POST)
    if form.is_valid():
        split = form.cleaned_data["split"]
        try:
            with transaction.atomic():
                moved = move_family(
                    access.system,
                    family=family,
                    task=task,
                    split=split,
                    reason=form.cleaned_data["reason"],
                    by=access.user,
                    now=timezone.now(),
                )
                refresh_figures(access.system, moved)
        except FamilyDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except FamilyError as error:
            form.add_error(None, str(error))
        else:
            name = f"task {task.task_id}" if task else f"family {family}"
            messages.success(request, moved_words(marked_text(name), split, len(moved)))
            return redirect(address(at.families, {"show": "tasks" if task else None}))
    return _page(request, _split_form(request, form, family=family, task=task), status=422)


@require_POST
@in_system(Act.CONTRIBUTE)
def note_exposure(request: SystemRequest, task: UUID) -> HttpResponse:
    """Note that a held-out failure was used to change the agent."""
    access = request.access
    at = Addresses.of(access.system.slug)
    found = Task.objects.filter(system=access.system, uuid=task).first()
    if found is None:
        raise Http404(_NO_TASK)
    asked = request.POST.get("trial", "")
    trial = _trial(found, asked)
    if asked and trial is None:
        raise Http404("There is no such trial of this task.")
    form = ExposureForm(request.POST)
    if form.is_valid():
        try:
            keep_exposure(
                found,
                trial=trial,
                reason=form.cleaned_data["reason"],
                by=access.user,
                now=timezone.now(),
            )
        except FamilyDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except FamilyError as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request, f"The exposure of task {marked_text(found.task_id)} is noted."
            )
            return redirect(at.trial(trial.uuid) if trial else at.families)
    return _page(request, _exposure_form(request, found, trial, form), status=422)
