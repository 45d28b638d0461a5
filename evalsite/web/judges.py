"""The judges of a system, and the calibration card of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby, islice

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.after_calibration import read_by_hand
from evalsite.common.formatting import NOTHING, count_text, counted, relative_text
from evalsite.common.shell import Crumb, Option, Pager
from evalsite.web.judge_card import card_page, text_value
from evalsite.web.judge_items import PARTS, SHOWN, AskedItems, card_csv_lines
from evalsite.web.judge_words import (
    STATUS_STATES,
    bound_text,
    date_text,
    errors_words,
    labels_words,
    said_words,
)
from reviews.api.judges import card_document, text_asked
from reviews.core.calibration import DATE_PASSED, DEFAULT_LIMITS, CalibrationStatus
from reviews.models import Criterion
from reviews.selectors.judge_cards import JudgeCard, hidden_trials
from reviews.selectors.judge_cards import judge_card as found_card
from reviews.selectors.judges import ListedJudge, StoredCalibration, judges_of
from reviews.selectors.probes import probe_results
from traces.models import Member, Role, System
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in
from traces.web.downloads import attachment
from traces.web.pages.judges import DueDate, JudgeFilter, JudgeListPage, JudgeRow
from traces.web.shell import system_shell

PAGE = 40  # judges
MOST_OLDER = 20  # earlier versions of one that are listed
MOST_CRITERIA = 200  # in the menu
REMINDED = timedelta(days=14)
MOST_REMINDERS = 5
NO_JUDGE = "There is no such judge or criterion in this system."
NOT_LABELLED = "No status was read: no complete set of labels holds it against people yet."
FEW_REVIEWERS = (
    "It takes labels of two people to calibrate a judge, and this system has fewer than two "
    "reviewers: its judges stay exploratory."
)
_SUB = (
    "A judge is a model that grades. Its verdicts vote only while people's blind labels bear them "
    "out."
)
_WHAT = (
    "A judge is a model that gives verdicts. Upload verdicts of kind model, and it stands here. It "
    "becomes calibrated when two people label the same trials blind and it seldom passes what they "
    "fail."
)


@require_GET
@in_system()
def judge_list(request: SystemRequest) -> HttpResponse:
    """Each judge version and criterion: its status and why, and whether its verdicts vote."""
    access, now = request.access, timezone.now()
    at = Addresses.of(access.system.slug)
    every = judges_of(access.system.pk)
    criteria = {each.criterion_pk: each.criterion for each in every}
    asked = number_in(request, "criterion")
    criterion = asked if asked in criteria else None
    status = request.GET.get("status", "")
    status = status if status in set(CalibrationStatus) else ""
    fitting = [
        each
        for each in every
        if criterion in (None, each.criterion_pk)
        and (not status or each.status_at(now).value == status)
    ]
    values: dict[str, Value] = {"criterion": criterion, "status": status}
    groups = sorted((list(group) for _, group in groupby(fitting, key=_group_key)), key=_weight)
    start = _start(groups, request.GET.get("after", ""))
    page = JudgeListPage(
        shell=system_shell(access, section="Judges"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Judges")),
        heading=_heading(every, now),
        sub=_SUB,
        acts=tuple(_acts(access, at)) if every else (),
        filter=JudgeFilter(
            action=at.judges,
            statuses=(
                Option("", "All", is_selected=not status),
                *(Option(each, each, is_selected=each == status) for each in CalibrationStatus),
            ),
            criteria=_criteria(criteria, criterion),
            clear_url=at.judges if criterion or status else "",
        ),
        notices=(*_reminders(every, now), *_few_reviewers(access.system)) if every else (),
        rows=tuple(_row_of(group, at, now) for group in groups[start : start + PAGE]),
        pager=_pager(groups, start, at, values),
        empty=None if fitting else _empty(access, at, is_filtered=bool(every)),
    )
    return render(request, "reviews/judge_list.html", {"page": page})


def _group_key(each: ListedJudge) -> tuple[int, int]:
    return (each.criterion_pk, each.judge_pk)


def _weight(group: Sequence[ListedJudge]) -> tuple[bool, int]:
    """Judges with a status come first, then those that say most."""
    is_read = any(each.calibrations for each in group)
    return (not is_read, -sum(each.said.n for each in group))


def _start(groups: Sequence[Sequence[ListedJudge]], after: str) -> int:
    places = (place for place, group in enumerate(groups) if _group_id(group) == after)
    return next(places, -1) + 1


def _group_id(group: Sequence[ListedJudge]) -> str:
    return "-".join(map(str, _group_key(group[0])))


def _pager(
    groups: Sequence[Sequence[ListedJudge]], start: int, at: Addresses, values: dict[str, Value]
) -> Pager:
    if len(groups) <= PAGE:
        return Pager()
    end = min(start + PAGE, len(groups))
    before = _group_id(groups[start - PAGE - 1]) if start > PAGE else ""
    after = _group_id(groups[end - 1])
    return Pager(
        previous_url=address(at.judges, {**values, "after": before}) if start else "",
        next_url=address(at.judges, {**values, "after": after}) if end < len(groups) else "",
        words=f"{count_text(start + 1)} to {count_text(end)} of {count_text(len(groups))}",
    )


def _heading(every: Sequence[ListedJudge], now: datetime) -> str:
    if not every:
        return "No judge yet"
    voting = sum(each.status_at(now) is CalibrationStatus.CALIBRATED for each in every)
    n = counted(len({each.judge_pk for each in every}), "judge")
    if not voting:
        return f"{n}, and no verdict of theirs votes"
    return f"{n}, {counted(voting, 'version')} of which {'votes' if voting == 1 else 'vote'}"


def _acts(access: Access, at: Addresses) -> Iterator[pages.Link]:
    if access.may(Act.REVIEW):
        yield pages.Link("Make a calibration set", at.new_calibration_set)
    yield pages.Link("Probes", at.probes)
    yield pages.Link("Judge runs", at.judge_runs)


def _criteria(criteria: dict[int, str], chosen: int | None) -> tuple[Option, ...]:
    listed = dict(islice(criteria.items(), MOST_CRITERIA))
    if chosen is not None:
        listed[chosen] = criteria[chosen]
    return (
        Option("", "All", is_selected=chosen is None),
        *(Option(str(pk), name, is_selected=pk == chosen) for pk, name in listed.items()),
    )


def _empty(access: Access, at: Addresses, *, is_filtered: bool) -> pages.Empty:
    if is_filtered:
        return pages.Empty(
            "No judge is like that", "Take a filter away.", pages.Link("All judges", at.judges)
        )
    act = None
    if access.may(Act.REVIEW):
        act = pages.Link("Make a calibration set", at.new_calibration_set)
    elif access.may(Act.CONTRIBUTE):
        act = pages.Link("Upload verdicts", at.new_upload)
    return pages.Empty("No judge has given a verdict", _WHAT, act)


def _few_reviewers(system: System) -> Iterator[pages.Notice]:
    reviewers = Member.objects.filter(system=system, role=Role.REVIEWER, user__is_active=True)
    if reviewers.count() < DEFAULT_LIMITS.min_people:
        yield pages.Notice(FEW_REVIEWERS)


def _reminders(every: Iterable[ListedJudge], now: datetime) -> Iterator[pages.Notice]:
    """A line for each calibration that ends soon or has ended, the earliest first."""
    due = sorted(
        (
            (current.valid_until, each)
            for each in every
            if (current := each.current) is not None
            and current.status is CalibrationStatus.CALIBRATED
            and current.valid_until is not None
            and current.valid_until - now <= REMINDED
        ),
        key=lambda pair: (pair[0], pair[1].version_pk),
    )
    for until, each in due[:MOST_REMINDERS]:
        name = f"{each.judge} {each.version}".strip()
        if until < now:
            words = f"ended on {date_text(until)}: what it says since does not vote."
        else:
            words = f"ends on {date_text(until)}, {relative_text(until, now=now)}."
        yield pages.Notice(
            f"The calibration of {name} on {each.criterion} {words} Label a new set.",
            level="warning",
        )
    if len(due) > MOST_REMINDERS:
        more = counted(len(due) - MOST_REMINDERS, "more calibration")
        yield pages.Notice(f"{more} of judges end soon or have ended.", level="warning")


def _row_of(group: Sequence[ListedJudge], at: Addresses, now: datetime) -> JudgeRow:
    newest, *older = group
    rows = tuple(_row(each, at, now) for each in older[:MOST_OLDER])
    return replace(_row(newest, at, now), older=rows)


def _row(each: ListedJudge, at: Addresses, now: datetime) -> JudgeRow:
    current, status = each.current, each.status_at(now)
    bound, note, labelled_at = _bound(current)
    return JudgeRow(
        id=f"judge-{each.version_pk}-{each.criterion_pk}",
        judge=each.judge,
        version=each.version,
        criterion=each.criterion,
        href=at.judge(each.version_pk, each.criterion_pk),
        status=pages.Badge(status.value, STATUS_STATES[status]),
        why=_why(current, now),
        votes="votes" if status is CalibrationStatus.CALIBRATED else "does not vote",
        bound=bound,
        bound_note=note,
        said=counted(each.said.n, "verdict"),
        said_note=said_words(each.said),
        last_at=each.said.last_at,
        labelled_at=labelled_at,
        due=_due(current, now),
    )


def _why(current: StoredCalibration | None, now: datetime) -> str:
    if current is None:
        return NOT_LABELLED
    return current.why if current.status_at(now) is current.status else DATE_PASSED


def _bound(current: StoredCalibration | None) -> tuple[str, str, datetime | None]:
    """The bound of false passes, what it is of, and when the newest label was given."""
    if current is None:
        return NOTHING, "", None
    figures = current.figures
    errors = figures.held.false_pass
    bound = errors.bound
    shown = "cannot tell" if bound is None else bound_text(bound, DEFAULT_LIMITS.false_pass)
    if not figures.n_items:
        return NOTHING, "", None
    return shown, f"{errors_words(errors, 'failed')}; {labels_words(figures)}", figures.newest_label


def _due(current: StoredCalibration | None, now: datetime) -> DueDate | None:
    if current is None or current.valid_until is None:
        return None
    if current.status is not CalibrationStatus.CALIBRATED:
        return None
    until = current.valid_until
    day, away = date_text(until), relative_text(until, now=now)
    return DueDate(until, day if day == away else f"{day}, {away}", until - now <= REMINDED)


@require_GET
@in_system()
def judge_card(request: SystemRequest, judge: int, criterion: int) -> HttpResponseBase:
    """What labels, adjudications and probes say of a judge version on a criterion."""
    access, now = request.access, timezone.now()
    card = _card_or_404(request, judge, criterion, request.GET.get("text", ""))
    hidden = hidden_trials(card, access.user.pk, access.role)
    name = f"{access.system.slug}-judge-{judge}-{criterion}"
    match request.GET.get("format", ""):
        case "csv":
            lines = (line.encode() for line in card_csv_lines(card, hidden=hidden))
            return attachment(
                lines, file_name=f"{name}.csv", content_type="text/csv; charset=utf-8"
            )
        case "json":
            return JsonResponse(card_document(card, now=now, hidden=hidden))
    page = card_page(
        card,
        access=access,
        asked=_asked_items(request),
        tried=probe_results(judge, criterion, card.text.digest),
        hidden=hidden,
        notices=tuple(_few_reviewers(access.system)),
        now=now,
    )
    return render(request, "reviews/judge_card.html", {"page": page})


def _card_or_404(request: SystemRequest, judge: int, criterion: int, text: str) -> JudgeCard:
    card = found_card(request.access.system, judge, criterion, digest=text_asked(text))
    if card is None:
        raise Http404(NO_JUDGE)
    return card


def _asked_items(request: SystemRequest) -> AskedItems:
    """Which items the address asks for. Nonsense asks for all of them."""
    get = request.GET
    part, show, family = get.get("items", ""), get.get("show", ""), get.get("family")
    return AskedItems(
        part=part if part in PARTS else "",
        show=show if show in SHOWN else "",
        family=None if not family else "" if family == "-" else family,
        after=get.get("after", ""),
    )


@require_POST
@in_system(Act.REVIEW)
def judge_read(request: SystemRequest, judge: int, criterion: int) -> HttpResponse:
    """Read the status of all judges on a criterion anew, and decide what depends on it."""
    access = request.access
    card = _card_or_404(request, judge, criterion, request.POST.get("text", ""))
    found: Criterion = card.criterion
    rows = read_by_hand(access.system, found, card.text.digest, by=access.user, now=timezone.now())
    if any(row.grader_version_id == judge for row in rows):
        messages.success(request, "Read: its status or figures changed, and stand below.")
    elif rows:
        messages.success(
            request, f"Read: nothing changed for it; {counted(len(rows), 'other judge')} changed."
        )
    else:
        messages.success(request, "Read: nothing changed.")
    here = Addresses.of(access.system.slug).judge(judge, criterion)
    kept: dict[str, Value] = {"text": text_value(card.text)} if len(card.texts) > 1 else {}
    return redirect(address(here, kept))
