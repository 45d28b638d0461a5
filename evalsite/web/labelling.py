"""Blind labelling: the item that is reserved for a person, and what they do with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.after_label import label_and_decide, seat_of
from evalsite.common.shell import Crumb, Shell
from evalsite.held_decisions import finish_due
from evalsite.web.label_evidence import (
    asked_lines,
    blind_state,
    blind_transcript,
    n_additions,
    question_block,
    steps_pager,
)
from evalsite.web.verdict_form import StepsField
from reviews.core.seating import Bar, clock_text
from reviews.models import (
    CalibrationItem,
    CalibrationSet,
    DraftPurpose,
    Label,
    ReviewDraft,
    Seat,
)
from reviews.selectors.blinding import is_hidden
from reviews.selectors.label_queue import item_of, label_progress, queue_of
from reviews.selectors.review_drafts import draft_on, held_drafts, refused_drafts
from reviews.selectors.rubrics import rubric_text_of
from reviews.services.labels import submit_label
from reviews.services.person_verdicts import LONGEST_REASON, basis_words
from reviews.services.review_drafts import (
    HOLD,
    DraftHeldError,
    DraftPlace,
    drop_draft,
    save_draft,
    undo_hold,
)
from reviews.services.seats import (
    LabelDeniedError,
    LabelError,
    NoSeat,
    NoSeatKind,
    extend_seat,
    reveal,
    skip_item,
)
from traces.core.records import VerdictValue
from traces.core.text_marks import clean_text, marked_text
from traces.models import Trial
from traces.selectors.contracts import contracts_in_effect
from traces.tasks import hint_held
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, uuid_of
from traces.web.pages.deciding import DecisionBar, DecisionChoice, HeldDecision
from traces.web.pages.labelling import LabelItem, LabelPage, RefusedLabel, Reserved
from traces.web.pages.tasks import Hidden
from traces.web.rows import trial_label
from traces.web.shell import system_shell

NO_SET = "There is no such set in this system."
NO_ITEM = "There is no such item in this set."
KEPT = "Your label is kept."
DRAFT_KEPT = "Draft kept"
FINAL = "That label is final by now."
HIDDEN_IS_SEEN = "You see now what others say of {}. The item is left to others."
_CHOICES = (
    (VerdictValue.PASS, "Pass", "1"),
    (VerdictValue.FAIL, "Fail", "2"),
    (VerdictValue.UNKNOWN, "Cannot tell", "3"),
)
_WORDS = {value.value: label.lower() for value, label, _ in _CHOICES}
_HEADINGS = {
    NoSeatKind.DONE: "Nothing is left to label",
    NoSeatKind.RESERVED: "All that is left is reserved",
    NoSeatKind.NOT_FOR_YOU: "Nothing is left for you",
    NoSeatKind.DENIED: "You do not label this set",
}


class LabelForm(forms.Form):
    """A blind label."""

    decision = forms.ChoiceField(
        choices=[(value.value, label) for value, label, _ in _CHOICES],
        error_messages={
            "required": "Say pass, fail or cannot tell.",
            "invalid_choice": "Say pass, fail or cannot tell.",
        },
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        error_messages={"required": "Say why: the reason is what the next person reads."},
    )
    steps = StepsField(required=False, max_length=400)
    seen = forms.CharField(required=False, max_length=60)
    hold = forms.CharField(required=False, max_length=1)


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.REVIEW)
def label_page(request: SystemRequest, number: int) -> HttpResponse:
    """The item of a set that is reserved for the person; takes their label."""
    of = _set(request, number)
    if request.method != "POST":
        return _shown(request, of)
    item = _item(request, of)
    form = LabelForm(request.POST)
    if not form.is_valid():
        return _shown(request, of, item, errors=_errors(form), status=422)
    values = form.cleaned_data
    given = {
        "value": VerdictValue(values["decision"]),
        "reason": values["reason"],
        "steps": values["steps"],
        "by": request.access.user,
        "now": timezone.now(),
        "seen": values["seen"],
    }
    try:
        if values["hold"] == "1":
            held = submit_label(item, **given)
            if isinstance(held, ReviewDraft):
                hint_held(held.pk, seconds=HOLD.total_seconds())
        else:
            label_and_decide(item, **given)
            messages.success(request, KEPT)
    except LabelDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except LabelError as error:
        _keep_refused(request, of, item, str(error))
        return _shown(request, of, item, errors=(str(error),), status=409)
    return redirect(_here(request, of))


@require_POST
@in_system(Act.REVIEW)
def label_draft(request: SystemRequest, number: int) -> HttpResponse:
    """Keep what the person has written so far; with `drop`, forget it."""
    of = _set(request, number)
    item = _item(request, of)
    place, now = _place(request, of, item), timezone.now()
    if request.POST.get("drop"):
        drop_draft(place)
        return redirect(_here(request, of))
    try:
        _save(request, place, now)
        words, status = f"{DRAFT_KEPT}, {clock_text(now)}", 200
    except DraftHeldError as error:
        words, status = str(error), 409
    if "application/json" in request.headers.get("Accept", ""):
        return JsonResponse({"words": words}, status=status)
    messages.info(request, words)
    return redirect(_here(request, of, item))


@require_POST
@in_system(Act.REVIEW)
def label_undo(request: SystemRequest, number: int) -> HttpResponse:
    """Take a submitted label back while it is not final."""
    of = _set(request, number)
    item = _item(request, of)
    if undo_hold(_place(request, of, item), now=timezone.now()) is None:
        messages.warning(request, FINAL)
        return redirect(_here(request, of))
    return redirect(_here(request, of, item))


@require_POST
@in_system(Act.REVIEW)
def label_skip(request: SystemRequest, number: int) -> HttpResponse:
    """Leave the item to others, with a reason."""
    of = _set(request, number)
    item = _item(request, of)
    try:
        reason = request.POST.get("reason", "")
        skip_item(item, reason=reason, by=request.access.user, now=timezone.now())
    except LabelDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except LabelError as error:
        return _shown(request, of, item, errors=(str(error),), status=422)
    messages.info(request, "The item is left to others.")
    return redirect(_here(request, of))


@require_POST
@in_system(Act.REVIEW)
def label_extend(request: SystemRequest, number: int) -> HttpResponse:
    """Reserve the item for longer."""
    of = _set(request, number)
    item = _item(request, of)
    try:
        seat = extend_seat(item, by=request.access.user, now=timezone.now())
    except LabelError as error:
        return _shown(request, of, item, errors=(str(error),), status=409)
    messages.info(request, f"The item is reserved for you until {clock_text(seat.expires_at)}.")
    return redirect(_here(request, of, item))


@require_POST
@in_system(Act.REVIEW)
def label_reveal(request: SystemRequest) -> HttpResponse:
    """Show what others say of a criterion of a trial, and leave its item to others."""
    system = request.access.system
    wanted = uuid_of(request.POST.get("trial", ""))
    trial = Trial.objects.filter(system=system, uuid=wanted).first() if wanted else None
    criterion = request.POST.get("criterion", "")
    item = (
        CalibrationItem.objects.filter(trial=trial, set__criterion__name=criterion)
        .select_related("set")
        .first()
        if trial and "\x00" not in criterion
        else None
    )
    if trial is None or item is None:
        raise Http404(NO_ITEM)
    try:
        reveal(
            trial,
            item.set.criterion_id,
            where=request.POST.get("where", "")[:32] or "trial",
            by=request.access.user,
            now=timezone.now(),
        )
        messages.info(request, HIDDEN_IS_SEEN.format(marked_text(clean_text(criterion))))
    except LabelError as error:
        messages.warning(request, str(error))
    return redirect(_back(request, trial))


def _back(request: SystemRequest, trial: Trial) -> str:
    """The page of the system that the person comes from, else the trial."""
    at = Addresses.of(request.access.system.slug)
    back = request.POST.get("back", "")
    is_own = back.startswith(at.root) and url_has_allowed_host_and_scheme(back, allowed_hosts=None)
    return back if is_own else at.trial(trial.uuid)


def _set(request: SystemRequest, number: int) -> CalibrationSet:
    found = (
        CalibrationSet.objects.select_related("system", "criterion")
        .filter(system=request.access.system, number=number)
        .first()
    )
    if found is None:
        raise Http404(NO_SET)
    return found


def _item(request: SystemRequest, of: CalibrationSet) -> CalibrationItem:
    """The item that a form, or the address of a form, names."""
    wanted = uuid_of(request.POST.get("item", "") or request.GET.get("item", ""))
    found = item_of(of, wanted) if wanted else None
    if found is None:
        raise Http404(NO_ITEM)
    return found


def _here(request: SystemRequest, of: CalibrationSet, item: CalibrationItem | None = None) -> str:
    here = Addresses.of(request.access.system.slug).labelling(of.number)
    return address(here, {"item": item.uuid}) if item else here


def _errors(form: LabelForm) -> tuple[str, ...]:
    return tuple(str(error) for errors in form.errors.values() for error in errors)


def _place(request: SystemRequest, of: CalibrationSet, item: CalibrationItem) -> DraftPlace:
    return DraftPlace(
        DraftPurpose.LABEL, request.access.user, of.system, item.trial, of.criterion, item
    )


def _save(request: SystemRequest, place: DraftPlace, now: datetime) -> None:
    """Keep the form as it is, whether or not it could be submitted."""
    decision = request.POST.get("decision", "")
    words = request.POST.get("steps", "")[:400].replace(",", " ").split()
    save_draft(
        place,
        decision=decision if decision in _WORDS else "",
        reason=request.POST.get("reason", ""),
        steps=[int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 10],
        seen=clean_text(request.POST.get("seen", "")),
        now=now,
    )


def _keep_refused(
    request: SystemRequest, of: CalibrationSet, item: CalibrationItem, sentence: str
) -> None:
    """What the person wrote stays, with why it is no label."""
    place = _place(request, of, item)
    try:
        _save(request, place, timezone.now())
    except DraftHeldError:
        return
    ReviewDraft.objects.filter(
        by=place.by, purpose=place.purpose.value, trial=item.trial, criterion=of.criterion
    ).update(refusal=sentence)


def _shown(
    request: SystemRequest,
    of: CalibrationSet,
    item: CalibrationItem | None = None,
    *,
    errors: Sequence[str] = (),
    status: int = 200,
) -> HttpResponse:
    page = _page(request, of, item, tuple(errors))
    return render(request, "reviews/label_page.html", {"page": page}, status=status)


def _page(
    request: SystemRequest,
    of: CalibrationSet,
    asked: CalibrationItem | None,
    errors: tuple[str, ...],
) -> LabelPage:
    access, now = request.access, timezone.now()
    at = Addresses.of(access.system.slug)
    finish_due(now, access.user)
    wanted = asked.uuid if asked else uuid_of(request.GET.get("item", ""))
    found = _own_seat(of, wanted, request, now) or seat_of(of, by=access.user, now=now)
    progress = label_progress(of, by=access.user)
    queue = queue_of(of, by=access.user, now=now)
    n_open = sum(each.bar in (None, Bar.SUBMITTED) for each in queue)
    seat = None if isinstance(found, NoSeat) else found
    is_asked = seat is not None and asked is not None and seat.item_id == asked.pk
    return LabelPage(
        shell=_quiet(system_shell(access, section="Labelling")),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Labelling", at.calibration_sets),
            Crumb(f"Set {of.number}", at.calibration_set(of.number)),
            Crumb("Label"),
        ),
        heading=of.name,
        criterion=of.criterion.name,
        here=at.labelling(of.number),
        progress=(
            f"{progress.n_own} of {progress.n_own + n_open} by you",
            f"set: {progress.n_settled} of {progress.n_items}",
        ),
        n_done=progress.n_settled,
        n_items=progress.n_items,
        item=_label_item(request, seat, errors if is_asked else (), now) if seat else None,
        empty=_empty(found, of, at) if isinstance(found, NoSeat) else None,
        held=_held(request, of, at, now),
        refused=_refused(request, of, at, seat.item_id if seat else None)
        if not is_asked or not errors
        else (),
        last=_last(of, request, at),
    )


def _quiet(shell: Shell) -> Shell:
    """The frame without counts: nothing beside the item says how trials come out."""
    groups = tuple(
        replace(
            group,
            items=tuple(replace(item, count=None, count_words="") for item in group.items),
        )
        for group in shell.nav
    )
    return replace(shell, nav=groups)


def _own_seat(
    of: CalibrationSet, wanted: UUID | None, request: SystemRequest, now: datetime
) -> Seat | None:
    """The reserved item that an address names, if the person has it in hand."""
    if wanted is None:
        return None
    held = ReviewDraft.objects.filter(
        by=request.access.user, purpose=DraftPurpose.LABEL.value, held_until__isnull=False
    )
    return (
        Seat.objects.select_related("item__set__criterion", "item__trial__task")
        .filter(
            item__set=of,
            item__uuid=wanted,
            item__settled_at=None,
            item__withdrawn_at=None,
            item__set__closed_at=None,
            by=request.access.user,
            ended_at=None,
            expires_at__gt=now,
        )
        .exclude(item__in=held.filter(item__isnull=False).values("item"))
        .first()
    )


def _empty(found: NoSeat, of: CalibrationSet, at: Addresses) -> pages.Empty:
    act = pages.Link("The set", at.calibration_set(of.number))
    return pages.Empty(_HEADINGS[found.kind], found.reason, act)


def _held(
    request: SystemRequest, of: CalibrationSet, at: Addresses, now: datetime
) -> tuple[HeldDecision, ...]:
    rows = held_drafts(DraftPurpose.LABEL, system_pk=of.system_id, by=request.access.user)
    return tuple(
        HeldDecision(
            words=f"{_WORDS.get(row.decision, row.decision)} on {_name(row.trial)}",
            undo_url=address(f"{at.labelling(row.item.set.number)}undo", {"item": row.item.uuid}),
            until=row.held_until,
            seconds_left=max(0, round((row.held_until - now).total_seconds())),
        )
        for row in rows
        if row.item is not None and row.held_until is not None
    )


def _refused(
    request: SystemRequest, of: CalibrationSet, at: Addresses, at_hand: int | None
) -> tuple[RefusedLabel, ...]:
    """What was not kept, but for the item at hand, whose bar says it."""
    user = request.access.user
    rows = refused_drafts(DraftPurpose.LABEL, system_pk=of.system_id, by=user)
    return tuple(
        RefusedLabel(
            words=f"Your label on {_name(row.trial)} was not kept",
            sentence=row.refusal,
            decision=_WORDS.get(row.decision, ""),
            reason=row.reason,
            item=str(row.item.uuid),
            drop_url=f"{at.labelling(row.item.set.number)}draft",
            see=None
            if is_hidden(user.pk, request.access.role, row.trial_id, row.criterion.name)
            else pages.Link("See what others say of it", f"{at.trial(row.trial.uuid)}#verdicts"),
        )
        for row in rows
        if row.item is not None and row.item_id != at_hand
    )


def _name(trial: Trial) -> str:
    return f"task {trial.task.task_id}, trial {trial_label(trial.label, trial.attempt)}"


def _last(of: CalibrationSet, request: SystemRequest, at: Addresses) -> pages.Link | None:
    last = (
        Label.objects.select_related("item__trial__task")
        .filter(item__set=of, by=request.access.user)
        .order_by("-pk")
        .first()
    )
    if last is None:
        return None
    trial = last.item.trial
    return pages.Link(
        f"See what others say of {_name(trial)}, which you labelled last",
        f"{at.trial(trial.uuid)}#verdicts",
    )


def _label_item(
    request: SystemRequest, seat: Seat, errors: tuple[str, ...], now: datetime
) -> LabelItem:
    access, item = request.access, seat.item
    of, trial = item.set, item.trial
    at = Addresses.of(access.system.slug)
    here = at.labelling(of.number)
    asked = number_in(request, "step")
    trial.system = access.system
    shown = blind_transcript(
        trial,
        step=asked or number_in(request, "from"),
        label_url=here,
        trial_url=at.trial(trial.uuid),
    )
    version = contracts_in_effect([trial.task_id]).get(trial.task_id)
    kept = rubric_text_of(of.system_id, of.criterion.name, of.rubric_version)
    order = n_additions(trial)
    facts = [
        pages.Fact("Task", trial.task.task_id),
        pages.Fact("Trial", trial_label(trial.label, trial.attempt)),
        pages.Fact("Environment", trial.environment),
        pages.Fact("Ended because", trial.termination),
    ]
    return LabelItem(
        title=trial.task.title or f"Task {trial.task.task_id}",
        sub=(_name(trial), f"item {item.position}"),
        question=question_block(of.question),
        guide=question_block(kept.text if kept else ""),
        rubric_version=of.rubric_version,
        asked=tuple(asked_lines(version.contract)) if version else (),
        facts=tuple(fact for fact in facts if fact.value),
        steps=shown.steps,
        n_steps=trial.n_messages,
        step_asked=asked,
        pager=steps_pager(shown, trial.n_messages, here, str(item.uuid)),
        state=blind_state(trial, order),
        reserved=Reserved(
            until=seat.expires_at,
            words=clock_text(seat.expires_at),
            seconds_left=max(0, round((seat.expires_at - now).total_seconds())),
            extend_url=f"{here}extend",
            item=str(item.uuid),
        ),
        bar=_bar(request, item, basis_words(version.pk if version else None, order), errors, here),
    )


def _bar(
    request: SystemRequest, item: CalibrationItem, seen: str, errors: tuple[str, ...], here: str
) -> DecisionBar:
    criterion = item.set.criterion.name
    draft = draft_on(
        DraftPurpose.LABEL, trial_pk=item.trial_id, criterion=criterion, by=request.access.user
    )
    is_sent = bool(errors) and "steps" in request.POST
    chosen = draft.decision if draft else ""
    reason = draft.reason if draft else ""
    steps = ", ".join(str(step) for step in draft.steps) if draft else ""
    if is_sent:
        chosen, reason, steps = (
            request.POST.get(name, "") for name in ("decision", "reason", "steps")
        )
    if not errors and draft and draft.refusal:
        errors = (draft.refusal,)
    return DecisionBar(
        action=here,
        draft_url=f"{here}draft",
        choices=tuple(
            DecisionChoice(value.value, label, key, is_chosen=value.value == chosen)
            for value, label, key in _CHOICES
        ),
        legend=f"What does {marked_text(clean_text(criterion))} come to?",
        act="Label",
        reason=reason[:LONGEST_REASON],
        reason_hint="What in the transcript or the state shows it. Required.",
        steps=steps[:400],
        n_steps=item.trial.n_messages,
        seen=seen,
        hidden=(Hidden("item", str(item.uuid)),),
        errors=errors,
        saved=f"{DRAFT_KEPT}, {clock_text(draft.saved_at)}" if draft and not is_sent else "",
        skip_url=f"{here}skip",
        skip_label="Skip",
    )
