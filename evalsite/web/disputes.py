"""The list of disputes, by cause and one by one, and what was decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from evalsite.access import Access, SystemRequest, in_system
from evalsite.common.shell import Crumb, Pager
from evalsite.web.decided_rows import decided_row, decided_tabs
from evalsite.web.dispute_csv import csv_lines
from evalsite.web.dispute_filters import (
    GROUPS,
    LIST,
    SCREENFUL,
    DisputeFilters,
    place_in,
)
from evalsite.web.dispute_rows import (
    Hidden,
    ListContext,
    account_names,
    cause_row,
    dispute_row,
    is_hidden,
)
from evalsite.web.dispute_words import STANCES, heading_of
from reviews.models import Criterion
from reviews.selectors.blinding import HIDDEN, hidden_criteria, hidden_in
from reviews.selectors.decided_disputes import decided_disputes
from reviews.selectors.disputes import (
    DisputeFilter,
    DisputePage,
    DisputeTotals,
    ListedDispute,
    dispute_groups,
    dispute_totals,
    listed_disputes,
    printed_names,
    skipped_disputes,
)
from traces.models import Role
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in
from traces.web.downloads import attachment
from traces.web.pages.disputes import (
    CauseRow,
    DecidedListPage,
    DisputeListPage,
    DisputeRow,
)
from traces.web.shell import system_shell

_SUB = (
    "Criteria of trials on which verdicts disagree. All verdicts stay as they were given; a "
    "reviewer decides beside them, on the evidence."
)
_DECIDED_SUB = (
    "What reviewers decided on disputes, newest first. A correction is a decision of its own; the "
    "earlier one stays."
)


@require_GET
@in_system()
def dispute_list(request: SystemRequest) -> HttpResponse:
    """What is disputed, by cause or one by one: who says what, and whether it decides anything."""
    access, now = request.access, timezone.now()
    at = Addresses.of(access.system.slug)
    filters = DisputeFilters.of(request)
    hidden = _hidden_from(access)
    chosen = replace(filters.chosen, without=_pairs(hidden))
    has_left_out = bool(hidden) and filters.tells_what_is_said
    totals = dispute_totals(chosen if has_left_out else filters.chosen)
    n_shown = totals.n_deciding if filters.chosen.deciding else totals.n
    view = filters.view or (GROUPS if n_shown > SCREENFUL else LIST)
    is_grouped = view == GROUPS
    found = DisputePage((), None, None)
    causes: tuple[CauseRow, ...] = ()
    n_more = 0
    if is_grouped:
        has_left_out = bool(hidden)
        causes, n_more = _causes(chosen, filters, at, now)
    else:
        found = listed_disputes(
            chosen if has_left_out else filters.chosen,
            after=place_in(request, "after"),
            before=place_in(request, "before"),
        )
    page = DisputeListPage(
        shell=system_shell(access, section="Disputes"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Disputes")),
        heading=heading_of(_shown(totals, filters), state=filters.state),
        sub=_SUB,
        tabs=filters.tabs(totals, at),
        views=filters.views(at, current=view),
        filter=filters.form(at),
        is_grouped=is_grouped,
        stances=tuple(STANCES.values()),
        causes=causes,
        n_more_causes=n_more,
        rows=_rows(found.rows, access, filters, at, now, hidden),
        has_left_out=has_left_out,
        is_open=filters.state == "open",
        pager=_pager(found, filters, at),
        csv_url=address(f"{at.root}disputes.csv", filters.values),
        decided_url=at.decided_disputes,
        start_url=_start_url(found, filters, at) if access.role is Role.REVIEWER else "",
        empty=None if causes or found.rows else _nothing(filters, at),
    )
    return render(request, "reviews/dispute_list.html", {"page": page})


def _shown(totals: DisputeTotals, filters: DisputeFilters) -> DisputeTotals:
    """The totals of what is listed."""
    return replace(totals, n_idle=0, reasons=()) if filters.chosen.deciding else totals


def _hidden_from(access: Access) -> Hidden:
    """What the person must not see of open blind sets, by trial. No query for most people."""
    return hidden_in(access.user.pk, access.role, access.system.pk)


def _pairs(hidden: Hidden) -> tuple[tuple[int, str], ...]:
    return tuple((trial, name) for trial, names in hidden.items() for name in sorted(names))


def _causes(
    chosen: DisputeFilter, filters: DisputeFilters, at: Addresses, now: datetime
) -> tuple[tuple[CauseRow, ...], int]:
    groups = dispute_groups(chosen)
    names = {cause.criterion for cause in groups.causes}
    criteria = dict(
        Criterion.objects.filter(system=chosen.system_id, name__in=names).values_list("name", "pk")
    )
    judges = {judge.key: judge for judge in filters.judges}
    context = ListContext(filters, at, now, {})
    rows = tuple(
        cause_row(
            cause,
            context,
            number=number,
            judges=judges,
            criterion_pk=criteria.get(cause.criterion),
        )
        for number, cause in enumerate(groups.causes, start=1)
    )
    return rows, groups.n_more


def _rows(
    found: tuple[ListedDispute, ...],
    access: Access,
    filters: DisputeFilters,
    at: Addresses,
    now: datetime,
    hidden: Hidden,
) -> tuple[DisputeRow, ...]:
    seen = tuple(each for each in found if not is_hidden(each, hidden))
    context = ListContext(filters, at, now, printed_names(account_names(seen)))
    is_reviewer = access.role is Role.REVIEWER
    skips = skipped_disputes(access.user.pk, [each.pk for each in found]) if is_reviewer else {}
    return tuple(
        dispute_row(
            each,
            context,
            hidden=HIDDEN if is_hidden(each, hidden) else "",
            skipped=skips.get(each.pk, ""),
        )
        for each in found
    )


def _pager(found: DisputePage, filters: DisputeFilters, at: Addresses) -> Pager:
    before, after = found.previous_before, found.next_after
    return Pager(
        previous_url=filters.list_url(at, before=str(before)) if before else "",
        next_url=filters.list_url(at, after=str(after)) if after else "",
    )


def _start_url(found: DisputePage, filters: DisputeFilters, at: Addresses) -> str:
    if not found.rows or filters.state != "open":
        return ""
    return f"{at.dispute(found.rows[0].uuid)}{filters.query()}"


def _nothing(filters: DisputeFilters, at: Addresses) -> pages.Empty:
    if filters.is_filtered:
        return pages.Empty(
            heading="No dispute is like that",
            sentence="Take a filter away, or look at adjudicated ones too.",
            act=pages.Link("All disputes", address(at.disputes, {"state": "all"})),
        )
    match filters.state:
        case "adjudicated":
            return pages.Empty(
                "Nothing is adjudicated", "What reviewers decide on disputes stands here."
            )
        case "over":
            return pages.Empty(
                "No dispute is over",
                "A dispute is over once its verdicts agree, or nobody asks for them any more.",
            )
        case _:
            return pages.Empty(
                "No open dispute", "No verdicts disagree, or reviewers decided where they do."
            )


@require_GET
@in_system()
def disputes_csv(request: SystemRequest) -> HttpResponseBase:
    """The disputes of the list, one a line; safe to open in a spreadsheet."""
    access = request.access
    filters = DisputeFilters.of(request)
    hidden = _hidden_from(access)
    chosen = filters.chosen
    if filters.tells_what_is_said:
        chosen = replace(chosen, without=_pairs(hidden))
    lines = (line.encode() for line in csv_lines(chosen, hidden))
    return attachment(
        lines,
        file_name=f"{access.system.slug}-disputes.csv",
        content_type="text/csv; charset=utf-8",
    )


@require_GET
@in_system()
def decided_list(request: SystemRequest) -> HttpResponse:
    """What reviewers decided on disputes, newest first."""
    access = request.access
    at = Addresses.of(access.system.slug)
    is_mine = request.GET.get("by") == "me"
    found = decided_disputes(
        access.system.pk,
        by_pk=access.user.pk if is_mine else None,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    hidden = hidden_criteria(access.user.pk, access.role, [row.trial_pk for row in found.rows])
    kept = {"by": "me" if is_mine else None}
    before, after = found.previous_before, found.next_after
    page = DecidedListPage(
        shell=system_shell(access, section="Disputes"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Disputes", at.disputes),
            Crumb("Decided"),
        ),
        heading="What you decided" if is_mine else "Decided disputes",
        sub=_DECIDED_SUB,
        tabs=decided_tabs(at, is_mine=is_mine) if access.role is Role.REVIEWER else (),
        rows=tuple(decided_row(row, at, hidden) for row in found.rows),
        pager=Pager(
            previous_url=address(at.decided_disputes, {**kept, "before": before}) if before else "",
            next_url=address(at.decided_disputes, {**kept, "after": after}) if after else "",
        ),
        empty=None
        if found.rows
        else pages.Empty(
            "Nothing is decided yet",
            "What reviewers decide on disputes stands here, with who decided it and why.",
            act=pages.Link("Open disputes", at.disputes),
        ),
    )
    return render(request, "reviews/decided_list.html", {"page": page})
