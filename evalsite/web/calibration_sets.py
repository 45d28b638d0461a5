"""Calibration sets: the list, one set with what people do to it, and its labels as files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.after_sets import vouch_and_decide, withdraw_and_complete
from evalsite.common.formatting import counted
from evalsite.common.shell import Choice, Crumb
from evalsite.web.calibration_set_form import reviewer_notices, set_form_page
from evalsite.web.calibration_set_words import (
    NO_SET,
    ROUNDS,
    SAMPLING,
    SECTION,
    STATES,
    VALUES,
    crumbs_of,
    drawn_lines,
)
from evalsite.web.label_import import import_page
from reviews.models import CalibrationItem, CalibrationSet
from reviews.selectors.calibration_exports import label_csv_rows, label_lines
from reviews.selectors.calibration_sets import (
    DueCalibration,
    ItemLabel,
    ItemShow,
    ListedSet,
    PersonProgress,
    SetItem,
    SetNote,
    SetState,
    due_calibrations,
    item_of_set,
    items_of,
    left_for,
    listed_sets,
    notes_of,
    people_of,
    set_numbered,
)
from reviews.services.calibration_sets import (
    LONGEST_REASON,
    CalibrationSetDeniedError,
    CalibrationSetError,
    close_set,
    vouching_refusal_of,
)
from traces.models import Role
from traces.selectors.releases import NO_RELEASE
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, pager_of, uuid_of
from traces.web.downloads import attachment
from traces.web.pages.calibration_sets import (
    ItemLine,
    LabelLine,
    NoteLine,
    PersonBar,
    Reminder,
    SetForm,
    SetLine,
    SetListPage,
    SetPage,
)
from traces.web.rows import trial_label
from traces.web.shell import system_shell

_NO_ITEM = "There is no such item in this set."
_NOTHING_LEFT = "Nothing of this set is left for you."
_SHOWS = {
    ItemShow.ALL: "All",
    ItemShow.WAITING: "Waiting",
    ItemShow.SETTLED: "Settled",
    ItemShow.DIFFER: "People differed",
    ItemShow.WITHDRAWN: "Withdrawn",
}


class ReasonForm(forms.Form):
    """Why an item is taken out, a set is closed, or labels are vouched for."""

    reason = forms.CharField(max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 2}))


# --- the list


@require_GET
@in_system()
def set_list(request: SystemRequest) -> HttpResponse:
    """The sets of a system, what is left in them for the person, and which judges are due."""
    access = request.access
    system = access.system
    at = Addresses.of(system.slug)
    now = timezone.now()
    found = listed_sets(
        system.pk, after=number_in(request, "after"), before=number_in(request, "before")
    )
    people = people_of(row.pk for row in found.rows)
    left = _left_in(access, found.rows)
    page = SetListPage(
        shell=system_shell(access, section=SECTION),
        crumbs=(Crumb(system.name, at.tasks), Crumb(SECTION)),
        reminders=tuple(
            _reminder(each, at, access, now) for each in due_calibrations(system.pk, now=now)
        ),
        rows=tuple(_line(row, people.get(row.pk, ()), left, access, at) for row in found.rows),
        pager=pager_of(found, at.calibration_sets, {}),
        new_url=at.new_calibration_set,
        new_why_not=access.refusal(Act.REVIEW),
        import_url=at.label_import,
        import_why_not=access.refusal(Act.ASK_JUDGES),
        notices=reviewer_notices(system),
        empty=None if found.rows else _no_sets(access, at),
    )
    return render(request, "reviews/calibration_set_list.html", {"page": page})


def _left_in(access: Access, rows: Iterable[ListedSet]) -> dict[int, int] | None:
    """What is left for a reviewer in open sets; None for people who label nothing."""
    if access.role is not Role.REVIEWER:
        return None
    open_sets = [row.pk for row in rows if row.is_open]
    return left_for(access.user, access.system.pk, open_sets) if open_sets else {}


def _line(
    row: ListedSet,
    people: Iterable[PersonProgress],
    left: dict[int, int] | None,
    access: Access,
    at: Addresses,
) -> SetLine:
    here = at.calibration_set(row.number)
    n_left = left.get(row.pk, 0) if left is not None and row.is_open else None
    may_vouch = (
        row.state is SetState.IMPORTED
        and access.role is Role.REVIEWER
        and row.by_pk != access.user.pk
    )
    return SetLine(
        name=pages.Link(row.name, here),
        number=row.number,
        criterion=row.criterion,
        rubric_version=row.rubric_version,
        sampling=SAMPLING[row.sampling],
        state=STATES[row.state],
        by=row.by_name,
        made_at=row.created_at,
        n_items=row.n_items,
        n_settled=row.n_settled,
        n_withdrawn=row.n_withdrawn,
        people=_bars(row, people),
        n_left=n_left,
        label_url=at.labelling(row.number) if n_left else "",
        why_not=_NOTHING_LEFT if n_left == 0 else "",
        vouch_url=f"{here}#vouch" if may_vouch else "",
    )


def _bars(row: ListedSet, people: Iterable[PersonProgress]) -> tuple[PersonBar, ...]:
    return tuple(PersonBar(each.name, each.n_labels, max(row.n_items, 1)) for each in people)


def _reminder(due: DueCalibration, at: Addresses, access: Access, now: datetime) -> Reminder:
    is_past = due.valid_until <= now
    name = f"{due.judge} {due.version}".strip()
    return Reminder(
        judge=pages.Link(name, at.judge(due.grader_version_pk, due.criterion_pk)),
        criterion=due.criterion,
        words=f"{'ended on' if is_past else 'until'} {due.valid_until:%Y-%m-%d}",
        is_past=is_past,
        act=_next_set(due, at, access),
    )


def _next_set(due: DueCalibration, at: Addresses, access: Access) -> pages.Link:
    if due.open_set is not None:
        return pages.Link(f"Set {due.open_set} is open", at.calibration_set(due.open_set))
    if not access.may(Act.REVIEW):
        return pages.Link("")
    values = {"criterion": due.criterion_key, "sampling": "random", "reason": "Recalibration."}
    return pages.Link("Make the next set", address(at.new_calibration_set, values))


def _no_sets(access: Access, at: Addresses) -> pages.Empty:
    may = access.may(Act.REVIEW)
    return pages.Empty(
        heading="No calibration set yet",
        sentence="A judge counts once people's blind labels bear it out. A set is a sample of trials "
        "that two people label without sight of any verdict."
        + ("" if may else " A reviewer makes one."),
        act=pages.Link("Make a set", at.new_calibration_set) if may else None,
    )


# --- making one, bringing one in


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.REVIEW)
def set_new(request: SystemRequest) -> HttpResponse:
    """The form that makes a set."""
    return set_form_page(request)


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.ASK_JUDGES)
def label_import(request: SystemRequest) -> HttpResponse:
    """The form that brings labels in."""
    return import_page(request)


# --- one set


@require_GET
@in_system()
def set_page(request: SystemRequest, number: int) -> HttpResponse:
    """One set: progress, people, items, and what was skipped or revealed."""
    return _page(request, _found(request, number))


def _found(request: SystemRequest, number: int) -> ListedSet:
    found = set_numbered(request.access.system.pk, number)
    if found is None:
        raise Http404(NO_SET)
    return found


def _page(
    request: SystemRequest,
    of: ListedSet,
    *,
    withdraw: ReasonForm | None = None,
    vouch: ReasonForm | None = None,
    close: ReasonForm | None = None,
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    show = _show(request)
    items = items_of(
        of, show=show, after=number_in(request, "after"), before=number_in(request, "before")
    )
    left = _left_in(access, [of])
    n_left = left.get(of.pk, 0) if left is not None and of.is_open else None
    here = at.calibration_set(of.number)
    page = SetPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access.system, Crumb(of.name)),
        name=of.name,
        number=of.number,
        state=STATES[of.state],
        criterion=of.criterion,
        question=of.question,
        notices=_notices(of),
        facts=_facts(of),
        strata=drawn_lines(of.strata),
        n_items=of.n_items,
        n_settled=of.n_settled,
        people=_bars(of, people_of([of.pk]).get(of.pk, ())),
        n_left=n_left,
        label_url=at.labelling(of.number) if n_left else "",
        label_why_not=_NOTHING_LEFT if n_left == 0 else "",
        withdraw=_withdraw_form(request, of, withdraw, here),
        vouch=_vouch_form(access, of, vouch, here),
        close=_close_form(access, of, close, here),
        tabs=_tabs(of, show, here),
        rows=tuple(_item(each, of, access, at, here, show) for each in items.rows),
        pager=pager_of(items, here, {"show": show.value}, place="#items"),
        notes=tuple(_note(each, at) for each in notes_of(of)),
        csv_url=address(f"{here}export", {"format": "csv"}),
        jsonl_url=address(f"{here}export", {"format": "jsonl"}),
        export_note="Labels of items that people still label are left out." if of.is_open else "",
        empty=None if items.rows else _no_items(show),
    )
    is_sent = any(form is not None for form in (withdraw, vouch, close))
    status = 422 if is_sent else 200
    return render(request, "reviews/calibration_set_detail.html", {"page": page}, status=status)


def _show(request: SystemRequest) -> ItemShow:
    asked = request.GET.get("show", "")
    return ItemShow(asked) if asked in set(ItemShow) else ItemShow.ALL


def _notices(of: ListedSet) -> tuple[pages.Notice, ...]:
    match of.state:
        case SetState.OPEN:
            sentence = (
                "What people said of an item is shown once it is settled. Nothing counts in a "
                "calibration before the whole set is complete."
            )
            return (pages.Notice(sentence),)
        case SetState.CLOSED:
            sentence = (
                f"{of.closed_by} closed this set before it was complete: {of.closing_reason} It "
                "counts in no calibration; the verdicts that its labels are stay."
            )
            return (pages.Notice(sentence, "warning"),)
        case SetState.IMPORTED:
            sentence = (
                "These labels came in from outside. They vote nowhere, and no judge is held against "
                "them before a reviewer vouches for the set."
            )
            return (pages.Notice(sentence, "warning"),)
        case SetState.VOUCHED:
            when = f"{of.vouched_at:%Y-%m-%d}" if of.vouched_at else ""
            sentence = f"{of.vouched_by} vouched for these labels on {when}: {of.vouch_reason}"
            return (pages.Notice(sentence),)
        case SetState.COMPLETE:
            return ()


def _facts(of: ListedSet) -> tuple[pages.Fact, ...]:
    rows = (
        ("Criterion", of.criterion),
        ("Rubric version", of.rubric_version),
        ("Trials chosen", SAMPLING[of.sampling]),
        ("Seed of the draw", "" if of.seed is None else str(of.seed)),
        ("Made by", f"{of.by_name}, {of.created_at:%Y-%m-%d %H:%M} UTC"),
        ("Why", of.reason),
        ("Source", of.source),
        ("Complete since", f"{of.completed_at:%Y-%m-%d %H:%M} UTC" if of.completed_at else ""),
        ("Withdrawn", counted(of.n_withdrawn, "item") if of.n_withdrawn else ""),
        ("People differed on", counted(of.n_differ, "settled item") if of.n_settled else ""),
    )
    return tuple(pages.Fact(name, value) for name, value in rows if value)


def _tabs(of: ListedSet, show: ItemShow, here: str) -> tuple[Choice, ...]:
    counts = {
        ItemShow.ALL: of.n_items + of.n_withdrawn,
        ItemShow.WAITING: of.n_waiting,
        ItemShow.SETTLED: of.n_settled,
        ItemShow.DIFFER: of.n_differ,
        ItemShow.WITHDRAWN: of.n_withdrawn,
    }
    return tuple(
        Choice(
            label=_SHOWS[each],
            href=address(here, {"show": each.value}, place="#items"),
            is_current=each is show,
            count=counts[each],
        )
        for each in ItemShow
        if counts[each] or each in (ItemShow.ALL, show)
    )


def _item(
    item: SetItem, of: ListedSet, access: Access, at: Addresses, here: str, show: ItemShow
) -> ItemLine:
    may_withdraw = (
        of.is_open and access.may(Act.REVIEW) and not (item.settled_at or item.withdrawn_at)
    )
    values = {"show": show.value, "withdraw": item.uuid}
    return ItemLine(
        id=f"item-{item.position}",
        position=item.position,
        trial=pages.Link(
            f"{item.task_id} · trial {trial_label(item.label, item.attempt)}",
            at.trial(item.trial_uuid),
        ),
        below=tuple(each for each in (item.release or NO_RELEASE, item.family) if each),
        state=_item_state(item, of),
        detail=_withdrawn_words(item),
        stratum=item.stratum,
        labels=tuple(_label(each, item, at) for each in item.labels),
        withdraw_url=address(here, values, place="#withdraw") if may_withdraw else "",
    )


def _item_state(item: SetItem, of: ListedSet) -> pages.Badge:
    if item.withdrawn_at:
        return pages.Badge("withdrawn")
    if item.consensus:
        return VALUES[item.consensus]
    return pages.Badge("waits for labels", "waiting") if of.is_open else pages.Badge("not settled")


def _withdrawn_words(item: SetItem) -> str:
    if not item.withdrawn_at:
        return ""
    by = f"{item.withdrawn_by}: " if item.withdrawn_by else ""
    return f"{by}{item.withdrawn_reason}"


def _label(label: ItemLabel, item: SetItem, at: Addresses) -> LabelLine:
    return LabelLine(
        labeller=label.labeller,
        value=VALUES[label.value],
        round=ROUNDS[label.round],
        reason=label.reason,
        steps=tuple(
            pages.Link(f"step {step}", at.step(item.trial_uuid, step)) for step in label.steps
        ),
        given_at=label.given_at,
    )


def _note(note: SetNote, at: Addresses) -> NoteLine:
    where = f" ({note.where})" if note.where else ""
    return NoteLine(
        item=pages.Link(f"item {note.position}", at.trial(note.trial_uuid)),
        who=note.who,
        what=f"{note.what}{where}",
        reason=note.reason,
        at=note.at,
    )


def _no_items(show: ItemShow) -> pages.Empty:
    words = {
        ItemShow.ALL: ("This set has no item", "Nothing was drawn."),
        ItemShow.WAITING: ("No item waits", "Every item is settled or withdrawn."),
        ItemShow.SETTLED: (
            "No item is settled yet",
            "An item is settled when two people said the same, or three have spoken.",
        ),
        ItemShow.DIFFER: ("People differed on no settled item", "All labels of each are alike."),
        ItemShow.WITHDRAWN: ("No item was withdrawn", "Reviewers withdraw one with a reason."),
    }
    return pages.Empty(*words[show])


# --- what is done to a set


def _withdraw_form(
    request: SystemRequest, of: ListedSet, sent: ReasonForm | None, here: str
) -> SetForm | None:
    asked = request.POST.get("item", "") or request.GET.get("withdraw", "")
    identity = uuid_of(asked)
    item = item_of_set(of.pk, identity) if identity else None
    if item is None or not (of.is_open or sent):
        return None
    return SetForm(
        heading=f"Withdraw item {item.position}",
        sentence=f"Nobody labels trial {trial_label(item.trial.label, item.trial.attempt)} of task "
        f"{item.trial.task.task_id} in this set any more. What was said of it stays in the record.",
        form=sent or ReasonForm(),
        action=f"{here}withdraw",
        button="Withdraw the item",
        hidden=(pages.Hidden("item", str(item.uuid)),),
        cancel_url=here,
        why_not=request.access.refusal(Act.REVIEW),
    )


def _vouch_form(
    access: Access, of: ListedSet, sent: ReasonForm | None, here: str
) -> SetForm | None:
    if of.state is not SetState.IMPORTED and not sent:
        return None
    row = CalibrationSet(pk=of.pk, system=access.system, by_id=of.by_pk)
    return SetForm(
        heading="Vouch for these labels",
        sentence="You say that you know where they are from and that people gave them without sight "
        "of what judges say. Judges are held against them from then on.",
        form=sent or ReasonForm(),
        action=f"{here}vouch",
        button="Vouch for the set",
        why_not=vouching_refusal_of(row, access.user),
    )


def _close_form(
    access: Access, of: ListedSet, sent: ReasonForm | None, here: str
) -> SetForm | None:
    if not (of.is_open or sent):
        return None
    return SetForm(
        heading="Close the set",
        sentence="Nobody labels it any more. A set that was closed before it was complete counts in "
        "no calibration.",
        form=sent or ReasonForm(),
        action=f"{here}close",
        button="Close the set",
        why_not=access.refusal(Act.REVIEW),
    )


@require_POST
@in_system(Act.REVIEW)
def item_withdraw(request: SystemRequest, number: int) -> HttpResponse:
    """Take an item out of an open set."""
    of = _found(request, number)
    item = _item_asked(request, of)
    form = ReasonForm(request.POST)
    if form.is_valid():
        try:
            is_complete = withdraw_and_complete(
                item,
                reason=form.cleaned_data["reason"],
                by=request.access.user,
                now=timezone.now(),
            )
        except CalibrationSetDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except CalibrationSetError as error:
            form.add_error(None, str(error))
        else:
            more = " That completes the set." if is_complete else ""
            messages.success(request, f"Item {item.position} is withdrawn.{more}")
            return redirect(Addresses.of(request.access.system.slug).calibration_set(number))
    return _page(request, of, withdraw=form)


def _item_asked(request: SystemRequest, of: ListedSet) -> CalibrationItem:
    identity: UUID | None = uuid_of(request.POST.get("item", ""))
    item = item_of_set(of.pk, identity) if identity else None
    if item is None:
        raise Http404(_NO_ITEM)
    return item


@require_POST
@in_system(Act.REVIEW)
def set_close(request: SystemRequest, number: int) -> HttpResponse:
    """End an open set by hand."""
    of = _found(request, number)
    form = ReasonForm(request.POST)
    if form.is_valid():
        try:
            close_set(
                CalibrationSet(pk=of.pk),
                reason=form.cleaned_data["reason"],
                by=request.access.user,
                now=timezone.now(),
            )
        except CalibrationSetDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except CalibrationSetError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"Set {number} is closed.")
            return redirect(Addresses.of(request.access.system.slug).calibration_set(number))
    return _page(request, of, close=form)


@require_POST
@in_system(Act.REVIEW)
def set_vouch(request: SystemRequest, number: int) -> HttpResponse:
    """Vouch for imported labels: judges are held against them at once."""
    of = _found(request, number)
    form = ReasonForm(request.POST)
    if form.is_valid():
        try:
            vouch_and_decide(
                CalibrationSet(pk=of.pk),
                reason=form.cleaned_data["reason"],
                by=request.access.user,
                now=timezone.now(),
            )
        except CalibrationSetDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except CalibrationSetError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"You vouched for set {number}. Calibrations were read anew.")
            return redirect(Addresses.of(request.access.system.slug).calibration_set(number))
    return _page(request, of, vouch=form)


# --- files


@require_GET
@in_system()
def set_export(request: SystemRequest, number: int) -> HttpResponseBase:
    """The labels of a set, as CSV or, by default, JSON Lines."""
    of = _found(request, number)
    name = f"{request.access.system.slug}-labels-{of.number}"
    if request.GET.get("format") == "csv":
        rows = _encoded(label_csv_rows(of))
        return attachment(rows, file_name=f"{name}.csv", content_type="text/csv; charset=utf-8")
    lines = _encoded(label_lines(of))
    return attachment(lines, file_name=f"{name}.jsonl", content_type="application/x-ndjson")


def _encoded(lines: Iterable[str]) -> Iterator[bytes]:
    return (line.encode() for line in lines)
